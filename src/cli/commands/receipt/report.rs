//! What `mk receipt verify` says of receipts. All that a receipt holds is foreign text.

use serde::Serialize;
use serde_json::{Value, json};

use crate::api::verify::{Assessment, ClaimResult, Skipped};
use crate::cli::commands::verify::output::page::{self, Page};
use crate::cli::commands::verify::output::votes;
use crate::cli::process::exit::Failure;
use crate::cli::target::embedded::SANDBOX_BANNER;
use crate::cli::terminal::humanize::counted;
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::sanitize;
use crate::cli::terminal::wrap::{cells, cut, wrap};
use crate::verify::receipt::{Fingerprint, Payload, PublicKey, Uncounted};

/// The width of the longest verdict, `NO CONSENSUS`.
const VERDICT_WIDTH: usize = 12;

/// What became of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Signature {
    /// It is the server's.
    Valid,
    /// The receipt was changed.
    Invalid,
    /// The receipt names another key than the one at hand.
    #[serde(rename = "other_key")]
    OfAnotherKey,
    /// There is no key.
    Unchecked,
}

/// Whether a text is the one that a receipt is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sameness {
    /// It is.
    Same,
    /// It is another.
    Different,
    /// None was given.
    Unchecked,
}

impl Sameness {
    /// A text at hand against what the receipt knows of it.
    pub(super) fn of(given: Option<&Fingerprint>, known: Option<&Fingerprint>) -> Self {
        match given {
            None => Self::Unchecked,
            Some(_) if given == known => Self::Same,
            Some(_) => Self::Different,
        }
    }
}

/// A receipt, and what was found of it.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) key_id: String,
    pub(super) payload: Payload,
    pub(super) signature: Signature,
    pub(super) text: Sameness,
    /// Which of the texts at hand it is about.
    pub(super) text_name: Option<String>,
    pub(super) context: Sameness,
    /// How many models have to agree in what was counted.
    pub(super) min_required: u32,
    /// Parallel to those of the payload.
    pub(super) claims: Vec<CheckedClaim>,
}

/// A line of the file: a receipt, or why it is none.
pub(super) type Entry = Result<Box<Checked>, String>;

/// A claim, counted again.
#[derive(Debug)]
pub(super) struct CheckedClaim {
    /// The result, perhaps under another rule; or why it cannot be counted.
    pub(super) counted: Result<ClaimResult, Uncounted>,
    /// Whether, under the receipt's own rule, it is what was reported.
    pub(super) agrees: bool,
}

impl Checked {
    /// Whether nothing speaks against the receipt.
    pub(super) fn agrees(&self) -> bool {
        let is_signed = matches!(self.signature, Signature::Valid | Signature::Unchecked);
        let texts_agree = ![self.text, self.context].contains(&Sameness::Different);
        is_signed && texts_agree && self.claims.iter().all(|claim| claim.agrees)
    }

    /// What does not agree, but for the claims.
    fn faults(&self, key: Option<&PublicKey>) -> Vec<String> {
        let mut faults = Vec::new();
        match self.signature {
            Signature::Invalid => {
                faults.push("the signature is wrong: the receipt was changed".to_owned());
            }
            Signature::OfAnotherKey => faults.push(format!(
                "it is signed with key {}, not with {}: name the right key with --key",
                self.key_id,
                key.map(PublicKey::id).unwrap_or_default()
            )),
            Signature::Valid | Signature::Unchecked => {}
        }
        if self.text == Sameness::Different {
            faults.push("the text is not the one that was verified".to_owned());
        }
        if self.context == Sameness::Different {
            faults.push("the context is not the one that the models answered from".to_owned());
        }
        let disagreeing = self.claims.iter().filter(|claim| !claim.agrees).count();
        if disagreeing > 0 {
            faults.push(format!("{} not as reported", counted(disagreeing, "claim")));
        }
        let own = env!("CARGO_PKG_VERSION");
        if disagreeing > 0 && self.payload.version != own {
            let made_by = sanitize::line(&self.payload.version).into_owned();
            faults.push(format!("it was made by mk {made_by}; this is {own}, which may count differently"));
        }
        faults
    }

    /// `2 claims counted again, all as reported · signed by 21fe31dfa154a261`
    fn summary(&self, between: &str, are_several: bool) -> String {
        let all = counted(self.claims.len(), "claim");
        let disagreeing = self.claims.iter().filter(|claim| !claim.agrees).count();
        let mut parts = vec![match disagreeing {
            0 => format!("{all} recounted, as reported"),
            some => format!("{some} of {all} not as reported"),
        }];
        if self.min_required != self.payload.request.min_required {
            parts.push(format!("recounted as if {} had to agree", self.min_required));
        }
        let unchecked = self.payload.skipped.iter().filter(|part| part.reason.is_unchecked()).count();
        if unchecked > 0 {
            parts.push(format!("{} of the text not checked", counted(unchecked, "part")));
        } else if !self.payload.complete {
            parts.push("not all of the text was checked".to_owned());
        }
        if self.signature == Signature::Valid {
            parts.push(format!("signed by {}", self.key_id));
        }
        match &self.text_name {
            Some(name) if are_several => parts.push(format!("the text is {}", sanitize::line(name))),
            Some(_) => parts.push("the text is the same".to_owned()),
            None => {}
        }
        if self.context == Sameness::Same {
            parts.push("the context is the same".to_owned());
        }
        let time = sanitize::line(&self.payload.timestamp).into_owned();
        parts.push(cut(&time, 30, ""));
        if self.payload.mode.is_some() {
            parts.push("sandbox".to_owned());
        }
        parts.join(between)
    }
}

/// Prints it all. What does not agree is told on standard error, even with `-q`.
pub(super) fn print(
    printer: &Printer,
    name: &str,
    all: &[Entry],
    key: Option<&PublicKey>,
    json: bool,
    exit: u8,
) -> Result<(), Failure> {
    let name = sanitize::line(name);
    let of = |at: usize| {
        if all.len() > 1 { format!("{name}, line {}", at + 1) } else { name.clone().into_owned() }
    };
    if json {
        let receipts: Vec<Value> = all.iter().enumerate().map(document).collect();
        printer.document(&json!({ "schema": "mk.receipt.check/1", "exit": exit, "receipts": receipts }))?;
    }
    for (at, entry) in all.iter().enumerate() {
        let faults = match entry {
            Ok(checked) => {
                if !json {
                    let line = (all.len() > 1).then_some(at + 1);
                    for_people_or_pipes(printer, line, checked)?;
                }
                checked.faults(key)
            }
            Err(cause) => vec![sanitize::line(cause).into_owned()],
        };
        for fault in faults {
            printer.urgent_sentence(&format!("{}: {fault}", of(at)));
        }
    }
    if all.iter().flatten().any(|checked| checked.payload.mode.is_some()) {
        printer.notice(SANDBOX_BANNER);
    }
    if key.is_none() {
        printer.urgent_warning(
            "the signature was not checked, because there is no key here: get it with `mk receipt key` on the \
             server that signed, and pass it with --key",
        );
    }
    Ok(())
}

/// Of several receipts, each line begins with that of the receipt.
fn for_people_or_pipes(printer: &Printer, line: Option<usize>, checked: &Checked) -> Result<(), Failure> {
    let terminal = &printer.terminal;
    let prefix = |behind: &str| line.map(|line| format!("{line}{behind}")).unwrap_or_default();
    let summary = checked.summary(terminal.symbols.between, line.is_some());
    let skipped = &checked.payload.skipped;
    if !terminal.out.is_terminal {
        let lines = checked.claims.iter().zip(&checked.payload.claims).enumerate();
        lines
            .map(|(at, (claim, record))| plain(at, claim, &record.result))
            .chain(skipped.iter().map(plain_part))
            .try_for_each(|text| printer.line(&format!("{}{text}", prefix("\t"))))?;
        printer.notice(&format!("{}{summary}", prefix(": ")));
        return Ok(());
    }
    let digits = checked.claims.len().to_string().len();
    for (at, (claim, record)) in checked.claims.iter().zip(&checked.payload.claims).enumerate() {
        for line in lines(printer, at + 1, digits, claim, &record.result) {
            printer.line(&terminal.symbols.adapt(line.into()))?;
        }
    }
    let page = Page { terminal, explain: false, places: None };
    for line in skipped.iter().flat_map(|part| page.skipped(part)) {
        printer.line(&terminal.symbols.adapt(line.into()))?;
    }
    let summary = line.map_or_else(|| summary.clone(), |line| format!("receipt {line}: {summary}"));
    wrap(&summary, terminal.width - 1).iter().try_for_each(|line| printer.line(line))
}

/// `✓  1  TRUE          TTT  It was completed in 1889.`, cut to the width; below it what does not agree.
fn lines(
    printer: &Printer,
    number: usize,
    digits: usize,
    claim: &CheckedClaim,
    reported: &ClaimResult,
) -> Vec<String> {
    let terminal = &printer.terminal;
    let width = terminal.width - 1;
    let verdict = claim.assessment();
    let (symbol, style) = match verdict {
        Some(assessment) => page::mark(terminal, assessment),
        None => page::mark(terminal, Assessment::NoConsensus),
    };
    let word = verdict.map_or("-", Assessment::as_str);
    let letters = claim.counted.as_ref().map(|counted| votes::letters(counted, "")).unwrap_or_default();
    let head = format!("{symbol}  {number:>digits$}  {word:VERDICT_WIDTH$}  {letters}  ");
    let line = format!("{head}{}", sanitize::line(&reported.claim));
    let line = cut(&line, width, terminal.symbols.cut);
    let mut lines = vec![line.replacen(symbol, &terminal.out.paint.apply(style, symbol), 1)];
    if let Some(problem) = problem(claim, reported).or_else(|| other_rule(claim, reported)) {
        let indent = cells(symbol) + digits + 4;
        let below = wrap(&problem, width.saturating_sub(indent).max(10));
        lines.extend(below.iter().map(|line| format!("{:indent$}{line}", "")));
    }
    lines
}

/// `1<TAB>TRUE<TAB>TTT<TAB>agrees<TAB>text`
fn plain(at: usize, claim: &CheckedClaim, reported: &ClaimResult) -> String {
    let verdict = match claim.assessment() {
        Some(Assessment::NoConsensus) => "NO_CONSENSUS",
        Some(decided) => decided.as_str(),
        None => "-",
    };
    let letters = claim.counted.as_ref().map(|counted| votes::letters(counted, "")).unwrap_or_default();
    let letters = if letters.is_empty() { "-".to_owned() } else { letters };
    let state = problem(claim, reported).or_else(|| other_rule(claim, reported));
    let state = state.unwrap_or_else(|| "agrees".to_owned());
    format!("{}\t{verdict}\t{letters}\t{state}\t{}", at + 1, sanitize::line(&reported.claim))
}

/// `-<TAB>UNCHECKED<TAB>not_extracted<TAB>-<TAB>text`
fn plain_part(part: &Skipped) -> String {
    let word = if part.reason.is_unchecked() { "UNCHECKED" } else { "SKIPPED" };
    format!("-\t{word}\t{}\t-\t{}", part.reason.as_str(), sanitize::line(&part.text))
}

/// What does not agree about a claim; sanitized.
fn problem(claim: &CheckedClaim, reported: &ClaimResult) -> Option<String> {
    let said = reported.assessment;
    match &claim.counted {
        Err(why) => {
            let why = why.to_string();
            Some(format!("reported {said}, cannot be counted: {}", cut(&sanitize::line(&why), 200, "…")))
        }
        Ok(counted) if !claim.agrees && counted.assessment != said => Some(format!("reported {said}")),
        Ok(_) if !claim.agrees => Some("reported with other answers than the models gave".to_owned()),
        Ok(_) => None,
    }
}

/// What another rule changes about a claim on whose verdict nothing is wrong.
fn other_rule(claim: &CheckedClaim, reported: &ClaimResult) -> Option<String> {
    let is_changed = claim.assessment().is_some_and(|counted| counted != reported.assessment);
    is_changed.then(|| format!("agrees by its own rule, as {}", reported.assessment))
}

fn document((at, entry): (usize, &Entry)) -> Value {
    let checked = match entry {
        Ok(checked) => checked,
        Err(cause) => return json!({ "line": at + 1, "agrees": false, "problem": cause }),
    };
    let payload = &checked.payload;
    let claims: Vec<Value> = checked
        .claims
        .iter()
        .zip(&payload.claims)
        .map(|(claim, record)| {
            json!({
                "id": record.result.id,
                "claim": record.result.claim,
                "assessment": claim.assessment(),
                "reason_code": claim.counted.as_ref().ok().and_then(|counted| counted.reason_code),
                "reported": record.result.assessment,
                "agrees": claim.agrees,
                "problem": problem(claim, &record.result),
            })
        })
        .collect();
    json!({
        "line": at + 1,
        "requestId": payload.request_id,
        "timestamp": payload.timestamp,
        "version": payload.version,
        "mode": payload.mode,
        "key_id": checked.key_id,
        "signature": checked.signature,
        "text": checked.text,
        "text_name": checked.text_name,
        "context": checked.context,
        "domain": payload.request.domain,
        "asOf": payload.request.as_of,
        "minRequired": checked.min_required,
        "agrees": checked.agrees(),
        "complete": payload.complete,
        "coverage": payload.coverage,
        "claims": claims,
        "skipped": payload.skipped,
    })
}
