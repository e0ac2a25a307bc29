//! What goes wrong with models, and what is still reported.

use std::time::Duration;

use super::support::{Call, Stage, Turn, extraction, is_terminal, names};
use crate::api::verify::{Assessment, ClaimResult, ReasonCode, SkipReason};
use crate::inference::{Failure, Finish, Role};
use crate::verify::{Error, Step};

fn one_claim(answer: impl Fn(&Call<'_>) -> Turn + Send + Sync + 'static) -> Stage {
    Stage::with_claims(1, answer)
}

fn answered(result: &ClaimResult) -> Vec<&str> {
    result.model_answers.iter().map(|given| given.model.as_str()).collect()
}

fn failed(result: &ClaimResult) -> Vec<(&str, &str)> {
    result.model_errors.iter().map(|error| (error.model.as_str(), error.code.as_str())).collect()
}

async fn error(stage: &Stage) -> Error {
    match stage.run().await.pop() {
        Some(Err(error)) => error,
        other => panic!("no error: {other:?}"),
    }
}

#[tokio::test]
async fn a_failed_model_is_replaced_and_named() {
    let stage = one_claim(|call| match call.model {
        "a/1" => Turn::Fails(Failure::Overloaded { retry_after: None }),
        _ => call.choose("yes 0"),
    });
    let result = stage.only_claim().await;
    assert_eq!(answered(&result), ["b/1", "c/1", "d/1"]);
    assert_eq!(failed(&result), [("a/1", "overloaded")]);
    assert_eq!(result.assessment, Assessment::True);
}

#[tokio::test]
async fn a_replacement_that_fails_too_leaves_what_there_is() {
    let mut stage = one_claim(|call| match call.model {
        "a/1" | "d/1" => Turn::Fails(Failure::Timeout),
        "b/1" => call.choose("no 0"),
        _ => call.choose("yes 0"),
    });
    stage.job.model_progress = true;
    let result = stage.only_claim().await;
    assert_eq!(failed(&result), [("a/1", "timeout"), ("d/1", "timeout")]);
    assert_eq!(result.reason_code, Some(ReasonCode::Split));
    stage.job.min_required = 3;
    assert_eq!(stage.only_claim().await.reason_code, Some(ReasonCode::InsufficientAnswers));
}

#[tokio::test]
async fn abstentions_and_refusals_are_not_replaced() {
    let stage = one_claim(|call| match call.model {
        "a/1" => Turn::Fails(Failure::Refused),
        "b/1" => Turn::Ends(String::new(), Finish::ContentFilter),
        _ => call.choose("Cannot be determined"),
    });
    let result = stage.only_claim().await;
    assert_eq!(failed(&result), [("a/1", "refused"), ("b/1", "refused")]);
    assert_eq!(answered(&result), ["c/1"]);
    assert!(!stage.asked().contains(&"d/1".to_owned()));
}

#[tokio::test]
async fn a_malformed_answer_is_sent_back_once() {
    let stage = one_claim(|call| match (call.model, call.is_repair()) {
        ("a/1", false) => Turn::Says("I think B.".to_owned()),
        ("b/1", _) => Turn::Says("{\"answer\":\"Z\"}".to_owned()),
        ("c/1", _) => Turn::Ends("{\"answer\":".to_owned(), Finish::Length),
        _ => call.choose("yes 0"),
    });
    let result = stage.only_claim().await;
    assert_eq!(answered(&result), ["a/1", "d/1"]);
    assert_eq!(failed(&result), [("b/1", "malformed"), ("c/1", "malformed")]);
    // a, b and c twice, d once.
    assert_eq!(stage.asked().len(), 1 + 7);
    let chats = stage.chats();
    let (_, repair) = chats.iter().find(|(model, chat)| model == "a/1" && chat.messages.len() > 2).unwrap();
    let roles: Vec<_> = repair.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::User]);
    assert_eq!(repair.messages[2].content, "I think B.");
}

#[tokio::test]
async fn a_malformed_answer_is_sent_back_without_the_thoughts_before_it() {
    let thoughts = format!("<think>\n{}\n</think>\n\n", "B? ".repeat(2_000));
    let stage = one_claim(move |call| match call.model {
        "a/1" if !call.is_repair() => Turn::Says(format!("{thoughts}I think B.")),
        _ => call.choose("yes 0"),
    });
    assert_eq!(answered(&stage.only_claim().await), ["a/1", "b/1", "c/1"]);
    let chats = stage.chats();
    let (_, repair) = chats.iter().find(|(_, chat)| chat.messages.len() > 2).unwrap();
    assert_eq!(repair.messages[2].content, "I think B.");
}

#[tokio::test]
async fn the_extractor_is_repaired_once_and_then_replaced() {
    let stage = Stage::new(|call| match (call.is_extraction(), call.model) {
        (true, "x/1") => Turn::Says("Here are the claims: none".to_owned()),
        (true, _) => Turn::Says(format!("```json\n{}\n```", extraction(1))),
        (false, _) => call.choose("yes 0"),
    });
    let response = stage.complete().await;
    assert_eq!(stage.asked()[..3], ["x/1", "x/1", "y/1"]);
    // Three extractions at 13 tokens.
    assert_eq!(response.token_usage.extraction_tokens, Some(39));
}

#[tokio::test]
async fn failed_extraction_is_an_error_that_names_the_first_model() {
    let stage = Stage::new(|_| Turn::Fails(Failure::Unauthorized));
    let events = stage.run().await;
    assert_eq!(names(&events), ["starting", "extracting_claims", "error"]);
    let failed = Error::Extraction { model: "x/1".to_owned(), failure: Failure::Unauthorized };
    assert_eq!(error(&stage).await, failed);
    assert!(failed.message().contains("x/1"), "{failed}");
}

#[tokio::test]
async fn of_several_failed_extractors_the_one_is_told_of_that_may_answer_first() {
    let limited = |seconds| Failure::RateLimited { retry_after: Some(Duration::from_secs(seconds)) };
    let (refused, unknown) = (Failure::Unauthorized, Failure::UnknownModel);
    for (first, second, told) in [
        (limited(7), limited(300), "x/1"),
        (limited(300), limited(7), "y/1"),
        (limited(40), refused.clone(), "x/1"),
        (refused.clone(), limited(40), "y/1"),
        (refused, unknown, "x/1"),
    ] {
        let failure = if told == "x/1" { first.clone() } else { second.clone() };
        let stage = Stage::new(move |call| {
            Turn::Fails(if call.model == "x/1" { first.clone() } else { second.clone() })
        });
        assert_eq!(error(&stage).await, Error::Extraction { model: told.to_owned(), failure });
    }
}

#[tokio::test]
async fn claims_of_which_none_can_be_asked_about_are_the_statement_s_fault_only_if_no_model_does_better() {
    let unsound =
        r#"{"claims":[{"claim":"A is B.","question":"What is A?","claimed_answer":"B","rivals":[]}]}"#;
    let stage = Stage::new(move |call| match (call.is_extraction(), call.model) {
        (true, "x/1") => Turn::Says(unsound.to_owned()),
        (true, _) => Turn::Says(extraction(1)),
        (false, _) => call.choose("yes 0"),
    });
    let response = stage.complete().await;
    assert_eq!(stage.asked()[..2], ["x/1", "y/1"]);
    assert_eq!(response.results.len(), 1);
    for other in
        [Turn::Says(unsound.to_owned()), Turn::Fails(Failure::Unreachable), Turn::Fails(Failure::Refused)]
    {
        let other = std::sync::Mutex::new(Some(other));
        let stage = Stage::new(move |call| match call.model {
            "x/1" => Turn::Says(unsound.to_owned()),
            _ => other.lock().unwrap().take().expect("one call"),
        });
        let response = stage.complete().await;
        let skipped: Vec<_> = response.skipped.iter().map(|part| (part.text.as_str(), part.reason)).collect();
        assert_eq!((response.results.len(), skipped), (0, vec![("A is B.", SkipReason::Ambiguous)]));
    }
}

#[tokio::test]
async fn a_refused_statement_is_not_taken_elsewhere() {
    let stage = Stage::new(|_| Turn::Fails(Failure::Refused));
    assert_eq!(error(&stage).await.failure(), Some(&Failure::Refused));
    assert_eq!(stage.asked(), ["x/1"]);
}

#[tokio::test]
async fn a_panel_that_answers_nothing_is_an_error_without_results() {
    let stage = Stage::with_claims(2, |_| Turn::Fails(Failure::RateLimited { retry_after: None }));
    assert!(!names(&stage.run().await).contains(&"claim_verified"));
    let failure = Failure::RateLimited { retry_after: None };
    assert_eq!(error(&stage).await, Error::NoAnswers { failure, provider: None });
}

#[tokio::test]
async fn a_panel_that_is_refused_for_now_is_due_again_with_the_first_of_its_models() {
    let stage = Stage::with_claims(1, |call| {
        let seconds = if call.model == "b/1" { 7 } else { 3600 };
        Turn::Fails(Failure::RateLimited { retry_after: Some(Duration::from_secs(seconds)) })
    });
    assert_eq!(error(&stage).await.retry_after(), Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn one_answer_anywhere_is_something_to_report() {
    let stage = Stage::with_claims(2, |call| match call.model {
        "b/1" if call.question() == "Question 1?" => call.choose("no 1"),
        _ => Turn::Fails(Failure::Unreachable),
    });
    let response = stage.complete().await;
    assert!(
        response.results.iter().all(|result| result.reason_code == Some(ReasonCode::InsufficientAnswers))
    );
    assert_eq!(failed(&response.results[0]).len(), 4);
    assert_eq!(answered(&response.results[1]), ["b/1"]);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_hangs_leaves_calls_to_the_others_however_many_it_takes() {
    // Those of one verification alone would take all of the calls that may be open.
    let mut stage = Stage::with_claims(16, |call| match call.model {
        "hung/1" => Turn::Hangs,
        _ => call.choose(&call.question().replace("Question", "yes").replace('?', "")),
    });
    stage.settings.general.panel = ["hung/1", "a/1", "b/1"].map(str::to_owned).to_vec();
    stage.settings.max_concurrent = 8;
    let response = stage.complete().await;
    for result in &response.results {
        assert_eq!(answered(result), ["a/1", "b/1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn at_the_deadline_open_claims_are_closed_and_the_rest_stands() {
    let mut stage = Stage::with_claims(2, |call| match call.model {
        "c/1" if call.question() == "Question 1?" => Turn::Hangs,
        _ => call.choose(if call.question() == "Question 1?" { "yes 1" } else { "yes 0" }),
    });
    stage.settings.general.deadline = Duration::from_millis(300);
    let response = stage.complete().await;
    assert_eq!(response.results[0].assessment, Assessment::True);
    let cut = &response.results[1];
    assert_eq!(
        (cut.assessment, cut.reason_code),
        (Assessment::NoConsensus, Some(ReasonCode::InsufficientAnswers))
    );
    assert_eq!(answered(cut), ["a/1", "b/1"]);
    assert_eq!(failed(cut), [("c/1", "timeout")]);
    let usage = response.token_usage;
    assert_eq!(usage.prompt_tokens, 10 + 50 + 7, "the stopped call is accounted");
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_for_a_provider_hold_nobody_up_who_asks_another() {
    let mut stage = Stage::with_claims(8, |call| match call.model {
        "single/1" => Turn::Hangs,
        _ => call.choose(&call.question().replace("Question", "yes").replace('?', "")),
    });
    stage.settings.general.panel = ["single/1", "a/1", "b/1"].map(str::to_owned).to_vec();
    stage.settings.max_concurrent = 2;
    let response = stage.complete().await;
    for result in &response.results {
        assert_eq!(answered(result), ["a/1", "b/1"]);
        assert_eq!(failed(result), [("single/1", "timeout")]);
    }
    assert_eq!(stage.asked().iter().filter(|model| *model == "single/1").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_during_extraction_is_an_error() {
    let mut stage = Stage::new(|_| Turn::Hangs);
    stage.settings.general.deadline = Duration::from_millis(50);
    assert_eq!(error(&stage).await, Error::Deadline);
}

#[tokio::test]
async fn a_call_has_its_own_time_within_that_of_the_whole() {
    let stage = one_claim(|call| {
        assert!(call.time <= Duration::from_secs(30));
        call.choose("yes 0")
    });
    stage.complete().await;
    let mut stage = one_claim(|call| {
        assert!(call.time <= Duration::from_secs(5));
        call.choose("yes 0")
    });
    stage.settings.general.deadline = Duration::from_secs(5);
    stage.complete().await;
    stage.settings.general.deadline = Duration::MAX;
    stage.settings.general.model_timeout = Duration::from_secs(5);
    stage.complete().await;
}

#[tokio::test]
async fn without_extractor_or_panel_nothing_is_asked() {
    let mut without_extractor = one_claim(|call| call.choose("yes 0"));
    without_extractor.settings.general.extractor.clear();
    without_extractor.settings.general.extractor_fallbacks.clear();
    let mut without_panel = one_claim(|call| call.choose("yes 0"));
    without_panel.settings.general.panel.truncate(1);
    for stage in [without_extractor, without_panel] {
        assert_eq!(error(&stage).await, Error::Unconfigured);
        assert!(stage.asked().is_empty());
    }
}

#[tokio::test]
async fn a_reader_that_stands_still_holds_up_no_calls() {
    let stage = Stage::with_claims(10, |_| Turn::Says(r#"{"answer":"A"}"#.to_owned()));
    let (verifier, meter) = (stage.verifier(), super::support::meter());
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<Box<Step>>(1);
    let read_after_all_calls = async {
        // The first two events go out before anything else happens.
        assert!(receiver.recv().await.is_some_and(|step| names(&[*step]) == ["starting"]));
        while stage.asked().len() < 31 {
            tokio::task::yield_now().await;
        }
        let mut last = None;
        while let Some(step) = receiver.recv().await {
            last = Some(step);
        }
        last
    };
    let run = verifier.run(stage.job.clone(), &meter, sender);
    let both = async { tokio::join!(run, read_after_all_calls) };
    let ((), last) =
        tokio::time::timeout(Duration::from_secs(5), both).await.expect("no call waits for the reader");
    assert!(last.is_some_and(|step| is_terminal(&step)));
}
