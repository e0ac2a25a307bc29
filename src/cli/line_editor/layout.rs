//! Lays out a text on the rows of a terminal, behind the prompt.
//!
//! Widths are those of characters as people see them. Terminals disagree on some (emoji sequences, characters with a
//! variation selector); after those the column is set explicitly, so that a wrong guess affects only that character.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::cli::sanitize;

/// Precedes the text.
pub(super) const PROMPT: &str = "> ";
/// Precedes each further line.
const INDENT: &str = "  ";
/// How a tab is shown, as its real width depends on its column.
const TAB: &str = "    ";

/// A row, as written to a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) text: String,
    /// Whether its last column is used.
    pub(super) is_full: bool,
    /// Whether the next character wraps to the next row by itself, as this row is full.
    pub(super) flows_on: bool,
}

/// All rows of a text, and the position of the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) rows: Vec<Row>,
    /// The row of the cursor, from 0.
    pub(super) row: usize,
    /// The column of the cursor, from 0.
    pub(super) column: usize,
}

/// Lays `text` out on rows of `width` columns, with the cursor at byte `at`. `is_ascii` limits our own symbols to
/// ASCII.
pub(super) fn lay_out(text: &str, at: usize, width: usize, is_ascii: bool) -> Layout {
    // At least one character must fit behind the prompt.
    let mut writer = RowWriter {
        width: width.max(PROMPT.len() + TAB.len()),
        rows: Vec::new(),
        text: String::new(),
        column: 0,
        is_column_certain: true,
    };
    writer.put(PROMPT);
    let mut cursor = None;
    for (offset, cluster) in text.grapheme_indices(true) {
        let is_here = cursor.is_none() && offset >= at;
        if cluster.ends_with('\n') {
            // A full row has no column behind its last one.
            cursor = cursor.or(is_here.then(|| (writer.rows.len(), writer.column.min(writer.width - 1))));
            writer.end_row(false);
            writer.put(INDENT);
            continue;
        }
        let shown = shown(cluster, is_ascii);
        writer.wrap_if_needed(shown.width());
        cursor = cursor.or(is_here.then_some((writer.rows.len(), writer.column)));
        writer.put(&shown);
    }
    if cursor.is_none() {
        writer.wrap_if_needed(1);
    }
    let (row, column) = cursor.unwrap_or((writer.rows.len(), writer.column));
    writer.end_row(false);
    Layout { rows: writer.rows, row, column }
}

/// A character without anything that controls a terminal.
fn shown(cluster: &str, is_ascii: bool) -> String {
    if cluster == "\t" {
        return TAB.to_owned();
    }
    let safe = sanitize::line(cluster);
    if is_ascii { safe.replace(char::REPLACEMENT_CHARACTER, "?") } else { safe.into_owned() }
}

struct RowWriter {
    width: usize,
    rows: Vec<Row>,
    /// The current row.
    text: String,
    column: usize,
    /// Whether the terminal's cursor is certain to be at `column` too.
    is_column_certain: bool,
}

impl RowWriter {
    fn wrap_if_needed(&mut self, cells: usize) {
        if self.column + cells > self.width {
            // If the terminal may disagree that the row is full, it needs an explicit line end.
            self.end_row(self.column == self.width && self.is_column_certain);
        }
    }

    fn put(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.width();
        let by_characters: usize = text.chars().filter_map(UnicodeWidthChar::width).sum();
        self.is_column_certain = by_characters == text.width();
        if !self.is_column_certain {
            self.text.push_str(&column_set(self.column.min(self.width - 1)));
        }
    }

    fn end_row(&mut self, flows_on: bool) {
        let is_full = self.column >= self.width;
        self.rows.push(Row { text: std::mem::take(&mut self.text), is_full, flows_on });
        self.column = 0;
    }
}

/// The escape sequence that moves to a column, from 0.
pub(super) fn column_set(column: usize) -> String {
    format!("\u{1b}[{}G", column + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, width: usize) -> Vec<(String, bool)> {
        let layout = lay_out(text, text.len(), width, false);
        layout.rows.into_iter().map(|row| (row.text, row.flows_on)).collect()
    }

    /// The position of the first character that is `mark`.
    fn position(text: &str, mark: char, width: usize) -> (usize, usize) {
        let layout = lay_out(text, text.find(mark).unwrap(), width, false);
        (layout.row, layout.column)
    }

    fn end(text: &str, width: usize) -> (usize, usize) {
        let layout = lay_out(text, text.len(), width, false);
        (layout.row, layout.column)
    }

    #[test]
    fn long_lines_wrap_and_line_ends_begin_rows() {
        assert_eq!(rows("", 10), [("> ".into(), false)]);
        assert_eq!(rows("abcdefghijk", 10), [("> abcdefgh".into(), true), ("ijk".into(), false)]);
        assert_eq!(rows("ab\ncd", 10), [("> ab".into(), false), ("  cd".into(), false)]);
        assert_eq!((end("ab\ncd", 10), position("ab\ncd", 'a', 10)), ((1, 4), (0, 2)));
        assert_eq!(position("abcdefghijk", 'i', 10), (1, 0));
        assert_eq!(position("ab\ncd", '\n', 10), (0, 4));
    }

    #[test]
    fn the_end_of_a_full_row_is_on_the_next_one() {
        assert_eq!(rows("abcdefgh", 10), [("> abcdefgh".into(), true), (String::new(), false)]);
        assert_eq!(end("abcdefgh", 10), (1, 0));
        assert_eq!(rows("abcdefgh\ni", 10), [("> abcdefgh".into(), false), ("  i".into(), false)]);
        assert_eq!(position("abcdefgh\ni", '\n', 10), (0, 9));
    }

    #[test]
    fn wide_characters_take_two_cells_and_are_not_split() {
        assert_eq!(end("東京", 10), (0, 6));
        assert_eq!(position("東京x", 'x', 10), (0, 6));
        assert_eq!(rows("abcdefg東", 10), [("> abcdefg".into(), false), ("東".into(), false)]);
        assert_eq!(end("e\u{301}x", 10), (0, 4));
    }

    #[test]
    fn after_characters_of_doubtful_width_the_column_is_set() {
        assert_eq!(rows("👨‍👩‍👧x", 20), [("> 👨‍👩‍👧\u{1b}[5Gx".into(), false)]);
        assert_eq!(end("👨‍👩‍👧x", 20), (0, 5));
        assert_eq!(rows("abcdef👨‍👩‍👧", 10).first().map(|row| row.1), Some(false));
    }

    #[test]
    fn nothing_that_controls_a_terminal_is_shown() {
        assert_eq!(rows("a\tb\u{202e}c", 20), [("> a    b\u{fffd}c".into(), false)]);
        assert_eq!(lay_out("\u{fffd}\u{202e}", 0, 20, true).rows[0].text, "> ??");
    }
}
