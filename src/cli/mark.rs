//! Marks before a cell or value of a sheet: a symbol in its colour, beside words that say the same.

use std::borrow::Cow;

use super::printer::Printer;
use super::sanitize;
use super::term::Look;

/// What draws the eye to a text, which says the same in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Something comes to its end.
    Near,
    /// It has.
    Over,
}

impl Mark {
    const ALL: [Self; 2] = [Self::Near, Self::Over];

    /// What stands for it until its line is laid out: as wide as its symbol, and left in no text except as its first
    /// character. Whoever sends a text that begins with it gains a symbol by that, and nothing else.
    const fn place(self) -> char {
        match self {
            Self::Near => '\u{1}',
            Self::Over => '\u{2}',
        }
    }

    /// Its symbol, alone in its colour.
    fn painted(self, printer: &Printer) -> String {
        let (paint, symbols) = (printer.terminal.out.paint, printer.terminal.symbols);
        match self {
            Self::Near => paint.apply(Look::Open, symbols.skipped),
            Self::Over => paint.apply(Look::False, symbols.no),
        }
    }
}

/// A cell, or the value of a field, with a mark before it for people.
pub(crate) fn marked(printer: &Printer, mark: Option<Mark>, text: String) -> String {
    match mark.filter(|_| printer.terminal.out.is_terminal) {
        Some(mark) => format!("{} {text}", mark.place()),
        None => text,
    }
}

/// A cell as a terminal may see it, with its mark still in place.
pub(super) fn harmless(cell: &str) -> Cow<'_, str> {
    match Mark::ALL.into_iter().find(|mark| cell.starts_with(mark.place())) {
        Some(mark) => format!("{}{}", mark.place(), sanitize::line(&cell[1..])).into(),
        None => sanitize::line(cell),
    }
}

/// A line that is laid out, with the symbols of its marks.
pub(super) fn painted(printer: &Printer, line: &str) -> String {
    Mark::ALL.into_iter().fold(line.trim_end().to_owned(), |line, mark| {
        if line.contains(mark.place()) { line.replace(mark.place(), &mark.painted(printer)) } else { line }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::term::{Paint, Terminal};

    #[test]
    fn only_the_symbol_is_coloured_and_only_a_terminal_sees_it() {
        let mut printer = Printer { terminal: Terminal::test(80, Paint::Full), quiet: false, verbose: false };
        let near = marked(&printer, Some(Mark::Near), "$8 (81 %)".to_owned());
        assert_eq!(painted(&printer, &harmless(&near)), "\u{1b}[33m!\u{1b}[0m $8 (81 %)");
        assert_eq!(painted(&printer, &harmless("a\u{1}b\u{1b}[2J")), "a\u{fffd}b\u{fffd}[2J");
        printer.terminal.out.is_terminal = false;
        assert_eq!(marked(&printer, Some(Mark::Over), "$8".to_owned()), "$8");
    }
}
