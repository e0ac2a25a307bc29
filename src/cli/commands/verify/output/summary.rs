//! What summaries say: of one verification, or of all statements of a command together.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;

use super::page::mark;
use super::votes;
use crate::api::verify::{Assessment, Coverage, Skipped, TokenUsage, VerifyResponse};
use crate::cli::terminal::humanize::{counted, dollars, seconds, thousands};
use crate::cli::terminal::sanitize;
use crate::cli::terminal::term::Terminal;
use crate::config::FailOn;

/// A part of the summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Whether it continues a list, so that a comma comes before it.
    pub(crate) continues: bool,
    /// Its text.
    pub(crate) text: String,
}

impl Part {
    /// A part that continues nothing.
    pub(crate) fn new(text: String) -> Self {
        Self { continues: false, text }
    }
}

/// What was found in one statement or in several, and what it took.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Totals {
    /// Statements with claims that were verified.
    verified: usize,
    /// Statements that hold no claim.
    nothing_to_verify: usize,
    /// Statements that could not be verified.
    failed: usize,
    /// Claims that are TRUE.
    #[serde(rename = "true")]
    is_true: usize,
    /// Claims that are FALSE.
    #[serde(rename = "false")]
    is_false: usize,
    /// Claims without a consensus.
    no_consensus: usize,
    /// Sentences that were not checked; parts, where a server does not count sentences.
    unchecked: usize,
    /// How much of all texts was checked, in sentences.
    coverage: Coverage,
    /// Claims that no model was asked about, as the server knew the votes.
    cached: usize,
    /// Statements whose claims no second model compared with them.
    not_audited: usize,
    #[serde(flatten)]
    spent: Spent,
    #[serde(skip)]
    models: BTreeSet<String>,
    /// Whether there are verifications for which no model was called, and any others.
    #[serde(skip)]
    has_known: bool,
    #[serde(skip)]
    has_new: bool,
    /// The auditors that failed.
    #[serde(skip)]
    failed_auditors: BTreeSet<String>,
}

/// What something took.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Spent {
    tokens: u64,
    /// In US dollars; `None` if the price of a model is unknown.
    cost_usd: Option<f64>,
    /// Whether models that cost something took part.
    #[serde(skip)]
    is_paid: bool,
}

impl Default for Spent {
    fn default() -> Self {
        Self { tokens: 0, cost_usd: Some(0.0), is_paid: false }
    }
}

impl Spent {
    /// Adds what one statement took.
    pub(crate) fn add(&mut self, usage: &TokenUsage, is_simulated: bool) {
        self.tokens = self.tokens.saturating_add(usage.total_tokens);
        if !is_simulated && usage.model_usage.as_ref().is_some_and(|models| !models.is_empty()) {
            self.is_paid = true;
            self.cost_usd = self.cost_usd.zip(usage.cost_usd()).map(|(sum, cost)| sum + cost);
        }
    }

    /// Time and tokens, and the cost unless models cost nothing.
    pub(crate) fn parts(&self, elapsed: Duration) -> impl Iterator<Item = Part> {
        let tokens = format!("{} tokens", thousands(self.tokens));
        [seconds(elapsed), tokens].into_iter().chain(self.cost()).map(Part::new)
    }

    /// What it cost, unless models cost nothing.
    fn cost(&self) -> Option<String> {
        self.is_paid.then(|| self.cost_usd.map_or_else(|| "cost unknown".to_owned(), dollars))
    }
}

impl Totals {
    /// Of one verification.
    pub(crate) fn of(result: &VerifyResponse) -> Self {
        let mut totals = Self::default();
        totals.add(result);
        totals
    }

    /// Adds a verification.
    pub(crate) fn add(&mut self, result: &VerifyResponse) {
        for claim in &result.results {
            *match claim.assessment {
                Assessment::True => &mut self.is_true,
                Assessment::False => &mut self.is_false,
                Assessment::NoConsensus => &mut self.no_consensus,
            } += 1;
            self.cached += usize::from(claim.cached);
            self.models.extend(votes::models(claim).map(str::to_owned));
        }
        let is_empty = result.results.is_empty();
        *(if is_empty { &mut self.nothing_to_verify } else { &mut self.verified }) += 1;
        // The server's numbers are not trusted.
        let unchecked = unchecked(&result.skipped, result.coverage, result.complete);
        self.unchecked = self.unchecked.saturating_add(unchecked);
        let (all, more) = (&mut self.coverage, result.coverage);
        all.sentences = all.sentences.saturating_add(more.sentences);
        all.checked = all.checked.saturating_add(more.checked);
        all.skipped = all.skipped.saturating_add(more.skipped);
        all.unchecked = all.unchecked.saturating_add(more.unchecked);
        self.has_known |= result.cached;
        self.has_new |= !result.cached;
        self.not_audited += usize::from(!result.audited);
        self.failed_auditors.extend(result.auditor.clone().filter(|_| !result.audited));
        self.spent.add(&result.token_usage, result.mode.is_some());
    }

    /// Adds a statement that could not be verified.
    pub(crate) const fn add_failed(&mut self) {
        self.failed += 1;
    }

    /// How many statements there were.
    pub(crate) const fn statements(&self) -> usize {
        self.done() + self.failed
    }

    /// How many of them were not refused and did not fail.
    pub(crate) const fn done(&self) -> usize {
        self.verified + self.nothing_to_verify
    }

    /// How many of them could not be verified.
    pub(crate) const fn failed(&self) -> usize {
        self.failed
    }

    /// `12 statements: 9 verified, 1 with nothing to verify, 2 failed`
    pub(crate) fn lead(&self) -> String {
        let statements = counted(self.statements(), "statement");
        let some = |count: usize, what: &str| {
            if count > 0 { format!(", {count} {what}") } else { String::new() }
        };
        let empty = some(self.nothing_to_verify, "with nothing to verify");
        format!("{statements}: {} verified{empty}{}", self.verified, some(self.failed, "failed"))
    }

    /// What a person must hear of, wherever the results go: what no gate tells because `fail_on` leaves it out, and an
    /// audit that failed.
    pub(crate) fn warnings(&self, fail_on: &[FailOn], are_parts_shown: bool) -> Vec<String> {
        let is_told =
            are_parts_shown || fail_on.contains(&FailOn::Unchecked) || fail_on.contains(&FailOn::Skipped);
        let unchecked = (self.unchecked > 0 && !is_told).then(|| {
            let count = thousands(self.unchecked as u64);
            format!("not all of the text was checked ({count} unchecked), and --fail-on does not count that")
        });
        unchecked.into_iter().chain(unaudited(&self.failed_auditors)).collect()
    }

    /// `48 of 60 sentences checked, 2 skipped`; `None` where no server counts sentences.
    fn checked(&self) -> Option<String> {
        let Coverage { sentences, checked, skipped, .. } = self.coverage;
        let checked = thousands(checked.min(sentences.saturating_sub(self.unchecked)) as u64);
        let skipped =
            if skipped > 0 { format!(", {} skipped", thousands(skipped as u64)) } else { String::new() };
        (sentences > 0).then(|| format!("{checked} of {} checked{skipped}", counted(sentences, "sentence")))
    }

    const fn claims(&self) -> usize {
        self.is_true + self.is_false + self.no_consensus
    }

    /// `4 claims: ✓ 2 true`, `✗ 1 false` and so on; `of` is what they are told of, if not of the claims. `symbol`
    /// returns an assessment's symbol as it should be printed.
    fn verdicts(&self, of: Option<String>, symbol: impl Fn(Assessment) -> String) -> Vec<Part> {
        let of = of.unwrap_or_else(|| counted(self.claims(), "claim"));
        let kinds = [
            (self.is_true, Assessment::True, "true"),
            (self.is_false, Assessment::False, "false"),
            (self.no_consensus, Assessment::NoConsensus, "no consensus"),
        ];
        let mut parts = Vec::new();
        for (count, kind, word) in kinds.into_iter().filter(|(count, ..)| *count > 0) {
            let lead = if parts.is_empty() { format!("{of}: ") } else { String::new() };
            let text = format!("{lead}{} {} {word}", symbol(kind), thousands(count as u64));
            parts.push(Part { continues: !parts.is_empty(), text });
        }
        if parts.is_empty() {
            parts.push(Part::new(of));
        }
        if self.unchecked > 0 {
            parts.push(Part::new(format!("{} unchecked", thousands(self.unchecked as u64))));
        }
        match (self.not_audited, self.statements()) {
            (0, _) => {}
            (1, 1) => parts.push(Part::new("not audited".to_owned())),
            (some, _) => parts.push(Part::new(format!("{} not audited", thousands(some as u64)))),
        }
        parts
    }

    /// Verdicts and cost while more statements are verified.
    pub(crate) fn so_far(&self, symbol: impl Fn(Assessment) -> String) -> Vec<Part> {
        let verdicts = (self.claims() > 0).then(|| self.verdicts(None, symbol));
        verdicts.into_iter().flatten().chain(self.spent.cost().map(Part::new)).collect()
    }

    /// What was known before, models, time, tokens, and the cost unless models cost nothing.
    fn effort(&self, elapsed: Duration) -> Vec<Part> {
        if self.has_known && !self.has_new {
            return ["cached".to_owned(), seconds(elapsed)].map(Part::new).into();
        }
        let cached = (self.cached > 0).then(|| {
            format!("{} of {} cached", thousands(self.cached as u64), thousands(self.claims() as u64))
        });
        let models = Some(self.models.len()).filter(|count| *count > 0).map(|count| counted(count, "model"));
        cached.into_iter().chain(models).map(Part::new).chain(self.spent.parts(elapsed)).collect()
    }
}

/// That auditors failed, if any did; these are their models.
pub(crate) fn unaudited(failed: &BTreeSet<String>) -> Option<String> {
    let auditors: Vec<_> = failed.iter().map(|model| sanitize::line(model)).collect();
    (!auditors.is_empty())
        .then(|| format!("the claims were not audited: the auditor ({}) failed", auditors.join(", ")))
}

/// The length of text that holds a claim, on the average, in characters: 278 claims were counted by hand in 2,528
/// words.
const CHARS_PER_CLAIM: usize = 55;
/// What a claim costs with three hosted models of the cheaper kind, its extraction included, in US dollars.
const USD_PER_CLAIM: f64 = 0.0016;
/// The least number of claims for which it is said beforehand what they take.
const MANY_CLAIMS: usize = 100;

/// What a long text will take, before it is sent; `models` are asked about each claim. `None` for a shorter one.
pub(crate) fn forecast(text: &str, models: u32, is_simulated: bool) -> Option<String> {
    let claims = text.chars().count() / CHARS_PER_CLAIM;
    let calls = thousands(claims as u64 * u64::from(models));
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let cost = claims as f64 * USD_PER_CLAIM * f64::from(models) / 3.0;
    let cost =
        if is_simulated { String::new() } else { format!(", with small hosted models {}", dollars(cost)) };
    let lead = format!("a long text: about {} claims and {calls} model calls", thousands(claims as u64));
    (claims > MANY_CLAIMS).then(|| lead + &cost)
}

/// How much of a statement was not checked: its sentences, where the server counts them, else the parts.
pub(crate) fn unchecked(skipped: &[Skipped], coverage: Coverage, is_complete: bool) -> usize {
    match skipped.iter().filter(|part| part.reason.is_unchecked()).count() {
        0 => coverage.unchecked.max(usize::from(!is_complete)),
        _ if coverage.sentences > 0 => coverage.unchecked.max(1),
        parts => parts,
    }
}

/// The summary of one verification.
pub(crate) fn parts(
    result: &VerifyResponse,
    elapsed: Duration,
    symbol: impl Fn(Assessment) -> String,
) -> Vec<Part> {
    let totals = Totals::of(result);
    let of = match totals.unchecked {
        0 => result.results.is_empty().then(|| "nothing to verify".to_owned()),
        _ => totals.checked(),
    };
    let mut parts = totals.verdicts(of, symbol);
    parts.extend(totals.effort(elapsed));
    parts
}

/// The summary of several statements.
pub(crate) fn parts_of_several(
    totals: &Totals,
    elapsed: Duration,
    symbol: impl Fn(Assessment) -> String,
) -> Vec<Part> {
    let mut parts: Vec<Part> = [totals.lead()].into_iter().chain(totals.checked()).map(Part::new).collect();
    if totals.claims() > 0 {
        parts.extend(totals.verdicts(None, symbol));
    }
    parts.extend(totals.effort(elapsed));
    parts
}

/// The summary of one verification on one line, without colours.
pub(crate) fn line(terminal: &Terminal, result: &VerifyResponse, elapsed: Duration) -> String {
    on_one_line(terminal, parts(result, elapsed, |assessment| mark(terminal, assessment).0.to_owned()))
}

/// `only 2 of 3 claims were verified: ✓ 1 true, ✗ 1 false`: what a verification of so many claims had found when it
/// broke off.
pub(crate) fn of_partial(terminal: &Terminal, found: &VerifyResponse, total: usize) -> String {
    let only = partly(found.results.len(), total);
    let symbol = |assessment| mark(terminal, assessment).0.to_owned();
    on_one_line(terminal, Totals::of(found).verdicts(Some(only), symbol))
}

/// `only 2 of 3 claims were verified`
pub(crate) fn partly(found: usize, total: usize) -> String {
    format!(
        "only {found} of {} {} verified",
        counted(total, "claim"),
        if found == 1 { "was" } else { "were" }
    )
}

/// Parts on one line.
pub(crate) fn on_one_line(terminal: &Terminal, parts: Vec<Part>) -> String {
    let mut line = String::new();
    for part in parts {
        let glue = if part.continues { ", " } else { terminal.symbols.between };
        line.push_str(if line.is_empty() { "" } else { glue });
        line.push_str(&part.text);
    }
    line
}
