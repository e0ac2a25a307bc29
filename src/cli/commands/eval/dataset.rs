//! Datasets: statements with known answers as lines of JSON, read and checked completely before anything is spent on
//! them.
//!
//! A line is an object with a `fact` and what is `expected` of it, and may have an `id`, a `domain`, a `context`, an
//! `asOf`, the right `answer` and `tags`. Other fields are ignored, as datasets carry sources and notes. The field
//! names and labels of [FEVER](https://fever.ai/dataset/fever.html) (`claim`, `label`, `SUPPORTS` …) are accepted as
//! well.

use std::io::BufReader;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::label::Label;
use super::settings::sha256;
use crate::api::verify::{Domain, MAX_CONTEXT_CHARS};
use crate::cli::args::text::read_stdin;
use crate::cli::commands::verify::input::source::{self, Statement};
use crate::cli::process::exit::Failure;
use crate::cli::terminal::printer::Printer;
use crate::clock::Time;
use crate::hex::hex;

/// The most statements. A larger dataset is none for paid models, and all of it is held in memory.
const MAX_STATEMENTS: usize = 100_000;

/// The most bytes, for the same reason.
const MAX_DATASET_BYTES: usize = 64 << 20;

/// How many wrong lines are reported at once.
const MAX_REPORTED: usize = 5;

/// The position of a statement in the dataset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Position {
    /// The file as it was given, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// The line number, from 1.
    pub(crate) line: usize,
}

impl Position {
    /// What sentences call it.
    pub(crate) fn name(&self) -> String {
        match &self.file {
            Some(file) => format!("{file} line {}", self.line),
            None => format!("line {}", self.line),
        }
    }

    /// The first column of plain output.
    pub(crate) fn label(&self) -> String {
        match &self.file {
            Some(file) => format!("{file}:{}", self.line),
            None => self.line.to_string(),
        }
    }
}

/// The statements of an evaluation.
#[derive(Debug)]
pub(crate) struct Dataset {
    /// In the order in which they are asked.
    pub(crate) items: Vec<Item>,
    /// The SHA-256 of all lines that were read, in hexadecimal digits.
    pub(crate) sha256: String,
}

/// Which statements of a dataset are asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Selection {
    /// At most so many.
    pub(crate) limit: Option<usize>,
    /// The seed of another order.
    pub(crate) seed: Option<u64>,
    /// Whether all lines are read even so, as the hash must not depend on the limit.
    pub(crate) needs_all: bool,
}

impl Selection {
    /// How many statements are enough to read.
    fn enough(&self) -> Option<usize> {
        self.limit.filter(|_| self.seed.is_none() && !self.needs_all)
    }

    fn apply(self, mut items: Vec<Item>) -> Vec<Item> {
        if let Some(seed) = self.seed {
            // A hash of the seed and the number is as good as a throw of dice for each.
            items.sort_by_cached_key(|item| sha256([seed.to_be_bytes(), (item.number as u64).to_be_bytes()]));
        }
        items.truncate(self.limit.unwrap_or(usize::MAX));
        items
    }
}

/// A statement and its known answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Its number in the dataset, from 0.
    pub(crate) number: usize,
    pub(crate) at: Position,
    /// As in the dataset: a string or a number.
    pub(crate) id: Option<Value>,
    pub(crate) fact: String,
    pub(crate) expected: Label,
    pub(crate) domain: Option<Domain>,
    pub(crate) context: Option<String>,
    pub(crate) as_of: Option<String>,
    /// The right answer to the question that it raises.
    pub(crate) answer: Option<String>,
    /// What the figures are also shown by.
    pub(crate) tags: Vec<String>,
}

/// Reads the statements of the files; `-` is standard input.
///
/// # Errors
/// If a file cannot be read, a line is malformed, or there is no line at all.
pub(crate) fn read(files: &[PathBuf], selection: Selection, printer: &Printer) -> Result<Dataset, Failure> {
    let mut reading = Reading { limit: selection.enough(), ..Reading::default() };
    for path in files {
        if reading.is_full() {
            break;
        }
        let file = (files.len() > 1).then(|| path.display().to_string());
        reading = if source::is_stdin(path) {
            read_stdin(printer, move |stdin| {
                source::read_lines(stdin, |line| reading.take(file.as_deref(), line));
                reading
            })?
        } else {
            source::read_lines(BufReader::new(source::open(path)?), |line| {
                reading.take(file.as_deref(), line)
            });
            reading
        };
    }
    let sha256 = hex(&reading.hash.clone().finalize());
    Ok(Dataset { items: selection.apply(reading.items()?), sha256 })
}

#[derive(Default)]
struct Reading {
    /// How many statements are wanted, if not all.
    limit: Option<usize>,
    bytes: usize,
    hash: Sha256,
    items: Vec<Item>,
    wrong: Vec<String>,
    /// Which maximum was exceeded, if any.
    exceeded: Option<&'static str>,
}

impl Reading {
    /// Whether as many statements as wanted were read. No more is read then, as whoever writes them may be slow.
    fn is_full(&self) -> bool {
        self.limit == Some(self.items.len())
    }

    /// Adds a line; returns whether another one may follow.
    fn take(&mut self, file: Option<&str>, (source, line): Statement) -> bool {
        self.bytes += line.as_ref().map_or(0, String::len);
        let is_too_much = self.bytes > MAX_DATASET_BYTES;
        if is_too_much || self.items.len() == MAX_STATEMENTS {
            self.exceeded = Some(if is_too_much { "64 MiB" } else { "100,000 statements" });
            return false;
        }
        let source::Source::Line { line: number } = source else { return true };
        let at = Position { file: file.map(str::to_owned), line: number };
        let name = at.name();
        let number = self.items.len();
        if let Ok(text) = &line {
            self.hash.update(text);
            self.hash.update("\n");
        }
        match line.map(|text| item(number, at, &text)) {
            Ok(Ok(item)) => self.items.push(item),
            Ok(Err(wrong)) => self.wrong.push(format!("{name}: {wrong}")),
            // The message itself names the line.
            Err(Failure { message, .. }) => {
                self.wrong.push(match file {
                    Some(file) => format!("{file}: {message}"),
                    None => message,
                });
            }
        }
        self.wrong.len() <= MAX_REPORTED && !self.is_full()
    }

    fn items(self) -> Result<Vec<Item>, Failure> {
        if !self.wrong.is_empty() {
            let reported: Vec<&str> = self.wrong.iter().take(MAX_REPORTED).map(String::as_str).collect();
            let more = if self.wrong.len() > MAX_REPORTED { "; and more" } else { "" };
            return Err(Failure::usage(format!("{}{more}", reported.join("; "))).hint(
                "each line is an object such as {\"fact\": \"Two and two is four.\", \"expected\": \"TRUE\"}; \
                 `jq -c '.[]'` turns an array into lines. Nothing was verified",
            ));
        }
        if let Some(maximum) = self.exceeded {
            return Err(Failure::usage(format!("the dataset has more than {maximum}"))
                .hint("use --limit N to take some of them, or split the file"));
        }
        if self.items.is_empty() {
            return Err(Failure::usage("the dataset has no statements"));
        }
        Ok(self.items)
    }
}

fn item(number: usize, at: Position, line: &str) -> Result<Item, String> {
    let parsed = serde_json::from_str(line).map_err(|cause| {
        // The position in the error would be that in a separate document.
        let text = cause.to_string();
        let why = text.split(" at line ").next().unwrap_or_default();
        format!("invalid JSON at column {}: {why}", cause.column())
    })?;
    let Value::Object(mut fields) = parsed else {
        return Err("it is JSON, but not an object".to_owned());
    };
    let fact = text(&mut fields, &["fact", "claim"])?.ok_or("it has no `fact`")?;
    if fact.trim().is_empty() {
        return Err("its `fact` is empty".to_owned());
    }
    let (name, expected) = first(&mut fields, &["expected", "label"]).ok_or("it has no `expected`")?;
    let expected = Label::parse(&expected).ok_or_else(|| {
        format!("`{name}` is {}; it must be TRUE, FALSE, NO CONSENSUS or NOTHING", shown(&expected))
    })?;
    let domain = text(&mut fields, &["domain"])?;
    let domain = domain.map(|name| {
        [Domain::General, Domain::Legal]
            .into_iter()
            .find(|domain| domain.as_str().eq_ignore_ascii_case(&name))
            .ok_or_else(|| format!("`domain` is {name:?}; it must be \"general\" or \"legal\""))
    });
    let as_of = text(&mut fields, &["asOf", "as_of"])?;
    if let Some(date) = as_of.as_ref().filter(|date| Time::parse(date).is_none()) {
        return Err(format!("`asOf` is {date:?}; it must be a date such as 2026-11-20"));
    }
    let id = fields.remove("id").filter(|id| !id.is_null());
    if let Some(id) = id.as_ref().filter(|id| !(id.is_string() || id.is_i64() || id.is_u64())) {
        return Err(format!("`id` is {}; it must be a string or a whole number below 2^64", shown(id)));
    }
    let context = text(&mut fields, &["context"])?;
    match context.as_ref().map(|context| (context.trim().is_empty(), context.chars().count())) {
        Some((true, _)) => return Err("its `context` is empty".to_owned()),
        Some((_, length)) if length > MAX_CONTEXT_CHARS => {
            return Err(format!("its `context` is longer than {MAX_CONTEXT_CHARS} characters"));
        }
        _ => {}
    }
    let answer = answer(&mut fields)?;
    let tags = tags(&mut fields)?;
    Ok(Item { number, at, id, fact, expected, domain: domain.transpose()?, context, as_of, answer, tags })
}

fn answer(fields: &mut Map<String, Value>) -> Result<Option<String>, String> {
    match first(fields, &["answer"]) {
        Some((_, Value::Number(number))) => Ok(Some(number.to_string())),
        Some((_, Value::String(text))) => Ok(Some(text).filter(|text| !text.trim().is_empty())),
        Some((_, other)) => Err(format!("`answer` is {}; it must be a string or a number", shown(&other))),
        None => Ok(None),
    }
}

/// A text, or several.
fn tags(fields: &mut Map<String, Value>) -> Result<Vec<String>, String> {
    let Some((name, value)) = first(fields, &["tags", "tag"]) else { return Ok(Vec::new()) };
    let texts = match value {
        Value::Array(values) => values,
        one => vec![one],
    };
    let mut tags = Vec::new();
    for value in texts {
        let Value::String(tag) = value else {
            return Err(format!("`{name}` has {}; it must be a string or a list of strings", shown(&value)));
        };
        let tag = tag.trim().to_owned();
        if !tag.is_empty() && !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    Ok(tags)
}

/// The first of these fields that exists and is not null, with its name.
fn first<'a>(fields: &mut Map<String, Value>, names: &[&'a str]) -> Option<(&'a str, Value)> {
    names.iter().find_map(|name| {
        let value = fields.remove(*name).filter(|value| !value.is_null())?;
        Some((*name, value))
    })
}

fn text(fields: &mut Map<String, Value>, names: &[&str]) -> Result<Option<String>, String> {
    match first(fields, names) {
        None => Ok(None),
        Some((_, Value::String(text))) => Ok(Some(text)),
        Some((name, other)) => Err(format!("`{name}` is {}; it must be a string", shown(&other))),
    }
}

/// A value as shown in errors: in full if it is short.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 40 {
        text
    } else {
        format!("{}…", text.chars().take(40).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read_line(line: &str) -> Result<Item, String> {
        item(0, Position { file: None, line: 1 }, line)
    }

    #[test]
    fn a_line_says_what_is_expected_of_a_statement() {
        let line = r#"{"id": 7, "fact": "F", "expected": "no_consensus", "domain": "legal", "asOf": "2026-01-02",
            "context": "C", "answer": 1889, "tags": ["a", " b ", "a"], "source": ["left", "alone"]}"#;
        let item = read_line(line).unwrap();
        assert_eq!((item.id, item.fact.as_str(), item.expected), (Some(json!(7)), "F", Label::NoConsensus));
        assert_eq!(item.domain, Some(Domain::Legal));
        assert_eq!((item.context.as_deref(), item.as_of.as_deref()), (Some("C"), Some("2026-01-02")));
        assert_eq!((item.answer.as_deref(), item.tags), (Some("1889"), vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn labels_are_understood_as_datasets_write_them() {
        let labels = [
            (json!(true), Label::True),
            (json!("true"), Label::True),
            (json!("SUPPORTS"), Label::True),
            (json!(false), Label::False),
            (json!("REFUTES"), Label::False),
            (json!("NOT ENOUGH INFO"), Label::NoConsensus),
            (json!("NO CONSENSUS"), Label::NoConsensus),
            (json!("nothing"), Label::Nothing),
        ];
        for (value, label) in labels {
            let line = json!({ "claim": "F", "label": value }).to_string();
            assert_eq!(read_line(&line).unwrap().expected, label, "{line}");
        }
    }

    #[test]
    fn errors_in_a_line_name_the_field() {
        let wrong = [
            ("{\"fact\": ", "invalid JSON at column 9: EOF while parsing a value"),
            ("{\"id\": 1e400}", "invalid JSON at column 12: number out of range"),
            (
                r#"{"fact": "F", "expected": true, "id": 1.5}"#,
                "`id` is 1.5; it must be a string or a whole number below 2^64",
            ),
            ("[1]", "it is JSON, but not an object"),
            ("{}", "it has no `fact`"),
            (r#"{"fact": 4, "expected": true}"#, "`fact` is 4; it must be a string"),
            (r#"{"fact": " ", "expected": true}"#, "its `fact` is empty"),
            (r#"{"fact": "F", "expected": true, "context": ""}"#, "its `context` is empty"),
            (r#"{"fact": "F"}"#, "it has no `expected`"),
            (r#"{"fact": "F", "expected": null}"#, "it has no `expected`"),
            (
                r#"{"fact": "F", "label": "maybe"}"#,
                "`label` is \"maybe\"; it must be TRUE, FALSE, NO CONSENSUS or NOTHING",
            ),
            (
                r#"{"fact": "F", "expected": true, "domain": "x"}"#,
                "`domain` is \"x\"; it must be \"general\" or \"legal\"",
            ),
            (
                r#"{"fact": "F", "expected": true, "answer": ["x"]}"#,
                "`answer` is [\"x\"]; it must be a string or a number",
            ),
            (
                r#"{"fact": "F", "expected": true, "tags": ["x", 1]}"#,
                "`tags` has 1; it must be a string or a list of strings",
            ),
            (
                r#"{"fact": "F", "expected": true, "asOf": "soon"}"#,
                "`asOf` is \"soon\"; it must be a date such as 2026-11-20",
            ),
        ];
        for (line, message) in wrong {
            assert_eq!(read_line(line).unwrap_err(), message, "{line}");
        }
    }

    #[test]
    fn a_seed_gives_an_order_of_all_statements() {
        let items: Vec<Item> = (0..50)
            .map(|number| Item { number, ..read_line(r#"{"fact": "F", "expected": true}"#).unwrap() })
            .collect();
        let order = |seed, limit| -> Vec<usize> {
            let chosen = Selection { seed, limit, needs_all: false }.apply(items.clone());
            chosen.into_iter().map(|item| item.number).collect()
        };
        let all: Vec<usize> = (0..50).collect();
        assert_eq!(order(None, None), all);
        let shuffled = order(Some(1), None);
        assert_ne!(shuffled, all);
        assert_eq!(
            (order(Some(1), None), order(Some(1), Some(9))),
            (shuffled.clone(), shuffled[..9].to_vec())
        );
        assert_ne!(order(Some(2), None), shuffled);
        let mut sorted = shuffled;
        sorted.sort_unstable();
        assert_eq!(sorted, all);
    }

    proptest! {
        #[test]
        fn no_line_is_too_strange(line in "\\PC{0,80}", depth in 0..3000_usize) {
            let _ = read_line(&line);
            let deep = format!("{}{}", "[".repeat(depth), line);
            prop_assert!(depth == 0 || read_line(&deep).is_err());
        }
    }
}
