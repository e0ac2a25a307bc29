//! Datasets: statements with known answers as lines of JSON, read and checked completely before anything is spent on
//! them.
//!
//! A line is an object with a `fact` and what is `expected` of it, and may have an `id`, a `domain`, a `context` and an
//! `asOf`. Other fields are ignored, as datasets carry sources and notes. The field names and labels of
//! [FEVER](https://fever.ai/dataset/fever.html) (`claim`, `label`, `SUPPORTS` …) are accepted as well.

use std::fmt;
use std::io::BufReader;
use std::path::PathBuf;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::api::verify::{Domain, MAX_CONTEXT_CHARS};
use crate::cli::exit::Failure;
use crate::cli::printer::Printer;
use crate::cli::text::read_stdin;
use crate::cli::verify::input::{self, Statement};
use crate::clock::Time;

/// The most statements. A larger dataset is none for paid models, and all of it is held in memory.
const MAX_STATEMENTS: usize = 100_000;

/// The most bytes, for the same reason.
const MAX_DATASET_BYTES: usize = 64 << 20;

/// How many wrong lines are reported at once.
const MAX_REPORTED: usize = 5;

/// What a statement is, or was judged to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Label {
    /// Every claim is true.
    True,
    /// At least one claim is false.
    False,
    /// No claim is false, but at least one is without consensus.
    NoConsensus,
    /// It contains no claim.
    Nothing,
}

impl Label {
    /// All labels, in the order of tables.
    pub(crate) const ALL: [Self; 4] = [Self::True, Self::False, Self::NoConsensus, Self::Nothing];

    /// The label for people.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::True => "TRUE",
            Self::False => "FALSE",
            Self::NoConsensus => "NO CONSENSUS",
            Self::Nothing => "NOTHING",
        }
    }

    /// The label as one word, for programs that split at whitespace.
    pub(crate) const fn as_word(self) -> &'static str {
        match self {
            Self::NoConsensus => "NO_CONSENSUS",
            other => other.as_str(),
        }
    }

    fn parse(value: &Value) -> Option<Self> {
        let text = match value {
            Value::Bool(is_true) => return Some(if *is_true { Self::True } else { Self::False }),
            Value::String(text) => text.trim().to_ascii_uppercase().replace(['_', '-'], " "),
            _ => return None,
        };
        match text.as_str() {
            "TRUE" | "SUPPORTS" | "SUPPORTED" => Some(Self::True),
            "FALSE" | "REFUTES" | "REFUTED" => Some(Self::False),
            "NO CONSENSUS" | "NOT ENOUGH INFO" | "NOT ENOUGH EVIDENCE" => Some(Self::NoConsensus),
            "NOTHING" => Some(Self::Nothing),
            _ => None,
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

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

/// A statement and its known answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) at: Position,
    /// As in the dataset: a string or a number.
    pub(crate) id: Option<Value>,
    pub(crate) fact: String,
    pub(crate) expected: Label,
    pub(crate) domain: Option<Domain>,
    pub(crate) context: Option<String>,
    pub(crate) as_of: Option<String>,
}

/// Reads all statements of the files, at most `limit`; `-` is standard input.
///
/// # Errors
/// If a file cannot be read, a line is malformed, or there is no line at all.
pub(crate) fn read(files: &[PathBuf], limit: Option<usize>, printer: &Printer) -> Result<Vec<Item>, Failure> {
    let mut reading = Reading { limit, bytes: 0, items: Vec::new(), wrong: Vec::new(), exceeded: None };
    for path in files {
        if reading.is_full() {
            break;
        }
        let file = (files.len() > 1).then(|| path.display().to_string());
        reading = if input::is_stdin(path) {
            read_stdin(printer, move |stdin| {
                input::read_lines(stdin, |line| reading.take(file.as_deref(), line));
                reading
            })?
        } else {
            input::read_lines(BufReader::new(input::open(path)?), |line| reading.take(file.as_deref(), line));
            reading
        };
    }
    reading.items()
}

struct Reading {
    /// How many statements are wanted, if not all.
    limit: Option<usize>,
    bytes: usize,
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
        let input::Source::Line { line: number } = source else { return true };
        let at = Position { file: file.map(str::to_owned), line: number };
        let name = at.name();
        match line.map(|text| item(at, &text)) {
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
                 `jq -c '.[]'` makes lines of an array. Nothing was verified",
            ));
        }
        if let Some(maximum) = self.exceeded {
            return Err(Failure::usage(format!("the dataset has more than {maximum}"))
                .hint("take some of them: --limit N, or split the file"));
        }
        if self.items.is_empty() {
            return Err(Failure::usage("there are no statements in the dataset"));
        }
        Ok(self.items)
    }
}

fn item(at: Position, line: &str) -> Result<Item, String> {
    let parsed = serde_json::from_str(line).map_err(|cause| {
        // The position in the error would be that in a separate document.
        let text = cause.to_string();
        let why = text.split(" at line ").next().unwrap_or_default();
        format!("it is no JSON that can be read, from column {} on: {why}", cause.column())
    })?;
    let Value::Object(mut fields) = parsed else {
        return Err("it is JSON, but no object".to_owned());
    };
    let fact = text(&mut fields, &["fact", "claim"])?.ok_or("it has no `fact`")?;
    if fact.trim().is_empty() {
        return Err("its `fact` is empty".to_owned());
    }
    let (name, expected) =
        first(&mut fields, &["expected", "label"]).ok_or("it does not say what is `expected`")?;
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
        return Err(format!("`asOf` is {date:?}, which is no date such as 2026-11-20"));
    }
    let id = fields.remove("id").filter(|id| !id.is_null());
    if let Some(id) = id.as_ref().filter(|id| !(id.is_string() || id.is_i64() || id.is_u64())) {
        return Err(format!("`id` is {}; it must be a text or a whole number below 2^64", shown(id)));
    }
    let context = text(&mut fields, &["context"])?;
    match context.as_ref().map(|context| (context.trim().is_empty(), context.chars().count())) {
        Some((true, _)) => return Err("its `context` is empty".to_owned()),
        Some((_, length)) if length > MAX_CONTEXT_CHARS => {
            return Err(format!("its `context` is longer than {MAX_CONTEXT_CHARS} characters"));
        }
        _ => {}
    }
    Ok(Item { at, id, fact, expected, domain: domain.transpose()?, context, as_of })
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
        Some((name, other)) => Err(format!("`{name}` is {}; it must be a text", shown(&other))),
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
        item(Position { file: None, line: 1 }, line)
    }

    #[test]
    fn a_line_says_what_is_expected_of_a_statement() {
        let line = r#"{"id": 7, "fact": "F", "expected": "no_consensus", "domain": "legal", "asOf": "2026-01-02",
            "context": "C", "source": ["left", "alone"]}"#;
        let item = read_line(line).unwrap();
        assert_eq!((item.id, item.fact.as_str(), item.expected), (Some(json!(7)), "F", Label::NoConsensus));
        assert_eq!(item.domain, Some(Domain::Legal));
        assert_eq!((item.context.as_deref(), item.as_of.as_deref()), (Some("C"), Some("2026-01-02")));
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
            ("{\"fact\": ", "it is no JSON that can be read, from column 9 on: EOF while parsing a value"),
            ("{\"id\": 1e400}", "it is no JSON that can be read, from column 12 on: number out of range"),
            (
                r#"{"fact": "F", "expected": true, "id": 1.5}"#,
                "`id` is 1.5; it must be a text or a whole number below 2^64",
            ),
            ("[1]", "it is JSON, but no object"),
            ("{}", "it has no `fact`"),
            (r#"{"fact": 4, "expected": true}"#, "`fact` is 4; it must be a text"),
            (r#"{"fact": " ", "expected": true}"#, "its `fact` is empty"),
            (r#"{"fact": "F", "expected": true, "context": ""}"#, "its `context` is empty"),
            (r#"{"fact": "F"}"#, "it does not say what is `expected`"),
            (r#"{"fact": "F", "expected": null}"#, "it does not say what is `expected`"),
            (
                r#"{"fact": "F", "label": "maybe"}"#,
                "`label` is \"maybe\"; it must be TRUE, FALSE, NO CONSENSUS or NOTHING",
            ),
            (
                r#"{"fact": "F", "expected": true, "domain": "x"}"#,
                "`domain` is \"x\"; it must be \"general\" or \"legal\"",
            ),
            (
                r#"{"fact": "F", "expected": true, "asOf": "soon"}"#,
                "`asOf` is \"soon\", which is no date such as 2026-11-20",
            ),
        ];
        for (line, message) in wrong {
            assert_eq!(read_line(line).unwrap_err(), message, "{line}");
        }
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
