//! What a second model makes of an extraction, and long statements.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Barrier;

use super::support::{Call, Reply, Scenario, block};
use crate::api::verify::{SkipReason, VerifyResponse};
use crate::inference::Failure;

const MUSEUM: &str = "The museum in Lyon was renovated for years. It reopened for all.";

pub(super) fn claim(quote: &str, claim: &str, question: &str, claimed: &str, rivals: &[&str]) -> Value {
    json!({"quote": quote, "claim": claim, "question": question, "claimed_answer": claimed, "rivals": rivals, "best": ""})
}

/// "The museum … was renovated" with this wording, and "It reopened".
fn museum(said: &str) -> Value {
    let renovated = claim(
        "The museum in Lyon was renovated for years.",
        said,
        "In which city is the museum?",
        "Lyon",
        &["Paris", "Nice", "Lille"],
    );
    json!({
        "claims": [renovated],
        "skipped": [{"quote": "It reopened for all.", "reason": "ambiguous"}],
    })
}

const WRONG: &str = "The museum in Lyon was ruined for years.";
const RIGHT: &str = "The museum in Lyon was renovated for years.";

fn objects(fault: &str) -> Reply {
    Reply::Text(
        json!({"claims": [{"id": "1", "fault": fault, "options": [], "text": "No ruin."}], "missing": []})
            .to_string(),
    )
}

pub(super) fn approves() -> Reply {
    Reply::Text(json!({"claims": [], "missing": []}).to_string())
}

/// An extractor `x/1`, an auditor `z/1`, a judge `a/1`; the panel agrees with whatever is asked.
pub(super) fn audited(
    fact: &str,
    extract: impl Fn(&Call<'_>) -> Reply + Send + Sync + 'static,
    audit: impl Fn(&Call<'_>) -> Reply + Send + Sync + 'static,
) -> Scenario {
    let mut scenario = Scenario::new(move |call| {
        if call.is_audit() {
            return audit(call);
        }
        if call.is_extraction() {
            return extract(call);
        }
        call.choose(&call.options()[0].1)
    });
    scenario.settings.general.auditor = Some("z/1".to_owned());
    scenario.job.fact = fact.to_owned();
    scenario
}

pub(super) fn skipped(response: &VerifyResponse) -> Vec<(&str, SkipReason)> {
    response.skipped.iter().map(|part| (part.text.as_str(), part.reason)).collect()
}

pub(super) fn json_reply(value: &Value) -> Reply {
    Reply::Text(value.to_string())
}

#[tokio::test]
async fn a_claim_that_two_models_object_to_is_unfaithful_and_its_votes_do_not_count() {
    let mut scenario = audited(MUSEUM, |_| json_reply(&museum(WRONG)), |_| objects("meaning"));
    scenario.settings.general.extractor_fallbacks.clear();
    let response = scenario.complete().await;
    assert_eq!(response.results.len(), 0);
    assert_eq!(skipped(&response)[0], (RIGHT, SkipReason::Unfaithful));
    assert!(response.audited && !response.complete);
    let audits =
        scenario.chats().into_iter().filter(|(_, chat)| chat.schema.as_ref().unwrap().name == "audit");
    assert_eq!(audits.map(|(model, _)| model).collect::<Vec<_>>(), ["z/1", "a/1"]);
    let repair = scenario.chats().into_iter().find(|(_, chat)| chat.messages.len() > 2).unwrap().1;
    let message = repair.messages[3].content.clone();
    assert!(message.contains("the claim does not say what its quote says") && message.contains("No ruin."));
}

#[tokio::test]
async fn a_claim_that_only_the_auditor_objects_to_stays_and_is_contested() {
    let scenario = audited(
        MUSEUM,
        |_| json_reply(&museum(RIGHT)),
        |call| if call.model == "z/1" { objects("meaning") } else { approves() },
    );
    let response = scenario.complete().await;
    assert_eq!((response.results.len(), response.results[0].contested), (1, true));
    assert_eq!(response.results[0].model_answers.len(), 3);
}

#[tokio::test]
async fn a_claim_that_is_mended_is_asked_about_in_its_new_words() {
    let scenario = audited(
        MUSEUM,
        |call| json_reply(&museum(if call.is_repair() { RIGHT } else { WRONG })),
        |call| if call.model == "z/1" { objects("meaning") } else { approves() },
    );
    let response = scenario.complete().await;
    assert_eq!(response.results[0].claim, RIGHT);
    assert!(response.complete && response.audited && !response.results[0].contested);
}

#[tokio::test]
async fn an_auditor_that_fails_fails_nothing() {
    let scenario = audited(MUSEUM, |_| json_reply(&museum(RIGHT)), |_| Reply::Fail(Failure::Timeout));
    let response = scenario.complete().await;
    assert_eq!((response.results.len(), response.audited, response.complete), (1, false, true));
    let mut scenario = audited(MUSEUM, |_| json_reply(&museum(RIGHT)), |_| unreachable!("there is none"));
    scenario.settings.general.auditor = None;
    assert!(!scenario.complete().await.audited);
}

#[tokio::test]
async fn options_that_an_auditor_finds_alike_are_one() {
    let same =
        json!({"claims": [{"id": "1", "fault": "same", "options": ["B", "C"], "text": ""}], "missing": []});
    let scenario = audited(MUSEUM, |_| json_reply(&museum(RIGHT)), move |_| json_reply(&same));
    let response = scenario.complete().await;
    let options: Vec<&Value> = response.results[0].original_options.values().collect();
    assert_eq!(options, ["Lyon", "Paris", "Lille", "None of these", "Cannot be determined"]);
    assert_eq!(response.results[0].model_answers.len(), 3);
}

#[tokio::test]
async fn a_passage_that_two_models_miss_is_not_extracted() {
    let missing = json!({"claims": [], "missing": [{"quote": "renovated for years"}]});
    let first = museum(RIGHT);
    let scenario = audited(MUSEUM, move |_| json_reply(&first), move |_| json_reply(&missing));
    let response = scenario.complete().await;
    assert!(skipped(&response).contains(&("renovated for years", SkipReason::NotExtracted)));
    assert_eq!((response.results.len(), response.complete), (1, false));
}

#[tokio::test]
async fn the_audit_runs_beside_the_votes() {
    // The audit and the three votes wait for each other.
    let barrier = Arc::new(Barrier::new(4));
    let mut scenario = Scenario::new(move |call| {
        if call.is_audit() {
            return Reply::TextAfterBarrier(
                barrier.clone(),
                json!({"claims": [], "missing": []}).to_string(),
            );
        }
        if call.is_extraction() {
            return json_reply(&museum(RIGHT));
        }
        Reply::TextAfterBarrier(barrier.clone(), r#"{"answer":"A"}"#.to_owned())
    });
    scenario.settings.general.auditor = Some("z/1".to_owned());
    scenario.job.fact = MUSEUM.to_owned();
    assert_eq!(scenario.complete().await.results.len(), 1);
}

/// Each sentence of a section as a claim of its own.
pub(super) fn sentence_claims(call: &Call<'_>) -> Reply {
    let section = block(call.chat, "SECTION");
    let sentences: Vec<&str> =
        section.split_inclusive(". ").map(str::trim).filter(|part| !part.is_empty()).collect();
    let claims: Vec<Value> = sentences
        .iter()
        .map(|sentence| {
            let name = sentence.split(' ').nth(1).unwrap();
            claim(
                sentence,
                sentence,
                &format!("Which colour has {name}?"),
                "blue",
                &["red", "green", "white"],
            )
        })
        .collect();
    json_reply(&json!({"claims": claims, "skipped": []}))
}

#[tokio::test]
async fn a_long_statement_is_extracted_section_by_section_and_each_fact_asked_once() {
    let houses: Vec<String> = (0..120)
        .map(|n| format!("House H{n} at the end of the long and winding street is painted blue. "))
        .collect();
    let mut fact = houses.concat();
    // Said again in another section.
    fact += "House H7 at the end of the long and winding street is painted blue.";
    let mut scenario =
        Scenario::new(|call| if call.is_extraction() { sentence_claims(call) } else { call.choose("blue") });
    scenario.job.fact = fact.clone();
    let response = scenario.complete().await;
    let extractions = scenario.called_models().iter().filter(|model| *model == "x/1").count();
    assert!((4..=6).contains(&extractions), "{extractions}");
    assert_eq!(response.results.len(), 120);
    assert_eq!(response.skipped.len(), 1);
    assert_eq!(response.skipped[0].reason, SkipReason::Duplicate);
    assert_eq!((response.coverage.sentences, response.coverage.checked, response.complete), (121, 120, true));
    let spans: Vec<usize> = response.results.iter().map(|result| result.span.start).collect();
    assert!(spans.is_sorted(), "in the order of the text");
    for result in &response.results {
        assert_eq!(&fact[result.span.start..result.span.end], result.quote);
    }
    let ids: std::collections::HashSet<&str> =
        response.results.iter().map(|result| result.id.as_str()).collect();
    assert_eq!(ids.len(), 120);
}
