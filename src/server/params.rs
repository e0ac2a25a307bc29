//! Reading a request's JSON object field by field, so that every error names its parameter and what is allowed.
//!
//! serde's own errors name a line and a column; a caller wants the parameter, its range and what was sent.

use serde_json::{Map, Value};

use super::reply::ApiError;
use super::unique::{self, Fault};
use crate::money::NanoUsd;
use crate::unsafe_chars::name_in_message;

/// The parameters of a request that are not read yet.
pub(crate) struct Params {
    fields: Map<String, Value>,
    /// The parameter whose object this is.
    within: Option<&'static str>,
}

impl Params {
    /// Parses a body: one JSON object, with every field once, no deeper than `serde_json`'s own limit of 128.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        if body.is_empty() {
            return Err(ApiError::invalid_json("the request body is empty; send a JSON object"));
        }
        match unique::read(body) {
            Ok(Value::Object(fields)) => Ok(Self { fields, within: None }),
            Ok(other) => Err(ApiError::invalid_json(format!(
                "the request body must be a JSON object, not {}",
                kind(&other)
            ))),
            Err(Fault::Twice(path)) => {
                let path = name_in_message(&path);
                Err(invalid(&path, format!("`{path}` appears twice; send it once")))
            }
            Err(Fault::Invalid(cause)) => {
                Err(ApiError::invalid_json(format!("the request body is not valid JSON: {cause}")))
            }
        }
    }

    /// A text that must be there.
    pub(crate) fn required_text(&mut self, name: &'static str) -> Result<String, ApiError> {
        match self.fields.remove(name) {
            None => Err(missing(&self.path(name))),
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(wrong_type(&self.path(name), "a string", &other)),
        }
    }

    /// A text; null counts as left out.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<String>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(&self.path(name), "a string", &other)),
        }
    }

    /// A text that may be left out, but not null: what must have one cannot lose it.
    pub(crate) fn new_text(&mut self, name: &'static str) -> Result<Option<String>, ApiError> {
        if self.fields.contains_key(name) { self.required_text(name).map(Some) } else { Ok(None) }
    }

    /// A boolean; null counts as left out.
    pub(crate) fn boolean(&mut self, name: &'static str) -> Result<Option<bool>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(other) => Err(wrong_type(&self.path(name), "true or false", &other)),
        }
    }

    /// A whole number in a range; null counts as left out. `2.0` is as whole as `2`.
    pub(crate) fn whole_number(
        &mut self,
        name: &'static str,
        range: std::ops::RangeInclusive<u32>,
    ) -> Result<Option<u32>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let (least, most) = (range.start(), range.end());
        let allowed =
            if least == most { format!("{least}") } else { format!("a whole number from {least} to {most}") };
        let path = self.path(name);
        let Value::Number(number) = &value else { return Err(wrong_type(&path, &allowed, &value)) };
        let whole = number.as_u64().or_else(|| whole(number.as_f64()?));
        match whole.and_then(|whole| u32::try_from(whole).ok()).filter(|whole| range.contains(whole)) {
            Some(whole) => Ok(Some(whole)),
            None => Err(invalid(&path, format!("`{path}` must be {allowed}, not {number}"))),
        }
    }

    /// An amount in US dollars, by the rules of the command line; null counts as left out.
    pub(crate) fn dollars(&mut self, name: &'static str) -> Result<Option<NanoUsd>, ApiError> {
        const ALLOWED: &str = "an amount in US dollars from 0 to 1000000000, with at most nine decimals";
        let Some(value) = self.take(name) else { return Ok(None) };
        let path = self.path(name);
        let Value::Number(number) = &value else { return Err(wrong_type(&path, ALLOWED, &value)) };
        // Written out, as a person would write it: never with an exponent.
        let written = number.as_f64().map(|dollars| (dollars + 0.0).to_string());
        match written.and_then(|text| NanoUsd::parse_usd(&text)) {
            Some(amount) => Ok(Some(amount)),
            None => Err(invalid(&path, format!("`{path}` must be {ALLOWED}, not {number}"))),
        }
    }

    /// A list of texts; null counts as left out.
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

    /// The parameters within an object; null counts as left out.
    pub(crate) fn object(&mut self, name: &'static str) -> Result<Option<Self>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(Self { fields, within: Some(name) })),
            Some(other) => Err(wrong_type(&self.path(name), "an object", &other)),
        }
    }

    /// What a change says of a parameter: nothing if it is left out, `Some(None)` if it is null, else what `read` reads.
    #[expect(
        clippy::option_option,
        reason = "left out, null, or a value: three cases, as in storage's changes"
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

    /// Refuses what was not read: a misspelt parameter must not be ignored.
    pub(crate) fn finish(self, known: &[&str]) -> Result<(), ApiError> {
        let Some(name) = self.fields.keys().next() else { return Ok(()) };
        let shown = self.path(&name_in_message(name));
        let message = format!("unknown parameter `{shown}`; allowed are {}", known.join(", "));
        Err(ApiError::parameter("unsupported_parameter", shown, message))
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.fields.remove(name).filter(|value| !value.is_null())
    }

    /// A parameter's name with the one that it is within.
    fn path(&self, name: &str) -> String {
        self.within.map_or_else(|| name.to_owned(), |within| format!("{within}.{name}"))
    }
}

/// 400 for a parameter with a value that is not allowed.
pub(crate) fn invalid(name: &str, message: impl Into<String>) -> ApiError {
    ApiError::parameter("invalid_parameter", name, message)
}

/// 400 for a parameter that has to be there.
fn missing(name: &str) -> ApiError {
    ApiError::parameter("missing_parameter", name, format!("`{name}` is required"))
}

fn wrong_type(name: &str, wanted: &str, found: &Value) -> ApiError {
    invalid(name, format!("`{name}` must be {wanted}, not {}", kind(found)))
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
