//! Matches a new stream against what the caller has received of a broken one. Pure.
//!
//! Both consist of the chunks that go to callers, so there is one format to parse, whichever the providers. What the
//! new stream repeats is dropped; everything after that goes to the caller unchanged.

use serde_json::{Map, Value, json};

/// The fields of a delta for reasoning, which may differ before a text that is the same.
const REASONING_FIELDS: [&str; 3] = ["reasoning", "reasoning_content", "reasoning_details"];

/// The new stream says something other than what the caller has, or less, or something that is not text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Diverged;

/// Drops from a new stream what the caller has already.
#[derive(Debug)]
pub(super) struct PrefixMatcher<'a> {
    /// The text that the new stream still has to repeat.
    expected: &'a str,
    /// Whether the new stream has sent its role, which the caller has as well.
    has_begun: bool,
}

impl<'a> PrefixMatcher<'a> {
    /// A matcher for all the text that was `sent` to the caller.
    pub(super) fn new(sent: &'a str) -> Self {
        Self { expected: sent, has_begun: false }
    }

    /// Reads bytes of the new stream, which must be whole chunks. `None` while the new stream only repeats; once it has
    /// repeated everything, what remains for the caller, which may be empty.
    ///
    /// # Errors
    /// If the new stream is no continuation of the old one.
    pub(super) fn consume(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, Diverged> {
        let mut rest = bytes;
        loop {
            if self.has_begun && self.expected.is_empty() {
                return Ok(Some(rest.to_vec()));
            }
            if rest.is_empty() {
                return Ok(None);
            }
            let end = rest.windows(2).position(|two| two == b"\n\n").map_or(rest.len(), |at| at + 2);
            let (line, remainder) = rest.split_at(end);
            if let Some(chunk) = self.read(line)? {
                return Ok(Some([chunk.as_bytes(), remainder].concat()));
            }
            rest = remainder;
        }
    }

    /// Reads the line of one chunk. If it says more than the caller has, returns a line with only that.
    fn read(&mut self, line: &[u8]) -> Result<Option<String>, Diverged> {
        let data = line.strip_prefix(b"data: ").ok_or(Diverged)?;
        let mut chunk: Value = serde_json::from_slice(data).map_err(|_| Diverged)?;
        let choice = match chunk["choices"].as_array_mut().ok_or(Diverged)?.as_mut_slice() {
            // Metadata such as token usage, and no part of the answer.
            [] => return Ok(None),
            [choice] if choice["index"] == 0 && choice["finish_reason"].is_null() => choice,
            _ => return Err(Diverged),
        };
        let delta = choice["delta"].as_object_mut().ok_or(Diverged)?;
        self.has_begun = true;
        delta.shift_remove("role");
        if self.expected.is_empty() {
            return Ok(has_content(delta).then(|| format!("data: {chunk}\n\n")));
        }
        let text = match delta.shift_remove("content") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text,
            Some(_) => return Err(Diverged),
        };
        delta.retain(|name, _| !REASONING_FIELDS.contains(&name.as_str()));
        if has_content(delta) {
            return Err(Diverged);
        }
        if let Some(expected) = self.expected.strip_prefix(&text) {
            self.expected = expected;
            return Ok(None);
        }
        let more = text.strip_prefix(self.expected).ok_or(Diverged)?;
        self.expected = "";
        *choice = json!({"index": 0, "delta": {"content": more}, "finish_reason": null});
        Ok(Some(format!("data: {chunk}\n\n")))
    }
}

fn has_content(delta: &Map<String, Value>) -> bool {
    delta.values().any(|value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    fn chunk_line(delta: &Value, finish: &Value) -> String {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!("data: {}\n\n", json!({"id": "c", "choices": [choice]}))
    }

    fn text_chunk(text: &str) -> String {
        chunk_line(&json!({"content": text}), &Value::Null)
    }

    fn role_chunk() -> String {
        chunk_line(&json!({"role": "assistant", "content": ""}), &Value::Null)
    }

    fn end_chunks() -> String {
        chunk_line(&json!({}), &json!("stop")) + "data: [DONE]\n\n"
    }

    /// What goes out to the caller for these pieces.
    fn rest(sent: &str, pieces: &[String]) -> Result<String, Diverged> {
        let mut matcher = PrefixMatcher::new(sent);
        let mut out: Option<String> = None;
        for piece in pieces {
            match &mut out {
                Some(out) => out.push_str(piece),
                None => out = matcher.consume(piece.as_bytes())?.map(|rest| String::from_utf8(rest).unwrap()),
            }
        }
        out.ok_or(Diverged)
    }

    #[test]
    fn a_chunk_that_says_more_is_split() {
        let all =
            role_chunk() + &text_chunk("Hel") + &text_chunk("lo wörld") + &text_chunk("!") + &end_chunks();
        assert_eq!(rest("Hello w", &[all]), Ok(text_chunk("örld") + &text_chunk("!") + &end_chunks()));
    }

    #[test]
    fn a_text_that_ends_with_a_chunk_continues_with_the_next() {
        assert_eq!(
            rest("Hello", &[role_chunk() + &text_chunk("Hello"), text_chunk("!")]),
            Ok(text_chunk("!"))
        );
        assert_eq!(rest("Hello", &[role_chunk(), text_chunk("Hello") + &end_chunks()]), Ok(end_chunks()));
    }

    #[test]
    fn an_answer_that_had_said_nothing_continues_with_anything() {
        assert_eq!(rest("", &[role_chunk() + &end_chunks()]), Ok(end_chunks()));
        let calls = json!({"tool_calls": [{"index": 0}]});
        let mut first = json!({"role": "assistant"});
        first["tool_calls"] = calls["tool_calls"].clone();
        assert_eq!(rest("", &[chunk_line(&first, &Value::Null)]), Ok(chunk_line(&calls, &Value::Null)));
    }

    #[test]
    fn reasoning_before_the_text_is_left_out() {
        let thought = chunk_line(&json!({"content": "", "reasoning_content": "Hm."}), &Value::Null);
        assert_eq!(rest("Hi", &[role_chunk(), thought, text_chunk("Hi!")]), Ok(text_chunk("!")));
    }

    #[test]
    fn anything_else_diverges() {
        let call = chunk_line(&json!({"content": null, "tool_calls": [{"index": 0}]}), &Value::Null);
        let refusal = chunk_line(&json!({"content": "Hi", "refusal": "no"}), &Value::Null);
        let other = text_chunk("Hi").replace("\"index\":0", "\"index\":1");
        let two = "data: {\"choices\":[{},{}]}\n\n".to_owned();
        for next in [
            end_chunks(),
            text_chunk("Ho"),
            call,
            refusal,
            other,
            two,
            "data: {\n\n".to_owned(),
            text_chunk("H") + &end_chunks(),
        ] {
            assert_eq!(rest("Hi", &[role_chunk(), next.clone()]), Err(Diverged), "{next}");
        }
    }

    /// Splits a text between characters at these positions.
    fn split(text: &str, cuts: &[Index]) -> Vec<String> {
        let all: Vec<char> = text.chars().collect();
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(all.len() + 1)).collect();
        ends.extend([0, all.len()]);
        ends.sort_unstable();
        ends.windows(2).map(|ends| all[ends[0]..ends[1]].iter().collect()).collect()
    }

    proptest! {
        #[test]
        fn what_was_sent_and_the_rest_make_up_the_whole_text(
            text in "[a-c\"\\\\\n é😀]{0,24}",
            sent in any::<Index>(),
            cuts in prop::collection::vec(any::<Index>(), 0..6),
            pieces in prop::collection::vec(1_usize..4, 8),
        ) {
            let sent: String = text.chars().take(sent.index(text.chars().count() + 1)).collect();
            let mut lines = vec![role_chunk()];
            lines.extend(split(&text, &cuts).iter().map(|word| text_chunk(word)));
            lines.push(end_chunks());
            let mut grouped = Vec::new();
            for count in pieces {
                let some = lines.drain(..count.min(lines.len()));
                grouped.push(some.collect::<String>());
            }
            grouped.push(lines.concat());
            let out = rest(&sent, &grouped).unwrap();
            prop_assert!(out.ends_with(&end_chunks()));
            prop_assert!(!out.contains("role"));
            let more: String = out
                .split_terminator("\n\n")
                .filter_map(|line| serde_json::from_str::<Value>(&line[6..]).ok())
                .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
                .collect();
            prop_assert_eq!(sent + &more, text);
        }

        #[test]
        fn a_stream_with_another_beginning_is_never_continued(
            sent in "[ab]{1,6}",
            text in "[ab]{0,6}",
            cuts in prop::collection::vec(any::<Index>(), 0..3),
        ) {
            prop_assume!(!text.starts_with(&sent));
            let mut lines = vec![role_chunk()];
            lines.extend(split(&text, &cuts).iter().map(|word| text_chunk(word)));
            lines.push(end_chunks());
            prop_assert_eq!(rest(&sent, &lines), Err(Diverged));
        }
    }
}
