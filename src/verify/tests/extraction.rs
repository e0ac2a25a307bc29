//! Extractors that answer as real models do: off the schema, cut off, unfaithful, or with nothing.

use serde_json::{Value, json};

use super::support::{Call, Reply, Scenario, extraction, statement};
use crate::api::verify::{Assessment, SkipReason, VerifyResponse};
use crate::inference::{Failure, Finish};

/// A scenario with this extractor about a statement; the panel agrees with every claim.
fn extracted_by(
    fact: impl Into<String>,
    extract: impl Fn(&Call<'_>) -> Reply + Send + Sync + 'static,
) -> Scenario {
    let mut scenario = Scenario::new(move |call| {
        if call.is_extraction() {
            return extract(call);
        }
        let options = call.options();
        let claimed =
            options.iter().find(|(_, text)| text.starts_with("yes") || text.starts_with("as claimed"));
        call.choose(&claimed.unwrap_or(&options[0]).1)
    });
    scenario.job.fact = fact.into();
    scenario
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

/// A claim as an extractor writes it.
fn claim(quote: &str, claim: &str, question: &str, claimed: &str, rivals: &[&str]) -> Value {
    json!({"quote": quote, "claim": claim, "question": question, "claimed_answer": claimed, "rivals": rivals, "best": ""})
}

fn extracted(claims: &[Value], skipped: &[(&str, &str)]) -> Reply {
    let skipped: Vec<Value> =
        skipped.iter().map(|(quote, reason)| json!({"quote": quote, "reason": reason})).collect();
    Reply::Text(json!({"claims": claims, "skipped": skipped}).to_string())
}

const EVEREST: &str = "Mount Everest is 9,100 metres high.";

fn everest(claimed: &str) -> Value {
    let rivals =
        ["8,500 metres", "8,700 metres", "8,800 metres", "9,200 metres", "9,300 metres", "9,500 metres"];
    let said = format!("Mount Everest is {claimed} high.");
    claim(EVEREST, &said, "How high is Mount Everest?", claimed, &rivals)
}

#[tokio::test]
async fn one_bad_claim_does_not_cost_the_others_and_goes_back_once() {
    let scenario = extracted_by(statement(2), |_| {
        let whole = extraction(2).replace("\"yes 1\"", "[\"yes 1\"]").replace("opinion", "flattery");
        Reply::Text(whole)
    });
    let response = scenario.complete().await;
    assert_eq!(response.results.len(), 1);
    assert_eq!(
        skipped(&response),
        [
            ("Claim number 1 is, as everybody says, yes 1.", SkipReason::NotExtracted),
            ("How nice it is.", SkipReason::Ambiguous)
        ]
    );
    assert!(!response.complete);
    assert_eq!(
        (response.coverage.sentences, response.coverage.checked, response.coverage.unchecked),
        (3, 1, 1)
    );
    let message = repair(&scenario);
    assert!(message.contains("claims[1].claimed_answer: not a string"), "{message}");
    let calls = scenario.called_models();
    assert_eq!(calls.iter().filter(|model| *model == "x/1").count(), 2, "{calls:?}");
}

#[tokio::test]
async fn the_extractor_is_told_what_is_wrong_and_where() {
    let scenario = extracted_by(statement(1), |call| {
        let whole = extraction(1);
        Reply::Text(if call.is_repair() { whole } else { whole.replace("\"yes 0\"", "null") })
    });
    assert_eq!(scenario.complete().await.results.len(), 1);
    let message = repair(&scenario);
    assert!(message.contains("(claims[0].claimed_answer: not a string)"), "{message}");
}

#[tokio::test]
async fn of_a_list_that_is_cut_off_again_the_complete_claims_are_verified_and_the_rest_is_named() {
    let cut = || {
        let whole = extraction(3);
        whole[..whole.find("What is claim 2").unwrap()].to_owned()
    };
    for again in [Reply::Fail(Failure::Timeout), Reply::Text("Sorry.".to_owned()), Reply::Text(cut())] {
        let again = std::sync::Mutex::new(Some(again));
        let scenario = extracted_by(statement(3), move |call| {
            if call.is_repair() {
                return again.lock().unwrap().take().unwrap_or(Reply::Fail(Failure::Timeout));
            }
            Reply::TextWithFinish(cut(), Finish::Length)
        });
        let response = scenario.complete().await;
        assert_eq!(response.results.len(), 2);
        assert_eq!(
            skipped(&response),
            [
                ("Claim number 2 is, as everybody says, yes 2.", SkipReason::NotExtracted),
                ("How nice it is.", SkipReason::NotExtracted)
            ]
        );
    }
}

#[tokio::test]
async fn a_list_that_was_cut_off_is_repaired_if_possible() {
    let scenario = extracted_by(statement(3), |call| {
        let whole = extraction(3);
        let cut = whole[..whole.find("What is claim 2").unwrap()].to_owned();
        if call.is_repair() { Reply::Text(whole) } else { Reply::TextWithFinish(cut, Finish::Length) }
    });
    let response = scenario.complete().await;
    assert_eq!((response.results.len(), response.complete), (3, true));
}

#[tokio::test]
async fn nothing_at_all_is_not_believed_of_a_statement_with_words() {
    let nothing = || Reply::Text(r#"{"claims":[],"skipped":[]}"#.to_owned());
    let scenario =
        extracted_by(
            statement(1),
            move |call| {
                if call.model == "x/1" { nothing() } else { Reply::Text(extraction(1)) }
            },
        );
    assert_eq!(scenario.complete().await.results.len(), 1);
    assert_eq!(scenario.called_models()[..3], ["x/1", "x/1", "y/1"]);
    assert!(repair(&scenario).contains("Claim number 0 is, as everybody says, yes 0."));

    let mut scenario = extracted_by(statement(1), move |_| nothing());
    let response = scenario.complete().await;
    let not_extracted = |text| (text, SkipReason::NotExtracted);
    assert_eq!(
        skipped(&response),
        ["Claim number 0 is, as everybody says, yes 0.", "How nice it is."].map(not_extracted)
    );
    assert_eq!(scenario.called_models(), ["x/1", "x/1", "y/1", "y/1"]);

    scenario.job.fact = "?!".to_owned();
    scenario.complete().await;
    assert_eq!(scenario.called_models().len(), 4 + 1, "of this, nothing can be extracted");
}

#[tokio::test]
async fn a_question_that_names_the_claimed_answer_is_to_be_asked_otherwise_or_not_at_all() {
    let fact = "Oslo is in Norway. The tower is painted blue.";
    let tower = |question: &str| {
        let rivals = ["Red", "Green", "White"];
        claim("The tower is painted blue.", "The tower is painted blue.", question, "Blue", &rivals)
    };
    let oslo = || {
        let rivals = ["Sweden", "Denmark", "Finland"];
        claim("Oslo is in Norway.", "Oslo is in Norway.", "In which country is Oslo?", "Norway", &rivals)
    };
    let leaking = move || extracted(&[oslo(), tower("Is the tower blue, or of another colour?")], &[]);
    let mended = move || extracted(&[oslo(), tower("Which colour does the tower have?")], &[]);
    let scenario = extracted_by(fact, move |call| if call.is_repair() { mended() } else { leaking() });
    let response = scenario.complete().await;
    assert_eq!((response.results.len(), response.skipped.len(), response.complete), (2, 0, true));
    assert!(repair(&scenario).contains("the question gives the claimed answer away"));

    let scenario = extracted_by(fact, move |_| leaking());
    let response = scenario.complete().await;
    assert_eq!(response.results.len(), 1);
    assert_eq!(skipped(&response), [("The tower is painted blue.", SkipReason::NotExtracted)]);
}

#[tokio::test]
async fn a_claim_that_the_extractor_corrected_never_reaches_the_panel() {
    // Silently corrected, and again when it is told so.
    let scenario = extracted_by(EVEREST, |_| extracted(&[everest("8,849 metres")], &[]));
    let response = scenario.complete().await;
    assert_eq!(response.results.len(), 0);
    assert_eq!(skipped(&response), [(EVEREST, SkipReason::Unfaithful)]);
    assert!(!response.complete);
    assert!(repair(&scenario).contains("8,849"));
    assert!(!scenario.called_models().contains(&"a/1".to_owned()), "no vote is asked for");

    // The claim is kept, the claimed answer is not what it claims.
    let mut dishonest = everest("9,100 metres");
    dishonest["claimed_answer"] = json!("8,849 metres");
    let scenario = extracted_by(EVEREST, move |_| extracted(&[dishonest.clone()], &[]));
    assert_eq!(skipped(&scenario.complete().await), [(EVEREST, SkipReason::Unfaithful)]);

    // Mended when it is told so.
    let scenario = extracted_by(EVEREST, |call| {
        extracted(&[everest(if call.is_repair() { "9,100 metres" } else { "8,849 metres" })], &[])
    });
    let response = scenario.complete().await;
    let result = &response.results[0];
    assert_eq!((result.quote.as_str(), result.span.end), (EVEREST, EVEREST.chars().count()));
    assert!(response.complete && !result.contested);
}

#[tokio::test]
async fn claims_that_are_left_out_are_asked_for_and_named_if_they_never_come() {
    let fact = "Rome is in Spain. Oslo is in Italy. Bern is in Japan. Paris is in France.";
    let paris = || {
        let rivals = ["Spain", "Italy", "Japan"];
        claim("Paris is in France.", "Paris is in France.", "In which country is Paris?", "France", &rivals)
    };
    let scenario = extracted_by(fact, move |_| extracted(&[paris()], &[]));
    let response = scenario.complete().await;
    let not_extracted = |text| (text, SkipReason::NotExtracted);
    assert_eq!(
        skipped(&response),
        ["Rome is in Spain.", "Oslo is in Italy.", "Bern is in Japan."].map(not_extracted)
    );
    assert_eq!((response.coverage.sentences, response.coverage.unchecked, response.complete), (4, 3, false));
    let message = repair(&scenario);
    assert!(message.contains("Oslo is in Italy.") && !message.contains("Paris is in France."), "{message}");
}

#[tokio::test]
async fn a_rival_that_means_the_same_as_the_claimed_answer_is_dropped() {
    let fact = "The band has 16 members.";
    let scenario = extracted_by(fact, move |_| {
        let rivals = ["sixteen", "12", "13", "14", "18", "19", "20"];
        extracted(&[claim(fact, fact, "How many members does the band have?", "16", &rivals)], &[])
    });
    let response = scenario.complete().await;
    let options: Vec<&Value> = response.results[0].original_options.values().collect();
    assert_eq!(options.len(), 6, "{options:?}");
    assert!(!options.contains(&&json!("sixteen")));
}

#[tokio::test]
async fn an_answer_whose_words_say_another_option_than_its_letter_is_malformed() {
    let fact = "The band has 16 members.";
    let rivals = ["12", "13", "14", "18", "19", "20"];
    let scenario = Scenario::new(move |call| {
        if call.is_extraction() {
            return extracted(
                &[claim(fact, fact, "How many members does the band have?", "16", &rivals)],
                &[],
            );
        }
        let options = call.options();
        let key = |wanted: bool| options.iter().find(|(_, text)| (text == "16") == wanted).unwrap().0.clone();
        let letter = key(call.is_repair() || call.model != "a/1");
        Reply::Text(json!({"found": "sixteen", "answer": letter}).to_string())
    });
    let mut scenario = scenario;
    scenario.job.fact = fact.to_owned();
    let result = scenario.only_claim().await;
    assert_eq!(result.assessment, Assessment::True);
    assert_eq!(result.model_answers.len(), 3);
    assert_eq!(result.model_answers[0].found.as_deref(), Some("sixteen"));
    let calls = scenario.called_models();
    assert_eq!(calls.iter().filter(|model| *model == "a/1").count(), 2, "asked again");
}
