//! A streamed message, whose events are passed on as they come. They are read for the usage, the length of the answer
//! and its end.

use crate::json::fields::Fields;
use crate::json::reader::Json;
use crate::providers::completion::{EventOutcome, StreamDecoder};
use crate::providers::dialects::anthropic::error_body;
use crate::providers::dialects::anthropic::response::{TokenCounts, ending};
use crate::providers::dialects::render::UsageMeter;
use crate::providers::native::with_model;
use crate::providers::sse::Event;
use crate::providers::stream::chunk_writer::ChunkWriter;
use crate::providers::{Failure, ProviderResponse, ResponseMeta};

/// The last event.
const STOP: Event<'static> = Event { name: b"message_stop", data: b"{\"type\":\"message_stop\"}" };

/// Reads the events of one message.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    meta: ResponseMeta,
    stage: Stage,
    /// Whether the block that has begun last is a call of a tool that has not ended.
    is_in_call: bool,
    /// The usage as last reported; `message_delta` repeats only a part of it.
    usage: TokenCounts,
    meter: UsageMeter,
}

/// How far a message has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Awaited,
    Begun,
    /// There is a stop reason.
    Finished,
    /// The last event has come.
    Stopped,
}

impl Decoder {
    pub(super) fn new(meta: ResponseMeta) -> Self {
        Self { meta, ..Self::default() }
    }

    fn start(
        &mut self,
        (event, text): (&Event<'_>, &str),
        fields: &Fields<'_>,
        chunks: &mut ChunkWriter,
    ) -> Option<()> {
        let [model, usage] = fields.get("message")?.fields(["model", "usage"])?;
        self.stage = Stage::Begun;
        self.record(usage, chunks);
        chunks.pass_on(&Event { name: event.name, data: &with_model(text, model, &self.meta) });
        Some(())
    }

    /// Counts what a delta adds to the answer.
    fn count(&mut self, delta: Option<Json<'_>>, chunks: &mut ChunkWriter) -> Option<()> {
        let texts = delta?.fields(["text", "thinking", "partial_json"])?;
        if let Some(text) = texts.into_iter().flatten().find_map(Json::string) {
            self.meter.count(&text, chunks);
        }
        Some(())
    }

    fn record(&mut self, usage: Option<Json<'_>>, chunks: &mut ChunkWriter) {
        let Some(usage) = usage.and_then(Json::read) else { return };
        self.usage.update(&usage);
        if let Some(usage) = self.usage.usage() {
            self.meter.report(usage, chunks);
        }
    }

    /// Notes the end, if this tells of it.
    fn finish(&mut self, reason: Option<Json<'_>>, chunks: &mut ChunkWriter) -> Result<(), Failure> {
        let Some(reason) = reason.filter(|_| self.stage == Stage::Begun).and_then(Json::read) else {
            return Ok(());
        };
        let Some(ending) = ending(&reason) else { return Ok(()) };
        // Only a truncated or withheld answer may end within a call.
        if self.is_in_call && !matches!(ending.finish, "length" | "content_filter") {
            return Err(Failure::Malformed);
        }
        self.meter.finish(chunks);
        chunks.finish_native(ending.finish);
        self.stage = Stage::Finished;
        Ok(())
    }
}

impl StreamDecoder for Decoder {
    fn read(&mut self, event: &Event<'_>, chunks: &mut ChunkWriter) -> Result<EventOutcome, Failure> {
        let text = std::str::from_utf8(event.data).ok();
        let Some((text, fields)) = text.and_then(|text| Some((text, Fields::parse(text).ok()?))) else {
            // What is damaged after the stop reason is no part of the answer.
            return Ok(if self.stage == Stage::Finished {
                EventOutcome::Skipped
            } else {
                EventOutcome::Unreadable
            });
        };
        if super::is_error(&fields) {
            let body = serde_json::from_str(text).unwrap_or_default();
            return Err(error_body::failure_in_success(&body, &ProviderResponse::of_stream_event()));
        }
        let Some(kind) = fields.get("type").and_then(Json::string) else {
            return Ok(EventOutcome::Unreadable);
        };
        if self.stage == Stage::Awaited {
            // Signs of life are no part of an answer; what is one must not come without its beginning.
            return match &*kind {
                "message_start" => {
                    let started = self.start((event, text), &fields, chunks);
                    started.map(|()| EventOutcome::More).ok_or(Failure::Malformed)
                }
                kind if kind.starts_with("message_") || kind.starts_with("content_block_") => {
                    Err(Failure::Malformed)
                }
                _ => Ok(EventOutcome::More),
            };
        }
        let mut outcome = EventOutcome::More;
        match &*kind {
            "content_block_start" => {
                let block = fields.get("content_block").and_then(|block| block.fields(["type"]));
                let [kind] = block.ok_or(Failure::Malformed)?;
                self.is_in_call = kind.is_some_and(|kind| kind.get() == "\"tool_use\"");
                self.count(fields.get("content_block"), chunks);
            }
            "content_block_delta" => self.count(fields.get("delta"), chunks).ok_or(Failure::Malformed)?,
            "content_block_stop" => self.is_in_call = false,
            "message_delta" => {
                self.record(fields.non_null("usage"), chunks);
                let delta = fields.get("delta").and_then(|delta| delta.fields(["stop_reason"]));
                self.finish(delta.and_then(|[reason]| reason), chunks)?;
                if self.stage == Stage::Finished {
                    outcome = EventOutcome::Last;
                }
            }
            "message_stop" if self.stage == Stage::Finished => {
                self.stage = Stage::Stopped;
                outcome = EventOutcome::End;
            }
            "message_stop" => return Err(Failure::Malformed),
            _ => {}
        }
        chunks.pass_on(event);
        Ok(outcome)
    }

    fn end(&mut self, chunks: &mut ChunkWriter) -> Result<(), Failure> {
        // A gateway in between may drop it, and clients wait for it.
        if self.stage == Stage::Finished {
            chunks.pass_on(&STOP);
        }
        Ok(())
    }
}
