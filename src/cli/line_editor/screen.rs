//! Computes what to write to a terminal so that it shows the text being edited.
//!
//! Only rows from the prompt on are touched. A text with more rows than the terminal is shown in part, as the cursor
//! cannot be moved to what has scrolled away. Unchanged rows are not rewritten.

use super::layout::{Layout, Row, column_set};

/// What is on the terminal now.
#[derive(Debug, Default)]
pub(super) struct Screen {
    /// The visible rows; none before the first drawing.
    rows: Vec<Row>,
    /// The visible row with the cursor.
    row: usize,
    /// The first row of the text that is visible.
    first_visible: usize,
}

/// Clears from the cursor to the end of the row.
const CLEAR_ROW: &str = "\u{1b}[K";
/// Clears from the cursor to the end of the screen. Not from its top: there some terminals move what they clear into
/// the scrollback.
const CLEAR_TO_END: &str = "\u{1b}[J";

/// Clears the screen and moves to its top.
pub(super) const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

impl Screen {
    /// Shows a text on a terminal with this many rows.
    pub(super) fn draw(&mut self, layout: &Layout, height: usize) -> String {
        let height = height.max(1);
        // Scrolls as few rows as needed out of view.
        self.first_visible = self.first_visible.clamp((layout.row + 1).saturating_sub(height), layout.row);
        self.first_visible = self.first_visible.min(layout.rows.len().saturating_sub(height));
        let rows: Vec<Row> = layout.rows.iter().skip(self.first_visible).take(height).cloned().collect();
        let row = layout.row - self.first_visible;
        let mut out = String::new();
        if rows != self.rows {
            self.replace(rows, &mut out);
        }
        out.push_str(&vertical(self.row, row));
        out.push_str(&column_set(layout.column));
        self.row = row;
        out
    }

    /// Shows the whole text and then `mark`, and moves to the row below, where further output begins.
    pub(super) fn finish(&mut self, layout: &Layout, mark: &str) -> String {
        let mut out = String::new();
        if layout.rows != self.rows {
            if self.rows.len() < layout.rows.len() {
                // Only part was visible, and its rows may be the first or the last ones.
                out.push_str(&vertical(self.row, 0));
                out.push('\r');
                *self = Self::default();
            }
            self.replace(layout.rows.clone(), &mut out);
        }
        out.push_str(&vertical(self.row, self.rows.len().saturating_sub(1)));
        out.push_str(&column_set(layout.column));
        out.push_str(mark);
        out.push_str("\r\n");
        *self = Self::default();
        out
    }

    /// Forgets what is on the terminal, after something else was written.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Moves back to the prompt after the terminal was resized, where the text now has this layout: terminals reflow
    /// the rows.
    pub(super) fn resized(&mut self, layout: &Layout) -> String {
        let row = layout.row.saturating_sub(self.first_visible);
        *self = Self::default();
        format!("{}\r", vertical(row, 0))
    }

    /// How many rows are below the cursor.
    pub(super) fn rows_below(&self) -> usize {
        self.rows.len().saturating_sub(self.row + 1)
    }

    /// Writes all rows from the first changed one on; afterwards the cursor is in the last one.
    fn replace(&mut self, rows: Vec<Row>, out: &mut String) {
        let same = rows.iter().zip(&self.rows).take_while(|(new, old)| new == old).count();
        // The cursor cannot be moved to a row that does not exist yet.
        let from = same.min(self.rows.len().saturating_sub(1)).min(rows.len().saturating_sub(1));
        if !self.rows.is_empty() {
            out.push_str(&vertical(self.row, from));
            out.push('\r');
        }
        for (at, row) in rows.iter().enumerate().skip(from) {
            out.push_str(&row.text);
            let next = rows.get(at + 1);
            // Behind a full row the cursor may still be on its last character.
            match next {
                _ if row.is_full => {}
                Some(_) => out.push_str(CLEAR_ROW),
                None => out.push_str(CLEAR_TO_END),
            }
            if next.is_some_and(|next| !row.flows_on || next.text.is_empty()) {
                out.push_str("\r\n");
            }
        }
        if rows.last().is_some_and(|last| last.is_full) && self.rows.len() > rows.len() {
            out.push_str(&[&vertical(0, 1), "\r", CLEAR_TO_END, &vertical(1, 0)].concat());
        }
        self.row = rows.len().saturating_sub(1);
        self.rows = rows;
    }
}

/// Moves from one row to another.
fn vertical(from: usize, to: usize) -> String {
    match (from.checked_sub(to), to.checked_sub(from)) {
        (Some(up @ 1..), _) => format!("\u{1b}[{up}A"),
        (_, Some(down @ 1..)) => format!("\u{1b}[{down}B"),
        _ => String::new(),
    }
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
