//! Errors for requests that no model answered: the API contract's table of provider failures. [`server_side`] is the
//! part that completions share with verifications.
//!
//! A provider's rejection of *our* key is never the caller's 401, and nothing a provider writes is quoted except what
//! it says about the caller's own request, sanitised.

use std::sync::Arc;

use super::{ApiError, ErrorCode, whole_seconds};
use crate::inference::{ChatError, Failure};
use crate::model_id;
use crate::money::BudgetShortage;

/// The code of a failure that is not due to the text that was sent to the model; `None` for the others. In a
/// completion that text is the caller's own, and theirs to change; in a verification the server writes the questions.
pub(super) const fn server_side(failure: &Failure) -> Option<ErrorCode> {
    Some(match failure {
        Failure::Unauthorized => ErrorCode::ProviderAuthFailed,
        Failure::QuotaExhausted => ErrorCode::ProviderQuotaExhausted,
        Failure::RateLimited { .. } => ErrorCode::ProviderRateLimited,
        Failure::Overloaded { .. } => ErrorCode::ProviderOverloaded,
        Failure::Broken { .. } | Failure::Cut => ErrorCode::ProviderError,
        Failure::Malformed | Failure::NoAnswer | Failure::TooLarge { .. } => {
            ErrorCode::ProviderInvalidResponse
        }
        Failure::Unreachable => ErrorCode::ProviderUnreachable,
        Failure::NoDescriptors => ErrorCode::ServerOverloaded,
        Failure::Timeout => ErrorCode::ProviderTimeout,
        Failure::Paused { .. } => ErrorCode::NoProviderAvailable,
        Failure::BudgetExceeded(_) => ErrorCode::BudgetExceeded,
        Failure::PriceUnknown => ErrorCode::PriceUnknown,
        Failure::StoreUnavailable => ErrorCode::StoreUnavailable,
        Failure::UnknownModel
        | Failure::ContextOverflow { .. }
        | Failure::Rejected { .. }
        | Failure::Unsupported { .. }
        | Failure::Refused => return None,
    })
}

impl From<ChatError> for ApiError {
    fn from(error: ChatError) -> Self {
        let ChatError { model, failure, attempts } = error;
        let name = model_id::provider(&model).to_owned();
        let code = server_side(&failure).unwrap_or_else(|| caller_side(&failure));
        let mut error = Self::new(code, message(&model, &name, &failure)).retrying_as(Some(&failure));
        error.attempts = Some(attempts);
        match failure {
            Failure::Unsupported { param, .. } => error.param = Some(param),
            Failure::Rejected { code, param, generation, .. } => {
                (error.param, error.provider) = (param, Some(name.into()));
                (error.provider_code, error.failed_generation) = (code.map(Into::into), generation);
            }
            Failure::NoDescriptors => {}
            Failure::ContextOverflow { words } => (error.provider, error.words) = (Some(name.into()), words),
            failure if failure.is_unpaid() => {}
            _ => error.provider = Some(name.into()),
        }
        error
    }
}

impl ApiError {
    /// With what the failure of a model says about a retry beyond the code: when it helps, or that the same request
    /// would cost as much again.
    #[must_use]
    pub(super) fn retrying_as(mut self, failure: Option<&Failure>) -> Self {
        self.no_retry |= matches!(failure, Some(Failure::TooLarge { .. }));
        if let Some(wait) = &mut self.retry_after {
            *wait = failure.and_then(Failure::retry_after).unwrap_or(*wait);
        }
        self
    }

    /// The error for a stream of `model` that was broken off by `failure`.
    pub(crate) fn broken_stream(model: &Arc<str>, failure: Failure) -> Self {
        let is_endless = matches!(failure, Failure::TooLarge { .. });
        let mut error = Self::from(ChatError { model: model.clone(), failure, attempts: 0 });
        if is_endless {
            error.message = format!(
                "{model} exceeded the limit of its answer or sent more than 256 MiB, so it was cut off; ask for \
                 less, or choose another model"
            )
            .into();
        }
        error
    }
}

/// The code of a failure that is due to the caller's own request: all that [`server_side`] leaves out.
const fn caller_side(failure: &Failure) -> ErrorCode {
    match failure {
        Failure::UnknownModel => ErrorCode::ModelNotFound,
        Failure::ContextOverflow { .. } => ErrorCode::ContextLengthExceeded,
        Failure::Unsupported { .. } => ErrorCode::UnsupportedParameter,
        Failure::Refused => ErrorCode::ContentFilter,
        _ => ErrorCode::ProviderRejected,
    }
}

/// What is wrong with a parameter, as a sentence that names it.
fn about_parameter(param: &str, what: &str) -> String {
    if what.contains(&format!("`{param}`")) {
        what.to_owned()
    } else if ["must ", "may ", "cannot "].iter().any(|verb| what.starts_with(verb)) {
        format!("`{param}` {what}")
    } else {
        format!("`{param}`: {what}")
    }
}

fn budget_message(shortage: &BudgetShortage) -> String {
    let smaller = if shortage.is_used_up() { "" } else { "send a smaller `max_tokens`, or " };
    let resets_on = shortage.renews_at.utc_date();
    format!("{shortage}; {smaller}ask the operator to raise it; it resets on {resets_on} (UTC)")
}

fn message(model: &str, provider: &str, failure: &Failure) -> String {
    match failure {
        Failure::Unauthorized => {
            format!("the provider {provider} rejected this server's key; its operator has to check it")
        }
        Failure::QuotaExhausted => format!(
            "this server's account at {provider} has no credit left; contact the operator of this server"
        ),
        Failure::RateLimited { .. } => {
            format!("the provider {provider} is rate-limiting this server; try again later")
        }
        Failure::Overloaded { .. } => format!("the provider {provider} is overloaded; try again later"),
        Failure::UnknownModel => {
            format!(
                "{provider} has no model {model}; GET /inference/v1/models lists the models. If it should have \
                 it, the operator of this server has to check the provider's `base_url`"
            )
        }
        Failure::ContextOverflow { .. } => {
            format!(
                "the messages and the requested answer together are too long for {model}; send less, ask for a \
                 shorter answer, or choose a model with a larger context"
            )
        }
        Failure::Rejected { message, .. } => {
            format!("the provider {provider} refused the request: {message}")
        }
        Failure::Unsupported { param, message } => about_parameter(param, message),
        Failure::Refused => format!("{model} declined to answer this; rephrase the messages"),
        Failure::Broken { .. } => format!("the provider {provider} failed; try again in a moment"),
        Failure::Malformed => {
            format!("the provider {provider} sent an unreadable answer; try again in a moment")
        }
        Failure::NoAnswer => format!(
            "{model} ended without an answer, or with an unreadable tool call; try again, or simplify the \
             parameters of the tools"
        ),
        Failure::TooLarge { .. } => format!(
            "the provider {provider} sent an answer larger than 8 MiB; ask for fewer choices, for a shorter \
             answer or without logprobs, or stream it"
        ),
        Failure::Unreachable => {
            format!("the provider {provider} cannot be reached; try again in a moment")
        }
        Failure::NoDescriptors => {
            "this server cannot open more connections to providers now; try again in a moment".to_owned()
        }
        Failure::Cut => format!(
            "the connection to the provider {provider} broke during the answer; try again \
            in a moment"
        ),
        Failure::Timeout => format!("the provider {provider} did not answer in time; try again in a moment"),
        Failure::Paused { whole_provider, because, retry_after } => {
            let who = if *whole_provider { format!("the provider {provider}") } else { model.to_owned() };
            let seconds = whole_seconds(*retry_after);
            format!("{who} is paused after repeated failures (the last: {because}); try again in {seconds} s")
        }
        Failure::BudgetExceeded(shortage) => budget_message(shortage),
        Failure::PriceUnknown => format!(
            "there is a budget, but the price of {model} is unknown; the server's operator can set \
             input_usd_per_mtok and output_usd_per_mtok"
        ),
        Failure::StoreUnavailable => ErrorCode::StoreUnavailable.message().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_about_a_parameter_names_it() {
        for (param, what, expected) in [
            ("tools[0].type", "must be `function`", "`tools[0].type` must be `function`"),
            ("n", "cannot be more than 1", "`n` cannot be more than 1"),
            ("messages[0]", "this takes only text", "`messages[0]`: this takes only text"),
            ("logprobs", "acme cannot express `logprobs`", "acme cannot express `logprobs`"),
        ] {
            assert_eq!(about_parameter(param, what), expected);
        }
    }
}
