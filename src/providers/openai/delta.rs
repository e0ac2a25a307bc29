//! What a chunk adds to a choice, looked at no more than needed: its texts are counted for the account, and the answer's
//! own text is kept, as another answer may have to go on from it. Of the other fields, only whether there is something
//! in them.

use serde_json::Value;

use crate::providers::chunks::Chunks;
use crate::providers::estimate;
use crate::providers::json::{Json, Reader};

/// The fields of a delta; those that are null are not there.
#[derive(Debug, Default)]
pub(super) struct Delta<'a> {
    pub(super) role: Option<Json<'a>>,
    pub(super) content: Option<Json<'a>>,
    reasoning: Option<Json<'a>>,
    refusal: Option<Json<'a>>,
    pub(super) tool_calls: Option<Json<'a>>,
    /// Whether another field says something.
    has_more: bool,
}

impl<'a> Delta<'a> {
    /// Reads an object. Of two values of a name the last one holds, as it does for nearly everybody who reads it.
    pub(super) fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let mut delta = Self::default();
        reader.object(|reader, name| {
            let name = name.text()?;
            let value = Some(reader.value()?).filter(|value| !value.is_null());
            match &*name {
                "role" => delta.role = value,
                "content" => delta.content = value,
                // Two names for one thing; some send both.
                "reasoning_content" => delta.reasoning = value.or(delta.reasoning),
                "reasoning" => delta.reasoning = delta.reasoning.or(value),
                "refusal" => delta.refusal = value,
                "tool_calls" => delta.tool_calls = value,
                _ => delta.has_more |= value.is_some_and(|value| !is_empty(value)),
            }
            Some(())
        })?;
        Some(delta)
    }

    /// Its text, if it says nothing else.
    pub(super) fn text_alone(&self) -> Option<Json<'a>> {
        let others = [self.role, self.reasoning, self.refusal, self.tool_calls];
        let is_alone = !self.has_more && others.iter().all(Option::is_none);
        self.content.filter(|content| is_alone && content.is_text())
    }

    /// Notes what goes to the caller of a choice.
    pub(super) fn note(&self, index: u32, chunks: &mut Chunks) {
        for other in [self.reasoning, self.refusal, self.tool_calls].into_iter().flatten() {
            chunks.count(characters(other));
            if !is_empty(other) {
                chunks.keep_nothing();
            }
        }
        if self.has_more {
            chunks.keep_nothing();
        }
        if let Some(content) = self.content {
            note_content(content, index, chunks);
        }
    }
}

/// Notes an answer's own text, or what stands in its place, that goes to the caller of a choice.
pub(super) fn note_content(content: Json<'_>, index: u32, chunks: &mut Chunks) {
    if let Some(text) = content.text() {
        chunks.count(text.chars().count());
        chunks.keep(index, &text);
    } else {
        chunks.count(characters(content));
        chunks.keep_nothing();
    }
}

/// How many characters the model has written of a value; of what cannot be read, all that stands there.
fn characters(value: Json<'_>) -> usize {
    let said = match value.text() {
        Some(text) => return text.chars().count(),
        None => value.read::<Value>().map(|value| estimate::said_characters(&value)),
    };
    said.map_or(value.get().len(), |said| usize::try_from(said).unwrap_or(usize::MAX))
}

/// Whether there is nothing in a value.
fn is_empty(value: Json<'_>) -> bool {
    matches!(value.get(), "null" | "\"\"" | "[]" | "{}" | "false")
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
        Delta::read(&mut Reader::new(delta)).unwrap().note(0, &mut chunks);
        (chunks.take_said(), chunks.used().completion)
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
            (r#"{"tool_calls":[{"index":0,"id":"call_123456","type":"function"}]}"#, 0),
            (r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"ab\""}}]}"#, 2),
            (r#"{"content":[{"type":"text","text":"abcde"}]}"#, 2),
            (r#"{"content":[1]}"#, 0),
            (r#"{"audio":{"data":"x"}}"#, 0),
            (r#"{"content":"\ud83d"}"#, 2),
        ] {
            assert_eq!(noted(delta), (None, tokens), "{delta}");
        }
    }
}
