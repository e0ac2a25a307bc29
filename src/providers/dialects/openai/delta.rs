//! The delta of a choice, parsed no more than needed: texts are counted for accounting, and the text of the answer is
//! kept, as another model may have to continue it. Of the other fields, it only matters whether they are empty.

use serde_json::Value;

use crate::json::reader::{Json, Reader};
use crate::providers::catalog::estimate;
use crate::providers::stream::chunk_writer::ChunkWriter;

/// The fields of a delta; nulls are `None`.
#[derive(Debug, Default)]
pub(super) struct Delta<'a> {
    pub(super) role: Option<Json<'a>>,
    pub(super) content: Option<Json<'a>>,
    reasoning: Option<Json<'a>>,
    refusal: Option<Json<'a>>,
    pub(super) tool_calls: Option<Json<'a>>,
    /// Whether any other field is not empty.
    has_more: bool,
}

impl<'a> Delta<'a> {
    /// Reads an object. The last of duplicate fields wins, as in nearly all parsers.
    pub(super) fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let mut delta = Self::default();
        reader.object(|reader, name| {
            let name = name.decode()?;
            let value = Some(reader.value()?).filter(|value| !value.is_null());
            match &*name {
                "role" => delta.role = value,
                "content" => delta.content = value,
                // Two names for the same thing; some providers send both.
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

    /// Whether its role, if it has one, is the documented one.
    pub(super) fn has_documented_role(&self) -> bool {
        self.role.is_none_or(|role| role.get() == "\"assistant\"")
    }

    /// Its text, if it contains nothing else.
    pub(super) fn text_only(&self) -> Option<Json<'a>> {
        let others = [self.role, self.reasoning, self.refusal, self.tool_calls];
        let is_only = !self.has_more && others.iter().all(Option::is_none);
        self.content.filter(|content| is_only && content.is_string())
    }

    /// Counts what goes to the caller, and keeps its text.
    pub(super) fn record(&self, index: u32, chunks: &mut ChunkWriter) {
        for other in [self.reasoning, self.refusal, self.tool_calls].into_iter().flatten() {
            chunks.count(characters(other));
            if !is_empty(other) {
                chunks.discard_text();
            }
        }
        if [self.refusal, self.tool_calls].into_iter().flatten().any(|other| !is_empty(other)) {
            chunks.note_content();
        }
        if self.has_more {
            chunks.discard_text();
        }
        if let Some(content) = self.content {
            record_content(content, index, chunks);
        }
    }
}

/// Counts the content that goes to the caller, and keeps it if it is text.
pub(super) fn record_content(content: Json<'_>, index: u32, chunks: &mut ChunkWriter) {
    if let Some(text) = content.string() {
        chunks.count(text.chars().count());
        chunks.keep_text(index, &text);
    } else {
        chunks.count(characters(content));
        chunks.note_content();
        chunks.discard_text();
    }
}

/// The number of characters that the model wrote of a value; all of its bytes, if it cannot be parsed.
fn characters(value: Json<'_>) -> usize {
    if let Some(text) = value.string() {
        return text.chars().count();
    }
    let written = value.read::<Value>().map(|value| estimate::written_characters(&value));
    written.map_or(value.get().len(), |written| usize::try_from(written).unwrap_or(usize::MAX))
}

/// Whether a value is empty.
fn is_empty(value: Json<'_>) -> bool {
    matches!(value.get(), "null" | "\"\"" | "[]" | "{}" | "false")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::fields::Fields;
    use crate::providers::{CompletionRequest, ResponseMeta};

    /// The text kept of a delta, and the tokens that it is counted as.
    fn recorded(delta: &str) -> (Option<String>, u64) {
        let request = CompletionRequest {
            fields: Fields::default(),
            stream: true,
            include_usage: false,
            choices: 1,
            prompt_tokens: 0,
            native: None,
        };
        let mut chunks = ChunkWriter::new(&request, ResponseMeta { model: "a/b".into(), created: 7 });
        Delta::read(&mut Reader::new(delta)).unwrap().record(0, &mut chunks);
        (chunks.take_text(), chunks.usage().completion)
    }

    #[test]
    fn texts_are_kept_and_counted() {
        let kept = |text: &str, tokens| (Some(text.to_owned()), tokens);
        assert_eq!(recorded(r#"{"role":"assistant","content":""}"#), kept("", 0));
        assert_eq!(recorded(r#"{"content":"ab\u00e4\ud83d\ude00c"}"#), kept("abä😀c", 2));
        let nothing =
            r#""refusal":null,"tool_calls":[],"reasoning":"","function_call":null,"x":false,"y":{}"#;
        assert_eq!(recorded(&format!(r#"{{"content":"ab",{nothing}}}"#)), kept("ab", 1));
    }

    #[test]
    fn what_is_not_text_is_only_counted() {
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
            assert_eq!(recorded(delta), (None, tokens), "{delta}");
        }
    }
}
