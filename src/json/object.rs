//! Finds the one JSON object that a model's text is expected to be, and parses it.
//!
//! What counts is exactly this, in this order; nothing is guessed, as the model can be asked again:
//!
//! 1. Tokens that mark the end of a text (`<|im_end|>`, `</s>` …) are dropped at its end. Reasoning before the answer
//!    is skipped if the model marks its end (`</think>`, `<|channel|>final<|message|>` …), because some servers do not
//!    separate it. All marks in any case.
//! 2. The object may be the whole text, or be enclosed in a code fence.
//! 3. Otherwise it may stand within prose, if that has no other brace, `{` or `}`: two objects, or one inside a list,
//!    are ambiguous. So is one inside reasoning that does not end.
//! 4. Line breaks, tabs and other control characters inside its strings are read as if they were escaped.
//!
//! An object whose end is missing, or that names a field twice, is malformed. The caller caps the object's length,
//! nesting is limited by `serde_json` (128), and every step is linear in the text.

use std::borrow::Cow;
use std::fmt::Write as _;

use memchr::memchr2_iter;
use serde::de::{DeserializeOwned, IgnoredAny};

/// What models write at the end of their reasoning, in lowercase: DeepSeek, Qwen and many others; Gemma; Mistral; Kimi;
/// the Harmony format.
const REASONING_END: [&str; 6] =
    ["</think>", "</thinking>", "</thought>", "[/think]", "◁/think▷", "<|channel|>final<|message|>"];

/// How that reasoning begins.
const REASONING_START: [&str; 6] =
    ["<think>", "<thinking>", "<thought>", "[think]", "◁think▷", "<|channel|>analysis"];

/// Tokens at the end of a text that some servers leave in it, in lowercase.
const END_TOKENS: [&str; 9] = [
    "<|im_end|>",
    "</s>",
    "<|eot_id|>",
    "<|end|>",
    "<|return|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<eos>",
];

/// Parses the object in `text` with the fields of `T`, of at most `max_bytes`.
///
/// # Errors
/// What is wrong and where. It quotes nothing of the text as long as no field of `T` restricts its type.
pub(crate) fn object<T: DeserializeOwned>(text: &str, max_bytes: usize) -> Result<T, String> {
    in_prose(text, max_bytes).map(|found| found.value)
}

/// An object, and the prose around it.
pub(crate) struct Found<T> {
    pub(crate) value: T,
    pub(crate) before: String,
    pub(crate) after: String,
}

/// Like [`object`], with the prose around the object.
pub(crate) fn in_prose<T: DeserializeOwned>(text: &str, max_bytes: usize) -> Result<Found<T>, String> {
    let whole = without_ends(text);
    let answer = skip_reasoning(whole);
    let taken = [Some(whole), unfenced(whole), Some(answer), unfenced(answer)];
    // `serde` would accept an array as the fields in order.
    let problem = match taken.into_iter().flatten().find(|text| text.starts_with('{')) {
        Some(object) if object.len() > max_bytes => return Err("it is too long".to_owned()),
        Some(object) => match serde_json::from_str(&with_escaped_controls(object)) {
            Ok(value) => return Ok(Found { value, before: String::new(), after: String::new() }),
            Err(error) if error.is_syntax() => error.to_string(),
            Err(error) => return Err(error.to_string()),
        },
        None => "it has no object".to_owned(),
    };
    let at = match answer.find('{') {
        Some(at) if !answer.starts_with('[') && !is_unfinished_reasoning(whole) => at,
        _ => return Err(problem),
    };
    let (before, rest) = answer.split_at(at);
    if rest.len() > max_bytes {
        return Err("it is too long".to_owned());
    }
    let rest = with_escaped_controls(rest);
    let mut objects = serde_json::Deserializer::from_str(&rest).into_iter::<T>();
    let value = objects.next().ok_or(problem)?.map_err(|error| error.to_string())?;
    let after = rest.get(objects.byte_offset()..).unwrap_or_default();
    if before.contains('}') || after.contains(['{', '}']) {
        return Err("more than one object".to_owned());
    }
    Ok(Found { value, before: before.to_owned(), after: after.to_owned() })
}

/// Whether a text is nothing but an object, perhaps after reasoning or in a fence.
pub(crate) fn is_object(text: &str) -> bool {
    let answer = skip_reasoning(without_ends(text));
    let object = unfenced(answer).unwrap_or(answer);
    object.starts_with('{') && serde_json::from_str::<IgnoredAny>(&with_escaped_controls(object)).is_ok()
}

/// A text without any brace, after its reasoning and out of its fence. `None` if it has a brace or only reasoning.
pub(crate) fn without_object(text: &str) -> Option<&str> {
    let whole = without_ends(text);
    let answer = skip_reasoning(whole);
    let answer = unfenced(answer).unwrap_or(answer);
    (!answer.contains(['{', '}']) && !is_unfinished_reasoning(whole)).then_some(answer)
}

/// The object that a text begins with, perhaps after reasoning or the mark of a fence, if its end is missing.
pub(crate) fn cut_off_object(text: &str, max_bytes: usize) -> Option<Cow<'_, str>> {
    let answer = skip_reasoning(without_ends(text));
    let object = with_escaped_controls(answer.strip_prefix("```").map_or(answer, without_language));
    let is_cut_off = || serde_json::from_str::<IgnoredAny>(&object).is_err_and(|error| error.is_eof());
    (object.starts_with('{') && object.len() <= max_bytes && is_cut_off()).then_some(object)
}

/// The answer after the reasoning, if its end is marked: after the last mark, as reasoning may quote one. As an answer
/// may quote one too, marks that are followed by an object or a fence take precedence.
pub(crate) fn skip_reasoning(text: &str) -> &str {
    let text = text.trim();
    if !may_end_reasoning(text) {
        return text;
    }
    // Of the same length, byte by byte.
    let lower = text.to_ascii_lowercase();
    let after = |(at, mark): (usize, &str)| text[at + mark.len()..].trim_start();
    let rests = REASONING_END.iter().flat_map(|mark| lower.match_indices(mark)).map(after);
    let answer = rests.clone().filter(|rest| rest.starts_with(['{', '`'])).min_by_key(|rest| rest.len());
    answer.or_else(|| rests.min_by_key(|rest| rest.len())).unwrap_or(text)
}

/// Whether a text has what each mark of [`REASONING_END`] has: `/t` in either case, or `<|`. Most answers have neither.
fn may_end_reasoning(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr2_iter(b'/', b'|', bytes).any(|at| {
        let (before, after) = (at.checked_sub(1).map(|before| bytes[before]), bytes.get(at + 1));
        if bytes[at] == b'|' { before == Some(b'<') } else { matches!(after, Some(b't' | b'T')) }
    })
}

/// Whether a text has reasoning that begins and does not end.
fn is_unfinished_reasoning(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let has = |marks: &[&str]| marks.iter().any(|mark| lower.contains(mark));
    has(&REASONING_START) && !has(&REASONING_END)
}

/// The text without white space and byte order mark around it, nor tokens that mark its end.
fn without_ends(text: &str) -> &str {
    let mut text = text.trim_start_matches('\u{feff}').trim();
    let is_end = |end: &[u8]| END_TOKENS.iter().any(|token| end.eq_ignore_ascii_case(token.as_bytes()));
    while let Some(at) = text.rfind('<').filter(|&at| is_end(&text.as_bytes()[at..])) {
        text = text[..at].trim_end();
    }
    text
}

/// The content of the code fence that encloses the whole text.
fn unfenced(text: &str) -> Option<&str> {
    let inside = text.strip_prefix("```")?.strip_suffix("```")?;
    Some(without_language(inside))
}

/// The content of a fence without the name of the language at its beginning.
fn without_language(inside: &str) -> &str {
    inside.strip_prefix("json").or_else(|| inside.strip_prefix("JSON")).unwrap_or(inside).trim()
}

/// The JSON that begins `json`, with control characters inside its strings as escapes.
fn with_escaped_controls(json: &str) -> Cow<'_, str> {
    // Told many bytes at once, as most answers are one line.
    if json.bytes().filter(|byte| *byte < 0x20).count() == 0 {
        return Cow::Borrowed(json);
    }
    let (mut escaped, mut copied) = (String::new(), 0);
    let (mut in_string, mut after_backslash) = (false, false);
    for (at, byte) in json.bytes().enumerate() {
        match byte {
            _ if after_backslash => after_backslash = false,
            b'\\' => after_backslash = in_string,
            b'"' => in_string = !in_string,
            0..0x20 if in_string => {
                escaped.push_str(&json[copied..at]);
                // Writing to a string does not fail.
                let _ = write!(escaped, "\\u{byte:04x}");
                copied = at + 1;
            }
            _ => {}
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    escaped.push_str(&json[copied..]);
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Sample {
        answer: String,
    }

    const MAX_BYTES: usize = 256 * 1024;

    fn read(text: &str) -> Option<String> {
        object::<Sample>(text, MAX_BYTES).ok().map(|sample| sample.answer)
    }

    #[test]
    fn accepts_the_whole_text_with_or_without_a_fence_around_it() {
        for text in [
            r#"{"answer":"B"}"#,
            " \n{\"answer\":\"B\",\"more\":[1,{}]}\n",
            "\u{feff}```\n{\"answer\":\"B\"}\n```\n",
            "```json\n{\"answer\":\"B\"}\n```",
            "<think>\nIs it {\"answer\":\"A\"}?\n</think>\n\n{\"answer\":\"B\"}",
            "Hm, </think> or not.</think>```json\n{\"answer\":\"B\"}\n```",
            "[THINK]No.[/THINK]{\"answer\":\"B\"}",
            "It says </think>{\"answer\":\"A\"} to me.</think>{\"answer\":\"B\"}",
            "<think>\nB.\n</think>\n\n{\"answer\":\"B\",\"reason\":\"It ends with </think>.\"}",
            "```\n{\"answer\":\"B\",\"reason\":\"</think>\"}\n```",
            "Sure: {\"answer\":\"B\"}",
            "Sure:\n```json\n{\"answer\":\"B\"}\n```\nGlad to help.",
            "<think>\nOr {\"answer\":\"A\"}?\n</think>\nMy answer: {\"answer\":\"B\"}",
            "{\"answer\":\"B\"}<|im_end|>",
            "{\"answer\":\"B\"}</s> <|EOT_ID|>\n",
            "```json\n{\"answer\":\"B\"}\n```<|im_end|>",
            "hm</THINK>{\"answer\":\"B\"}",
            "<thought>hm</thought>{\"answer\":\"B\"}",
            "◁think▷hm◁/think▷{\"answer\":\"B\"}",
            "<|channel|>analysis<|message|>{\"answer\":\"A\"}?<|end|><|start|>assistant<|channel|>final<|message|>{\"answer\":\"B\"}<|return|>",
            "{\"reason\":\"one\ntwo\tthree \\\" \n\",\n\"answer\":\"B\"}",
        ] {
            assert_eq!(read(text), Some("B".to_owned()), "{text}");
        }
        let odd = "a } \" ``` { </think> b";
        assert_eq!(read(&serde_json::json!({"answer": odd}).to_string()), Some(odd.to_owned()));
    }

    #[test]
    fn rejects_anything_ambiguous() {
        for text in [
            "",
            "B",
            "[]",
            r#"["answer"]"#,
            r#"{"answer":"B""#,
            r#"{"answer":1}"#,
            r#"{"other":"B"}"#,
            r#"{"answer":"A","answer":"B"}"#,
            r#"First {"answer":"A"}, then {"answer":"B"}"#,
            r#"The set {1} has one: {"answer":"A"}"#,
            r#"{"answer":"A"} {"#,
            r#"}{"answer":"A"}"#,
            r#"Sure: [{"answer":"A"}, {"answer":"B"}]"#,
            r#"Sure: {"answer":"A""#,
            r#"<THOUGHT>Perhaps {"answer":"A"}"#,
            r#"<|channel|>analysis<|message|>{"answer":"A"} it is"#,
            "```",
            "``````",
            r#"{"answer":"A"}</think>"#,
            r#"<think>{"answer":"A"}"#,
            r#"[{"answer":"A"}]"#,
            "```json\n{\"answer\":\"A\"}\n```\n```json\n{\"answer\":\"B\"}\n```",
            "}{",
            "{{{{",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn survives_excessive_nesting_and_length() {
        for hostile in
            ["[".repeat(200_000), "{\"a\":".repeat(50_000), "{".repeat(200_000), "{}".repeat(100_000)]
        {
            assert_eq!(read(&hostile), None);
        }
        let deep = format!("{{\"answer\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(read(&deep), None);
        let long = format!("{{\"answer\":\"{}\"}}", "x".repeat(MAX_BYTES));
        assert_eq!(read(&long), None);
        assert_eq!(read(&format!("<think>{long}</think>{{\"answer\":\"B\"}}")), Some("B".to_owned()));
    }

    #[test]
    fn every_mark_of_the_end_of_reasoning_is_looked_for() {
        for mark in REASONING_END {
            for mark in [mark.to_owned(), mark.to_uppercase()] {
                assert_eq!(skip_reasoning(&format!("hm {mark} B")), "B", "{mark}");
            }
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "[{}\"\\\\`jsonanswer:AB ]{0,60}") {
            let _ = read(&text);
        }

        #[test]
        fn finds_the_only_object_in_prose_and_none_among_braces(
            before in "[^`{}<\\[\\]◁\u{feff}]{0,40}", answer in "[^<\\[◁]*", after in "[^`{}<]{0,40}", brace in "[{}]",
        ) {
            let object = serde_json::json!({"answer": answer}).to_string();
            prop_assert_eq!(read(&object), Some(answer.clone()));
            prop_assert_eq!(read(&format!("{before}{object}{after}")), Some(answer));
            prop_assert_eq!(read(&format!("{before}{object}{after}{brace}")), None);
            prop_assert_eq!(read(&format!("{brace}{before}{object}{after}")), None);
        }
    }
}
