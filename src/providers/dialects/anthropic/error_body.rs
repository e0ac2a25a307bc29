//! Parses error bodies of the Messages API: `{"type": "error", "error": {"type", "message", "details"}}`.
//!
//! The type decides first, then the status, which may come from a gateway in between. Only `invalid_request_error`
//! requires looking for phrases: it stands for an invalid request, an overlong one, an empty account and a blocked
//! answer.

use serde_json::Value;

use crate::providers::dialects::{retry_after, status};
use crate::providers::{Failure, ProviderResponse};

const CONTEXT_PHRASES: [&str; 3] = ["prompt is too long", "input is too long", "exceed context limit"];
/// An empty account, and the spending limits set by its owner.
const QUOTA_PHRASES: [&str; 3] = [
    "credit balance is too low",
    "your specified api usage limits",
    "your specified workspace api usage limits",
];
const REFUSAL_PHRASES: [&str; 1] = ["blocked by content filtering"];

/// The `error.details.error_code` of a 429 without `Retry-After`: the account's monthly cap is reached.
const SPEND_LIMIT_REACHED: &str = "enforced_spend_limit_reached";

/// The failure that an error response describes.
pub(super) fn failure(response: &ProviderResponse) -> Failure {
    let body = serde_json::from_slice(&response.body).unwrap_or(Value::Null);
    let error = &body["error"];
    failure_by_type(error, response)
        .or_else(|| status::failure(response.status, response))
        .unwrap_or_else(|| failure_by_phrase(error, response.status))
}

/// The failure in a response with a success status.
pub(super) fn failure_in_success(body: &Value, response: &ProviderResponse) -> Failure {
    let error = &body["error"];
    let is_request = error["type"] == "invalid_request_error";
    let failure = if is_request {
        Some(failure_by_phrase(error, response.status))
    } else {
        failure_by_type(error, response)
    };
    failure.unwrap_or(Failure::Broken { status: response.status, retry_after: None })
}

/// The failure that the error's type alone determines.
fn failure_by_type(error: &Value, response: &ProviderResponse) -> Option<Failure> {
    let wait = || retry_after::read(&response.headers, response.clock.now());
    Some(match error["type"].as_str()? {
        "authentication_error" | "permission_error" => Failure::Unauthorized,
        "billing_error" => Failure::QuotaExhausted,
        "rate_limit_error" if error["details"]["error_code"] == SPEND_LIMIT_REACHED => {
            Failure::QuotaExhausted
        }
        "rate_limit_error" => Failure::RateLimited { retry_after: wait() },
        "overloaded_error" => Failure::Overloaded { retry_after: wait() },
        "not_found_error" => Failure::UnknownModel,
        "request_too_large" => Failure::ContextOverflow { words: None },
        "api_error" | "timeout_error" => Failure::Broken { status: response.status, retry_after: wait() },
        _ => return None,
    })
}

fn failure_by_phrase(error: &Value, status: u16) -> Failure {
    let message = error["message"].as_str().unwrap_or_default();
    let lowercase = message.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| lowercase.contains(phrase));
    if says(&CONTEXT_PHRASES) {
        return Failure::overflow(message);
    }
    if says(&QUOTA_PHRASES) {
        return Failure::QuotaExhausted;
    }
    if says(&REFUSAL_PHRASES) {
        return Failure::Refused;
    }
    Failure::unknown(error["type"].as_str(), message, status)
}
