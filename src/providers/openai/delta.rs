//! What a chunk adds to a choice, looked at no more than needed: its texts are counted for the account, and the answer's
//! own text is kept, as another answer may have to go on from it. Of the other fields, only whether there is something
//! in them.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::providers::chunks::Chunks;

/// The fields of a delta; those that are null are not there.
#[derive(Debug, Default)]
pub(super) struct Delta<'a> {
    pub(super) role: Option<&'a RawValue>,
    pub(super) content: Option<&'a RawValue>,
    reasoning: Option<&'a RawValue>,
    refusal: Option<&'a RawValue>,
    pub(super) tool_calls: Option<&'a RawValue>,
    /// Whether another field says something.
    has_more: bool,
}

impl<'a> Delta<'a> {
    /// Its text, if it says nothing else.
    pub(super) fn text_alone(&self) -> Option<&'a RawValue> {
        let others = [self.role, self.reasoning, self.refusal, self.tool_calls];
        let is_alone = !self.has_more && others.iter().all(Option::is_none);
        self.content.filter(|content| is_alone && content.get().starts_with('"'))
    }

    /// Notes what goes to the caller of a choice.
    pub(super) fn note(&self, index: u32, chunks: &mut Chunks) {
        for other in [self.reasoning, self.refusal, self.tool_calls].into_iter().flatten() {
            chunks.count(text(other.get()).map_or(other.get().len(), |text| text.chars().count()));
            if says_something(other) {
                chunks.keep_nothing();
            }
        }
        if self.has_more {
            chunks.keep_nothing();
        }
        if let Some(content) = self.content {
            note_content(content.get(), index, chunks);
        }
    }
}

/// Notes an answer's own text, or what stands in its place, that goes to the caller of a choice.
pub(super) fn note_content(content: &str, index: u32, chunks: &mut Chunks) {
    if let Some(text) = text(content) {
        chunks.count(text.chars().count());
        chunks.keep(index, &text);
    } else {
        chunks.count(content.len());
        chunks.keep_nothing();
    }
}

/// What a value says that is a text, copied only if it holds escapes; `None` for other values.
fn text(value: &str) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str(value).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

fn says_something(value: &RawValue) -> bool {
    !matches!(value.get(), "null" | "\"\"" | "[]" | "{}" | "false")
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    Role,
    Content,
    ReasoningContent,
    Reasoning,
    Refusal,
    ToolCalls,
    #[serde(other)]
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for Delta<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Delta<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut delta = Delta::default();
        while let Some(field) = map.next_key()? {
            let value: Option<&'de RawValue> = map.next_value()?;
            match field {
                Field::Role => delta.role = value,
                Field::Content => delta.content = value,
                // Two names for one thing; some send both.
                Field::ReasoningContent => delta.reasoning = value.or(delta.reasoning),
                Field::Reasoning => delta.reasoning = delta.reasoning.or(value),
                Field::Refusal => delta.refusal = value,
                Field::ToolCalls => delta.tool_calls = value,
                Field::Other => delta.has_more |= value.is_some_and(says_something),
            }
        }
        Ok(delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::{Completion, Fields, Labels};

    /// What is kept of a delta, and the tokens that it is counted as.
    fn noted(delta: &str) -> (Option<String>, u64) {
        let asked = Completion {
            fields: Fields::default(),
            stream: true,
            include_usage: false,
            choices: 1,
            prompt_tokens: 0,
        };
        let mut chunks = Chunks::new(&asked, Labels { model: "a/b".into(), created: 7 });
        serde_json::from_str::<Delta<'_>>(delta).unwrap().note(0, &mut chunks);
        (chunks.take_said(), chunks.used().completion_tokens)
    }

    #[test]
    fn texts_are_kept_and_counted() {
        let kept = |text: &str, tokens| (Some(text.to_owned()), tokens);
        assert_eq!(noted(r#"{"role":"assistant","content":""}"#), kept("", 0));
        assert_eq!(noted(r#"{"content":"ab\u00e4\ud83d\ude00c"}"#), kept("abä😀c", 2));
        let nothing =
            r#""refusal":null,"tool_calls":[],"reasoning":"","function_call":null,"x":false,"y":{}"#;
        assert_eq!(noted(&format!(r#"{{"content":"ab",{nothing}}}"#)), kept("ab", 1));
    }

    #[test]
    fn what_is_not_text_is_counted_only() {
        for (delta, tokens) in [
            (r#"{"content":"ab","reasoning":"cdef","reasoning_content":"cdef"}"#, 2),
            (r#"{"refusal":"no"}"#, 1),
            (r#"{"tool_calls":[{"index":0}]}"#, 4),
            (r#"{"content":[1]}"#, 1),
            (r#"{"audio":{"data":"x"}}"#, 0),
            (r#"{"content":"\ud83d"}"#, 2),
        ] {
            assert_eq!(noted(delta), (None, tokens), "{delta}");
        }
    }
}
