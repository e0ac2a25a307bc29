//! The rules of a vote once more, as naively as the contract words them, to hold results against.

use std::collections::BTreeMap;

use crate::api::verify::{Assessment, ClaimResult, ReasonCode};

/// What a vote must come to: assessment, consensus and reason, from the answers that a result lists.
pub(super) fn verdict(result: &ClaimResult, min_required: usize) -> (Assessment, String, ReasonCode) {
    let nobody = |reason| (Assessment::NoConsensus, String::new(), reason);
    let abstention = result.original_options.iter().find(|(_, text)| *text == "Cannot be determined");
    let abstention = abstention.map(|(key, _)| key.as_str()).unwrap_or_default();
    let mut votes = BTreeMap::<&str, usize>::new();
    for given in result.model_answers.iter().filter(|given| given.answer != abstention) {
        *votes.entry(&given.answer).or_default() += 1;
    }
    let most = votes.values().copied().max().unwrap_or_default();
    let tops: Vec<&str> = votes.iter().filter(|(_, count)| **count == most).map(|(key, _)| *key).collect();
    if result.model_answers.len() < min_required {
        return nobody(ReasonCode::InsufficientAnswers);
    }
    if votes.values().sum::<usize>() < min_required {
        return nobody(ReasonCode::Abstained);
    }
    if most < min_required {
        return nobody(ReasonCode::Split);
    }
    match tops.as_slice() {
        [top] if *top == result.claimed_answer => {
            (Assessment::True, (*top).to_owned(), ReasonCode::Consensus)
        }
        [top] => (Assessment::False, (*top).to_owned(), ReasonCode::Consensus),
        _ => nobody(ReasonCode::Tie),
    }
}
