//! Checks the messages of a chat completion one by one, without decoding their texts.

use super::request::{invalid, missing};
use crate::inference::{Json, Reader, estimate};
use crate::server::reply::{ApiError, ErrorCode};

/// The roles of a message.
pub(in crate::server) const ROLES: [&str; 5] = ["system", "user", "assistant", "developer", "tool"];

/// The fields of a message that are checked.
const MESSAGE_FIELDS: [&str; 6] = ["role", "content", "tool_calls", "function_call", "refusal", "audio"];
/// More messages than most conversations have.
const USUAL_MESSAGES: usize = 8;
/// The fields of a content part that are checked.
const PART_FIELDS: [&str; 2] = ["type", "text"];

/// What a content may be.
const CONTENT: &str = "a string or a non-empty array of content parts";

/// The checked fields of a message: the values of [`MESSAGE_FIELDS`].
pub(super) type Message<'a> = [Option<Json<'a>>; MESSAGE_FIELDS.len()];

/// Reads an array of messages; `None` if it is no array, or if one of them is no object or has a duplicate field.
pub(super) fn read_all<'a>(reader: &mut Reader<'a>) -> Option<Vec<Message<'a>>> {
    let mut messages = Vec::with_capacity(USUAL_MESSAGES);
    reader.array(|reader| {
        messages.push(reader.fields(MESSAGE_FIELDS)?);
        Some(())
    })?;
    Some(messages)
}

/// Checks all messages, which were `parsed` from `value` if possible. Returns their estimated length in tokens.
pub(super) fn check_all(value: Json<'_>, parsed: Option<Vec<Message<'_>>>) -> Result<u64, ApiError> {
    let wrong = || invalid("messages", "a non-empty array of messages", value);
    let Some(messages) = parsed else {
        // One by one, to find out which of them is wrong.
        for (index, message) in value.items().ok_or_else(wrong)?.into_iter().enumerate() {
            let path = |rest: &str| format!("messages[{index}]{rest}");
            check(fields(message, || path(""), MESSAGE_FIELDS)?, path)?;
        }
        return Err(wrong());
    };
    if messages.is_empty() {
        return Err(wrong());
    }
    let mut tokens = 0_u64;
    for (index, message) in messages.into_iter().enumerate() {
        tokens = tokens.saturating_add(check(message, |rest| format!("messages[{index}]{rest}"))?);
    }
    Ok(tokens)
}

fn check(message: Message<'_>, path: impl Fn(&str) -> String) -> Result<u64, ApiError> {
    let [role, content, tool_calls, function_call, refusal, audio] = message;
    let role = role.ok_or_else(|| missing(path(".role")))?;
    let name = role.string().filter(|name| ROLES.contains(&&**name));
    let Some(name) = name else {
        return Err(invalid(path(".role"), "system, user, assistant, developer or tool", role));
    };
    // Some clients write no parts for no text.
    let is_empty = |content: Json<'_>| content.items().is_some_and(|parts| parts.is_empty());
    if name == "tool" && content.is_some_and(is_empty) {
        return Ok(estimate::TOKENS_PER_MESSAGE);
    }
    // An assistant's message may have something else than text; an empty list of calls counts as none.
    let given = content.filter(|content| name != "assistant" || !is_empty(*content));
    let Some(content) = given else {
        let tool_calls = tool_calls.filter(|calls| calls.items().is_none_or(|calls| !calls.is_empty()));
        let alternatives = [tool_calls, function_call, refusal, audio];
        if name == "assistant" && alternatives.iter().any(Option::is_some) {
            let length = tool_calls.or(function_call).map_or(0, |call| call.get().len());
            return Ok(estimate::length_tokens(length as u64).saturating_add(estimate::TOKENS_PER_MESSAGE));
        }
        if let Some(content) = content {
            return Err(invalid(path(".content"), CONTENT, content));
        }
        let path = path(".content");
        let message =
            format!("`{path}` is required; only an assistant message with `tool_calls` may omit it");
        return Err(ApiError::parameter(ErrorCode::MissingParameter, path, message));
    };
    let length = check_content(content, || path(".content"))?;
    Ok(estimate::length_tokens(length).saturating_add(estimate::TOKENS_PER_MESSAGE))
}

/// Checks a content, a string or parts. Returns the length of its texts in characters.
fn check_content(content: Json<'_>, path: impl Fn() -> String) -> Result<u64, ApiError> {
    if content.is_string() {
        require_decodable(content, &path)?;
        return Ok(characters(content));
    }
    let wrong = || invalid(path(), CONTENT, content);
    let parts = content.items().filter(|parts| !parts.is_empty()).ok_or_else(wrong)?;
    let mut length = 0_u64;
    for (index, value) in parts.into_iter().enumerate() {
        let path = |rest: &str| format!("{}[{index}]{rest}", path());
        let [kind, text] = fields(value, || path(""), PART_FIELDS)?;
        let kind = kind.ok_or_else(|| missing(path(".type")))?;
        let name = kind.string().ok_or_else(|| invalid(path(".type"), "a string such as `text`", kind))?;
        if name != "text" {
            continue;
        }
        let text = text.ok_or_else(|| missing(path(".text")))?;
        if !text.is_string() {
            return Err(invalid(path(".text"), "a string", text));
        }
        require_decodable(text, || path(".text"))?;
        length = length.saturating_add(characters(text));
    }
    Ok(length)
}

/// Rejects a string that cannot be decoded, as each provider would interpret it differently.
fn require_decodable(text: Json<'_>, path: impl Fn() -> String) -> Result<(), ApiError> {
    if text.is_decodable() {
        return Ok(());
    }
    let path = path();
    let message = format!("`{path}` contains an unpaired surrogate (`\\ud800` to `\\udfff`)");
    Err(ApiError::parameter(ErrorCode::InvalidParameter, path, message))
}

/// The fields of these names; null counts as omitted.
fn fields<'a, const N: usize>(
    value: Json<'a>,
    path: impl Fn() -> String,
    names: [&str; N],
) -> Result<[Option<Json<'a>>; N], ApiError> {
    if !value.is_object() {
        return Err(invalid(path(), "an object", value));
    }
    value.fields(names).ok_or_else(|| {
        let path = path();
        let message = format!("`{path}` cannot be read: {}", explain(value, &names));
        ApiError::parameter(ErrorCode::InvalidParameter, path, message)
    })
}

/// Why the fields of these names cannot be read from an object.
fn explain(object: Json<'_>, names: &[&str]) -> String {
    let mut seen: Vec<&str> = Vec::new();
    let mut reason = None;
    let _ = Reader::new(object.get()).object(|reader, name| {
        let text = name.decode();
        if text.is_none() {
            reason =
                Some("one of its names contains an unpaired surrogate (`\\ud800` to `\\udfff`)".to_owned());
        }
        let known = names.iter().find(|known| text.as_deref() == Some(**known));
        if let Some(name) = known.filter(|known| seen.contains(known)) {
            reason = Some(format!("`{name}` appears twice"));
        }
        seen.extend(known);
        reader.value().map(drop)
    });
    reason.unwrap_or_default()
}

/// The number of characters of a JSON string, with escapes counted as they are written.
fn characters(text: Json<'_>) -> u64 {
    estimate::characters(text.get()).saturating_sub(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_named_by_its_path() {
        let error = |messages: &str| {
            let mut reader = Reader::new(messages);
            let parsed = read_all(&mut reader);
            let value = serde_json::from_str(messages).unwrap();
            check_all(value, parsed).unwrap_err().into_body("").message
        };
        for (messages, expected) in [
            (
                r#"[{"role":"user","content":"a","content":"b"}]"#,
                "`messages[0]` cannot be read: `content` appears twice",
            ),
            (
                r#"[{"role":"user","content":"a"},{"role":null,"rol\u0065":"user"}]"#,
                "`messages[1]` cannot be read: `role` appears twice",
            ),
            (
                r#"[{"role":"user","content":[{"type":"text","type":"text"}]}]"#,
                "`messages[0].content[0]` cannot be read: `type` appears twice",
            ),
            (
                r#"[{"role":"user","content":"a","x\ud800":1}]"#,
                "`messages[0]` cannot be read: one of its names contains an unpaired surrogate (`\\ud800` to `\\udfff`)",
            ),
            (
                r#"[{"role":"user","content":"a\ud800b"}]"#,
                "`messages[0].content` contains an unpaired surrogate (`\\ud800` to `\\udfff`)",
            ),
            (
                r#"[{"role":"user","content":[{"type":"text","text":"\n\udc00"}]}]"#,
                "`messages[0].content[0].text` contains an unpaired surrogate (`\\ud800` to `\\udfff`)",
            ),
            (
                r#"[{"role":"assistant","content":null,"tool_calls":[]}]"#,
                "`messages[0].content` is required; only an assistant message with `tool_calls` may omit it",
            ),
            (r#"[{"role":"user","content":"a"},7]"#, "`messages[1]` must be an object, not 7"),
            ("[]", "`messages` must be a non-empty array of messages, not an empty array"),
            ("{}", "`messages` must be a non-empty array of messages, not an object"),
        ] {
            assert_eq!(error(messages), expected);
        }
    }
}
