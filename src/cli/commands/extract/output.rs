//! What was extracted, for people, pipes and programs. Fields of JSON are only ever added.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::Finished;
use crate::api::verify::{ExtractResponse, ExtractedClaim};
use crate::cli::commands::verify::input::source::Source;
use crate::cli::commands::verify::output::json::{self as documents, Document};
use crate::cli::commands::verify::output::page::Page;
use crate::cli::commands::verify::output::plain as lines;
use crate::cli::commands::verify::output::summary::{self, Part, Spent};
use crate::cli::terminal::humanize::{counted, thousands};
use crate::cli::terminal::sanitize;

const SCHEMA: &str = "mk.extract/1";
const BATCH_SCHEMA: &str = "mk.extract.batch/1";

/// The options that every claim has, at the end.
const FIXED_OPTIONS: usize = 2;

/// What was found in one statement or in several, and what it took.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Totals {
    claims: usize,
    /// Sentences of which a part is in no claim and should be.
    unchecked: usize,
    #[serde(skip)]
    sentences: usize,
    /// How many statements no second model compared with their claims.
    #[serde(skip)]
    unaudited: usize,
    /// The auditors that failed.
    #[serde(skip)]
    failed_auditors: BTreeSet<String>,
    #[serde(flatten)]
    spent: Spent,
}

impl Totals {
    /// Adds what was found in a statement.
    pub(super) fn add(&mut self, found: &ExtractResponse) {
        self.claims += found.claims.len();
        // The server's numbers are not trusted.
        let unchecked = summary::unchecked(&found.skipped, found.coverage, found.complete);
        self.unchecked = self.unchecked.saturating_add(unchecked);
        self.sentences = self.sentences.saturating_add(found.coverage.sentences);
        self.unaudited += usize::from(!found.audited);
        self.failed_auditors.extend(found.auditor.clone().filter(|_| !found.audited));
        self.spent.add(&found.token_usage, found.mode.is_some());
    }

    /// What a person must hear of, wherever the results go.
    pub(super) fn warning(&self) -> Option<String> {
        summary::unaudited(&self.failed_auditors)
    }

    /// `4 claims · all 5 sentences accounted for · 1.2 s · 812 tokens · $0.0004`
    pub(super) fn parts(&self, elapsed: Duration) -> Vec<Part> {
        let accounted = match (self.sentences, self.unchecked) {
            (0, _) => None,
            (1, 0) => Some("its sentence is accounted for".to_owned()),
            (all, 0) => Some(format!("all {} accounted for", counted(all, "sentence"))),
            (all, unchecked) => {
                let rest = thousands(all.saturating_sub(unchecked) as u64);
                Some(format!("{rest} of {} accounted for", counted(all, "sentence")))
            }
        };
        let claims = if self.claims == 0 { "no claim".to_owned() } else { counted(self.claims, "claim") };
        let unaudited = (self.unaudited > 0).then(|| "not audited".to_owned());
        let parts = [Some(claims), accounted, unaudited].into_iter().flatten().map(Part::new);
        parts.chain(self.spent.parts(elapsed)).collect()
    }
}

/// The claims and skipped parts of a statement, for people.
pub(super) fn list(page: &Page<'_>, finished: &Finished) -> Vec<String> {
    let found = &finished.found;
    let digits = found.claims.len().to_string().len();
    let claims = found.claims.iter().enumerate().flat_map(|(at, one)| claim(page, at + 1, digits, one));
    let mut lines: Vec<String> = claims.collect();
    lines.extend(found.skipped.iter().flat_map(|part| page.skipped(part)));
    lines
}

fn claim(page: &Page<'_>, number: usize, digits: usize, claim: &ExtractedClaim) -> Vec<String> {
    let indent = digits + 2;
    let details = &claim.details;
    let mut lines = page.hanging(&format!("{number:>digits$}  "), indent, &sanitize::line(&claim.claim));
    if details.quote.trim() != claim.claim {
        lines.extend(page.paragraph(indent, 2, &format!("from: {}", sanitize::line(&details.quote))));
    }
    lines.extend(page.paragraph(indent, 3, &format!("Q: {}", sanitize::line(&details.question))));
    let own = details.options.len().saturating_sub(FIXED_OPTIONS);
    let option = |(key, text): (&String, &Value)| {
        let claimed = if *key == claim.claimed_answer { " (as claimed)" } else { "" };
        format!("{key} {}{claimed}", sanitize::line(text.as_str().unwrap_or_default()))
    };
    let options: Vec<String> = details.options.iter().take(own).map(option).collect();
    lines.extend(page.fill(indent, options.into_iter().map(Part::new).collect()));
    if claim.contested {
        lines.extend(page.paragraph(indent, 2, "contested: a second model doubts that the text says this"));
    }
    lines
}

/// A line of tab-separated fields for each claim and skipped part.
pub(super) fn plain(source: Option<&Source>, found: &ExtractResponse) -> Vec<String> {
    let label = source.map(Source::label);
    let label = label.as_deref();
    let claim = |(at, claim): (usize, &ExtractedClaim)| {
        let details = &claim.details;
        let place = format!("{}-{}", details.span.start, details.span.end);
        let line = lines::line(label, &(at + 1).to_string(), "CLAIM", &place, &claim.claim);
        format!("{line}\t{}", sanitize::line(&details.question))
    };
    let nothing = (found.claims.is_empty() && label.is_some()).then(|| lines::nothing(label));
    let claims = found.claims.iter().enumerate().map(claim);
    claims.chain(nothing).chain(found.skipped.iter().map(|part| lines::skipped(label, part))).collect()
}

/// The document for one statement, or the entry for one of several.
pub(super) fn entry(source: Option<&Source>, finished: &Finished, exit: u8) -> Value {
    let schema = source.is_none().then_some(SCHEMA);
    Document::new(schema, source, exit, finished.elapsed, &finished.found).located(&finished.places)
}

/// The document for several statements, with totals unless it broke off.
pub(super) fn batch(entries: &[Value], totals: Option<&Totals>, exit: u8) -> Value {
    documents::several(BATCH_SCHEMA, entries, totals, exit)
}

/// A line for each claim of a statement, and one for all the rest.
pub(super) fn json_lines(source: Option<&Source>, finished: &Finished, exit: u8) -> Vec<Value> {
    let claim = |(at, claim): (usize, &ExtractedClaim)| {
        let mut line = documents::head(SCHEMA, source, "claim");
        line["index"] = json!(at);
        documents::append(&mut line, json!(claim));
        finished.places.add_to_part(&mut line);
        line
    };
    let mut all: Vec<Value> = finished.found.claims.iter().enumerate().map(claim).collect();
    let mut summary = documents::head(SCHEMA, source, "summary");
    let mut rest = entry(None, finished, exit);
    rest["claims"] = json!(finished.found.claims.len());
    if let Some(fields) = rest.as_object_mut() {
        fields.remove("original_fact");
    }
    documents::append(&mut summary, rest);
    all.push(summary);
    all
}

/// The last line of `--jsonl` with several statements.
pub(super) fn total_line(extracted: usize, failed: usize, totals: &Totals, exit: u8) -> Value {
    json!({
        "schema": BATCH_SCHEMA, "type": "total", "exit": exit, "extracted": extracted, "failed": failed,
        "totals": totals,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::commands::verify::input::place::Places;
    use crate::cli::terminal::term::{Paint, Terminal};
    use crate::cli::terminal::wrap::cells;

    fn found() -> ExtractResponse {
        let quote = "completed in 1925, after two years";
        let claim = json!({
            "claim": "The Eiffel Tower was completed in 1925.", "id": "claim_1", "quote": quote,
            "span": { "start": 10, "end": 44 }, "question": "In which year was the Eiffel Tower completed?",
            "options": { "A": "1925", "B": "1887", "C": "1889", "D": "1931", "E": "None of these",
                "F": "Cannot be determined" },
            "claimed_answer": "A", "contested": true,
        });
        serde_json::from_value(json!({
            "requestId": "ver_1", "original_fact": "x", "claims": [claim],
            "skipped": [{ "text": "So nice!", "reason": "opinion" }, { "text": "a\tb", "reason": "unfaithful" }],
            "complete": false, "audited": true,
            "coverage": { "sentences": 3, "checked": 1, "skipped": 1, "unchecked": 1 }, "timestamp": "t",
            "tokenUsage": { "promptTokens": 600, "completionTokens": 212, "totalTokens": 812, "modelUsage": [
                { "model": "a/b", "promptTokens": 600, "completionTokens": 212, "totalTokens": 812, "cost_usd": 0.0004 },
            ] },
            "cost_usd": 0.0004, "domain": "general", "asOf": "t",
        }))
        .unwrap()
    }

    fn page(width: usize) -> Vec<String> {
        let terminal = Terminal::test(width, Paint::Plain);
        let page = Page { terminal: &terminal, explain: false, places: None };
        let finished = Finished {
            found: found(),
            elapsed: Duration::from_millis(1_240),
            places: Places::new(None, "x"),
        };
        let mut totals = Totals::default();
        totals.add(&finished.found);
        let mut lines = list(&page, &finished);
        lines.extend(page.fill(0, totals.parts(finished.elapsed)));
        lines
    }

    #[test]
    fn people_see_what_would_be_asked_at_80_columns() {
        assert_eq!(
            page(80).join("\n"),
            "\
1  The Eiffel Tower was completed in 1925.
   from: completed in 1925, after two years
   Q: In which year was the Eiffel Tower completed?
   A 1925 (as claimed) · B 1887 · C 1889 · D 1931
   contested: a second model doubts that the text says this
!  skipped (opinion): So nice!
!  not checked (unfaithful): a b
1 claim · 2 of 3 sentences accounted for · 1.2 s · 812 tokens · $0.0004"
        );
    }

    #[test]
    fn nothing_is_cut_or_too_wide_at_44_columns() {
        let lines = page(44);
        assert!(lines.iter().all(|line| cells(line) < 44), "{lines:#?}");
        let text = lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["was the Eiffel Tower completed?", "· C 1889 D 1931", "812 tokens · $0.0004"] {
            assert!(text.contains(part), "{part}: {lines:#?}");
        }
    }

    #[test]
    fn pipes_get_a_line_for_each_claim_and_part() {
        assert_eq!(
            plain(None, &found()),
            [
                "1\tCLAIM\t10-44\tThe Eiffel Tower was completed in 1925.\tIn which year was the Eiffel Tower completed?",
                "-\tSKIPPED\topinion\tSo nice!",
                "-\tUNCHECKED\tunfaithful\ta b",
            ]
        );
        let none = ExtractResponse { claims: Vec::new(), skipped: Vec::new(), ..found() };
        assert_eq!(plain(Some(&Source::Line { line: 7 }), &none), ["7\t-\tNOTHING\t-\t"]);
        assert!(plain(None, &none).is_empty());
    }

    #[test]
    fn programs_get_every_field() {
        let finished = Finished {
            found: found(),
            elapsed: Duration::from_millis(1_240),
            places: Places::new(Some(&Source::Line { line: 7 }), "x"),
        };
        let document = entry(None, &finished, 13);
        assert_eq!((&document["schema"], &document["exit"]), (&json!(SCHEMA), &json!(13)));
        assert_eq!(document["claims"][0]["options"]["A"], "1925");
        let lines = json_lines(Some(&Source::Line { line: 7 }), &finished, 13);
        assert_eq!(
            (&lines[0]["type"], &lines[0]["line"], &lines[0]["index"]),
            (&json!("claim"), &json!(7), &json!(0))
        );
        assert_eq!(
            (&lines[1]["type"], &lines[1]["claims"], &lines[1]["complete"]),
            (&json!("summary"), &json!(1), &json!(false))
        );
    }
}
