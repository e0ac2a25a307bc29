//! Decodes a streamed answer: chunks that are in order are passed on unchanged, the others are put in order.

use serde_json::Value;

use super::chunk_template::ChunkTemplate;
use super::delta::Delta;
use super::tool_calls::ToolCallNumbering;
use super::usage::ReportedUsage;
use super::{MAX_LISTED_CHOICES, error_body, extra_fields, order};
use crate::json::fields::Fields;
use crate::json::reader::{self, Json};
use crate::providers::completion::{EventOutcome, StreamDecoder};
use crate::providers::sse::Event;
use crate::providers::stream::chunk_writer::{ChoiceStage, ChunkWriter};
use crate::providers::{Failure, ProviderResponse};

/// Decodes the events of one answer. Most of its state is in the [`ChunkWriter`].
#[derive(Debug, Default)]
pub(super) struct Decoder {
    tool_calls: ToolCallNumbering,
    template: ChunkTemplate,
}

/// The parsed fields of a choice in a chunk.
pub(super) struct Choice<'a> {
    /// Left out by some servers that support only one choice.
    pub(super) index: Option<u32>,
    pub(super) delta: Option<Delta<'a>>,
    /// Servers that only pretend to stream send the complete answer as one chunk, with `message` as in a response.
    message: Option<Delta<'a>>,
    pub(super) finish_reason: Option<Json<'a>>,
    logprobs: Option<Json<'a>>,
    pub(super) error: Option<Json<'a>>,
}

impl<'a> Choice<'a> {
    fn read(reader: &mut reader::Reader<'a>) -> Option<Self> {
        let (mut delta, mut message) = (None, None);
        let names = ["index", "delta", "message", "finish_reason", "logprobs", "error"];
        let found = reader.fields_with(names, |name, reader| match name {
            "delta" => reader.try_read(Delta::read).map(|read| delta = read),
            "message" => reader.try_read(Delta::read).map(|read| message = read),
            _ => reader.skip_value(),
        });
        let [index, raw_delta, raw_message, finish_reason, logprobs, error] = found?;
        // If either is not an object, it could mean anything.
        if (raw_delta.is_some(), raw_message.is_some()) != (delta.is_some(), message.is_some()) {
            return None;
        }
        let index = index.map(|index| index.get().parse()).transpose().ok()?;
        Some(Self { index, delta, message, finish_reason, logprobs, error })
    }
}

impl Choice<'_> {
    pub(super) fn index(&self) -> u32 {
        self.index.unwrap_or_default()
    }

    /// Counts what goes to the caller, and keeps its text.
    pub(super) fn record(&self, chunks: &mut ChunkWriter) {
        if let Some(delta) = self.content(chunks) {
            delta.record(self.index(), chunks);
        }
        if self.logprobs.is_some() {
            chunks.discard_text();
        }
    }

    /// Whether it is one choice of a complete answer instead of a piece.
    const fn is_whole(&self) -> bool {
        self.message.is_some() && self.delta.is_none()
    }

    /// What it adds to the answer. A message beside deltas, or after them, only repeats their content.
    fn content(&self, chunks: &ChunkWriter) -> Option<&Delta<'_>> {
        let is_first = || chunks.stage(self.index()) == ChoiceStage::NotStarted;
        self.delta.as_ref().or_else(|| self.message.as_ref().filter(|_| is_first()))
    }

    fn tool_calls(&self, chunks: &ChunkWriter) -> Option<Json<'_>> {
        self.content(chunks)?.tool_calls
    }
}

impl StreamDecoder for Decoder {
    fn read(&mut self, event: &Event<'_>, chunks: &mut ChunkWriter) -> Result<EventOutcome, Failure> {
        if self.template.try_write(event.data, chunks) {
            return Ok(EventOutcome::More);
        }
        if event.data.trim_ascii() == b"[DONE]" {
            // With the usage and the end marker, nothing is missing; some providers send no finish reason at all.
            if chunks.reported_usage().is_some() {
                let calls = &self.tool_calls;
                chunks.finish_open(|index| if calls.is_begun(index) { "tool_calls" } else { "stop" });
            }
            return Ok(EventOutcome::End);
        }
        if event.data.contains(&b'\n') {
            // The event has several `data` lines; the output must be one line.
            let Ok(value) = serde_json::from_slice::<Value>(event.data) else {
                return Ok(EventOutcome::Unreadable);
            };
            return self.chunk(event.name, value.to_string().as_bytes(), chunks);
        }
        self.chunk(event.name, event.data, chunks)
    }
}

impl Decoder {
    /// Reads a chunk, or an error, which has a field of that name or is an event of that name.
    fn chunk(&mut self, name: &[u8], data: &[u8], chunks: &mut ChunkWriter) -> Result<EventOutcome, Failure> {
        // Checked once here, as otherwise each raw value would be checked again.
        let Ok(text) = std::str::from_utf8(data) else { return Ok(EventOutcome::Unreadable) };
        let mut choices = None;
        let fields = Fields::parse_with(text, |name, reader| match name {
            "choices" => reader
                .try_read(|reader| reader.list(MAX_LISTED_CHOICES, Choice::read))
                .map(|read| choices = read),
            _ => reader.skip_value(),
        });
        let Ok(fields) = fields else { return Ok(EventOutcome::Unreadable) };
        if fields.non_null("error").is_some() || name == b"error" {
            record_final_usage(&fields, chunks);
            return Err(error_in_success(data));
        }
        let Some(raw_choices) = fields.non_null("choices") else {
            record_usage(&fields, chunks);
            return Ok(if has_usage(&fields) { EventOutcome::Last } else { EventOutcome::Skipped });
        };
        let Some(choices) = choices else { return Ok(EventOutcome::Unreadable) };
        record_usage(&fields, chunks);
        if choices.is_empty() {
            // The usage at the end, or Azure's content filter results for the prompt at the beginning.
            chunks.hold_extra(extra_fields(&fields));
            if chunks.is_flooded() {
                return Err(Failure::Malformed);
            }
            return Ok(if has_usage(&fields) { EventOutcome::Last } else { EventOutcome::More });
        }
        if let Some(error) = choices.iter().find_map(|choice| choice.error) {
            record_final_usage(&fields, chunks);
            return Err(error_in_success(format!("{{\"error\":{}}}", error.get()).as_bytes()));
        }
        if !chunks.has_begun() {
            chunks.begin(fields.read::<String>("id").as_deref(), fields.read("created"));
        }
        let numbers = self.numbers(&choices, chunks);
        if numbers.iter().all(Option::is_none)
            && choices.iter().all(|choice| order::is_in_order(choice, chunks))
        {
            let repeatable = repeatable(&fields, &choices, chunks);
            for choice in &choices {
                chunks.open(choice.index());
                choice.record(chunks);
            }
            let (sent, at) = chunks.write_returning(raw_choices.get(), extra_fields(&fields));
            if let Some((index, added)) = repeatable {
                self.template.set(index, added, text, sent, raw_choices.get(), at);
            }
            return Ok(EventOutcome::More);
        }
        let is_whole = choices.iter().all(Choice::is_whole);
        let outcome = order::write_in_order(&fields, &choices, &numbers, chunks)?;
        Ok(if is_whole && outcome == EventOutcome::More { EventOutcome::Last } else { outcome })
    }

    /// For each choice, the numbers of its tool calls if they have to be changed; empty if no choice has any.
    fn numbers(&mut self, choices: &[Choice<'_>], chunks: &ChunkWriter) -> Vec<Option<Vec<u32>>> {
        if choices.iter().all(|choice| choice.tool_calls(chunks).is_none()) {
            return Vec::new();
        }
        let numbers =
            |choice: &Choice<'_>| self.tool_calls.renumbered(choice.index(), choice.tool_calls(chunks)?);
        choices.iter().map(numbers).collect()
    }
}

/// The choice and the text of a chunk that is passed on unchanged, if it only adds this text to an open choice.
fn repeatable<'a>(
    fields: &Fields<'a>,
    choices: &[Choice<'a>],
    chunks: &ChunkWriter,
) -> Option<(u32, Json<'a>)> {
    let [choice] = choices else { return None };
    let has_usage = fields.non_null("usage").is_some() || fields.non_null("x_groq").is_some();
    let is_plain =
        choice.logprobs.is_none() && !has_usage && chunks.stage(choice.index()) == ChoiceStage::Open;
    let text = choice.delta.as_ref()?.text_only()?;
    is_plain.then_some((choice.index(), text))
}

/// Whether a chunk reports usage where the format has it.
fn has_usage(fields: &Fields<'_>) -> bool {
    fields.non_null("usage").is_some()
}

/// Records the usage that a chunk reports.
fn record_usage(fields: &Fields<'_>, chunks: &mut ChunkWriter) {
    // Groq always reports it in a field of its own, and in `usage` only if asked to.
    let of_groq = || fields.read::<Fields<'_>>("x_groq")?.non_null("usage");
    let Some(raw) = fields.non_null("usage").or_else(of_groq) else { return };
    let Some(reported) = ReportedUsage::parse(raw) else { return };
    chunks.record_usage(reported.usage, Some(&reported.to_json()));
}

/// Records the usage that stands beside an error, which is of all that was used.
fn record_final_usage(fields: &Fields<'_>, chunks: &mut ChunkWriter) {
    record_usage(fields, chunks);
    if has_usage(fields) {
        chunks.finish_usage();
    }
}

/// The failure that a chunk reports.
fn error_in_success(data: &[u8]) -> Failure {
    let source = serde_json::from_slice(data).unwrap_or(Value::Null);
    error_body::failure_in_success(&source, &ProviderResponse::of_stream_event())
}

#[cfg(test)]
mod tests;
