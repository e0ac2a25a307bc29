//! Parses a complete response with a success status, which may still be a failure.

use serde_json::{Map, Value, json};

use super::error_body;
use crate::money::Tokens;
use crate::providers::dialects::render::{self, ChoiceBuilder, Reported, TokenUsage};
use crate::providers::dialects::{status, token_count};
use crate::providers::failure::safe_name;
use crate::providers::{
    CompletionRequest, CompletionResponse, FailedCall, Failure, ProviderResponse, ResponseMeta,
};

/// A parsed response.
pub(super) struct ParsedResponse {
    body: Value,
    ending: Ending,
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
        let ending = ending(&body["stop_reason"]).ok_or_else(|| failed(Failure::Malformed))?;
        let choice = parse_blocks(&body["content"]);
        Ok(Self { body, ending, choice, usage })
    }

    /// The complete response in the chat-completion format.
    ///
    /// # Errors
    /// If a block cannot be read, or it ended for tool calls and there are none.
    pub(super) fn completion(
        self,
        request: &CompletionRequest<'_>,
        meta: &ResponseMeta,
    ) -> Result<CompletionResponse, FailedCall> {
        let malformed = || failed(Failure::Malformed, self.usage);
        let mut choice = self.choice.ok_or_else(malformed)?;
        let Ending { finish, word } = self.ending;
        if finish == "tool_calls" && choice.tool_calls.is_empty() {
            return Err(malformed());
        }
        choice.provider_finish_reason = word;
        let choice = choice.build(0, finish);
        let reported =
            Reported { id: self.body["id"].as_str(), model: self.body["model"].as_str(), usage: self.usage };
        Ok(render::completion_response(&reported, &[choice], request, meta))
    }
}

fn failed(failure: Failure, usage: Option<TokenUsage>) -> FailedCall {
    FailedCall { failure, usage: usage.map(|usage| usage.tokens) }
}

/// Why a message ended.
pub(super) struct Ending {
    /// The finish reason of the chat-completion format.
    pub(super) finish: &'static str,
    /// Anthropic's word for it, if it has no meaning here.
    pub(super) word: Option<String>,
}

/// The end that a stop reason means, `None` without one. One that is not known here is the end of an answer as well.
pub(super) fn ending(reason: &Value) -> Option<Ending> {
    let finish = match reason.as_str()? {
        "end_turn" | "stop_sequence" | "pause_turn" => "stop",
        "max_tokens" | "model_context_window_exceeded" => "length",
        "tool_use" => "tool_calls",
        "refusal" => "content_filter",
        unheard_of => return Some(Ending { finish: "stop", word: Some(safe_name(unheard_of)) }),
    };
    Some(Ending { finish, word: None })
}

/// The annotation for a citation of the text between two places, in characters of the whole answer. Those that name no
/// address, but a document of the request, stay as they are.
pub(super) fn annotation(citation: &Value, range: (usize, usize)) -> Value {
    let is_address = |text: &&str| text.starts_with("https://") || text.starts_with("http://");
    let sources = [&citation["url"], &citation["source"]];
    match sources.into_iter().filter_map(Value::as_str).find(is_address) {
        Some(url) => {
            render::url_citation(url, citation["title"].as_str(), citation["cited_text"].as_str(), range)
        }
        None => citation.clone(),
    }
}

/// A block of thoughts as callers get it, to send it back with the answer; `None` if it is not signed.
pub(super) fn signed_thought(block: &Value) -> Option<Value> {
    let text = |name: &str| block[name].as_str().filter(|text| !text.is_empty());
    if let Some(data) = text("data") {
        return Some(json!({"type": "redacted_thinking", "data": data}));
    }
    let thinking = block["thinking"].as_str()?;
    Some(json!({"type": "thinking", "thinking": thinking, "signature": text("signature")?}))
}

/// Texts with their sources, thinking and tool calls. A message may have no blocks at all if there was nothing to say.
fn parse_blocks(content: &Value) -> Option<ChoiceBuilder> {
    let mut choice = ChoiceBuilder::default();
    for block in content.as_array()? {
        match block["type"].as_str() {
            Some("text") => {
                let characters =
                    |choice: &ChoiceBuilder| choice.text.as_deref().map_or(0, |text| text.chars().count());
                let citations = block["citations"].as_array().map(Vec::as_slice).unwrap_or_default();
                let start = if citations.is_empty() { 0 } else { characters(&choice) };
                choice.push_text(block["text"].as_str()?);
                if !citations.is_empty() {
                    let range = (start, characters(&choice));
                    choice.annotations.extend(citations.iter().map(|citation| annotation(citation, range)));
                }
            }
            Some("thinking") => {
                choice.reasoning.push_str(block["thinking"].as_str().unwrap_or_default());
                choice.thinking_blocks.extend(signed_thought(block));
            }
            Some("redacted_thinking") => choice.thinking_blocks.extend(signed_thought(block)),
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
