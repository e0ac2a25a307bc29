//! A provider's usage object, which is passed on as it is unless the documented total is missing or implausible.

use std::borrow::Cow;

use crate::json::fields::{self, Fields};
use crate::json::reader::{Json, Reader};
use crate::money::Tokens;
use crate::providers::dialects::token_count;
use crate::providers::stream::chunk_writer::usage_json;

/// The token usage that a provider reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportedUsage<'a> {
    raw: Json<'a>,
    /// The tokens that are charged.
    pub(super) usage: Tokens,
    has_total: bool,
}

/// The fields that are read: the documented ones, and what tells how much of the prompt was cached. `OpenAI` and most
/// others write that into the details; `DeepSeek`, Moonshot and routers to Anthropic's models beside the figures.
const FIGURES: [&str; 8] = [
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "prompt_tokens_details",
    "prompt_cache_hit_tokens",
    "cached_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
];

/// The fields of the details that are read; only `OpenRouter` has the second one.
const DETAILS: [&str; 2] = ["cached_tokens", "cache_write_tokens"];

impl<'a> ReportedUsage<'a> {
    /// As [`ReportedUsage::read`], from a raw value.
    pub(super) fn parse(value: Json<'a>) -> Option<Self> {
        Self::read(&mut Reader::new(value.get()))
    }

    /// Reads a usage object; `None` if it is not one, or has implausible figures: missing numbers, or nothing but
    /// zeros, which some servers (`LocalAI`) send with every chunk.
    pub(super) fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let begin = reader.position();
        let [prompt, completion, total, details, hit, cached, read, created] = reader.fields(FIGURES)?;
        let raw = reader.value_since(begin)?;
        let plausible =
            |figure: Option<Json<'_>>| figure.and_then(|figure| token_count::count_from_text(figure.get()));
        let [of_details, written] = details.and_then(|details| details.fields(DETAILS)).unwrap_or_default();
        let first = |figures: &[Option<Json<'_>>]| figures.iter().find_map(|figure| plausible(*figure));
        let reported = Tokens {
            cached: first(&[of_details, hit, cached, read]).unwrap_or_default(),
            cache_written: first(&[written, created]).unwrap_or_default(),
            ..Tokens::new(plausible(prompt)?, plausible(completion)?)
        };
        let total = plausible(total);
        let usage = charged(reported, total);
        if usage.total() == 0 {
            return None;
        }
        Some(Self { raw, usage, has_total: total.is_some() })
    }

    /// The provider's own object, with a total.
    pub(super) fn to_json(self) -> Cow<'a, str> {
        if self.has_total {
            return Cow::Borrowed(self.raw.get());
        }
        // Field by field, as a total like 1e400 is valid JSON but cannot be represented as a value. If the object has
        // duplicate fields, only the figures are passed on.
        let Ok(fields) = Fields::parse(self.raw.get()) else {
            return Cow::Owned(usage_json(self.usage, false).to_string());
        };
        let total = self.usage.total();
        let mut text = b"{".to_vec();
        fields
            .iter()
            .filter(|(name, _)| *name != "total_tokens")
            .for_each(|(name, value)| fields::write_field_escaped(&mut text, name, value.get()));
        fields::write_field(&mut text, "total_tokens", itoa::Buffer::new().format(total));
        text.push(b'}');
        Cow::Owned(String::from_utf8(text).unwrap_or_default())
    }
}

/// The tokens to charge: some providers include reasoning only in the total, and it is charged as completion.
fn charged(reported: Tokens, total: Option<u64>) -> Tokens {
    let beyond_prompt = total.unwrap_or(0).saturating_sub(reported.prompt);
    Tokens { completion: reported.completion.max(beyond_prompt), ..reported }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(u64, u64, String)> {
        let reported = ReportedUsage::read(&mut Reader::new(text))?;
        let Tokens { prompt, completion, .. } = reported.usage;
        Some((prompt, completion, reported.to_json().into_owned()))
    }

    #[test]
    fn only_plausible_figures_are_read() {
        for (text, expected) in [
            (r#"{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"x":{"y":[1]}}"#, Some((3, 4))),
            (r#"{"prompt_tokens":3,"completion_tokens":4}"#, Some((3, 4))),
            (r#"{"prompt_tokens":3,"completion_tokens":4,"total_tokens":"7"}"#, Some((3, 4))),
            // Reasoning that only the total includes.
            (r#"{"prompt_tokens":3,"completion_tokens":4,"total_tokens":10}"#, Some((3, 7))),
            (r#"{"prompt_tokens":3,"completion_tokens":null}"#, None),
            (r#"{"prompt_tokens":-3,"completion_tokens":4}"#, None),
            (r#"{"prompt_tokens":3.5,"completion_tokens":4}"#, None),
            (r#"{"prompt_tokens":3.0,"completion_tokens":4e0,"total_tokens":7.0}"#, Some((3, 4))),
            (r#"{"prompt_tokens":3,"completion_tokens":99999999999999}"#, None),
            (r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#, None),
            (r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":7}"#, Some((0, 7))),
            ("{}", None),
            ("[]", None),
            // The values in order, but not in an object.
            ("[3,4,7]", None),
            ("[3,4,null]", None),
            ("null", None),
        ] {
            assert_eq!(read(text).map(|(prompt, completion, _)| (prompt, completion)), expected, "{text}");
        }
    }

    #[test]
    fn what_is_cached_is_read_wherever_providers_write_it() {
        let cached = |rest: &str| {
            let text = format!(r#"{{"prompt_tokens":30,"completion_tokens":4,{rest}}}"#);
            let usage = ReportedUsage::read(&mut Reader::new(&text)).unwrap().usage;
            (usage.cached, usage.cache_written)
        };
        for (rest, expected) in [
            (r#""prompt_tokens_details":{"cached_tokens":20,"audio_tokens":0}"#, (20, 0)),
            (r#""prompt_tokens_details":{"cached_tokens":20,"cache_write_tokens":5}"#, (20, 5)),
            (r#""prompt_cache_hit_tokens":20,"prompt_cache_miss_tokens":10"#, (20, 0)),
            (r#""cached_tokens":20"#, (20, 0)),
            (r#""cache_read_input_tokens":20,"cache_creation_input_tokens":5"#, (20, 5)),
            (r#""prompt_tokens_details":null"#, (0, 0)),
            (r#""prompt_tokens_details":[1],"cached_tokens":-1"#, (0, 0)),
        ] {
            assert_eq!(cached(rest), expected, "{rest}");
        }
    }

    #[test]
    fn a_total_is_added_only_if_it_is_missing_or_implausible() {
        let whole = r#"{"prompt_tokens":3,  "completion_tokens":4,"total_tokens":9}"#;
        assert_eq!(read(whole).unwrap().2, whole);
        for text in [
            r#"{"prompt_tokens":3,"completion_tokens":4}"#,
            r#"{"prompt_tokens":3,"completion_tokens":4,"total_tokens":null}"#,
            r#"{"prompt_tokens":3,"completion_tokens":4,"total_tokens":18446744073709551615}"#,
            r#"{"prompt_tokens":3,"total_tokens":1e400,"completion_tokens":4}"#,
            // It is unclear which of two duplicates counts.
            r#"{"prompt_tokens":3,"completion_tokens":4,"x":1,"x":2}"#,
        ] {
            assert_eq!(
                read(text).unwrap().2,
                r#"{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}"#
            );
        }
        // A provider's extra fields stay as they are, even numbers that are too large to represent.
        assert_eq!(
            read(r#"{"prompt_tokens":3,"completion_tokens":4,"cost":1e400,"x":[ 1 ]}"#).unwrap().2,
            r#"{"prompt_tokens":3,"completion_tokens":4,"cost":1e400,"x":[ 1 ],"total_tokens":7}"#
        );
    }
}
