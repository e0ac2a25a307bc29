//! Decodes a streamed message: `message_start`, then a start, deltas and a stop for each block, then `message_delta`
//! with the stop reason and the usage, then `message_stop`. An answer is complete once it has its stop reason, even if
//! a gateway in between drops what follows.
//!
//! Blocks arrive one after the other and are identified by their index; those with tool calls are renumbered, as chat
//! completions number only tool calls. The sources of a text are held back until its block ends, as they are about all
//! of it; so is the signature of a thought, which is passed on with all that it signs. Events of other types are ignored, as the API may add new ones.

use serde_json::{Value, json};

use super::error_body;
use super::response::{self, Ending, TokenCounts};
use crate::providers::completion::{EventOutcome, MAX_TOOL_CALLS, PROVIDER_FINISH_REASON, StreamDecoder};
use crate::providers::dialects::render::{THINKING_BLOCKS, UsageMeter};
use crate::providers::sse::{Event, MAX_EVENT_BYTES};
use crate::providers::stream::chunk_writer::ChunkWriter;
use crate::providers::{Failure, ProviderResponse};

/// More blocks than any message has open at once: they arrive one after the other.
const MAX_OPEN_BLOCKS: usize = 1024;

/// The maximum size of the arguments and sources that are held back until their blocks end: as much as one event can
/// hold, as only one block is open at a time.
const MAX_HELD_BYTES: usize = MAX_EVENT_BYTES;

/// Decodes the events of one message.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    tool_calls: Vec<ToolCall>,
    /// The indices of the open blocks without a tool call of the caller's.
    other_blocks: Vec<u64>,
    /// The number of characters of the text so far.
    text_length: usize,
    cited: CitedText,
    thought: Thought,
    /// How many signed thoughts were passed on.
    thoughts: usize,
    /// The usage as last reported; `message_delta` repeats only a part of it.
    usage: TokenCounts,
    is_finished: bool,
    meter: UsageMeter,
}

/// The text of the block that was opened last, and its sources.
#[derive(Debug, Default)]
struct CitedText {
    /// Where it begins, in characters of the whole text.
    start: usize,
    citations: Vec<Value>,
    /// The size of the events that they came in.
    bytes: usize,
}

/// The block of thoughts that was opened last.
#[derive(Debug, Default)]
struct Thought {
    text: String,
    signature: String,
}

/// A block with a tool call.
#[derive(Debug)]
struct ToolCall {
    /// The index of the block.
    index: u64,
    /// The arguments if none follow: those of the start. `None` once others have followed, or the block has ended.
    input: Option<String>,
    is_open: bool,
}

impl StreamDecoder for Decoder {
    fn read(&mut self, event: &Event<'_>, chunks: &mut ChunkWriter) -> Result<EventOutcome, Failure> {
        let Ok(body) = serde_json::from_slice::<Value>(event.data) else {
            // As below: what is damaged after the stop reason is no part of the answer either.
            return Ok(if self.is_finished { EventOutcome::Skipped } else { EventOutcome::Unreadable });
        };
        let kind = body["type"].as_str();
        // What follows the stop reason is not part of the answer: it is neither passed on nor counted.
        if self.is_finished && !matches!(kind, Some("message_delta" | "message_stop")) {
            return Ok(EventOutcome::Skipped);
        }
        let handled = match kind {
            Some("message_start") => self.start_message(&body["message"], chunks),
            Some("content_block_start") => self.start_block(&body, chunks)?,
            Some("content_block_delta") => self.block_delta(&body, event.data.len(), chunks)?,
            Some("content_block_stop") => {
                self.stop_block(&body, chunks);
                Some(())
            }
            Some("message_delta") => {
                self.record_usage(&body["usage"], chunks);
                if body["delta"]["stop_reason"].is_string() {
                    self.finish(&body["delta"]["stop_reason"], chunks)?;
                    return Ok(EventOutcome::Last);
                }
                Some(())
            }
            Some("message_stop") if self.is_finished => return Ok(EventOutcome::End),
            Some("message_stop") => return Err(Failure::Malformed),
            Some("error") => {
                return Err(error_body::failure_in_success(&body, &ProviderResponse::of_stream_event()));
            }
            Some(_) => Some(()),
            // Gateways in between have error formats of their own.
            None if !body["error"].is_null() => {
                return Err(error_body::failure_in_success(&body, &ProviderResponse::of_stream_event()));
            }
            None => None,
        };
        Ok(if handled.is_some() { EventOutcome::More } else { EventOutcome::Skipped })
    }
}

impl Decoder {
    fn start_message(&mut self, message: &Value, chunks: &mut ChunkWriter) -> Option<()> {
        chunks.begin(message["id"].as_str(), None);
        chunks.delta(0, &json!({"role": "assistant", "content": ""}));
        self.record_usage(&message["usage"], chunks);
        message.as_object().map(|_| ())
    }

    /// Starts a block; `None` if it is none. A tool call must not be lost: one that cannot be passed on is a failure.
    fn start_block(&mut self, body: &Value, chunks: &mut ChunkWriter) -> Result<Option<()>, Failure> {
        let (index, block) = (body["index"].as_u64(), &body["content_block"]);
        let Some(kind) = block["type"].as_str() else { return Ok(None) };
        if kind == "tool_use" {
            return self.start_call(index, block, chunks).map(Some).ok_or(Failure::Malformed);
        }
        let Some(index) = index else { return Ok(None) };
        if !self.other_blocks.contains(&index) {
            if self.other_blocks.len() >= MAX_OPEN_BLOCKS {
                return Err(Failure::Malformed);
            }
            self.other_blocks.push(index);
        }
        match kind {
            "text" => {
                self.write_citations(chunks);
                self.cited.start = self.text_length;
                self.write_text(block["text"].as_str().unwrap_or_default(), chunks);
            }
            "thinking" => {
                self.thought = Thought::default();
                let thought = block["thinking"].as_str().unwrap_or_default();
                self.write_thinking(thought, chunks);
            }
            "redacted_thinking" => self.write_signed(response::signed_thought(block), chunks),
            _ => {}
        }
        Ok(Some(()))
    }

    fn start_call(&mut self, index: Option<u64>, block: &Value, chunks: &mut ChunkWriter) -> Option<()> {
        let index = index.filter(|_| self.tool_calls.len() < MAX_TOOL_CALLS)?;
        let call = json!({
            "index": self.tool_calls.len(),
            "id": block["id"].as_str()?,
            "type": "function",
            "function": {"name": block["name"].as_str()?, "arguments": ""},
        });
        chunks.delta(0, &json!({"tool_calls": [call]}));
        // Without arguments, an empty object: callers parse them as JSON nevertheless.
        let input = if block["input"].is_object() { block["input"].to_string() } else { "{}".to_owned() };
        self.tool_calls.push(ToolCall { index, input: Some(input), is_open: true });
        (self.held_bytes() <= MAX_HELD_BYTES).then_some(())
    }

    /// Passes on a delta, which came in an event of this size.
    fn block_delta(
        &mut self,
        body: &Value,
        bytes: usize,
        chunks: &mut ChunkWriter,
    ) -> Result<Option<()>, Failure> {
        let delta = &body["delta"];
        let text = |name: &str| delta[name].as_str();
        let handled = match delta["type"].as_str() {
            Some("text_delta") => text("text").map(|text| self.write_text(text, chunks)),
            Some("thinking_delta") => text("thinking").map(|text| self.write_thinking(text, chunks)),
            Some("signature_delta") => text("signature").map(|text| self.thought.signature.push_str(text)),
            Some("citations_delta") => {
                self.cited.citations.push(delta["citation"].clone());
                self.cited.bytes += bytes;
                Some(())
            }
            Some("input_json_delta") => match text("partial_json") {
                Some(piece) if !piece.is_empty() => self.call_delta(body, piece, chunks).map(Some)?,
                piece => piece.map(|_| ()),
            },
            Some(_) => Some(()),
            None => None,
        };
        if self.held_bytes() > MAX_HELD_BYTES { Err(Failure::Malformed) } else { Ok(handled) }
    }

    /// Passes on a piece of a call's arguments; those of blocks with anything else are ignored.
    ///
    /// # Errors
    /// If no such block is open: its start was lost, and with it the call.
    fn call_delta(&mut self, body: &Value, piece: &str, chunks: &mut ChunkWriter) -> Result<(), Failure> {
        if let Some((number, call)) = self.open_call(body) {
            call.input = None;
            self.write_arguments(number, piece, chunks);
            return Ok(());
        }
        let is_other = body["index"].as_u64().is_some_and(|index| self.other_blocks.contains(&index));
        if is_other { Ok(()) } else { Err(Failure::Malformed) }
    }

    fn stop_block(&mut self, body: &Value, chunks: &mut ChunkWriter) {
        self.write_citations(chunks);
        self.write_thought(chunks);
        self.other_blocks.retain(|index| body["index"] != *index);
        let Some((number, call)) = self.open_call(body) else { return };
        call.is_open = false;
        if let Some(input) = call.input.take() {
            self.write_arguments(number, &input, chunks);
        }
    }

    fn finish(&mut self, reason: &Value, chunks: &mut ChunkWriter) -> Result<(), Failure> {
        if self.is_finished {
            return Ok(());
        }
        let Ending { finish, word } = response::ending(reason).ok_or(Failure::Malformed)?;
        // Only a truncated or withheld answer may end within a tool call.
        let may_be_open = matches!(finish, "length" | "content_filter");
        let is_open = self.tool_calls.iter().any(|call| call.is_open);
        if (finish == "tool_calls" && self.tool_calls.is_empty()) || (is_open && !may_be_open) {
            return Err(Failure::Malformed);
        }
        self.write_citations(chunks);
        self.meter.finish(chunks);
        let word = word.map(|word| (PROVIDER_FINISH_REASON.to_owned(), json!(word)));
        chunks.finish(0, finish, word.into_iter().collect());
        self.is_finished = true;
        Ok(())
    }

    fn write_text(&mut self, text: &str, chunks: &mut ChunkWriter) {
        if !text.is_empty() {
            chunks.delta(0, &json!({"content": text}));
            self.meter.count(text, chunks);
            self.text_length += text.chars().count();
        }
    }

    fn write_thinking(&mut self, text: &str, chunks: &mut ChunkWriter) {
        if !text.is_empty() {
            chunks.delta(0, &json!({"reasoning_content": text}));
            self.meter.count(text, chunks);
            self.thought.text.push_str(text);
        }
    }

    /// Passes on the thought that ends here, if it is signed.
    fn write_thought(&mut self, chunks: &mut ChunkWriter) {
        let Thought { text, signature } = std::mem::take(&mut self.thought);
        self.write_signed(
            response::signed_thought(&json!({"thinking": text, "signature": signature})),
            chunks,
        );
    }

    /// Clients put the pieces of lists together by their `index`.
    fn write_signed(&mut self, block: Option<Value>, chunks: &mut ChunkWriter) {
        if let Some(mut block) = block {
            block["index"] = json!(self.thoughts);
            self.thoughts += 1;
            chunks.delta(0, &json!({THINKING_BLOCKS: [block]}));
        }
    }

    /// Writes the sources of the last text, which ends here.
    fn write_citations(&mut self, chunks: &mut ChunkWriter) {
        let CitedText { start, citations, .. } = std::mem::take(&mut self.cited);
        if !citations.is_empty() {
            let range = (start, self.text_length);
            let annotations: Vec<Value> =
                citations.iter().map(|citation| response::annotation(citation, range)).collect();
            chunks.delta(0, &json!({"annotations": annotations}));
        }
    }

    fn write_arguments(&mut self, number: usize, piece: &str, chunks: &mut ChunkWriter) {
        chunks.delta(0, &json!({"tool_calls": [{"index": number, "function": {"arguments": piece}}]}));
        self.meter.count(piece, chunks);
    }

    /// The open tool call that an event is about, and its number.
    fn open_call(&mut self, body: &Value) -> Option<(usize, &mut ToolCall)> {
        let index = body["index"].as_u64()?;
        self.tool_calls.iter_mut().enumerate().find(|(_, call)| call.index == index && call.is_open)
    }

    fn held_bytes(&self) -> usize {
        let inputs = self.tool_calls.iter().filter_map(|call| call.input.as_ref());
        let Thought { text, signature } = &self.thought;
        self.cited.bytes + text.len() + signature.len() + inputs.map(String::len).sum::<usize>()
    }

    /// The counts in `message_delta` are cumulative; those it leaves out were sent at the start.
    fn record_usage(&mut self, usage: &Value, chunks: &mut ChunkWriter) {
        if !usage.is_object() {
            return;
        }
        self.usage.update(usage);
        if let Some(usage) = self.usage.usage() {
            self.meter.report(usage, chunks);
        }
    }
}

#[cfg(test)]
mod tests;
