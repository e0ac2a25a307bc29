//! What is written to a terminal so that it shows a text being edited.
//!
//! What must hold: only rows from the prompt on are touched; a text with more rows than the terminal is shown in part,
//! as a cursor cannot be moved to what has scrolled away. Rows that stay are not written again.

use super::layout::{Layout, Row, column_set};

/// What stands on the terminal now.
#[derive(Debug, Default)]
pub(super) struct Screen {
    /// The rows there, none before the first drawing.
    rows: Vec<Row>,
    /// In which of them the cursor is.
    row: usize,
    /// The first row of the text that is shown.
    top: usize,
}

/// Clears the row from the cursor on.
const CLEAR_ROW: &str = "\u{1b}[K";
/// Clears the screen from the cursor on. Not from its top: there some terminals take what they clear for history.
const CLEAR_BEHIND: &str = "\u{1b}[J";

/// Empties the screen and goes to its top.
pub(super) const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

impl Screen {
    /// Shows a text on a terminal of this many rows.
    pub(super) fn draw(&mut self, layout: &Layout, height: usize) -> String {
        let height = height.max(1);
        // As few rows as needed go out of sight.
        self.top = self.top.clamp((layout.row + 1).saturating_sub(height), layout.row);
        self.top = self.top.min(layout.rows.len().saturating_sub(height));
        let rows: Vec<Row> = layout.rows.iter().skip(self.top).take(height).cloned().collect();
        let row = layout.row - self.top;
        let mut out = String::new();
        if rows != self.rows {
            self.replace(rows, &mut out);
        }
        out.push_str(&vertical(self.row, row));
        out.push_str(&column_set(layout.column));
        self.row = row;
        out
    }

    /// Shows the whole text, then `mark`, and goes to the row below; what comes next begins there.
    pub(super) fn finish(&mut self, layout: &Layout, mark: &str) -> String {
        let mut out = String::new();
        if layout.rows != self.rows {
            if self.rows.len() < layout.rows.len() {
                // A part was shown, and its rows may be the first as well as the last ones.
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

    /// Forgets what stands there, after something else was written.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Goes back to the prompt on a terminal that has a new size, where the text now is `layout`: terminals let the
    /// rows flow anew.
    pub(super) fn resized(&mut self, layout: &Layout) -> String {
        let row = layout.row.saturating_sub(self.top);
        *self = Self::default();
        format!("{}\r", vertical(row, 0))
    }

    /// How many rows stand below the cursor.
    pub(super) fn below(&self) -> usize {
        self.rows.len().saturating_sub(self.row + 1)
    }

    /// Writes the rows from the first one on that is another; the cursor is in the last one then.
    fn replace(&mut self, rows: Vec<Row>, out: &mut String) {
        let same = rows.iter().zip(&self.rows).take_while(|(new, old)| new == old).count();
        // A row that is not there yet cannot be moved to.
        let from = same.min(self.rows.len().saturating_sub(1)).min(rows.len().saturating_sub(1));
        if !self.rows.is_empty() {
            out.push_str(&vertical(self.row, from));
            out.push('\r');
        }
        for (at, row) in rows.iter().enumerate().skip(from) {
            out.push_str(&row.text);
            let next = rows.get(at + 1);
            // Behind a full row the cursor may still stand on its last character.
            match next {
                _ if row.is_full => {}
                Some(_) => out.push_str(CLEAR_ROW),
                None => out.push_str(CLEAR_BEHIND),
            }
            if next.is_some_and(|next| !row.flows_on || next.text.is_empty()) {
                out.push_str("\r\n");
            }
        }
        if rows.last().is_some_and(|last| last.is_full) && self.rows.len() > rows.len() {
            out.push_str(&[&vertical(0, 1), "\r", CLEAR_BEHIND, &vertical(1, 0)].concat());
        }
        self.row = rows.len().saturating_sub(1);
        self.rows = rows;
    }
}

/// Moves from a row to another one.
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
