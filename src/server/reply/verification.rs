//! Errors for verifications without a result. The messages are the verification's own; status and code are those of a
//! completion that fails in the same way, except for failures due to the text that was sent: the server writes the
//! questions, so these are never the caller's 400.

use super::provider::server_side;
use super::{ApiError, ErrorCode};
use crate::inference::Failure;
use crate::verify::Error;

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self {
            provider: error.provider().map(Into::into),
            ..Self::new(code(&error), error.message()).retrying_as(error.failure())
        }
    }
}

fn code(error: &Error) -> ErrorCode {
    match error {
        Error::Unconfigured => ErrorCode::NoProviderAvailable,
        Error::Deadline => ErrorCode::ProviderTimeout,
        Error::Internal => ErrorCode::Internal,
        Error::Extraction { failure, .. }
        | Error::NoAnswers { failure, .. }
        | Error::Unpaid { failure, .. } => server_side(failure).unwrap_or_else(|| due_to_questions(failure)),
    }
}

/// The code of the failures that [`server_side`] leaves out.
const fn due_to_questions(failure: &Failure) -> ErrorCode {
    match failure {
        Failure::Refused => ErrorCode::ProviderRefused,
        _ => ErrorCode::ProviderError,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::api::error_code::DEFAULT_RETRY_AFTER;
    use crate::clock::Time;
    use crate::money::{BudgetScope, BudgetShortage, NanoUsd, Period};

    const WAIT: Duration = Duration::from_secs(9);

    /// Title and code; whether a retry is forbidden, and after how long one is worthwhile.
    type Expected = (&'static str, &'static str, bool, Option<Duration>);

    fn summary(error: &ApiError) -> (&'static str, String, bool, Option<Duration>) {
        (error.code.title(), error.code().to_owned(), error.no_retry, error.retry_after)
    }

    fn of_completion(failure: &Failure) -> ApiError {
        ApiError::broken_stream(&"a/b".into(), failure.clone())
    }

    /// The errors of all ways in which a verification can fail because of this.
    fn of_verification(failure: &Failure) -> [ApiError; 3] {
        let (model, failure) = ("a/b".to_owned(), failure.clone());
        [
            Error::Extraction { model: model.clone(), failure: failure.clone() },
            Error::NoAnswers { failure: failure.clone(), provider: None },
            Error::Unpaid { model, failure },
        ]
        .map(ApiError::from)
    }

    fn shortage() -> BudgetShortage {
        let none = NanoUsd(0);
        let renews_at = Time::from_unix_ms(0);
        BudgetShortage {
            scope: BudgetScope::Key,
            period: Period::Month,
            budget: none,
            spent: none,
            reserved: none,
            max_cost: none,
            renews_at,
        }
    }

    #[test]
    fn a_failure_is_reported_alike_in_completions_and_verifications() {
        const GATEWAY: &str = "Bad Gateway";
        const UNAVAILABLE: &str = "Service Unavailable";
        let paused = Failure::Paused { whole_provider: true, because: "provider_error", retry_after: WAIT };
        let table: [(Failure, Expected); 16] = [
            (Failure::Unauthorized, (GATEWAY, "provider_auth_failed", true, None)),
            (Failure::QuotaExhausted, (GATEWAY, "provider_quota_exhausted", true, None)),
            (
                Failure::RateLimited { retry_after: Some(WAIT) },
                (UNAVAILABLE, "provider_rate_limited", false, Some(WAIT)),
            ),
            (
                Failure::Overloaded { retry_after: None },
                (UNAVAILABLE, "provider_overloaded", false, Some(DEFAULT_RETRY_AFTER)),
            ),
            (Failure::Broken { status: 500, retry_after: None }, (GATEWAY, "provider_error", false, None)),
            (Failure::Malformed, (GATEWAY, "provider_invalid_response", false, None)),
            (Failure::NoAnswer, (GATEWAY, "provider_invalid_response", false, None)),
            (Failure::TooLarge { bytes: 9 << 20 }, (GATEWAY, "provider_invalid_response", true, None)),
            (Failure::Unreachable, (GATEWAY, "provider_unreachable", false, None)),
            (Failure::NoDescriptors, (UNAVAILABLE, "server_overloaded", false, Some(DEFAULT_RETRY_AFTER))),
            (Failure::Cut, (GATEWAY, "provider_error", false, None)),
            (Failure::Timeout, ("Gateway Timeout", "provider_timeout", false, None)),
            (paused, (UNAVAILABLE, "no_provider_available", false, Some(WAIT))),
            (
                Failure::BudgetExceeded(Box::new(shortage())),
                ("Payment Required", "budget_exceeded", true, None),
            ),
            (Failure::PriceUnknown, ("Forbidden", "price_unknown", true, None)),
            (Failure::StoreUnavailable, (UNAVAILABLE, "store_unavailable", false, Some(DEFAULT_RETRY_AFTER))),
        ];
        for (failure, (title, code, no_retry, wait)) in table {
            let expected = (title, code.to_owned(), no_retry, wait);
            assert_eq!(summary(&of_completion(&failure)), expected, "{failure:?}");
            for error in of_verification(&failure) {
                assert_eq!(summary(&error), expected, "{failure:?}");
            }
        }
    }

    #[test]
    fn failures_due_to_the_text_are_the_caller_s_in_completions_alone() {
        let unsupported = Failure::Unsupported { param: "n".to_owned(), message: "no".to_owned() };
        let (bad, own) = ("Bad Request", "provider_error");
        for (failure, title, code, code_of_verification) in [
            (Failure::UnknownModel, "Not Found", "model_not_found", own),
            (Failure::ContextOverflow { words: None }, bad, "context_length_exceeded", own),
            (Failure::rejected(Some("odd"), "no"), bad, "odd", own),
            (Failure::rejected(None, "no"), bad, "provider_rejected", own),
            (unsupported, bad, "unsupported_parameter", own),
            (Failure::Refused, bad, "content_filter", "provider_refused"),
        ] {
            assert_eq!(
                summary(&of_completion(&failure)),
                (title, code.to_owned(), false, None),
                "{failure:?}"
            );
            for error in of_verification(&failure) {
                let expected = ("Bad Gateway", code_of_verification.to_owned(), false, None);
                assert_eq!(summary(&error), expected, "{failure:?}");
            }
        }
    }

    #[test]
    fn a_verification_may_end_without_a_provider_failure() {
        let minute = Some(Duration::from_mins(1));
        for (error, (title, code, no_retry, wait)) in [
            (Error::Unconfigured, ("Service Unavailable", "no_provider_available", false, minute)),
            (Error::Deadline, ("Gateway Timeout", "provider_timeout", false, None)),
            (Error::Internal, ("Internal Server Error", "internal", false, None)),
        ] {
            assert_eq!(summary(&ApiError::from(error)), (title, code.to_owned(), no_retry, wait));
        }
    }
}
