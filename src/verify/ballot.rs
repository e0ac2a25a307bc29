//! One claim before the panel: who is asked, who has answered, who stands in for whom.

use super::claims::{Claim, key};
use super::vote::{self, Question, Verdict};
use crate::api::verify::{ClaimResult, ModelAnswer, ModelError, ReasonCode};
use crate::inference::Failure;

/// The models of a verification, panel first, then those that stand by; none twice, as nobody votes twice.
pub(super) struct Roster<'a> {
    models: Vec<&'a str>,
    asked: usize,
}

impl<'a> Roster<'a> {
    /// The first `total` models of the panel, with `standby` behind them.
    pub(super) fn new(panel: &'a [String], standby: &'a [String], total: usize) -> Self {
        let mut models = distinct(Vec::new(), panel);
        models.truncate(total);
        let asked = models.len();
        Self { models: distinct(models, standby), asked }
    }

    /// How many are asked at once.
    pub(super) const fn asked(&self) -> usize {
        self.asked
    }

    /// All of them, in the order of their seats.
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

/// A model's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The option, by its position in the claim's own order.
    pub option: usize,
    /// Why, if it was asked to say so.
    pub reason: Option<String>,
}

enum Seat {
    Asked,
    Answered(Given),
    Failed(Failure),
}

/// The answers to one claim. Seats are those of the roster, taken from the front.
pub(super) struct Ballot<'a> {
    roster: &'a Roster<'a>,
    seats: Vec<Seat>,
    /// Whether the deadline came before the last answer.
    cut_off: bool,
}

impl<'a> Ballot<'a> {
    /// A ballot with all of the panel asked.
    pub(super) fn new(roster: &'a Roster<'a>) -> Self {
        let seats = (0..roster.asked()).map(|_| Seat::Asked).collect();
        Self { roster, seats, cut_off: false }
    }

    /// Notes what became of a seat's call. Returns the seat to be asked in its place, if it failed and somebody
    /// still stands by. A model that declines is not replaced, as little as one that abstains, nor is one for which
    /// the budget had nothing left: another would be paid from the same.
    pub(super) fn record(&mut self, seat: usize, outcome: Result<Given, Failure>) -> Option<usize> {
        let replaceable = match &outcome {
            Ok(_) | Err(Failure::Refused | Failure::BudgetExceeded(_) | Failure::StoreUnavailable) => false,
            Err(_) => true,
        };
        *self.seats.get_mut(seat)? = outcome.map_or_else(Seat::Failed, Seat::Answered);
        let next = self.seats.len();
        if !replaceable || self.roster.model(next).is_none() {
            return None;
        }
        self.seats.push(Seat::Asked);
        Some(next)
    }

    /// Ends the ballot with the deadline: whoever has not answered has timed out, and there is no vote.
    pub(super) fn cut_off(&mut self) {
        self.cut_off = true;
        for seat in &mut self.seats {
            if matches!(seat, Seat::Asked) {
                *seat = Seat::Failed(Failure::Timeout);
            }
        }
    }

    /// How many have been asked.
    pub(super) fn asked(&self) -> usize {
        self.seats.len()
    }

    /// How many are done, with or without an answer.
    pub(super) fn done(&self) -> usize {
        self.seats.iter().filter(|seat| !matches!(seat, Seat::Asked)).count()
    }

    /// Whether nobody is left to wait for.
    pub(super) fn is_settled(&self) -> bool {
        self.done() == self.asked()
    }

    /// Whether anybody has answered.
    pub(super) fn has_answers(&self) -> bool {
        self.seats.iter().any(|seat| matches!(seat, Seat::Answered(_)))
    }

    /// The models that have not, and why.
    pub(super) fn failures(&self) -> impl Iterator<Item = (&'a str, &Failure)> {
        self.roster.models().zip(&self.seats).filter_map(|(model, seat)| match seat {
            Seat::Failed(failure) => Some((model, failure)),
            Seat::Asked | Seat::Answered(_) => None,
        })
    }

    /// What it comes to for `claim`.
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
        if self.cut_off {
            return Verdict::none(ReasonCode::InsufficientAnswers);
        }
        let answer = |seat: &Seat| match seat {
            Seat::Answered(given) => Some(given.option),
            Seat::Asked | Seat::Failed(_) => None,
        };
        let answers: Vec<usize> = self.seats.iter().filter_map(answer).collect();
        let question = Question { claimed: Claim::CLAIMED, undetermined: claim.undetermined() };
        vote::judge(&answers, question, usize::try_from(min_required).unwrap_or(usize::MAX))
    }

    fn seated(&self) -> impl Iterator<Item = (&str, &Seat)> {
        self.roster.models.iter().copied().zip(&self.seats)
    }
}

fn model_answer((model, seat): (&str, &Seat)) -> Option<ModelAnswer> {
    let Seat::Answered(given) = seat else { return None };
    Some(ModelAnswer { model: model.to_owned(), answer: key(given.option), reason: given.reason.clone() })
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

    fn given(option: usize) -> Given {
        Given { option, reason: None }
    }

    fn claim() -> Claim {
        let text = |text: &str| text.to_owned();
        Claim::new(0, text("c"), text("q"), text("1"), vec![text("2"), text("3")])
    }

    #[test]
    fn nobody_sits_twice() {
        let (panel, standby) = (names(&["a", "b", "a", "c"]), names(&["b", "d", "c", "d"]));
        let roster = Roster::new(&panel, &standby, 2);
        assert_eq!((roster.models.as_slice(), roster.asked()), (["a", "b", "d", "c"].as_slice(), 2));
        assert_eq!(Roster::new(&panel, &standby, 9).asked(), 3);
    }

    #[test]
    fn failures_are_replaced_in_standby_order_and_refusals_and_abstentions_are_not() {
        let (panel, standby) = (names(&["a", "b", "c"]), names(&["d", "e"]));
        let roster = Roster::new(&panel, &standby, 3);
        let mut ballot = Ballot::new(&roster);
        assert_eq!(ballot.record(2, Err(Failure::Refused)), None);
        assert_eq!(ballot.record(1, Err(Failure::Timeout)), Some(3));
        assert_eq!(ballot.record(0, Ok(given(4))), None);
        assert_eq!(ballot.record(3, Err(Failure::Malformed)), Some(4));
        assert!(!ballot.is_settled());
        assert_eq!(ballot.record(4, Ok(given(0))), None);
        assert!(ballot.is_settled());

        let result = ballot.result(&claim(), 2);
        let answers: Vec<_> =
            result.model_answers.iter().map(|given| (given.model.as_str(), given.answer.as_str())).collect();
        let errors: Vec<_> =
            result.model_errors.iter().map(|error| (error.model.as_str(), error.code.as_str())).collect();
        assert_eq!(answers, [("a", "E"), ("e", "A")]);
        assert_eq!(errors, [("b", "timeout"), ("c", "refused"), ("d", "malformed")]);
        assert_eq!(result.reason_code, Some(ReasonCode::Abstained));
    }

    #[test]
    fn the_deadline_keeps_answers_and_forbids_a_vote() {
        let panel = names(&["a", "b", "c"]);
        let roster = Roster::new(&panel, &[], 3);
        let mut ballot = Ballot::new(&roster);
        ballot.record(0, Ok(given(0)));
        ballot.record(2, Ok(given(0)));
        ballot.cut_off();
        let result = ballot.result(&claim(), 2);
        assert_eq!(result.assessment, Assessment::NoConsensus);
        assert_eq!(result.reason_code, Some(ReasonCode::InsufficientAnswers));
        assert_eq!(result.consensus_answer, "");
        assert_eq!(result.model_answers.len(), 2);
        assert_eq!(result.model_errors, [ModelError { model: "b".to_owned(), code: "timeout".to_owned() }]);
    }

    proptest! {
        #[test]
        fn every_seat_ends_as_an_answer_or_an_error_and_none_is_asked_twice(
            outcomes in prop::collection::vec(prop_oneof![
                (0_usize..5).prop_map(|option| Ok(given(option))),
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
            let mut waiting: Vec<usize> = (0..total).collect();
            let mut heard = 0;
            while let Some(seat) = waiting.pop() {
                waiting.extend(ballot.record(seat, outcomes[heard % outcomes.len()].clone()));
                heard += 1;
            }
            prop_assert!(ballot.is_settled());
            prop_assert!(heard <= total + standby);
            let result = ballot.result(&claim(), 2);
            prop_assert_eq!(result.model_answers.len() + result.model_errors.len(), heard);
            prop_assert!(result.model_answers.len() <= total);
        }
    }
}
