//! What must hold for every run, whatever the models answer.

use std::collections::HashSet;
use std::sync::Mutex;

use proptest::prelude::*;

use super::support::{Reply, Scenario, extraction, is_terminal, names, statement};
use crate::api::verify::{Assessment, Event, ReasonCode, VerifyResponse};
use crate::inference::{Failure, Finish};
use crate::verify::EventResult;

/// What a model does.
#[derive(Clone, Debug)]
enum Behaviour {
    Letter(char),
    Garbage(String),
    Fail(Failure),
    ContentFilter,
}

fn behaviour() -> impl Strategy<Value = Behaviour> {
    prop_oneof![
        6 => prop::char::range('A', 'G').prop_map(Behaviour::Letter),
        1 => any::<String>().prop_map(Behaviour::Garbage),
        1 => "[{}\"answer:AB,\\[\\]]{0,30}".prop_map(Behaviour::Garbage),
        2 => prop_oneof![
            Just(Failure::Timeout), Just(Failure::Refused), Just(Failure::Unreachable), Just(Failure::Malformed),
        ].prop_map(Behaviour::Fail),
        1 => Just(Behaviour::ContentFilter),
    ]
}

fn reply(behaviour: &Behaviour) -> Reply {
    match behaviour {
        Behaviour::Letter(letter) => Reply::Text(format!("{{\"answer\":\"{letter}\"}}")),
        Behaviour::Garbage(text) => Reply::Text(text.clone()),
        Behaviour::Fail(failure) => Reply::Fail(failure.clone()),
        Behaviour::ContentFilter => Reply::TextWithFinish("{}".to_owned(), Finish::ContentFilter),
    }
}

/// A scenario whose models go through `behaviours`, and whose extractor finds `claims` unless it is given a behaviour.
fn scenario(behaviours: Vec<Behaviour>, extractor: Option<Behaviour>, claims: usize) -> Scenario {
    let next = Mutex::new(0_usize);
    let mut scenario = Scenario::new(move |call| {
        if call.is_extraction() {
            return extractor.as_ref().map_or_else(|| Reply::Text(extraction(claims)), reply);
        }
        let mut at = next.lock().unwrap();
        *at += 1;
        reply(&behaviours[*at % behaviours.len()])
    });
    scenario.job.fact = statement(claims);
    scenario
}

fn check_events(events: &[EventResult]) -> Result<(), TestCaseError> {
    let names = names(events);
    prop_assert_eq!(&names[..2], &["starting", "extracting_claims"]);
    prop_assert_eq!(events.iter().filter(|event| is_terminal(event)).count(), 1);
    prop_assert!(events.last().is_some_and(is_terminal));
    let mut started = HashSet::new();
    let mut ended = HashSet::new();
    for event in events.iter().flatten() {
        match event {
            Event::VerifyingClaim(claim) => prop_assert!(started.insert(claim.claim_index)),
            Event::ClaimVerified(claim) => {
                prop_assert!(started.contains(&claim.claim_index) && ended.insert(claim.claim_index));
            }
            Event::ModelAnswered(progress) => {
                prop_assert!(progress.answered <= progress.asked && !ended.contains(&progress.claim_index));
            }
            _ => {}
        }
    }
    if let Some(Ok(Event::Completed(response))) = events.last() {
        prop_assert_eq!(ended.len(), response.results.len());
        check_response(response)?;
    }
    Ok(())
}

fn check_response(response: &VerifyResponse) -> Result<(), TestCaseError> {
    for (at, result) in response.results.iter().enumerate() {
        prop_assert_eq!(&result.id, &format!("claim_{}", at + 1));
        let undetermined = result.original_options.keys().next_back().cloned().unwrap_or_default();
        let votes_for = |key: &str| result.model_answers.iter().filter(|answer| answer.answer == key).count();
        for answer in &result.model_answers {
            prop_assert!(result.original_options.contains_key(&answer.answer));
        }
        let consensus = &result.consensus_answer;
        prop_assert_eq!(result.assessment == Assessment::NoConsensus, consensus.is_empty());
        prop_assert_eq!(result.reason_code == Some(ReasonCode::Consensus), !consensus.is_empty());
        if !consensus.is_empty() {
            prop_assert!(votes_for(consensus) >= 2 && *consensus != undetermined);
            prop_assert_eq!(result.assessment == Assessment::True, *consensus == result.claimed_answer);
        }
        let asked = result.model_answers.len() + result.model_errors.len();
        prop_assert!((3..=4).contains(&asked));
    }
    let usage = &response.token_usage;
    let by_model: u64 = usage.model_usage.iter().flatten().map(|model| model.total_tokens).sum();
    prop_assert_eq!(usage.total_tokens, by_model);
    prop_assert_eq!(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
    let by_purpose = usage.extraction_tokens.zip(usage.verification_tokens).map(|(one, two)| one + two);
    prop_assert_eq!(Some(usage.total_tokens), by_purpose);
    Ok(())
}

proptest! {
    #[test]
    fn every_run_ends_once_and_its_result_matches_its_events(
        behaviours in prop::collection::vec(behaviour(), 1..12),
        extractor in prop::option::weighted(0.1, behaviour()),
        claims in 0_usize..5,
        channel_capacity in 1_usize..4,
        model_progress in any::<bool>(),
    ) {
        let mut scenario = scenario(behaviours, extractor, claims);
        scenario.channel_capacity = channel_capacity;
        scenario.job.model_progress = model_progress;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let events = runtime.block_on(scenario.run());
        check_events(&events)?;
    }
}
