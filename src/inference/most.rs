//! The most that a call may cost: what is reserved of a budget before it begins.
//!
//! The prompt counts as estimated, the answer as long as it may become: by the caller's own limit, else by the
//! model's. What a call turns out to have cost may still be more, by as much as the prompt's estimate is too low.

use crate::money::{NanoUsd, Price, Tokens};
use crate::providers::{Chat, CompletionRequest, Failure, Provider, estimate};
use crate::usage::Unpaid;

/// The longest answer of a model whose own maximum is not known and where the caller sets none, in tokens.
const ANSWER_TOKENS: u64 = 32_768;

/// Of a caller's completion. `None` without a price.
pub(super) fn of_completion(
    asked: &CompletionRequest<'_>,
    provider: &Provider,
    model: &str,
    price: Option<Price>,
) -> Option<NanoUsd> {
    let completion = completion_tokens(asked, provider, model);
    Some(price?.of(Tokens { prompt: asked.prompt_tokens, completion }))
}

/// How long the answers to a caller's completion may become, all choices together.
pub(super) fn completion_tokens(asked: &CompletionRequest<'_>, provider: &Provider, model: &str) -> u64 {
    // Which of the two names a provider goes by is its own affair.
    let limits = ["max_tokens", "max_completion_tokens"].into_iter();
    let limit = limits.filter_map(|name| asked.fields.read::<u64>(name)).max();
    let each = answer_tokens(limit, provider.max_output_tokens(model));
    each.saturating_mul(u64::from(asked.choices))
}

/// Of a conversation that is ours. `None` without a price.
pub(super) fn of_chat(
    chat: &Chat,
    provider: &Provider,
    model: &str,
    price: Option<Price>,
) -> Option<NanoUsd> {
    let completion = answer_tokens(chat.max_tokens.map(u64::from), provider.max_output_tokens(model));
    Some(price?.of(Tokens { prompt: estimate::prompt_tokens(chat), completion }))
}

/// No answer is longer than its model can make it, whatever the caller allows.
fn answer_tokens(limit: Option<u64>, maximum: Option<u64>) -> u64 {
    match (limit, maximum) {
        (Some(limit), Some(maximum)) => limit.min(maximum),
        (Some(tokens), None) | (None, Some(tokens)) => tokens,
        (None, None) => ANSWER_TOKENS,
    }
}

impl From<Unpaid> for Failure {
    fn from(unpaid: Unpaid) -> Self {
        match unpaid {
            Unpaid::Exceeded(shortage) => Self::BudgetExceeded(shortage),
            Unpaid::PriceUnknown => Self::PriceUnknown,
            Unpaid::Unavailable => Self::StoreUnavailable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::providers::{Fields, Kind, Settings};

    /// Of a prompt of 1,000 tokens, at a dollar and two for a million.
    fn most(model: &str, body: &str, choices: u32) -> Option<NanoUsd> {
        let settings = Settings::new("openai", Kind::OpenAi, "http://127.0.0.1:9/v1");
        let provider = Provider::new(settings, Clock::system()).unwrap();
        let fields: Fields<'_> = serde_json::from_str(body).unwrap();
        let asked =
            CompletionRequest { fields, stream: false, include_usage: false, choices, prompt_tokens: 1_000 };
        let price = Price { input_per_mtok: NanoUsd(1_000_000_000), output_per_mtok: NanoUsd(2_000_000_000) };
        of_completion(&asked, &provider, model, Some(price))
    }

    #[test]
    fn the_caller_s_limit_holds_up_to_the_model_s_own() {
        let of_tokens = |tokens: u64| Some(NanoUsd(1_000_000 + tokens * 2_000));
        assert_eq!(most("unknown", "{}", 1), of_tokens(ANSWER_TOKENS));
        assert_eq!(most("gpt-5.4-mini", "{}", 1), of_tokens(128_000));
        assert_eq!(most("gpt-5.4-mini", r#"{"max_tokens":100}"#, 3), of_tokens(300));
        assert_eq!(most("gpt-5.4-mini", r#"{"max_tokens":4294967295}"#, 1), of_tokens(128_000));
        let both = r#"{"max_tokens":10,"max_completion_tokens":20}"#;
        assert_eq!(most("unknown", both, 1), of_tokens(20));
    }
}
