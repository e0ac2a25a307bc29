//! Several verifications while they run, on standard error: one live line with the counts, or nothing.

use std::time::Instant;

use indicatif::{MultiProgress, ProgressBar};

use crate::cli::printer::Printer;
use crate::cli::progress::{self, Mode};
use crate::cli::wrap::cut;

/// Shows how far a batch is. Dropping it erases what is live.
pub(crate) struct BatchDisplay<'a> {
    printer: &'a Printer,
    mode: Mode,
    /// How many there are, where that is known.
    all: Option<usize>,
    live: Option<(MultiProgress, ProgressBar)>,
    begun: Instant,
    is_sandbox: bool,
    verified: usize,
    failed: usize,
    ticks: usize,
}

impl<'a> BatchDisplay<'a> {
    /// A display that shows at once that something happens.
    pub(crate) fn begin(printer: &'a Printer, mode: Mode, all: Option<usize>, is_sandbox: bool) -> Self {
        let live = (mode == Mode::Bars).then(|| progress::bars(&printer.terminal));
        let display = Self {
            printer,
            mode,
            all,
            live,
            begun: Instant::now(),
            is_sandbox,
            verified: 0,
            failed: 0,
            ticks: 0,
        };
        display.draw();
        display
    }

    /// Takes note that simulated models take part; whether that is news.
    pub(crate) fn learn_sandbox(&mut self) -> bool {
        !std::mem::replace(&mut self.is_sandbox, true)
    }

    /// Prints a line above whatever is live.
    pub(crate) fn notice(&self, text: &str) {
        self.suspended(|| self.printer.notice(text));
    }

    /// Does something else with the terminal while nothing is live.
    pub(crate) fn suspended<T>(&self, act: impl FnOnce() -> T) -> T {
        match &self.live {
            Some((bars, _)) => bars.suspend(act),
            None => act(),
        }
    }

    /// Makes way for results: nothing is drawn any more where the program that they go to may show them right here, as
    /// that would go over them.
    pub(crate) fn make_way(&mut self) {
        if self.printer.terminal.out_is_pipe {
            self.end();
        }
    }

    /// Turns the spinner.
    pub(crate) fn tick(&mut self) {
        self.ticks += 1;
        self.draw();
    }

    /// Takes up how many statements are done.
    pub(crate) fn count(&mut self, verified: usize, failed: usize) {
        self.verified = verified;
        self.failed = failed;
        if self.mode == Mode::Lines {
            self.printer.notice(&self.text());
        }
        self.draw();
    }

    /// Erases what is live.
    pub(crate) fn end(&mut self) {
        if let Some((bars, _)) = self.live.take() {
            progress::erase(&bars);
        }
    }

    fn draw(&self) {
        let Some((_, line)) = &self.live else { return };
        let frames = self.printer.terminal.symbols.spinner;
        let text = format!("{} {}", frames[self.ticks % frames.len()], self.text());
        progress::set(line, cut(&text, self.printer.terminal.width - 1, ""));
    }

    /// `Verifying statements  12 of 40 done, 2 failed  8s  [SANDBOX]`
    fn text(&self) -> String {
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        let mode = if self.is_sandbox { "  [SANDBOX]" } else { "" };
        let done = self.verified + self.failed;
        let all = self.all.map(|all| format!(" of {all}")).unwrap_or_default();
        format!("Verifying statements  {done}{all} done{failed}  {}s{mode}", self.begun.elapsed().as_secs())
    }
}

impl Drop for BatchDisplay<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
