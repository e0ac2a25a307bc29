//! Error bodies in the form of each door. This is the only place that knows them, so that whatever is refused at a
//! door's paths, unknown ones included, is refused in its form.
//!
//! Clients match on words: those of the chat-completion API recognise a prompt that is too long by "maximum context
//! length", those of the Messages API by "prompt is too long".

use serde::Serialize;

use super::ErrorCode;
use crate::api::door_error::{AnthropicError, AnthropicErrorBody, OpenAiError, OpenAiErrorBody};
use crate::api::endpoint::Door;
use crate::api::error::ErrorBody;

/// What clients of the Messages API recognise an overlong prompt by.
const TOO_LONG: &str = "prompt is too long";
/// What they recognise a prompt by that is too long only with the answer that is asked for.
const TOO_LONG_WITH_ANSWER: &str = "exceed context limit";

/// The bytes of an error body behind a door. `words` are what a provider says about a prompt that is too long.
pub(crate) fn body(door: Door, code: ErrorCode, words: Option<&str>, body: ErrorBody) -> Vec<u8> {
    match door {
        Door::Documented => json(&body),
        Door::OpenAi => json(&openai(code, body)),
        Door::Anthropic => json(&anthropic(code, words, body)),
    }
}

/// A struct of strings always serializes.
fn json(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_default()
}

fn openai(code: ErrorCode, body: ErrorBody) -> OpenAiErrorBody {
    let ErrorBody {
        error: _,
        message,
        code: name,
        request_id,
        param,
        provider,
        failed_generation,
        mk_verification,
    } = body;
    let message = match code {
        ErrorCode::ContextLengthExceeded if !message.contains("maximum context length") => {
            format!("This model's maximum context length is exceeded, the prompt is too long: {message}")
        }
        _ => message,
    };
    let kind = openai_type(code.status()).to_owned();
    OpenAiErrorBody {
        error: OpenAiError { message, kind, param, code: name, provider, failed_generation, mk_verification },
        request_id,
    }
}

/// The types of `OpenAI`'s errors (<https://platform.openai.com/docs/guides/error-codes>).
const fn openai_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "insufficient_quota",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        _ => "server_error",
    }
}

fn anthropic(code: ErrorCode, words: Option<&str>, body: ErrorBody) -> AnthropicErrorBody {
    let ErrorBody {
        error: _,
        message,
        code: name,
        request_id,
        param,
        provider,
        failed_generation,
        mk_verification,
    } = body;
    let message = match code {
        ErrorCode::ContextLengthExceeded => match words.filter(|words| is_recognised(words)) {
            Some(words) => words.to_owned(),
            None => format!("{TOO_LONG}: {message}"),
        },
        _ => message,
    };
    let kind = anthropic_type(code.status()).to_owned();
    AnthropicErrorBody {
        kind: "error".to_owned(),
        error: AnthropicError {
            kind,
            message,
            code: name,
            param,
            provider,
            failed_generation,
            mk_verification,
        },
        request_id,
    }
}

fn is_recognised(words: &str) -> bool {
    [TOO_LONG, TOO_LONG_WITH_ANSWER].iter().any(|phrase| words.contains(phrase))
}

/// The types of Anthropic's errors (<https://docs.claude.com/en/api/errors>).
const fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 | 504 => "timeout_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 => "overloaded_error",
        400..500 => "invalid_request_error",
        _ => "api_error",
    }
}
