//! A JSON object of which only the field names are decoded; the values stay the bytes they are.
//!
//! What passes between a caller and a provider of the same format is parsed no more than needed: fields are found by
//! name, some are replaced, and the others are written out again byte for byte.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::reader::{self, Json, Reader};
use super::write::write_string;

/// More than any format has. Names are compared pairwise, so their number must be bounded.
const MAX_FIELDS: usize = 256;

/// The fields of an object in their order, with unique names.
#[derive(Debug, Default)]
pub struct Fields<'a>(Vec<(Cow<'a, str>, Json<'a>)>);

/// The usual number of fields, as an initial capacity.
const USUAL_FIELDS: usize = 12;

impl<'a> Fields<'a> {
    /// Parses a text that is one object.
    ///
    /// # Errors
    /// If it is anything else, contains a name twice, or has too many fields.
    pub fn parse(text: &'a str) -> serde_json::Result<Self> {
        Self::parse_with(text, |_, reader| reader.skip_value())
    }

    /// As [`Fields::parse`], with `each` to read the value of each field, so that it can descend into it.
    ///
    /// # Errors
    /// As [`Fields::parse`].
    pub fn parse_with(
        text: &'a str,
        each: impl FnMut(&str, &mut Reader<'a>) -> Option<()>,
    ) -> serde_json::Result<Self> {
        let mut reader = Reader::new(text);
        match Self::next_with(&mut reader, each).filter(|_| reader.is_at_end()) {
            Some(fields) => Ok(fields),
            // For its error message, or where the reader is stricter.
            None => serde_json::from_str(text),
        }
    }

    /// Reads an object; `None` where [`Fields::parse`] fails.
    pub(crate) fn next(reader: &mut Reader<'a>) -> Option<Self> {
        Self::next_with(reader, |_, reader| reader.skip_value())
    }

    /// As [`Fields::next`], with `each` to read the value of each field, so that it can descend into it.
    pub(crate) fn next_with(
        reader: &mut Reader<'a>,
        mut each: impl FnMut(&str, &mut Reader<'a>) -> Option<()>,
    ) -> Option<Self> {
        let mut fields: Vec<(Cow<'_, str>, Json<'_>)> = Vec::with_capacity(USUAL_FIELDS);
        reader.object(|reader, name| {
            let name = name.decode().filter(|name| fields.iter().all(|(field, _)| field != name))?;
            let begin = reader.position();
            each(&name, reader)?;
            fields.push((name, reader.value_since(begin)?));
            (fields.len() <= MAX_FIELDS).then_some(())
        })?;
        Some(Self(fields))
    }

    /// A field's raw value.
    pub fn get(&self, name: &str) -> Option<Json<'a>> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| *value)
    }

    /// A field's raw value, if it is present and not null.
    pub fn non_null(&self, name: &str) -> Option<Json<'a>> {
        self.get(name).filter(|value| !value.is_null())
    }

    /// A field's value, if it has this type.
    pub fn read<T: Deserialize<'a>>(&self, name: &str) -> Option<T> {
        self.get(name)?.read()
    }

    /// How many bytes their values have.
    pub(crate) fn length(&self) -> usize {
        self.0.iter().map(|(_, value)| value.get().len()).sum()
    }

    /// All fields, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Json<'a>)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
    }
}

impl<'a> FromIterator<(&'a str, Json<'a>)> for Fields<'a> {
    /// Fields of these names, which are different.
    fn from_iter<I: IntoIterator<Item = (&'a str, Json<'a>)>>(fields: I) -> Self {
        Self(fields.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect())
    }
}

/// Appends a field to an object that begins with `{`. `value` is JSON; `name` needs no escaping.
pub(crate) fn write_field(out: &mut Vec<u8>, name: &'static str, value: &str) {
    for part in [comma(out), "\"", name, "\":", value] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// As [`write_field`], for a name that may need escaping.
pub(crate) fn write_field_escaped(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(comma(out).as_bytes());
    write_string(out, name);
    out.push(b':');
    out.extend_from_slice(value.as_bytes());
}

fn comma(out: &[u8]) -> &'static str {
    if out.last() == Some(&b'{') { "" } else { "," }
}

/// Appends what stands before the next element of a list: one that begins with `[`, or elements alone.
pub(crate) fn begin_element(out: &mut Vec<u8>) {
    if !matches!(out.last(), None | Some(b'[')) {
        out.push(b',');
    }
}

/// As [`write_field`], with a number as the value.
pub(crate) fn write_number_field(out: &mut Vec<u8>, name: &'static str, value: u64) {
    write_field(out, name, itoa::Buffer::new().format(value));
}

/// As [`write_field`], with a string as the value.
pub(crate) fn write_string_field(out: &mut Vec<u8>, name: &'static str, value: &str) {
    write_field(out, name, "");
    write_string(out, value);
}

/// A field's name, copied only if it contains escapes. Serde always copies a bare [`Cow`].
#[derive(Debug, serde::Deserialize)]
struct FieldName<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor).map(Fields)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Vec<(Cow<'de, str>, Json<'de>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut fields: Self::Value = Vec::with_capacity(USUAL_FIELDS);
        while let Some((FieldName(name), value)) = map.next_entry::<FieldName<'de>, Json<'de>>()? {
            if fields.len() == MAX_FIELDS {
                return Err(M::Error::custom(format!("more than {MAX_FIELDS} fields in one object")));
            }
            if value.is_too_deep() {
                return Err(M::Error::custom(format!("nested more than {} levels deep", reader::MAX_DEPTH)));
            }
            // Two parsers might each pick a different one.
            if fields.iter().any(|(field, _)| *field == name) {
                let shown: String = name.chars().take(64).collect();
                return Err(M::Error::custom(format!("the field {shown:?} appears twice")));
            }
            fields.push((name, value));
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_as_they_are() {
        let body = r#"{"a": 1.50, "\u0062":[ 1,  2 ], "c":null}"#;
        let fields = Fields::parse(body).unwrap();
        assert_eq!(fields.get("a").unwrap().get(), "1.50");
        assert_eq!(fields.get("b").unwrap().get(), "[ 1,  2 ]");
        assert!(fields.get("c").is_some() && fields.non_null("c").is_none());
        assert_eq!(fields.read::<f64>("a"), Some(1.5));
        assert_eq!(fields.read::<bool>("a"), None);
        let mut out = b"{".to_vec();
        fields.iter().for_each(|(name, value)| write_field_escaped(&mut out, name, value.get()));
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"a":1.50,"b":[ 1,  2 ],"c":null"#);
    }

    #[test]
    fn duplicates_too_many_fields_and_other_types_are_refused() {
        let error = |body: &str| Fields::parse(body).unwrap_err().to_string();
        assert!(error(r#"{"a":1,"\u0061":2}"#).contains(r#"the field "a" appears twice"#));
        let many: Vec<String> = (0..300).map(|index| format!("\"{index}\":0")).collect();
        assert!(error(&format!("{{{}}}", many.join(","))).contains("more than 256"));
        assert!(error("[]").contains("an object"));
        assert!(error("{\"a\":}").contains("expected value"));
    }

    #[test]
    fn what_is_nested_too_deeply_is_refused() {
        let nested = |depth: usize| format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
        let deepest = nested(reader::MAX_DEPTH as usize);
        assert!(Fields::parse(&deepest).unwrap().read::<serde_json::Value>("a").is_some());
        for depth in [reader::MAX_DEPTH as usize + 1, 200_000] {
            let error = Fields::parse(&nested(depth)).unwrap_err().to_string();
            assert!(error.starts_with("nested more than 120 levels deep"), "{error}");
        }
    }
}
