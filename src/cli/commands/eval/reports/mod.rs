//! `--report FORMAT=FILE`: the figures and statements as a file, made from the JSON document alone.

mod csv;
pub(super) mod document;
mod html;
pub(super) mod text;

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cli::process::exit::{Failure, Kind};

/// A report to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReportFile {
    format: Format,
    path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// One page that needs nothing else.
    Html,
    /// A row for each statement.
    Csv,
}

impl ReportFile {
    /// Value parser for `html=FILE` and `csv=FILE`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let format = |name: &str| match name.to_ascii_lowercase().as_str() {
            "html" => Some(Format::Html),
            "csv" => Some(Format::Csv),
            _ => None,
        };
        let (name, path) = text.split_once('=').unwrap_or((text, ""));
        let format = format(name).ok_or("it must begin with html= or csv=")?;
        if path.is_empty() {
            return Err(format!("it must name a file, as {name}=FILE"));
        }
        Ok(Self { format, path: path.into() })
    }

    /// Checks that it takes the place of nothing else that the command reads or writes, given as what it is and its
    /// path.
    pub(super) fn check_place<'a>(
        &self,
        others: impl Iterator<Item = (&'a str, &'a Path)>,
    ) -> Result<(), Failure> {
        let own = real_path(&self.path);
        for (what, other) in others {
            if own.is_some() && real_path(other) == own {
                let message = format!("--report: {} is {what}", self.path.display());
                return Err(Failure::usage(message).hint("name another file"));
            }
        }
        Ok(())
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the file can be written, before anything is spent; an existing one stays as it is for now.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&self.path);
        opened.map(drop).map_err(|cause| {
            Failure::usage(format!("--report: cannot write {}: {cause}", self.path.display()))
                .caused_by(cause)
        })
    }

    /// Writes the report.
    pub(super) fn write(&self, document: &Value) -> Result<(), Failure> {
        let text = match self.format {
            Format::Html => html::page(document),
            Format::Csv => csv::rows(document),
        };
        std::fs::write(&self.path, text).map_err(|cause| {
            let message = format!("--report: cannot write {}: {cause}", self.path.display());
            Failure::new(Kind::Other, message).caused_by(cause)
        })
    }
}

/// Where a file is, or will be, without links.
fn real_path(path: &Path) -> Option<PathBuf> {
    if let Ok(found) = path.canonicalize() {
        return Some(found);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Some(folder.unwrap_or(Path::new(".")).canonicalize().ok()?.join(path.file_name()?))
}

/// A value in words: a text as it is, nothing for null, anything else as JSON.
fn words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(words).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// The items of a list; none if it is no list.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_has_a_format_and_a_file() {
        let parsed = ReportFile::parse("HTML=a=b.html").unwrap();
        assert_eq!(parsed, ReportFile { format: Format::Html, path: "a=b.html".into() });
        for wrong in ["", "html", "html=", "pdf=x", "=x"] {
            assert!(ReportFile::parse(wrong).is_err(), "{wrong}");
        }
    }

    fn document() -> Value {
        let rate = json!({ "count": 1, "of": 2, "percent": 50.0, "interval_95": [9.5, 90.5] });
        let claim = json!({
            "id": "1", "claim": "C", "assessment": "FALSE", "original_question": "Q?",
            "original_options": { "A": "x", "B": "<u>y", "C": "None of these", "D": "Cannot be determined" },
            "claimed_answer": "A", "consensus_answer": "B",
            "model_answers": [{ "model": "p/one", "answer": "B" }, { "model": "p/two", "answer": "B" }],
        });
        json!({
            "version": "1.2.3", "date": "2026-11-26T10:00:00Z",
            "settings": { "server": "<script>alert(1)</script>" },
            "statements": 2, "accuracy": rate, "false_passed_as_true": rate,
            "models": [{ "model": "p/<b>", "accuracy": rate, "option_accuracy": rate }],
            "rules": [{ "rule": "2 of 3", "true_precision": rate }],
            "groups": [{ "kind": "tag", "name": "\"><img src=x>", "statements": 2, "accuracy": rate }],
            "results": [
                { "line": 1, "id": "=cmd()", "fact": "A \"quoted\" <i>fact</i>, with a comma", "expected": "TRUE", "said": "FALSE", "right": false, "tags": ["a", "b"], "claims": [claim] },
                { "line": 2, "fact": "Fails", "expected": "TRUE", "error": { "kind": "server", "message": "&broken" } },
            ],
        })
    }

    #[test]
    fn a_page_is_escaped_and_needs_nothing_else() {
        let page = html::page(&document());
        for foreign in ["<script", "<b>", "<img", "<i>fact", "&broken"] {
            assert!(!page.contains(foreign), "{foreign} is in {page}");
        }
        for shown in [
            "&lt;script&gt;",
            "1 of 2",
            "50.0 %",
            "9.5 to 90.5",
            "2 of 3",
            "A &quot;quoted&quot;",
            "1.2.3",
            "<td>=cmd()</td>",
            "<td>&lt;u&gt;y: one, two</td>",
        ] {
            assert!(page.contains(shown), "{shown} is not in {page}");
        }
        for outside in ["http://", "https://", "src=", "url("] {
            assert!(!page.replace("&lt;img src=x&gt;", "").contains(outside), "{outside}");
        }
        assert!(html::page(&json!({})).contains("</html>"), "nothing need be there");
    }

    #[test]
    fn a_page_shows_each_statement_once_and_what_changed_between_runs() {
        let rate = json!({ "count": 1, "of": 1, "percent": 100.0, "interval_95": [20.7, 100.0] });
        let entry = |run| json!({ "line": 1, "run": run, "fact": "F", "expected": "TRUE", "said": "TRUE", "right": true });
        let page = html::page(&json!({
            "flips": rate, "model_flips": [{ "model": "p/a", "flips": rate }], "results": [entry(1), entry(2)],
        }));
        assert!(page.contains("1 right ones") && page.contains("Changed from run to run"), "{page}");
        assert!(page.contains("p/a"), "{page}");
    }

    #[test]
    fn rows_are_quoted_and_no_formulas() {
        let rows = csv::rows(&document());
        let lines: Vec<&str> = rows.lines().collect();
        assert_eq!(lines.len(), 3, "{rows}");
        assert!(lines[0].starts_with("file,line,run,id,tags,expected,said,right,error"), "{rows}");
        assert!(lines[1].contains(",1,,'=cmd(),\"a, b\",TRUE,FALSE,false,"), "{rows}");
        assert!(lines[1].ends_with("\"A \"\"quoted\"\" <i>fact</i>, with a comma\""), "{rows}");
        assert!(lines[2].contains(",server,"), "{rows}");
    }
}
