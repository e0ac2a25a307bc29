//! Formats findings: a symbol, a word and a sentence for people, fields in a pipe.

use super::check::{Check, Status};
use crate::cli::process::exit::Failure;
use crate::cli::terminal::humanize::counted;
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::sanitize;
use crate::cli::terminal::tabular;
use crate::cli::terminal::term::{Style, Terminal};
use crate::cli::terminal::wrap::{cells, hanging, wrap};

/// The width of the longest word, and a space.
const WORD_WIDTH: usize = 8;

/// Prints a finding: wrapped on a terminal, elsewhere status, check, message and hints separated by tabs.
pub(super) fn print(printer: &Printer, check: &Check) -> Result<(), Failure> {
    if printer.terminal.out.is_terminal {
        return lines(&printer.terminal, check).iter().try_for_each(|line| printer.line(line));
    }
    let hints = check.hints.join("; ");
    let fields = [check.state.as_str(), &check.name, &check.message, &hints];
    printer.line(tabular::tab_separated(&fields).trim_end())
}

/// Prints how many findings there are of each kind, for people.
pub(super) fn print_summary(printer: &Printer, checks: &[Check]) -> Result<(), Failure> {
    if !printer.terminal.out.is_terminal {
        return Ok(());
    }
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    let mut parts = vec![counted(checks.len(), "check")];
    for (state, noun) in [(Status::Warning, "warning"), (Status::Failed, "failure")] {
        if count(state) > 0 {
            parts.push(counted(count(state), noun));
        }
    }
    if parts.len() == 1 {
        parts.push("no problems found".to_owned());
    }
    printer.line("")?;
    printer.line(&parts.join(", "))
}

fn lines(terminal: &Terminal, check: &Check) -> Vec<String> {
    let (symbol, style) = match check.state {
        Status::Ok => (terminal.symbols.yes, Some(Style::True)),
        Status::Note => (terminal.symbols.waiting, None),
        Status::Warning => (terminal.symbols.skipped, Some(Style::Open)),
        Status::Failed => (terminal.symbols.no, Some(Style::False)),
    };
    let painted = style.map_or_else(|| symbol.to_owned(), |style| terminal.out.paint.apply(style, symbol));
    let indent = cells(symbol) + 1 + WORD_WIDTH;
    let text = |text: &str| {
        wrap(&terminal.symbols.adapt(sanitize::line(text)), terminal.width.saturating_sub(indent))
    };
    let mut lines = text(&format!("{}: {}", check.name, check.message));
    lines.extend(check.hints.iter().flat_map(|hint| text(&format!("hint: {hint}"))));
    hanging(&format!("{painted} {:<WORD_WIDTH$}", check.state.as_str()), indent, &lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::term::Paint;

    #[test]
    fn a_finding_fits_a_narrow_terminal_with_a_word_beside_the_symbol() {
        let check = Check::failed("provider openai", "its key is refused").hint("set another one");
        let lines = lines(&Terminal::test(44, Paint::Plain), &check);
        assert_eq!(
            lines,
            ["✗ failed  provider openai: its key is", "          refused", "          hint: set another one",]
        );
    }

    #[test]
    fn foreign_text_stays_on_its_line() {
        let check = Check::ok("server", "version 1\u{1b}[2J\nfailed  forged");
        let lines = lines(&Terminal::test(80, Paint::Plain), &check);
        assert_eq!(lines.len(), 1);
        assert!(!lines[0].contains('\u{1b}'), "{lines:?}");
    }
}
