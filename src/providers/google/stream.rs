//! A streamed answer: every event is an answer in the same form as a complete one, with the parts that are new.
//!
//! The last one has the reason, then the body ends; no event says that this was all. A call of a tool comes whole in
//! one part. The usage is told again and again, and the last word counts.

use serde_json::{Map, Value, json};

use super::complaint;
use super::whole::{self, Part};
use crate::providers::chunks::Chunks;
use crate::providers::completion::{Decoder, MOST_TOOL_CALLS, Step};
use crate::providers::sse::Event;
use crate::providers::written::Meter;
use crate::providers::{Failure, Incoming};

/// The state of one answer; only one candidate is ever asked for.
#[derive(Debug, Default)]
pub(super) struct Reader {
    calls: usize,
    has_text: bool,
    meter: Meter,
}

impl Decoder for Reader {
    fn read(&mut self, event: &Event<'_>, chunks: &mut Chunks) -> Result<Step, Failure> {
        let Ok(body) = serde_json::from_slice::<Value>(event.data) else { return Ok(Step::Unreadable) };
        let outer = body.as_array().and_then(|list| list.first()).unwrap_or(&body);
        if !outer["error"].is_null() {
            return Err(complaint::inside_success(outer, &Incoming::in_stream()));
        }
        let candidate = &body["candidates"][0];
        let usage = whole::spent(&body["usageMetadata"]);
        if whole::is_blocked(&body) {
            // It was read all the same.
            if let Some(spent) = usage {
                self.meter.report(spent, chunks);
            }
            return Err(Failure::Refused);
        }
        if candidate.is_null() && usage.is_none() {
            return Ok(Step::Skipped);
        }
        chunks.begin(body["responseId"].as_str(), None);
        // Only the last word is sure to count the parts it comes with; those before may count none at all.
        let is_last = !candidate["finishReason"].is_null();
        if let Some(spent) = usage {
            self.meter.report(spent, chunks);
        }
        for part in whole::parts(candidate) {
            self.part(Part::read(part)?, chunks);
        }
        if let Some(spent) = usage.filter(|_| is_last) {
            self.meter.report(spent, chunks);
        }
        if is_last {
            self.finish(&candidate["finishReason"], chunks)?;
        }
        Ok(Step::More)
    }
}

impl Reader {
    fn part(&mut self, part: Part<'_>, chunks: &mut Chunks) {
        match part {
            Part::Hidden(thought) => self.meter.count(thought, chunks),
            Part::Text(text) => {
                self.has_text |= !text.is_empty();
                if !text.is_empty() {
                    chunks.delta(0, &json!({"content": text}));
                    self.meter.count(text, chunks);
                }
            }
            Part::Call(mut call) if self.calls < MOST_TOOL_CALLS => {
                call["index"] = json!(self.calls);
                self.calls += 1;
                self.meter.count(&call["function"].to_string(), chunks);
                chunks.delta(0, &json!({"tool_calls": [call]}));
            }
            Part::Call(_) => {}
        }
    }

    fn finish(&mut self, reason: &Value, chunks: &mut Chunks) -> Result<(), Failure> {
        let says_nothing = !self.has_text && self.calls == 0;
        let finish = whole::finish(reason, self.calls > 0, says_nothing, Incoming::in_stream().status)?;
        self.meter.settle(chunks);
        chunks.finish(0, finish, Map::new());
        Ok(())
    }
}
