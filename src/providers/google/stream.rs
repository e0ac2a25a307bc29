//! Decodes a streamed answer: every event has the form of a complete response, with only the new parts.
//!
//! The last event has the finish reason, then the body ends; there is no end marker. Some versions and gateways send a
//! finish reason with every event, so none of them is known to be the last before the body ends; the most severe counts.
//! A tool call is sent as one part. The usage is reported repeatedly, and the last report counts.

use serde_json::{Map, Value, json};

use super::error_body;
use super::response::{self, Part};
use crate::providers::chunk_writer::ChunkWriter;
use crate::providers::completion::{EventOutcome, StreamDecoder};
use crate::providers::render::UsageMeter;
use crate::providers::sse::Event;
use crate::providers::{Failure, Finish, ProviderResponse};

/// Decodes the events of one answer; streams always have a single candidate.
#[derive(Debug)]
pub(super) struct Decoder {
    tool_calls: usize,
    /// The caller gets no more than this.
    max_tool_calls: usize,
    has_text: bool,
    /// The most severe finish reason so far.
    finish: Option<Finish>,
    meter: UsageMeter,
}

impl StreamDecoder for Decoder {
    fn read(&mut self, event: &Event<'_>, chunks: &mut ChunkWriter) -> Result<EventOutcome, Failure> {
        let Ok(body) = serde_json::from_slice::<Value>(event.data) else {
            return Ok(EventOutcome::Unreadable);
        };
        let outer = body.as_array().and_then(|list| list.first()).unwrap_or(&body);
        let usage = response::token_usage(&outer["usageMetadata"]);
        if !outer["error"].is_null() {
            if let Some(usage) = usage {
                self.meter.report(usage, chunks);
                chunks.finish_usage();
            }
            return Err(error_body::failure_in_success(outer, &ProviderResponse::of_stream_event()));
        }
        let candidate = &body["candidates"][0];
        if response::is_blocked(&body) {
            // The prompt was processed nevertheless.
            if let Some(usage) = usage {
                self.meter.report(usage, chunks);
            }
            return Err(Failure::Refused);
        }
        if candidate.is_null() && usage.is_none() {
            return Ok(EventOutcome::Skipped);
        }
        chunks.begin(body["responseId"].as_str(), None);
        // Only the last report is certain to include the parts of its own event; earlier ones may include none.
        let reason = &candidate["finishReason"];
        let may_be_last = !reason.is_null() || self.finish.is_some();
        if let Some(usage) = usage {
            self.meter.report(usage, chunks);
        }
        for part in response::parts(candidate) {
            self.write_part(Part::parse(part)?, chunks);
        }
        if let Some(usage) = usage.filter(|_| may_be_last) {
            self.meter.report(usage, chunks);
        }
        if !reason.is_null() {
            self.finish(reason, chunks)?;
        }
        Ok(EventOutcome::More)
    }

    fn end(&mut self, chunks: &mut ChunkWriter) -> Result<(), Failure> {
        self.meter.finish(chunks);
        if let Some(finish) = self.finish {
            chunks.finish(0, self.finish_reason(finish)?, Map::new());
        }
        Ok(())
    }
}

impl Decoder {
    pub(super) fn new(max_tool_calls: usize) -> Self {
        Self { tool_calls: 0, max_tool_calls, has_text: false, finish: None, meter: UsageMeter::default() }
    }

    fn write_part(&mut self, part: Part<'_>, chunks: &mut ChunkWriter) {
        match part {
            Part::Hidden(thought) => self.meter.count(thought, chunks),
            Part::Text(text) => {
                self.has_text |= !text.is_empty();
                if !text.is_empty() {
                    chunks.delta(0, &json!({"content": text}));
                    self.meter.count(text, chunks);
                }
            }
            Part::ToolCall(mut call) => {
                // The provider charges for it, whether it is passed on or not.
                self.meter.count(&call["function"].to_string(), chunks);
                if self.tool_calls < self.max_tool_calls {
                    call["index"] = json!(self.tool_calls);
                    self.tool_calls += 1;
                    chunks.delta(0, &json!({"tool_calls": [call]}));
                }
            }
        }
    }

    fn finish(&mut self, reason: &Value, chunks: &mut ChunkWriter) -> Result<(), Failure> {
        let finish = response::finish(reason, ProviderResponse::of_stream_event().status)?;
        let finish = self.finish.map_or(finish, |severest| severest.max(finish));
        self.finish = Some(finish);
        // An answer that is empty so far is a failure only if nothing follows.
        if let Ok(reason) = self.finish_reason(finish) {
            chunks.finish(0, reason, Map::new());
        }
        Ok(())
    }

    fn finish_reason(&self, finish: Finish) -> Result<&'static str, Failure> {
        let is_empty = !self.has_text && self.tool_calls == 0;
        response::finish_reason(finish, self.tool_calls > 0, is_empty)
    }
}
