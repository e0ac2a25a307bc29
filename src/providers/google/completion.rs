//! Chat completions for callers, from answers of this format.

use serde_json::{Value, json};

use super::{Google, complaint, reply, stream, translate};
use crate::providers::completion::{Completed, Completion, Completions, Decoder, Labels};
use crate::providers::written::{self, Said, Spent};
use crate::providers::{Failed, Failure, Finish, Incoming, Model, Outgoing, status, tokens};

impl Completions for Google {
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
    let spent = spent(&body["usageMetadata"]);
    let failed = |failure| Failed { failure, usage: spent.map(|spent| spent.usage) };
    if !body["error"].is_null() {
        return Err(failed(complaint::inside_success(&body, incoming)));
    }
    let candidates = body["candidates"].as_array().map(Vec::as_slice).unwrap_or_default();
    if candidates.is_empty() {
        return Err(failed(without_candidates(&body)));
    }
    let mut choices = Vec::with_capacity(candidates.len());
    for (place, candidate) in (0..).zip(candidates) {
        choices.push(choice(candidate, place, incoming.status).map_err(failed)?);
    }
    Ok(written::completed(body["responseId"].as_str(), &choices, spent, asked, labels))
}

/// A prompt that was blocked has no candidates; there is no other good reason.
pub(super) fn without_candidates(body: &Value) -> Failure {
    if is_blocked(body) { Failure::Refused } else { Failure::Malformed }
}

/// Whether the prompt was blocked, so that no answer comes.
pub(super) fn is_blocked(body: &Value) -> bool {
    body["promptFeedback"]["blockReason"].is_string()
}

fn choice(candidate: &Value, place: u32, status: u16) -> Result<Value, Failure> {
    let mut said = Said::default();
    for part in parts(candidate) {
        match Part::read(part)? {
            Part::Text(text) => said.add(text),
            Part::Call(call) => said.calls.push(call),
            Part::Hidden(_) => {}
        }
    }
    let says_nothing = said.text.is_none() && said.calls.is_empty();
    let finish = finish(&candidate["finishReason"], !said.calls.is_empty(), says_nothing, status)?;
    Ok(said.choice(place, finish))
}

/// The parts of a candidate; none if a filter or a limit left nothing.
pub(super) fn parts(candidate: &Value) -> &[Value] {
    candidate["content"]["parts"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// What a part is to a caller.
pub(super) enum Part<'a> {
    Text(&'a str),
    /// In the format of `tool_calls`.
    Call(Value),
    /// A thought, or nothing.
    Hidden(&'a str),
}

impl<'a> Part<'a> {
    /// Reads a part.
    ///
    /// # Errors
    /// [`Failure::Malformed`] for what chat completions cannot show, such as an image, and which must not get lost.
    pub(super) fn read(part: &'a Value) -> Result<Self, Failure> {
        let text = part["text"].as_str();
        if part["thought"] == true {
            return Ok(Self::Hidden(text.unwrap_or_default()));
        }
        if let Some(text) = text {
            return Ok(Self::Text(text));
        }
        if let Some(call) = part.get("functionCall") {
            return Ok(Self::Call(tool_call(call, &part["thoughtSignature"])?));
        }
        let is_empty =
            part.as_object().is_some_and(|part| part.keys().all(|name| name == "thoughtSignature"));
        if is_empty { Ok(Self::Hidden("")) } else { Err(Failure::Malformed) }
    }
}

/// Calls without an identifier get one; those without arguments are called with none.
fn tool_call(call: &Value, signature: &Value) -> Result<Value, Failure> {
    let name = call["name"].as_str().ok_or(Failure::Malformed)?;
    let id = call["id"].as_str().filter(|id| !id.is_empty());
    let id = id.map_or_else(|| crate::id::new("call"), str::to_owned);
    let none = json!({});
    let arguments = Some(&call["args"]).filter(|arguments| arguments.is_object()).unwrap_or(&none);
    let mut call = written::call(&id, name, arguments);
    if signature.is_string() {
        call["extra_content"] = json!({"google": {"thought_signature": signature}});
    }
    Ok(call)
}

/// Why an answer ended, in the words of chat completions. One that ended by itself must have said something.
pub(super) fn finish(
    reason: &Value,
    calls: bool,
    says_nothing: bool,
    status: u16,
) -> Result<&'static str, Failure> {
    match reply::finish(reason, status)? {
        Finish::Stop if calls => Ok("tool_calls"),
        Finish::Stop if says_nothing => Err(Failure::Malformed),
        Finish::Stop => Ok("stop"),
        Finish::Length => Ok("length"),
        Finish::ContentFilter => Ok("content_filter"),
    }
}

/// What an answer took so far.
pub(super) fn spent(usage: &Value) -> Option<Spent> {
    Some(Spent {
        usage: reply::usage(usage)?,
        cached_tokens: tokens::count(&usage["cachedContentTokenCount"]),
        reasoning_tokens: tokens::count(&usage["thoughtsTokenCount"]),
    })
}
