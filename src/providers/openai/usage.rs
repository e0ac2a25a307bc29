//! A usage object that is passed on: its figures are read where it stands, and it is only built anew where the
//! documented total is missing, or is one that cannot be.

use std::borrow::Cow;

use crate::money::Tokens;
use crate::providers::chunks::usage_json;
use crate::providers::fields::{self, Fields};
use crate::providers::json::{Json, Reader};
use crate::providers::tokens;

/// What a provider says that an answer took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reported<'a> {
    raw: Json<'a>,
    /// The figures that are accounted.
    pub(super) usage: Tokens,
    has_total: bool,
}

/// What is looked at.
const FIGURES: [&str; 3] = ["prompt_tokens", "completion_tokens", "total_tokens"];

impl<'a> Reported<'a> {
    /// As [`Reported::read`], of a value that was found before.
    pub(super) fn of(value: Json<'a>) -> Option<Self> {
        Self::read(&mut Reader::new(value.get()))
    }

    /// Reads a usage object; `None` if it is none, or tells what cannot be: figures without a number, or nothing but
    /// zeros, which some servers (LocalAI) send with every chunk.
    pub(super) fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let begin = reader.at();
        let [prompt, completion, total] = reader.known(FIGURES)?;
        let raw = reader.since(begin)?;
        let believed =
            |figure: Option<Json<'_>>| figure.and_then(|figure| tokens::written_count(figure.get()));
        let told = Tokens { prompt: believed(prompt)?, completion: believed(completion)? };
        let total = believed(total);
        let usage = charged(told, total);
        if usage == Tokens::default() {
            return None;
        }
        Some(Self { raw, usage, has_total: total.is_some() })
    }

    /// The provider's own words, with a total.
    pub(super) fn text(&self) -> Cow<'a, str> {
        if self.has_total {
            return Cow::Borrowed(self.raw.get());
        }
        // Field by field: a total like 1e400 is JSON, and yet no value that could be built. An object whose fields
        // cannot be told apart says no more than its figures.
        let Ok(fields) = Fields::parse(self.raw.get()) else {
            return Cow::Owned(usage_json(self.usage, false).to_string());
        };
        let total = self.usage.total();
        let mut text = b"{".to_vec();
        fields
            .iter()
            .filter(|(name, _)| *name != "total_tokens")
            .for_each(|(name, value)| fields::write_foreign(&mut text, name, value.get()));
        fields::write(&mut text, "total_tokens", itoa::Buffer::new().format(total));
        text.push(b'}');
        Cow::Owned(String::from_utf8(text).unwrap_or_default())
    }
}

/// What is charged of these figures: some count reasoning in the total alone, and it is charged as completion.
fn charged(told: Tokens, total: Option<u64>) -> Tokens {
    let beyond_prompt = total.unwrap_or(0).saturating_sub(told.prompt);
    Tokens { completion: told.completion.max(beyond_prompt), ..told }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(u64, u64, String)> {
        let reported = Reported::read(&mut Reader::new(text))?;
        let Tokens { prompt, completion } = reported.usage;
        Some((prompt, completion, reported.text().into_owned()))
    }

    #[test]
    fn figures_are_read_where_they_can_be_believed() {
        for (text, expected) in [
            (r#"{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"x":{"y":[1]}}"#, Some((3, 4))),
            (r#"{"prompt_tokens":3,"completion_tokens":4}"#, Some((3, 4))),
            (r#"{"prompt_tokens":3,"completion_tokens":4,"total_tokens":"7"}"#, Some((3, 4))),
            // Reasoning that only the total counts.
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
            // In the order of the fields, and yet no object.
            ("[3,4,7]", None),
            ("[3,4,null]", None),
            ("null", None),
        ] {
            assert_eq!(read(text).map(|(prompt, completion, _)| (prompt, completion)), expected, "{text}");
        }
    }

    #[test]
    fn only_a_total_that_is_missing_or_cannot_be_is_added() {
        let whole = r#"{"prompt_tokens":3,  "completion_tokens":4,"total_tokens":9}"#;
        assert_eq!(read(whole).unwrap().2, whole);
        for text in [
            r#"{"prompt_tokens":3,"completion_tokens":4}"#,
            r#"{"prompt_tokens":3,"completion_tokens":4,"total_tokens":null}"#,
            r#"{"prompt_tokens":3,"completion_tokens":4,"total_tokens":18446744073709551615}"#,
            r#"{"prompt_tokens":3,"total_tokens":1e400,"completion_tokens":4}"#,
            // Of two one cannot be told which holds.
            r#"{"prompt_tokens":3,"completion_tokens":4,"x":1,"x":2}"#,
        ] {
            assert_eq!(
                read(text).unwrap().2,
                r#"{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}"#
            );
        }
        // What a provider adds stays as it stands, also what is too large for a number.
        assert_eq!(
            read(r#"{"prompt_tokens":3,"completion_tokens":4,"cost":1e400,"x":[ 1 ]}"#).unwrap().2,
            r#"{"prompt_tokens":3,"completion_tokens":4,"cost":1e400,"x":[ 1 ],"total_tokens":7}"#
        );
    }
}
