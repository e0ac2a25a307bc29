//! Writes the chunks of one streamed answer for the caller: `data: {chat.completion.chunk}` lines.
//!
//! Decoders supply the content; the writer guarantees the form, whatever the provider's habits: the same `id`,
//! `created` and `model` throughout; for each choice the role first, then content, then an empty delta with the finish
//! reason, then nothing more; at the end the usage, if the caller asked for it, and `[DONE]`. An answer is complete if
//! and only if every choice has its finish reason.
//!
//! Finish reasons are held back until the end of the stream, as some providers send one with every piece of the answer:
//! what follows one must not be lost, and only once nothing follows is it known to be the last.

mod usage;

use bytes::Bytes;
use memchr::memchr;
use serde_json::{Value, json};

use usage::Report;
pub(in crate::providers) use usage::usage_json;

use crate::json::fields;
use crate::money::Tokens;
use crate::providers::completion::{CompletionRequest, MAX_CHOICES, ResponseMeta};
use crate::providers::sse::Event;

/// The maximum capacity reserved for the next piece in advance.
const MAX_RESERVED_BYTES: usize = 4096;
/// The maximum length of an identifier adopted from a provider.
const MAX_ID_BYTES: usize = 256;
/// The maximum length of the text that is kept so that another model may continue it.
const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// The maximum size of what may be pending for the caller before the stream fails: what one piece from the provider
/// becomes, as chunks that are taken apart repeat what they have in common, and the reasons that are held back.
const MAX_PENDING_BYTES: usize = 8 * 1024 * 1024;

/// More extra fields than any provider adds to chunks without choices.
const MAX_HELD_FIELDS: usize = 256;

/// The state of one streamed answer.
#[derive(Debug, Default)]
pub struct ChunkWriter {
    /// Written but not yet taken for the caller.
    out: Vec<u8>,
    meta: ResponseMeta,
    /// `{"id":…,"object":…,"created":…,"model":…`, the same for all chunks; set with the first one.
    head: Vec<u8>,
    include_usage: bool,
    /// Whether events are passed on as they come, instead of chunks.
    is_native: bool,
    expected: usize,
    choices: Vec<Choice>,
    /// The size of the chunks with finish reasons that are held back.
    held_bytes: usize,
    prompt_tokens: u64,
    /// The number of characters of the answer so far, reasoning included.
    length: u64,
    /// Whether there has been anything of the answer but reasoning.
    has_content: bool,
    /// The text of the answer so far; `None` once there is anything that another model could not continue: more than
    /// one choice, tool calls, reasoning, a refusal, or too much text.
    text: Option<String>,
    usage: Option<Tokens>,
    /// What `usage` is.
    reported: Report,
    /// The provider's own usage object, for the caller.
    usage_text: Option<String>,
    /// The fields that a provider added to chunks without choices, as names and JSON: for the last chunk.
    held_extra: Vec<(String, String)>,
}

#[derive(Debug)]
struct Choice {
    index: u32,
    /// `None` until there is a finish reason.
    finish: Option<Finish>,
}

/// The last chunk of a choice, held back until the end.
#[derive(Debug)]
struct Finish {
    reason: String,
    chunk: Vec<u8>,
}

/// The finish reason that any other one is more telling than.
const ORDINARY: &str = "stop";
/// Finish reasons that no provider sends before the end.
const FINAL: [&str; 2] = ["length", "content_filter"];

/// The progress of a choice, which decides what its next chunk may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChoiceStage {
    /// Nothing has been written: the next chunk must contain the role.
    NotStarted,
    /// The role has been written.
    Open,
    /// There is a finish reason. If there is more content, the provider sends reasons before the end.
    Finished,
    /// There are too many choices: its chunks are dropped.
    Excess,
}

impl ChunkWriter {
    /// A writer for the answer to `request`.
    pub fn new(request: &CompletionRequest<'_>, meta: ResponseMeta) -> Self {
        Self {
            out: Vec::new(),
            meta,
            head: Vec::new(),
            include_usage: request.include_usage,
            is_native: false,
            expected: request.choices.min(MAX_CHOICES) as usize,
            choices: Vec::new(),
            held_bytes: 0,
            prompt_tokens: request.prompt_tokens,
            length: 0,
            has_content: false,
            text: (request.choices == 1).then(String::new),
            usage: None,
            reported: Report::SoFar,
            usage_text: None,
            held_extra: Vec::new(),
        }
    }

    /// A writer for an answer whose events are passed on as they come, in a protocol of their own. No other model can
    /// continue it.
    pub(in crate::providers) fn native(request: &CompletionRequest<'_>, meta: ResponseMeta) -> Self {
        Self { is_native: true, include_usage: false, text: None, ..Self::new(request, meta) }
    }

    /// Whether events are passed on as they come.
    pub(in crate::providers) const fn is_native(&self) -> bool {
        self.is_native
    }

    /// Passes on an event.
    pub(in crate::providers) fn pass_on(&mut self, event: &Event<'_>) {
        self.begin(None, None);
        if !event.name.is_empty() {
            self.write_parts([b"event: ", event.name, b"\n"]);
        }
        let mut rest = event.data;
        while let Some(end) = memchr(b'\n', rest) {
            self.write_parts([b"data: ", &rest[..end], b"\n"]);
            rest = &rest[end + 1..];
        }
        self.write_parts([b"data: ", rest, b"\n\n"]);
    }

    /// Notes the end of an answer that is passed on.
    pub(in crate::providers) fn finish_native(&mut self, reason: &str) {
        let finish = Finish { reason: reason.to_owned(), chunk: Vec::new() };
        self.choices = vec![Choice { index: 0, finish: Some(finish) }];
    }

    /// Sets the `id` and `created` of all chunks; only the first call has an effect.
    pub fn begin(&mut self, id: Option<&str>, created: Option<i64>) {
        if self.has_begun() {
            return;
        }
        let fits = |id: &&str| !id.is_empty() && id.len() <= MAX_ID_BYTES;
        let id = id.filter(fits).map_or_else(|| crate::id::new("chatcmpl"), str::to_owned);
        let created = self.meta.created(created);
        let mut head = b"{".to_vec();
        fields::write_string_field(&mut head, "id", &id);
        fields::write_field(&mut head, "object", "\"chat.completion.chunk\"");
        fields::write_field(&mut head, "created", &created.to_string());
        fields::write_string_field(&mut head, "model", &self.meta.model);
        self.head = head;
    }

    /// Whether the fields that all chunks share are set.
    pub const fn has_begun(&self) -> bool {
        !self.head.is_empty()
    }

    /// The progress of a choice.
    pub fn stage(&self, index: u32) -> ChoiceStage {
        match self.choices.iter().find(|choice| choice.index == index) {
            Some(choice) if choice.finish.is_some() => ChoiceStage::Finished,
            Some(_) => ChoiceStage::Open,
            None if self.choices.len() < MAX_CHOICES as usize => ChoiceStage::NotStarted,
            None => ChoiceStage::Excess,
        }
    }

    /// The number of characters of the answer so far, reasoning included.
    pub(in crate::providers) const fn characters(&self) -> u64 {
        self.length
    }

    /// Counts characters of the answer, for estimates.
    pub fn count(&mut self, characters: usize) {
        self.length = self.length.saturating_add(characters as u64);
    }

    /// Whether there has been anything of the answer but reasoning.
    pub(in crate::providers) const fn has_content(&self) -> bool {
        self.has_content
    }

    /// Notes that there is something of the answer.
    pub(in crate::providers) const fn note_content(&mut self) {
        self.has_content = true;
    }

    /// Keeps text that goes to the caller; does not count it.
    pub fn keep_text(&mut self, index: u32, text: &str) {
        self.has_content |= !text.is_empty();
        let Some(kept) = &mut self.text else { return };
        if index == 0 && kept.len() + text.len() <= MAX_TEXT_BYTES {
            kept.push_str(text);
        } else {
            self.text = None;
        }
    }

    /// Notes that something other than text goes to the caller, so that no other model can continue the answer.
    pub fn discard_text(&mut self) {
        self.text = None;
    }

    /// The text that went to the caller, if another model can continue it.
    pub(in crate::providers) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Why the choices that have ended did.
    pub(in crate::providers) fn finish_reasons(&self) -> impl Iterator<Item = &str> {
        self.choices.iter().filter_map(|choice| Some(choice.finish.as_ref()?.reason.as_str()))
    }

    /// Takes the text that went to the caller, if another model can continue it.
    pub(in crate::providers) fn take_text(&mut self) -> Option<String> {
        self.text.take()
    }

    /// The beginning of every chunk; empty before the first one.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Continues an answer whose chunks begin with `head`. To be called before the first chunk.
    pub(in crate::providers) fn continue_from(&mut self, head: &[u8]) {
        self.head = head.to_vec();
    }

    /// Notes that a chunk with the choice's role is about to be written.
    pub fn open(&mut self, index: u32) {
        if self.stage(index) == ChoiceStage::NotStarted {
            self.choices.push(Choice { index, finish: None });
        }
    }

    /// Writes a chunk with these choices (a JSON array on one line) and the provider's extra fields.
    pub fn write<'f>(&mut self, choices: &str, extra: impl Iterator<Item = (&'f str, &'f str)>) {
        self.write_returning(choices, extra);
    }

    /// As [`ChunkWriter::write`]; returns the chunk as written, and the offset of the choices in it.
    pub(in crate::providers) fn write_returning<'f>(
        &mut self,
        choices: &str,
        extra: impl Iterator<Item = (&'f str, &'f str)>,
    ) -> (&[u8], usize) {
        self.begin(None, None);
        let from = self.out.len();
        self.out.extend_from_slice(b"data: ");
        self.out.extend_from_slice(&self.head);
        fields::write_field(&mut self.out, "choices", choices);
        let at = self.out.len() - choices.len() - from;
        for (name, value) in extra {
            fields::write_field_escaped(&mut self.out, name, value);
        }
        self.out.extend_from_slice(b"}\n\n");
        (&self.out[from..], at)
    }

    /// Writes a chunk that is the concatenation of `parts`.
    pub(in crate::providers) fn write_parts(&mut self, parts: [&[u8]; 3]) {
        for part in parts {
            self.out.extend_from_slice(part);
        }
    }

    /// Writes a delta of one choice, preceded by a chunk with the role if it is the first.
    pub fn delta(&mut self, index: u32, delta: &Value) {
        match self.stage(index) {
            ChoiceStage::Excess => return,
            ChoiceStage::NotStarted if delta.get("role").is_none() => {
                self.open(index);
                let role = json!({"role": "assistant", "content": ""});
                self.write_choice(&json!({"index": index, "delta": role, "finish_reason": null}));
            }
            ChoiceStage::NotStarted => self.open(index),
            ChoiceStage::Open | ChoiceStage::Finished => {}
        }
        self.keep_delta_text(index, delta);
        self.write_choice(&json!({"index": index, "delta": delta, "finish_reason": null}));
    }

    fn keep_delta_text(&mut self, index: u32, delta: &Value) {
        for (name, value) in delta.as_object().into_iter().flatten() {
            match (name.as_str(), value) {
                ("role", _) => {}
                ("content", Value::String(text)) => self.keep_text(index, text),
                ("reasoning_content", _) => self.discard_text(),
                _ => {
                    self.note_content();
                    self.discard_text();
                }
            }
        }
    }

    /// Ends a choice, for now: the last finish reason counts, unless there was a more telling one than `stop`. `choice`
    /// has the provider's fields other than the delta and the finish reason.
    pub fn finish(&mut self, index: u32, reason: &str, choice: serde_json::Map<String, Value>) {
        self.finish_with_extra(index, reason, choice, std::iter::empty());
    }

    /// As [`ChunkWriter::finish`], with the provider's extra fields beside the choices.
    pub fn finish_with_extra<'f>(
        &mut self,
        index: u32,
        reason: &str,
        mut choice: serde_json::Map<String, Value>,
        extra: impl Iterator<Item = (&'f str, &'f str)>,
    ) {
        if self.stage(index) == ChoiceStage::NotStarted {
            self.delta(index, &json!({"role": "assistant", "content": ""}));
        }
        let Some(position) = self.choices.iter().position(|known| known.index == index) else { return };
        let held = self.choices[position].finish.as_ref();
        if reason == ORDINARY && held.is_some_and(|held| held.reason != ORDINARY) {
            return;
        }
        choice.insert("index".to_owned(), json!(index));
        choice.insert("delta".to_owned(), json!({}));
        choice.insert("finish_reason".to_owned(), json!(reason));
        let start = self.out.len();
        self.write(&format!("[{}]", Value::Object(choice)), extra);
        let finish = Finish { reason: reason.to_owned(), chunk: self.out.split_off(start) };
        self.held_bytes += finish.chunk.len();
        let replaced = self.choices[position].finish.replace(finish);
        self.held_bytes -= replaced.map_or(0, |replaced| replaced.chunk.len());
    }

    /// Ends all choices that have begun and have no finish reason yet; `reason` tells that of a choice.
    pub(in crate::providers) fn finish_open(&mut self, reason: impl Fn(u32) -> &'static str) {
        let open = self.choices.iter().filter(|choice| choice.finish.is_none());
        let open: Vec<u32> = open.map(|choice| choice.index).collect();
        for index in open {
            self.finish(index, reason(index), serde_json::Map::new());
        }
    }

    /// Keeps the extra fields of a chunk without choices for the last chunk: many clients expect a choice in every
    /// chunk but that with the usage. The last of equal names counts.
    pub(in crate::providers) fn hold_extra<'f>(&mut self, extra: impl Iterator<Item = (&'f str, &'f str)>) {
        for (name, value) in extra.filter(|(_, value)| *value != "null") {
            let known = self.held_extra.iter().position(|(held, _)| held == name);
            let known = known.map(|position| self.held_extra.swap_remove(position));
            self.held_bytes -= known.map_or(0, |(name, value)| name.len() + value.len());
            self.held_bytes += name.len() + value.len();
            self.held_extra.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Adds the extra fields that were held back to the last chunk with a finish reason, unless it has them.
    fn add_extra_to_finish(&mut self) {
        let extra = std::mem::take(&mut self.held_extra);
        let finish = self.choices.iter_mut().rev().find_map(|choice| choice.finish.as_mut());
        let Some(finish) = finish.filter(|_| !extra.is_empty()) else { return };
        let text = std::str::from_utf8(&finish.chunk).unwrap_or_default();
        let object = text.strip_prefix("data: ").unwrap_or_default().trim_end();
        let Ok(present) = fields::Fields::parse(object) else { return };
        let is_new = |(name, _): &&(String, String)| present.get(name).is_none();
        let mut chunk = b"data: ".to_vec();
        chunk.extend_from_slice(object.strip_suffix('}').unwrap_or_default().as_bytes());
        for (name, value) in extra.iter().filter(is_new) {
            fields::write_field_escaped(&mut chunk, name, value);
        }
        chunk.extend_from_slice(b"}\n\n");
        finish.chunk = chunk;
    }

    /// Writes a chunk with one choice.
    pub fn write_choice(&mut self, choice: &Value) {
        self.write(&format!("[{choice}]"), std::iter::empty());
    }

    /// Whether every requested choice is finished.
    pub fn is_complete(&self) -> bool {
        self.choices.len() >= self.expected && self.may_end()
    }

    /// Whether every choice has a finish reason with which nothing can follow.
    pub(in crate::providers) fn is_final(&self) -> bool {
        let is_final = |finish: &Finish| FINAL.contains(&finish.reason.as_str());
        self.choices.iter().all(|choice| choice.finish.as_ref().is_some_and(is_final))
    }

    /// Whether at least one choice has begun and all that have begun are finished.
    pub fn may_end(&self) -> bool {
        !self.choices.is_empty() && self.choices.iter().all(|choice| choice.finish.is_some())
    }

    /// Writes the end of a complete answer. One that is passed on has its own.
    pub fn end(&mut self) {
        if self.is_native {
            return;
        }
        if !self.include_usage {
            self.add_extra_to_finish();
        }
        self.write_finishes();
        if self.include_usage {
            let extra = std::mem::take(&mut self.held_extra);
            let extra = extra.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let text = match &mut self.usage_text {
                Some(text) => std::mem::take(text),
                None => usage_json(self.usage(), self.usage.is_none()).to_string(),
            };
            self.write("[]", extra.chain(std::iter::once(("usage", text.as_str()))));
        }
        self.out.extend_from_slice(b"data: [DONE]\n\n");
    }

    /// Writes the finish reasons that were held back.
    pub(in crate::providers) fn write_finishes(&mut self) {
        for finish in self.choices.iter().filter_map(|choice| choice.finish.as_ref()) {
            self.out.extend_from_slice(&finish.chunk);
        }
    }

    /// The end of an incomplete answer: `error` (an object with `message`, `type` and `code`) and `[DONE]`.
    pub fn end_with_error(&mut self, error: &Value) -> Bytes {
        self.out.clear();
        let unfinished = |index: &u32| self.stage(*index) == ChoiceStage::NotStarted;
        let open = self.choices.iter().filter(|choice| choice.finish.is_none());
        let open = open.map(|choice| choice.index).min();
        let index = open.or_else(|| (0..).take(self.expected).find(unfinished)).unwrap_or_default();
        let choices = format!(r#"[{{"index":{index},"delta":{{}},"finish_reason":"error"}}]"#);
        self.write(&choices, std::iter::once(("error", error.to_string().as_str())));
        self.out.extend_from_slice(b"data: [DONE]\n\n");
        self.take()
    }

    /// Whether more is pending for the caller, or held back, than any provider has reason to send.
    pub fn is_flooded(&self) -> bool {
        self.out.len() + self.held_bytes > MAX_PENDING_BYTES || self.held_extra.len() > MAX_HELD_FIELDS
    }

    /// Whether nothing is pending for the caller.
    pub(in crate::providers) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Takes what is pending for the caller.
    pub fn take(&mut self) -> Bytes {
        // The next piece will probably be about as long.
        let next = Vec::with_capacity(self.out.len().min(MAX_RESERVED_BYTES));
        Bytes::from(std::mem::replace(&mut self.out, next))
    }
}
