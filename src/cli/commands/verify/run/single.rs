//! One statement: watched live, its result laid out at the end, or streamed as plain or JSON lines.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::observe::Update;
use super::rate_limit::RateLimitWait;
use crate::api::verify::{ClaimResult, Event, VerifyResponse};
use crate::cli::commands::verify::gate::Gate;
use crate::cli::commands::verify::input::place::Places;
use crate::cli::commands::verify::input::source::Source;
use crate::cli::commands::verify::output::display::Display;
use crate::cli::commands::verify::output::json::{self, Finished};
use crate::cli::commands::verify::output::receipt_file::ReceiptFile;
use crate::cli::commands::verify::output::summary::{self, Totals};
use crate::cli::commands::verify::output::{plain, table};
use crate::cli::commands::verify::{Format, Plan, announces_sandbox, verdict};
use crate::cli::process::exit::{Failure, Outcome};
use crate::cli::target::backend::Backend;
use crate::cli::target::embedded::SANDBOX_BANNER;

/// What was found of a statement before its verification broke off.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The verified claims in their order, as a document has them.
    pub(crate) claims: Vec<Value>,
    /// How many claims there are.
    pub(crate) total: usize,
}

/// Verifies one statement and prints its result. If that ends early and one document is to be printed, the claims found
/// until then are left in `found`. A file is the `source` by which the gate names what failed.
pub(crate) async fn run(
    plan: &Plan,
    backend: &Backend,
    source: Option<&Source>,
    text: String,
    receipts: Option<ReceiptFile>,
    found: &mut Found,
) -> Outcome {
    let display = RefCell::new(Display::begin(&plan.printer, plan.progress, backend.is_sandbox));
    let rate_limit_wait = RateLimitWait::new(plan.max_wait.unwrap_or(Duration::ZERO));
    let announce = |text: &str| display.borrow().live.notice(text);
    let places = Places::new(source, &text);
    let mut early_output = EarlyOutput::new(plan, &places, &display, found);
    let mut observe = |update: Update<'_>| {
        let event = match update {
            Update::Tick => {
                display.borrow().draw();
                return Ok(());
            }
            Update::Event(event) => event,
        };
        if announces_sandbox(event) && !backend.is_sandbox {
            announce(SANDBOX_BANNER);
        }
        display.borrow_mut().event(event);
        early_output.event(event)
    };
    let verified = plan.verify(backend, source, text, &rate_limit_wait, &announce, &mut observe).await;
    display.borrow().live.end();
    let verified = verified.and_then(|finished| keep(receipts, &finished).map(|()| finished));
    let finished = match verified {
        Ok(finished) => finished,
        Err(failure) => {
            early_output.break_off()?;
            return Err(failure);
        }
    };
    early_output.finish(&finished)?;
    let mut gate = Gate::default();
    gate.add(source, verdict::faults(&finished.result, &plan.fail_on), &finished.places);
    print(plan, &finished, &gate)?;
    plan.warn(&Totals::of(&finished.result));
    let summary = summary::line(&plan.printer.terminal, &finished.result, finished.elapsed);
    gate.tell(&plan.printer, plan.format.is_for_people(), &summary, finished.exit);
    // The lines for programs do not say how much was checked.
    if plan.format == Format::Plain && finished.exit == 0 {
        plan.printer.notice(&summary);
    }
    Ok(finished.exit)
}

/// Writes the receipt, if one is wanted: before a document says how the command ends.
fn keep(receipts: Option<ReceiptFile>, finished: &Finished) -> Result<(), Failure> {
    let Some(mut receipts) = receipts else { return Ok(()) };
    receipts.add(&finished.result)?;
    receipts.finish()
}

/// Prints what was not printed early.
fn print(plan: &Plan, finished: &Finished, gate: &Gate) -> Result<(), Failure> {
    let printer = &plan.printer;
    let terminal = printer.terminal.now();
    let page = plan.page(&terminal, Some(&finished.places));
    let mut lines = match plan.format {
        Format::List => page.result(&finished.result, finished.elapsed),
        Format::Table => table::result(&page, &finished.result, finished.elapsed),
        Format::Json => return printer.document(&json::document(finished)),
        Format::JsonLines => return printer.json_line(&json::summary_line(None, finished)),
        Format::Plain => return Ok(()),
    };
    let summary = page.summary(&finished.result, finished.elapsed).len();
    let end_of_claims = lines.len() - summary;
    lines.splice(end_of_claims..end_of_claims, gate.again(printer, lines.len()));
    lines.iter().try_for_each(|line| printer.line(line))
}

/// Prints claims while others are still running: plain lines in document order, each as soon as all before it are
/// printed; JSON lines as they arrive. For servers that do not send full results early, plain lines are printed at the
/// end. If the end never comes, even as it is dropped by Ctrl-C, what was found until then is printed all the same: it
/// was paid for, and is valid.
struct EarlyOutput<'a, 'd> {
    plan: &'a Plan,
    places: &'d Places,
    display: &'d RefCell<Display<'a>>,
    claims: Vec<String>,
    waiting: BTreeMap<usize, ClaimResult>,
    printed: usize,
    /// All verified claims, in the order in which they came, as if they were all there is.
    verified: VerifyResponse,
    /// Whether all of it was told.
    has_ended: bool,
    found: &'d mut Found,
}

impl<'a, 'd> EarlyOutput<'a, 'd> {
    fn new(
        plan: &'a Plan,
        places: &'d Places,
        display: &'d RefCell<Display<'a>>,
        found: &'d mut Found,
    ) -> Self {
        Self {
            plan,
            places,
            display,
            claims: Vec::new(),
            waiting: BTreeMap::new(),
            printed: 0,
            verified: VerifyResponse { complete: true, audited: true, ..VerifyResponse::default() },
            has_ended: false,
            found,
        }
    }

    fn event(&mut self, event: &Event) -> Result<(), Failure> {
        if let Event::ClaimVerified(verified) = event
            && let Some(result) = &verified.result
            && verified.claim_index < self.claims.len()
        {
            self.verified.results.push((**result).clone());
        }
        match event {
            Event::ClaimsExtracted(extracted) => self.claims.clone_from(&extracted.claims),
            Event::ClaimVerified(verified) if self.plan.format == Format::JsonLines => {
                self.display.borrow().live.make_way();
                let text = self.claims.get(verified.claim_index).map_or("", String::as_str);
                self.plan.printer.json_line(&json::claim_line(None, self.places, text, verified))?;
            }
            Event::ClaimVerified(verified) => {
                if let Some(result) = &verified.result
                    && verified.claim_index < self.claims.len()
                {
                    self.waiting.insert(verified.claim_index, (**result).clone());
                }
                while self.plan.format == Format::Plain
                    && let Some(claim) = self.waiting.remove(&self.printed)
                {
                    self.plain(&claim)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn plain(&mut self, claim: &ClaimResult) -> Result<(), Failure> {
        self.display.borrow().live.make_way();
        self.plan.printer.line(&plain::claim(None, self.printed, claim))?;
        self.printed += 1;
        Ok(())
    }

    /// Prints what was found before a failure and is not printed yet; a document is left to whoever prints the failure.
    fn break_off(&mut self) -> Result<(), Failure> {
        self.has_ended = true;
        let printed = self.print_found();
        self.tell_found();
        printed
    }

    /// Says what was found and that there is more, where the results themselves do not; what would fail the gate, even
    /// with `-q`.
    fn tell_found(&self) {
        let is_for_people = self.plan.format.is_for_people();
        if self.verified.results.is_empty() || is_for_people && !self.plan.printer.quiet {
            return;
        }
        let mut gate = Gate::default();
        gate.add(None, verdict::faults(&self.verified, &self.plan.fail_on), self.places);
        let text = summary::of_partial(&self.plan.printer.terminal, &self.verified, self.claims.len());
        if gate.is_empty() {
            self.plan.printer.notice(&text);
        } else {
            gate.tell_findings(&self.plan.printer, &text);
        }
    }

    fn print_found(&mut self) -> Result<(), Failure> {
        let found = std::mem::take(&mut self.waiting);
        let total = self.claims.len();
        let terminal = self.plan.printer.terminal.now();
        let page = self.plan.page(&terminal, Some(self.places));
        let lines = match self.plan.format {
            _ if found.is_empty() => return Ok(()),
            Format::List => page.partial(&found, total),
            Format::Table => table::partial(&page, &found, total),
            Format::Plain => found.iter().map(|(index, claim)| plain::claim(None, *index, claim)).collect(),
            Format::Json => {
                let claims = found.values().map(|claim| json::located_claim(claim, self.places)).collect();
                *self.found = Found { claims, total };
                return Ok(());
            }
            Format::JsonLines => return Ok(()),
        };
        lines.iter().try_for_each(|line| self.plan.printer.line(line))
    }

    fn finish(&mut self, finished: &Finished) -> Result<(), Failure> {
        self.has_ended = true;
        self.waiting.clear();
        if self.plan.format != Format::Plain {
            return Ok(());
        }
        for claim in finished.result.results.iter().skip(self.printed) {
            self.plain(claim)?;
        }
        finished
            .result
            .skipped
            .iter()
            .try_for_each(|part| self.plan.printer.line(&plain::skipped(None, part)))
    }
}

impl Drop for EarlyOutput<'_, '_> {
    fn drop(&mut self) {
        // A panic is reported by itself; what was in use when it happened may be inconsistent.
        if std::thread::panicking() || self.has_ended || self.verified.results.is_empty() {
            return;
        }
        self.display.borrow().live.end();
        // If nobody reads it, whatever ended the verification is reported all the same.
        let _ = self.break_off();
    }
}
