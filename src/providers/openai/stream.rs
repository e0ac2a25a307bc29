//! A streamed answer: chunks that are in order pass as they are, the others are put in order.

use serde_json::Value;

use super::calls::Calls;
use super::delta::Delta;
use super::mould::Mould;
use super::usage::Reported;
use super::{MOST_LISTED, complaint, further, order};
use crate::providers::chunks::{Chunks, Stage};
use crate::providers::completion::{Decoder, Step};
use crate::providers::fields::Fields;
use crate::providers::json::{self, Json};
use crate::providers::sse::Event;
use crate::providers::{Failure, Incoming};

/// Reads the events of one answer; what it knows of it beyond its calls of tools is in the chunks.
#[derive(Debug, Default)]
pub(super) struct Reader {
    calls: Calls,
    mould: Mould,
}

/// A choice of a chunk; what is not here is not looked at.
pub(super) struct Choice<'a> {
    /// Some servers that know one choice only leave it out.
    pub(super) index: Option<u32>,
    pub(super) delta: Option<Delta<'a>>,
    /// Servers that only pretend to stream send the whole answer as one chunk, in the words of a whole answer.
    message: Option<Delta<'a>>,
    pub(super) finish_reason: Option<Json<'a>>,
    logprobs: Option<Json<'a>>,
    pub(super) error: Option<Json<'a>>,
}

impl<'a> Choice<'a> {
    fn read(reader: &mut json::Reader<'a>) -> Option<Self> {
        let (mut delta, mut message) = (None, None);
        let names = ["index", "delta", "message", "finish_reason", "logprobs", "error"];
        let found = reader.known_with(names, |name, reader| match name {
            "delta" => reader.attempt(Delta::read).map(|read| delta = read),
            "message" => reader.attempt(Delta::read).map(|read| message = read),
            _ => reader.pass(),
        });
        let [index, is_delta, is_message, finish_reason, logprobs, error] = found?;
        // What stands there and is no object may mean anything.
        if (is_delta.is_some(), is_message.is_some()) != (delta.is_some(), message.is_some()) {
            return None;
        }
        let index = index.map(|index| index.get().parse()).transpose().ok()?;
        Some(Self { index, delta, message, finish_reason, logprobs, error })
    }
}

impl Choice<'_> {
    pub(super) fn place(&self) -> u32 {
        self.index.unwrap_or_default()
    }

    /// Notes what goes to the caller.
    pub(super) fn note(&self, chunks: &mut Chunks) {
        if let Some(delta) = self.said(chunks) {
            delta.note(self.place(), chunks);
        }
        if self.logprobs.is_some() {
            chunks.keep_nothing();
        }
    }

    /// What it adds. A message beside deltas, or behind them, repeats what they have said.
    fn said(&self, chunks: &Chunks) -> Option<&Delta<'_>> {
        let is_first = || chunks.stage(self.place()) == Stage::First;
        self.delta.as_ref().or_else(|| self.message.as_ref().filter(|_| is_first()))
    }

    fn calls(&self, chunks: &Chunks) -> Option<Json<'_>> {
        self.said(chunks)?.tool_calls
    }
}

impl Decoder for Reader {
    fn read(&mut self, event: &Event<'_>, chunks: &mut Chunks) -> Result<Step, Failure> {
        if self.mould.pour(event.data, chunks) {
            return Ok(Step::More);
        }
        if event.data.trim_ascii() == b"[DONE]" {
            return Ok(Step::End);
        }
        if event.data.contains(&b'\n') {
            // Several `data` lines make one text; ours is one line.
            let Ok(value) = serde_json::from_slice::<Value>(event.data) else { return Ok(Step::Unreadable) };
            return self.chunk(value.to_string().as_bytes(), chunks);
        }
        self.chunk(event.data, chunks)
    }
}

impl Reader {
    fn chunk(&mut self, data: &[u8], chunks: &mut Chunks) -> Result<Step, Failure> {
        // Once for all: otherwise each value would be checked again where it is kept as it stands.
        let Ok(text) = std::str::from_utf8(data) else { return Ok(Step::Unreadable) };
        let mut choices = None;
        let fields = Fields::parse_with(text, |name, reader| match name {
            "choices" => {
                reader.attempt(|reader| reader.list(MOST_LISTED, Choice::read)).map(|read| choices = read)
            }
            _ => reader.pass(),
        });
        let Ok(fields) = fields else { return Ok(Step::Unreadable) };
        if fields.given("error").is_some() {
            return Err(disguised(data));
        }
        let Some(raw) = fields.given("choices") else {
            usage(&fields, chunks);
            return Ok(if fields.given("usage").is_some() { Step::More } else { Step::Skipped });
        };
        let Some(choices) = choices else { return Ok(Step::Unreadable) };
        usage(&fields, chunks);
        if choices.is_empty() {
            // The usage at the end, or Azure's opinion about the prompt at the beginning.
            return Ok(Step::More);
        }
        if let Some(error) = choices.iter().find_map(|choice| choice.error) {
            return Err(disguised(format!("{{\"error\":{}}}", error.get()).as_bytes()));
        }
        if !chunks.has_begun() {
            chunks.begin(fields.read::<String>("id").as_deref(), fields.read("created"));
        }
        let numbers = self.numbers(&choices, chunks);
        if numbers.iter().all(Option::is_none) && choices.iter().all(|choice| order::holds(choice, chunks)) {
            let repeatable = repeatable(&fields, &choices, chunks);
            for choice in &choices {
                chunks.open(choice.place());
                choice.note(chunks);
            }
            let (sent, at) = chunks.write_shown(raw.get(), further(&fields));
            if let Some((index, said)) = repeatable {
                self.mould.make(index, said, text, sent, raw.get(), at);
            }
            return Ok(Step::More);
        }
        order::put(&fields, &choices, &numbers, chunks)
    }

    /// For each choice, the numbers of its calls if they have to be changed; empty where no choice has a call.
    fn numbers(&mut self, choices: &[Choice<'_>], chunks: &Chunks) -> Vec<Option<Vec<u32>>> {
        if choices.iter().all(|choice| choice.calls(chunks).is_none()) {
            return Vec::new();
        }
        let numbers = |choice: &Choice<'_>| self.calls.renumbered(choice.place(), choice.calls(chunks)?);
        choices.iter().map(numbers).collect()
    }
}

/// The choice and the text of a chunk that passes as it is, if all that it does is to add this text to a choice that has
/// begun.
fn repeatable<'a>(fields: &Fields<'a>, choices: &[Choice<'a>], chunks: &Chunks) -> Option<(u32, Json<'a>)> {
    let [choice] = choices else { return None };
    let tells_usage = fields.given("usage").is_some() || fields.given("x_groq").is_some();
    let is_plain = choice.logprobs.is_none() && !tells_usage && chunks.stage(choice.place()) == Stage::Inside;
    let text = choice.delta.as_ref()?.text_alone()?;
    is_plain.then_some((choice.place(), text))
}

fn usage(fields: &Fields<'_>, chunks: &mut Chunks) {
    // Groq has always told it in a field of its own, and elsewhere only if asked to.
    let of_groq = || fields.read::<Fields<'_>>("x_groq")?.given("usage");
    let Some(raw) = fields.given("usage").or_else(of_groq) else { return };
    let Some(reported) = Reported::of(raw) else { return };
    chunks.usage(reported.usage, Some(&reported.text()));
}

/// The failure that a chunk holds.
fn disguised(data: &[u8]) -> Failure {
    let source = serde_json::from_slice(data).unwrap_or(Value::Null);
    complaint::inside_success(&source, &Incoming::in_stream())
}

#[cfg(test)]
mod tests;
