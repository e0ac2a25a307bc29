//! The vote on one claim, a pure function of the answers.
//!
//! An answer is the index of an option in the claim's own order. "Cannot be determined" is an answer but not a vote;
//! "None of these" is a vote. A consensus needs at least `min_required` votes for one option and strictly more
//! than for any other. If there is none, the reason is the first of these that applies:
//!
//! | reason | when |
//! |---|---|
//! | `insufficient_answers` | fewer than `min_required` models answered, or those that had not at the deadline could have changed the outcome ([`is_open`]) |
//! | `unconfirmed` | every model that answered could not tell (`not_in_context` where there is a context) |
//! | `abstained` | enough answered, but fewer than `min_required` of them voted |
//! | `rejected` | enough voted, and none of them for the claimed answer |
//! | `tie` | two or more options share the most votes, which are at least `min_required` |
//! | `split` | enough voted, but no option got `min_required` votes |

use crate::api::verify::{Assessment, ReasonCode};

/// The options of a claim that have a special meaning.
#[derive(Clone, Copy, Debug)]
pub struct SpecialOptions {
    /// The option that the claim asserts.
    pub claimed: usize,
    /// "Cannot be determined".
    pub undetermined: usize,
}

/// The outcome of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the claim holds.
    pub assessment: Assessment,
    /// The option that won.
    pub consensus: Option<usize>,
    /// The reason for the assessment.
    pub reason: ReasonCode,
}

impl Verdict {
    /// No consensus, for this reason.
    pub(in crate::verify) const fn none(reason: ReasonCode) -> Self {
        Self { assessment: Assessment::NoConsensus, consensus: None, reason }
    }
}

/// Whether `outstanding` answers more could change the outcome. Without any, it never is; otherwise the top option must
/// have its votes already, and lead by more than could still come in for another.
pub(in crate::verify) fn is_open(
    answers: &[usize],
    options: SpecialOptions,
    min_required: usize,
    outstanding: usize,
) -> bool {
    let count = |option: usize| answers.iter().filter(|&&answer| answer == option).count();
    let Some(top) = decide(answers, options, min_required).consensus else { return outstanding > 0 };
    let votes = answers.iter().copied().filter(|&answer| answer != options.undetermined && answer != top);
    let second = votes.map(count).max().unwrap_or_default();
    outstanding > 0 && count(top) - second <= outstanding
}

/// Counts the answers, one per model that gave one, in any order, and decides.
pub fn decide(answers: &[usize], options: SpecialOptions, min_required: usize) -> Verdict {
    if answers.len() < min_required {
        return Verdict::none(ReasonCode::InsufficientAnswers);
    }
    let votes: Vec<usize> =
        answers.iter().copied().filter(|&answer| answer != options.undetermined).collect();
    let count = |option: usize| votes.iter().filter(|&&vote| vote == option).count();
    let Some(top) = votes.iter().copied().max_by_key(|&option| count(option)) else {
        return Verdict::none(ReasonCode::Unconfirmed);
    };
    if votes.len() < min_required {
        return Verdict::none(ReasonCode::Abstained);
    }
    let is_tie = votes.iter().any(|&other| other != top && count(other) == count(top));
    if count(top) < min_required || is_tie {
        return Verdict::none(match (count(options.claimed), is_tie && count(top) >= min_required) {
            (0, _) => ReasonCode::Rejected,
            (_, true) => ReasonCode::Tie,
            (_, false) => ReasonCode::Split,
        });
    }
    let assessment = if top == options.claimed { Assessment::True } else { Assessment::False };
    Verdict { assessment, consensus: Some(top), reason: ReasonCode::Consensus }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Claimed A (0), rivals B and C, none of these (3), cannot be determined (4).
    const OPTIONS: SpecialOptions = SpecialOptions { claimed: 0, undetermined: 4 };

    fn outcome(answers: &[usize], min_required: usize) -> (Assessment, ReasonCode) {
        let verdict = decide(answers, OPTIONS, min_required);
        (verdict.assessment, verdict.reason)
    }

    #[test]
    fn follows_the_table() {
        use Assessment::{False, NoConsensus, True};
        use ReasonCode::{Abstained, Consensus, InsufficientAnswers, Rejected, Split, Tie, Unconfirmed};
        let table: [(&[usize], usize, (Assessment, ReasonCode)); 18] = [
            (&[0, 0, 0], 2, (True, Consensus)),
            (&[0, 0, 1], 2, (True, Consensus)),
            (&[0, 0, 4], 2, (True, Consensus)),
            (&[0, 0, 1], 3, (NoConsensus, Split)),
            (&[1, 1, 0], 2, (False, Consensus)),
            (&[3, 3, 0], 2, (False, Consensus)),
            (&[0, 1, 2], 2, (NoConsensus, Split)),
            (&[0, 1, 4], 2, (NoConsensus, Split)),
            (&[0, 4, 4], 2, (NoConsensus, Abstained)),
            (&[4, 4, 4], 2, (NoConsensus, Unconfirmed)),
            (&[1, 2, 3], 2, (NoConsensus, Rejected)),
            (&[1, 1, 2, 2], 2, (NoConsensus, Rejected)),
            (&[0, 4], 2, (NoConsensus, Abstained)),
            (&[0, 0, 1, 1], 2, (NoConsensus, Tie)),
            (&[0, 0, 1, 1, 1], 2, (False, Consensus)),
            (&[0], 2, (NoConsensus, InsufficientAnswers)),
            (&[0, 0], 3, (NoConsensus, InsufficientAnswers)),
            (&[], 2, (NoConsensus, InsufficientAnswers)),
        ];
        for (answers, min_required, expected) in table {
            assert_eq!(outcome(answers, min_required), expected, "{answers:?} with {min_required}");
        }
    }

    proptest! {
        #[test]
        fn order_does_not_matter(
            (answers, shuffled) in prop::collection::vec(0_usize..5, 0..10)
                .prop_flat_map(|answers| (Just(answers.clone()), Just(answers).prop_shuffle())),
            min_required in 2_usize..4,
        ) {
            prop_assert_eq!(decide(&answers, OPTIONS, min_required), decide(&shuffled, OPTIONS, min_required));
        }

        #[test]
        fn a_consensus_is_exactly_a_sufficient_strict_majority_over_every_other_option(
            answers in prop::collection::vec(0_usize..5, 0..10),
            min_required in 2_usize..4,
        ) {
            let mut counts = [0_usize; 4];
            answers.iter().filter(|&&answer| answer < 4).for_each(|&answer| counts[answer] += 1);
            let winner = (0..4).find(|&option| {
                counts[option] >= min_required && (0..4).all(|other| other == option || counts[other] < counts[option])
            });
            let verdict = decide(&answers, OPTIONS, min_required);
            prop_assert_eq!(verdict.consensus, winner);
            prop_assert_eq!(verdict.assessment == Assessment::True, winner == Some(0));
            prop_assert_eq!(verdict.assessment == Assessment::NoConsensus, winner.is_none());
            prop_assert_eq!(verdict.reason == ReasonCode::Consensus, winner.is_some());
        }

        #[test]
        fn unanimity_wins_and_abstentions_never_change_a_winner(
            option in 0_usize..4, voters in 2_usize..10, abstaining in 0_usize..5,
        ) {
            let mut answers = vec![option; voters];
            answers.extend(std::iter::repeat_n(OPTIONS.undetermined, abstaining));
            prop_assert_eq!(decide(&answers, OPTIONS, 2).consensus, Some(option));
        }

        #[test]
        fn what_is_no_longer_open_stays_as_it_is_whatever_else_is_answered(
            answers in prop::collection::vec(0_usize..5, 0..8),
            late in prop::collection::vec(0_usize..5, 0..4),
            min_required in 2_usize..4,
        ) {
            prop_assert!(!is_open(&answers, OPTIONS, min_required, 0));
            if !is_open(&answers, OPTIONS, min_required, late.len()) {
                let all: Vec<usize> = answers.iter().chain(&late).copied().collect();
                prop_assert_eq!(decide(&all, OPTIONS, min_required).consensus, decide(&answers, OPTIONS, min_required).consensus);
            }
        }

        #[test]
        fn one_more_vote_for_the_winner_keeps_it(
            answers in prop::collection::vec(0_usize..5, 0..10), min_required in 2_usize..4,
        ) {
            if let Some(winner) = decide(&answers, OPTIONS, min_required).consensus {
                let more: Vec<usize> = answers.iter().copied().chain([winner]).collect();
                prop_assert_eq!(decide(&more, OPTIONS, min_required).consensus, Some(winner));
            }
        }
    }
}
