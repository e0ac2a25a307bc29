//! The chunks of one streamed answer on their way to a caller: `data: {chat.completion.chunk}` lines.
//!
//! Decoders say what came; this keeps the form, whatever the provider's habits: one `id`, `created` and `model`
//! throughout; for each choice the role first, then content, then an empty delta with the finish reason, then nothing
//! more; at the end the usage, if the caller asked for it, and `[DONE]`. An answer is whole when every choice has its
//! finish reason; nothing else makes it so.

use bytes::Bytes;
use serde_json::{Value, json};

use super::completion::{Completion, Labels, MOST_CHOICES};
use super::{estimate, fields};
use crate::money::Tokens;

/// The most that is set aside for a piece before it is there.
const MOST_RESERVED_BYTES: usize = 4096;
/// The longest identifier that is taken over from a provider.
const MOST_ID_BYTES: usize = 256;
/// The longest text that is kept so that another answer may go on from it.
const MOST_SAID_BYTES: usize = 1024 * 1024;

/// What one piece of a provider's may become for the caller, before it is cut off. Chunks that are put in order repeat
/// what they have in common.
const MOST_WAITING: usize = 8 * 1024 * 1024;

/// The state of one streamed answer.
#[derive(Debug)]
pub struct Chunks {
    /// What the caller is to get and has not got.
    out: Vec<u8>,
    labels: Labels,
    /// `{"id":…,"object":…,"created":…,"model":…`, the same for all chunks; made for the first one.
    head: Vec<u8>,
    include_usage: bool,
    expected: usize,
    choices: Vec<Choice>,
    prompt_tokens: u64,
    /// Characters of the answer so far.
    length: u64,
    /// All text of the answer so far; `None` once there is anything that no other answer can be held against: more
    /// than one choice, calls of tools, thoughts, a refusal, or more text than is kept.
    said: Option<String>,
    usage: Option<Tokens>,
    /// The provider's own words about usage, for the caller.
    usage_text: Option<String>,
}

#[derive(Debug)]
struct Choice {
    index: u32,
    is_finished: bool,
}

/// How far a choice has come, which says what its next chunk may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing of the choice went out yet: its role must be in this chunk.
    First,
    /// The role went out.
    Inside,
    /// The finish reason went out, or there are too many choices: the chunk is left out.
    Behind,
}

impl Chunks {
    /// Nothing yet of the answer to what was `asked`.
    pub fn new(asked: &Completion<'_>, labels: Labels) -> Self {
        Self {
            out: Vec::new(),
            labels,
            head: Vec::new(),
            include_usage: asked.include_usage,
            expected: asked.choices.min(MOST_CHOICES) as usize,
            choices: Vec::new(),
            prompt_tokens: asked.prompt_tokens,
            length: 0,
            said: (asked.choices == 1).then(String::new),
            usage: None,
            usage_text: None,
        }
    }

    /// Sets what all chunks are called; only the first call counts.
    pub fn begin(&mut self, id: Option<&str>, created: Option<i64>) {
        if self.has_begun() {
            return;
        }
        let fits = |id: &&str| !id.is_empty() && id.len() <= MOST_ID_BYTES;
        let id = id.filter(fits).map_or_else(|| crate::id::new("chatcmpl"), str::to_owned);
        let created = created.filter(|created| *created > 0).unwrap_or(self.labels.created);
        let mut head = b"{".to_vec();
        fields::write_string(&mut head, "id", &id);
        fields::write(&mut head, "object", "\"chat.completion.chunk\"");
        fields::write(&mut head, "created", &created.to_string());
        fields::write_string(&mut head, "model", &self.labels.model);
        self.head = head;
    }

    /// Whether it is set what all chunks are called.
    pub const fn has_begun(&self) -> bool {
        !self.head.is_empty()
    }

    /// How far a choice has come.
    pub fn stage(&self, index: u32) -> Stage {
        match self.choices.iter().find(|choice| choice.index == index) {
            Some(choice) if choice.is_finished => Stage::Behind,
            Some(_) => Stage::Inside,
            None if self.choices.len() < MOST_CHOICES as usize => Stage::First,
            None => Stage::Behind,
        }
    }

    /// Counts text of the answer, for estimates.
    pub fn count(&mut self, characters: usize) {
        self.length = self.length.saturating_add(characters as u64);
    }

    /// Keeps text that goes to the caller; what was counted is not counted again.
    pub fn keep(&mut self, index: u32, text: &str) {
        let Some(said) = &mut self.said else { return };
        if index == 0 && said.len() + text.len() <= MOST_SAID_BYTES {
            said.push_str(text);
        } else {
            self.said = None;
        }
    }

    /// Notes that something goes to the caller that is not text.
    pub fn keep_nothing(&mut self) {
        self.said = None;
    }

    /// The text that went to the caller, all of it there is, if another answer may go on from it. Once.
    pub(super) fn take_said(&mut self) -> Option<String> {
        self.said.take()
    }

    /// What every chunk begins with; empty before the first.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Makes these the chunks of an answer that has begun with this head. To be called before the first chunk.
    pub(super) fn go_on(&mut self, head: &[u8]) {
        self.head = head.to_vec();
    }

    /// Notes that a choice's role is in a chunk that is about to be written.
    pub fn open(&mut self, index: u32) {
        if self.stage(index) == Stage::First {
            self.choices.push(Choice { index, is_finished: false });
        }
    }

    /// Writes a chunk with these choices (a JSON array on one line) and further fields of the provider's.
    pub fn write<'f>(&mut self, choices: &str, further: impl Iterator<Item = (&'f str, &'f str)>) {
        self.write_shown(choices, further);
    }

    /// The same; gives the chunk as it stands there, and where in it the choices begin.
    pub(super) fn write_shown<'f>(
        &mut self,
        choices: &str,
        further: impl Iterator<Item = (&'f str, &'f str)>,
    ) -> (&[u8], usize) {
        self.begin(None, None);
        let from = self.out.len();
        self.out.extend_from_slice(b"data: ");
        self.out.extend_from_slice(&self.head);
        fields::write(&mut self.out, "choices", choices);
        let at = self.out.len() - choices.len() - from;
        for (name, value) in further {
            fields::write_foreign(&mut self.out, name, value);
        }
        self.out.extend_from_slice(b"}\n\n");
        (&self.out[from..], at)
    }

    /// Writes a chunk that is put together of these, as another one was.
    pub(super) fn write_parts(&mut self, parts: [&[u8]; 3]) {
        for part in parts {
            self.out.extend_from_slice(part);
        }
    }

    /// Writes a delta of one choice, with its role in front if it is the first.
    pub fn delta(&mut self, index: u32, delta: &Value) {
        match self.stage(index) {
            Stage::Behind => return,
            Stage::First if delta.get("role").is_none() => {
                self.open(index);
                let role = json!({"role": "assistant", "content": ""});
                self.one(&json!({"index": index, "delta": role, "finish_reason": null}));
            }
            Stage::First => self.open(index),
            Stage::Inside => {}
        }
        self.keep_delta(index, delta);
        self.one(&json!({"index": index, "delta": delta, "finish_reason": null}));
    }

    fn keep_delta(&mut self, index: u32, delta: &Value) {
        for (name, value) in delta.as_object().into_iter().flatten() {
            match (name.as_str(), value) {
                ("role", _) => {}
                ("content", Value::String(text)) => self.keep(index, text),
                _ => self.keep_nothing(),
            }
        }
    }

    /// Ends one choice. `choice` is what the provider said of it beside delta and reason.
    pub fn finish(&mut self, index: u32, reason: &str, choice: serde_json::Map<String, Value>) {
        self.finish_beside(index, reason, choice, std::iter::empty());
    }

    /// The same, with further fields of the provider's beside the choice.
    pub fn finish_beside<'f>(
        &mut self,
        index: u32,
        reason: &str,
        mut choice: serde_json::Map<String, Value>,
        further: impl Iterator<Item = (&'f str, &'f str)>,
    ) {
        if self.stage(index) == Stage::First {
            self.delta(index, &json!({"role": "assistant", "content": ""}));
        }
        let Some(open) = self.choices.iter_mut().find(|open| open.index == index && !open.is_finished) else {
            return;
        };
        open.is_finished = true;
        choice.insert("index".to_owned(), json!(index));
        choice.insert("delta".to_owned(), json!({}));
        choice.insert("finish_reason".to_owned(), json!(reason));
        self.write(&format!("[{}]", Value::Object(choice)), further);
    }

    /// Writes a chunk of one choice.
    pub fn one(&mut self, choice: &Value) {
        self.write(&format!("[{choice}]"), std::iter::empty());
    }

    /// Notes what the provider says the answer took so far, and how it says it (an object on one line); the last word
    /// counts.
    pub fn usage(&mut self, usage: Tokens, text: Option<&str>) {
        self.usage = Some(usage);
        self.usage_text = text.filter(|_| self.include_usage).map(str::to_owned);
    }

    /// Whether every choice that was asked for is finished.
    pub fn is_whole(&self) -> bool {
        self.choices.len() >= self.expected && self.may_end()
    }

    /// Whether there is an answer and no choice of it is open.
    pub fn may_end(&self) -> bool {
        !self.choices.is_empty() && self.choices.iter().all(|choice| choice.is_finished)
    }

    /// What the answer took so far, estimated if the provider did not say. Of an answer that is not whole, it may have
    /// said so before most of it came.
    pub fn used(&self) -> Tokens {
        let estimated =
            Tokens { prompt: self.prompt_tokens, completion: estimate::length_tokens(self.length) };
        match self.usage {
            None => estimated,
            Some(told) if self.is_whole() => told,
            Some(told) => Tokens { completion: told.completion.max(estimated.completion), ..told },
        }
    }

    /// What the provider says that the answer took so far.
    pub const fn reported(&self) -> Option<Tokens> {
        self.usage
    }

    /// Writes the end of a whole answer.
    pub fn end(&mut self) {
        if self.include_usage {
            let text = match &mut self.usage_text {
                Some(text) => std::mem::take(text),
                None => usage_json(self.used(), self.usage.is_none()).to_string(),
            };
            self.write("[]", std::iter::once(("usage", text.as_str())));
        }
        self.out.extend_from_slice(b"data: [DONE]\n\n");
    }

    /// The end of an answer that is not whole: `error` (an object with `message`, `type` and `code`) and `[DONE]`.
    pub fn fault(&mut self, error: &Value) -> Bytes {
        self.out.clear();
        let unfinished = |index: &u32| self.stage(*index) != Stage::Behind;
        let open = self.choices.iter().filter(|choice| !choice.is_finished).map(|choice| choice.index).min();
        let index = open.or_else(|| (0..).take(self.expected).find(unfinished)).unwrap_or_default();
        let choices = format!(r#"[{{"index":{index},"delta":{{}},"finish_reason":"error"}}]"#);
        self.write(&choices, std::iter::once(("error", error.to_string().as_str())));
        self.out.extend_from_slice(b"data: [DONE]\n\n");
        self.take()
    }

    /// Whether more waits for the caller than any sensible piece makes.
    pub fn is_flooded(&self) -> bool {
        self.out.len() > MOST_WAITING
    }

    /// Whether there is something for the caller.
    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// What the caller is to get next.
    pub fn take(&mut self) -> Bytes {
        // The next piece will be about as long.
        let next = Vec::with_capacity(self.out.len().min(MOST_RESERVED_BYTES));
        Bytes::from(std::mem::replace(&mut self.out, next))
    }
}

/// The documented usage object.
pub(super) fn usage_json(usage: Tokens, is_estimated: bool) -> Value {
    let mut value = json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.total(),
    });
    if is_estimated {
        value["estimated"] = json!(true);
    }
    value
}
