//! A whole answer that came with a status of success, which does not mean that it is one: what a verification and what a
//! caller is told of it.

use serde_json::{Value, json};

use super::complaint;
use crate::money::Tokens;
use crate::providers::written::{self, Said, Spent};
use crate::providers::{
    Answer, Completed, Completion, Failed, Failure, Finish, Incoming, Labels, status, tokens,
};

/// What an answer holds.
pub(super) struct Whole {
    /// With at least one candidate.
    body: Value,
    spent: Option<Spent>,
    status: u16,
}

impl Whole {
    /// What a provider has sent.
    ///
    /// # Errors
    /// With the failure that status and body tell of.
    pub(super) fn of(incoming: &Incoming) -> Result<Self, Failed> {
        status::outcome(incoming, Self::read, complaint::read)
    }

    fn read(incoming: &Incoming) -> Result<Self, Failed> {
        let body: Value = serde_json::from_slice(&incoming.body).map_err(|_| Failure::Malformed)?;
        let whole = Self { spent: spent(&body["usageMetadata"]), body, status: incoming.status };
        if !whole.body["error"].is_null() {
            return Err(whole.failed(complaint::inside_success(&whole.body, incoming)));
        }
        if whole.body["candidates"][0].is_null() {
            return Err(whole.failed(without_candidates(&whole.body)));
        }
        Ok(whole)
    }

    /// The first candidate's text, for a verification; what other parts there may be, nobody has asked for.
    ///
    /// # Errors
    /// If there is no end of a text, or no text.
    pub(super) fn answer(&self) -> Result<Answer, Failed> {
        let candidate = &self.body["candidates"][0];
        let finish =
            reason(&candidate["finishReason"], self.status).map_err(|failure| self.failed(failure))?;
        let mut said = Said::default();
        let shown = parts(candidate).iter().filter(|part| part["thought"] != true);
        shown.filter_map(|part| part["text"].as_str()).for_each(|text| said.add(text));
        // A filter, or a limit that thinking used up, leaves no parts; the finish says so.
        if said.text.is_none() && finish == Finish::Stop {
            return Err(self.failed(Failure::NoAnswer));
        }
        Ok(Answer { text: said.text.unwrap_or_default(), finish, usage: self.usage() })
    }

    /// All of it, for a caller.
    ///
    /// # Errors
    /// If there is no end, or something that chat completions cannot show.
    pub(super) fn completed(&self, asked: &Completion<'_>, labels: &Labels) -> Result<Completed, Failed> {
        let candidates = self.body["candidates"].as_array().map(Vec::as_slice).unwrap_or_default();
        let choices = (0..).zip(candidates).map(|(place, candidate)| choice(candidate, place, self.status));
        let choices: Vec<Value> =
            choices.collect::<Result<_, _>>().map_err(|failure| self.failed(failure))?;
        Ok(written::completed(self.body["responseId"].as_str(), &choices, self.spent, asked, labels))
    }

    fn usage(&self) -> Option<Tokens> {
        self.spent.map(|spent| spent.usage)
    }

    fn failed(&self, failure: Failure) -> Failed {
        Failed { failure, usage: self.usage() }
    }
}

/// A prompt that was blocked has no candidates; there is no other good reason.
fn without_candidates(body: &Value) -> Failure {
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

/// Why an answer ended. A whole one always says it; without a reason the model was not done.
fn reason(reason: &Value, status: u16) -> Result<Finish, Failure> {
    match reason.as_str() {
        Some("STOP") => Ok(Finish::Stop),
        Some("MAX_TOKENS") => Ok(Finish::Length),
        Some("SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII") => {
            Ok(Finish::ContentFilter)
        }
        Some("OTHER") => Err(Failure::Broken { status }),
        Some("MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS") => {
            Err(Failure::NoAnswer)
        }
        _ => Err(Failure::Malformed),
    }
}

/// Why an answer ended, in the words of chat completions. One that ended by itself must have said something.
pub(super) fn finish(
    reason: &Value,
    calls: bool,
    says_nothing: bool,
    status: u16,
) -> Result<&'static str, Failure> {
    match self::reason(reason, status)? {
        Finish::Stop if calls => Ok("tool_calls"),
        Finish::Stop if says_nothing => Err(Failure::NoAnswer),
        Finish::Stop => Ok("stop"),
        Finish::Length => Ok("length"),
        Finish::ContentFilter => Ok("content_filter"),
    }
}

/// What an answer took so far. Counts of zero are left out. Thoughts are charged as answer and counted apart from it.
pub(super) fn spent(usage: &Value) -> Option<Spent> {
    let answer = tokens::count(&usage["candidatesTokenCount"]);
    let thoughts = tokens::count(&usage["thoughtsTokenCount"]);
    Some(Spent {
        usage: Tokens {
            prompt: tokens::count(&usage["promptTokenCount"])?,
            completion: answer.unwrap_or_default() + thoughts.unwrap_or_default(),
        },
        cached_tokens: tokens::count(&usage["cachedContentTokenCount"]),
        reasoning_tokens: thoughts,
    })
}
