//! Marks at the start of a table cell or value: a coloured symbol beside words that say the same.

use std::borrow::Cow;

use super::printer::Printer;
use super::sanitize;
use super::term::Style;

/// Draws the eye to a text that says the same in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Something is nearly used up.
    Near,
    /// Something is used up.
    Over,
}

impl Mark {
    const ALL: [Self; 2] = [Self::Near, Self::Over];

    /// The character that stands for the mark until its line is laid out: as wide as the symbol, and kept by sanitizing
    /// only as the first character of a text. Foreign text that begins with it gains a symbol, and nothing else.
    const fn placeholder(self) -> char {
        match self {
            Self::Near => '\u{1}',
            Self::Over => '\u{2}',
        }
    }

    /// The symbol, alone in its colour.
    fn painted(self, printer: &Printer) -> String {
        let (paint, symbols) = (printer.terminal.out.paint, printer.terminal.symbols);
        match self {
            Self::Near => paint.apply(Style::Open, symbols.skipped),
            Self::Over => paint.apply(Style::False, symbols.no),
        }
    }
}

/// A cell, or the value of a field, with a mark before it if a person reads it.
pub(crate) fn marked(printer: &Printer, mark: Option<Mark>, text: String) -> String {
    match mark.filter(|_| printer.terminal.out.is_terminal) {
        Some(mark) => format!("{} {text}", mark.placeholder()),
        None => text,
    }
}

/// A cell that is safe for a terminal, with its mark still in place.
pub(in crate::cli) fn sanitized(cell: &str) -> Cow<'_, str> {
    match Mark::ALL.into_iter().find(|mark| cell.starts_with(mark.placeholder())) {
        Some(mark) => format!("{}{}", mark.placeholder(), sanitize::line(&cell[1..])).into(),
        None => sanitize::line(cell),
    }
}

/// A line after layout, with its marks replaced by symbols.
pub(in crate::cli) fn paint_marks(printer: &Printer, line: &str) -> String {
    Mark::ALL.into_iter().fold(line.trim_end().to_owned(), |line, mark| {
        if line.contains(mark.placeholder()) {
            line.replace(mark.placeholder(), &mark.painted(printer))
        } else {
            line
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::term::{Paint, Terminal};

    #[test]
    fn only_the_symbol_is_coloured_and_only_a_terminal_sees_it() {
        let mut printer = Printer { terminal: Terminal::test(80, Paint::Full), quiet: false, verbose: false };
        let near = marked(&printer, Some(Mark::Near), "$8 (81 %)".to_owned());
        assert_eq!(paint_marks(&printer, &sanitized(&near)), "\u{1b}[33m!\u{1b}[0m $8 (81 %)");
        assert_eq!(paint_marks(&printer, &sanitized("a\u{1}b\u{1b}[2J")), "a\u{fffd}b\u{fffd}[2J");
        printer.terminal.out.is_terminal = false;
        assert_eq!(marked(&printer, Some(Mark::Over), "$8".to_owned()), "$8");
    }
}
