//! Parsing JSON that must not contain duplicate fields: two readers might each take a different one, and nobody knows
//! which the caller meant. (`serde_json`'s own [`Value`] silently takes the last.)

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Why a text cannot be parsed.
#[derive(Debug)]
pub(crate) enum ParseError {
    /// A field appears twice; its path, such as `limits.per_day` or `models[1].name`.
    DuplicateField(String),
    /// It is not JSON.
    Invalid(serde_json::Error),
}

/// Parses a JSON text, no deeper than `serde_json`'s own limit of 128.
pub(crate) fn parse(text: &[u8]) -> Result<Value, ParseError> {
    let duplicate = DuplicatePath::default();
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let parsed = ValueSeed(&duplicate).deserialize(&mut deserializer);
    let complete = parsed.and_then(|value| deserializer.end().map(|()| value));
    complete
        .map_err(|cause| duplicate.0.take().map_or(ParseError::Invalid(cause), ParseError::DuplicateField))
}

/// The path of a duplicate field: set to its name where it is found, and extended to the left while the recursion
/// unwinds.
#[derive(Default)]
struct DuplicatePath(RefCell<Option<String>>);

impl DuplicatePath {
    fn found<E: Error>(&self, name: &str) -> E {
        self.0.replace(Some(name.to_owned()));
        E::custom("a field appears twice")
    }

    fn prepend(&self, parent: &str) {
        if let Some(path) = &mut *self.0.borrow_mut() {
            let dot = if path.starts_with('[') { "" } else { "." };
            *path = format!("{parent}{dot}{path}");
        }
    }
}

#[derive(Clone, Copy)]
struct ValueSeed<'a>(&'a DuplicatePath);

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<Value, S::Error> {
        let mut list = Vec::new();
        loop {
            let item = items.next_element_seed(self);
            match item.inspect_err(|_| self.0.prepend(&format!("[{}]", list.len())))? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<M: MapAccess<'de>>(self, mut fields: M) -> Result<Value, M::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(self.0.found(&name));
            }
            let value = fields.next_value_seed(self).inspect_err(|_| self.0.prepend(&name))?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn duplicate(text: &str) -> String {
        match parse(text.as_bytes()) {
            Err(ParseError::DuplicateField(path)) => path,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_duplicate_field_is_named_by_its_path() {
        assert_eq!(duplicate(r#"{"a":1,"b":2,"a":1}"#), "a");
        assert_eq!(duplicate(r#"{"a":1,"\u0061":1}"#), "a");
        assert_eq!(duplicate(r#"{"a":{"b":[0,{"c":{"d":1,"d":2}}]}}"#), "a.b[1].c.d");
        assert_eq!(duplicate(r#"[[{"x":1,"x":1}]]"#), "[0][0].x");
    }

    #[test]
    fn the_same_name_in_several_objects_is_no_duplicate() {
        let text = r#"{"a":{"a":[{"a":1},{"a":2}]},"b":{"a":1}}"#;
        assert_eq!(parse(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn invalid_json_is_reported_and_depth_is_no_danger() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        for text in ["", "{", r#"{"a":1}x"#, r#"{"a":1,"b":{"c":}}"#, "\u{0}", &deep] {
            assert!(matches!(parse(text.as_bytes()), Err(ParseError::Invalid(_))), "{text:.40}");
        }
    }

    proptest! {
        #[test]
        fn it_parses_what_serde_parses(text in r#"(\{("[ab]{1,2}":|\[|1|-1|2\.5|1e999|null|true|"x\\n"|,|\]|\}){0,12}|.{0,8})"#) {
            match parse(text.as_bytes()) {
                Ok(value) => prop_assert_eq!(Some(value), serde_json::from_str::<Value>(&text).ok()),
                Err(ParseError::Invalid(_)) => prop_assert!(serde_json::from_str::<Value>(&text).is_err()),
                // What follows the duplicate need not be JSON.
                Err(ParseError::DuplicateField(_)) => {}
            }
        }
    }
}
