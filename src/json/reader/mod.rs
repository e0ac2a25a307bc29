//! A single-pass JSON reader that builds no values: they stay the bytes they are.
//!
//! The requests and responses of completions pass through nearly unchanged: long strings in little structure, of which
//! only a few short fields are needed. To extract raw values, `serde_json` scans them again at each level of nesting.
//! A [`Reader`] lets its user descend where needed in one pass; it validates whatever it skips, and finds the ends of
//! strings many bytes at a time. If `serde_json` skipped values instead, a completion would take 3 % more instructions,
//! and one with a prompt of 100 kB 46 %; if ends of strings were looked for byte by byte, the former would take 11 % more
//! (28 November 2026).
//!
//! What must hold: whatever is accepted here, `serde_json` accepts as well, with the same meaning, whether as raw or as
//! decoded values; so nesting is limited. Error messages come from `serde_json`.

mod check;
mod scan;

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memmem};
use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;

pub(crate) use check::MAX_DEPTH;
pub(super) use scan::find_special;

/// A raw JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    /// One that this program wrote.
    pub(crate) const fn written(text: &'a str) -> Self {
        Self(text)
    }

    /// Its text, without surrounding white space.
    pub const fn get(self) -> &'a str {
        self.0
    }

    /// Where it stands in `text`, of which it is a part; `None` if it is of another.
    pub fn place_in(self, text: &str) -> Option<Range<usize>> {
        let start = self.0.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
        let place = start..start.checked_add(self.0.len())?;
        text.get(place.clone()).filter(|part| *part == self.0).map(|_| place)
    }

    /// Deserializes the value, if it has this type.
    pub fn read<T: Deserialize<'a>>(self) -> Option<T> {
        serde_json::from_str(self.0).ok()
    }

    /// Whether a value that `serde_json` has read is nested more than [`MAX_DEPTH`] levels deep. One that a [`Reader`]
    /// has read never is.
    pub(super) fn is_too_deep(self) -> bool {
        Reader::new(self.0).skip_value().is_none()
    }

    /// Whether it is null.
    pub fn is_null(self) -> bool {
        self.0 == "null"
    }

    /// Whether it is an object.
    pub fn is_object(self) -> bool {
        self.0.starts_with('{')
    }

    /// Whether it is an array.
    pub fn is_array(self) -> bool {
        self.0.starts_with('[')
    }

    /// Whether it is a string, which may contain escapes that cannot be decoded, such as a lone surrogate.
    pub fn is_string(self) -> bool {
        self.0.starts_with('"')
    }

    /// The decoded string, copied only if it contains escapes; `None` for other values, and if it cannot be decoded.
    pub fn string(self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        if memchr(b'\\', inner.as_bytes()).is_some() {
            self.read().map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(inner))
        }
    }

    /// Whether a string can be decoded.
    pub fn is_decodable(self) -> bool {
        // Escapes are rare, and only an escape can be a lone surrogate. A single byte is found sooner than two.
        let bytes = self.0.as_bytes();
        let has_code = memchr(b'\\', bytes).is_some() && memmem::find(bytes, b"\\u").is_some();
        !has_code || self.string().is_some()
    }

    /// Reads the elements of an array one by one, until one of them fails; nothing of other values. `each` gets the
    /// index, and has to read the element.
    pub(crate) fn each<E>(
        self,
        mut each: impl FnMut(usize, &mut Reader<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut index, mut outcome) = (0, Ok(()));
        let _ = Reader::new(self.0).array(|reader| {
            outcome = each(index, reader);
            index += 1;
            outcome.is_ok().then_some(())
        });
        outcome
    }

    /// The elements of an array; `None` for other values.
    pub fn items(self) -> Option<Vec<Self>> {
        let mut items = Vec::new();
        Reader::new(self.0).array(|reader| {
            items.push(reader.value()?);
            Some(())
        })?;
        Some(items)
    }

    /// As [`Reader::fields`].
    pub fn fields<const N: usize>(self, names: [&str; N]) -> Option<[Option<Self>; N]> {
        Reader::new(self.0).fields(names)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|value| Self(value.get()))
    }
}

/// A field's raw name.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    inner: &'a str,
    has_escapes: bool,
}

impl<'a> Name<'a> {
    /// The decoded name; `None` if it cannot be decoded.
    ///
    /// Inlined, as the name, which has only just been written to memory, would otherwise be loaded before that store
    /// has completed, which takes longer than finding the name.
    #[inline]
    pub fn decode(self) -> Option<Cow<'a, str>> {
        if self.has_escapes { self.decode_escapes().map(Cow::Owned) } else { Some(Cow::Borrowed(self.inner)) }
    }

    #[cold]
    fn decode_escapes(self) -> Option<String> {
        serde_json::from_str(&format!("\"{}\"", self.inner)).ok()
    }
}

/// A cursor in a JSON text. Each function reads what begins at the cursor and moves the cursor past it, or returns
/// `None` if that is something else or invalid; the position of the cursor is unspecified then.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// At the beginning of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: scan::skip_whitespace(text.as_bytes(), 0) }
    }

    /// Whether nothing but white space follows.
    pub(super) fn is_at_end(&self) -> bool {
        scan::skip_whitespace(self.text.as_bytes(), self.at) == self.text.len()
    }

    /// The byte that a value begins with.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// A value of any type.
    pub fn value(&mut self) -> Option<Json<'a>> {
        let begin = self.at;
        self.skip_value()?;
        self.value_since(begin)
    }

    /// A string that can be decoded.
    pub(super) fn decodable(&mut self) -> Option<Json<'a>> {
        let begin = self.at;
        let (end, has_escapes) = check::name(self.text.as_bytes(), begin)?;
        self.at = end;
        self.value_since(begin).filter(|text| !has_escapes || text.is_decodable())
    }

    /// Skips a value of any type.
    pub(crate) fn skip_value(&mut self) -> Option<()> {
        self.at = check::value(self.text.as_bytes(), self.at)?;
        Some(())
    }

    /// An object, with `each` to read the value of each field.
    pub fn object(&mut self, mut each: impl FnMut(&mut Self, Name<'a>) -> Option<()>) -> Option<()> {
        let bytes = self.text.as_bytes();
        self.at = check::open(bytes, self.at, b'{')?;
        while bytes.get(self.at) != Some(&b'}') {
            let (end, has_escapes) = check::name(bytes, self.at)?;
            let name = Name { inner: self.text.get(self.at + 1..end - 1)?, has_escapes };
            self.at = check::colon(bytes, end)?;
            each(self, name)?;
            self.at = check::comma(bytes, self.at, b'}')?;
        }
        self.at += 1;
        Some(())
    }

    /// An array, with `each` to read each element.
    pub fn array(&mut self, mut each: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        let bytes = self.text.as_bytes();
        self.at = check::open(bytes, self.at, b'[')?;
        while bytes.get(self.at) != Some(&b']') {
            each(self)?;
            self.at = check::comma(bytes, self.at, b']')?;
        }
        self.at += 1;
        Some(())
    }

    /// The elements of an array, as `each` reads them; `None` also if there are more than `max`. An element of a few
    /// bytes becomes a value of hundreds: without a limit, a provider could make the server use a hundred times as much
    /// memory as it sends.
    pub(crate) fn list<T>(
        &mut self,
        max: usize,
        mut each: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        // Nearly all lists have one element.
        let mut list = Vec::with_capacity(1);
        self.array(|reader| {
            list.push(each(reader)?);
            (list.len() <= max).then_some(())
        })?;
        Some(list)
    }

    /// The fields of an object with these names, without nulls; `None` also if one of them appears twice, or if any
    /// name cannot be decoded.
    pub fn fields<const N: usize>(&mut self, names: [&str; N]) -> Option<[Option<Json<'a>>; N]> {
        self.fields_with(names, |_, reader| reader.skip_value())
    }

    /// As [`Reader::fields`], with `each` to read the value of each field, so that it can descend into it.
    pub(crate) fn fields_with<const N: usize>(
        &mut self,
        names: [&str; N],
        mut each: impl FnMut(&str, &mut Self) -> Option<()>,
    ) -> Option<[Option<Json<'a>>; N]> {
        let mut found = [None; N];
        self.object(|reader, name| {
            let (name, begin) = (name.decode()?, reader.at);
            each(&name, reader)?;
            let Some(index) = names.iter().position(|known| *known == name) else { return Some(()) };
            found[index].replace(reader.value_since(begin)?).is_none().then_some(())
        })?;
        Some(found.map(|value: Option<Json<'_>>| value.filter(|value| !value.is_null())))
    }

    /// Reads a value with `read`; if that fails, skips the value and returns `Some(None)`.
    pub fn try_read<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        let begin = self.clone();
        let outcome = read(self);
        if outcome.is_none() {
            *self = begin;
            self.skip_value()?;
        }
        Some(outcome)
    }

    /// The current position.
    pub(crate) const fn position(&self) -> usize {
        self.at
    }

    /// The value that was read since this position.
    pub(crate) fn value_since(&self, begin: usize) -> Option<Json<'a>> {
        self.text.get(begin..self.at).map(Json)
    }
}

#[cfg(test)]
mod tests;
