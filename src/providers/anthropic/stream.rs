//! A streamed message: `message_start`, then for each block its start, deltas and stop, then `message_delta` with the
//! reason and the usage, then `message_stop`. An answer is whole with its reason; gateways in between that leave out
//! what comes behind it take nothing from it.
//!
//! Blocks come one after the other and are told by their index; those that call a tool are numbered anew, as chat
//! completions count only them. Thoughts are counted but not shown. Events of other types are left out, as the API
//! reserves the right to add some.

use serde_json::{Map, Value, json};

use super::{complaint, whole};
use crate::providers::chunks::Chunks;
use crate::providers::completion::{Decoder, MOST_TOOL_CALLS, Step};
use crate::providers::sse::Event;
use crate::providers::written::Meter;
use crate::providers::{Failure, Incoming};

/// The state of one message.
#[derive(Debug, Default)]
pub(super) struct Reader {
    calls: Vec<Call>,
    /// The last word on what the message took; `message_delta` repeats only a part of it.
    usage: Map<String, Value>,
    is_finished: bool,
    meter: Meter,
}

/// A block that calls a tool.
#[derive(Debug)]
struct Call {
    /// Of the block.
    index: u64,
    /// The arguments, if they came with the start.
    input: Value,
    has_deltas: bool,
    is_open: bool,
}

impl Decoder for Reader {
    fn read(&mut self, event: &Event<'_>, chunks: &mut Chunks) -> Result<Step, Failure> {
        let Ok(body) = serde_json::from_slice::<Value>(event.data) else { return Ok(Step::Unreadable) };
        let kind = body["type"].as_str();
        // What comes behind the reason belongs to no answer: it is neither passed on nor counted.
        if self.is_finished && !matches!(kind, Some("message_delta" | "message_stop")) {
            return Ok(Step::Skipped);
        }
        let known = match kind {
            Some("message_start") => self.start(&body["message"], chunks),
            Some("content_block_start") => self.open(&body, chunks),
            Some("content_block_delta") => self.go_on(&body, chunks),
            Some("content_block_stop") => {
                self.close(&body, chunks);
                Some(())
            }
            Some("message_delta") => {
                self.account(&body["usage"], chunks);
                if body["delta"]["stop_reason"].is_string() {
                    self.finish(&body["delta"]["stop_reason"], chunks)?;
                }
                Some(())
            }
            Some("message_stop") if self.is_finished => return Ok(Step::End),
            Some("message_stop") => return Err(Failure::Malformed),
            Some("error") => return Err(complaint::inside_success(&body, &Incoming::in_stream())),
            Some(_) => Some(()),
            // Gateways in between have ways of their own to fail.
            None if !body["error"].is_null() => {
                return Err(complaint::inside_success(&body, &Incoming::in_stream()));
            }
            None => None,
        };
        Ok(if known.is_some() { Step::More } else { Step::Skipped })
    }
}

impl Reader {
    fn start(&mut self, message: &Value, chunks: &mut Chunks) -> Option<()> {
        chunks.begin(message["id"].as_str(), None);
        chunks.delta(0, &json!({"role": "assistant", "content": ""}));
        self.account(&message["usage"], chunks);
        message.as_object().map(|_| ())
    }

    fn open(&mut self, body: &Value, chunks: &mut Chunks) -> Option<()> {
        let (index, block) = (body["index"].as_u64()?, &body["content_block"]);
        match block["type"].as_str()? {
            "text" => self.say(block["text"].as_str().unwrap_or_default(), chunks),
            "tool_use" if self.calls.len() < MOST_TOOL_CALLS => {
                let call = json!({
                    "index": self.calls.len(),
                    "id": block["id"].as_str()?,
                    "type": "function",
                    "function": {"name": block["name"].as_str()?, "arguments": ""},
                });
                chunks.delta(0, &json!({"tool_calls": [call]}));
                let input = block["input"].clone();
                self.calls.push(Call { index, input, has_deltas: false, is_open: true });
            }
            _ => {}
        }
        Some(())
    }

    fn go_on(&mut self, body: &Value, chunks: &mut Chunks) -> Option<()> {
        let delta = &body["delta"];
        match delta["type"].as_str()? {
            "text_delta" => self.say(delta["text"].as_str()?, chunks),
            "thinking_delta" => self.meter.count(delta["thinking"].as_str()?, chunks),
            "input_json_delta" => {
                let (place, call) = self.call(body)?;
                let piece = delta["partial_json"].as_str()?;
                if !piece.is_empty() {
                    call.has_deltas = true;
                    self.argue(place, piece, chunks);
                }
            }
            _ => {}
        }
        Some(())
    }

    fn close(&mut self, body: &Value, chunks: &mut Chunks) {
        let Some((place, call)) = self.call(body) else { return };
        call.is_open = false;
        if !call.has_deltas {
            // A tool without arguments: callers read them as JSON all the same.
            let input = if call.input.is_object() { call.input.to_string() } else { "{}".to_owned() };
            self.argue(place, &input, chunks);
        }
    }

    fn finish(&mut self, reason: &Value, chunks: &mut Chunks) -> Result<(), Failure> {
        if self.is_finished {
            return Ok(());
        }
        let finish = whole::finish(reason).ok_or(Failure::Malformed)?;
        // Only an answer that was cut short may end within a call.
        let may_be_open = matches!(finish, "length" | "content_filter");
        let is_open = self.calls.iter().any(|call| call.is_open);
        if (finish == "tool_calls" && self.calls.is_empty()) || (is_open && !may_be_open) {
            return Err(Failure::Malformed);
        }
        self.meter.settle(chunks);
        chunks.finish(0, finish, Map::new());
        self.is_finished = true;
        Ok(())
    }

    fn say(&mut self, text: &str, chunks: &mut Chunks) {
        if !text.is_empty() {
            chunks.delta(0, &json!({"content": text}));
            self.meter.count(text, chunks);
        }
    }

    fn argue(&mut self, place: usize, piece: &str, chunks: &mut Chunks) {
        chunks.delta(0, &json!({"tool_calls": [{"index": place, "function": {"arguments": piece}}]}));
        self.meter.count(piece, chunks);
    }

    /// The open call that an event is about, and its place among the calls.
    fn call(&mut self, body: &Value) -> Option<(usize, &mut Call)> {
        let index = body["index"].as_u64()?;
        self.calls.iter_mut().enumerate().find(|(_, call)| call.index == index && call.is_open)
    }

    /// Counts in `message_delta` are those of the whole message so far; what it leaves out was said at the start.
    fn account(&mut self, usage: &Value, chunks: &mut Chunks) {
        let Some(given) = usage.as_object() else { return };
        let given = given.iter().filter(|(_, count)| !count.is_null());
        self.usage.extend(given.map(|(name, count)| (name.clone(), count.clone())));
        if let Some(spent) = whole::spent(&Value::Object(self.usage.clone())) {
            self.meter.report(spent, chunks);
        }
    }
}
