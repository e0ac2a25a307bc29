//! What a caller is told when no model answered: the contract's table of provider failures.
//!
//! A provider's refusal of *our* key is never the caller's 401, and nothing it writes is quoted but what it says about
//! the caller's own request, tamed.

use std::sync::Arc;

use http::StatusCode;

use super::{ApiError, whole_seconds};
use crate::inference::{Failure, SHORTLY, Unanswered};
use crate::model_id;
use crate::money::Shortage;

impl From<Unanswered> for ApiError {
    fn from(unanswered: Unanswered) -> Self {
        let Unanswered { model, failure, attempts } = unanswered;
        let name = model_id::provider(&model).to_owned();
        let mut error = describe(&model, &name, &failure);
        error.attempts = Some(attempts);
        error.hopeless =
            matches!(failure, Failure::Unauthorized | Failure::QuotaExhausted | Failure::BudgetExceeded(_));
        if error.status == StatusCode::SERVICE_UNAVAILABLE {
            error.retry_after = Some(failure.retry_after().unwrap_or(SHORTLY));
        }
        match failure {
            Failure::Unsupported { param, .. } => error.param = Some(param),
            Failure::Rejected { param, .. } => (error.param, error.provider) = (param, Some(name)),
            Failure::NoDescriptors => {}
            failure if failure.is_unpaid() => {}
            _ => error.provider = Some(name),
        }
        error
    }
}

impl ApiError {
    /// The failure that broke a stream of `model` off.
    pub(crate) fn broken_off(model: &Arc<str>, failure: Failure) -> Self {
        Self::from(Unanswered { model: model.clone(), failure, attempts: 0 })
    }
}

fn exceeded(shortage: &Shortage) -> String {
    let smaller = if shortage.is_used_up() { "" } else { "send a smaller `max_tokens`, or " };
    let anew = shortage.anew.utc_date();
    format!("{shortage}; {smaller}ask the operator to raise it; it resets on {anew} (UTC)")
}

fn describe(model: &str, provider: &str, failure: &Failure) -> ApiError {
    let bad_gateway = |code, message| ApiError::new(StatusCode::BAD_GATEWAY, code, message);
    let bad_request = |code: &str, message| ApiError::new(StatusCode::BAD_REQUEST, code, message);
    let unavailable = |code, message| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, code, message);
    match failure {
        Failure::Unauthorized => bad_gateway(
            "provider_auth_failed",
            format!(
                "the provider {provider} does not accept this server's key; its operator has to check it"
            ),
        ),
        Failure::QuotaExhausted => bad_gateway(
            "provider_quota_exhausted",
            format!(
                "this server's account at {provider} has no credit left; contact the operator of this server"
            ),
        ),
        Failure::RateLimited { .. } => unavailable(
            "provider_rate_limited",
            format!("the provider {provider} is rate-limiting this server; try again later"),
        ),
        Failure::Overloaded { .. } => unavailable(
            "provider_overloaded",
            format!("the provider {provider} has no capacity now; try again later"),
        ),
        Failure::UnknownModel => ApiError::new(
            StatusCode::NOT_FOUND,
            "model_not_found",
            format!("{provider} does not know the model {model}; GET /inference/v1/models lists models"),
        ),
        Failure::ContextOverflow => bad_request(
            "context_length_exceeded",
            format!("the messages are too long for {model}; send less, or choose a model with more context"),
        ),
        Failure::Rejected { code, message, .. } => bad_request(
            code.as_deref().unwrap_or("provider_rejected"),
            format!("the provider {provider} refused the request: {message}"),
        ),
        Failure::Unsupported { message, .. } => bad_request("unsupported_parameter", message.clone()),
        Failure::Refused => {
            bad_request("content_filter", format!("{model} declined to answer this; rephrase the messages"))
        }
        Failure::Broken { .. } => {
            bad_gateway("provider_error", format!("the provider {provider} failed; try again in a moment"))
        }
        Failure::Malformed => bad_gateway(
            "provider_invalid_response",
            format!("the provider {provider} sent an answer that cannot be read; try again in a moment"),
        ),
        Failure::TooLarge { .. } => bad_gateway(
            "provider_invalid_response",
            format!(
                "the provider {provider} sent an answer larger than 8 MiB; ask for fewer choices, for a shorter \
                 answer or without logprobs, or stream it"
            ),
        ),
        Failure::Unreachable => bad_gateway(
            "provider_unreachable",
            format!("the provider {provider} cannot be reached; try again in a moment"),
        ),
        Failure::NoDescriptors => unavailable(
            "server_overloaded",
            "this server can open no more connections to providers now; try again in a moment".to_owned(),
        ),
        Failure::Cut => bad_gateway(
            "provider_error",
            format!("the provider {provider} broke its answer off; try again in a moment"),
        ),
        Failure::Timeout => ApiError::new(
            StatusCode::GATEWAY_TIMEOUT,
            "provider_timeout",
            format!("the provider {provider} did not answer in time; try again in a moment"),
        ),
        Failure::Paused { whole_provider, because, retry_after } => {
            let who = if *whole_provider { format!("the provider {provider}") } else { model.to_owned() };
            let seconds = whole_seconds(*retry_after);
            unavailable(
                "no_provider_available",
                format!(
                    "{who} is paused after failures in a row (the last: {because}); try again in {seconds} s"
                ),
            )
        }
        Failure::BudgetExceeded(shortage) => {
            ApiError::new(StatusCode::PAYMENT_REQUIRED, "budget_exceeded", exceeded(shortage))
        }
        Failure::PriceUnknown => ApiError::new(
            StatusCode::FORBIDDEN,
            "price_unknown",
            format!(
                "this API key has a budget, and what {model} costs is not known; the server's operator can set \
                 input_usd_per_mtok and output_usd_per_mtok for it"
            ),
        ),
        Failure::StoreUnavailable => ApiError::store_unavailable(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::verify;

    /// But for those that are about the caller's own messages: of a verification the server writes them.
    #[test]
    fn a_failure_has_one_status_code_and_wait_in_completions_and_verifications() {
        let wait = Duration::from_secs(9);
        for failure in [
            Failure::Unauthorized,
            Failure::QuotaExhausted,
            Failure::RateLimited { retry_after: Some(wait) },
            Failure::Overloaded { retry_after: None },
            Failure::Broken { status: 500 },
            Failure::Malformed,
            Failure::TooLarge { bytes: 9 << 20 },
            Failure::Unreachable,
            Failure::NoDescriptors,
            Failure::Cut,
            Failure::Timeout,
            Failure::Paused { whole_provider: true, because: "provider_error", retry_after: wait },
            Failure::PriceUnknown,
            Failure::StoreUnavailable,
        ] {
            let of_chat = ApiError::broken_off(&"a/b".into(), failure.clone());
            let of_verification =
                ApiError::from_event(verify::Error::NoAnswers { failure: failure.clone() }.event("ver_1"));
            let told = |error: &ApiError| (error.status, error.code.clone(), error.retry_after);
            assert_eq!(told(&of_chat), told(&of_verification), "{failure:?}");
        }
    }
}
