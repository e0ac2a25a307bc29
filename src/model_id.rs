//! Identifiers of models: `<provider>/<model_name>`, such as `groq/openai/gpt-oss-120b`. The first slash divides them, as
//! a model's own name may have slashes.
//!
//! What is configured keeps to [`parse`]. What callers ask for and what databases hold may be anything: [`split`] and
//! [`provider`] take it as it is.

use crate::bidi;

/// The longest name of a provider.
pub const MAX_PROVIDER_CHARS: usize = 64;
/// The longest name of a model, in bytes; longer than any in use.
pub const MAX_NAME_BYTES: usize = 256;

/// Provider and model, if both may have these names.
pub fn parse(id: &str) -> Option<(&str, &str)> {
    split(id).filter(|(provider, name)| is_provider_name(provider) && is_model_name(name))
}

/// What stands before the first slash and behind it.
pub fn split(id: &str) -> Option<(&str, &str)> {
    id.split_once('/')
}

/// What stands before the first slash; all of it where there is none.
pub fn provider(id: &str) -> &str {
    split(id).map_or(id, |(provider, _)| provider)
}

/// Whether a caller may ask for it. Blanks are taken for a mistake, although a name that is configured may have some.
pub fn can_be_asked_for(id: &str) -> bool {
    parse(id).is_some() && (is_plain(id) || !id.contains(char::is_whitespace))
}

/// Whether a provider may have this name: it stands in settings, messages and labels.
pub fn is_provider_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= MAX_PROVIDER_CHARS && name.chars().all(plain)
}

/// Whether a model may have this name: providers call theirs as they like, on one line. It is shown beside others, which
/// it must not turn about.
pub fn is_model_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && (is_plain(name) || !name.contains(is_harmful))
}

/// As nearly all are, which is seen at once.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_harmful(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') || bidi::is_control(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_slash_divides_provider_and_model() {
        assert_eq!(parse("groq/openai/gpt-oss-120b"), Some(("groq", "openai/gpt-oss-120b")));
        for wrong in ["gpt", "/gpt", "openai/", "Open AI/gpt", "openai/\u{1b}[2J", "openai/\u{202e}x"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert!(can_be_asked_for("a/größer") && parse("a/b c").is_some() && !can_be_asked_for("a/b c"));
        assert_eq!((provider("groq/openai/x"), provider("gpt"), provider("/gpt")), ("groq", "gpt", ""));
    }
}
