//! Progress of a batch on standard error: one live line with the counts, lines, or nothing.

use crate::cli::commands::verify::announces_sandbox;
use crate::cli::commands::verify::run::observe::Update;
use crate::cli::target::embedded::SANDBOX_BANNER;
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::progress::{Live, Mode};
use crate::cli::terminal::wrap::{cells, cut};

/// What is happening to several statements.
pub(crate) const VERIFYING: &str = "Verifying statements";

/// Shows the progress of a batch.
pub(crate) struct BatchDisplay<'a> {
    pub(crate) live: Live<'a>,
    what: &'static str,
    /// The number of statements, if known.
    all: Option<usize>,
    is_sandbox: bool,
    verified: usize,
    failed: usize,
    /// The verdicts until now, and what they cost.
    found: String,
}

impl<'a> BatchDisplay<'a> {
    /// Creates a display, and shows at once `what` is happening.
    pub(crate) fn begin(
        what: &'static str,
        printer: &'a Printer,
        mode: Mode,
        all: Option<usize>,
        is_sandbox: bool,
    ) -> Self {
        let live = Live::begin(printer, mode);
        let display = Self { live, what, all, is_sandbox, verified: 0, failed: 0, found: String::new() };
        display.draw();
        display
    }

    /// Takes note of an update: the spinner advances, and where simulated models take part, that is said once.
    pub(crate) fn observe(&mut self, update: &Update<'_>) {
        match update {
            Update::Tick => self.draw(),
            Update::Event(event) if announces_sandbox(event) => {
                if !std::mem::replace(&mut self.is_sandbox, true) {
                    self.live.notice(SANDBOX_BANNER);
                }
            }
            Update::Event(_) => {}
        }
    }

    /// Updates how many statements are done, and what was `found` in them.
    pub(crate) fn count(&mut self, verified: usize, failed: usize, found: String) {
        self.verified = verified;
        self.failed = failed;
        self.found = found;
        self.live.line(&self.text());
        self.draw();
    }

    fn draw(&self) {
        if !self.live.is_drawn() {
            return;
        }
        let width = self.live.printer.terminal.now().width - 1;
        let spinner = self.live.spinner();
        let fitting = [self.text(), self.short_text()].map(|text| format!("{spinner} {text}"));
        let text = fitting.iter().find(|text| cells(text) <= width).unwrap_or(&fitting[1]);
        self.live.draw(vec![cut(text, width, "")]);
    }

    /// `Verifying statements  12 of 40 done, 2 failed  8s  [SANDBOX]  ✓ 30 true, ✗ 1 false · $0.0112`; of a single
    /// statement, nothing is counted.
    fn text(&self) -> String {
        let [count, time, mode, found] = self.parts();
        joined([self.what.to_owned(), count, time, mode, found])
    }

    /// The same where there is less room, what matters most first.
    fn short_text(&self) -> String {
        let [count, time, mode, found] = self.parts();
        let count = if count.is_empty() { self.what.to_owned() } else { count };
        joined([count, time, found, mode, String::new()])
    }

    /// How many are done, since when, whether in the sandbox, and what was found.
    fn parts(&self) -> [String; 4] {
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        let done = self.verified + self.failed;
        let all = self.all.map(|all| format!(" of {all}")).unwrap_or_default();
        let count = if self.all == Some(1) { String::new() } else { format!("{done}{all} done{failed}") };
        let mode = if self.is_sandbox { "[SANDBOX]" } else { "" };
        [count, format!("{}s", self.live.elapsed().as_secs()), mode.to_owned(), self.found.clone()]
    }
}

fn joined(parts: [String; 5]) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::term::{Paint, Terminal};

    #[test]
    fn where_there_is_little_room_the_verdicts_come_before_the_words() {
        let printer = Printer { terminal: Terminal::test(44, Paint::Plain), quiet: false, verbose: false };
        let mut display = BatchDisplay::begin(VERIFYING, &printer, Mode::None, Some(40), true);
        display.count(12, 0, "82 % right · 10 s left".to_owned());
        assert_eq!(
            display.text(),
            "Verifying statements  12 of 40 done  0s  [SANDBOX]  82 % right · 10 s left"
        );
        assert_eq!(cut(&display.short_text(), 41, ""), "12 of 40 done  0s  82 % right · 10 s left");
    }
}
