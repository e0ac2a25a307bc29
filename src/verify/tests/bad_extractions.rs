//! Good and bad extractions of our own (`tests/data/anchors`), through whole verifications: the extractor stands by what it
//! wrote, and auditor and judges find what they should and nothing else.
//!
//! Anchors hold each claim against these data by code alone; here stands what becomes of the claims.

use serde_json::{Value, json};

use super::audit::{audited, json_reply};
use super::support::{Call, Reply, Scenario, block};
use crate::api::verify::{Event, ExtractResponse, SkipReason};
use crate::clock::Time;
use crate::verify::Work;
use crate::verify::anchors::cases::{AS_OF, Case, held_out, tuned_on};
use crate::verify::options::is_yes_or_no;
use crate::verify::values::Choice;

const MANUAL: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/man/mk-verification.7.md"));

/// Other answers to whatever is asked.
const RIVALS: [&str; 3] = ["Zorvath", "Quillmere", "Tandrill"];

/// A claim of the data as an extractor drafts it. An answer that is a mere yes or no would go back whatever it says.
fn drafted(row: &[String]) -> Value {
    let [quote, claim, question, answer] = row else { panic!("not a claim: {row:?}") };
    let (question, answer) = if is_yes_or_no(&Choice::new(answer)) {
        ("Which of these is right?", claim)
    } else {
        (&**question, answer)
    };
    json!({
        "quote": quote, "claim": claim, "question": question, "claimed_answer": answer, "rivals": RIVALS, "best": "",
    })
}

/// What an auditor should find.
#[derive(Clone, Default)]
struct Sought {
    /// A claim that is at fault, and in what.
    claim: Option<(String, &'static str)>,
    /// A passage that is in no claim.
    missing: Option<String>,
}

impl Sought {
    fn reply(&self, call: &Call<'_>) -> Reply {
        let shown = block(call.chat, "CLAIMS");
        let texts = shown.lines().filter_map(|line| line.strip_prefix("   claim: "));
        let faults = texts.enumerate().filter_map(|(at, text)| {
            let (_, fault) = self.claim.as_ref().filter(|(claim, _)| claim == text)?;
            Some(json!({"id": (at + 1).to_string(), "fault": fault, "options": [], "text": "Read it again."}))
        });
        let missing = self.missing.iter().map(|quote| json!({"quote": quote}));
        json_reply(&json!({"claims": faults.collect::<Vec<_>>(), "missing": missing.collect::<Vec<_>>()}))
    }
}

/// A text of which the extractor makes the first of these, and then the second, however often it is asked.
fn scenario_of_two(text: &str, [first, second]: [&[&[String]]; 2], sought: Sought) -> Scenario {
    let answer = |rows: &[&[String]]| {
        let claims: Vec<Value> = rows.iter().map(|row| drafted(row)).collect();
        json!({"claims": claims, "skipped": []}).to_string()
    };
    let answers = [answer(first), answer(second)];
    let extract = move |call: &Call<'_>| Reply::Text(answers[usize::from(call.is_repair())].clone());
    let mut scenario = audited(text, extract, move |call| sought.reply(call));
    scenario.settings.general.extractor_fallbacks.clear();
    scenario.job.as_of = Time::parse(&AS_OF.to_string()).unwrap();
    scenario
}

/// A text of which the extractor makes this, however often it is asked.
fn scenario(text: &str, rows: &[&[String]], sought: Sought) -> Scenario {
    scenario_of_two(text, [rows, rows], sought)
}

/// Its extraction alone.
async fn extract(text: &str, rows: &[&[String]], sought: Sought) -> ExtractResponse {
    let mut scenario = scenario(text, rows, sought);
    scenario.job.work = Work::Extract;
    match scenario.run().await.pop() {
        Some(Ok(Event::Extracted(response))) => *response,
        other => panic!("not extracted: {other:?}"),
    }
}

/// What an auditor calls a kind of bad claim.
fn fault_of(kind: &str) -> &'static str {
    match kind {
        "answer" | "question" => "answer",
        "other quote" => "quote",
        "pronoun" | "swapped name" => "reference",
        _ => "meaning",
    }
}

/// How many there are, and what was not as it should be.
#[derive(Default)]
struct Count {
    all: usize,
    wrong: Vec<String>,
}

impl Count {
    fn add(&mut self, wrong: Option<String>) {
        self.all += 1;
        self.wrong.extend(wrong);
    }
}

/// Fails unless the manual has this line.
fn assert_told(what: &str, tuned: &Count, held_out: &Count) {
    let of = |count: &Count| format!("{} of {}", count.wrong.len(), count.all);
    let line = format!("| {what} | {} | {} |\n", of(tuned), of(held_out));
    assert!(MANUAL.contains(&line), "man/mk-verification.7.md should have this line: {line}");
}

/// The bad claims of a text, each behind its kind and before the good ones that have another quote.
fn bad_rows(case: &Case) -> impl Iterator<Item = (&str, &[String], Vec<&[String]>)> {
    case.bad.iter().map(|row| {
        let (kind, row) = (&row[0], &row[1..]);
        let is_apart = |good: &&Vec<String>| !row[0].contains(&good[0]) && !good[0].contains(&row[0]);
        (kind.as_str(), row, case.good.iter().filter(is_apart).map(Vec::as_slice).collect())
    })
}

/// How many bad claims of a set get a verdict, or leave a text that is called complete.
async fn bad(cases: &[Case]) -> Count {
    let mut count = Count::default();
    for case in cases {
        for (kind, row, others) in bad_rows(case) {
            let rows: Vec<&[String]> = std::iter::once(row).chain(others).collect();
            let sought = Sought { claim: Some((row[1].clone(), fault_of(kind))), missing: None };
            let response = scenario(&case.text, &rows, sought).complete().await;
            let has_passed =
                response.complete || response.results.iter().any(|result| result.claim == row[1]);
            count.add(has_passed.then(|| format!("{kind}: {}", row[1])));
        }
    }
    count
}

/// How many good claims of a set are skipped as unfaithful, and how many are none of the claims.
async fn good(cases: &[Case]) -> (Count, usize) {
    let (mut count, mut lost) = (Count::default(), 0);
    for case in cases {
        let rows: Vec<&[String]> = case.good.iter().map(Vec::as_slice).collect();
        let response = extract(&case.text, &rows, Sought::default()).await;
        count.all += rows.len();
        lost += rows.len() - response.claims.len();
        let unfaithful = response.skipped.into_iter().filter(|part| part.reason == SkipReason::Unfaithful);
        count.wrong.extend(unfaithful.map(|part| part.text));
    }
    (count, lost)
}

/// Of the texts of a set without one of their claims, how many are called complete.
async fn left_out(cases: &[Case]) -> Count {
    let mut count = Count::default();
    for case in cases {
        for (without, row) in case.good.iter().enumerate() {
            let rows = case.good.iter().enumerate().filter(|(at, _)| *at != without);
            let rows: Vec<&[String]> = rows.map(|(_, row)| row.as_slice()).collect();
            let sought = Sought { claim: None, missing: Some(row[0].clone()) };
            let response = extract(&case.text, &rows, sought).await;
            count.add(response.complete.then(|| row[0].clone()));
        }
    }
    count
}

#[tokio::test]
async fn no_bad_claim_gets_a_verdict_where_an_auditor_finds_it() {
    let (tuned, held_out) = (bad(&tuned_on()).await, bad(&held_out()).await);
    assert!(tuned.all >= 150 && held_out.all >= 60);
    assert!(tuned.wrong.is_empty() && held_out.wrong.is_empty(), "{:#?} {:#?}", tuned.wrong, held_out.wrong);
    assert_told("bad, and given a verdict or forgotten", &tuned, &held_out);
}

#[tokio::test]
async fn no_bad_claim_of_a_second_answer_gets_a_verdict_where_another_model_finds_it() {
    for case in held_out() {
        for (kind, row, others) in bad_rows(&case) {
            let rows: Vec<&[String]> = others.iter().copied().chain([row]).collect();
            let sought =
                Sought { claim: Some((row[1].clone(), fault_of(kind))), missing: Some(row[0].clone()) };
            let response = scenario_of_two(&case.text, [&others, &rows], sought).complete().await;
            let is_asked = response.results.iter().any(|result| result.claim == row[1]);
            assert!(!is_asked && !response.complete, "{kind}: {}", row[1]);
        }
    }
}

#[tokio::test]
async fn good_claims_are_hardly_ever_skipped_as_unfaithful() {
    let ((tuned, tuned_lost), (held_out, held_out_lost)) = (good(&tuned_on()).await, good(&held_out()).await);
    assert!(tuned.all >= 300 && held_out.all >= 100);
    for (count, lost) in [(&tuned, tuned_lost), (&held_out, held_out_lost)] {
        assert!(count.wrong.len() * 500 <= count.all, "{:#?}", count.wrong);
        assert!(lost * 20 <= count.all, "{lost} of {}", count.all);
    }
    assert_told("good, and skipped as `unfaithful`", &tuned, &held_out);
}

#[tokio::test]
async fn no_text_is_called_complete_without_a_claim_that_an_auditor_misses() {
    let (tuned, held_out) = (left_out(&tuned_on()).await, left_out(&held_out()).await);
    assert!(tuned.wrong.is_empty() && held_out.wrong.is_empty(), "{:#?} {:#?}", tuned.wrong, held_out.wrong);
    assert_told("left out, and the text called complete", &tuned, &held_out);
}
