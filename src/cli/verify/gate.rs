//! What a gate says: what failed it, named on standard error, even with `-q`. A command that fails because of what it
//! found, or did not read, never does so silently.

use super::input::Source;
use super::verdict::{self, Fault};
use super::votes;
use super::{Format, Plan};
use crate::api::verify::{SkipReason, VerifyResponse};
use crate::cli::exit::Failure;
use crate::cli::humanize::counted;
use crate::cli::sanitize;
use crate::cli::term::Terminal;
use crate::cli::wrap::{cells, cut};
use crate::config::FailOn;

/// How many findings are named; the rest is counted.
const MAX_NAMED: usize = 50;

/// The width of the longest word, `NO CONSENSUS`.
const WORD_WIDTH: usize = 12;

/// What failed the gate, bounded, as there may be any number of statements.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    named: Vec<Finding>,
    unnamed: usize,
}

/// One thing that failed the gate; texts are sanitized.
#[derive(Debug)]
struct Finding {
    source: Option<String>,
    word: &'static str,
    text: String,
    /// What stands on a line of its own below.
    detail: String,
}

impl Gate {
    /// Adds what fails the gate in the result of a statement; one of several has a source.
    pub(crate) fn add(&mut self, source: Option<&Source>, result: &VerifyResponse, fail_on: &[FailOn]) {
        let mut is_over_limit = false;
        for fault in verdict::faults(result, fail_on) {
            // Everything behind the first part over the limit is over it too.
            let repeats = matches!(fault, Fault::Part(part) if part.reason == SkipReason::OverLimit)
                && std::mem::replace(&mut is_over_limit, true);
            if !repeats {
                self.name(source, fault);
            }
        }
    }

    /// Adds one of several statements that could not be verified.
    pub(crate) fn add_failure(&mut self, source: &Source, failure: &Failure) {
        self.push(Some(source), "ERROR", &failure.message, String::new());
    }

    fn name(&mut self, source: Option<&Source>, fault: Fault<'_>) {
        match fault {
            Fault::False(claim) => {
                let says = votes::consensus_text(claim);
                let detail = if says.is_empty() { says } else { format!("models say {says}") };
                self.push(source, "FALSE", &claim.claim, detail);
            }
            Fault::NoConsensus(claim) => self.push(source, "NO CONSENSUS", &claim.claim, String::new()),
            Fault::Part(part) => {
                let word = if part.reason.is_unchecked() { "UNCHECKED" } else { "SKIPPED" };
                let reason = match part.reason {
                    SkipReason::OverLimit => "over the limit from here on".to_owned(),
                    other => other.as_str().replace('_', " "),
                };
                self.push(source, word, &format!("{reason}: {}", part.text), String::new());
            }
            // Of a single statement the summary says it.
            Fault::Nothing if source.is_none() => {}
            Fault::Nothing => self.push(source, "NOTHING", "nothing to verify", String::new()),
        }
    }

    fn push(&mut self, source: Option<&Source>, word: &'static str, text: &str, detail: String) {
        if self.named.len() == MAX_NAMED {
            self.unnamed += 1;
            return;
        }
        let source = source.map(|source| sanitize::line(&source.name()).into_owned());
        self.named.push(Finding { source, word, text: sanitize::line(text).into_owned(), detail });
    }

    /// Prints the findings and a summary on standard error if the exit code is not 0, even with `-q`; not where the
    /// results themselves stand on the same terminal.
    pub(crate) fn tell(&self, plan: &Plan, summary: &str, exit: u8) {
        if exit == 0 || is_read_on_one_terminal(plan) {
            return;
        }
        let terminal = &plan.printer.terminal;
        self.lines(terminal).iter().for_each(|line| plan.printer.alert(line));
        plan.printer.alert(&format!("{summary}{}exit {exit}", terminal.symbols.between));
    }

    /// The findings, one a line, in columns; cut to the width of a terminal.
    pub(crate) fn lines(&self, terminal: &Terminal) -> Vec<String> {
        let sources = self.named.iter().filter_map(|finding| finding.source.as_deref());
        let source_width = sources.map(cells).max().map_or(0, |width| width.min(terminal.width / 3) + 2);
        let mut lines = Vec::new();
        for Finding { source, word, text, detail } in &self.named {
            let source = source.as_deref().unwrap_or_default();
            let source = format!("{source}{:1$}", "", source_width.saturating_sub(cells(source)));
            let indent = cells(&source) + WORD_WIDTH + 2;
            lines.push(format!("{source}{word:WORD_WIDTH$}  {text}"));
            if !detail.is_empty() {
                lines.push(format!("{:indent$}{detail}", ""));
            }
        }
        if self.unnamed > 0 {
            lines.push(format!("and {}", counted(self.unnamed, "more finding")));
        }
        if terminal.err.is_terminal {
            let fits = |line: String| cut(&line, terminal.width - 1, terminal.symbols.cut);
            lines = lines.into_iter().map(fits).collect();
        }
        lines.into_iter().map(|line| terminal.symbols.adapt(line.into()).into_owned()).collect()
    }
}

/// Whether a person reads results and messages on the same terminal.
pub(crate) fn is_read_on_one_terminal(plan: &Plan) -> bool {
    let terminal = &plan.printer.terminal;
    let is_for_people = matches!(plan.format, Format::List | Format::Table) && !plan.printer.quiet;
    is_for_people && terminal.out.is_terminal && terminal.err.is_terminal
}
