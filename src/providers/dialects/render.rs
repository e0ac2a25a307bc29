//! Renders answers in the chat-completion format, for dialects of other formats.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::money::{Tokens, Usage};
use crate::providers::catalog::estimate;
use crate::providers::completion::{
    CompletionRequest, CompletionResponse, PROVIDER_FINISH_REASON, ResponseMeta,
};
use crate::providers::stream::chunk_writer::{ChunkWriter, usage_json};

/// The token usage of an answer, in as much detail as the provider reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::providers) struct TokenUsage {
    pub(in crate::providers) tokens: Tokens,
    /// As in `tokens`; `None` if the provider does not say.
    pub(in crate::providers) cached_tokens: Option<u64>,
    /// The tokens of the answer that are reasoning, which the caller does not see.
    pub(in crate::providers) reasoning_tokens: Option<u64>,
}

impl TokenUsage {
    /// `None` for nothing but zeros: no call uses no tokens, so they are no report.
    pub(in crate::providers) fn unless_zero(self) -> Option<Self> {
        (self.tokens.total() > 0).then_some(self)
    }

    /// The documented usage object.
    pub(in crate::providers) fn to_json(self) -> Value {
        let mut value = usage_json(self.tokens, false);
        if let Some(cached) = self.cached_tokens {
            value["prompt_tokens_details"] = json!({"cached_tokens": cached});
        }
        // As `OpenRouter` calls it.
        if self.tokens.cache_written > 0 {
            value["prompt_tokens_details"]["cache_write_tokens"] = json!(self.tokens.cache_written);
        }
        if let Some(reasoning) = self.reasoning_tokens {
            value["completion_tokens_details"] = json!({"reasoning_tokens": reasoning});
        }
        value
    }
}

/// Where an answer has the thoughts that its provider signed, as `LiteLLM` calls it.
pub(in crate::providers) const THINKING_BLOCKS: &str = "thinking_blocks";

/// Collects the content of one choice.
#[derive(Debug, Default)]
pub(in crate::providers) struct ChoiceBuilder {
    /// The concatenated texts; `None` if there are none.
    pub(in crate::providers) text: Option<String>,
    /// In the format of `tool_calls`.
    pub(in crate::providers) tool_calls: Vec<Value>,
    /// What the model thought before, concatenated.
    pub(in crate::providers) reasoning: String,
    /// The thoughts that the provider signed, to be sent back with the answer; each a block of its format.
    pub(in crate::providers) thinking_blocks: Vec<Value>,
    /// As [`image`] makes them.
    pub(in crate::providers) images: Vec<Value>,
    /// The sources of parts of the text.
    pub(in crate::providers) annotations: Vec<Value>,
    /// The provider's own word for an end that has no name in this format.
    pub(in crate::providers) provider_finish_reason: Option<String>,
}

impl ChoiceBuilder {
    /// Appends a text.
    pub(in crate::providers) fn push_text(&mut self, text: &str) {
        self.text.get_or_insert_default().push_str(text);
    }

    /// The choice, with a finish reason of the chat-completion format.
    pub(in crate::providers) fn build(self, index: u32, finish: &str) -> Value {
        let mut message = Map::new();
        message.insert("role".to_owned(), json!("assistant"));
        // Clients expect a string that they can take the length of; only with tool calls they expect null.
        let no_text = if self.tool_calls.is_empty() { json!("") } else { Value::Null };
        message.insert("content".to_owned(), self.text.map_or(no_text, Value::from));
        if !self.reasoning.is_empty() {
            message.insert("reasoning_content".to_owned(), Value::from(self.reasoning));
        }
        let lists = [
            (THINKING_BLOCKS, self.thinking_blocks),
            ("tool_calls", self.tool_calls),
            ("images", self.images),
            ("annotations", self.annotations),
        ];
        for (name, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            message.insert(name.to_owned(), Value::from(list));
        }
        let mut choice = json!({"index": index, "message": message, "finish_reason": finish});
        if let Some(word) = self.provider_finish_reason {
            choice[PROVIDER_FINISH_REASON] = json!(word);
        }
        choice
    }
}

/// An image in an answer, as an entry of `images`, as `OpenRouter` has them; `url` may hold the image itself.
pub(in crate::providers) fn image(url: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": url}})
}

/// An entry of `annotations` for a source with an address; the range is in characters of the answer.
pub(in crate::providers) fn url_citation(
    url: &str,
    title: Option<&str>,
    cited: Option<&str>,
    (start, end): (usize, usize),
) -> Value {
    let mut citation =
        json!({"start_index": start, "end_index": end, "url": url, "title": title.unwrap_or_default()});
    if let Some(cited) = cited {
        citation["content"] = json!(cited);
    }
    json!({"type": "url_citation", "url_citation": citation})
}

/// A tool call in the format of `tool_calls`; the `arguments` are serialized into a string.
pub(in crate::providers) fn tool_call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
}

/// What a provider says about a complete response, as far as it does.
#[derive(Clone, Copy)]
pub(in crate::providers) struct Reported<'a> {
    pub(in crate::providers) id: Option<&'a str>,
    pub(in crate::providers) model: Option<&'a str>,
    pub(in crate::providers) usage: Option<TokenUsage>,
}

/// A complete response. If the provider did not report the usage, it is estimated and marked as such.
pub(in crate::providers) fn completion_response(
    reported: &Reported<'_>,
    choices: &[Value],
    request: &CompletionRequest<'_>,
    meta: &ResponseMeta,
) -> CompletionResponse {
    let (usage, shown) = if let Some(used) = &reported.usage {
        (Usage::reported(used.tokens), used.to_json())
    } else {
        let written = choices.iter().map(|choice| estimate::written_characters(&choice["message"])).sum();
        let completion = estimate::length_tokens(written);
        let tokens = Tokens::new(request.prompt_tokens, completion);
        (Usage::estimated(tokens), usage_json(tokens, true))
    };
    let id =
        reported.id.filter(|id| !id.is_empty()).map_or_else(|| crate::id::new("chatcmpl"), str::to_owned);
    let body = json!({
        "id": id,
        "object": "chat.completion",
        "created": meta.created,
        "model": meta.model(reported.model),
        "choices": choices,
        "usage": shown,
    });
    CompletionResponse { body: Bytes::from(body.to_string()), usage, is_native: false }
}

/// Tracks the usage of a stream whose provider reports it only now and then. What has arrived since the last report is
/// estimated, so that a stream that ends early is charged for its prompt and for what came of its answer.
#[derive(Debug, Default)]
pub(in crate::providers) struct UsageMeter {
    reported: Option<TokenUsage>,
    characters: u64,
    /// Whether text has arrived since the provider's last report.
    is_outdated: bool,
}

impl UsageMeter {
    /// Counts text that has arrived, whether it is shown to the caller or not.
    pub(in crate::providers) fn count(&mut self, text: &str, chunks: &mut ChunkWriter) {
        let characters = text.chars().count();
        self.characters = self.characters.saturating_add(characters as u64);
        self.is_outdated = true;
        chunks.count(characters);
        if let Some(usage) = self.estimate() {
            chunks.record_estimate(usage, None);
        }
    }

    /// Records a report of the provider, which covers everything that has arrived so far.
    pub(in crate::providers) fn report(&mut self, usage: TokenUsage, chunks: &mut ChunkWriter) {
        self.reported = Some(usage);
        self.is_outdated = false;
        chunks.record_usage(usage.tokens, Some(&usage.to_json().to_string()));
    }

    /// To be called at the end: marks the usage as estimated if the provider's last report is outdated.
    pub(in crate::providers) fn finish(&self, chunks: &mut ChunkWriter) {
        if let Some(usage) = self.estimate().filter(|_| self.is_outdated) {
            chunks.record_estimate(usage, Some(&usage_json(usage, true).to_string()));
        }
    }

    fn estimate(&self) -> Option<Tokens> {
        let reported = self.reported?.tokens;
        let estimated = estimate::length_tokens(self.characters);
        Some(Tokens { completion: reported.completion.max(estimated), ..reported })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::clock::Clock;
    use crate::providers::{Kind, ProviderResponse, dialect};

    /// The usage that is reported by a response in this format.
    fn reported(kind: Kind, body: &Value) -> Option<Tokens> {
        let (headers, body) = (HeaderMap::new(), Bytes::from(body.to_string()));
        let response = ProviderResponse { status: 200, headers, body, clock: Clock::system() };
        let request = CompletionRequest::default();
        let completed =
            dialect(kind).unwrap().response(&response, &request, &ResponseMeta::default()).unwrap();
        (!completed.usage.is_estimated).then_some(completed.usage.tokens)
    }

    #[test]
    fn zeros_are_no_report_in_any_format() {
        let all = |prompt: u64, completion: u64| {
            let openai = json!({
                "choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": prompt, "completion_tokens": completion},
            });
            let anthropic = json!({
                "content": [{"type": "text", "text": "hi"}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": prompt, "output_tokens": completion},
            });
            let google = json!({
                "candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": prompt, "candidatesTokenCount": completion},
            });
            [(Kind::OpenAi, openai), (Kind::Anthropic, anthropic), (Kind::Google, google)]
                .map(|(kind, body)| reported(kind, &body))
        };
        assert_eq!(all(0, 0), [None; 3]);
        assert_eq!(all(3, 0), [Some(Tokens::new(3, 0)); 3]);
    }
}
