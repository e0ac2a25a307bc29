//! Checking the messages of a chat completion, one by one, without decoding their texts.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::request::{invalid, missing, text};
use crate::inference::{Text, estimate};
use crate::server::reply::ApiError;

/// Who may speak.
pub(in crate::server) const ROLES: [&str; 5] = ["system", "user", "assistant", "developer", "tool"];

/// What is looked at of a message.
#[derive(Clone, Copy, Default)]
struct Message<'a> {
    role: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    tool_calls: Option<&'a RawValue>,
    function_call: Option<&'a RawValue>,
    refusal: Option<&'a RawValue>,
    audio: Option<&'a RawValue>,
}

/// By hand, as what is derived would take an array for an object as well.
impl<'de: 'a, 'a> Deserialize<'de> for Message<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MessageVisitor)
    }
}

struct MessageVisitor;

impl<'de> Visitor<'de> for MessageVisitor {
    type Value = Message<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut message = Message::default();
        while let Some(Text(name)) = map.next_key()? {
            let (place, name) = match &*name {
                "role" => (&mut message.role, "role"),
                "content" => (&mut message.content, "content"),
                "tool_calls" => (&mut message.tool_calls, "tool_calls"),
                "function_call" => (&mut message.function_call, "function_call"),
                "refusal" => (&mut message.refusal, "refusal"),
                "audio" => (&mut message.audio, "audio"),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if place.is_some() {
                return Err(M::Error::duplicate_field(name));
            }
            *place = Some(map.next_value()?);
        }
        Ok(message)
    }
}

#[derive(serde::Deserialize)]
struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// Checks all messages; gives their length in tokens, estimated.
pub(super) fn check_all(value: &RawValue) -> Result<u64, ApiError> {
    let allowed = "a non-empty array of messages";
    let wrong = || invalid("messages", allowed, value);
    let Ok(messages) = serde_json::from_str::<Vec<Message<'_>>>(value.get()) else {
        // One by one, to tell which of them it is.
        let messages: Vec<&RawValue> = serde_json::from_str(value.get()).map_err(|_| wrong())?;
        for (index, message) in messages.into_iter().enumerate() {
            check(object(message, || format!("messages[{index}]"))?, index)?;
        }
        return Err(wrong());
    };
    if messages.is_empty() {
        return Err(wrong());
    }
    let mut tokens = 0_u64;
    for (index, message) in messages.into_iter().enumerate() {
        tokens = tokens.saturating_add(check(message, index)?);
    }
    Ok(tokens)
}

fn check<'a>(message: Message<'a>, index: usize) -> Result<u64, ApiError> {
    let path = |rest: &str| format!("messages[{index}]{rest}");
    // A null is the same as nothing.
    let given = |value: Option<&'a RawValue>| value.filter(|value| value.get() != "null");
    let (role, content) = (given(message.role), given(message.content));
    let (tool_calls, function_call) = (given(message.tool_calls), given(message.function_call));
    let role = role.ok_or_else(|| missing(path(".role")))?;
    let name = text(role).filter(|name| ROLES.contains(&&**name));
    let Some(name) = name else {
        return Err(invalid(path(".role"), "system, user, assistant, developer or tool", role));
    };
    let Some(content) = content else {
        // What an assistant said may be something else than a text.
        let said = [tool_calls, function_call, given(message.refusal), given(message.audio)];
        let says_else = said.iter().any(Option::is_some);
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
