//! Holding a new stream against what the caller has of an old one. Pure.
//!
//! Both are the chunks that go to callers, so there is one form to read, whoever the providers are. What the new one
//! repeats is swallowed; from there on its bytes are the caller's as they are.

use serde_json::{Map, Value, json};

/// Thoughts, which may stand before a text that is the same.
const HIDDEN: [&str; 3] = ["reasoning", "reasoning_content", "reasoning_details"];

/// The new stream does not say what the caller has, or says less, or something else than text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Differs;

/// What the caller has, as far as the new stream has not repeated it.
#[derive(Debug)]
pub(super) struct Prefix<'a> {
    missing: &'a str,
    /// Whether the new stream's role came, which the caller has as well.
    is_begun: bool,
}

impl<'a> Prefix<'a> {
    /// The whole text that the caller has.
    pub(super) fn new(said: &'a str) -> Self {
        Self { missing: said, is_begun: false }
    }

    /// Reads a piece of the new stream, made of whole chunks. `None` while the new stream only repeats; once it has
    /// repeated everything, what is left of the piece for the caller, which may be nothing.
    ///
    /// # Errors
    /// If the new stream cannot be the old one's.
    pub(super) fn swallow(&mut self, piece: &[u8]) -> Result<Option<Vec<u8>>, Differs> {
        let mut rest = piece;
        loop {
            if self.is_begun && self.missing.is_empty() {
                return Ok(Some(rest.to_vec()));
            }
            if rest.is_empty() {
                return Ok(None);
            }
            let end = rest.windows(2).position(|two| two == b"\n\n").map_or(rest.len(), |at| at + 2);
            let (line, behind) = rest.split_at(end);
            if let Some(chunk) = self.read(line)? {
                return Ok(Some([chunk.as_bytes(), behind].concat()));
            }
            rest = behind;
        }
    }

    /// Reads one chunk's line; the line that is left of it, if it says more than the caller has.
    fn read(&mut self, line: &[u8]) -> Result<Option<String>, Differs> {
        let data = line.strip_prefix(b"data: ").ok_or(Differs)?;
        let mut chunk: Value = serde_json::from_slice(data).map_err(|_| Differs)?;
        let choice = match chunk["choices"].as_array_mut().ok_or(Differs)?.as_mut_slice() {
            // About the answer, and not of it.
            [] => return Ok(None),
            [choice] if choice["index"] == 0 && choice["finish_reason"].is_null() => choice,
            _ => return Err(Differs),
        };
        let delta = choice["delta"].as_object_mut().ok_or(Differs)?;
        self.is_begun = true;
        delta.shift_remove("role");
        if self.missing.is_empty() {
            return Ok(says_something(delta).then(|| format!("data: {chunk}\n\n")));
        }
        let text = match delta.shift_remove("content") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text,
            Some(_) => return Err(Differs),
        };
        delta.retain(|name, _| !HIDDEN.contains(&name.as_str()));
        if says_something(delta) {
            return Err(Differs);
        }
        if let Some(missing) = self.missing.strip_prefix(&text) {
            self.missing = missing;
            return Ok(None);
        }
        let more = text.strip_prefix(self.missing).ok_or(Differs)?;
        self.missing = "";
        *choice = json!({"index": 0, "delta": {"content": more}, "finish_reason": null});
        Ok(Some(format!("data: {chunk}\n\n")))
    }
}

fn says_something(delta: &Map<String, Value>) -> bool {
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

    fn line(delta: &Value, finish: &Value) -> String {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!("data: {}\n\n", json!({"id": "c", "choices": [choice]}))
    }

    fn says(text: &str) -> String {
        line(&json!({"content": text}), &Value::Null)
    }

    fn role() -> String {
        line(&json!({"role": "assistant", "content": ""}), &Value::Null)
    }

    fn end() -> String {
        line(&json!({}), &json!("stop")) + "data: [DONE]\n\n"
    }

    /// What goes out for these pieces.
    fn rest(said: &str, pieces: &[String]) -> Result<String, Differs> {
        let mut prefix = Prefix::new(said);
        let mut out: Option<String> = None;
        for piece in pieces {
            match &mut out {
                Some(out) => out.push_str(piece),
                None => out = prefix.swallow(piece.as_bytes())?.map(|rest| String::from_utf8(rest).unwrap()),
            }
        }
        out.ok_or(Differs)
    }

    #[test]
    fn a_chunk_that_says_more_is_split() {
        let all = role() + &says("Hel") + &says("lo wörld") + &says("!") + &end();
        assert_eq!(rest("Hello w", &[all]), Ok(says("örld") + &says("!") + &end()));
    }

    #[test]
    fn what_ends_with_a_chunk_goes_on_with_the_next() {
        assert_eq!(rest("Hello", &[role() + &says("Hello"), says("!")]), Ok(says("!")));
        assert_eq!(rest("Hello", &[role(), says("Hello") + &end()]), Ok(end()));
    }

    #[test]
    fn an_answer_that_had_said_nothing_goes_on_with_anything() {
        assert_eq!(rest("", &[role() + &end()]), Ok(end()));
        let calls = json!({"tool_calls": [{"index": 0}]});
        let mut first = json!({"role": "assistant"});
        first["tool_calls"] = calls["tool_calls"].clone();
        assert_eq!(rest("", &[line(&first, &Value::Null)]), Ok(line(&calls, &Value::Null)));
    }

    #[test]
    fn thoughts_before_the_text_are_left_out() {
        let thought = line(&json!({"content": "", "reasoning_content": "Hm."}), &Value::Null);
        assert_eq!(rest("Hi", &[role(), thought, says("Hi!")]), Ok(says("!")));
    }

    #[test]
    fn anything_else_differs() {
        let call = line(&json!({"content": null, "tool_calls": [{"index": 0}]}), &Value::Null);
        let refusal = line(&json!({"content": "Hi", "refusal": "no"}), &Value::Null);
        let other = says("Hi").replace("\"index\":0", "\"index\":1");
        let two = "data: {\"choices\":[{},{}]}\n\n".to_owned();
        for next in
            [end(), says("Ho"), call, refusal, other, two, "data: {\n\n".to_owned(), says("H") + &end()]
        {
            assert_eq!(rest("Hi", &[role(), next.clone()]), Err(Differs), "{next}");
        }
    }

    /// A text cut at these places between characters.
    fn cut(text: &str, cuts: &[Index]) -> Vec<String> {
        let all: Vec<char> = text.chars().collect();
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(all.len() + 1)).collect();
        places.extend([0, all.len()]);
        places.sort_unstable();
        places.windows(2).map(|ends| all[ends[0]..ends[1]].iter().collect()).collect()
    }

    proptest! {
        #[test]
        fn what_was_said_and_the_rest_are_the_whole(
            text in "[a-c\"\\\\\n é😀]{0,24}",
            said in any::<Index>(),
            cuts in prop::collection::vec(any::<Index>(), 0..6),
            pieces in prop::collection::vec(1_usize..4, 8),
        ) {
            let said: String = text.chars().take(said.index(text.chars().count() + 1)).collect();
            let mut lines = vec![role()];
            lines.extend(cut(&text, &cuts).iter().map(|word| says(word)));
            lines.push(end());
            let mut grouped = Vec::new();
            for count in pieces {
                let some = lines.drain(..count.min(lines.len()));
                grouped.push(some.collect::<String>());
            }
            grouped.push(lines.concat());
            let out = rest(&said, &grouped).unwrap();
            prop_assert!(out.ends_with(&end()));
            prop_assert!(!out.contains("role"));
            let more: String = out
                .split_terminator("\n\n")
                .filter_map(|line| serde_json::from_str::<Value>(&line[6..]).ok())
                .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
                .collect();
            prop_assert_eq!(said + &more, text);
        }

        #[test]
        fn what_does_not_begin_alike_never_goes_on(
            said in "[ab]{1,6}",
            text in "[ab]{0,6}",
            cuts in prop::collection::vec(any::<Index>(), 0..3),
        ) {
            prop_assume!(!text.starts_with(&said));
            let mut lines = vec![role()];
            lines.extend(cut(&text, &cuts).iter().map(|word| says(word)));
            lines.push(end());
            prop_assert_eq!(rest(&said, &lines), Err(Differs));
        }
    }
}
