//! One JSON object out of a model's text, or nothing.
//!
//! Models wrap JSON in fences and prose. Taken is the whole text, or what stands in a lone fence, or the only
//! object in the prose; two objects in prose contradict each other, so neither is believed. Nothing is repaired.
//! Length is capped, nesting is limited by `serde_json` (128), and every step is linear in the text.

use serde::de::{DeserializeOwned, IgnoredAny};

/// The longest text that is looked at, in bytes: 30 claims with everything at its cap fit several times.
const MAX_BYTES: usize = 256 * 1024;

/// The object in `text`, if there is exactly one and it has the fields of `T`.
pub(super) fn object<T: DeserializeOwned>(text: &str) -> Option<T> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let whole = text.trim_start_matches('\u{feff}').trim();
    if is_object(whole) {
        return serde_json::from_str(whole).ok();
    }
    if let Some(fenced) = fenced(whole)
        && is_object(fenced)
    {
        return serde_json::from_str(fenced).ok();
    }
    let mut objects = balanced(whole).filter(|span| is_object(span));
    let only = objects.next()?;
    if objects.next().is_some() {
        return None;
    }
    serde_json::from_str(only).ok()
}

fn is_object(text: &str) -> bool {
    text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// What stands between the fences of a text that has one fenced block.
fn fenced(text: &str) -> Option<&str> {
    let mut parts = text.split("```");
    let (_, inside, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    Some(inside.strip_prefix("json").or_else(|| inside.strip_prefix("JSON")).unwrap_or(inside).trim())
}

/// Spans from a `{` to the `}` that closes it, none inside another; braces in JSON strings do not count. Ends at
/// a brace that is never closed.
fn balanced(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let from = &rest[rest.find('{')?..];
        let length = closed_after(from)?;
        let (span, behind) = from.split_at(length);
        rest = behind;
        Some(span)
    })
}

/// How many bytes the object takes that begins with the first byte of `text`.
fn closed_after(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => open += 1,
            b'}' if !in_string => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(at + 1);
        }
    }
    None
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

    fn read(text: &str) -> Option<String> {
        object::<Sample>(text).map(|sample| sample.answer)
    }

    #[test]
    fn takes_the_whole_text_a_lone_fence_or_the_only_object_in_prose() {
        for text in [
            r#"{"answer":"B"}"#,
            " \n{\"answer\":\"B\",\"more\":[1,{}]}\n",
            "Sure {well}:\n```json\n{\"answer\":\"B\"}\n```\nDone.",
            "```\n{\"answer\":\"B\"}\n```",
            r#"The answer is {"answer":"B"}, I think."#,
            r#"The set {1, 2} tells: {"answer":"B"}"#,
        ] {
            assert_eq!(read(text), Some("B".to_owned()), "{text}");
        }
        assert_eq!(read(r#"So {"answer":"a } \" { b"}."#), Some("a } \" { b".to_owned()));
    }

    #[test]
    fn believes_nothing_that_is_unclear() {
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
            "```json\n{\"answer\":\"A\"}\n```\n```json\n{\"answer\":\"B\"}\n```",
            "}{",
            "{{{{",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn survives_depth_and_length() {
        for hostile in
            ["[".repeat(200_000), "{\"a\":".repeat(50_000), "{".repeat(200_000), "{}".repeat(100_000)]
        {
            assert_eq!(read(&hostile), None);
        }
        let deep = format!("{{\"answer\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(read(&deep), None);
        let long = format!("{{\"answer\":\"{}\"}}", "x".repeat(MAX_BYTES));
        assert_eq!(read(&long), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in "[{}\"\\\\`jsonanswer:AB ]{0,60}") {
            let _ = read(&text);
        }

        #[test]
        fn finds_an_object_in_prose_without_braces(before in "[^{}`]{0,40}", answer in any::<String>(), after in "[^{}`]{0,40}") {
            let text = format!("{before}{}{after}", serde_json::json!({"answer": answer}));
            // An answer with three backticks looks like a fence.
            prop_assume!(!answer.contains("```"));
            prop_assert_eq!(read(&text), Some(answer));
        }
    }
}
