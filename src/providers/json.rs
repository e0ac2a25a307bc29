//! JSON that is read in one go and not built: values stay the bytes they are.
//!
//! A completion's request and answer pass nearly as they came: long texts in little structure, of which a few short
//! fields are looked at. Asked for values as they stand, `serde_json` reads them anew at each level of nesting; that was
//! a quarter of all instructions of a completion. Here whoever knows where he is going takes a [`Reader`] along: it
//! checks that what it passes is JSON, and finds the ends of texts many bytes at a time.
//!
//! What must hold: what is read here, `serde_json` reads as well, and as the same. What is wrong with a text, it is
//! asked to tell.

mod check;
mod scan;

use std::borrow::Cow;

use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;

pub(super) use scan::is_plain;

/// A JSON value as it stands in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    /// As it stands there, without the white space around it.
    pub const fn get(self) -> &'a str {
        self.0
    }

    /// A value of this type, if it is one.
    pub fn read<T: Deserialize<'a>>(self) -> Option<T> {
        serde_json::from_str(self.0).ok()
    }

    /// Whether it says nothing.
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

    /// Whether it is a text, which need not be one that can be decoded: half a character may be escaped in it.
    pub fn is_text(self) -> bool {
        self.0.starts_with('"')
    }

    /// A text, copied only if it holds escapes; `None` for other values, and if it cannot be decoded.
    pub fn text(self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        if inner.contains('\\') { self.read().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
    }

    /// The values of an array; `None` for other values.
    pub fn items(self) -> Option<Vec<Self>> {
        let mut items = Vec::new();
        Reader::new(self.0).array(|reader| {
            items.push(reader.value()?);
            Some(())
        })?;
        Some(items)
    }

    /// As [`Reader::known`].
    pub fn known<const N: usize>(self, names: [&str; N]) -> Option<[Option<Self>; N]> {
        Reader::new(self.0).known(names)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|value| Self(value.get()))
    }
}

/// A field's name as it stands in a text.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    inner: &'a str,
    has_escapes: bool,
}

impl<'a> Name<'a> {
    /// What it says; `None` if that cannot be decoded.
    ///
    /// Inlined, as a name that has just been made is otherwise read from memory before it is there, which takes longer
    /// than to find it.
    #[inline]
    pub fn text(self) -> Option<Cow<'a, str>> {
        if self.has_escapes { self.decoded().map(Cow::Owned) } else { Some(Cow::Borrowed(self.inner)) }
    }

    #[cold]
    fn decoded(self) -> Option<String> {
        serde_json::from_str(&format!("\"{}\"", self.inner)).ok()
    }
}

/// A way through a text, from its beginning. Each function reads what begins where the reader stands, and leaves it
/// behind that; `None` is for what is something else, or no JSON, and then nobody can tell where it stands.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// At the beginning of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: scan::space(text.as_bytes(), 0) }
    }

    /// Whether nothing follows.
    pub(super) fn is_at_end(&self) -> bool {
        scan::space(self.text.as_bytes(), self.at) == self.text.len()
    }

    /// A value of any kind.
    pub fn value(&mut self) -> Option<Json<'a>> {
        let begin = self.at;
        self.pass()?;
        self.since(begin)
    }

    /// A value of any kind that nobody looks at.
    pub(super) fn pass(&mut self) -> Option<()> {
        self.at = check::value(self.text.as_bytes(), self.at)?;
        Some(())
    }

    /// An object, of which `each` is to read each value.
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

    /// An array, of which `each` is to read each value.
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

    /// The values of an array, as `each` reads them; `None` also if there are more than `most`. A few bytes make a value
    /// of hundreds: without a bound, a provider could make the server take a hundred times as much memory as it sends.
    pub(super) fn list<T>(
        &mut self,
        most: usize,
        mut each: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        // Nearly all that are read hold one.
        let mut list = Vec::with_capacity(1);
        self.array(|reader| {
            list.push(each(reader)?);
            (list.len() <= most).then_some(())
        })?;
        Some(list)
    }

    /// The fields of these names of an object, nulls left out; `None` also if one of them stands there twice, or if a
    /// name cannot be decoded.
    pub fn known<const N: usize>(&mut self, names: [&str; N]) -> Option<[Option<Json<'a>>; N]> {
        self.known_with(names, |_, reader| reader.pass())
    }

    /// As [`Reader::known`], where `each` reads the value of a field, and so may go into it.
    pub(super) fn known_with<const N: usize>(
        &mut self,
        names: [&str; N],
        mut each: impl FnMut(&str, &mut Self) -> Option<()>,
    ) -> Option<[Option<Json<'a>>; N]> {
        let mut found = [None; N];
        self.object(|reader, name| {
            let (name, begin) = (name.text()?, reader.at);
            each(&name, reader)?;
            let Some(place) = names.iter().position(|known| *known == name) else { return Some(()) };
            found[place].replace(reader.since(begin)?).is_none().then_some(())
        })?;
        Some(found.map(|value: Option<Json<'_>>| value.filter(|value| !value.is_null())))
    }

    /// What `read` makes of a value; `Some(None)` for a value that it makes nothing of.
    pub fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        let begin = self.clone();
        let outcome = read(self);
        if outcome.is_none() {
            *self = begin;
            self.pass()?;
        }
        Some(outcome)
    }

    /// Which place this is.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// The value that was read from this place on.
    pub(super) fn since(&self, begin: usize) -> Option<Json<'a>> {
        self.text.get(begin..self.at).map(Json)
    }
}

#[cfg(test)]
mod tests;
