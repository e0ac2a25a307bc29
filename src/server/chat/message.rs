//! Checking the messages of a chat completion, one by one, without decoding their texts.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::request::{invalid, missing, text};
use crate::inference::estimate;
use crate::server::reply::ApiError;

/// Who may speak.
pub(in crate::server) const ROLES: [&str; 5] = ["system", "user", "assistant", "developer", "tool"];

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    function_call: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    audio: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// Checks all messages; gives their length in tokens, estimated.
pub(super) fn check_all(value: &RawValue) -> Result<u64, ApiError> {
    let allowed = "a non-empty array of messages";
    let messages: Vec<&RawValue> =
        serde_json::from_str(value.get()).map_err(|_| invalid("messages", allowed, value))?;
    if messages.is_empty() {
        return Err(invalid("messages", allowed, value));
    }
    let mut tokens = 0_u64;
    for (index, message) in messages.into_iter().enumerate() {
        tokens = tokens.saturating_add(check(message, index)?);
    }
    Ok(tokens)
}

fn check(value: &RawValue, index: usize) -> Result<u64, ApiError> {
    let path = |rest: &str| format!("messages[{index}]{rest}");
    let Message { role, content, tool_calls, function_call, refusal, audio } = object(value, || path(""))?;
    let role = role.ok_or_else(|| missing(path(".role")))?;
    let name = text(role).filter(|name| ROLES.contains(&&**name));
    let Some(name) = name else {
        return Err(invalid(path(".role"), "system, user, assistant, developer or tool", role));
    };
    let Some(content) = content else {
        // What an assistant said may be something else than a text.
        let says_else = [tool_calls, function_call, refusal, audio].iter().any(Option::is_some);
        if name == "assistant" && says_else {
            let length = tool_calls.or(function_call).map_or(0, |call| call.get().len());
            return Ok(estimate::length_tokens(length as u64).saturating_add(estimate::TOKENS_PER_MESSAGE));
        }
        let path = path(".content");
        let message = format!("`{path}` is required; only an assistant's message with `tool_calls` has none");
        return Err(ApiError::parameter("missing_parameter", path, message));
    };
    let length = check_content(content, || path(".content"))?;
    Ok(estimate::length_tokens(length).saturating_add(estimate::TOKENS_PER_MESSAGE))
}

/// Checks a content, a text or parts; gives the length of its texts in characters.
fn check_content(content: &RawValue, path: impl Fn() -> String) -> Result<u64, ApiError> {
    let allowed = "a string or a non-empty array of content parts";
    if content.get().starts_with('"') {
        return Ok(characters(content));
    }
    let parts: Vec<&RawValue> =
        serde_json::from_str(content.get()).map_err(|_| invalid(path(), allowed, content))?;
    if parts.is_empty() {
        return Err(invalid(path(), allowed, content));
    }
    let mut length = 0_u64;
    for (index, value) in parts.into_iter().enumerate() {
        let path = |rest: &str| format!("{}[{index}]{rest}", path());
        let part: Part<'_> = object(value, || path(""))?;
        let kind = part.kind.ok_or_else(|| missing(path(".type")))?;
        let name = text(kind).ok_or_else(|| invalid(path(".type"), "a string such as `text`", kind))?;
        if name != "text" {
            continue;
        }
        let text = part.text.ok_or_else(|| missing(path(".text")))?;
        if !text.get().starts_with('"') {
            return Err(invalid(path(".text"), "a string", text));
        }
        length = length.saturating_add(characters(text));
    }
    Ok(length)
}

fn object<'a, T: Deserialize<'a>>(value: &'a RawValue, path: impl Fn() -> String) -> Result<T, ApiError> {
    if !value.get().starts_with('{') {
        return Err(invalid(path(), "an object", value));
    }
    serde_json::from_str(value.get()).map_err(|cause| {
        // Only a name that stands there twice is left to go wrong.
        let path = path();
        let message = format!("`{path}` cannot be read: {cause}");
        ApiError::parameter("invalid_parameter", path, message)
    })
}

/// The characters of a JSON text, escapes counted as they are written.
fn characters(text: &RawValue) -> u64 {
    text.get().chars().count().saturating_sub(2) as u64
}
