//! Detects whether an unreadable event of a stream contained a part of the answer.
//!
//! Events that are not in the format are skipped, as providers and gateways insert whatever they like. But a chunk that
//! was damaged in transit leaves a gap in the answer, and an answer with a gap must never look like a complete one. The
//! two cases are told apart by the names of the formats' text fields.

use memchr::memmem;

/// The names of the fields with text of the answer, or of a tool call's arguments, in the three formats.
const NAMES: [&[u8]; 4] = [b"\"content\"", b"\"text\"", b"\"arguments\"", b"\"partial_json\""];

/// Whether invalid JSON contains a text of the answer, or the beginning of one.
pub(super) fn holds_answer_text(data: &[u8]) -> bool {
    NAMES.iter().any(|name| memmem::find_iter(data, name).any(|at| is_text(&data[at + name.len()..])))
}

/// Whether the value after a field's name is a string that is not empty.
fn is_text(after_name: &[u8]) -> bool {
    let value = after_name.trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start);
    let text = value.and_then(|value| value.strip_prefix(b"\""));
    text.is_some_and(|text| text.first() != Some(&b'"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_detected_in_the_remains_of_a_chunk() {
        for data in [
            r#"{"choices":[{"index":0,"delta":{"content":"a"#,
            r#"{"choices":[{"index":0,"delta":{"content" : "a"}}}}"#,
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","x":[{"arguments":"{"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}"#,
            r#"{"choices":[{"delta":{"content":""#,
        ] {
            assert!(holds_answer_text(data.as_bytes()), "{data}");
        }
        for data in [
            "",
            "\u{1}",
            "<html><body>text: \"x\"</body></html>",
            r#"{"choices":[{"index":0,"del"#,
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","#,
            r#"{"choices":[{"index":0,"delta":{"content":null"#,
            r#"{"choices":[{"index":0,"delta":{"content"#,
        ] {
            assert!(!holds_answer_text(data.as_bytes()), "{data}");
        }
    }
}
