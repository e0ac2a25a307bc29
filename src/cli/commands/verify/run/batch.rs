//! Verifies several statements: several at a time, reported in order, each with a failure of its own.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Instant;

use futures_util::{Stream, StreamExt};
use serde_json::Value;

use super::observe::Update;
use super::rate_limit::RateLimitWait;
use super::refusal::Refusal;
use crate::api::verify::Event;
use crate::cli::commands::verify::gate::{self, Gate};
use crate::cli::commands::verify::input::place::Places;
use crate::cli::commands::verify::input::source::Source;
use crate::cli::commands::verify::output::batch_display::{BatchDisplay, VERIFYING};
use crate::cli::commands::verify::output::json::{self, Finished};
use crate::cli::commands::verify::output::page::mark;
use crate::cli::commands::verify::output::plain;
use crate::cli::commands::verify::output::receipt_file::ReceiptFile;
use crate::cli::commands::verify::output::summary::{self, Part, Totals};
use crate::cli::commands::verify::output::table::{self, Rows};
use crate::cli::commands::verify::{BATCH_MAX_WAIT, Format, Plan, verdict};
use crate::cli::process::exit::{Failure, Kind, Outcome};
use crate::cli::process::runtime;
use crate::cli::target::backend::Backend;
use crate::cli::terminal::humanize;

/// The outcome of a statement.
struct StatementOutcome {
    source: Source,
    text: String,
    outcome: Result<Finished, Failure>,
}

/// Verifies statements as they arrive, `jobs` at a time, and prints their results in input order; the exit code is the
/// worst of all. How many there are may be known.
pub(crate) async fn run(
    plan: &Plan,
    backend: &Backend,
    all: Option<usize>,
    statements: impl Stream<Item = (Source, Result<String, Failure>)>,
    receipts: Option<ReceiptFile>,
    entries: &mut Vec<Value>,
) -> Outcome {
    let display = BatchDisplay::begin(VERIFYING, &plan.printer, plan.progress, all, backend.is_sandbox);
    let batch = Batch {
        plan,
        backend,
        all,
        rate_limit_wait: RateLimitWait::new(plan.max_wait.unwrap_or(BATCH_MAX_WAIT)),
        display: RefCell::new(display),
        refusal: Refusal::default(),
        done: RefCell::default(),
        begun: Instant::now(),
    };
    let mut report = Report {
        batch: &batch,
        receipts,
        entries,
        worst: 0,
        printed: 0,
        totals: Totals::default(),
        gate: Gate::default(),
        rows: batch.has_one_table().then(|| Rows::new(&plan.printer.terminal, true)),
        first_failure: None,
        has_ended: false,
    };
    let running = statements
        .enumerate()
        .map(|(at, (source, text))| batch.run_one(at, source, text))
        .buffered(plan.jobs);
    let mut running = std::pin::pin!(running);
    while let Some(at) = running.next().await {
        let done = batch.done.borrow_mut().remove(&at);
        done.map_or(Ok(()), |done| report.take(done))?;
    }
    report.finish()
}

struct Batch<'a> {
    plan: &'a Plan,
    backend: &'a Backend,
    /// How many statements there are, if that is known.
    all: Option<usize>,
    rate_limit_wait: RateLimitWait,
    display: RefCell<BatchDisplay<'a>>,
    refusal: Refusal,
    /// Outcomes that cannot be reported yet, as an earlier statement is not done; at most as many as run at a time.
    done: RefCell<BTreeMap<usize, StatementOutcome>>,
    begun: Instant,
}

impl Batch<'_> {
    /// Whether all statements share one table, which is printed at the end.
    fn has_one_table(&self) -> bool {
        let printer = &self.plan.printer;
        self.plan.format == Format::Table && !printer.quiet && !table::is_too_narrow(&printer.terminal)
    }

    /// Verifies one statement and stores its outcome under its index, which is returned.
    async fn run_one(&self, at: usize, source: Source, text: Result<String, Failure>) -> usize {
        let done = match text {
            Ok(text) => {
                let outcome = self.refusal.unless_refused(self.verify(&source, text.clone())).await;
                StatementOutcome { source, text, outcome }
            }
            Err(failure) => StatementOutcome { source, text: String::new(), outcome: Err(failure) },
        };
        self.done.borrow_mut().insert(at, done);
        at
    }

    async fn verify(&self, source: &Source, text: String) -> Result<Finished, Failure> {
        let announce = |text: &str| self.display.borrow().live.notice(text);
        let (mut claims, places) = (Vec::new(), Places::new(Some(source), &text));
        let mut observe = |update: Update<'_>| {
            self.display.borrow_mut().observe(&update);
            match update {
                Update::Event(event) if self.plan.format == Format::JsonLines => {
                    self.json_line(source, &places, event, &mut claims)
                }
                _ => Ok(()),
            }
        };
        let finished = self
            .plan
            .verify(self.backend, Some(source), text, &self.rate_limit_wait, &announce, &mut observe)
            .await?;
        if self.plan.format == Format::JsonLines {
            self.plan.printer.json_line(&json::summary_line(Some(source), &finished))?;
        }
        Ok(finished)
    }

    /// Claims are printed in the order in which they arrive, whatever statement they belong to.
    fn json_line(
        &self,
        source: &Source,
        places: &Places,
        event: &Event,
        claims: &mut Vec<String>,
    ) -> Result<(), Failure> {
        match event {
            Event::ClaimsExtracted(extracted) => claims.clone_from(&extracted.claims),
            Event::ClaimVerified(verified) => {
                let text = claims.get(verified.claim_index).map_or("", String::as_str);
                self.plan.printer.json_line(&json::claim_line(Some(source), places, text, verified))?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Prints outcomes and sums them up. If that ends early, as by Ctrl-C, it still prints outcomes that wait for an
/// earlier statement: they have been paid for.
struct Report<'a, 'p> {
    batch: &'a Batch<'p>,
    receipts: Option<ReceiptFile>,
    entries: &'a mut Vec<Value>,
    worst: u8,
    /// How many lines were printed.
    printed: usize,
    totals: Totals,
    gate: Gate,
    /// The one table of all statements.
    rows: Option<Rows<'p>>,
    /// The first failure with its statement, for the end of a `-q` run, which does not print it as a line.
    first_failure: Option<(Source, Failure)>,
    /// Whether all of it was told.
    has_ended: bool,
}

impl Report<'_, '_> {
    fn take(&mut self, done: StatementOutcome) -> Result<(), Failure> {
        let code = match &done.outcome {
            Ok(finished) => {
                self.totals.add(&finished.result);
                let faults = verdict::faults(&finished.result, &self.batch.plan.fail_on);
                self.gate.add(Some(&done.source), faults, &finished.places);
                if let Some(receipts) = &mut self.receipts {
                    receipts.add(&finished.result)?;
                }
                finished.exit
            }
            // Nobody reads any more, so the other statements are pointless.
            Err(failure) if failure.kind == Kind::ClosedPipe => {
                return Err(Failure::new(Kind::ClosedPipe, failure.message.clone()));
            }
            Err(failure) => {
                self.totals.add_failed();
                if !self.tells_failures_at_the_end() {
                    self.gate.add_failure(&done.source, failure);
                }
                failure.kind.code()
            }
        };
        self.worst = verdict::worse(self.worst, code);
        self.batch.display.borrow_mut().count(self.totals.done(), self.totals.failed(), self.so_far());
        match self.batch.plan.format {
            Format::Json => self.entries.push(json::entry(&done.source, &done.outcome)),
            Format::JsonLines => {
                if let Err(failure) = &done.outcome {
                    self.batch.plan.printer.json_line(&json::failed(&done.source, failure))?;
                }
            }
            _ if self.tells_failures_at_the_end() => {
                let failure = done.outcome.err().map(|failure| (done.source, failure));
                self.first_failure = self.first_failure.take().or(failure);
            }
            Format::Plain => self.plain(&done)?,
            Format::List | Format::Table => self.for_people(&done)?,
        }
        Ok(())
    }

    /// Verdicts, cost, and how long the rest will take if its number is known.
    fn so_far(&self) -> String {
        let terminal = &self.batch.plan.printer.terminal;
        let mut parts = self.totals.so_far(|assessment| mark(terminal, assessment).0.to_owned());
        let done = self.totals.statements();
        let missing = self.batch.all.map_or(0, |all| all.saturating_sub(done));
        parts.extend(humanize::time_left(self.batch.begun.elapsed(), done, missing).map(Part::new));
        summary::on_one_line(terminal, parts)
    }

    /// Prints the table of all statements.
    fn print_table(&mut self) -> Result<(), Failure> {
        let Some(rows) = self.rows.take().filter(|_| self.totals.statements() > 0) else { return Ok(()) };
        self.print(&rows.lines())
    }

    /// Whether statements that could not be verified are told in one message, as `-q` prints no line for each.
    fn tells_failures_at_the_end(&self) -> bool {
        let plan = self.batch.plan;
        plan.printer.quiet && !matches!(plan.format, Format::Json | Format::JsonLines)
    }

    fn plain(&mut self, done: &StatementOutcome) -> Result<(), Failure> {
        let label = done.source.label();
        let source = Some(label.as_str());
        let lines = match &done.outcome {
            Err(failure) => vec![plain::failed(source, failure.kind.as_str(), &failure.message)],
            Ok(finished) => {
                let result = &finished.result;
                let claims = result
                    .results
                    .iter()
                    .enumerate()
                    .map(|(index, claim)| plain::claim(source, index, claim));
                let nothing = result.results.is_empty().then(|| plain::nothing(source));
                let skipped = result.skipped.iter().map(|part| plain::skipped(source, part));
                claims.chain(nothing).chain(skipped).collect()
            }
        };
        self.print(&lines)
    }

    fn for_people(&mut self, done: &StatementOutcome) -> Result<(), Failure> {
        if let Some(rows) = &mut self.rows {
            let label = done.source.label();
            match &done.outcome {
                Ok(finished) => rows.add(Some(&label), &finished.result),
                Err(failure) => rows.failed(&label, &failure.message),
            }
            return Ok(());
        }
        let terminal = &self.batch.plan.printer.terminal.now();
        let places = done.outcome.as_ref().ok().map(|finished| &finished.places);
        let page = self.batch.plan.page(terminal, places);
        let mut lines = vec![page.heading(&done.source, &done.text)];
        match &done.outcome {
            Err(failure) => lines.push(page.failed("not verified", failure)),
            Ok(finished) if self.batch.plan.format == Format::Table => {
                lines.extend(table::result(&page, &finished.result, finished.elapsed));
            }
            Ok(finished) => lines.extend(page.result(&finished.result, finished.elapsed)),
        }
        lines.push(String::new());
        self.print(&lines)
    }

    /// Prints results, with the bars out of the way.
    fn print(&mut self, lines: &[String]) -> Result<(), Failure> {
        self.printed += lines.len();
        self.batch.display.borrow().live.print(lines)
    }

    /// The totals so far in one line.
    fn total(&self) -> String {
        let terminal = &self.batch.plan.printer.terminal;
        let symbol = |assessment| mark(terminal, assessment).0.to_owned();
        let parts = summary::parts_of_several(&self.totals, self.batch.begun.elapsed(), symbol);
        summary::on_one_line(terminal, parts)
    }

    /// Says and keeps what was found before a stop signal: what would fail the gate, even with `-q`.
    fn break_off(&mut self) {
        let printer = &self.batch.plan.printer;
        if self.totals.done() == 0 {
            return;
        }
        let is_for_people = self.batch.plan.format.is_for_people();
        if self.gate.is_empty() || gate::is_read_on_one_terminal(printer, is_for_people) {
            printer.notice(&self.total());
        } else {
            self.gate.tell_findings(printer, &self.total());
        }
        if let Some(Err(failure)) = self.receipts.take().map(ReceiptFile::finish) {
            printer.failure(&failure);
        }
    }

    fn finish(mut self) -> Outcome {
        self.has_ended = true;
        let printer = &self.batch.plan.printer;
        self.batch.display.borrow().live.end();
        if self.totals.statements() == 0 {
            return Err(Failure::usage("the input has no statements"));
        }
        self.print_table()?;
        if let Some(receipts) = self.receipts.take().filter(|_| self.totals.done() > 0) {
            receipts.finish()?;
        }
        let (plan, elapsed) = (self.batch.plan, self.batch.begun.elapsed());
        match plan.format {
            Format::Json => printer.document(&json::batch(self.entries, Some(&self.totals), self.worst))?,
            Format::JsonLines => {
                printer.json_line(&json::total_line(&self.totals, self.worst))?;
            }
            Format::List | Format::Table => {
                let mut lines = self.gate.again(printer, self.printed);
                let terminal = printer.terminal.now();
                lines.extend(plan.page(&terminal, None).summary_of_several(&self.totals, elapsed));
                lines.iter().try_for_each(|line| printer.line(line))?;
            }
            Format::Plain => {}
        }
        let total = self.total();
        plan.warn(&self.totals);
        self.gate.tell(printer, plan.format.is_for_people(), &total, self.worst);
        if plan.format == Format::Plain && self.worst == 0 {
            printer.notice(&total);
        }
        if let Some((source, failure)) = self.first_failure.take() {
            let statements = humanize::counted(self.totals.failed(), "statement");
            let were = if self.totals.failed() == 1 { "was" } else { "were" };
            let message = format!("{statements} {were} not verified; {}: {}", source.name(), failure.message);
            printer.failure(&Failure { message, ..failure });
        }
        Ok(self.worst)
    }
}

impl Drop for Report<'_, '_> {
    fn drop(&mut self) {
        // A panic is reported by itself; what was in use when it happened may be inconsistent.
        if std::thread::panicking() {
            return;
        }
        for done in self.batch.done.take().into_values() {
            // If nothing can be printed any more, whatever ended the batch was reported.
            if self.take(done).is_err() {
                return;
            }
        }
        let _ = self.print_table();
        if !self.has_ended && runtime::received_stop_signal().is_some() {
            self.break_off();
        }
    }
}
