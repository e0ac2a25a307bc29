//! A second implementation of the voting rules, as literal as the contract, to compare results with.

use std::collections::BTreeMap;

use crate::api::verify::{Assessment, ClaimResult, ReasonCode};

/// The expected outcome of a vote (assessment, consensus and reason), from the answers that a result lists.
pub(super) fn verdict(result: &ClaimResult, min_required: usize) -> (Assessment, String, ReasonCode) {
    let no_consensus = |reason| (Assessment::NoConsensus, String::new(), reason);
    let abstention = result.original_options.iter().find(|(_, text)| *text == "Cannot be determined");
    let abstention = abstention.map(|(key, _)| key.as_str()).unwrap_or_default();
    let mut votes = BTreeMap::<&str, usize>::new();
    for answer in result.model_answers.iter().filter(|answer| answer.answer != abstention) {
        *votes.entry(&answer.answer).or_default() += 1;
    }
    let max_votes = votes.values().copied().max().unwrap_or_default();
    let tops: Vec<&str> =
        votes.iter().filter(|(_, count)| **count == max_votes).map(|(key, _)| *key).collect();
    if result.model_answers.len() < min_required {
        return no_consensus(ReasonCode::InsufficientAnswers);
    }
    if votes.is_empty() {
        return no_consensus(ReasonCode::Unconfirmed);
    }
    if votes.values().sum::<usize>() < min_required {
        return no_consensus(ReasonCode::Abstained);
    }
    let has_winner = max_votes >= min_required && tops.len() == 1;
    if !has_winner && !votes.contains_key(result.claimed_answer.as_str()) {
        return no_consensus(ReasonCode::Rejected);
    }
    if max_votes < min_required {
        return no_consensus(ReasonCode::Split);
    }
    match tops.as_slice() {
        [top] if *top == result.claimed_answer => {
            (Assessment::True, (*top).to_owned(), ReasonCode::Consensus)
        }
        [top] => (Assessment::False, (*top).to_owned(), ReasonCode::Consensus),
        _ => no_consensus(ReasonCode::Tie),
    }
}
