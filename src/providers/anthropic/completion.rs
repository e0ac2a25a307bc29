//! Chat completions for callers, from messages of this format.

use serde_json::Value;

use super::{Anthropic, complaint, reply, stream, translate};
use crate::providers::completion::{Completed, Completion, Completions, Decoder, Labels};
use crate::providers::written::{self, Said, Spent};
use crate::providers::{Failed, Failure, Incoming, Model, Outgoing, status, tokens};

impl Completions for Anthropic {
    fn chat_request(&self, asked: &Completion<'_>, model: &Model) -> Result<Outgoing, Failure> {
        translate::request(asked, model)
    }

    fn chat_answer(
        &self,
        incoming: &Incoming,
        asked: &Completion<'_>,
        labels: &Labels,
    ) -> Result<Completed, Failed> {
        status::outcome(incoming, |incoming| read(incoming, asked, labels), complaint::read)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::Reader::default())
    }
}

fn read(incoming: &Incoming, asked: &Completion<'_>, labels: &Labels) -> Result<Completed, Failed> {
    let body: Value = serde_json::from_slice(&incoming.body).map_err(|_| Failure::Malformed)?;
    let spent = spent(&body["usage"]);
    let failed = |failure| Failed { failure, usage: spent.map(|spent| spent.usage) };
    // Gateways in between report a failure of theirs inside a 200.
    if body["type"] == "error" || !body["error"].is_null() {
        return Err(failed(complaint::inside_success(&body, incoming)));
    }
    let malformed = || failed(Failure::Malformed);
    let finish = finish(&body["stop_reason"]).ok_or_else(malformed)?;
    let said = said(&body["content"]).ok_or_else(malformed)?;
    if finish == "tool_calls" && said.calls.is_empty() {
        return Err(malformed());
    }
    Ok(written::completed(body["id"].as_str(), &[said.choice(0, finish)], spent, asked, labels))
}

/// Why a message ended, in the words of chat completions; `None` for reasons that belong to nothing a caller can ask
/// for here.
pub(super) fn finish(reason: &Value) -> Option<&'static str> {
    match reason.as_str()? {
        "end_turn" | "stop_sequence" | "pause_turn" => Some("stop"),
        "max_tokens" | "model_context_window_exceeded" => Some("length"),
        "tool_use" => Some("tool_calls"),
        "refusal" => Some("content_filter"),
        _ => None,
    }
}

/// Texts and calls; thoughts are left out. A message may well have no block at all, when there was nothing to say.
fn said(content: &Value) -> Option<Said> {
    let mut said = Said::default();
    for block in content.as_array()? {
        match block["type"].as_str() {
            Some("text") => said.add(block["text"].as_str()?),
            Some("tool_use") => {
                said.calls.push(written::call(
                    block["id"].as_str()?,
                    block["name"].as_str()?,
                    &block["input"],
                ));
            }
            _ => {}
        }
    }
    Some(said)
}

/// What a complete message took.
pub(super) fn spent(usage: &Value) -> Option<Spent> {
    Some(Spent {
        usage: reply::usage(usage)?,
        cached_tokens: tokens::count(&usage["cache_read_input_tokens"]),
        reasoning_tokens: tokens::count(&usage["output_tokens_details"]["thinking_tokens"]),
    })
}
