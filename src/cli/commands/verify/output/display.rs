//! Progress of a single verification on standard error: live rows, a line per step, or nothing.

use super::page::mark;
use crate::api::verify::{Assessment, Event};
use crate::cli::terminal::humanize::counted;
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::progress::{Live, Mode};
use crate::cli::terminal::sanitize;
use crate::cli::terminal::term::Terminal;
use crate::cli::terminal::wrap::{cells, cut};

/// The progress of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Asking { answered: usize, asked: usize },
    Done(Assessment),
}

struct Row {
    claim: String,
    state: State,
}

/// Shows the progress of a verification.
pub(crate) struct Display<'a> {
    pub(crate) live: Live<'a>,
    stage: &'static str,
    rows: Vec<Row>,
    is_sandbox: bool,
}

impl<'a> Display<'a> {
    /// Creates a display, and shows at once that something is happening. With `Bars`, rows appear once the claims are
    /// known.
    pub(crate) fn begin(printer: &'a Printer, mode: Mode, is_sandbox: bool) -> Self {
        let live = Live::begin(printer, mode);
        let display = Self { live, stage: "Connecting", rows: Vec::new(), is_sandbox };
        display.draw();
        display
    }

    /// Updates the display for an event.
    pub(crate) fn event(&mut self, event: &Event) {
        match event {
            Event::Starting(starting) => self.is_sandbox |= starting.mode.as_deref() == Some("sandbox"),
            Event::ExtractingClaims(_) => self.step("Extracting claims"),
            Event::ClaimsExtracted(extracted) => {
                let row =
                    |claim: &String| Row { claim: sanitize::line(claim).into_owned(), state: State::Waiting };
                self.rows = extracted.claims.iter().map(row).collect();
                self.line(&found(extracted.claims.len(), extracted.skipped.len()));
            }
            Event::VerifyingClaims(_) => self.step("Verifying claims"),
            Event::VerifyingClaim(begun) => {
                self.set(begun.claim_index, State::Asking { answered: 0, asked: 0 });
            }
            Event::ModelAnswered(done) => {
                self.set(done.claim_index, State::Asking { answered: done.answered, asked: done.asked });
            }
            Event::ClaimVerified(verified) => {
                self.set(verified.claim_index, State::Done(verified.assessment));
                if let Some(row) = self.rows.get(verified.claim_index) {
                    let (done, of) = (self.done(), self.rows.len());
                    self.line(&format!("{done}/{of} {}: {}", verified.assessment, row.claim));
                }
            }
            Event::Completed(_) | Event::Extracted(_) | Event::Error(_) => {}
        }
        self.draw();
    }

    fn step(&mut self, stage: &'static str) {
        self.stage = stage;
        self.line(stage);
    }

    fn line(&self, text: &str) {
        let label = if self.is_sandbox { "[SANDBOX] " } else { "" };
        self.live.line(&format!("{label}{text}"));
    }

    fn set(&mut self, index: usize, state: State) {
        if let Some(row) = self.rows.get_mut(index)
            && !matches!(row.state, State::Done(_))
        {
            row.state = state;
        }
    }

    fn done(&self) -> usize {
        self.rows.iter().filter(|row| matches!(row.state, State::Done(_))).count()
    }

    /// Draws a header and, below it, as many claims as fit on the screen.
    pub(crate) fn draw(&self) {
        if !self.live.is_drawn() {
            return;
        }
        let terminal = &self.live.printer.terminal.now();
        let room = terminal.height.saturating_sub(3);
        let mut rows = vec![self.header(terminal)];
        let (spinner, digits) = (self.live.spinner(), self.rows.len().to_string().len());
        let drawn = self.rows.iter().zip(1..).take(room);
        rows.extend(drawn.map(|(row, at)| row_text(terminal, spinner, &format!("{at:>digits$}"), row)));
        if self.rows.len() > room
            && let Some(last) = rows.get_mut(1..).and_then(<[_]>::last_mut)
        {
            *last = format!("  {} and {} more", terminal.symbols.cut, self.rows.len() - room + 1);
        }
        self.live.draw(rows);
    }

    /// `⠹ Verifying claims  1/4  2s  [SANDBOX]`
    fn header(&self, terminal: &Terminal) -> String {
        let mut parts = vec![format!("{} {}", self.live.spinner(), self.stage)];
        if !self.rows.is_empty() {
            parts.push(format!("{}/{}", self.done(), self.rows.len()));
        }
        parts.push(format!("{}s", self.live.elapsed().as_secs()));
        if self.is_sandbox {
            parts.push("[SANDBOX]".to_owned());
        }
        cut(&parts.join("  "), terminal.width - 1, "")
    }
}

/// `4 claims found, 1 part skipped`
fn found(claims: usize, skipped: usize) -> String {
    let found = format!("{} found", counted(claims, "claim"));
    if skipped == 0 { found } else { format!("{found}, {} skipped", counted(skipped, "part")) }
}

/// `  ⠹  2  verifier models It was completed in 1925.                       2/3`
fn row_text(terminal: &Terminal, spinner: &str, number: &str, row: &Row) -> String {
    let (symbol, painted, word, right) = match row.state {
        State::Waiting => {
            (terminal.symbols.waiting, terminal.symbols.waiting.to_owned(), "waiting", String::new())
        }
        State::Asking { answered, asked } => {
            let right = if asked > 0 { format!("{answered}/{asked}") } else { String::new() };
            (spinner, spinner.to_owned(), "asking models", right)
        }
        State::Done(assessment) => {
            let (symbol, style) = mark(terminal, assessment);
            (symbol, terminal.err.paint.apply(style, symbol), assessment.as_str(), String::new())
        }
    };
    let head = format!("  {symbol}  {number}  {word:<13} ");
    let room =
        (terminal.width - 1).saturating_sub(cells(&head) + cells(&right) + usize::from(!right.is_empty()));
    let claim = cut(&row.claim, room, terminal.symbols.cut);
    let gap = if right.is_empty() { 0 } else { room - cells(&claim) + 1 };
    let head = head.replacen(symbol, &painted, 1);
    format!("{head}{claim}{:gap$}{right}", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::term::Paint;

    fn row(claim: &str, state: State) -> Row {
        Row { claim: claim.to_owned(), state }
    }

    #[test]
    fn rows_at_80_columns() {
        let terminal = Terminal::test(80, Paint::Plain);
        let text = |row: &Row| row_text(&terminal, "⠹", "2", row);
        assert_eq!(
            text(&row("It was completed in 1925.", State::Asking { answered: 2, asked: 3 })),
            "  ⠹  2  asking models It was completed in 1925.                             2/3"
        );
        assert_eq!(
            text(&row("The Eiffel Tower is in Paris.", State::Done(Assessment::True))),
            "  ✓  2  TRUE          The Eiffel Tower is in Paris."
        );
        assert_eq!(
            text(&row(
                "Its three visitor levels have restaurants on the first and the second of them.",
                State::Waiting
            )),
            "  ·  2  waiting       Its three visitor levels have restaurants on the first a…"
        );
    }

    #[test]
    fn rows_never_wrap() {
        for width in [28, 44, 80] {
            let terminal = Terminal::test(width, Paint::Plain);
            for state in
                [State::Waiting, State::Asking { answered: 1, asked: 9 }, State::Done(Assessment::False)]
            {
                let claim = row("東京は日本の首都であり、人口が最も多い都市である。", state);
                let text = row_text(&terminal, "⠹", "12", &claim);
                assert!(cells(&text) < width, "{width}: {text}");
            }
        }
    }

    #[test]
    fn only_the_symbol_is_coloured() {
        let terminal = Terminal::test(80, Paint::Full);
        let text = row_text(&terminal, "⠹", "1", &row("x", State::Done(Assessment::False)));
        assert_eq!(text, "  \u{1b}[1;31m✗\u{1b}[0m  1  FALSE         x");
    }

    #[test]
    fn steps_say_how_much_was_found() {
        assert_eq!(found(4, 1), "4 claims found, 1 part skipped");
        assert_eq!(found(1, 0), "1 claim found");
    }
}
