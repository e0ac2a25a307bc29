//! Parses a complete response with a success status, which may still be a failure, for verifications and for callers.

use serde_json::{Map, Value};

use super::error_body;
use crate::money::Tokens;
use crate::providers::render::{self, ChoiceBuilder, TokenUsage};
use crate::providers::{
    Answer, CompletionRequest, CompletionResponse, FailedCall, Failure, Finish, ProviderResponse,
    ResponseMeta, status, token_count,
};

/// A parsed response.
pub(super) struct ParsedResponse {
    body: Value,
    /// The finish reason of the chat-completion format.
    finish: &'static str,
    /// `None` if the content is not a list of valid blocks.
    choice: Option<ChoiceBuilder>,
    usage: Option<TokenUsage>,
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
        let usage = token_usage(&body["usage"]);
        let failed = |failure| failed(failure, usage);
        // Gateways in between report failures of their own with a status of 200.
        if body["type"] == "error" || !body["error"].is_null() {
            return Err(failed(error_body::failure_in_success(&body, response)));
        }
        // A complete message always has a stop reason.
        let finish = finish_reason(&body["stop_reason"]).ok_or_else(|| failed(Failure::Malformed))?;
        let choice = parse_blocks(&body["content"]);
        Ok(Self { body, finish, choice, usage })
    }

    /// The text as the answer for a verification. Any other stop reason than those of a text means that the model
    /// wanted to do something else, such as call a tool, although none was offered.
    ///
    /// # Errors
    /// If there is no such stop reason, or no text.
    pub(super) fn answer(self) -> Result<Answer, FailedCall> {
        let malformed = || failed(Failure::Malformed, self.usage);
        let finish = Finish::from_reason(self.finish).ok_or_else(malformed)?;
        let is_readable = self.choice.is_some();
        let text = self.choice.and_then(|choice| choice.text);
        // A token limit used up by thinking, or a refusal, leaves no text; the finish reason says so.
        if text.is_none() && finish == Finish::Stop {
            let failure = if is_readable { Failure::NoAnswer } else { Failure::Malformed };
            return Err(failed(failure, self.usage));
        }
        let usage = self.usage.map(|usage| Box::new(usage.tokens));
        Ok(Answer { text: text.unwrap_or_default(), finish, usage })
    }

    /// The complete response for a caller.
    ///
    /// # Errors
    /// If a block cannot be read, or it ended for tool calls and there are none.
    pub(super) fn completion(
        self,
        request: &CompletionRequest<'_>,
        meta: &ResponseMeta,
    ) -> Result<CompletionResponse, FailedCall> {
        let malformed = || failed(Failure::Malformed, self.usage);
        let choice = self.choice.ok_or_else(malformed)?;
        if self.finish == "tool_calls" && choice.tool_calls.is_empty() {
            return Err(malformed());
        }
        let choice = choice.build(0, self.finish);
        Ok(render::completion_response(self.body["id"].as_str(), &[choice], self.usage, request, meta))
    }
}

fn failed(failure: Failure, usage: Option<TokenUsage>) -> FailedCall {
    FailedCall { failure, usage: usage.map(|usage| usage.tokens) }
}

/// The finish reason of chat completions for a stop reason; `None` for those of features that callers cannot request
/// here.
pub(super) fn finish_reason(reason: &Value) -> Option<&'static str> {
    match reason.as_str()? {
        "end_turn" | "stop_sequence" | "pause_turn" => Some("stop"),
        "max_tokens" | "model_context_window_exceeded" => Some("length"),
        "tool_use" => Some("tool_calls"),
        "refusal" => Some("content_filter"),
        _ => None,
    }
}

/// Texts and tool calls, without thinking. A message may have no blocks at all if there was nothing to say.
fn parse_blocks(content: &Value) -> Option<ChoiceBuilder> {
    let mut choice = ChoiceBuilder::default();
    for block in content.as_array()? {
        match block["type"].as_str() {
            Some("text") => choice.push_text(block["text"].as_str()?),
            Some("tool_use") => {
                // A call without arguments: callers parse them as an object nevertheless.
                let none = Value::Object(Map::new());
                let input = Some(&block["input"]).filter(|input| input.is_object()).unwrap_or(&none);
                let call = render::tool_call(block["id"].as_str()?, block["name"].as_str()?, input);
                choice.tool_calls.push(call);
            }
            _ => {}
        }
    }
    Some(choice)
}

/// The token usage of a message.
fn token_usage(usage: &Value) -> Option<TokenUsage> {
    let mut counts = TokenCounts::default();
    counts.update(usage);
    counts.usage()
}

/// The counts of a `usage` object that matter. Nothing else of it is kept, as a stream reports it any number of times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TokenCounts {
    input: Option<u64>,
    /// The part of the prompt that was written to the cache; not in `input`.
    written: Option<u64>,
    /// The part of the prompt that was read from the cache; not in `input`.
    read: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
}

impl TokenCounts {
    /// Takes over the counts of a report; those it leaves out stay as they were.
    pub(super) fn update(&mut self, usage: &Value) {
        let Self { input, written, read, output, thinking } = self;
        for (count, reported) in [
            (input, &usage["input_tokens"]),
            (written, &usage["cache_creation_input_tokens"]),
            (read, &usage["cache_read_input_tokens"]),
            (output, &usage["output_tokens"]),
            (thinking, &usage["output_tokens_details"]["thinking_tokens"]),
        ] {
            *count = token_count::count(reported).or(*count);
        }
    }

    /// The usage, if there is a report of it.
    pub(super) fn usage(self) -> Option<TokenUsage> {
        let (cached, cache_written) = (self.read.unwrap_or_default(), self.written.unwrap_or_default());
        let usage = TokenUsage {
            tokens: Tokens {
                cached,
                cache_written,
                ..Tokens::new(self.input? + cached + cache_written, self.output?)
            },
            cached_tokens: self.read,
            reasoning_tokens: self.thinking,
        };
        usage.unless_zero()
    }
}
