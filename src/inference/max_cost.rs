//! The most that a call may cost, which is reserved from a budget before the call begins.
//!
//! No tokenizer makes more tokens than a text has bytes, so a prompt counts with the bytes of its request: what it
//! says, its tools and schemas, and the names around them, which stand for what formats add. Images count with
//! [`IMAGE_TOKENS`] each, whatever their size. With content whose size is not known (a PDF, which is compressed; a file
//! by id or address; a video), a prompt may be as long as the model's longest. An answer counts with its maximum length:
//! the caller's limit, otherwise the model's.

use super::prompt_parts::PromptParts;
use crate::json::reader::Json;
use crate::money::{NanoUsd, Price, Tokens};
use crate::providers::catalog::estimate;
use crate::providers::{Chat, CompletionRequest, Failure, Provider};
use crate::usage::BudgetError;

/// The longest answer, in tokens, if neither the model's maximum is known nor the caller sets a limit.
const DEFAULT_MAX_ANSWER_TOKENS: u64 = 32_768;

/// The most tokens that an image counts as with any provider: `OpenAI`'s models divide one into 10,000 patches at most.
const IMAGE_TOKENS: u64 = 10_000;

/// The longest prompt, in tokens, if the model's is not known: the largest context of the models that there are.
const DEFAULT_MAX_PROMPT_TOKENS: u64 = 1_000_000;

/// What JSON adds to a field of an object: quotes, colon and comma.
const FIELD_SIGNS: usize = 4;

/// The most that a caller's completion may cost; `None` if the price is unknown.
pub(super) fn for_completion(
    request: &CompletionRequest<'_>,
    provider: &Provider,
    model: &str,
    price: Option<Price>,
) -> Option<NanoUsd> {
    let completion =
        max_completion_tokens(request, provider, model).unwrap_or_else(|| default_completion_tokens(request));
    let prompt = max_prompt_tokens(request, provider.max_input_tokens(model));
    Some(price?.at_most(Tokens::new(prompt, completion)))
}

/// The most tokens that the answers to a caller's completion may have, all choices together; `None` if neither the
/// caller sets a limit nor the model's is known.
pub(super) fn max_completion_tokens(
    request: &CompletionRequest<'_>,
    provider: &Provider,
    model: &str,
) -> Option<u64> {
    if request.is_for_embeddings() {
        return Some(0);
    }
    // Providers differ in which of the two names they honour. That of Responses limits nothing in a chat completion.
    let of_responses = request.native.as_ref().map(|_| "max_output_tokens");
    let limits = ["max_tokens", "max_completion_tokens"].into_iter().chain(of_responses);
    let limit = limits.filter_map(|name| request.fields.read::<u64>(name)).max();
    let each = max_answer_tokens(limit, provider.max_output_tokens(model))?;
    Some(each.saturating_mul(u64::from(request.choices)))
}

/// What is reserved for the answers where [`max_completion_tokens`] is unknown.
pub(super) fn default_completion_tokens(request: &CompletionRequest<'_>) -> u64 {
    DEFAULT_MAX_ANSWER_TOKENS * u64::from(request.choices)
}

/// The most tokens that a caller's prompt may have; `longest` is the longest one that the model takes, if that is known.
fn max_prompt_tokens(request: &CompletionRequest<'_>, longest: Option<u64>) -> u64 {
    let length = |(name, value): (&str, Json<'_>)| name.len() + value.get().len() + FIELD_SIGNS;
    let bytes: usize = request.fields.iter().map(length).sum();
    let bytes = bytes.max(request.native.as_ref().map_or(0, |native| native.length()));
    let items = request.fields.get("messages").or_else(|| request.fields.get("input"));
    let parts = items.map_or_else(PromptParts::default, PromptParts::of);
    let unknown = if parts.has_unknown { longest.unwrap_or(DEFAULT_MAX_PROMPT_TOKENS) } else { 0 };
    bytes.saturating_sub(parts.image_bytes) as u64 + parts.images * IMAGE_TOKENS + unknown
}

/// The most that a conversation of our own may cost; `None` if the price is unknown.
pub(super) fn for_chat(
    chat: &Chat,
    provider: &Provider,
    model: &str,
    price: Option<Price>,
) -> Option<NanoUsd> {
    let completion = max_answer_tokens(chat.max_tokens.map(u64::from), provider.max_output_tokens(model));
    let completion = completion.unwrap_or(DEFAULT_MAX_ANSWER_TOKENS);
    Some(price?.at_most(Tokens::new(estimate::max_prompt_tokens(chat), completion)))
}

/// The longest answer in tokens: the caller's limit, but never more than the model's maximum; `None` without either.
fn max_answer_tokens(limit: Option<u64>, maximum: Option<u64>) -> Option<u64> {
    limit.into_iter().chain(maximum).min()
}

impl From<BudgetError> for Failure {
    fn from(unpaid: BudgetError) -> Self {
        match unpaid {
            BudgetError::Exceeded(shortage) => Self::BudgetExceeded(shortage),
            BudgetError::PriceUnknown => Self::PriceUnknown,
            BudgetError::Unavailable => Self::StoreUnavailable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::json::fields::Fields;
    use crate::providers::{Kind, Settings};

    /// The most that a completion may cost, at a dollar for a million input tokens and two for output.
    fn max_cost(model: &str, body: &str, choices: u32) -> Option<NanoUsd> {
        let settings = Settings::new("openai", Kind::OpenAi, "http://127.0.0.1:9/v1");
        let provider = Provider::new(settings, Clock::system()).unwrap();
        let fields: Fields<'_> = serde_json::from_str(body).unwrap();
        let request = CompletionRequest {
            fields,
            stream: false,
            include_usage: false,
            choices,
            prompt_tokens: 1,
            native: None,
        };
        let price = Price::new(NanoUsd(1_000_000_000), NanoUsd(2_000_000_000));
        for_completion(&request, &provider, model, Some(price))
    }

    #[test]
    fn the_caller_s_limit_applies_up_to_the_model_s_own() {
        let check = |model: &str, body: &str, choices: u32, tokens: u64| {
            let prompt = body.len() as u64 - 1;
            assert_eq!(
                max_cost(model, body, choices),
                Some(NanoUsd(prompt * 1_000 + tokens * 2_000)),
                "{body}"
            );
        };
        check("unknown", r#"{"top_p":1}"#, 1, DEFAULT_MAX_ANSWER_TOKENS);
        check("gpt-5.4-mini", r#"{"top_p":1}"#, 1, 128_000);
        check("gpt-5.4-mini", r#"{"max_tokens":100}"#, 3, 300);
        check("gpt-5.4-mini", r#"{"max_tokens":4294967295}"#, 1, 128_000);
        check("unknown", r#"{"max_tokens":10,"max_completion_tokens":20}"#, 1, 20);
        // No limit of a chat completion.
        check("unknown", r#"{"max_output_tokens":1}"#, 1, DEFAULT_MAX_ANSWER_TOKENS);
    }

    #[test]
    fn a_prompt_counts_with_its_bytes_and_an_image_with_a_fixed_number() {
        let of = |content: &str| {
            let body = format!(r#"{{"max_tokens":1,"messages":[{{"role":"user","content":{content}}}]}}"#);
            max_cost("unknown", &body, 1).unwrap().0 / 1_000
        };
        let empty = of(r#""""#);
        assert_eq!(of(&format!(r#""{}""#, "𒀀".repeat(1_000))), empty + 4_000);
        let image = |bytes: usize| {
            let data = "A".repeat(bytes);
            format!(r#"{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{data}"}}}}"#)
        };
        let (small, large) = (of(&format!("[{}]", image(10))), of(&format!("[{}]", image(1_000_000))));
        assert_eq!((small, large), (empty + IMAGE_TOKENS, empty + IMAGE_TOKENS));
        assert_eq!(of(&format!("[{},{}]", image(1), image(1))), empty + 2 * IMAGE_TOKENS + 1);

        let pdf = r#"[{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}]"#;
        assert_eq!(of(pdf), empty - 2 + pdf.len() as u64 + DEFAULT_MAX_PROMPT_TOKENS);
        let body = format!(r#"{{"max_tokens":1,"messages":[{{"role":"user","content":{pdf}}}]}}"#);
        assert!(
            max_cost("gpt-5.4-mini", &body, 1).unwrap().0 / 1_000 < 500_000,
            "the model's longest prompt"
        );
    }
}
