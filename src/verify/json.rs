//! Parses the one JSON object that a model's text is expected to be.
//!
//! The object must be the whole text, or be enclosed in a code fence, as models like to do. Reasoning before it is
//! skipped if the model marks its end, because some servers do not separate it from the answer. An object within prose
//! does not count: "I cannot tell; the form would be {…}" is no vote. Nothing is repaired, as the model can be asked
//! again. The caller caps the object's length, nesting is limited by `serde_json` (128), and every step is linear in the
//! text.

use serde::de::{DeserializeOwned, IgnoredAny};

/// What models write at the end of their reasoning: DeepSeek, Qwen and many others; Mistral.
const REASONING_END: [&str; 3] = ["</think>", "</thinking>", "[/THINK]"];

/// Parses `text` as an object with the fields of `T`, of at most `max_bytes`.
///
/// # Errors
/// What is wrong and where. It quotes nothing of the text as long as no field of `T` restricts its type.
pub(super) fn object<T: DeserializeOwned>(text: &str, max_bytes: usize) -> Result<T, String> {
    let whole = text.trim_start_matches('\u{feff}').trim();
    let answer = skip_reasoning(whole);
    let taken = [Some(whole), unfenced(whole), Some(answer), unfenced(answer)];
    // `serde` would accept an array as the fields in order.
    let object = taken.into_iter().flatten().find(|text| text.starts_with('{'));
    let object = object.ok_or("it does not begin with a brace")?;
    if object.len() > max_bytes {
        return Err("it is too long".to_owned());
    }
    serde_json::from_str(object).map_err(|error| error.to_string())
}

/// The object that a text begins with, perhaps after reasoning or the mark of a fence, if its end is missing.
pub(super) fn cut_off_object(text: &str, max_bytes: usize) -> Option<&str> {
    let answer = skip_reasoning(text.trim_start_matches('\u{feff}'));
    let object = answer.strip_prefix("```").map_or(answer, without_language);
    let is_cut_off = || serde_json::from_str::<IgnoredAny>(object).is_err_and(|error| error.is_eof());
    (object.starts_with('{') && object.len() <= max_bytes && is_cut_off()).then_some(object)
}

/// The answer after the reasoning, if its end is marked: after the last mark, as reasoning may quote one. As an answer
/// may quote one too, marks that are followed by an object or a fence take precedence.
pub(super) fn skip_reasoning(text: &str) -> &str {
    let text = text.trim();
    let after = |(at, mark): (usize, &str)| text[at + mark.len()..].trim_start();
    let rests = REASONING_END.iter().flat_map(|mark| text.match_indices(mark)).map(after);
    let answer = rests.clone().filter(|rest| rest.starts_with(['{', '`'])).min_by_key(|rest| rest.len());
    answer.or_else(|| rests.min_by_key(|rest| rest.len())).unwrap_or(text)
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
            r#"I cannot help with that. The form would be {"answer":"A"}."#,
            r#"Sure: {"answer":"A"}"#,
            "Sure:\n```json\n{\"answer\":\"A\"}\n```",
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

    proptest! {
        #[test]
        fn never_panics(text in "[{}\"\\\\`jsonanswer:AB ]{0,60}") {
            let _ = read(&text);
        }

        #[test]
        fn finds_no_object_in_prose(before in "[^`]{0,40}", answer in any::<String>(), after in "[^`]{0,40}") {
            let object = serde_json::json!({"answer": answer}).to_string();
            prop_assert_eq!(read(&object), Some(answer));
            prop_assume!(!before.trim().is_empty() || !after.trim().is_empty());
            prop_assume!(!before.trim_start().starts_with(['{', '\u{feff}']));
            prop_assert_eq!(read(&format!("{before}{object}{after}")), None);
        }
    }
}
