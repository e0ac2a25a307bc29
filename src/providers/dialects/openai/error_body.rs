//! Parses error bodies in the several shapes that providers of this format use:
//!
//! - `{"error": {"message", "type", "param", "code"}}`: most providers
//! - `[{"error": {"code", "message", "status", "details": [{"reason"}]}}]`: Google's compatible endpoint
//! - `{"error": "…", "code": "…"}`: xAI, native Ollama
//! - `{"object": "error", "message", "type", "code"}`: older vLLM, and Mistral, whose `message` may be an object
//! - `{"message": "…"}`, `{"detail": "…" | [{"loc", "msg"}]}`: gateways in front of them
//!
//! Names (codes and types) take precedence over the status, as the same status means different things. Phrases in the
//! message are the last resort, only for cases that must be distinguished and for which a provider has no name.

use std::fmt;

use serde_json::Value;

use crate::providers::dialects::{retry_after, status};
use crate::providers::{Failure, ProviderResponse};

const KEY_NAMES: [&str; 3] = ["invalid_api_key", "api_key_invalid", "invalid_authentication"];
const QUOTA_NAMES: [&str; 3] = ["insufficient_quota", "billing_hard_limit_reached", "billing_not_active"];
const CONTEXT_NAMES: [&str; 2] = ["context_length_exceeded", "exceed_context_size_error"];
/// The status of an error that has none but is known to be the caller's.
const BAD_REQUEST: u16 = 400;
/// For any string that is too long, be it an identifier or a message.
const TOO_LONG: &str = "string_above_max_length";
/// `invalid_prompt` is the code of reasoning models for a flagged prompt, `data_inspection_failed` Alibaba's.
const REFUSAL_NAMES: [&str; 7] = [
    "content_filter",
    "content_policy_violation",
    "moderation_blocked",
    "invalid_prompt",
    "responsibleaipolicyviolation",
    "content_blocked",
    "data_inspection_failed",
];
const MODEL_NAMES: [&str; 4] =
    ["model_not_found", "invalid_model", "model_decommissioned", "deploymentnotfound"];
/// What the caller did wrong, for errors inside of a successful response, which need not name a status. The last one is
/// for what the model made of the caller's tools.
const REQUEST_NAMES: [&str; 8] = [
    "invalid_request_error",
    "invalid_request",
    "bad_request",
    "badrequesterror",
    "invalid_argument",
    "validation_error",
    "unprocessable_entity",
    "tool_use_failed",
];

/// Used by xAI with status 403, whose code only repeats the status, and by DeepSeek with 400, whose code is that of any
/// invalid request.
const REFUSAL_PHRASES: [(u16, &str); 3] =
    [(403, "violates usage guidelines"), (403, "safety_check_type"), (400, "content exists risk")];
const KEY_PHRASES: [&str; 2] = ["incorrect api key", "api key not valid"];
const CONTEXT_PHRASES: [&str; 3] = ["context length", "context window", "context size"];
const MODEL_PHRASES: [&str; 2] = ["is not a valid model", "model not exist"];

/// The failure that an error response describes.
pub(super) fn failure(response: &ProviderResponse) -> Failure {
    let body = serde_json::from_slice(&response.body).unwrap_or(Value::Null);
    ErrorBody::parse(&body).failure(response.status, response)
}

/// The failure in a response with a success status. `source` contains the `error`. What the caller did wrong is told
/// from what the provider did by the status in the body or, without one, by the names.
pub(super) fn failure_in_success(source: &Value, response: &ProviderResponse) -> Failure {
    let error_body = ErrorBody::parse(source);
    if let Some(status) = error_body.status {
        return error_body.failure(status, response);
    }
    if let Some(named) = error_body.failure_by_name(response) {
        return named;
    }
    if error_body.is_named(&REQUEST_NAMES) {
        return error_body.failure_by_phrase(BAD_REQUEST);
    }
    Failure::Broken { status: response.status, retry_after: None }
}

/// The parsed parts of an error body, all of them untrusted.
#[derive(Default)]
struct ErrorBody {
    code: Option<String>,
    /// The code, type, status and reasons, in lowercase.
    names: Vec<String>,
    message: String,
    /// The parameter at fault.
    param: Option<String>,
    /// Whether a router reports that moderation rejected the prompt.
    moderated: bool,
    /// The status that it names itself.
    status: Option<u16>,
    /// What the model wrote and the provider could not use (Groq).
    failed_generation: Option<String>,
}

impl ErrorBody {
    fn parse(body: &Value) -> Self {
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
        let statuses = [&inner["code"], &inner["status_code"], &inner["status"]].into_iter().filter_map(text);
        let status = statuses.filter_map(|status| status.parse().ok()).find(|s| (400..600).contains(s));
        let failed_generation = inner["failed_generation"].as_str().map(str::to_owned);
        Self { code, names, message, param, moderated, status, failed_generation }
    }

    /// Whether one of the names is among these.
    fn is_named(&self, names: &[&str]) -> bool {
        self.names.iter().any(|name| names.contains(&name.as_str()))
    }

    fn failure(&self, status: u16, response: &ProviderResponse) -> Failure {
        if REFUSAL_PHRASES.iter().any(|(with, phrase)| *with == status && self.says(&[phrase])) {
            return Failure::Refused;
        }
        let by_status = status::failure(status, response);
        // These statuses are unambiguous, and some providers name an overlong prompt (413) a rate limit.
        let is_unambiguous = matches!(status, 402 | 413 | 500..);
        let named = if is_unambiguous { None } else { self.failure_by_name(response) };
        named.or(by_status).unwrap_or_else(|| self.failure_by_phrase(status))
    }

    /// The failure that the names alone determine.
    fn failure_by_name(&self, response: &ProviderResponse) -> Option<Failure> {
        let has = |names: &[&str]| self.is_named(names);
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
            return Some(Failure::ContextOverflow { words: None });
        }
        if has(&MODEL_NAMES) {
            return Some(Failure::UnknownModel);
        }
        has(&["rate_limit_exceeded"]).then(|| Failure::RateLimited {
            retry_after: retry_after::read(&response.headers, response.clock.now()),
        })
    }

    /// Whether it is about the content of a message, as far as it says.
    fn is_about_a_message(&self) -> bool {
        self.param.as_deref().is_none_or(|param| param.ends_with("content") || param.ends_with("text"))
    }

    fn says(&self, phrases: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        phrases.iter().any(|phrase| message.contains(phrase))
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
        Failure::unknown(self.code.as_deref(), &self.message, status)
            .about(self.param.as_deref())
            .with_generation(self.failed_generation.as_deref())
    }
}

/// What servers built on `FastAPI` say about an invalid body: a list of errors with their locations, at the top level
/// or, for Mistral, inside `message`.
struct Violations<'a>(&'a [Value]);

impl<'a> Violations<'a> {
    fn of(body: &'a Value) -> Self {
        let lists = [&body["detail"], &body["message"]["detail"]];
        Self(lists.into_iter().find_map(Value::as_array).map(Vec::as_slice).unwrap_or_default())
    }

    /// The path of a field within the body, such as `stream_options.include_usage`.
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
    /// Each error with its field, as the messages do not name it.
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

/// A name, which some providers send as a number.
fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|number| number.to_string()))
}
