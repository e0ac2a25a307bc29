//! Reads the request of a chat completion: documented fields are checked, nothing else is decoded.
//!
//! Every error names the parameter by its JSON path, what was sent and what is allowed. Undocumented fields are passed
//! on, even those that no API knows: a provider of the same format decides about them itself, and for any other format
//! the fields it cannot express are rejected by name. So nothing is silently dropped, and a field that a provider
//! invents tomorrow works without a new version of this server. What is refused is a name that only case tells from one
//! that was checked, and to keys with limits what would get round these (see `limited`).

use std::ops::RangeInclusive;

use super::message;
use crate::inference::{CompletionRequest, Fields, Json, MAX_CHOICES, Reader};
use crate::server::reply::{ApiError, ErrorCode};

/// The allowed range of `temperature`.
pub(in crate::server) const TEMPERATURE: RangeInclusive<f64> = 0.0..=2.0;
/// The maximum of `max_tokens`.
pub(in crate::server) const MAX_TOKENS: u64 = u32::MAX as u64;

/// The fields that say what is asked of which model and how much of it, or how it is routed and counted.
const OWN_FIELDS: [&str; 8] =
    ["model", "messages", "input", "max_tokens", "max_completion_tokens", "n", "stream", "stream_options"];

/// Whether two names are the same to decoders that ignore case, such as Go's, which also folds the long s and the
/// Kelvin sign (<https://pkg.go.dev/encoding/json#Unmarshal>).
pub(in crate::server::endpoints) fn is_same_but_for_case(name: &str, known: &str) -> bool {
    // The Kelvin sign takes three bytes.
    let may_fold = !name.is_ascii() && name.len() <= 3 * known.len();
    name.eq_ignore_ascii_case(known)
        || (may_fold && name.to_uppercase().to_lowercase() == known.to_ascii_lowercase())
}

/// Fails if a provider could take a name for that of one of our own fields, although we did not.
pub(super) fn ensure_unambiguous(fields: &Fields<'_>) -> Result<(), ApiError> {
    let is_usual = |c: u8| c.is_ascii_lowercase() || c == b'_' || c.is_ascii_digit();
    let odd_names = fields.iter().map(|(name, _)| name).filter(|name| !name.bytes().all(is_usual));
    for name in odd_names {
        if let Some(known) = OWN_FIELDS.into_iter().find(|known| is_same_but_for_case(name, known)) {
            let message = format!("`{name}` is not a parameter; did you mean `{known}`?");
            return Err(ApiError::parameter(ErrorCode::UnsupportedParameter, name, message));
        }
    }
    Ok(())
}

/// Reads a body as an object. `each` reads the value of each field, so that it can descend into it.
fn object_with<'a>(
    body: &'a [u8],
    each: impl FnMut(&str, &mut Reader<'a>) -> Option<()>,
) -> Result<Fields<'a>, ApiError> {
    if body.is_empty() {
        return Err(ApiError::from(ErrorCode::InvalidJson));
    }
    let malformed = |cause: &dyn std::fmt::Display| {
        ApiError::new(ErrorCode::InvalidJson, format!("the request body is not a valid JSON object: {cause}"))
    };
    // Checked once here: otherwise each value that is kept as raw JSON would be checked again.
    let json = std::str::from_utf8(body).map_err(|cause| malformed(&cause))?;
    Fields::parse_with(json, each).map_err(|cause| {
        if cause.is_data() && !json.trim_ascii_start().starts_with('{') {
            // The cause would repeat a string in full.
            return ApiError::new(
                ErrorCode::InvalidJson,
                "the request body is JSON, but not an object; send a JSON object",
            );
        }
        malformed(&cause)
    })
}

/// Reads a body as an object.
pub(in crate::server) fn object(body: &[u8]) -> Result<Fields<'_>, ApiError> {
    object_with(body, |_, reader| reader.skip_value())
}

/// Reads a request: the model it names, and the completion.
pub(crate) fn read(body: &[u8]) -> Result<(String, CompletionRequest<'_>), ApiError> {
    let mut messages = None;
    let fields = fields_of(body, |name, reader| match name {
        "messages" => reader.try_read(message::read_all).map(|read| messages = read),
        _ => reader.value().map(drop),
    })?;
    let model = model(&fields)?;
    let prompt_tokens = match fields.get("messages") {
        None => return Err(missing("messages")),
        Some(value) => message::check_all(value, messages)?,
    };
    number(&fields, "temperature", &TEMPERATURE)?;
    for name in ["max_tokens", "max_completion_tokens"] {
        whole(&fields, name, MAX_TOKENS)?;
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
    Ok((model, CompletionRequest { fields, stream, include_usage, choices, prompt_tokens, native: None }))
}

/// As [`object`], with `each` as in [`Fields::parse_with`], and fails if a name could be taken for one of our own.
pub(in crate::server::endpoints) fn fields_of<'b>(
    body: &'b [u8],
    each: impl FnMut(&str, &mut Reader<'b>) -> Option<()>,
) -> Result<Fields<'b>, ApiError> {
    let fields = object_with(body, each)?;
    ensure_unambiguous(&fields)?;
    Ok(fields)
}

pub(in crate::server::endpoints) fn model(fields: &Fields<'_>) -> Result<String, ApiError> {
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

/// A field that is a whole number from 1, if given.
pub(in crate::server) fn whole(
    fields: &Fields<'_>,
    name: &'static str,
    max: u64,
) -> Result<Option<u64>, ApiError> {
    let Some(value) = fields.non_null(name) else { return Ok(None) };
    match value.read::<u64>() {
        Some(number) if (1..=max).contains(&number) => Ok(Some(number)),
        _ => Err(invalid(name, &format!("a whole number from 1 to {max}"), value)),
    }
}

/// A field that is true or, also if it is not given, false.
pub(in crate::server) fn boolean(
    fields: &Fields<'_>,
    name: &str,
    path: &'static str,
) -> Result<bool, ApiError> {
    let Some(value) = fields.non_null(name) else { return Ok(false) };
    value.read().ok_or_else(|| invalid(path, "true or false", value))
}

/// 400 for a required parameter that is missing.
pub(in crate::server) fn missing(path: impl Into<String>) -> ApiError {
    let path = path.into();
    let message = format!("`{path}` is required");
    ApiError::parameter(ErrorCode::MissingParameter, path, message)
}

/// 400 for a value that is not allowed.
pub(in crate::server) fn invalid(path: impl Into<String>, allowed: &str, value: Json<'_>) -> ApiError {
    let path = path.into();
    let message = format!("`{path}` must be {allowed}, not {}", describe(value));
    ApiError::parameter(ErrorCode::InvalidParameter, path, message)
}

/// A value as it appears in a message: short ones verbatim, others by their type.
fn describe(value: Json<'_>) -> String {
    const MAX_LENGTH: usize = 40;
    let raw = value.get();
    match raw.bytes().next() {
        Some(b'{') => "an object".to_owned(),
        Some(b'[') if raw.len() > 2 => "an array".to_owned(),
        Some(b'[') => "an empty array".to_owned(),
        _ if raw.len() <= MAX_LENGTH && raw.chars().all(|c| c.is_ascii_graphic() || c == ' ') => {
            raw.to_owned()
        }
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
        let (model, completion) = read(body.as_bytes()).unwrap();
        assert_eq!((model.as_str(), completion.choices), ("a/b", 2));
        assert!(completion.stream && completion.include_usage);
        // Four tokens for each message, and a quarter of the characters; images are not text.
        assert_eq!(completion.prompt_tokens, 4 + 2 + 4 + 1);
    }

    #[test]
    fn null_counts_as_omitted() {
        let body = r#"{"model":"a/b","messages":[{"role":"user","content":"x"}],"stream":null,"n":null,"temperature":null}"#;
        let (_, completion) = read(body.as_bytes()).unwrap();
        assert_eq!((completion.stream, completion.choices), (false, 1));
    }

    #[test]
    fn an_error_is_short_however_long_the_body() {
        let long = "x".repeat(10_000);
        for body in [format!("\"{long}\""), format!("{{\"{long}\":1,\"{long}\":2}}")] {
            let error = read(body.as_bytes()).unwrap_err().into_body("");
            assert_eq!(error.code, "invalid_json");
            assert!(error.message.len() < 300, "{}", error.message);
        }
    }

    proptest! {
        #[test]
        fn no_body_makes_it_panic(
            body in r#"\{("(model|messages|n|stream|stream_options|temperature)":("a/b"|[0-9.e-]{1,4}|null|true|\[(\{("(role|content)":("user"|null|\[\{"type":"text"\}\]|7),?){0,2}\},?){0,2}\]|\{\}),?){0,4}\}?"#
        ) {
            let _ = read(body.as_bytes());
        }
    }
}
