//! Reading what a provider says when it fails, in the several shapes that speakers of this format use:
//!
//! - `{"error": {"message", "type", "param", "code"}}`: most
//! - `[{"error": {"code", "message", "status", "details": [{"reason"}]}}]`: Google's compatible endpoint
//! - `{"error": "…", "code": "…"}`: xAI, native Ollama
//! - `{"object": "error", "message", "type", "code"}`: older vLLM, and Mistral, whose `message` may be an object
//! - `{"message": "…"}`, `{"detail": "…" | [{"loc", "msg"}]}`: gateways in front of them
//!
//! Names (codes and types) decide before the status does, as the same status means different things; phrases are
//! the last resort, only where a provider has no name for a case that must be told apart.

use std::fmt;

use serde_json::Value;

use crate::providers::{Failure, Incoming, retry_after, status};

const KEY_NAMES: [&str; 3] = ["invalid_api_key", "api_key_invalid", "invalid_authentication"];
const QUOTA_NAMES: [&str; 3] = ["insufficient_quota", "billing_hard_limit_reached", "billing_not_active"];
const CONTEXT_NAMES: [&str; 2] = ["context_length_exceeded", "exceed_context_size_error"];
/// Of any text that is too long: of an identifier as well as of a message.
const TOO_LONG: &str = "string_above_max_length";
/// `invalid_prompt` is what reasoning models answer to a prompt that was flagged.
const REFUSAL_NAMES: [&str; 6] = [
    "content_filter",
    "content_policy_violation",
    "moderation_blocked",
    "invalid_prompt",
    "responsibleaipolicyviolation",
    "content_blocked",
];
const MODEL_NAMES: [&str; 4] =
    ["model_not_found", "invalid_model", "model_decommissioned", "deploymentnotfound"];

/// xAI's, with 403: the name of the status is all it has for a code.
const REFUSAL_PHRASES: [&str; 2] = ["violates usage guidelines", "safety_check_type"];
const KEY_PHRASES: [&str; 2] = ["incorrect api key", "api key not valid"];
const CONTEXT_PHRASES: [&str; 3] = ["context length", "context window", "context size"];
const MODEL_PHRASES: [&str; 2] = ["is not a valid model", "model not exist"];

/// The failure that a status of failure and its body describe.
pub(super) fn read(incoming: &Incoming) -> Failure {
    let body = serde_json::from_slice(&incoming.body).unwrap_or(Value::Null);
    Complaint::of(&body).failure(incoming.status, incoming)
}

/// The failure inside a body whose status claimed success. `source` holds the `error`.
pub(super) fn inside_success(source: &Value, incoming: &Incoming) -> Failure {
    let complaint = Complaint::of(source);
    let status = complaint.code.as_deref().and_then(|code| code.parse().ok());
    match status.filter(|status| (400..600).contains(status)) {
        Some(status) => complaint.failure(status, incoming),
        None => complaint.named(incoming).unwrap_or(Failure::Broken { status: incoming.status }),
    }
}

/// What was read of a body; all of it foreign.
#[derive(Default)]
struct Complaint {
    code: Option<String>,
    /// Code, type, status and reasons, in lowercase.
    names: Vec<String>,
    message: String,
    /// The parameter that it is about.
    param: Option<String>,
    /// Set where a router says that moderation stopped the prompt.
    moderated: bool,
}

impl Complaint {
    fn of(body: &Value) -> Self {
        let outer = body.as_array().and_then(|list| list.first()).unwrap_or(body);
        let inner = if outer["error"].is_object() { &outer["error"] } else { outer };
        let code = text(&inner["code"]);
        let details = inner["details"].as_array().map(Vec::as_slice).unwrap_or_default();
        let names = [&inner["code"], &inner["type"], &inner["status"], &inner["innererror"]["code"]]
            .into_iter()
            .chain(details.iter().map(|detail| &detail["reason"]))
            .filter_map(text)
            .map(|name| name.to_lowercase())
            .collect();
        let message =
            [&inner["message"], &inner["error"], &inner["detail"]].into_iter().find_map(Value::as_str);
        let violations = Violations::of(inner);
        let moderated = inner["metadata"]["flagged_input"].is_string();
        let param = inner["param"].as_str().map(str::to_owned).or_else(|| violations.first_field());
        let message = message.map_or_else(|| violations.to_string(), str::to_owned);
        Self { code, names, message, param, moderated }
    }

    fn failure(&self, status: u16, incoming: &Incoming) -> Failure {
        if status == 403 && self.says(&REFUSAL_PHRASES) {
            return Failure::Refused;
        }
        let by_status = status::failure(status, incoming);
        // These mean one thing only; some name an overlong prompt (413) a rate limit.
        let is_final = matches!(status, 402 | 413 | 500..);
        let named = if is_final { None } else { self.named(incoming) };
        named.or(by_status).unwrap_or_else(|| self.phrased(status))
    }

    /// What names alone tell.
    fn named(&self, incoming: &Incoming) -> Option<Failure> {
        let has = |names: &[&str]| self.names.iter().any(|name| names.contains(&name.as_str()));
        if self.moderated || has(&REFUSAL_NAMES) {
            return Some(Failure::Refused);
        }
        if has(&QUOTA_NAMES) {
            return Some(Failure::QuotaExhausted);
        }
        if has(&KEY_NAMES) {
            return Some(Failure::Unauthorized);
        }
        if has(&CONTEXT_NAMES) || (has(&[TOO_LONG]) && self.is_about_a_message()) {
            return Some(Failure::ContextOverflow);
        }
        if has(&MODEL_NAMES) {
            return Some(Failure::UnknownModel);
        }
        has(&["rate_limit_exceeded"]).then(|| Failure::RateLimited {
            retry_after: retry_after::read(&incoming.headers, incoming.clock.now()),
        })
    }

    /// Whether what it complains about is what a message says, as far as it tells.
    fn is_about_a_message(&self) -> bool {
        self.param.as_deref().is_none_or(|param| param.ends_with("content") || param.ends_with("text"))
    }

    fn says(&self, phrases: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        phrases.iter().any(|phrase| message.contains(phrase))
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
            Failure::rejected(self.code.as_deref(), &format!("status {status} without a message"))
        } else {
            Failure::rejected(self.code.as_deref(), &self.message)
        };
        rejected.about(self.param.as_deref())
    }
}

/// What servers built on `FastAPI` say of a body that is not as it should be: a list of what is wrong and where, at the
/// top or, of Mistral, inside of `message`.
struct Violations<'a>(&'a [Value]);

impl<'a> Violations<'a> {
    fn of(body: &'a Value) -> Self {
        let lists = [&body["detail"], &body["message"]["detail"]];
        Self(lists.into_iter().find_map(Value::as_array).map(Vec::as_slice).unwrap_or_default())
    }

    /// The path of a field from the body on, such as `stream_options.include_usage`.
    fn field(violation: &Value) -> Option<String> {
        let steps: Vec<String> = violation["loc"].as_array()?.iter().filter_map(text).collect();
        let path = steps.strip_prefix(&["body".to_owned()]).unwrap_or(&steps).join(".");
        (!path.is_empty()).then_some(path)
    }

    fn first_field(&self) -> Option<String> {
        self.0.iter().find_map(Self::field)
    }
}

impl fmt::Display for Violations<'_> {
    /// Each field with what is wrong with it, as the words alone name none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, violation) in self.0.iter().enumerate() {
            f.write_str(if position == 0 { "" } else { "; " })?;
            if let Some(field) = Self::field(violation) {
                write!(f, "{field}: ")?;
            }
            f.write_str(violation["msg"].as_str().unwrap_or("not valid"))?;
        }
        Ok(())
    }
}

/// A name, which some send as a number.
fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|number| number.to_string()))
}
