//! The answers to one claim: which models have been asked, which have answered, and which replace those that failed.

use super::claims::{Claim, key};
use super::vote::{self, SpecialOptions, Verdict};
use crate::api::verify::{ClaimResult, ModelAnswer, ModelError, ReasonCode};
use crate::inference::Failure;

/// The models of a verification: the panel first, then the standby models. Without duplicates, as no model votes twice.
pub(super) struct Roster<'a> {
    models: Vec<&'a str>,
    panel_size: usize,
}

impl<'a> Roster<'a> {
    /// The first `total` models of the panel, followed by those of `standby`.
    pub(super) fn new(panel: &'a [String], standby: &'a [String], total: usize) -> Self {
        let mut models = distinct(Vec::new(), panel);
        models.truncate(total);
        let panel_size = models.len();
        Self { models: distinct(models, standby), panel_size }
    }

    /// How many models are asked from the start.
    pub(super) const fn panel_size(&self) -> usize {
        self.panel_size
    }

    /// All models, in the order of their seats.
    pub(super) fn models(&self) -> impl Iterator<Item = &'a str> {
        self.models.iter().copied()
    }

    /// The model in a seat.
    pub(super) fn model(&self, seat: usize) -> Option<&'a str> {
        self.models.get(seat).copied()
    }
}

fn distinct<'a>(mut models: Vec<&'a str>, more: &'a [String]) -> Vec<&'a str> {
    for model in more {
        if !models.contains(&model.as_str()) {
            models.push(model);
        }
    }
    models
}

/// A panel model's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PanelAnswer {
    /// The chosen option, by its position in the claim's own order.
    pub option: usize,
    /// The reason, if one was requested.
    pub reason: Option<String>,
}

/// The state of one model's call.
enum Seat {
    Pending,
    Answered(PanelAnswer),
    Failed(Failure),
}

/// The answers to one claim. Its seats are the first ones of the roster.
pub(super) struct Ballot<'a> {
    roster: &'a Roster<'a>,
    seats: Vec<Seat>,
    /// How many models had not answered when the deadline passed; 0 if all were done before it.
    outstanding: usize,
}

impl<'a> Ballot<'a> {
    /// A ballot for which the whole panel is being asked.
    pub(super) fn new(roster: &'a Roster<'a>) -> Self {
        let seats = (0..roster.panel_size()).map(|_| Seat::Pending).collect();
        Self { roster, seats, outstanding: 0 }
    }

    /// Records the outcome of a seat's call. Returns the seat to be asked instead, if it failed and there is a standby
    /// model left. A model that declines is not replaced, just like one that abstains, and neither is one that the
    /// budget does not cover: its replacement would be paid from the same budget.
    pub(super) fn record(&mut self, seat: usize, outcome: Result<PanelAnswer, Failure>) -> Option<usize> {
        let replaceable = match &outcome {
            Ok(_) | Err(Failure::Refused | Failure::BudgetExceeded(_) | Failure::StoreUnavailable) => false,
            Err(_) => true,
        };
        *self.seats.get_mut(seat)? = outcome.map_or_else(Seat::Failed, Seat::Answered);
        let next = self.seats.len();
        if !replaceable || self.roster.model(next).is_none() {
            return None;
        }
        self.seats.push(Seat::Pending);
        Some(next)
    }

    /// Ends the ballot at the deadline: models that have not answered have timed out. The votes there are count only
    /// if those models could not have changed the outcome.
    pub(super) fn cut_off(&mut self) {
        self.outstanding = self.asked() - self.done();
        for seat in &mut self.seats {
            if matches!(seat, Seat::Pending) {
                *seat = Seat::Failed(Failure::Timeout);
            }
        }
    }

    /// How many models have been asked.
    pub(super) fn asked(&self) -> usize {
        self.seats.len()
    }

    /// How many models are done, with or without an answer.
    pub(super) fn done(&self) -> usize {
        self.seats.iter().filter(|seat| !matches!(seat, Seat::Pending)).count()
    }

    /// Whether no call is pending.
    pub(super) fn is_settled(&self) -> bool {
        self.done() == self.asked()
    }

    /// Whether any model has answered.
    pub(super) fn has_answers(&self) -> bool {
        self.seats.iter().any(|seat| matches!(seat, Seat::Answered(_)))
    }

    /// The models that have failed, and why.
    pub(super) fn failures(&self) -> impl Iterator<Item = (&'a str, &Failure)> {
        self.roster.models().zip(&self.seats).filter_map(|(model, seat)| match seat {
            Seat::Failed(failure) => Some((model, failure)),
            Seat::Pending | Seat::Answered(_) => None,
        })
    }

    /// The result for `claim`.
    pub(super) fn result(&self, claim: &Claim, min_required: u32) -> ClaimResult {
        let verdict = self.verdict(claim, min_required);
        ClaimResult {
            id: claim.id.clone(),
            claim: claim.text.clone(),
            assessment: verdict.assessment,
            original_question: claim.question.clone(),
            original_options: claim.keyed_options(),
            claimed_answer: key(Claim::CLAIMED),
            model_answers: self.seated().filter_map(model_answer).collect(),
            consensus_answer: verdict.consensus.map(key).unwrap_or_default(),
            reason_code: Some(verdict.reason),
            model_errors: self.seated().filter_map(model_error).collect(),
            seats: Vec::new(),
        }
    }

    fn verdict(&self, claim: &Claim, min_required: u32) -> Verdict {
        let answer = |seat: &Seat| match seat {
            Seat::Answered(answer) => Some(answer.option),
            Seat::Pending | Seat::Failed(_) => None,
        };
        let answers: Vec<usize> = self.seats.iter().filter_map(answer).collect();
        let options = SpecialOptions { claimed: Claim::CLAIMED, undetermined: claim.undetermined() };
        let min_required = usize::try_from(min_required).unwrap_or(usize::MAX);
        if vote::is_open(&answers, options, min_required, self.outstanding) {
            return Verdict::none(ReasonCode::InsufficientAnswers);
        }
        vote::decide(&answers, options, min_required)
    }

    /// The models that have been asked, with their seats.
    fn seated(&self) -> impl Iterator<Item = (&str, &Seat)> {
        self.roster.models.iter().copied().zip(&self.seats)
    }
}

fn model_answer((model, seat): (&str, &Seat)) -> Option<ModelAnswer> {
    let Seat::Answered(answer) = seat else { return None };
    Some(ModelAnswer { model: model.to_owned(), answer: key(answer.option), reason: answer.reason.clone() })
}

fn model_error((model, seat): (&str, &Seat)) -> Option<ModelError> {
    let Seat::Failed(failure) = seat else { return None };
    Some(ModelError { model: model.to_owned(), code: failure.code().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::verify::Assessment;
    use proptest::prelude::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn answer(option: usize) -> PanelAnswer {
        PanelAnswer { option, reason: None }
    }

    fn claim() -> Claim {
        let text = |text: &str| text.to_owned();
        Claim::new(0, text("c"), text("q"), text("1"), vec![text("2"), text("3")])
    }

    #[test]
    fn no_model_has_two_seats() {
        let (panel, standby) = (names(&["a", "b", "a", "c"]), names(&["b", "d", "c", "d"]));
        let roster = Roster::new(&panel, &standby, 2);
        assert_eq!((roster.models.as_slice(), roster.panel_size()), (["a", "b", "d", "c"].as_slice(), 2));
        assert_eq!(Roster::new(&panel, &standby, 9).panel_size(), 3);
    }

    #[test]
    fn failures_are_replaced_in_standby_order_and_refusals_and_abstentions_are_not() {
        let (panel, standby) = (names(&["a", "b", "c"]), names(&["d", "e"]));
        let roster = Roster::new(&panel, &standby, 3);
        let mut ballot = Ballot::new(&roster);
        assert_eq!(ballot.record(2, Err(Failure::Refused)), None);
        assert_eq!(ballot.record(1, Err(Failure::Timeout)), Some(3));
        assert_eq!(ballot.record(0, Ok(answer(4))), None);
        assert_eq!(ballot.record(3, Err(Failure::Malformed)), Some(4));
        assert!(!ballot.is_settled());
        assert_eq!(ballot.record(4, Ok(answer(0))), None);
        assert!(ballot.is_settled());

        let result = ballot.result(&claim(), 2);
        let answers: Vec<_> = result
            .model_answers
            .iter()
            .map(|answer| (answer.model.as_str(), answer.answer.as_str()))
            .collect();
        let errors: Vec<_> =
            result.model_errors.iter().map(|error| (error.model.as_str(), error.code.as_str())).collect();
        assert_eq!(answers, [("a", "E"), ("e", "A")]);
        assert_eq!(errors, [("b", "timeout"), ("c", "refused"), ("d", "malformed")]);
        assert_eq!(result.reason_code, Some(ReasonCode::Abstained));
    }

    #[test]
    fn at_the_deadline_answers_count_unless_those_outstanding_could_change_the_outcome() {
        let panel = names(&["a", "b", "c"]);
        let roster = Roster::new(&panel, &[], 3);
        let cut_off = |answers: [usize; 2], min_required: u32| {
            let mut ballot = Ballot::new(&roster);
            ballot.record(0, Ok(answer(answers[0])));
            ballot.record(2, Ok(answer(answers[1])));
            ballot.cut_off();
            let result = ballot.result(&claim(), min_required);
            assert_eq!(result.model_answers.len(), 2);
            assert_eq!(
                result.model_errors,
                [ModelError { model: "b".to_owned(), code: "timeout".to_owned() }]
            );
            (result.assessment, result.consensus_answer, result.reason_code)
        };
        let consensus = Some(ReasonCode::Consensus);
        assert_eq!(cut_off([0, 0], 2), (Assessment::True, "A".to_owned(), consensus));
        assert_eq!(cut_off([1, 1], 2), (Assessment::False, "B".to_owned(), consensus));
        let open = (Assessment::NoConsensus, String::new(), Some(ReasonCode::InsufficientAnswers));
        for (answers, min_required) in [([0, 0], 3), ([0, 1], 2), ([0, 4], 2), ([4, 4], 2)] {
            assert_eq!(cut_off(answers, min_required), open, "{answers:?}");
        }
    }

    #[test]
    fn a_failed_model_is_not_outstanding_and_its_replacement_is() {
        let (panel, standby) = (names(&["a", "b", "c"]), names(&["d"]));
        let roster = Roster::new(&panel, &standby, 3);
        let mut ballot = Ballot::new(&roster);
        ballot.record(0, Ok(answer(0)));
        ballot.record(1, Ok(answer(0)));
        assert_eq!(ballot.record(2, Err(Failure::Malformed)), Some(3));
        ballot.cut_off();
        let result = ballot.result(&claim(), 2);
        assert_eq!((result.assessment, result.model_errors.len()), (Assessment::True, 2));
    }

    proptest! {
        #[test]
        fn every_seat_ends_as_an_answer_or_an_error_and_none_is_asked_twice(
            outcomes in prop::collection::vec(prop_oneof![
                (0_usize..5).prop_map(|option| Ok(answer(option))),
                Just(Err(Failure::Refused)),
                Just(Err(Failure::Timeout)),
            ], 9),
            total in 2_usize..5,
            standby in 0_usize..4,
        ) {
            let panel: Vec<String> = (0..total).map(|n| format!("p{n}")).collect();
            let reserve: Vec<String> = (0..standby).map(|n| format!("s{n}")).collect();
            let roster = Roster::new(&panel, &reserve, total);
            let mut ballot = Ballot::new(&roster);
            let mut pending: Vec<usize> = (0..total).collect();
            let mut done = 0;
            while let Some(seat) = pending.pop() {
                pending.extend(ballot.record(seat, outcomes[done % outcomes.len()].clone()));
                done += 1;
            }
            prop_assert!(ballot.is_settled());
            prop_assert!(done <= total + standby);
            let result = ballot.result(&claim(), 2);
            prop_assert_eq!(result.model_answers.len() + result.model_errors.len(), done);
            prop_assert!(result.model_answers.len() <= total);
        }
    }
}
