//! Prints what was extracted, statement by statement, and sums it up.

use std::cell::RefCell;
use std::time::Instant;

use serde_json::Value;

use super::output::{self, Totals};
use super::{Finished, StatementOutcome};
use crate::cli::commands::verify::gate::Gate;
use crate::cli::commands::verify::input::source::Source;
use crate::cli::commands::verify::output::batch_display::BatchDisplay;
use crate::cli::commands::verify::output::page::Page;
use crate::cli::commands::verify::output::summary::{Part, on_one_line};
use crate::cli::commands::verify::output::{json, plain};
use crate::cli::commands::verify::{Format, Plan, verdict};
use crate::cli::process::exit::{Failure, Kind, Outcome};
use crate::cli::process::runtime;
use crate::cli::terminal::humanize::counted;

/// Prints outcomes in input order, and sums them up.
pub(super) struct Report<'a, 'p> {
    plan: &'p Plan,
    display: &'a RefCell<BatchDisplay<'p>>,
    /// Whether there is one statement only, whose failure is that of the command.
    is_one: bool,
    entries: &'a mut Vec<Value>,
    begun: Instant,
    worst: u8,
    extracted: usize,
    failed: usize,
    totals: Totals,
    gate: Gate,
    /// Whether all of it was told.
    has_ended: bool,
}

impl<'a, 'p> Report<'a, 'p> {
    /// A report on nothing yet.
    pub(super) fn new(
        plan: &'p Plan,
        display: &'a RefCell<BatchDisplay<'p>>,
        is_one: bool,
        entries: &'a mut Vec<Value>,
        begun: Instant,
    ) -> Self {
        Self {
            plan,
            display,
            is_one,
            entries,
            begun,
            worst: 0,
            extracted: 0,
            failed: 0,
            totals: Totals::default(),
            gate: Gate::default(),
            has_ended: false,
        }
    }

    /// Prints an outcome.
    pub(super) fn take(&mut self, done: StatementOutcome) -> Result<(), Failure> {
        let StatementOutcome { source, text, outcome } = done;
        let source = source.as_ref();
        match outcome {
            Ok(finished) => self.extracted(source, &text, &finished),
            // Nobody reads any more, so the other statements are pointless.
            Err(failure) if self.is_one || failure.kind == Kind::ClosedPipe => Err(failure),
            Err(failure) => self.failed(source, &text, &failure),
        }
    }

    fn extracted(&mut self, source: Option<&Source>, text: &str, finished: &Finished) -> Result<(), Failure> {
        let found = &finished.found;
        let faults = verdict::faults_of_extraction(found);
        let exit = verdict::exit_code(&faults);
        self.gate.add(source, faults, &finished.places);
        self.totals.add(found);
        self.extracted += 1;
        self.count(exit);
        let shown = source.filter(|_| !self.is_one);
        match self.plan.format {
            Format::Json => self.entries.push(output::entry(shown, finished, exit)),
            Format::JsonLines => output::json_lines(shown, finished, exit)
                .iter()
                .try_for_each(|line| self.plan.printer.json_line(line))?,
            Format::Plain => self.print(&output::plain(shown, found))?,
            Format::List | Format::Table => {
                let terminal = self.plan.printer.terminal.now();
                let page = Page { terminal: &terminal, explain: false, places: Some(&finished.places) };
                let mut lines: Vec<String> =
                    shown.map(|source| page.heading(source, text)).into_iter().collect();
                lines.extend(output::list(&page, finished));
                lines.extend((!lines.is_empty()).then(String::new));
                self.print(&lines)?;
            }
        }
        Ok(())
    }

    fn failed(&mut self, source: Option<&Source>, text: &str, failure: &Failure) -> Result<(), Failure> {
        let Some(source) = source else { return Ok(()) };
        self.gate.add_failure(source, failure);
        self.failed += 1;
        self.count(failure.kind.code());
        match self.plan.format {
            Format::Json => {
                self.entries.push(json::failed(source, failure));
                Ok(())
            }
            Format::JsonLines => self.plan.printer.json_line(&json::failed(source, failure)),
            Format::Plain => {
                self.print(&[plain::failed(Some(&source.label()), failure.kind.as_str(), &failure.message)])
            }
            Format::List | Format::Table => {
                let terminal = self.plan.printer.terminal.now();
                let page = Page { terminal: &terminal, explain: false, places: None };
                self.print(&[page.heading(source, text), page.failed("failed", failure), String::new()])
            }
        }
    }

    fn count(&mut self, code: u8) {
        self.worst = verdict::worse(self.worst, code);
        if !self.is_one {
            self.display.borrow_mut().count(self.extracted, self.failed, String::new());
        }
    }

    /// Prints results, with the live line out of the way.
    fn print(&self, lines: &[String]) -> Result<(), Failure> {
        self.display.borrow().live.print(lines)
    }

    /// The sums so far.
    fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        if !self.is_one {
            let statements = counted(self.extracted + self.failed, "statement");
            let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
            parts.push(Part::new(format!("{statements}{failed}")));
        }
        parts.extend(self.totals.parts(self.begun.elapsed()));
        parts
    }

    /// Prints the sums, and what fails the gate.
    pub(super) fn finish(mut self) -> Outcome {
        self.has_ended = true;
        let (plan, printer) = (self.plan, &self.plan.printer);
        self.display.borrow().live.end();
        if self.extracted + self.failed == 0 {
            return Err(Failure::usage("the input has no statements"));
        }
        let parts = self.parts();
        let is_for_people = plan.format.is_for_people();
        match plan.format {
            Format::Json if self.is_one => {
                self.entries.iter().try_for_each(|document| printer.document(document))?;
            }
            Format::Json => {
                printer.document(&output::batch(self.entries, Some(&self.totals), self.worst))?;
            }
            Format::JsonLines if !self.is_one => {
                let line = output::total_line(self.extracted, self.failed, &self.totals, self.worst);
                printer.json_line(&line)?;
            }
            Format::List | Format::Table => {
                let terminal = printer.terminal.now();
                let page = Page { terminal: &terminal, explain: false, places: None };
                page.fill(0, parts.clone()).iter().try_for_each(|line| printer.line(line))?;
            }
            Format::JsonLines | Format::Plain => {}
        }
        let total = on_one_line(&printer.terminal, parts);
        if let Some(warning) = self.totals.warning() {
            printer.warning(&warning);
        }
        self.gate.tell(printer, is_for_people, &total, self.worst);
        if plan.format == Format::Plain && self.worst == 0 {
            printer.notice(&total);
        }
        Ok(self.worst)
    }
}

impl Drop for Report<'_, '_> {
    fn drop(&mut self) {
        // What was found before a stop signal has been paid for.
        let is_stopped = runtime::received_stop_signal().is_some();
        if is_stopped && !self.has_ended && self.extracted > 0 && !std::thread::panicking() {
            self.display.borrow().live.end();
            let printer = &self.plan.printer;
            printer.notice(&on_one_line(&printer.terminal, self.parts()));
        }
    }
}
