//! Reads TOML so that every error names the file, the line, the key and what would be correct.
//!
//! A [`Section`] returns typed values and remembers which keys were read; [`Section::finish`] refuses all others, with
//! a suggestion. So the keys that the code reads are the known keys, without a second list. An error repeats a short
//! value where no secret belongs; a longer one may be a secret in the wrong place, as secrets are long.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{files, values};
use crate::config::{ConfigError, Origin, suggest};

/// The longest value that an error repeats: keys of providers, and our own, are longer.
const MAX_SHOWN_BYTES: usize = 20;

/// A key of a parsed table, with its location.
type Key<'d> = Spanned<Cow<'d, str>>;
/// A value of a parsed table, with its location.
type Value<'d> = Spanned<DeValue<'d>>;

/// A file's text.
pub(in crate::config) struct Document {
    path: PathBuf,
    text: String,
}

/// The location of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct Location {
    /// The dotted key, as a person would look for it: `limits.per_minute`.
    pub(in crate::config) key: String,
    path: PathBuf,
    line: usize,
}

/// A value and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct Located<T> {
    pub(in crate::config) value: T,
    pub(in crate::config) place: Location,
}

/// Values under user-defined names.
pub(in crate::config) type Named<T> = Vec<(Located<String>, T)>;

impl Location {
    /// An error about the value here; `complaint` reads `must be …` or `names …`.
    pub(in crate::config) fn error(&self, complaint: &str) -> ConfigError {
        let Self { key, path, line } = self;
        ConfigError::new(format!("`{key}` in {} line {line} {complaint}", path.display()))
    }

    pub(in crate::config) fn origin(&self) -> Origin {
        Origin::File { path: self.path.clone(), line: self.line }
    }
}

impl Document {
    /// A document with this text, as if read from `path`.
    pub(in crate::config) fn new(path: &Path, text: String) -> Self {
        Self { path: path.to_owned(), text }
    }

    /// Reads a file; `None` if it does not exist.
    pub(in crate::config) fn open(path: &Path) -> Result<Option<Self>, ConfigError> {
        Ok(files::read(path)?.map(|text| Self::new(path, text)))
    }

    pub(in crate::config) fn parse(&self) -> Result<DeTable<'_>, ConfigError> {
        DeTable::parse(&self.text).map(Spanned::into_inner).map_err(|error| {
            let line = error.span().map_or(1, |span| self.line(span.start));
            // The error's own `Display` would repeat the line, and with it what may be a secret.
            ConfigError::new(format!(
                "{} line {line} is not valid TOML: {}",
                self.path.display(),
                error.message()
            ))
        })
    }

    fn line(&self, offset: usize) -> usize {
        files::line_at(self.text.as_bytes(), offset)
    }
}

/// A table of a document, read key by key.
pub(in crate::config) struct Section<'d> {
    document: &'d Document,
    table: &'d DeTable<'d>,
    /// The dotted name; empty for the document itself.
    name: String,
    known: Vec<&'static str>,
}

impl<'d> Section<'d> {
    pub(in crate::config) fn root(document: &'d Document, table: &'d DeTable<'d>) -> Self {
        Self { document, table, name: String::new(), known: Vec::new() }
    }

    /// A string.
    pub(in crate::config) fn text(
        &mut self,
        key: &'static str,
    ) -> Result<Option<Located<String>>, ConfigError> {
        self.read(key, "a string", |value| value.as_str().map(str::to_owned))
    }

    /// A path, relative to the directory of the file. Anything that a shell would expand is refused, as it would name a
    /// file or directory that is literally called that.
    pub(in crate::config) fn path(
        &mut self,
        key: &'static str,
    ) -> Result<Option<Located<PathBuf>>, ConfigError> {
        let Some(Located { value, place }) = self.text(key)? else { return Ok(None) };
        let first = value.split(['/', std::path::MAIN_SEPARATOR]).next().unwrap_or_default();
        let complaint = match first {
            _ if value.is_empty() => return Err(place.error("must be a path, not an empty string")),
            "~" => "begins with `~`, which is not expanded here",
            first if first.starts_with('$') => "begins with a variable, which is not expanded here",
            _ => {
                let value = place.path.parent().unwrap_or(Path::new("")).join(value);
                return Ok(Some(Located { value, place }));
            }
        };
        Err(place.error(complaint).hint("write the whole path"))
    }

    /// A string that is parsed as something else.
    pub(in crate::config) fn parsed<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        convert: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<Located<T>>, ConfigError> {
        self.read(key, expected, |value| value.as_str().and_then(convert))
    }

    /// The same for a string that may hold a secret, such as an address with a password: an error never repeats it.
    pub(in crate::config) fn parsed_unseen<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        convert: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<Located<T>>, ConfigError> {
        self.read_with(key, |value| {
            value.as_str().and_then(convert).ok_or_else(|| mismatch(expected, kind(value)))
        })
    }

    /// A whole number within a range.
    pub(in crate::config) fn number<T>(
        &mut self,
        key: &'static str,
        range: RangeInclusive<T>,
    ) -> Result<Option<Located<T>>, ConfigError>
    where
        T: TryFrom<u64> + PartialOrd + std::fmt::Display,
    {
        let expected = values::whole_numbers(&range);
        self.read(key, &expected, |value| whole(value, &range))
    }

    /// True or false.
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method alone is not general enough")]
    pub(in crate::config) fn flag(
        &mut self,
        key: &'static str,
    ) -> Result<Option<Located<bool>>, ConfigError> {
        self.read(key, "true or false", |value| value.as_bool())
    }

    /// A number, whole or not.
    pub(in crate::config) fn decimal<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        convert: impl FnOnce(f64) -> Option<T>,
    ) -> Result<Option<Located<T>>, ConfigError> {
        self.read(key, expected, |value| {
            let number = match value {
                DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok()?,
                DeValue::Float(float) => float.as_str().parse().ok()?,
                _ => return None,
            };
            convert(number)
        })
    }

    /// A positive duration.
    pub(in crate::config) fn duration(
        &mut self,
        key: &'static str,
    ) -> Result<Option<Located<Duration>>, ConfigError> {
        self.read(key, values::DURATION, |value| value.as_str().and_then(values::duration))
    }

    /// A list of strings.
    pub(in crate::config) fn texts(
        &mut self,
        key: &'static str,
    ) -> Result<Option<Located<Vec<String>>>, ConfigError> {
        self.read(key, "a list of strings", strings)
    }

    /// A list of whole numbers within a range.
    pub(in crate::config) fn numbers(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u32>,
    ) -> Result<Option<Located<Vec<u32>>>, ConfigError> {
        let (low, high) = (range.start(), range.end());
        let expected = format!("a list of whole numbers from {low} to {high}");
        self.read(key, &expected, |value| {
            value.as_array()?.iter().map(|item| whole(item.get_ref(), &range)).collect()
        })
    }

    /// A list of strings that is parsed as something else.
    pub(in crate::config) fn parsed_list<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        convert: impl FnOnce(&[String]) -> Option<T>,
    ) -> Result<Option<Located<T>>, ConfigError> {
        let Some(Located { value, place }) = self.texts(key)? else { return Ok(None) };
        match convert(&value) {
            Some(value) => Ok(Some(Located { value, place })),
            None => Err(place.error(&format!("must be {expected}"))),
        }
    }

    /// A nested table.
    pub(in crate::config) fn section(&mut self, key: &'static str) -> Result<Option<Self>, ConfigError> {
        self.known.push(key);
        let Some((name, value)) = self.table.get_key_value(key) else { return Ok(None) };
        self.inside(name, value).map(Some)
    }

    /// All nested tables that were not read by name, with their names, in the order of the file. For tables with
    /// user-defined keys.
    pub(in crate::config) fn named_sections(&self) -> Result<Named<Self>, ConfigError> {
        self.unread().map(|(name, value)| Ok((self.found_name(name), self.inside(name, value)?))).collect()
    }

    /// All lists of strings that were not read by name, with their names, in the order of the file.
    pub(in crate::config) fn named_texts(&self) -> Result<Named<Vec<String>>, ConfigError> {
        self.unread()
            .map(|(name, value)| {
                let list = strings(value.get_ref()).ok_or_else(|| {
                    self.place(name).error(&mismatch("a list of strings", kind(value.get_ref())))
                })?;
                Ok((self.found_name(name), list))
            })
            .collect()
    }

    /// Refuses a key that must not be there.
    pub(in crate::config) fn forbid(&self, key: &str, why: &str, instead: &str) -> Result<(), ConfigError> {
        match self.table.get_key_value(key) {
            Some((name, _)) => Err(self.place(name).error(why).hint(instead)),
            None => Ok(()),
        }
    }

    /// Refuses keys that were never read.
    pub(in crate::config) fn finish(self) -> Result<(), ConfigError> {
        let Some((name, _)) = self.unread().next() else { return Ok(()) };
        let Location { key, path, line } = self.place(name);
        let question = suggest::did_you_mean(name.get_ref(), self.known.iter().copied());
        let error = ConfigError::new(format!("unknown key `{key}` in {} line {line}", path.display()))
            .hint_if_any(question);
        let list = self.known.iter().map(|known| format!("`{known}`")).collect::<Vec<_>>().join(", ");
        let table = if self.name.is_empty() { "the file".to_owned() } else { format!("[{}]", self.name) };
        Err(error.hint(format!("{table} may hold {list}")))
    }

    fn read<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        convert: impl FnOnce(&DeValue<'_>) -> Option<T>,
    ) -> Result<Option<Located<T>>, ConfigError> {
        self.read_with(key, |value| convert(value).ok_or_else(|| mismatch(expected, &shown(value))))
    }

    fn read_with<T>(
        &mut self,
        key: &'static str,
        convert: impl FnOnce(&DeValue<'_>) -> Result<T, String>,
    ) -> Result<Option<Located<T>>, ConfigError> {
        self.known.push(key);
        let Some((name, value)) = self.table.get_key_value(key) else { return Ok(None) };
        let place = self.place(name);
        match convert(value.get_ref()) {
            Ok(value) => Ok(Some(Located { value, place })),
            Err(complaint) => Err(place.error(&complaint)),
        }
    }

    fn inside(&self, name: &Key<'_>, value: &'d Value<'d>) -> Result<Self, ConfigError> {
        let place = self.place(name);
        let Some(table) = value.get_ref().as_table() else {
            return Err(place.error(&mismatch("a table", kind(value.get_ref()))));
        };
        Ok(Self { document: self.document, table, name: place.key, known: Vec::new() })
    }

    /// The entries that were not read, in the order of the file.
    fn unread(&self) -> impl Iterator<Item = (&'d Key<'d>, &'d Value<'d>)> {
        let is_unread = |name: &str| !self.known.contains(&name);
        let mut unread: Vec<_> = self.table.iter().filter(|(name, _)| is_unread(name.get_ref())).collect();
        unread.sort_by_key(|(name, _)| name.span().start);
        unread.into_iter()
    }

    fn found_name(&self, name: &Key<'_>) -> Located<String> {
        Located { value: name.get_ref().to_string(), place: self.place(name) }
    }

    fn place(&self, name: &Key<'_>) -> Location {
        let key = quoted_unless_bare(name.get_ref());
        let key = if self.name.is_empty() { key } else { format!("{}.{key}", self.name) };
        Location { key, path: self.document.path.clone(), line: self.document.line(name.span().start) }
    }
}

fn strings(value: &DeValue<'_>) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
}

fn whole<T: TryFrom<u64> + PartialOrd>(value: &DeValue<'_>, range: &RangeInclusive<T>) -> Option<T> {
    let integer = value.as_integer()?;
    let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok()?;
    T::try_from(number).ok().filter(|number| range.contains(number))
}

/// The key, quoted unless TOML allows it without quotes. Quoting escapes control characters.
pub(in crate::config) fn quoted_unless_bare(key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if bare { key.to_owned() } else { format!("{key:?}") }
}

fn mismatch(expected: &str, found: &str) -> String {
    format!("must be {expected}, not {found}")
}

/// What a value is.
const fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "this string",
        DeValue::Integer(_) => "this whole number",
        DeValue::Float(_) => "this decimal number",
        DeValue::Boolean(_) => "a true/false value",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "this list",
        DeValue::Table(_) => "a table",
    }
}

/// The value as it stands in the file if it is short, else what it is. Quoting escapes control characters.
fn shown(value: &DeValue<'_>) -> String {
    let text = match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(is_true) => is_true.to_string(),
        _ => return kind(value).to_owned(),
    };
    if text.len() <= MAX_SHOWN_BYTES { text } else { kind(value).to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T>(
        text: &str,
        with: impl FnOnce(Section<'_>) -> Result<T, ConfigError>,
    ) -> Result<T, ConfigError> {
        let document = Document { path: "/etc/mk/server.toml".into(), text: text.to_owned() };
        let table = document.parse()?;
        with(Section::root(&document, &table))
    }

    #[test]
    fn unknown_keys_are_named_with_line_and_suggestion() {
        let error = read("a = 1\n\n[limits]\nper_minut = 5\n", |mut root| {
            root.number("a", 0..=9_u32)?;
            let Some(mut limits) = root.section("limits")? else { return root.finish() };
            limits.number("per_minute", 0..=9_u32)?;
            limits.finish()?;
            root.finish()
        });
        let error = error.unwrap_err();
        assert_eq!(error.message, "unknown key `limits.per_minut` in /etc/mk/server.toml line 4");
        assert_eq!(error.hints, ["did you mean `per_minute`?", "[limits] may hold `per_minute`"]);
    }

    #[test]
    fn wrong_values_are_reported_with_what_would_be_right() {
        for (text, found) in [
            ("n = \"many\"", "\"many\""),
            ("n = \"a\\u001B\"", "\"a\\u{1b}\""),
            ("n = 10", "10"),
            ("n = -1", "-1"),
            ("n = 1.5", "1.5"),
            ("n = true", "true"),
            ("n = 99999999999999999999999", "this whole number"),
            ("n = [1]", "this list"),
        ] {
            let error = read(text, |mut root| root.number("n", 1..=9_u8)).unwrap_err();
            let complaint = format!("must be a whole number from 1 to 9, not {found}");
            assert_eq!(error.message, format!("`n` in /etc/mk/server.toml line 1 {complaint}"));
        }
        let error = read("l = [\"a\", 1]", |mut root| root.texts("l")).unwrap_err();
        assert!(error.message.ends_with("must be a list of strings, not this list"));
        let error = read("s = 5", |mut root| root.section("s").map(drop)).unwrap_err();
        assert!(error.message.ends_with("must be a table, not this whole number"));
    }

    #[test]
    fn what_may_be_a_secret_is_not_repeated() {
        let error = read("n = \"sk-secret-0123456789\"", |mut root| root.number("n", 1..=9_u8)).unwrap_err();
        assert!(error.message.ends_with("not this string"), "{error}");
        let error =
            read("u = \"r://:pw@h\"", |mut root| root.parsed_unseen("u", "an address", |_| None::<()>));
        let error = error.unwrap_err();
        assert!(error.message.ends_with("must be an address, not this string"), "{error}");
    }

    #[test]
    fn a_path_is_taken_literally_and_not_as_a_shell_would() {
        let path = |value: &str| read(&format!("p = \"{value}\""), |mut root| root.path("p"));
        for (value, complaint) in [
            ("", "must be a path, not an empty string"),
            ("~/mk", "begins with `~`, which is not expanded here"),
            ("$HOME/mk", "begins with a variable, which is not expanded here"),
        ] {
            let error = path(value).unwrap_err();
            assert_eq!(error.message, format!("`p` in /etc/mk/server.toml line 1 {complaint}"));
        }
        for (value, expected) in
            [("mk", "/etc/mk/mk"), ("/srv/~", "/srv/~"), ("~old/a$b", "/etc/mk/~old/a$b")]
        {
            let found = path(value).unwrap().unwrap();
            assert_eq!(found.value, Path::new(expected));
        }
    }

    #[test]
    fn invalid_toml_names_the_line_and_quotes_nothing() {
        let error = read("a = 1\nkey = sk-secret\n", |_| Ok(())).unwrap_err();
        assert!(error.message.starts_with("/etc/mk/server.toml line 2 is not valid TOML: "), "{error}");
        assert!(!error.message.contains("secret"), "{error}");
    }

    #[test]
    fn hostile_names_come_out_escaped() {
        let error = read("\"\\u001b[31m\" = 1", |mut root| {
            root.text("known")?;
            root.finish()
        })
        .unwrap_err();
        assert!(error.message.contains(r#"`"\u{1b}[31m"`"#), "{error}");
    }

    #[test]
    fn user_defined_names_come_in_the_order_of_the_file() {
        let names = read("[z]\n[a]\n[\"m.1\"]\n", |root| {
            let sections = root.named_sections()?;
            Ok(sections.into_iter().map(|(name, _)| name.place.key).collect::<Vec<_>>())
        });
        assert_eq!(names.unwrap(), ["z", "a", "\"m.1\""]);
    }

    #[test]
    fn other_radices_and_decimals_are_read() {
        let found = read("a = 0x10\nb = 1_000\nc = 0.25\nd = 2", |mut root| {
            let a = root.number("a", 0..=99_u32)?.map(|found| found.value);
            let b = root.number("b", 0..=9999_u32)?.map(|found| found.value);
            let c = root.decimal("c", "", Some)?.map(|found| found.value);
            let d = root.decimal("d", "", Some)?.map(|found| found.value);
            Ok((a, b, c, d))
        });
        assert_eq!(found.unwrap(), (Some(16), Some(1000), Some(0.25), Some(2.0)));
    }
}
