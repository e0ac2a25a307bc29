//! Reads a request's JSON object field by field, so that every error names the parameter and what is allowed.
//!
//! serde's own errors name a line and a column; a caller needs the parameter, its range and the value that was sent.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::config::whole_numbers;
use crate::json::fields::Fields;
use crate::json::strict::{self, ParseError};
use crate::money::NanoUsd;
use crate::server::reply::{ApiError, ErrorCode};
use crate::unsafe_chars::name_in_message;

/// The parameters of a request that have not been read yet.
pub(crate) struct Params {
    fields: Map<String, Value>,
    /// The parameter whose object this is; `None` for the request itself.
    parent: Option<&'static str>,
}

impl Params {
    /// Parses a body: one JSON object without duplicate fields, no deeper than `serde_json`'s own limit of 128.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        if body.is_empty() {
            return Err(ApiError::from(ErrorCode::InvalidJson));
        }
        match strict::parse(body) {
            Ok(Value::Object(fields)) => Ok(Self { fields, parent: None }),
            Ok(other) => Err(ApiError::new(
                ErrorCode::InvalidJson,
                format!("the request body must be a JSON object, not {}", kind(&other)),
            )),
            Err(ParseError::DuplicateField(path)) => {
                let path = name_in_message(&path);
                Err(invalid(&path, format!("`{path}` appears twice; send it once")))
            }
            Err(ParseError::Invalid(cause)) => Err(ApiError::new(
                ErrorCode::InvalidJson,
                format!("the request body is not valid JSON: {cause}"),
            )),
        }
    }

    /// The fields of a body as they stand there, under the same rules and with the same errors as [`Params::parse`].
    pub(crate) fn raw(body: &[u8]) -> Result<Fields<'_>, ApiError> {
        strict::fields(body).ok_or_else(|| {
            Self::parse(body).err().unwrap_or_else(|| {
                let message = "the request body has too many parameters, or is nested too deeply";
                ApiError::new(ErrorCode::InvalidJson, message)
            })
        })
    }

    /// A required string.
    pub(crate) fn required_text(&mut self, name: &'static str) -> Result<String, ApiError> {
        match self.fields.remove(name) {
            None => Err(missing(&self.path(name))),
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(wrong_type(&self.path(name), "a string", &other)),
        }
    }

    /// An optional string; null counts as omitted.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<String>, ApiError> {
        self.text_such_as(name, "a string")
    }

    /// An optional string that `read` understands; `allowed` says what it may be. Null counts as omitted.
    pub(crate) fn parsed<T>(
        &mut self,
        name: &'static str,
        allowed: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(text) = self.text_such_as(name, allowed)? else { return Ok(None) };
        let path = self.path(name);
        let value = read(&text);
        value.map(Some).ok_or_else(|| invalid(&path, format!("`{path}` must be {allowed}")))
    }

    /// As [`Params::text`], with what is allowed for the message about another type.
    fn text_such_as(&mut self, name: &'static str, allowed: &str) -> Result<Option<String>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(&self.path(name), allowed, &other)),
        }
    }

    /// A string that may be omitted but not null, for changes to a field that is required.
    pub(crate) fn changed_text(&mut self, name: &'static str) -> Result<Option<String>, ApiError> {
        if self.fields.contains_key(name) { self.required_text(name).map(Some) } else { Ok(None) }
    }

    /// An optional boolean; null counts as omitted.
    pub(crate) fn boolean(&mut self, name: &'static str) -> Result<Option<bool>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(other) => Err(wrong_type(&self.path(name), "true or false", &other)),
        }
    }

    /// An optional whole number in a range; null counts as omitted. `2.0` is accepted as `2`.
    pub(crate) fn whole_number(
        &mut self,
        name: &'static str,
        range: std::ops::RangeInclusive<u32>,
    ) -> Result<Option<u32>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let allowed = whole_numbers(&range);
        let path = self.path(name);
        let Value::Number(number) = &value else { return Err(wrong_type(&path, &allowed, &value)) };
        let whole = number.as_u64().or_else(|| whole(number.as_f64()?));
        match whole.and_then(|whole| u32::try_from(whole).ok()).filter(|whole| range.contains(whole)) {
            Some(whole) => Ok(Some(whole)),
            None => Err(invalid(&path, format!("`{path}` must be {allowed}, not {number}"))),
        }
    }

    /// An optional amount in US dollars, by the rules of the command line; null counts as omitted.
    pub(crate) fn dollars(&mut self, name: &'static str) -> Result<Option<NanoUsd>, ApiError> {
        const ALLOWED: &str = "an amount in US dollars from 0 to 1000000000, with at most nine decimals";
        let Some(value) = self.take(name) else { return Ok(None) };
        let path = self.path(name);
        let Value::Number(number) = &value else { return Err(wrong_type(&path, ALLOWED, &value)) };
        // In decimal notation, as a person would write it, never with an exponent.
        let decimal = number.as_f64().map(|dollars| (dollars + 0.0).to_string());
        match decimal.and_then(|text| NanoUsd::parse_usd(&text)) {
            Some(amount) => Ok(Some(amount)),
            None => Err(invalid(&path, format!("`{path}` must be {ALLOWED}, not {number}"))),
        }
    }

    /// An optional list of strings; null counts as omitted.
    pub(crate) fn texts(&mut self, name: &'static str) -> Result<Option<Vec<String>>, ApiError> {
        const ALLOWED: &str = "an array of strings";
        let Some(value) = self.take(name) else { return Ok(None) };
        let path = self.path(name);
        let Value::Array(entries) = value else { return Err(wrong_type(&path, ALLOWED, &value)) };
        let text = |(at, entry)| match entry {
            Value::String(text) => Ok(text),
            other => Err(wrong_type(&format!("{path}[{at}]"), "a string", &other)),
        };
        entries.into_iter().enumerate().map(text).collect::<Result<_, _>>().map(Some)
    }

    /// The parameters within an optional object; null counts as omitted.
    pub(crate) fn object(&mut self, name: &'static str) -> Result<Option<Self>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(Self { fields, parent: Some(name) })),
            Some(other) => Err(wrong_type(&self.path(name), "an object", &other)),
        }
    }

    /// The change of a parameter: `None` if it is omitted, `Some(None)` if it is null, else what `read` reads.
    #[expect(
        clippy::option_option,
        reason = "omitted, null, or a value: three cases, as in storage's changes"
    )]
    pub(crate) fn change<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Self, &'static str) -> Result<Option<T>, ApiError>,
    ) -> Result<Option<Option<T>>, ApiError> {
        if !self.fields.contains_key(name) {
            return Ok(None);
        }
        read(self, name).map(Some)
    }

    /// Rejects parameters that were not read: a misspelt one must not be ignored.
    pub(crate) fn finish(self, known: &[&str]) -> Result<(), ApiError> {
        let Some(name) = self.fields.keys().next() else { return Ok(()) };
        let path = self.path(&name_in_message(name));
        let message = format!("unknown parameter `{path}`; allowed are {}", known.join(", "));
        Err(ApiError::parameter(ErrorCode::UnsupportedParameter, path, message))
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.fields.remove(name).filter(|value| !value.is_null())
    }

    /// A parameter's name, prefixed with that of the object it is in.
    fn path(&self, name: &str) -> String {
        self.parent.map_or_else(|| name.to_owned(), |parent| format!("{parent}.{name}"))
    }
}

/// 400 for a parameter whose value is not allowed.
pub(crate) fn invalid(name: &str, message: impl Into<Cow<'static, str>>) -> ApiError {
    ApiError::parameter(ErrorCode::InvalidParameter, name, message)
}

/// 400 for a required parameter that is missing.
pub(crate) fn missing(name: &str) -> ApiError {
    ApiError::parameter(ErrorCode::MissingParameter, name, format!("`{name}` is required"))
}

/// 400 for a parameter with a value of another type.
pub(crate) fn wrong_type(name: &str, expected: &str, found: &Value) -> ApiError {
    invalid(name, format!("`{name}` must be {expected}, not {}", kind(found)))
}

fn whole(number: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "range and wholeness checked"
    )]
    (number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number)).then_some(number as u64)
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
