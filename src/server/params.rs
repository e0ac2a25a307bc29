//! Reading a request's JSON object field by field, so that every error names its parameter and what is allowed.
//!
//! serde's own errors name a line and a column; a caller wants the parameter, its range and what was sent.

use serde_json::{Map, Value};

use super::reply::ApiError;

/// The parameters of a request that are not read yet.
pub(crate) struct Params(Map<String, Value>);

impl Params {
    /// Parses a body: one JSON object, no deeper than `serde_json`'s own limit of 128.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        if body.is_empty() {
            return Err(ApiError::invalid_json("the request body is empty; send a JSON object"));
        }
        match serde_json::from_slice(body) {
            Ok(Value::Object(map)) => Ok(Self(map)),
            Ok(other) => Err(ApiError::invalid_json(format!(
                "the request body must be a JSON object, not {}",
                kind(&other)
            ))),
            Err(cause) => Err(ApiError::invalid_json(format!("the request body is not valid JSON: {cause}"))),
        }
    }

    /// A text that must be there.
    pub(crate) fn required_text(&mut self, name: &'static str) -> Result<String, ApiError> {
        match self.0.remove(name) {
            None => Err(ApiError::parameter("missing_parameter", name, format!("`{name}` is required"))),
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(wrong_type(name, "a string", &other)),
        }
    }

    /// A text; null counts as left out.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<String>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(name, "a string", &other)),
        }
    }

    /// A boolean; null counts as left out.
    pub(crate) fn boolean(&mut self, name: &'static str) -> Result<Option<bool>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(other) => Err(wrong_type(name, "true or false", &other)),
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
        let Value::Number(number) = &value else { return Err(wrong_type(name, &allowed, &value)) };
        let whole = number.as_u64().or_else(|| whole(number.as_f64()?));
        match whole.and_then(|whole| u32::try_from(whole).ok()).filter(|whole| range.contains(whole)) {
            Some(whole) => Ok(Some(whole)),
            None => Err(invalid(name, format!("`{name}` must be {allowed}, not {number}"))),
        }
    }

    /// Refuses what was not read: a misspelt parameter must not be ignored.
    pub(crate) fn finish(self, known: &[&str]) -> Result<(), ApiError> {
        let Some(name) = self.0.keys().next() else { return Ok(()) };
        // The name is foreign text: shortened, and without what could play tricks on a terminal or in a log.
        let shown: String = name
            .chars()
            .take(64)
            .map(|c| if c.is_alphanumeric() || c.is_ascii_graphic() { c } else { '\u{fffd}' })
            .collect();
        let message = format!("unknown parameter `{shown}`; known are {}", known.join(", "));
        Err(ApiError::parameter("unsupported_parameter", shown, message))
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }
}

/// 400 for a parameter with a value that is not allowed.
pub(crate) fn invalid(name: &'static str, message: impl Into<String>) -> ApiError {
    ApiError::parameter("invalid_parameter", name, message)
}

fn wrong_type(name: &'static str, wanted: &str, found: &Value) -> ApiError {
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
