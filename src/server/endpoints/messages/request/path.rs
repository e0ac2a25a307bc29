//! Where something stands in a request. It is written out only for what is at fault, as a request has thousands of
//! blocks that are not.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::inference::{Fields, Json, Reader};
use crate::json::raw;
use crate::server::reply::ApiError;
use crate::server::request::params;

/// A place: a parameter, or what stands in another.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path<'p> {
    Parameter(&'p str),
    Field(&'p Self, &'p str),
    Item(&'p Self, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter(name) => f.write_str(name),
            Self::Field(parent, name) => {
                parent.fmt(f)?;
                f.write_str(".")?;
                f.write_str(name)
            }
            Self::Item(parent, index) => {
                parent.fmt(f)?;
                f.write_str("[")?;
                index.fmt(f)?;
                f.write_str("]")
            }
        }
    }
}

impl<'p> Path<'p> {
    pub(super) const fn field(&'p self, name: &'p str) -> Self {
        Self::Field(self, name)
    }

    pub(super) const fn item(&'p self, index: usize) -> Self {
        Self::Item(self, index)
    }

    /// 400, as it is required.
    pub(super) fn missing(&self) -> ApiError {
        params::missing(&self.to_string())
    }

    /// 400, as it is not what it must be.
    pub(super) fn must_be(&self, allowed: &str) -> ApiError {
        params::invalid(&self.to_string(), format!("`{self}` must be {allowed}"))
    }

    /// 400, as it is of another type. What is missing counts as null.
    pub(super) fn wrong_type(&self, expected: &str, found: Option<Json<'_>>) -> ApiError {
        let found = found.and_then(Json::read::<Value>).unwrap_or_default();
        params::wrong_type(&self.to_string(), expected, &found)
    }

    /// A value that must be a string.
    pub(super) fn string<'a>(&self, value: Option<Json<'a>>) -> Result<Json<'a>, ApiError> {
        match value.filter(|value| !value.is_null()) {
            None => Err(self.missing()),
            Some(value) if value.is_string() => Ok(value),
            wrong => Err(self.wrong_type("a string", wrong)),
        }
    }

    /// The inside of a field of an object here, which must be a string.
    pub(super) fn text_of<'a>(&self, fields: &Fields<'a>, name: &str) -> Result<&'a str, ApiError> {
        self.field(name).string(fields.get(name)).map(raw::inside)
    }

    /// A field of an object here, which must be a string, decoded.
    pub(super) fn word_of<'a>(&self, fields: &Fields<'a>, name: &str) -> Result<Cow<'a, str>, ApiError> {
        let word = self.field(name).string(fields.get(name))?;
        Ok(word.string().unwrap_or_default())
    }

    /// The fields of a value that must be an object.
    pub(super) fn object<'a>(&self, value: Json<'a>) -> Result<Fields<'a>, ApiError> {
        self.next_object(&mut Reader::new(value.get()))
    }

    /// As [`Self::object`], of the value that comes next.
    pub(super) fn next_object<'a>(&self, reader: &mut Reader<'a>) -> Result<Fields<'a>, ApiError> {
        let mut rest = reader.clone();
        Fields::next(reader).ok_or_else(|| match rest.value() {
            Some(value) if !value.is_object() => self.wrong_type("an object", Some(value)),
            _ => self.must_be("an object with fewer fields"),
        })
    }
}
