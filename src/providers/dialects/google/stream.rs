//! Decodes a streamed answer: every event has the form of a complete response, with only the new parts.
//!
//! The last event has the finish reason, then the body ends; there is no end marker. Some versions and gateways send a
//! finish reason with every event, so none of them is known to be the last before the body ends; the most severe
//! counts. A tool call is sent as one part. The usage is reported repeatedly, and the last report counts.

use serde_json::{Value, json};

use super::response::{self, Ending, Part};
use super::{citations, error_body};
use crate::providers::completion::{EventOutcome, PROVIDER_FINISH_REASON, StreamDecoder};
use crate::providers::dialects::render::UsageMeter;
use crate::providers::sse::Event;
use crate::providers::stream::chunk_writer::ChunkWriter;
use crate::providers::{Failure, Finish, ProviderResponse};

/// Decodes the events of one answer; streams always have a single candidate.
#[derive(Debug)]
pub(super) struct Decoder {
    tool_calls: usize,
    /// The caller gets no more than this.
    max_tool_calls: usize,
    /// The text so far, as its sources are named by places in it; only the beginning of a long one.
    text: String,
    /// Whether there was a text or an image.
    has_content: bool,
    /// The most severe finish reason so far.
    finish: Option<Finish>,
    /// Google's word for the last finish reason that has no meaning here.
    word: Option<String>,
    /// The last report of the pages that support the text.
    grounding: Value,
    /// The last report of the texts that it repeats.
    citations: Value,
    meter: UsageMeter,
}

/// The maximum length of the text that is kept for its sources.
const MAX_TEXT_BYTES: usize = 1024 * 1024;

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
        let [grounding, citations] =
            ["groundingMetadata", "citationMetadata"].map(|name| candidate[name].clone());
        if grounding["groundingChunks"].is_array() {
            self.grounding = grounding;
        }
        if citations.is_object() {
            self.citations = citations;
        }
        if !reason.is_null() {
            self.finish(reason, chunks)?;
        }
        Ok(EventOutcome::More)
    }

    fn end(&mut self, chunks: &mut ChunkWriter) -> Result<(), Failure> {
        self.meter.finish(chunks);
        if let Some(finish) = self.finish {
            let reason = self.finish_reason(finish)?;
            let annotations = citations::annotations(&self.grounding, &self.citations, &self.text);
            if !annotations.is_empty() {
                chunks.delta(0, &json!({"annotations": annotations}));
            }
            self.write_finish(reason, chunks);
        }
        Ok(())
    }
}

impl Decoder {
    pub(super) fn new(max_tool_calls: usize) -> Self {
        Self {
            tool_calls: 0,
            max_tool_calls,
            text: String::new(),
            has_content: false,
            finish: None,
            word: None,
            grounding: Value::Null,
            citations: Value::Null,
            meter: UsageMeter::default(),
        }
    }

    fn write_part(&mut self, part: Part<'_>, chunks: &mut ChunkWriter) {
        match part {
            Part::Text("") | Part::Thought("") => {}
            Part::Thought(thought) => {
                chunks.delta(0, &json!({"reasoning_content": thought}));
                self.meter.count(thought, chunks);
            }
            Part::Text(text) => {
                self.has_content = true;
                if self.text.len() + text.len() <= MAX_TEXT_BYTES {
                    self.text.push_str(text);
                }
                chunks.delta(0, &json!({"content": text}));
                self.meter.count(text, chunks);
            }
            Part::Image(image) => {
                self.has_content = true;
                chunks.delta(0, &json!({"images": [image]}));
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
        let Ending { finish, word } = response::ending(reason, ProviderResponse::of_stream_event().status)?;
        self.word = word;
        let finish = self.finish.map_or(finish, |severest| severest.max(finish));
        self.finish = Some(finish);
        // An answer that is empty so far is a failure only if nothing follows.
        if let Ok(reason) = self.finish_reason(finish) {
            self.write_finish(reason, chunks);
        }
        Ok(())
    }

    fn write_finish(&self, reason: &str, chunks: &mut ChunkWriter) {
        let word = self.word.iter().map(|word| (PROVIDER_FINISH_REASON.to_owned(), json!(word)));
        chunks.finish(0, reason, word.collect());
    }

    fn finish_reason(&self, finish: Finish) -> Result<&'static str, Failure> {
        let is_empty = !self.has_content && self.tool_calls == 0;
        response::finish_reason(finish, self.tool_calls > 0, is_empty)
    }
}
