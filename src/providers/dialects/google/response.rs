//! Parses a complete response with a success status, which may still be a failure.

use serde_json::{Value, json};

use super::{citations, error_body};
use crate::money::Tokens;
use crate::providers::dialects::render::{self, ChoiceBuilder, Reported, TokenUsage};
use crate::providers::dialects::{status, token_count};
use crate::providers::failure::safe_name;
use crate::providers::{
    CompletionRequest, CompletionResponse, FailedCall, Failure, Finish, ProviderResponse, ResponseMeta,
};

/// A parsed response.
pub(super) struct ParsedResponse {
    /// Has at least one candidate.
    body: Value,
    usage: Option<TokenUsage>,
    status: u16,
}

impl ParsedResponse {
    /// Parses what a provider has sent.
    ///
    /// # Errors
    /// With the failure that status and body describe.
    pub(super) fn parse(response: &ProviderResponse) -> Result<Self, FailedCall> {
        status::parse(response, Self::read, error_body::failure)
    }

    fn read(response: &ProviderResponse) -> Result<Self, FailedCall> {
        let body: Value = serde_json::from_slice(&response.body).map_err(|_| Failure::Malformed)?;
        let parsed = Self { usage: token_usage(&body["usageMetadata"]), body, status: response.status };
        if !parsed.body["error"].is_null() {
            return Err(parsed.failed(error_body::failure_in_success(&parsed.body, response)));
        }
        if parsed.body["candidates"][0].is_null() {
            return Err(parsed.failed(without_candidates(&parsed.body)));
        }
        Ok(parsed)
    }

    /// The complete response in the chat-completion format.
    ///
    /// # Errors
    /// If a finish reason is missing, or there is a part that chat completions cannot express.
    pub(super) fn completion(
        &self,
        request: &CompletionRequest<'_>,
        meta: &ResponseMeta,
    ) -> Result<CompletionResponse, FailedCall> {
        let candidates = self.body["candidates"].as_array().map(Vec::as_slice).unwrap_or_default();
        let max_calls = request.max_tool_calls();
        let choices =
            (0..).zip(candidates).map(|(index, candidate)| choice(candidate, index, max_calls, self.status));
        let choices: Vec<Value> =
            choices.collect::<Result<_, _>>().map_err(|failure| self.failed(failure))?;
        let reported = Reported {
            id: self.body["responseId"].as_str(),
            model: self.body["modelVersion"].as_str(),
            usage: self.usage,
        };
        Ok(render::completion_response(&reported, &choices, request, meta))
    }

    fn failed(&self, failure: Failure) -> FailedCall {
        FailedCall { failure, usage: self.usage.map(|usage| usage.tokens) }
    }
}

/// The failure behind a response without candidates, for which a blocked prompt is the only legitimate reason.
fn without_candidates(body: &Value) -> Failure {
    if is_blocked(body) { Failure::Refused } else { Failure::Malformed }
}

/// Whether the prompt was blocked, so that there is no answer.
pub(super) fn is_blocked(body: &Value) -> bool {
    body["promptFeedback"]["blockReason"].is_string()
}

/// A choice with `max_calls` tool calls at most.
fn choice(candidate: &Value, index: u32, max_calls: usize, status: u16) -> Result<Value, Failure> {
    let mut choice = ChoiceBuilder::default();
    for part in parts(candidate) {
        match Part::parse(part)? {
            Part::Text(text) => choice.push_text(text),
            Part::Thought(thought) => choice.reasoning.push_str(thought),
            Part::Image(image) => choice.images.push(image),
            Part::ToolCall(call) if choice.tool_calls.len() < max_calls => choice.tool_calls.push(call),
            Part::ToolCall(_) => {}
        }
    }
    let is_empty = choice.text.is_none() && choice.tool_calls.is_empty() && choice.images.is_empty();
    let Ending { finish, word } = ending(&candidate["finishReason"], status)?;
    let reason = finish_reason(finish, !choice.tool_calls.is_empty(), is_empty)?;
    choice.provider_finish_reason = word;
    let text = choice.text.as_deref().unwrap_or_default();
    choice.annotations =
        citations::annotations(&candidate["groundingMetadata"], &candidate["citationMetadata"], text);
    Ok(choice.build(index, reason))
}

/// The parts of a candidate; there are none if a content filter or a token limit left nothing.
pub(super) fn parts(candidate: &Value) -> &[Value] {
    candidate["content"]["parts"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// What a part means for a caller.
pub(super) enum Part<'a> {
    Text(&'a str),
    /// In the format of `tool_calls`.
    ToolCall(Value),
    /// As an entry of `images`.
    Image(Value),
    /// A thought; may be empty.
    Thought(&'a str),
}

impl<'a> Part<'a> {
    /// Parses a part.
    ///
    /// # Errors
    /// [`Failure::Malformed`] for what chat completions cannot express, such as a film, as it must not be dropped
    /// silently.
    pub(super) fn parse(part: &'a Value) -> Result<Self, Failure> {
        let text = part["text"].as_str();
        if part["thought"] == true {
            return Ok(Self::Thought(text.unwrap_or_default()));
        }
        if let Some(text) = text {
            return Ok(Self::Text(text));
        }
        if let Some(call) = part.get("functionCall") {
            return Ok(Self::ToolCall(tool_call(call, &part["thoughtSignature"])?));
        }
        if let Some(image) = image(part) {
            return Ok(Self::Image(image));
        }
        let is_empty =
            part.as_object().is_some_and(|part| part.keys().all(|name| name == "thoughtSignature"));
        if is_empty { Ok(Self::Thought("")) } else { Err(Failure::Malformed) }
    }
}

/// An image, in the answer itself or at an address.
fn image(part: &Value) -> Option<Value> {
    let (inline, file) = (&part["inlineData"], &part["fileData"]);
    let held = if inline.is_object() { inline } else { file };
    let kind = held["mimeType"].as_str().filter(|kind| kind.starts_with("image/"))?;
    match (inline["data"].as_str(), file["fileUri"].as_str()) {
        (Some(base64), _) => Some(render::image(&format!("data:{kind};base64,{base64}"))),
        (None, uri) => uri.map(render::image),
    }
}

/// A tool call in the format of `tool_calls`. A missing identifier is generated, and missing arguments become `{}`.
fn tool_call(call: &Value, signature: &Value) -> Result<Value, Failure> {
    let name = call["name"].as_str().ok_or(Failure::Malformed)?;
    let id = call["id"].as_str().filter(|id| !id.is_empty());
    let id = id.map_or_else(|| crate::id::new("call"), str::to_owned);
    let none = json!({});
    let arguments = Some(&call["args"]).filter(|arguments| arguments.is_object()).unwrap_or(&none);
    let mut call = render::tool_call(&id, name, arguments);
    if signature.is_string() {
        call["extra_content"] = json!({"google": {"thought_signature": signature}});
    }
    Ok(call)
}

/// Why a candidate ended.
pub(super) struct Ending {
    pub(super) finish: Finish,
    /// Google's word for it, if it has no meaning here.
    pub(super) word: Option<String>,
}

/// Maps a finish reason. A complete answer always has one; without it, the model was not done. One that is not known
/// here is the end of an answer as well.
pub(super) fn ending(reason: &Value, status: u16) -> Result<Ending, Failure> {
    let finish = match reason.as_str().ok_or(Failure::Malformed)? {
        "STOP" => Finish::Stop,
        "MAX_TOKENS" => Finish::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Finish::ContentFilter,
        "OTHER" => return Err(Failure::Broken { status, retry_after: None }),
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" => {
            return Err(Failure::NoAnswer);
        }
        unheard_of => return Ok(Ending { finish: Finish::Stop, word: Some(safe_name(unheard_of)) }),
    };
    Ok(Ending { finish, word: None })
}

/// The finish reason of chat completions for one of this format. An answer that ended regularly must not be empty.
pub(super) fn finish_reason(
    finish: Finish,
    has_calls: bool,
    is_empty: bool,
) -> Result<&'static str, Failure> {
    match finish {
        Finish::Stop if has_calls => Ok("tool_calls"),
        Finish::Stop if is_empty => Err(Failure::NoAnswer),
        Finish::Stop => Ok("stop"),
        Finish::Length => Ok("length"),
        Finish::ContentFilter => Ok("content_filter"),
    }
}

/// The token usage so far. The API omits counts of zero. Thoughts are charged as completion, and counted separately.
pub(super) fn token_usage(usage: &Value) -> Option<TokenUsage> {
    let answer = token_count::count(&usage["candidatesTokenCount"]);
    let thoughts = token_count::count(&usage["thoughtsTokenCount"]);
    let completion = answer.unwrap_or_default() + thoughts.unwrap_or_default();
    let cached_tokens = token_count::count(&usage["cachedContentTokenCount"]);
    let usage = TokenUsage {
        tokens: Tokens {
            cached: cached_tokens.unwrap_or_default(),
            ..Tokens::new(token_count::count(&usage["promptTokenCount"])?, completion)
        },
        cached_tokens,
        reasoning_tokens: thoughts,
    };
    usage.unless_zero()
}
