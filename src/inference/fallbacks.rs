//! The fallbacks of `[inference.fallbacks]`: of one model, or of all models that a pattern matches.
//!
//! A pattern has one `*` in the model's name. What it matches is carried over to the `*` of a fallback, so that
//! `"openai/*" = ["azure/*"]` sends `openai/gpt-5.4-mini` to `azure/gpt-5.4-mini`. One entry counts: that of the model
//! itself, otherwise the longest pattern that matches.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// What stands for any part of a model's name.
pub const WILDCARD: char = '*';

/// Whether this identifier is a pattern.
pub fn is_pattern(id: &str) -> bool {
    id.contains(WILDCARD)
}

/// The fallbacks of the model `id`, in order.
pub(super) fn of<'a>(
    entries: &'a BTreeMap<String, Vec<String>>,
    id: &str,
) -> impl Iterator<Item = Cow<'a, str>> + use<'a> {
    let exact = entries.get_key_value(id).map(|(_, fallbacks)| (String::new(), fallbacks));
    let (carried, fallbacks) = exact.or_else(|| by_pattern(entries, id)).unzip();
    let carried = carried.unwrap_or_default();
    fallbacks.into_iter().flatten().map(move |fallback| match fallback.split_once(WILDCARD) {
        Some((before, after)) => Cow::Owned(format!("{before}{carried}{after}")),
        None => Cow::Borrowed(fallback.as_str()),
    })
}

/// The part of `id` that the longest matching pattern leaves open, and its fallbacks.
fn by_pattern<'a>(entries: &'a BTreeMap<String, Vec<String>>, id: &str) -> Option<(String, &'a Vec<String>)> {
    let matching = entries.iter().filter_map(|(pattern, fallbacks)| {
        let (before, after) = pattern.split_once(WILDCARD)?;
        let carried = id.strip_prefix(before)?.strip_suffix(after)?;
        Some((pattern.len(), carried, fallbacks))
    });
    let (_, carried, fallbacks) = matching.max_by_key(|(length, ..)| *length)?;
    Some((carried.to_owned(), fallbacks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_itself_comes_before_longer_and_shorter_patterns() {
        let entries: BTreeMap<String, Vec<String>> = [
            ("openai/*", vec!["azure/*", "groq/openai/*", "local/m"]),
            ("openai/gpt-*-mini", vec!["azure/small-*"]),
            ("openai/gpt-5", vec!["azure/five"]),
            ("openai/none", vec![]),
        ]
        .map(|(id, list)| (id.to_owned(), list.into_iter().map(str::to_owned).collect()))
        .into();
        let found = |id: &str| of(&entries, id).map(Cow::into_owned).collect::<Vec<_>>();
        assert_eq!(found("openai/o3"), ["azure/o3", "groq/openai/o3", "local/m"]);
        assert_eq!(found("openai/a/b"), ["azure/a/b", "groq/openai/a/b", "local/m"]);
        assert_eq!(found("openai/gpt-5.4-mini"), ["azure/small-5.4"]);
        // The two parts of a pattern do not overlap.
        assert_eq!(found("openai/gpt-mini")[0], "azure/gpt-mini");
        assert_eq!(found("openai/gpt-5"), ["azure/five"]);
        for unmatched in ["openai/none", "openaix/o3", "mistral/o3"] {
            assert!(found(unmatched).is_empty(), "{unmatched}");
        }
    }
}
