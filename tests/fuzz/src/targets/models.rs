//! Model output in verifications: claims and votes, in JSON or not.

use std::collections::HashSet;

use crate::input::is_harmless;
use mk::api::verify::{Domain, Format};
use mk::clock::Time;
use mk::verify::{Claim, Job, Work, read_answer, review_answer};

fn is_line(text: &str, most: usize) -> bool {
    is_harmless(text) && !text.is_empty() && text.trim() == text && text.chars().count() <= most
}

/// A job whose statement holds whatever the answer quotes.
fn job(fact: &str) -> Job {
    Job {
        id: "ver_1".to_owned(),
        fact: fact.to_owned(),
        format: Format::Text,
        domain: Domain::General,
        min_required: 2,
        total_models: 3,
        as_of: Time::from_unix_ms(1_795_202_760_123),
        explain: false,
        context: None,
        work: Work::Verify,
        model_progress: false,
        fresh: false,
        receipt: None,
    }
}

fn claims(text: &str) {
    let job = job(text);
    let Some((claims, skipped)) = review_answer(&job, text) else { return };
    let mut ids = HashSet::new();
    for claim in &claims {
        assert!(ids.insert(&claim.id), "two claims of one id");
        assert!(is_line(&claim.text, 2_000) && is_line(&claim.question, 2_000), "{claim:?}");
        assert!(job.fact.get(claim.quote.clone()).is_some_and(|quote| !quote.is_empty()), "{claim:?}");
        assert!(claim.span.start < claim.span.end, "{claim:?}");
        let options = claim.options();
        // The claimed answer, one to five rivals, and the two options that every question has.
        assert!((4..=8).contains(&options.len()), "{claim:?}");
        assert!(options.iter().all(|option| is_line(option, 500)), "{claim:?}");
        let distinct: HashSet<&String> = options.iter().collect();
        assert_eq!(distinct.len(), options.len(), "{claim:?}");
    }
    assert!(skipped.iter().all(|part| is_line(&part.text, 2_000)), "{skipped:?}");
}

fn vote(text: &str) {
    let order = [2, 0, 1, 3];
    let options = ["B", "1889", "A.D. 70", "Cannot be determined"].map(str::to_owned);
    for explain in [false, true] {
        let Ok(given) = read_answer(text, &options, &order, explain) else { continue };
        assert!(given.option < order.len());
        assert!(explain || given.reason.is_none(), "a reason that nobody asked for");
        assert!(given.reason.is_none_or(|reason| is_line(&reason, 500)));
        assert!(given.found.is_none_or(|found| is_line(&found, 200)));
    }
}

/// What a claim says, whatever its number and place.
fn said(reviewed: Option<(Vec<Claim>, Vec<mk::api::verify::Skipped>)>) -> Option<Vec<String>> {
    reviewed.map(|(claims, _)| claims.into_iter().map(|claim| claim.text).collect())
}

pub(super) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    claims(&text);
    vote(&text);
    if text.starts_with('{') && serde_json::from_str::<serde_json::Value>(&text).is_ok() {
        let job = job(&text);
        let bare = said(review_answer(&job, &text));
        let fenced = format!("\n```json\n{text}\n```\n");
        assert_eq!(said(review_answer(&job, &fenced)), bare, "a fence changes the meaning");
        // Marks of reasoning inside a string may hide it from whoever looks for it in prose, but never change it.
        let in_prose = said(review_answer(&job, &format!("Sure: {fenced}")));
        assert!(in_prose.is_none() || in_prose == bare, "prose changes the meaning: {in_prose:?}");
    }
}
