//! Extractors that answer as real models do: off the schema, cut off, or with nothing.

use super::support::{Call, Reply, Scenario, extraction};
use crate::api::verify::{SkipReason, VerifyResponse};
use crate::inference::{Failure, Finish};

/// A scenario with this extractor; the panel agrees with every claim.
fn extracted_by(extract: impl Fn(&Call<'_>) -> Reply + Send + Sync + 'static) -> Scenario {
    Scenario::new(move |call| {
        if call.is_extraction() {
            return extract(call);
        }
        call.choose(&call.options().into_iter().find(|(_, text)| text.starts_with("yes")).unwrap().1)
    })
}

fn skipped(response: &VerifyResponse) -> Vec<(&str, SkipReason)> {
    response.skipped.iter().map(|part| (part.text.as_str(), part.reason)).collect()
}

/// The message that asked for another answer.
fn repair(scenario: &Scenario) -> String {
    let chats = scenario.chats();
    let (_, chat) = chats.iter().find(|(_, chat)| chat.messages.len() > 2).expect("a repair");
    chat.messages[3].content.clone().into_owned()
}

#[tokio::test]
async fn one_bad_claim_does_not_cost_the_others() {
    let scenario = extracted_by(|_| {
        let whole = extraction(2).replace("\"yes 1\"", "[\"yes 1\"]").replace("opinion", "flattery");
        Reply::Text(whole)
    });
    let response = scenario.complete().await;
    assert_eq!(response.results.len(), 1);
    let ambiguous = |text| (text, SkipReason::Ambiguous);
    assert_eq!(skipped(&response), ["How nice.", "Claim number 1 is asserted."].map(ambiguous));
    assert_eq!(scenario.called_models()[..2], ["x/1", "a/1"], "no repair is needed");
}

#[tokio::test]
async fn the_extractor_is_told_what_is_wrong_and_where() {
    let scenario = extracted_by(|call| {
        let whole = extraction(1);
        Reply::Text(if call.is_repair() { whole } else { whole.replace("\"yes 0\"", "null") })
    });
    assert_eq!(scenario.complete().await.results.len(), 1);
    let message = repair(&scenario);
    assert!(message.contains("(claims[0].claimed_answer: not a string)"), "{message}");
}

#[tokio::test]
async fn of_a_list_that_is_cut_off_again_the_complete_claims_are_verified() {
    let cut = || {
        let whole = extraction(3);
        whole[..whole.find("Question 2").unwrap()].to_owned()
    };
    for again in [Reply::Fail(Failure::Timeout), Reply::Text("Sorry.".to_owned()), Reply::Text(cut())] {
        let again = std::sync::Mutex::new(Some(again));
        let scenario = extracted_by(move |call| {
            if call.is_repair() {
                return again.lock().unwrap().take().expect("one repair");
            }
            Reply::TextWithFinish(cut(), Finish::Length)
        });
        let response = scenario.complete().await;
        assert_eq!(response.results.len(), 2);
        assert_eq!(skipped(&response), [("(the rest of the statement)", SkipReason::OverLimit)]);
        assert_eq!(scenario.called_models()[..3], ["x/1", "x/1", "a/1"]);
    }
}

#[tokio::test]
async fn a_list_that_was_cut_off_is_repaired_if_possible() {
    let scenario = extracted_by(|call| {
        let whole = extraction(3);
        let cut = whole[..whole.find("Question 2").unwrap()].to_owned();
        if call.is_repair() { Reply::Text(whole) } else { Reply::TextWithFinish(cut, Finish::Length) }
    });
    assert_eq!(scenario.complete().await.results.len(), 3);
}

#[tokio::test]
async fn nothing_at_all_is_not_believed_of_a_statement_with_words() {
    let nothing = || Reply::Text(r#"{"claims":[],"skipped":[]}"#.to_owned());
    let scenario =
        extracted_by(move |call| if call.model == "x/1" { nothing() } else { Reply::Text(extraction(1)) });
    assert_eq!(scenario.complete().await.results.len(), 1);
    assert_eq!(scenario.called_models()[..3], ["x/1", "x/1", "y/1"]);
    assert!(repair(&scenario).contains("both empty"));

    let mut scenario = extracted_by(move |_| nothing());
    let response = scenario.complete().await;
    assert_eq!((response.results.len(), response.skipped.len()), (0, 0), "all extractors agree");
    assert_eq!(scenario.called_models(), ["x/1", "x/1", "y/1", "y/1"]);

    scenario.job.fact = "?!".to_owned();
    scenario.complete().await;
    assert_eq!(scenario.called_models().len(), 4 + 1, "of this, nothing can be extracted");
}

#[tokio::test]
async fn a_question_that_names_the_claimed_answer_is_to_be_asked_otherwise_or_not_at_all() {
    let leaking = || extraction(2).replace("Question 1?", "Is it yes 1, or something else?");
    let scenario =
        extracted_by(move |call| Reply::Text(if call.is_repair() { extraction(2) } else { leaking() }));
    assert_eq!(scenario.complete().await.results.len(), 2);
    assert!(repair(&scenario).contains("claims[1].question: it names"));

    let scenario = extracted_by(move |_| Reply::Text(leaking()));
    let response = scenario.complete().await;
    assert_eq!(response.results.len(), 1);
    assert_eq!(skipped(&response)[1], ("Claim number 1 is asserted.", SkipReason::Ambiguous));
    assert_eq!(scenario.called_models()[..3], ["x/1", "x/1", "a/1"]);
}
