//! The texts of an answer: of each choice what the model says to whoever asked, not its thoughts, refusals or calls.

use bytes::Bytes;

use crate::inference::{Json, Reader};

/// The texts of an answer, by the numbers of its choices.
pub(super) struct Texts {
    choices: Vec<(u64, String)>,
    max_chars: usize,
    /// Whether there is more than can be verified, which is not kept.
    is_too_long: bool,
}

impl Texts {
    /// None yet, of at most `max_chars` characters each.
    pub(super) const fn new(max_chars: usize) -> Self {
        Self { choices: Vec::new(), max_chars, is_too_long: false }
    }

    /// Those of a `chat.completion`.
    pub(super) fn of_whole(completion: &Bytes, max_chars: usize) -> Self {
        let mut texts = Self::new(max_chars);
        let text = std::str::from_utf8(completion).unwrap_or_default();
        texts.read_choices(text, "message");
        texts
    }

    /// Adds those of chunks of a stream, `data: {…}` with an empty line after each.
    pub(super) fn read_chunks(&mut self, sse: &[u8]) {
        let text = std::str::from_utf8(sse).unwrap_or_default();
        for chunk in text.split("\n\n").filter_map(|line| line.strip_prefix("data: ")) {
            self.read_choices(chunk, "delta");
        }
    }

    /// What is to be verified; `None` if it is too long for that.
    pub(super) fn into_choices(self) -> Option<Vec<(u64, String)>> {
        let fits = |text: &String| text.len() <= self.max_chars || text.chars().count() <= self.max_chars;
        (!self.is_too_long && self.choices.iter().all(|(_, text)| fits(text))).then_some(self.choices)
    }

    /// Whether there is more than can be verified.
    pub(super) const fn is_too_long(&self) -> bool {
        self.is_too_long
    }

    /// Takes it for too long.
    pub(super) const fn give_up(&mut self) {
        self.is_too_long = true;
    }

    fn read_choices(&mut self, object: &str, name: &'static str) {
        let choices = Reader::new(object).fields(["choices"]).and_then(|[choices]| choices?.items());
        for choice in choices.unwrap_or_default() {
            let Some([index, Some(said)]) = choice.fields(["index", name]) else { continue };
            let Some([Some(content)]) = said.fields(["content"]) else { continue };
            let number = index.and_then(Json::read).unwrap_or_default();
            if let Some(text) = content.string() {
                self.add(number, &text);
                continue;
            }
            for part in content.items().unwrap_or_default() {
                if let Some([Some(text)]) = part.fields(["text"]) {
                    self.add(number, &text.string().unwrap_or_default());
                }
            }
        }
    }

    fn add(&mut self, number: u64, text: &str) {
        let at = self.choices.iter().position(|(known, _)| *known == number).unwrap_or_else(|| {
            self.choices.push((number, String::new()));
            self.choices.len() - 1
        });
        let whole = &mut self.choices[at].1;
        // A character has up to four bytes.
        if self.is_too_long || whole.len().saturating_add(text.len()) > self.max_chars.saturating_mul(4) {
            self.is_too_long = true;
            return;
        }
        whole.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_stream_says_what_its_chunks_say() {
        let mut texts = Texts::new(9);
        texts.read_chunks(
            b"data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
        );
        texts.read_chunks(
            b"data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"b\\n\"}},{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n\
              data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"c\",\"reasoning_content\":\"x\"}}]}\n\n\
              data: {\"choices\":[],\"usage\":{}}\n\ndata: [DONE]\n\n",
        );
        assert_eq!(texts.into_choices().unwrap(), [(0, "a".to_owned()), (1, "b\nc".to_owned())]);
    }

    #[test]
    fn a_whole_answer_may_have_parts_calls_or_nothing() {
        let of = |message: &str| {
            let answer = format!(r#"{{"choices":[{{"index":0,"message":{message}}}]}}"#);
            Texts::of_whole(&answer.into(), 4)
                .into_choices()
                .map(|choices| choices.into_iter().map(|(_, text)| text).collect::<Vec<_>>().concat())
        };
        assert_eq!(of(r#"{"content":"ab"}"#).as_deref(), Some("ab"));
        assert_eq!(
            of(r#"{"content":[{"type":"text","text":"a"},{"text":"b"},{"x":1}]}"#).as_deref(),
            Some("ab")
        );
        assert_eq!(of(r#"{"content":null,"tool_calls":[]}"#).as_deref(), Some(""));
        assert_eq!(of(r#"{"content":"éééé"}"#).as_deref(), Some("éééé"));
        assert_eq!(of(r#"{"content":"ééééé"}"#), None);
        assert_eq!(of(r#"{"content":"abcdefghijklmnopq"}"#), None);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(sse in r#"(data: )?\{("choices":\[\{("(index|delta|message)":(\{"content":("é"|\[\{"text":"\\ud800"\}\]|7)\}|1),?){0,3}\}\])?\}?(\n\n)?"#) {
            let mut texts = Texts::new(3);
            texts.read_chunks(sse.as_bytes());
            let _ = texts.into_choices();
            let _ = Texts::of_whole(&sse.into(), 3).into_choices();
        }
    }
}
