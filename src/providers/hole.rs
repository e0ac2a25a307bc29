//! Whether an event of a stream that cannot be read held a part of the answer.
//!
//! What is no event of the format is left out, as providers, and what stands before them, put in what they like. But a
//! chunk that was damaged on its way is a hole in the answer, and an answer with a hole must never look like a finished
//! one. Which of the two it is, is seen by what formats call their texts.

use memchr::memmem;

/// What the three formats call a text of the answer, or of a call's arguments.
const NAMES: [&[u8]; 4] = [b"\"content\"", b"\"text\"", b"\"arguments\"", b"\"partial_json\""];

/// Whether a text, or the beginning of one, can be seen in what is no JSON.
pub(super) fn holds_text(data: &[u8]) -> bool {
    NAMES.iter().any(|name| memmem::find_iter(data, name).any(|at| is_text(&data[at + name.len()..])))
}

/// Whether a value that begins here is a text that is not empty.
fn is_text(behind: &[u8]) -> bool {
    let value = behind.trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start);
    let text = value.and_then(|value| value.strip_prefix(b"\""));
    text.is_some_and(|text| text.first() != Some(&b'"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_seen_in_what_is_left_of_a_chunk() {
        for data in [
            r#"{"choices":[{"index":0,"delta":{"content":"a"#,
            r#"{"choices":[{"index":0,"delta":{"content" : "a"}}}}"#,
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","x":[{"arguments":"{"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}"#,
            r#"{"choices":[{"delta":{"content":""#,
        ] {
            assert!(holds_text(data.as_bytes()), "{data}");
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
            assert!(!holds_text(data.as_bytes()), "{data}");
        }
    }
}
