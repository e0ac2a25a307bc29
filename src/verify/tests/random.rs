//! Models that do anything: what must hold of every run.

use std::collections::HashSet;
use std::sync::Mutex;

use proptest::prelude::*;

use super::support::{Stage, Turn, extraction, is_terminal, names};
use crate::api::verify::{Assessment, Event, ReasonCode, VerifyResponse};
use crate::inference::{Failure, Finish};
use crate::verify::Step;

/// What a model does, as data.
#[derive(Clone, Debug)]
enum Habit {
    Letter(char),
    Garbage(String),
    Fails(Failure),
    Withholds,
}

fn habit() -> impl Strategy<Value = Habit> {
    prop_oneof![
        6 => prop::char::range('A', 'G').prop_map(Habit::Letter),
        1 => any::<String>().prop_map(Habit::Garbage),
        1 => "[{}\"answer:AB,\\[\\]]{0,30}".prop_map(Habit::Garbage),
        2 => prop_oneof![
            Just(Failure::Timeout), Just(Failure::Refused), Just(Failure::Unreachable), Just(Failure::Malformed),
        ].prop_map(Habit::Fails),
        1 => Just(Habit::Withholds),
    ]
}

fn turn(habit: &Habit) -> Turn {
    match habit {
        Habit::Letter(letter) => Turn::Says(format!("{{\"answer\":\"{letter}\"}}")),
        Habit::Garbage(text) => Turn::Says(text.clone()),
        Habit::Fails(failure) => Turn::Fails(failure.clone()),
        Habit::Withholds => Turn::Ends("{}".to_owned(), Finish::ContentFilter),
    }
}

/// A stage whose models go through `habits`, and whose extractor finds `claims` unless it is given a habit.
fn stage(habits: Vec<Habit>, extractor: Option<Habit>, claims: usize) -> Stage {
    let next = Mutex::new(0_usize);
    Stage::new(move |call| {
        if call.is_extraction() {
            return extractor.as_ref().map_or_else(|| Turn::Says(extraction(claims)), turn);
        }
        let mut at = next.lock().unwrap();
        *at += 1;
        turn(&habits[*at % habits.len()])
    })
}

fn check_steps(steps: &[Step]) -> Result<(), TestCaseError> {
    let names = names(steps);
    prop_assert_eq!(&names[..2], &["starting", "extracting_claims"]);
    prop_assert_eq!(steps.iter().filter(|step| is_terminal(step)).count(), 1);
    prop_assert!(steps.last().is_some_and(is_terminal));
    let mut begun = HashSet::new();
    let mut ended = HashSet::new();
    for event in steps.iter().flatten() {
        match event {
            Event::VerifyingClaim(claim) => prop_assert!(begun.insert(claim.claim_index)),
            Event::ClaimVerified(claim) => {
                prop_assert!(begun.contains(&claim.claim_index) && ended.insert(claim.claim_index));
            }
            Event::ModelAnswered(progress) => {
                prop_assert!(progress.answered <= progress.asked && !ended.contains(&progress.claim_index));
            }
            _ => {}
        }
    }
    if let Some(Ok(Event::Completed(response))) = steps.last() {
        prop_assert_eq!(ended.len(), response.results.len());
        check_response(response)?;
    }
    Ok(())
}

fn check_response(response: &VerifyResponse) -> Result<(), TestCaseError> {
    for (at, result) in response.results.iter().enumerate() {
        prop_assert_eq!(&result.id, &format!("claim_{}", at + 1));
        let undetermined = result.original_options.keys().next_back().cloned().unwrap_or_default();
        let votes_for = |key: &str| result.model_answers.iter().filter(|given| given.answer == key).count();
        for given in &result.model_answers {
            prop_assert!(result.original_options.contains_key(&given.answer));
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
    fn every_run_ends_once_and_its_result_agrees_with_its_events(
        habits in prop::collection::vec(habit(), 1..12),
        extractor in prop::option::weighted(0.1, habit()),
        claims in 0_usize..5,
        room in 1_usize..4,
        model_progress in any::<bool>(),
    ) {
        let mut stage = stage(habits, extractor, claims);
        stage.room = room;
        stage.job.model_progress = model_progress;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let steps = runtime.block_on(stage.run());
        check_steps(&steps)?;
    }
}
