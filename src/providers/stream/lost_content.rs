//! Detects whether an unreadable event of a stream contained a part of the answer.
//!
//! Events that are not in the format are skipped, as providers and gateways insert whatever they like. But a chunk that
//! was damaged in transit leaves a gap in the answer, and an answer with a gap must never look like a complete one. The
//! two cases are told apart by the names of the formats' text fields, and by those of tool calls: these hold a name
//! and no text at first, but without it the call is lost.

use memchr::memmem;

/// The names of the fields with text of the answer, or of a tool call's arguments, in the formats. In Responses both
/// stand in `delta`, which is an object elsewhere. Anthropic signs thoughts, and refuses one with a gap later.
const NAMES: [&[u8]; 7] = [
    b"\"content\"",
    b"\"text\"",
    b"\"arguments\"",
    b"\"partial_json\"",
    b"\"delta\"",
    b"\"thinking\"",
    b"\"signature\"",
];

/// What stands for a tool call in the three formats, as a field's name or as a value.
const CALL_NAMES: [&[u8]; 4] =
    [b"\"tool_calls\"", b"\"function_call\"", b"\"tool_use\"", b"\"functionCall\""];

/// Whether invalid JSON contains a text or a tool call of the answer, or the beginning of one.
pub(in crate::providers) fn holds_answer(data: &[u8]) -> bool {
    let any = |names: &[&[u8]], counts: fn(&[u8]) -> bool| {
        names.iter().any(|name| memmem::find_iter(data, name).any(|at| counts(&data[at + name.len()..])))
    };
    any(&NAMES, is_text) || any(&CALL_NAMES, may_be_call)
}

/// Whether the value after a field's name is a string that is not empty.
fn is_text(after_name: &[u8]) -> bool {
    let value = after_name.trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start);
    let text = value.and_then(|value| value.strip_prefix(b"\""));
    text.is_some_and(|text| text.first() != Some(&b'"'))
}

/// Whether what follows a tool call's name may be one. Many servers send the field with every chunk, null or empty.
fn may_be_call(after_name: &[u8]) -> bool {
    let value = after_name.trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start);
    let list = value.and_then(|value| value.strip_prefix(b"[")).map(<[u8]>::trim_ascii_start);
    !value.is_some_and(|value| value.starts_with(b"null")) && !list.is_some_and(|list| list.starts_with(b"]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_call_is_detected_in_the_remains_of_a_chunk() {
        for data in [
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]},"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a""#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f""#,
            r#"{"choices":[{"index":0,"delta":{"content":null,"tool_calls" : [ {"#,
            r#"{"choices":[{"index":0,"delta":{"function_call":{"name":"f""#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls""#,
        ] {
            assert!(holds_answer(data.as_bytes()), "{data}");
        }
        for data in [
            r#"{"choices":[{"index":0,"delta":{"content":"","tool_calls":null,"function_call":null,"#,
            r#"{"choices":[{"index":0,"delta":{"content":"","tool_calls" : [ ],"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"a""#,
        ] {
            assert!(!holds_answer(data.as_bytes()), "{data}");
        }
    }

    #[test]
    fn text_is_detected_in_the_remains_of_a_chunk() {
        for data in [
            r#"{"choices":[{"index":0,"delta":{"content":"a"#,
            r#"{"choices":[{"index":0,"delta":{"content" : "a"}}}}"#,
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","x":[{"arguments":"{"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}"#,
            r#"{"choices":[{"delta":{"content":""#,
            r#"{"type":"response.output_text.delta","output_index":0,"delta":"a"#,
            r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"a"#,
            r#"{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"E"#,
        ] {
            assert!(holds_answer(data.as_bytes()), "{data}");
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
            assert!(!holds_answer(data.as_bytes()), "{data}");
        }
    }
}
