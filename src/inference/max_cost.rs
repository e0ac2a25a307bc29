//! The most that a call may cost, which is reserved from a budget before the call begins.
//!
//! The prompt counts as estimated, the answer with its maximum length: the caller's limit, otherwise the model's. The
//! actual cost may still be higher, by as much as the estimate of the prompt was too low.

use crate::money::{NanoUsd, Price, Tokens};
use crate::providers::{Chat, CompletionRequest, Failure, Provider, estimate};
use crate::usage::BudgetError;

/// The longest answer, in tokens, if neither the model's maximum is known nor the caller sets a limit.
const DEFAULT_MAX_ANSWER_TOKENS: u64 = 32_768;

/// The most that a caller's completion may cost; `None` if the price is unknown.
pub(super) fn for_completion(
    request: &CompletionRequest<'_>,
    provider: &Provider,
    model: &str,
    price: Option<Price>,
) -> Option<NanoUsd> {
    let completion = max_completion_tokens(request, provider, model);
    Some(price?.of(Tokens { prompt: request.prompt_tokens, completion }))
}

/// The most tokens that the answers to a caller's completion may have, all choices together.
pub(super) fn max_completion_tokens(
    request: &CompletionRequest<'_>,
    provider: &Provider,
    model: &str,
) -> u64 {
    // Providers differ in which of the two names they honour.
    let limits = ["max_tokens", "max_completion_tokens"].into_iter();
    let limit = limits.filter_map(|name| request.fields.read::<u64>(name)).max();
    let each = max_answer_tokens(limit, provider.max_output_tokens(model));
    each.saturating_mul(u64::from(request.choices))
}

/// The most that a conversation of our own may cost; `None` if the price is unknown.
pub(super) fn for_chat(
    chat: &Chat,
    provider: &Provider,
    model: &str,
    price: Option<Price>,
) -> Option<NanoUsd> {
    let completion = max_answer_tokens(chat.max_tokens.map(u64::from), provider.max_output_tokens(model));
    Some(price?.of(Tokens { prompt: estimate::prompt_tokens(chat), completion }))
}

/// The longest answer in tokens: the caller's limit, but never more than the model's maximum.
fn max_answer_tokens(limit: Option<u64>, maximum: Option<u64>) -> u64 {
    match (limit, maximum) {
        (Some(limit), Some(maximum)) => limit.min(maximum),
        (Some(tokens), None) | (None, Some(tokens)) => tokens,
        (None, None) => DEFAULT_MAX_ANSWER_TOKENS,
    }
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
    use crate::providers::{Fields, Kind, Settings};

    /// The most that a prompt of 1,000 tokens may cost, at a dollar for a million input tokens and two for output.
    fn max_cost(model: &str, body: &str, choices: u32) -> Option<NanoUsd> {
        let settings = Settings::new("openai", Kind::OpenAi, "http://127.0.0.1:9/v1");
        let provider = Provider::new(settings, Clock::system()).unwrap();
        let fields: Fields<'_> = serde_json::from_str(body).unwrap();
        let request =
            CompletionRequest { fields, stream: false, include_usage: false, choices, prompt_tokens: 1_000 };
        let price = Price { input_per_mtok: NanoUsd(1_000_000_000), output_per_mtok: NanoUsd(2_000_000_000) };
        for_completion(&request, &provider, model, Some(price))
    }

    #[test]
    fn the_caller_s_limit_applies_up_to_the_model_s_own() {
        let of_tokens = |tokens: u64| Some(NanoUsd(1_000_000 + tokens * 2_000));
        assert_eq!(max_cost("unknown", "{}", 1), of_tokens(DEFAULT_MAX_ANSWER_TOKENS));
        assert_eq!(max_cost("gpt-5.4-mini", "{}", 1), of_tokens(128_000));
        assert_eq!(max_cost("gpt-5.4-mini", r#"{"max_tokens":100}"#, 3), of_tokens(300));
        assert_eq!(max_cost("gpt-5.4-mini", r#"{"max_tokens":4294967295}"#, 1), of_tokens(128_000));
        let both = r#"{"max_tokens":10,"max_completion_tokens":20}"#;
        assert_eq!(max_cost("unknown", both, 1), of_tokens(20));
    }
}
