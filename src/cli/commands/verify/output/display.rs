//! Progress of a single verification on standard error: live rows, a line per step, or nothing.

use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar};

use super::page::mark;
use crate::api::verify::{Assessment, Event};
use crate::cli::terminal::humanize::counted;
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::progress::{self, Mode};
use crate::cli::terminal::sanitize;
use crate::cli::terminal::term::Terminal;
use crate::cli::terminal::wrap::{cells, cut};

/// The interval of ticks, which animate the spinner.
pub(crate) const TICK: Duration = Duration::from_millis(100);

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

/// Shows the progress of a verification. Dropping it erases the live rows.
pub(crate) struct Display<'a> {
    printer: &'a Printer,
    mode: Mode,
    live: Option<(MultiProgress, Vec<ProgressBar>)>,
    begun: Instant,
    stage: &'static str,
    rows: Vec<Row>,
    is_sandbox: bool,
    ticks: usize,
}

impl<'a> Display<'a> {
    /// Creates a display, and shows at once that something is happening. With `Bars`, rows appear once the claims are
    /// known.
    pub(crate) fn begin(printer: &'a Printer, mode: Mode, is_sandbox: bool) -> Self {
        let live = (mode == Mode::Bars).then(|| {
            let (bars, header) = progress::bars(&printer.terminal);
            (bars, vec![header])
        });
        let display = Self {
            printer,
            mode,
            live,
            begun: Instant::now(),
            stage: "Connecting",
            rows: Vec::new(),
            is_sandbox,
            ticks: 0,
        };
        display.draw();
        display
    }

    /// Prints a line above the live rows.
    pub(crate) fn notice(&self, text: &str) {
        match &self.live {
            Some((bars, _)) => bars.suspend(|| self.printer.notice(text)),
            None => self.printer.notice(text),
        }
    }

    /// Makes way for results. If they go to a pipe, nothing is drawn any more: the reading program may print to this
    /// same terminal, and drawings would overwrite it.
    pub(crate) fn make_way(&mut self) {
        if self.printer.terminal.out_is_pipe {
            self.end();
        }
    }

    /// Erases the live rows.
    pub(crate) fn end(&mut self) {
        if let Some((bars, _)) = self.live.take() {
            progress::erase(&bars);
        }
    }

    /// Advances the spinner.
    pub(crate) fn tick(&mut self) {
        self.ticks += 1;
        self.draw();
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
                self.add_rows();
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
        if self.mode == Mode::Lines {
            let label = if self.is_sandbox { "[SANDBOX] " } else { "" };
            self.printer.notice(&format!("{label}{text}"));
        }
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

    /// Adds a bar for each row that fits on the screen.
    fn add_rows(&mut self) {
        let room = self.printer.terminal.now().height.saturating_sub(3);
        let wanted = 1 + self.rows.len().min(room);
        if let Some((bars, drawn)) = &mut self.live {
            while drawn.len() < wanted {
                drawn.push(progress::add_row(bars));
            }
        }
    }

    fn draw(&self) {
        let Some((_, drawn)) = &self.live else { return };
        let Some((header, claims)) = drawn.split_first() else { return };
        let terminal = &self.printer.terminal.now();
        progress::set(header, self.header(terminal));
        let hidden = self.rows.len().saturating_sub(claims.len());
        for (index, (bar, row)) in claims.iter().zip(&self.rows).enumerate() {
            let is_last = index + 1 == claims.len();
            let text = if is_last && hidden > 0 {
                format!("  {} and {} more", terminal.symbols.cut, hidden + 1)
            } else {
                self.row(terminal, index, row)
            };
            progress::set(bar, text);
        }
    }

    /// `⠹ Verifying claims  1/4  2s  [SANDBOX]`
    fn header(&self, terminal: &Terminal) -> String {
        let mut parts = vec![format!("{} {}", self.spinner(), self.stage)];
        if !self.rows.is_empty() {
            parts.push(format!("{}/{}", self.done(), self.rows.len()));
        }
        parts.push(format!("{}s", self.begun.elapsed().as_secs()));
        if self.is_sandbox {
            parts.push("[SANDBOX]".to_owned());
        }
        cut(&parts.join("  "), terminal.width - 1, "")
    }

    fn row(&self, terminal: &Terminal, index: usize, row: &Row) -> String {
        let digits = self.rows.len().to_string().len();
        row_text(terminal, self.spinner(), &format!("{:>digits$}", index + 1), row)
    }

    fn spinner(&self) -> &'static str {
        let frames = self.printer.terminal.symbols.spinner;
        frames[self.ticks % frames.len()]
    }
}

impl Drop for Display<'_> {
    fn drop(&mut self) {
        self.end();
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
