//! Reading what the Gemini API says when it fails: `{"error": {"code", "message", "status", "details"}}` as all of
//! Google's interfaces do it (google.rpc.Status), at times inside an array.
//!
//! A refused key comes as a plain 400 that only the details explain, and 429 stands for a minute's wait as well as
//! for an account that is used up: the details tell which.

use std::time::Duration;

use serde_json::Value;

use crate::providers::{Failure, Incoming, retry_after, status};

const KEY_REASON: &str = "API_KEY_INVALID";
const KEY_PHRASES: [&str; 2] = ["api key not valid", "api key expired"];
const CONTEXT_PHRASES: [&str; 1] = ["exceeds the maximum number of tokens allowed"];
const MODEL_PHRASES: [&str; 1] = ["unexpected model name format"];
/// Prepaid credit is used up, or a cap of spending is reached.
const QUOTA_PHRASES: [&str; 3] = ["prepayment credits", "spending cap", "spend cap"];

/// The failure that a status of failure and its body describe.
pub(super) fn read(incoming: &Incoming) -> Failure {
    let body = serde_json::from_slice(&incoming.body).unwrap_or(Value::Null);
    Complaint::of(&body).failure(incoming.status, incoming)
}

/// The failure inside a body whose status claimed success.
pub(super) fn inside_success(body: &Value, incoming: &Incoming) -> Failure {
    let status = body["error"]["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    match status.filter(|status| (400..600).contains(status)) {
        Some(status) => Complaint::of(body).failure(status, incoming),
        None => Failure::Broken { status: incoming.status },
    }
}

/// What was read of a body; all of it foreign.
struct Complaint<'a> {
    /// Google's own name for the status, such as `INVALID_ARGUMENT`.
    name: Option<&'a str>,
    message: &'a str,
    /// Messages of several types, told apart by the fields they have.
    details: &'a [Value],
}

impl<'a> Complaint<'a> {
    fn of(body: &'a Value) -> Self {
        let outer = body.as_array().and_then(|list| list.first()).unwrap_or(body);
        let error = &outer["error"];
        Self {
            name: error["status"].as_str(),
            message: error["message"].as_str().unwrap_or_default(),
            details: error["details"].as_array().map(Vec::as_slice).unwrap_or_default(),
        }
    }

    fn failure(&self, status: u16, incoming: &Incoming) -> Failure {
        if self.details.iter().any(|detail| detail["reason"] == KEY_REASON) {
            return Failure::Unauthorized;
        }
        if status == 429 {
            return self.exhausted(incoming);
        }
        status::failure(status, incoming).unwrap_or_else(|| self.phrased(status))
    }

    /// Of requests or tokens in a minute, which a wait mends; or of a day's, of an allowance of nothing at all, or of
    /// money, which none does that is short enough for a call.
    fn exhausted(&self, incoming: &Incoming) -> Failure {
        let mut violations =
            self.details.iter().filter_map(|detail| detail["violations"].as_array()).flatten();
        let is_lasting = violations.any(|violation| {
            let is_daily = violation["quotaId"].as_str().is_some_and(|id| id.contains("PerDay"));
            is_daily || violation["quotaValue"] == "0"
        });
        if is_lasting || allows_nothing(self.message) || self.says(&QUOTA_PHRASES) {
            return Failure::QuotaExhausted;
        }
        let asked = self.details.iter().find_map(|detail| duration(&detail["retryDelay"]));
        Failure::RateLimited {
            retry_after: asked.or_else(|| retry_after::read(&incoming.headers, incoming.clock.now())),
        }
    }

    fn phrased(&self, status: u16) -> Failure {
        if self.says(&KEY_PHRASES) {
            return Failure::Unauthorized;
        }
        if self.says(&CONTEXT_PHRASES) {
            return Failure::ContextOverflow;
        }
        if self.says(&MODEL_PHRASES) {
            return Failure::UnknownModel;
        }
        let rejected = if self.message.is_empty() {
            Failure::rejected(self.name, &format!("status {status} without a message"))
        } else {
            Failure::rejected(self.name, self.message)
        };
        rejected.about(self.field())
    }

    /// The first field that the details (google.rpc.BadRequest) name.
    fn field(&self) -> Option<&'a str> {
        let violations = self.details.iter().filter_map(|detail| detail["fieldViolations"].as_array());
        violations.flatten().find_map(|violation| violation["field"].as_str())
    }

    fn says(&self, phrases: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        phrases.iter().any(|phrase| message.contains(phrase))
    }
}

/// Whether a message speaks of a limit of zero: the account may not use the model at all.
fn allows_nothing(message: &str) -> bool {
    let is_more = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    message.split("limit: 0").skip(1).any(|rest| !is_more(rest))
}

/// A span in JSON (google.protobuf.Duration), such as `34.074824224s`.
fn duration(value: &Value) -> Option<Duration> {
    let seconds = value.as_str()?.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
