//! Parsing JSON that must not contain duplicate fields: two readers might each take a different one, and nobody knows
//! which the caller meant. (`serde_json`'s own [`Value`] silently takes the last.) Either into values, or only checked,
//! where they stay the bytes they are.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::fields::Fields;
use super::reader::{MAX_DEPTH, Reader};

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

/// The fields of a text that [`parse`] parses as an object; `None` for any other, and if it has too many fields or is
/// nested too deeply to be read as it is.
pub(crate) fn fields(text: &[u8]) -> Option<Fields<'_>> {
    let mut reader = Reader::new(std::str::from_utf8(text).ok()?);
    let fields = Fields::next_with(&mut reader, |_, reader| skip(reader, &mut Vec::new(), 0))?;
    reader.is_at_end().then_some(fields)
}

/// Skips a value, if it can be decoded and has no field twice. `names` holds those of the objects around it.
fn skip<'a>(reader: &mut Reader<'a>, names: &mut Vec<Cow<'a, str>>, depth: u32) -> Option<()> {
    match reader.peek()? {
        b'{' | b'[' if depth == MAX_DEPTH => None,
        b'{' => {
            let begin = names.len();
            reader.object(|reader, name| {
                names.push(name.decode()?);
                skip(reader, names, depth + 1)
            })?;
            let own = names.get_mut(begin..)?;
            own.sort_unstable();
            let has_none_twice = own.windows(2).all(|pair| pair[0] != pair[1]);
            names.truncate(begin);
            has_none_twice.then_some(())
        }
        b'[' => reader.array(|reader| skip(reader, names, depth + 1)),
        b'"' => reader.decodable().map(drop),
        b't' | b'f' | b'n' => reader.skip_value(),
        // Too large a number is none.
        _ => reader.value()?.read::<f64>().map(drop),
    }
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

    #[test]
    fn what_is_only_checked_is_refused_where_it_has_a_field_twice_or_is_too_deep() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        let deepest = nested(MAX_DEPTH as usize);
        for text in [&deepest, r#"{"a":{"a":[{"a":1},{"a":1e300}]},"b":{"a":"\ud83d\ude00"}}"#, " {} "] {
            assert!(fields(text.as_bytes()).is_some(), "{text}");
        }
        for text in [
            &nested(MAX_DEPTH as usize + 1),
            &nested(200_000),
            r#"{"a":{"b":1,"c":2,"\u0062":3}}"#,
            r#"{"a":[[{"x":{},"x":{}}]]}"#,
            r#"{"a":"\ud83d"}"#,
            r#"{"a":{"\ud83d":1}}"#,
            r#"{"a":1e999}"#,
            r#"{"a":1}x"#,
            "[]",
        ] {
            assert!(fields(text.as_bytes()).is_none(), "{text:.40}");
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

        #[test]
        fn what_is_only_checked_has_to_be_what_is_parsed(
            value in r#"(\{("[ab]{1,2}":|"\\u0061":|"\\ud800":|\[|1|2\.5|1e999|null|tru|"x\\n"|"\\ud83d\\ude00"|"\\ud83d"|,|\]|\}){0,12}|.{0,8})"#
        ) {
            for text in [format!("{{\"x\":{value}}}"), value] {
                let parsed = parse(text.as_bytes()).ok().filter(Value::is_object);
                prop_assert_eq!(fields(text.as_bytes()).is_some(), parsed.is_some(), "{}", text);
            }
        }
    }
}
