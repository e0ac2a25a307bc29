//! A streamed response, whose events are passed on as they come. They are read for the usage, the length of the answer
//! and its end.

use super::{Ending, failure, tokens};
use crate::json::fields::Fields;
use crate::json::reader::Json;
use crate::providers::completion::{EventOutcome, StreamDecoder};
use crate::providers::dialects::openai::error_body;
use crate::providers::native::with_model;
use crate::providers::sse::Event;
use crate::providers::stream::chunk_writer::ChunkWriter;
use crate::providers::{Failure, ProviderResponse, ResponseMeta};

/// The fields of events with a whole text, refusal or call.
const WHOLE: [&str; 4] = ["text", "refusal", "arguments", "input"];

/// Reads the events of one response.
#[derive(Debug)]
pub(super) struct Decoder {
    meta: ResponseMeta,
    has_begun: bool,
    /// Whether what the model writes comes in pieces. If not, it is counted where it is whole.
    has_deltas: bool,
}

impl Decoder {
    pub(super) const fn new(meta: ResponseMeta) -> Self {
        Self { meta, has_begun: false, has_deltas: false }
    }

    /// Passes on an event that shows the response as it is now.
    fn response(
        &mut self,
        (event, text): (&Event<'_>, &str),
        response: Json<'_>,
        chunks: &mut ChunkWriter,
    ) -> Result<EventOutcome, Failure> {
        let known = ["model", "status", "usage", "error", "incomplete_details"];
        let [model, status, usage, error, details] = response.fields(known).ok_or(Failure::Malformed)?;
        let ending = Ending::of(status, details);
        // What is told before the end is not of the whole answer.
        if let Some(tokens) = usage.filter(|_| ending.is_some()).and_then(tokens) {
            chunks.record_usage(tokens, None);
        }
        let outcome = match ending {
            Some(Ending::Failed) => {
                chunks.finish_usage();
                return Err(failure(error));
            }
            Some(Ending::Finished(reason)) => {
                chunks.finish_native(reason);
                EventOutcome::End
            }
            None => EventOutcome::More,
        };
        self.has_begun = true;
        chunks.pass_on(&Event { name: event.name, data: &with_model(text, model, &self.meta) });
        Ok(outcome)
    }
}

impl StreamDecoder for Decoder {
    fn read(&mut self, event: &Event<'_>, chunks: &mut ChunkWriter) -> Result<EventOutcome, Failure> {
        let text = std::str::from_utf8(event.data).ok();
        let Some((text, fields)) = text.and_then(|text| Some((text, Fields::parse(text).ok()?))) else {
            return Ok(EventOutcome::Unreadable);
        };
        let kind = fields.get("type").and_then(Json::string);
        if fields.non_null("error").is_some() || kind.as_deref() == Some("error") {
            let body = serde_json::from_str(text).unwrap_or_default();
            return Err(error_body::failure_in_success(&body, &ProviderResponse::of_stream_event()));
        }
        if kind.is_none() {
            return Ok(EventOutcome::Unreadable);
        }
        if let Some(response) = fields.get("response").filter(|response| response.is_object()) {
            return self.response((event, text), response, chunks);
        }
        // Signs of life are no part of an answer; what is one must not come without its beginning.
        if !self.has_begun {
            let is_content = kind.is_some_and(|kind| kind.starts_with("response."));
            return if is_content { Err(Failure::Malformed) } else { Ok(EventOutcome::More) };
        }
        let delta = fields.get("delta").and_then(Json::string);
        self.has_deltas |= delta.is_some();
        let whole = || WHOLE.iter().find_map(|name| fields.get(name)?.string()).filter(|_| !self.has_deltas);
        if let Some(written) = delta.or_else(whole) {
            chunks.count(written.chars().count());
        }
        chunks.pass_on(event);
        Ok(EventOutcome::More)
    }
}
