//! Parses error bodies of the Gemini API: `{"error": {"code", "message", "status", "details"}}`, as in all of Google's
//! APIs (google.rpc.Status), sometimes inside an array.
//!
//! A refused key is reported as a plain 400 that only the details explain, and a 429 may mean waiting for a minute or
//! an exhausted account: the details tell which.

use std::time::Duration;

use serde_json::Value;

use crate::providers::dialects::{retry_after, status};
use crate::providers::{Failure, ProviderResponse};

/// Google's name for an invalid request.
const INVALID: &str = "INVALID_ARGUMENT";
const KEY_REASON: &str = "API_KEY_INVALID";
const KEY_PHRASES: [&str; 2] = ["api key not valid", "api key expired"];
const CONTEXT_PHRASES: [&str; 1] = ["exceeds the maximum number of tokens allowed"];
const MODEL_PHRASES: [&str; 1] = ["unexpected model name format"];
/// The prepaid credit is used up, or a spending cap is reached.
const QUOTA_PHRASES: [&str; 3] = ["prepayment credits", "spending cap", "spend cap"];

/// The failure that an error response describes.
pub(super) fn failure(response: &ProviderResponse) -> Failure {
    let body = serde_json::from_slice(&response.body).unwrap_or(Value::Null);
    ErrorBody::parse(&body).failure(response.status, response)
}

/// The failure in a response with a success status.
pub(super) fn failure_in_success(body: &Value, response: &ProviderResponse) -> Failure {
    let status = body["error"]["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let error_body = ErrorBody::parse(body);
    match status.filter(|status| (400..600).contains(status)) {
        Some(status) => error_body.failure(status, response),
        None if error_body.name == Some(INVALID) => error_body.failure(400, response),
        None => Failure::Broken { status: response.status, retry_after: None },
    }
}

/// The parsed parts of an error body, all of them untrusted.
struct ErrorBody<'a> {
    /// Google's own name for the status, such as `INVALID_ARGUMENT`.
    name: Option<&'a str>,
    message: &'a str,
    /// Messages of several types, distinguished by their fields.
    details: &'a [Value],
}

impl<'a> ErrorBody<'a> {
    fn parse(body: &'a Value) -> Self {
        let outer = body.as_array().and_then(|list| list.first()).unwrap_or(body);
        let error = &outer["error"];
        Self {
            name: error["status"].as_str(),
            message: error["message"].as_str().unwrap_or_default(),
            details: error["details"].as_array().map(Vec::as_slice).unwrap_or_default(),
        }
    }

    fn failure(&self, status: u16, response: &ProviderResponse) -> Failure {
        if self.details.iter().any(|detail| detail["reason"] == KEY_REASON) {
            return Failure::Unauthorized;
        }
        if status == 429 {
            return self.exhausted(response);
        }
        status::failure(status, response).unwrap_or_else(|| self.failure_by_phrase(status))
    }

    /// A limit was exceeded. For requests or tokens per minute, waiting helps. For a daily limit, a limit of zero or
    /// money, no wait that is short enough for a call does.
    fn exhausted(&self, response: &ProviderResponse) -> Failure {
        let mut violations =
            self.details.iter().filter_map(|detail| detail["violations"].as_array()).flatten();
        let is_lasting = violations.any(|violation| {
            let is_daily = violation["quotaId"].as_str().is_some_and(|id| id.contains("PerDay"));
            is_daily || violation["quotaValue"] == "0"
        });
        if is_lasting || has_zero_limit(self.message) || self.says(&QUOTA_PHRASES) {
            return Failure::QuotaExhausted;
        }
        let delay = self.details.iter().find_map(|detail| duration(&detail["retryDelay"]));
        Failure::RateLimited {
            retry_after: delay.or_else(|| retry_after::read(&response.headers, response.clock.now())),
        }
    }

    fn failure_by_phrase(&self, status: u16) -> Failure {
        if self.says(&KEY_PHRASES) {
            return Failure::Unauthorized;
        }
        if self.says(&CONTEXT_PHRASES) {
            return Failure::ContextOverflow { words: None };
        }
        if self.says(&MODEL_PHRASES) {
            return Failure::UnknownModel;
        }
        Failure::unknown(self.name, self.message, status).about(self.field())
    }

    /// The first field named in the details (google.rpc.BadRequest).
    fn field(&self) -> Option<&'a str> {
        let violations = self.details.iter().filter_map(|detail| detail["fieldViolations"].as_array());
        violations.flatten().find_map(|violation| violation["field"].as_str())
    }

    fn says(&self, phrases: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        phrases.iter().any(|phrase| message.contains(phrase))
    }
}

/// Whether a message mentions a limit of zero: the account may not use the model at all.
fn has_zero_limit(message: &str) -> bool {
    let is_longer = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    message.split("limit: 0").skip(1).any(|rest| !is_longer(rest))
}

/// A duration in JSON (google.protobuf.Duration), such as `34.074824224s`.
fn duration(value: &Value) -> Option<Duration> {
    let seconds = value.as_str()?.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
