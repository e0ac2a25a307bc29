//! Reading what the Messages API says when it fails: `{"type": "error", "error": {"type", "message", "details"}}`.
//!
//! The type decides, then the status, which gateways in between may have made. Only `invalid_request_error` needs
//! phrases: one name stands for a wrong request, an overlong one, an empty account and a blocked answer.

use serde_json::Value;

use crate::providers::{Failure, Incoming, retry_after, status};

const CONTEXT_PHRASES: [&str; 3] = ["prompt is too long", "input is too long", "exceed context limit"];
/// An empty account, and the limits of spending that its owner has set.
const QUOTA_PHRASES: [&str; 3] = [
    "credit balance is too low",
    "your specified api usage limits",
    "your specified workspace api usage limits",
];
const REFUSAL_PHRASES: [&str; 1] = ["blocked by content filtering"];

/// In `error.details.error_code` of a 429 without `Retry-After`: the account's monthly cap is reached.
const SPENT: &str = "enforced_spend_limit_reached";

/// The failure that a status of failure and its body describe.
pub(super) fn read(incoming: &Incoming) -> Failure {
    let body = serde_json::from_slice(&incoming.body).unwrap_or(Value::Null);
    let error = &body["error"];
    named(error, incoming)
        .or_else(|| status::failure(incoming.status, incoming))
        .unwrap_or_else(|| phrased(error, incoming.status))
}

/// The failure inside a body whose status claimed success.
pub(super) fn inside_success(body: &Value, incoming: &Incoming) -> Failure {
    let error = &body["error"];
    let is_request = error["type"] == "invalid_request_error";
    let failure = if is_request { Some(phrased(error, incoming.status)) } else { named(error, incoming) };
    failure.unwrap_or(Failure::Broken { status: incoming.status })
}

/// What the error's type alone tells.
fn named(error: &Value, incoming: &Incoming) -> Option<Failure> {
    let wait = || retry_after::read(&incoming.headers, incoming.clock.now());
    Some(match error["type"].as_str()? {
        "authentication_error" | "permission_error" => Failure::Unauthorized,
        "billing_error" => Failure::QuotaExhausted,
        "rate_limit_error" if error["details"]["error_code"] == SPENT => Failure::QuotaExhausted,
        "rate_limit_error" => Failure::RateLimited { retry_after: wait() },
        "overloaded_error" => Failure::Overloaded { retry_after: wait() },
        "not_found_error" => Failure::UnknownModel,
        "request_too_large" => Failure::ContextOverflow,
        "api_error" | "timeout_error" => Failure::Broken { status: incoming.status },
        _ => return None,
    })
}

fn phrased(error: &Value, status: u16) -> Failure {
    let message = error["message"].as_str().unwrap_or_default();
    let lowercase = message.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| lowercase.contains(phrase));
    if says(&CONTEXT_PHRASES) {
        return Failure::ContextOverflow;
    }
    if says(&QUOTA_PHRASES) {
        return Failure::QuotaExhausted;
    }
    if says(&REFUSAL_PHRASES) {
        return Failure::Refused;
    }
    let code = error["type"].as_str();
    if message.is_empty() {
        return Failure::rejected(code, &format!("status {status} without a message"));
    }
    Failure::rejected(code, message)
}
