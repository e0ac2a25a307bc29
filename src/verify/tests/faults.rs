//! Models that fail, and what is still reported.

use std::time::Duration;

use super::support::{Call, Reply, Scenario, extraction, is_terminal, names};
use crate::api::verify::{Assessment, ClaimResult, ReasonCode, SkipReason, VerifyResponse};
use crate::inference::{Failure, Finish, Role};
use crate::verify::{Error, EventResult};

fn one_claim(answer: impl Fn(&Call<'_>) -> Reply + Send + Sync + 'static) -> Scenario {
    Scenario::with_claims(1, answer)
}

fn answered(result: &ClaimResult) -> Vec<&str> {
    result.model_answers.iter().map(|answer| answer.model.as_str()).collect()
}

fn failed(result: &ClaimResult) -> Vec<(&str, &str)> {
    result.model_errors.iter().map(|error| (error.model.as_str(), error.code.as_str())).collect()
}

async fn error(scenario: &Scenario) -> Error {
    match scenario.run().await.pop() {
        Some(Err(error)) => error,
        other => panic!("no error: {other:?}"),
    }
}

#[tokio::test]
async fn a_failed_model_is_replaced_and_named() {
    let scenario = one_claim(|call| match call.model {
        "a/1" => Reply::Fail(Failure::Overloaded { retry_after: None }),
        _ => call.choose("yes 0"),
    });
    let result = scenario.only_claim().await;
    assert_eq!(answered(&result), ["b/1", "c/1", "d/1"]);
    assert_eq!(failed(&result), [("a/1", "overloaded")]);
    assert_eq!(result.assessment, Assessment::True);
}

#[tokio::test]
async fn if_the_replacement_fails_too_the_remaining_answers_count() {
    let mut scenario = one_claim(|call| match call.model {
        "a/1" | "d/1" => Reply::Fail(Failure::Timeout),
        "b/1" => call.choose("no 0"),
        _ => call.choose("yes 0"),
    });
    scenario.job.model_progress = true;
    let result = scenario.only_claim().await;
    assert_eq!(failed(&result), [("a/1", "timeout"), ("d/1", "timeout")]);
    assert_eq!(result.reason_code, Some(ReasonCode::Split));
    scenario.job.min_required = 3;
    assert_eq!(scenario.only_claim().await.reason_code, Some(ReasonCode::InsufficientAnswers));
}

#[tokio::test]
async fn abstentions_and_refusals_are_not_replaced() {
    let scenario = one_claim(|call| match call.model {
        "a/1" => Reply::Fail(Failure::Refused),
        "b/1" => Reply::TextWithFinish(String::new(), Finish::ContentFilter),
        _ => call.choose("Cannot be determined"),
    });
    let result = scenario.only_claim().await;
    assert_eq!(failed(&result), [("a/1", "refused"), ("b/1", "refused")]);
    assert_eq!(answered(&result), ["c/1"]);
    assert!(!scenario.called_models().contains(&"d/1".to_owned()));
}

/// A model that thinks aloud may be about to take back what it has said when it reaches its limit.
#[tokio::test]
async fn a_vote_that_is_cut_off_counts_only_if_it_is_nothing_but_the_object() {
    let scenario = one_claim(|call| {
        let Reply::Text(object) = call.choose("yes 0") else { unreachable!() };
        match (call.model, call.is_repair()) {
            ("a/1", _) => Reply::TextWithFinish(format!("First guess: {object}. But wait"), Finish::Length),
            ("b/1", _) => Reply::TextWithFinish(format!("```json\n{object}\n```"), Finish::Length),
            ("c/1", false) => Reply::TextWithFinish("The answer is B".to_owned(), Finish::Length),
            _ => Reply::Text(object),
        }
    });
    let result = scenario.only_claim().await;
    assert_eq!(answered(&result), ["b/1", "c/1", "d/1"]);
    assert_eq!(failed(&result), [("a/1", "malformed")]);
}

#[tokio::test]
async fn a_malformed_answer_is_sent_back_once() {
    let scenario = one_claim(|call| match (call.model, call.is_repair()) {
        ("a/1", false) => Reply::Text("I think B.".to_owned()),
        ("b/1", _) => Reply::Text("{\"answer\":\"Z\"}".to_owned()),
        ("c/1", _) => Reply::TextWithFinish("{\"answer\":".to_owned(), Finish::Length),
        _ => call.choose("yes 0"),
    });
    let result = scenario.only_claim().await;
    assert_eq!(answered(&result), ["a/1", "d/1"]);
    assert_eq!(failed(&result), [("b/1", "malformed"), ("c/1", "malformed")]);
    // a, b and c twice, d once.
    assert_eq!(scenario.called_models().len(), 1 + 7);
    let chats = scenario.chats();
    let (_, repair) = chats.iter().find(|(model, chat)| model == "a/1" && chat.messages.len() > 2).unwrap();
    let roles: Vec<_> = repair.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::User]);
    assert_eq!(repair.messages[2].content, "I think B.");
}

#[tokio::test]
async fn a_provider_that_rejects_what_its_model_wrote_is_asked_once_more() {
    let rejected = || Reply::Fail(Failure::rejected(Some("json_validate_failed"), "Failed to validate JSON"));
    let scenario = Scenario::new(move |call| match (call.model, call.is_repair()) {
        ("x/1" | "a/1", false) | ("b/1", _) => rejected(),
        ("x/1", true) => Reply::Text(extraction(1)),
        _ => call.choose("yes 0"),
    });
    let result = scenario.only_claim().await;
    assert_eq!(answered(&result), ["a/1", "c/1", "d/1"]);
    assert_eq!(failed(&result), [("b/1", "malformed")]);
}

#[tokio::test]
async fn a_malformed_answer_is_sent_back_without_its_reasoning() {
    let reasoning = format!("<think>\n{}\n</think>\n\n", "B? ".repeat(2_000));
    let scenario = one_claim(move |call| match call.model {
        "a/1" if !call.is_repair() => Reply::Text(format!("{reasoning}I think B.")),
        _ => call.choose("yes 0"),
    });
    assert_eq!(answered(&scenario.only_claim().await), ["a/1", "b/1", "c/1"]);
    let chats = scenario.chats();
    let (_, repair) = chats.iter().find(|(_, chat)| chat.messages.len() > 2).unwrap();
    assert_eq!(repair.messages[2].content, "I think B.");
}

#[tokio::test]
async fn the_extractor_is_repaired_once_and_then_replaced() {
    let scenario = Scenario::new(|call| match (call.is_extraction(), call.model) {
        (true, "x/1") => Reply::Text("Here are the claims: none".to_owned()),
        (true, _) => Reply::Text(format!("```json\n{}\n```", extraction(1))),
        (false, _) => call.choose("yes 0"),
    });
    let response = scenario.complete().await;
    assert_eq!(scenario.called_models()[..3], ["x/1", "x/1", "y/1"]);
    // Three extractions at 13 tokens.
    assert_eq!(response.token_usage.extraction_tokens, Some(39));
}

#[tokio::test]
async fn failed_extraction_is_an_error_that_names_the_first_model() {
    let scenario = Scenario::new(|_| Reply::Fail(Failure::Unauthorized));
    let events = scenario.run().await;
    assert_eq!(names(&events), ["starting", "extracting_claims", "error"]);
    let failed = Error::Extraction { model: "x/1".to_owned(), failure: Failure::Unauthorized };
    assert_eq!(error(&scenario).await, failed);
    assert!(failed.message().contains("x/1"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn of_several_failed_extractors_the_one_that_may_answer_soonest_is_reported() {
    let limited = |seconds| Failure::RateLimited { retry_after: Some(Duration::from_secs(seconds)) };
    let (refused, unknown) = (Failure::Unauthorized, Failure::UnknownModel);
    for (first, second, reported) in [
        (limited(100), limited(300), "x/1"),
        (limited(300), limited(100), "y/1"),
        (limited(100), refused.clone(), "x/1"),
        (refused.clone(), limited(100), "y/1"),
        (refused, unknown, "x/1"),
    ] {
        let failure = if reported == "x/1" { first.clone() } else { second.clone() };
        let scenario = Scenario::new(move |call| {
            Reply::Fail(if call.model == "x/1" { first.clone() } else { second.clone() })
        });
        assert_eq!(error(&scenario).await, Error::Extraction { model: reported.to_owned(), failure });
    }
}

#[tokio::test]
async fn claims_that_cannot_be_asked_about_are_skipped_only_if_no_fallback_does_better() {
    let unsound = r#"{"claims":[{"quote":"Claim number 0 is, as everybody says, yes 0.","claim":"Claim number 0 is, as everybody says, yes 0.",
        "question":"What is claim 0?","claimed_answer":"yes 0","rivals":[]}],
        "skipped":[{"quote":"How nice it is.","reason":"opinion"}]}"#;
    let scenario = Scenario::new(move |call| match (call.is_extraction(), call.model) {
        (true, "x/1") => Reply::Text(unsound.to_owned()),
        (true, _) => Reply::Text(extraction(1)),
        (false, _) => call.choose("yes 0"),
    });
    let response = scenario.complete().await;
    assert_eq!(scenario.called_models()[..3], ["x/1", "x/1", "y/1"]);
    assert_eq!(response.results.len(), 1);
    for other in
        [Reply::Text(unsound.to_owned()), Reply::Fail(Failure::Unreachable), Reply::Fail(Failure::Refused)]
    {
        let other = std::sync::Mutex::new(Some(other));
        let scenario = Scenario::new(move |call| match call.model {
            "x/1" => Reply::Text(unsound.to_owned()),
            _ => other.lock().unwrap().take().unwrap_or(Reply::Fail(Failure::Timeout)),
        });
        let response = scenario.complete().await;
        let skipped: Vec<_> = response.skipped.iter().map(|part| (part.text.as_str(), part.reason)).collect();
        let expected = [
            ("Claim number 0 is, as everybody says, yes 0.", SkipReason::NotExtracted),
            ("How nice it is.", SkipReason::Opinion),
        ];
        assert_eq!((response.results.len(), skipped), (0, expected.to_vec()));
    }
}

#[tokio::test]
async fn a_refused_statement_is_not_sent_to_another_model() {
    let scenario = Scenario::new(|_| Reply::Fail(Failure::Refused));
    assert_eq!(error(&scenario).await.failure(), Some(&Failure::Refused));
    assert_eq!(scenario.called_models(), ["x/1"]);
}

#[tokio::test(start_paused = true)]
async fn a_panel_that_answers_nothing_is_an_error_without_results() {
    let scenario = Scenario::with_claims(2, |_| Reply::Fail(Failure::RateLimited { retry_after: None }));
    assert!(!names(&scenario.run().await).contains(&"claim_verified"));
    let error = error(&scenario).await;
    let limited = Failure::RateLimited { retry_after: None };
    assert!(
        matches!(&error, Error::NoAnswers { failure, provider: None } if failure.code() == limited.code()),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_rate_limited_panel_is_to_be_retried_when_its_first_model_is_available() {
    let scenario = Scenario::with_claims(1, |call| {
        let seconds = if call.model == "b/1" { 130 } else { 3600 };
        Reply::Fail(Failure::RateLimited { retry_after: Some(Duration::from_secs(seconds)) })
    });
    let wait = error(&scenario).await.failure().and_then(Failure::retry_after);
    assert_eq!(wait, Some(Duration::from_secs(130)));
}

#[tokio::test]
async fn a_single_answer_to_any_claim_is_enough_for_a_response() {
    let scenario = Scenario::with_claims(2, |call| match call.model {
        "b/1" if call.question() == "What is claim 1?" => call.choose("no 1"),
        _ => Reply::Fail(Failure::Unreachable),
    });
    let response = scenario.complete().await;
    assert!(
        response.results.iter().all(|result| result.reason_code == Some(ReasonCode::InsufficientAnswers))
    );
    assert_eq!(failed(&response.results[0]).len(), 4);
    assert_eq!(answered(&response.results[1]), ["b/1"]);
}

/// Runs a scenario in which a panel model hangs; the other two must answer for every claim.
async fn run_with_hanging_model(
    model: &'static str,
    claims: usize,
    max_concurrent: usize,
) -> (Scenario, VerifyResponse) {
    let mut scenario = Scenario::with_claims(claims, move |call| match call.model {
        called if called == model => Reply::Hang,
        _ => call.choose(&call.question().replace("What is claim", "yes").replace('?', "")),
    });
    scenario.settings.general.panel = [model, "a/1", "b/1"].map(str::to_owned).to_vec();
    scenario.settings.max_concurrent = max_concurrent;
    let response = scenario.complete().await;
    for result in &response.results {
        assert_eq!(answered(result), ["a/1", "b/1"]);
    }
    (scenario, response)
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_hangs_leaves_permits_to_the_others_whatever_its_limit() {
    // The calls to it in this one verification would take all the permits there are.
    run_with_hanging_model("hung/1", 16, 8).await;
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_for_a_provider_do_not_delay_calls_to_others() {
    // This provider allows a single call at a time.
    let (scenario, response) = run_with_hanging_model("single/1", 8, 2).await;
    for result in &response.results {
        assert_eq!(failed(result), [("single/1", "timeout")]);
    }
    assert_eq!(scenario.called_models().iter().filter(|model| *model == "single/1").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_closes_open_claims_and_keeps_the_other_results() {
    let mut scenario = Scenario::with_claims(2, |call| match call.model {
        "b/1" | "c/1" if call.question() == "What is claim 1?" => Reply::Hang,
        _ => call.choose(if call.question() == "What is claim 1?" { "yes 1" } else { "yes 0" }),
    });
    scenario.settings.general.deadline = Duration::from_millis(300);
    let response = scenario.complete().await;
    assert_eq!(response.results[0].assessment, Assessment::True);
    let cut_off = &response.results[1];
    assert_eq!(
        (cut_off.assessment, cut_off.reason_code),
        (Assessment::NoConsensus, Some(ReasonCode::InsufficientAnswers))
    );
    assert_eq!(answered(cut_off), ["a/1"]);
    assert_eq!(failed(cut_off), [("b/1", "timeout"), ("c/1", "timeout")]);
    let usage = response.token_usage;
    assert_eq!(usage.prompt_tokens, 10 + 40 + 14, "the cancelled calls are booked");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_decides_what_a_model_that_hangs_can_no_longer_change() {
    let mut scenario = one_claim(|call| match call.model {
        "c/1" => Reply::Hang,
        _ => call.choose("no 0"),
    });
    scenario.settings.general.deadline = Duration::from_millis(300);
    let result = scenario.only_claim().await;
    assert_eq!((result.assessment, result.reason_code), (Assessment::False, Some(ReasonCode::Consensus)));
    assert_eq!(failed(&result), [("c/1", "timeout")]);
    scenario.job.min_required = 3;
    assert_eq!(scenario.only_claim().await.reason_code, Some(ReasonCode::InsufficientAnswers));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_during_extraction_is_an_error() {
    let mut scenario = Scenario::new(|_| Reply::Hang);
    scenario.settings.general.deadline = Duration::from_millis(50);
    assert_eq!(error(&scenario).await, Error::Deadline);
}

#[tokio::test]
async fn a_call_has_its_own_timeout_within_the_deadline_of_the_verification() {
    let scenario = one_claim(|call| {
        assert!(call.time <= Duration::from_secs(30));
        call.choose("yes 0")
    });
    scenario.complete().await;
    let mut scenario = one_claim(|call| {
        assert!(call.time <= Duration::from_secs(5));
        call.choose("yes 0")
    });
    scenario.settings.general.deadline = Duration::from_secs(5);
    scenario.complete().await;
    scenario.settings.general.deadline = Duration::MAX;
    scenario.settings.general.model_timeout = Duration::from_secs(5);
    scenario.complete().await;
}

#[tokio::test(start_paused = true)]
async fn an_extraction_has_more_time_than_a_vote_and_leaves_some_to_fallbacks_and_panel() {
    let times = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let run = async |fallbacks: usize| {
        let seen = times.clone();
        let mut scenario = Scenario::new(move |call| {
            seen.lock().unwrap().push(call.time.as_secs());
            Reply::Fail(Failure::Timeout)
        });
        let names = (0..fallbacks).map(|n| format!("y/{n}")).collect();
        scenario.settings.general.extractor_fallbacks = names;
        let failed = error(&scenario).await;
        assert!(failed.message().ends_with("send a shorter statement"), "{failed}");
        std::mem::take(&mut *times.lock().unwrap())
    };
    // 120 s in all, of which 30 s are the panel's. These failures take no time.
    assert_eq!(run(0).await, [90]);
    assert_eq!(run(1).await, [45, 90]);
    let mut scenario = Scenario::with_claims(1, |call| call.choose("yes 0"));
    scenario.settings.general.deadline = Duration::from_secs(40);
    assert_eq!(scenario.complete().await.results.len(), 1);
}

#[tokio::test]
async fn claims_beyond_the_limit_are_named_in_the_order_of_the_text() {
    let mut scenario = Scenario::with_claims(3, |call| call.choose("yes 0"));
    scenario.settings.general.max_claims = 1;
    let response = scenario.complete().await;
    let skipped: Vec<_> = response.skipped.iter().map(|part| part.reason).collect();
    assert_eq!(skipped, [SkipReason::OverLimit, SkipReason::OverLimit, SkipReason::Opinion]);
    assert_eq!((response.coverage.unchecked, response.complete), (2, false));
    // One extraction, and three votes on one claim.
    assert_eq!(scenario.called_models().len(), 1 + 3);
}

#[tokio::test]
async fn without_extractor_or_panel_no_model_is_called() {
    let mut without_extractor = one_claim(|call| call.choose("yes 0"));
    without_extractor.settings.general.extractor.clear();
    without_extractor.settings.general.extractor_fallbacks.clear();
    let mut without_panel = one_claim(|call| call.choose("yes 0"));
    without_panel.settings.general.panel.truncate(1);
    for scenario in [without_extractor, without_panel] {
        assert_eq!(error(&scenario).await, Error::Unconfigured);
        assert!(scenario.called_models().is_empty());
    }
}

#[tokio::test]
async fn a_reader_that_stalls_delays_no_calls() {
    let scenario = Scenario::with_claims(10, |_| Reply::Text(r#"{"answer":"A"}"#.to_owned()));
    let (verifier, meter) = (scenario.verifier(), super::support::meter());
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<Box<EventResult>>(1);
    let read_after_all_calls = async {
        // The first two events are sent before anything else happens.
        assert!(receiver.recv().await.is_some_and(|event| names(&[*event]) == ["starting"]));
        while scenario.called_models().len() < 31 {
            tokio::task::yield_now().await;
        }
        let mut last = None;
        while let Some(event) = receiver.recv().await {
            last = Some(event);
        }
        last
    };
    let run = verifier.run(&scenario.job, &meter, sender);
    let both = async { tokio::join!(run, read_after_all_calls) };
    let ((), last) =
        tokio::time::timeout(Duration::from_secs(5), both).await.expect("no call waits for the reader");
    assert!(last.is_some_and(|event| is_terminal(&event)));
}
