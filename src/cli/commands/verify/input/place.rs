//! Where in a statement something stands, by line and column: for people, editors and programs.

use serde::{Deserialize as _, Serialize};
use serde_json::{Value, json};

use super::source::Source;
use crate::api::verify::Span;

/// A place in a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Place {
    /// The file, as it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// From 1.
    line: usize,
    /// From 1, in code points.
    column: usize,
}

/// The lines of a statement, to find places in it. A byte order mark is no column, as in editors.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    file: Option<String>,
    /// Whether line and column are worth telling by themselves: it is the only statement, and has several lines.
    is_told_by_line: bool,
    /// The number of the statement's first line.
    first_line: usize,
    /// Where lines begin, in code points.
    starts: Vec<usize>,
}

impl Places {
    /// Those of a statement from this source.
    pub(crate) fn new(source: Option<&Source>, text: &str) -> Self {
        let (file, first_line) = match source {
            Some(Source::File { file }) => (Some(file.clone()), 1),
            Some(Source::Line { line }) => (None, *line),
            Some(Source::Argument { .. }) | None => (None, 1),
        };
        let ends = text.chars().enumerate().filter(|(_, char)| *char == '\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(ends).collect();
        let is_told_by_line = source.is_none() && text.trim_end().contains('\n');
        Self { file, is_told_by_line, first_line, starts }
    }

    /// Where a span begins.
    pub(crate) fn of(&self, span: Span) -> Place {
        let line = self.starts.partition_point(|start| *start <= span.start).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or_default();
        // The server's numbers are not trusted.
        let column = (span.start - start).saturating_add(1);
        Place { file: self.file.clone(), line: self.first_line.saturating_add(line - 1), column }
    }

    /// `release-notes.md:14:3`; `14:3` in the only text if it has several lines, and else `None` for what is in no file.
    pub(crate) fn shown(&self, span: Option<Span>) -> Option<String> {
        let Place { file, line, column } = self.of(span?);
        match file {
            Some(file) => Some(format!("{file}:{line}:{column}")),
            None => self.is_told_by_line.then(|| format!("{line}:{column}")),
        }
    }

    /// Adds the place to each claim and each skipped part of a document.
    pub(crate) fn add_to(&self, document: &mut Value) {
        for list in ["results", "claims", "skipped"] {
            let parts = document.get_mut(list).and_then(Value::as_array_mut);
            parts.into_iter().flatten().for_each(|part| self.add_to_part(part));
        }
    }

    /// Adds the place to a claim or a skipped part.
    pub(crate) fn add_to_part(&self, part: &mut Value) {
        let Some(span) = part.get("span").and_then(|span| Span::deserialize(span).ok()) else { return };
        if let (Value::Object(part), Value::Object(place)) = (part, json!(self.of(span))) {
            part.extend(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(source: Option<&Source>, text: &str, start: usize) -> (usize, usize) {
        let Place { line, column, .. } = Places::new(source, text).of(Span { start, end: start + 1 });
        (line, column)
    }

    #[test]
    fn lines_and_columns_count_from_one_in_code_points() {
        let text = "Größe\r\n東京は\n\nx";
        for (start, expected) in
            [(0, (1, 1)), (4, (1, 5)), (7, (2, 1)), (9, (2, 3)), (11, (3, 1)), (12, (4, 1))]
        {
            assert_eq!(place(None, text, start), expected, "{start}");
        }
        assert_eq!(place(None, "", 0), (1, 1));
        assert_eq!(place(Some(&Source::Line { line: 7 }), "a fact", 2), (7, 3));
        assert_eq!(place(None, "", usize::MAX - 1), (1, usize::MAX), "whatever a server says");
    }

    #[test]
    fn a_document_points_into_the_file() {
        let places = Places::new(Some(&Source::File { file: "a.md".to_owned() }), "One.\nTwo.");
        let mut document =
            json!({ "results": [{ "span": { "start": 5, "end": 9 } }], "skipped": [{ "text": "x" }] });
        places.add_to(&mut document);
        let expected = json!({ "span": { "start": 5, "end": 9 }, "file": "a.md", "line": 2, "column": 1 });
        assert_eq!(document["results"][0], expected);
        assert_eq!(document["skipped"][0], json!({ "text": "x" }));
    }
}
