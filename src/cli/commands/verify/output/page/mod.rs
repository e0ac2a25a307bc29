//! Results for people, laid out to the terminal's width.
//!
//! Each claim has a headline with the verdict on the left and the votes on the right, the claim below it, and details
//! only where models disagree with each other or with the claim. Whatever does not fit beside something goes below it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::summary::{self, Part, Totals};
use super::votes::{self, Vote};
use crate::api::verify::{Assessment, ClaimResult, SkipReason, Skipped, VerifyResponse};
use crate::cli::commands::verify::input::place::Places;
use crate::cli::commands::verify::input::source::Source;
use crate::cli::commands::verify::{gate, verdict};
use crate::cli::process::exit::Failure;
use crate::cli::terminal::sanitize;
use crate::cli::terminal::term::{Style, Terminal};
use crate::cli::terminal::wrap::{cells, cut, hanging, visible_cells, wrap};

/// What is said of a claim that may not say what the text says.
const CONTESTED: &str = "contested: a model doubts that this is what the text says";

/// The page on which results are laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page<'a> {
    /// Its width, colours and symbols.
    pub(crate) terminal: &'a Terminal,
    /// Whether the models' reasons are shown.
    pub(crate) explain: bool,
    /// Where claims stand, of a file.
    pub(crate) places: Option<&'a Places>,
}

/// The symbol and style of an assessment.
pub(crate) fn mark(terminal: &Terminal, assessment: Assessment) -> (&'static str, Style) {
    match assessment {
        Assessment::True => (terminal.symbols.yes, Style::True),
        Assessment::False => (terminal.symbols.no, Style::False),
        Assessment::NoConsensus => (terminal.symbols.open, Style::Open),
    }
}

impl Page<'_> {
    /// All lines on a verification.
    pub(crate) fn result(&self, result: &VerifyResponse, elapsed: Duration) -> Vec<String> {
        let digits = result.results.len().to_string().len();
        let mut lines = Vec::new();
        for (index, claim) in result.results.iter().enumerate() {
            lines.extend(self.claim(index + 1, digits, claim));
        }
        lines.extend(result.skipped.iter().flat_map(|part| self.skipped(part)));
        let unnamed = verdict::unnamed(&result.skipped, result.complete, result.coverage);
        if result.skipped.iter().any(|part| part.reason == SkipReason::OverLimit) {
            lines.extend(self.paragraph(3, 0, gate::HIGHER_LIMIT));
        }
        lines.extend(
            unnamed.into_iter().flat_map(|fault| self.note(&format!("not checked: {}", fault.words()))),
        );
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(self.summary(result, elapsed));
        lines
    }

    /// What was found for some of `total` claims, by index, before a verification broke off.
    pub(crate) fn partial(&self, found: &BTreeMap<usize, ClaimResult>, total: usize) -> Vec<String> {
        let digits = total.to_string().len();
        let claims = found.iter().flat_map(|(index, claim)| self.claim(index + 1, digits, claim));
        let mut lines: Vec<String> = claims.collect();
        lines.push(String::new());
        lines.extend(self.remainder(found.len(), total));
        lines
    }

    /// `only 1 of 4 claims was verified`
    pub(crate) fn remainder(&self, found: usize, total: usize) -> Vec<String> {
        self.paragraph(0, 0, &summary::partly(found, total))
    }

    fn claim(&self, number: usize, digits: usize, claim: &ClaimResult) -> Vec<String> {
        let indent = digits + 5;
        let mut lines = self.headline(number, digits, claim);
        lines.extend(self.paragraph(indent, 0, &sanitize::line(&claim.claim)));
        if claim.assessment != Assessment::True
            && let Some(place) = self.places.and_then(|places| places.shown(Some(claim.span)))
        {
            lines.extend(self.paragraph(indent, 2, &format!("at {}", sanitize::line(&place))));
        }
        if claim.assessment != Assessment::True
            && let Some(quote) = differing_quote(claim)
        {
            lines.extend(self.paragraph(indent, 2, &format!("from: {quote}")));
        }
        if claim.contested {
            lines.extend(self.paragraph(indent, 2, CONTESTED));
        }
        let details = details(claim);
        if claim.assessment == Assessment::False || votes::chose_other_option(claim) {
            let question = format!("Q: {}", sanitize::line(&claim.original_question));
            lines.extend(self.paragraph(indent, 3, &question));
        }
        if let Some(details) = details {
            lines.extend(self.paragraph(indent, 2, &details));
        }
        if self.explain {
            lines.extend(self.reasons(indent, claim));
        }
        lines
    }

    /// `✓  1  TRUE  3/3                                  T T T`
    fn headline(&self, number: usize, digits: usize, claim: &ClaimResult) -> Vec<String> {
        let (symbol, style) = mark(self.terminal, claim.assessment);
        let name = format!("{number:>digits$}  {}", claim.assessment);
        let (tally, remark) = tally(claim);
        let letters = votes::letters(claim, " ");
        let full = if remark.is_empty() { tally.clone() } else { format!("{tally} {remark}") };

        let mut below = Vec::new();
        let mut left = format!("{symbol}  {name}  {full}");
        if !self.fits(&left, &letters) && !remark.is_empty() {
            left = format!("{symbol}  {name}  {tally}");
            below.push(remark);
        }
        if !self.fits(&left, &letters) {
            left = format!("{symbol}  {name}");
            below.insert(0, tally);
        }
        let mut line = left.replacen(symbol, &self.terminal.out.paint.apply(style, symbol), 1);
        if self.fits(&left, &letters) {
            let gap = self.line_width() - cells(&left) - cells(&letters);
            line.push_str(&" ".repeat(gap));
            line.push_str(&letters);
        } else {
            below.push(letters);
        }
        let mut lines = vec![line.trim_end().to_owned()];
        lines.extend(below.iter().flat_map(|part| self.paragraph(digits + 5, 0, part)));
        lines
    }

    fn fits(&self, left: &str, letters: &str) -> bool {
        cells(left) + 2 + cells(letters) <= self.line_width()
    }

    /// The last column stays free: some terminals wrap as soon as it is written.
    fn line_width(&self) -> usize {
        self.terminal.width - 1
    }

    fn reasons(&self, indent: usize, claim: &ClaimResult) -> Vec<String> {
        let with_reason =
            claim.model_answers.iter().filter_map(|answer| Some((answer, answer.reason.as_ref()?)));
        with_reason
            .flat_map(|(answer, reason)| {
                let model = votes::short_name(claim, &answer.model);
                let letter = votes::vote_for(claim, &answer.answer).letter();
                let text = format!("{letter} {model}: {}", sanitize::line(reason));
                self.paragraph(indent, 2, &text)
            })
            .collect()
    }

    /// What stands above the results of one of several statements.
    pub(crate) fn heading(&self, source: &Source, text: &str) -> String {
        // A file is known by its name; what it begins with, such as front matter, tells nothing.
        let heading = match source {
            Source::File { .. } => source.label(),
            Source::Line { .. } | Source::Argument { .. } => format!("{}: {text}", source.label()),
        };
        let heading = cut(&sanitize::line(&heading), self.line_width(), self.terminal.symbols.cut);
        self.terminal.out.paint.apply(Style::Strong, &heading)
    }

    /// One of several statements with which nothing could be done.
    pub(crate) fn failed(&self, what: &str, failure: &Failure) -> String {
        let symbols = &self.terminal.symbols;
        let symbol = self.terminal.out.paint.apply(Style::Open, symbols.skipped);
        format!("{symbol}  {what}: {}", symbols.adapt(sanitize::line(&failure.message)))
    }

    /// A part that is in no claim.
    pub(crate) fn skipped(&self, part: &Skipped) -> Vec<String> {
        let reason = part.reason.as_str().replace('_', " ");
        let word = if part.reason.is_unchecked() { "not checked" } else { "skipped" };
        let place = self.places.and_then(|places| places.shown(part.span));
        let place = place.filter(|_| part.reason.is_unchecked()).map(|place| format!(" at {place}"));
        let text = format!("{word} ({reason}){}: {}", place.unwrap_or_default(), part.text);
        self.note(&sanitize::line(&text))
    }

    /// What is said of no claim.
    fn note(&self, text: &str) -> Vec<String> {
        let symbol = self.terminal.out.paint.apply(Style::Open, self.terminal.symbols.skipped);
        self.hanging(&format!("{symbol}  "), 3, text)
    }

    /// `4 claims: ✓ 2 true, ✗ 1 false, ~ 1 no consensus · 3 models · 2.4 s · 3,120 tokens · $0.0031`
    pub(crate) fn summary(&self, result: &VerifyResponse, elapsed: Duration) -> Vec<String> {
        self.fill(0, summary::parts(result, elapsed, |assessment| self.painted(assessment)))
    }

    /// The same of several statements.
    pub(crate) fn summary_of_several(&self, totals: &Totals, elapsed: Duration) -> Vec<String> {
        self.fill(0, summary::parts_of_several(totals, elapsed, |assessment| self.painted(assessment)))
    }

    fn painted(&self, assessment: Assessment) -> String {
        let (symbol, style) = mark(self.terminal, assessment);
        self.terminal.out.paint.apply(style, symbol)
    }

    /// Parts on as few lines as they fit on, at an indent; one that is longer than a line is broken.
    pub(crate) fn fill(&self, indent: usize, parts: Vec<Part>) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let width = self.line_width();
        for part in parts {
            let glue = if part.continues { ", " } else { self.terminal.symbols.between };
            if let Some(line) = lines.last_mut() {
                if visible_cells(line) + cells(glue) + visible_cells(&part.text) <= width {
                    line.push_str(glue);
                    line.push_str(&part.text);
                    continue;
                }
                if part.continues {
                    line.push(',');
                }
            }
            if indent + visible_cells(&part.text) <= width {
                lines.push(format!("{:indent$}{}", "", part.text));
            } else {
                lines.extend(self.paragraph(indent, 2, &part.text));
            }
        }
        lines
    }

    /// A paragraph at an indent; lines after the first are indented by `hanging` more.
    pub(crate) fn paragraph(&self, indent: usize, hanging: usize, text: &str) -> Vec<String> {
        self.hanging(&" ".repeat(indent), indent + hanging, text)
    }

    /// Wrapped text behind `first`, and below that with this indent.
    pub(crate) fn hanging(&self, first: &str, indent: usize, text: &str) -> Vec<String> {
        hanging(first, indent, &wrap(text, self.line_width().saturating_sub(indent).max(10)))
    }
}

/// The words of the text, sanitized, where the claim has others.
pub(crate) fn differing_quote(claim: &ClaimResult) -> Option<String> {
    let differs = !claim.quote.is_empty() && claim.quote != claim.claim;
    differs.then(|| format!("\"{}\"", sanitize::line(&claim.quote)))
}

/// How the votes fell, and which models gave none: `2/2` and `(1 no answer: gemini-z, timeout)`. Votes that were known
/// are those of all models.
pub(crate) fn tally(claim: &ClaimResult) -> (String, String) {
    let missing = if claim.cached { "(cached)".to_owned() } else { missing(claim) };
    if claim.assessment == Assessment::NoConsensus {
        let kinds = [(Vote::Claimed, "true"), (Vote::Other, "false"), (Vote::Undecided, "undecided")];
        let counted: Vec<String> = kinds
            .into_iter()
            .map(|(vote, word)| (votes::count(claim, vote), word))
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        return (counted.join(", "), missing);
    }
    let agreeing =
        claim.model_answers.iter().filter(|answer| answer.answer == claim.consensus_answer).count();
    (format!("{agreeing}/{}", claim.model_answers.len()), missing)
}

fn missing(claim: &ClaimResult) -> String {
    if claim.model_errors.is_empty() {
        return String::new();
    }
    let named: Vec<String> = claim
        .model_errors
        .iter()
        .map(|failed| {
            format!("{}, {}", votes::short_name(claim, &failed.model), sanitize::line(&failed.code))
        })
        .collect();
    format!("({} no answer: {})", named.len(), named.join("; "))
}

/// Which models say what, if they disagree with each other or with the claim; `None` if all agree with it.
fn details(claim: &ClaimResult) -> Option<String> {
    let groups = votes::groups(claim);
    if let [only] = groups.as_slice() {
        let as_claimed = claim.consensus_answer == claim.claimed_answer;
        return (only.is_consensus && !as_claimed).then(|| format!("models say {}", only.says));
    }
    let parts: Vec<String> = groups
        .iter()
        .map(|group| {
            let corrects = group.is_consensus && claim.assessment == Assessment::False;
            let says = if corrects { format!("models say {}", group.says) } else { group.says.clone() };
            format!("{says}: {}", group.models.join(", "))
        })
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests;
