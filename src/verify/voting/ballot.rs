//! The answers to one claim: which models have been asked, which have answered, and which replace those that failed.

use std::time::Duration;

use super::count::{Count, number, special_options};
use super::vote;
use crate::api::verify::{ClaimResult, ModelError};
use crate::inference::Failure;
use crate::verify::Job;
use crate::verify::claim::Claim;
use crate::verify::model_calls::pacing;

/// The models of a verification: the panel first, then the standby models. Without duplicates, as no model votes twice.
pub(in crate::verify) struct Roster<'a> {
    models: Vec<&'a str>,
    panel_size: usize,
}

impl<'a> Roster<'a> {
    /// The first `total` models of the panel, followed by those of `standby`.
    pub(in crate::verify) fn new(panel: &'a [String], standby: &'a [String], total: usize) -> Self {
        let mut models = distinct(Vec::new(), panel);
        models.truncate(total);
        let panel_size = models.len();
        Self { models: distinct(models, standby), panel_size }
    }

    /// How many models are asked from the start.
    pub(in crate::verify) const fn panel_size(&self) -> usize {
        self.panel_size
    }

    /// All models, in the order of their seats.
    pub(in crate::verify) fn models(&self) -> impl Iterator<Item = &'a str> {
        self.models.iter().copied()
    }

    /// The model in a seat.
    pub(in crate::verify) fn model(&self, seat: usize) -> Option<&'a str> {
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
    /// The answer in the model's own words, if it gave one.
    pub found: Option<String>,
    /// The reason, if one was requested.
    pub reason: Option<String>,
}

/// The state of one model's call.
enum Seat {
    Pending,
    /// To be asked again, as it limits the rate of its calls and there is no other model to be asked.
    Limited,
    Answered(PanelAnswer),
    Failed(Failure),
}

/// Who is to be asked after a call has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify) enum Next {
    Nobody,
    /// The standby model in this seat.
    Standby(usize),
    /// The same model, once its rate limit allows it.
    Again,
}

/// The answers to one claim. Its seats are the first ones of the roster.
pub(in crate::verify) struct Ballot<'a> {
    roster: &'a Roster<'a>,
    seats: Vec<Seat>,
    /// How many models had not answered when the deadline passed; 0 if all were done before it.
    outstanding: usize,
    /// Whether the answers were given to an earlier verification.
    cached: bool,
}

impl<'a> Ballot<'a> {
    /// A ballot for which the whole panel is being asked.
    pub(in crate::verify) fn new(roster: &'a Roster<'a>) -> Self {
        let seats = (0..roster.panel_size()).map(|_| Seat::Pending).collect();
        Self { roster, seats, outstanding: 0, cached: false }
    }

    /// The ballot of a whole panel that was asked before.
    pub(in crate::verify) fn cached(roster: &'a Roster<'a>, answers: Vec<PanelAnswer>) -> Self {
        let seats = answers.into_iter().map(Seat::Answered).collect();
        Self { roster, seats, outstanding: 0, cached: true }
    }

    /// Whether the answers were given to an earlier verification.
    pub(in crate::verify) const fn is_cached(&self) -> bool {
        self.cached
    }

    /// Records the outcome of a seat's call. If it failed, the next standby model is asked instead. With none left, a
    /// model that limits its rate is asked again: that call waits and ends with another outcome. A model that declines
    /// is not replaced, just like one that abstains, and neither is one that the budget does not cover: its replacement
    /// would be paid from the same budget.
    pub(in crate::verify) fn record(&mut self, seat: usize, outcome: Result<PanelAnswer, Failure>) -> Next {
        let replaceable = match &outcome {
            Ok(_) | Err(Failure::Refused | Failure::BudgetExceeded(_) | Failure::StoreUnavailable) => false,
            Err(_) => true,
        };
        let next = self.seats.len();
        let has_standby = self.roster.model(next).is_some();
        let Some(seat) = self.seats.get_mut(seat) else { return Next::Nobody };
        let is_first = !matches!(seat, Seat::Limited);
        match outcome {
            Err(failure) if is_first && !has_standby && pacing::is_rate_limit(&failure) => {
                *seat = Seat::Limited;
                return Next::Again;
            }
            Err(failure) => *seat = Seat::Failed(failure),
            Ok(answer) => *seat = Seat::Answered(answer),
        }
        if !replaceable || !has_standby {
            return Next::Nobody;
        }
        self.seats.push(Seat::Pending);
        Next::Standby(next)
    }

    /// Ends the ballot at the deadline: models that have not answered have timed out, or were limited all along; how
    /// much longer they are, as far as is known, is the `time_left` to them. The votes there are count only if those
    /// models could not have changed the outcome.
    pub(in crate::verify) fn cut_off(&mut self, time_left: impl Fn(&str) -> Option<Duration>) {
        self.outstanding = self.asked() - self.done();
        for (model, seat) in self.roster.models().zip(&mut self.seats) {
            match seat {
                Seat::Pending => *seat = Seat::Failed(Failure::Timeout),
                Seat::Limited => *seat = Seat::Failed(Failure::RateLimited { retry_after: time_left(model) }),
                Seat::Answered(_) | Seat::Failed(_) => {}
            }
        }
    }

    /// Gives up the models that limit their rate, if only those are still to answer and could not change the outcome.
    /// Returns whether that settles the ballot.
    pub(in crate::verify) fn give_up_limited(&mut self, claim: &Claim, min_required: u32) -> bool {
        let is_limited = |seat: &&mut Seat| matches!(seat, Seat::Limited);
        let limited = self.seats.iter_mut().filter(is_limited).count();
        if limited == 0 || self.asked() - self.done() > limited || self.is_open(claim, min_required, limited)
        {
            return false;
        }
        for seat in self.seats.iter_mut().filter(is_limited) {
            *seat = Seat::Failed(Failure::RateLimited { retry_after: None });
        }
        true
    }

    /// Whether the model in this seat is waited for, as it limits its rate.
    pub(in crate::verify) fn is_limited(&self, seat: usize) -> bool {
        matches!(self.seats.get(seat), Some(Seat::Limited))
    }

    /// How many models have been asked.
    pub(in crate::verify) fn asked(&self) -> usize {
        self.seats.len()
    }

    /// How many models are done, with or without an answer.
    pub(in crate::verify) fn done(&self) -> usize {
        self.seats.iter().filter(|seat| !matches!(seat, Seat::Pending | Seat::Limited)).count()
    }

    /// Whether no call is pending.
    pub(in crate::verify) fn is_settled(&self) -> bool {
        self.done() == self.asked()
    }

    /// The models that are done, in the order of their seats.
    pub(in crate::verify) fn done_models(&self) -> impl Iterator<Item = &'a str> {
        let done = self.roster.models().zip(&self.seats);
        done.filter(|(_, seat)| !matches!(seat, Seat::Pending | Seat::Limited)).map(|(model, _)| model)
    }

    /// Whether any model has answered.
    pub(in crate::verify) fn has_answers(&self) -> bool {
        self.seats.iter().any(|seat| matches!(seat, Seat::Answered(_)))
    }

    /// The models that have failed, and why.
    pub(in crate::verify) fn failures(&self) -> impl Iterator<Item = (&'a str, &Failure)> {
        self.roster.models().zip(&self.seats).filter_map(|(model, seat)| match seat {
            Seat::Failed(failure) => Some((model, failure)),
            Seat::Pending | Seat::Limited | Seat::Answered(_) => None,
        })
    }

    /// The result for `claim`.
    pub(in crate::verify) fn result(&self, claim: &Claim, job: &Job) -> ClaimResult {
        let count = Count {
            min_required: job.min_required,
            outstanding: self.outstanding,
            has_context: job.context.is_some(),
            cached: self.cached,
        };
        let quote = job.fact.get(claim.quote.clone()).unwrap_or_default().to_owned();
        let answers: Vec<(&str, &PanelAnswer)> = self.seated().filter_map(given).collect();
        count.result(claim, quote, &answers, self.seated().filter_map(model_error).collect())
    }

    /// How many models had not answered when the deadline passed.
    pub(in crate::verify) const fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Whether this many answers more could change the outcome.
    fn is_open(&self, claim: &Claim, min_required: u32, outstanding: usize) -> bool {
        vote::is_open(&self.answers(), special_options(claim), number(min_required), outstanding)
    }

    fn answers(&self) -> Vec<usize> {
        let answer = |seat: &Seat| match seat {
            Seat::Answered(answer) => Some(answer.option),
            Seat::Pending | Seat::Limited | Seat::Failed(_) => None,
        };
        self.seats.iter().filter_map(answer).collect()
    }

    /// The models that have been asked, with their seats.
    fn seated(&self) -> impl Iterator<Item = (&str, &Seat)> {
        self.roster.models.iter().copied().zip(&self.seats)
    }
}

fn given<'s>((model, seat): (&'s str, &'s Seat)) -> Option<(&'s str, &'s PanelAnswer)> {
    let Seat::Answered(answer) = seat else { return None };
    Some((model, answer))
}

fn model_error((model, seat): (&str, &Seat)) -> Option<ModelError> {
    let Seat::Failed(failure) = seat else { return None };
    Some(ModelError { model: model.to_owned(), code: failure.code().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::verify::{Assessment, ReasonCode, Span};
    use proptest::prelude::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn answer(option: usize) -> PanelAnswer {
        PanelAnswer { option, found: None, reason: None }
    }

    fn job(min_required: u32) -> Job {
        Job { min_required, ..Job::blank() }
    }

    fn claim() -> Claim {
        let text = |text: &str| text.to_owned();
        Claim::new(0, text("c"), text("q"), text("1"), vec![text("2"), text("3")], (0..0, Span::default()))
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
        assert_eq!(ballot.record(2, Err(Failure::Refused)), Next::Nobody);
        assert_eq!(ballot.record(1, Err(Failure::Timeout)), Next::Standby(3));
        assert_eq!(ballot.record(0, Ok(answer(4))), Next::Nobody);
        assert_eq!(ballot.record(3, Err(Failure::Malformed)), Next::Standby(4));
        assert!(!ballot.is_settled());
        assert_eq!(ballot.record(4, Ok(answer(0))), Next::Nobody);
        assert!(ballot.is_settled());

        let result = ballot.result(&claim(), &job(2));
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
            ballot.cut_off(|_| None);
            let result = ballot.result(&claim(), &job(min_required));
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
        assert_eq!(ballot.record(2, Err(Failure::Malformed)), Next::Standby(3));
        ballot.cut_off(|_| None);
        let result = ballot.result(&claim(), &job(2));
        assert_eq!((result.assessment, result.model_errors.len()), (Assessment::True, 2));
    }

    #[test]
    fn a_limited_model_is_asked_again_once_no_standby_is_left_and_outstanding_until_then() {
        let (panel, standby) = (names(&["a", "b"]), names(&["c"]));
        let roster = Roster::new(&panel, &standby, 2);
        let limited = || Err(Failure::RateLimited { retry_after: None });
        for at_last in [Some(Ok(answer(0))), Some(limited()), None] {
            let mut ballot = Ballot::new(&roster);
            assert_eq!(ballot.record(0, limited()), Next::Standby(2));
            assert_eq!(ballot.record(1, Err(pacing::not_made(Duration::ZERO))), Next::Again);
            assert_eq!(ballot.record(2, Ok(answer(0))), Next::Nobody);
            assert_eq!((ballot.done(), ballot.asked()), (2, 3));
            let (is_answered, is_cut) = (matches!(at_last, Some(Ok(_))), at_last.is_none());
            match at_last {
                Some(outcome) => assert_eq!(ballot.record(1, outcome), Next::Nobody),
                None => ballot.cut_off(|_| None),
            }
            assert!(ballot.is_settled());
            let result = ballot.result(&claim(), &job(2));
            assert_eq!(result.model_answers.len(), 1 + usize::from(is_answered));
            assert!(result.model_errors.iter().all(|error| error.code == "rate_limited"));
            assert_eq!(ballot.outstanding, usize::from(is_cut));
        }
    }

    proptest! {
        #[test]
        fn every_seat_ends_as_an_answer_or_an_error_and_none_is_asked_twice(
            outcomes in prop::collection::vec(prop_oneof![
                (0_usize..5).prop_map(|option| Ok(answer(option))),
                Just(Err(Failure::Refused)),
                Just(Err(Failure::Timeout)),
                Just(Err(Failure::RateLimited { retry_after: None })),
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
            let mut again = 0;
            while let Some(seat) = pending.pop() {
                match ballot.record(seat, outcomes[(done + again) % outcomes.len()].clone()) {
                    Next::Nobody => done += 1,
                    Next::Standby(next) => {
                        pending.push(next);
                        done += 1;
                    }
                    Next::Again => {
                        pending.push(seat);
                        again += 1;
                    }
                }
            }
            prop_assert!(ballot.is_settled());
            prop_assert!(done <= total + standby && again <= total);
            let result = ballot.result(&claim(), &job(2));
            prop_assert_eq!(result.model_answers.len() + result.model_errors.len(), done);
            prop_assert!(result.model_answers.len() <= total);
        }
    }
}
