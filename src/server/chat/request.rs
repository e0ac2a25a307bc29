//! Reading a chat completion's request: the documented fields are checked, nothing else is decoded.
//!
//! Every error names the parameter by its JSON path, what was sent and what is allowed. Fields that are not
//! documented are passed on, also those that no API knows: a provider of the same format decides about them itself,
//! and any other refuses by name what it cannot express. So nothing is silently dropped, and a field that a provider
//! invents tomorrow works without a new version of this server.

use std::ops::RangeInclusive;

use super::message;
use crate::inference::{CompletionRequest, Fields, Json, MAX_CHOICES};
use crate::server::reply::ApiError;

/// What `temperature` may be.
pub(in crate::server) const TEMPERATURE: RangeInclusive<f64> = 0.0..=2.0;
/// The most tokens that an answer may be allowed.
pub(in crate::server) const MOST_TOKENS: u64 = u32::MAX as u64;

/// A request, and the model it names.
pub(crate) fn read(body: &[u8]) -> Result<(String, CompletionRequest<'_>), ApiError> {
    if body.is_empty() {
        return Err(ApiError::invalid_json("the request body is empty; send a JSON object"));
    }
    let wrong = |cause: &dyn std::fmt::Display| {
        ApiError::invalid_json(format!("the request body is not a valid JSON object: {cause}"))
    };
    // Once for all: otherwise each value would be checked again where it is kept as it stands.
    let json = std::str::from_utf8(body).map_err(|cause| wrong(&cause))?;
    let mut messages = None;
    let fields = Fields::parse_with(json, |name, reader| match name {
        "messages" => reader.try_read(message::read_all).map(|read| messages = read),
        _ => reader.value().map(drop),
    });
    let fields = fields.map_err(|cause| {
        if cause.is_data() && !json.trim_ascii_start().starts_with('{') {
            // The cause would repeat all of a text.
            return ApiError::invalid_json("the request body is JSON, but not an object; send a JSON object");
        }
        wrong(&cause)
    })?;
    let model = model(&fields)?;
    let prompt_tokens = match fields.get("messages") {
        None => return Err(missing("messages")),
        Some(value) => message::check_all(value, messages)?,
    };
    number(&fields, "temperature", &TEMPERATURE)?;
    for name in ["max_tokens", "max_completion_tokens"] {
        whole(&fields, name, MOST_TOKENS)?;
    }
    let choices = whole(&fields, "n", MAX_CHOICES.into())?.unwrap_or(1);
    let stream = boolean(&fields, "stream", "stream")?;
    let include_usage = match fields.non_null("stream_options") {
        None => false,
        Some(value) => {
            let options = Fields::parse(value.get());
            let options = options.map_err(|_| invalid("stream_options", "an object", value))?;
            boolean(&options, "include_usage", "stream_options.include_usage")?
        }
    };
    let choices = u32::try_from(choices).unwrap_or(1);
    Ok((model, CompletionRequest { fields, stream, include_usage, choices, prompt_tokens }))
}

fn model(fields: &Fields<'_>) -> Result<String, ApiError> {
    let value = fields.get("model").ok_or_else(|| missing("model"))?;
    let model =
        value.string().ok_or_else(|| invalid("model", "a string such as openai/gpt-5.4-mini", value))?;
    Ok(model.into_owned())
}

fn number(fields: &Fields<'_>, name: &'static str, range: &RangeInclusive<f64>) -> Result<(), ApiError> {
    let Some(value) = fields.non_null(name) else { return Ok(()) };
    match value.read::<f64>() {
        Some(number) if range.contains(&number) => Ok(()),
        _ => Err(invalid(name, &format!("a number from {} to {}", range.start(), range.end()), value)),
    }
}

fn whole(fields: &Fields<'_>, name: &'static str, most: u64) -> Result<Option<u64>, ApiError> {
    let Some(value) = fields.non_null(name) else { return Ok(None) };
    match value.read::<u64>() {
        Some(number) if (1..=most).contains(&number) => Ok(Some(number)),
        _ => Err(invalid(name, &format!("a whole number from 1 to {most}"), value)),
    }
}

fn boolean(fields: &Fields<'_>, name: &str, path: &'static str) -> Result<bool, ApiError> {
    let Some(value) = fields.non_null(name) else { return Ok(false) };
    value.read().ok_or_else(|| invalid(path, "true or false", value))
}

/// 400 for a parameter that is not there.
pub(super) fn missing(path: impl Into<String>) -> ApiError {
    let path = path.into();
    let message = format!("`{path}` is required");
    ApiError::parameter("missing_parameter", path, message)
}

/// 400 for a value that is not allowed.
pub(super) fn invalid(path: impl Into<String>, allowed: &str, value: Json<'_>) -> ApiError {
    let path = path.into();
    let message = format!("`{path}` must be {allowed}, not {}", shown(value));
    ApiError::parameter("invalid_parameter", path, message)
}

/// A value in a message: short ones as they are, others by their kind.
fn shown(value: Json<'_>) -> String {
    const LONGEST: usize = 40;
    let raw = value.get();
    match raw.bytes().next() {
        Some(b'{') => "an object".to_owned(),
        Some(b'[') if raw.len() > 2 => "an array".to_owned(),
        Some(b'[') => "an empty array".to_owned(),
        _ if raw.len() <= LONGEST && raw.chars().all(|c| c.is_ascii_graphic() || c == ' ') => raw.to_owned(),
        Some(b'"') => "another string".to_owned(),
        _ => "this value".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_routing_and_accounting_need_is_read() {
        let body = concat!(
            r#"{"model":"a/b","messages":[{"role":"user","content":"12345678"},"#,
            r#"{"role":"user","content":[{"type":"text","text":"1234"},{"type":"image_url","image_url":{"url":"data:,"#,
            r#"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}]}],"n":2,"stream":true,"stream_options":{"include_usage":true}}"#
        );
        let (model, asked) = read(body.as_bytes()).unwrap();
        assert_eq!((model.as_str(), asked.choices), ("a/b", 2));
        assert!(asked.stream && asked.include_usage);
        // Four tokens for each message, and a quarter of the characters; pictures are not text.
        assert_eq!(asked.prompt_tokens, 4 + 2 + 4 + 1);
    }

    #[test]
    fn nulls_are_parameters_left_out() {
        let body = r#"{"model":"a/b","messages":[{"role":"user","content":"x"}],"stream":null,"n":null,"temperature":null}"#;
        let (_, asked) = read(body.as_bytes()).unwrap();
        assert_eq!((asked.stream, asked.choices), (false, 1));
    }

    #[test]
    fn a_refusal_is_short_however_long_the_body() {
        let long = "x".repeat(10_000);
        for body in [format!("\"{long}\""), format!("{{\"{long}\":1,\"{long}\":2}}")] {
            let refused = read(body.as_bytes()).unwrap_err().into_body("");
            assert_eq!(refused.code, "invalid_json");
            assert!(refused.message.len() < 300, "{}", refused.message);
        }
    }

    proptest! {
        #[test]
        fn no_body_makes_it_fail(
            body in r#"\{("(model|messages|n|stream|stream_options|temperature)":("a/b"|[0-9.e-]{1,4}|null|true|\[(\{("(role|content)":("user"|null|\[\{"type":"text"\}\]|7),?){0,2}\},?){0,2}\]|\{\}),?){0,4}\}?"#
        ) {
            let _ = read(body.as_bytes());
        }
    }
}
