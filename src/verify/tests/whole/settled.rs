//! A run that is over, and what must hold of it.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;

use super::super::support::{is_terminal, name};
use super::world::{Report, World};
use super::{Plan, naive, names};
use crate::api::verify::{ClaimResult, ClaimsExtracted, Event, ReasonCode, SkipReason, VerifyResponse};
use crate::storage::AttemptRow;
use crate::usage::Purpose;
use crate::verify::Step;

type Held = Result<(), TestCaseError>;

/// A run that is over.
pub(super) struct Run {
    pub(super) plan: Plan,
    /// What the reader took, and when.
    pub(super) steps: Vec<(Step, Instant)>,
    pub(super) began: Instant,
    pub(super) ended: Instant,
    pub(super) rows: Vec<AttemptRow>,
    pub(super) world: Arc<World>,
}

impl Run {
    pub(super) fn check(&self) -> Held {
        self.calls_end_with_it()?;
        self.books_agree()?;
        self.events_are_in_order()?;
        let Some((last, _)) = self.steps.last() else { return Ok(()) };
        match last {
            Ok(Event::Completed(response)) => self.result(response),
            Err(_) => self.is_nothing_to_report(),
            _ => {
                prop_assert!(self.plan.reader.leaves.is_some(), "only he who leaves sees no end");
                Ok(())
            }
        }
    }

    fn calls_end_with_it(&self) -> Held {
        prop_assert_eq!(self.world.open(), 0, "no call outlives the run");
        if self.plan.reader.pause.is_zero() && self.plan.reader.leaves.is_none() {
            prop_assert!(self.ended - self.began <= self.plan.deadline + Duration::from_millis(2));
        }
        Ok(())
    }

    /// The ledger has a row for each call, with what the model says it took. One that was given up has timed out, unless
    /// the reader has left, and nobody knows which was first.
    fn books_agree(&self) -> Held {
        let has_left = self.plan.reader.leaves.is_some();
        let of_report = |report: &Report| {
            let usage = report.usage;
            let outcome = if report.outcome == "cancelled" { "timeout" } else { report.outcome };
            (report.model.clone(), outcome.to_owned(), usage.prompt, usage.completion)
        };
        let mut reported: Vec<_> = self.world.reports().iter().map(of_report).collect();
        let of_row = |row: &AttemptRow| {
            let may_be_cut = has_left && row.outcome == "cancelled";
            let outcome = if may_be_cut { "timeout" } else { &*row.outcome };
            (row.model.to_string(), outcome.to_owned(), row.prompt_tokens, row.completion_tokens)
        };
        let mut booked: Vec<_> = self.rows.iter().map(of_row).collect();
        reported.sort();
        booked.sort();
        prop_assert_eq!(reported, booked);
        Ok(())
    }

    fn events_are_in_order(&self) -> Held {
        let order = ["starting", "extracting_claims", "claims_extracted", "verifying_claims"];
        let names: Vec<&str> = self.steps.iter().map(|(step, _)| name(step)).collect();
        let is_over = |step: &(Step, Instant)| is_terminal(&step.0);
        prop_assert!(self.steps.iter().rev().skip(1).all(|step| !is_over(step)), "{:?}", names);
        let beginning = names.iter().zip(order).take_while(|(name, _)| **name != "error");
        prop_assert!(beginning.clone().all(|(name, expected)| *name == expected), "{:?}", names);
        let mut told = vec![Told::Not; self.claims().map_or(0, |extracted| extracted.count)];
        for (step, _) in self.steps.iter().skip(order.len()) {
            match step {
                Ok(Event::VerifyingClaim(begun)) => {
                    prop_assert_eq!(told[begun.claim_index], Told::Not);
                    prop_assert_eq!(&begun.claim, &self.claims().unwrap().claims[begun.claim_index]);
                    told[begun.claim_index] = Told::Begun;
                }
                Ok(Event::ClaimVerified(done)) => {
                    prop_assert_eq!(told[done.claim_index], Told::Begun);
                    prop_assert_eq!(done.result.is_some(), self.plan.progress);
                    told[done.claim_index] = Told::Done;
                }
                Ok(Event::ModelAnswered(heard)) => {
                    prop_assert!(self.plan.progress && heard.answered <= heard.asked);
                    prop_assert_eq!(told[heard.claim_index], Told::Begun);
                }
                Ok(Event::Completed(_)) => prop_assert!(told.iter().all(|told| *told == Told::Done)),
                Err(_) => prop_assert!(told.iter().all(|told| *told == Told::Begun)),
                other => prop_assert!(false, "{} after the beginning", name(other)),
            }
        }
        Ok(())
    }

    fn claims(&self) -> Option<&ClaimsExtracted> {
        self.steps.iter().find_map(|(step, _)| match step {
            Ok(Event::ClaimsExtracted(extracted)) => Some(extracted),
            _ => None,
        })
    }

    /// An error is told only where no model has said anything that could be read in time.
    fn is_nothing_to_report(&self) -> Held {
        let deadline = self.began + self.plan.deadline;
        let is_heard = self.world.choices().iter().any(|choice| choice.at < deadline);
        prop_assert!(self.claims().is_none() || (!is_heard && self.claims().unwrap().count > 0));
        Ok(())
    }

    fn result(&self, response: &VerifyResponse) -> Held {
        let extracted = self.claims().unwrap();
        let expected = self.plan.claims.min(self.plan.max_claims);
        prop_assert_eq!(extracted.count, expected);
        let over = extracted.skipped.iter().filter(|part| part.reason == SkipReason::OverLimit).count();
        prop_assert_eq!(over, self.plan.claims - expected);
        // The result is what the events told, folded.
        prop_assert_eq!(&response.skipped, &extracted.skipped);
        let texts: Vec<&str> = response.results.iter().map(|result| result.claim.as_str()).collect();
        prop_assert_eq!(texts, extracted.claims.iter().map(String::as_str).collect::<Vec<_>>());
        for (step, at) in &self.steps {
            if let Ok(Event::ClaimVerified(done)) = step {
                let result = &response.results[done.claim_index];
                prop_assert_eq!(done.assessment, result.assessment);
                prop_assert_eq!(&done.consensus_answer, &result.consensus_answer);
                prop_assert_eq!(&done.model_answers, &result.model_answers);
                prop_assert!(done.result.as_deref().is_none_or(|told| told == result));
                self.claim(result, *at)?;
            }
        }
        self.sums(response)
    }

    fn claim(&self, result: &ClaimResult, told: Instant) -> Held {
        // Only what the deadline cuts may lack votes that the listed answers would make.
        let may_be_cut = told >= self.began + self.plan.deadline
            && result.model_errors.iter().any(|error| error.code == "timeout");
        let is_cut = may_be_cut && result.reason_code == Some(ReasonCode::InsufficientAnswers);
        let given = (result.assessment, result.consensus_answer.clone(), result.reason_code);
        if is_cut {
            prop_assert!(result.consensus_answer.is_empty());
        } else {
            let (assessment, consensus, reason) = naive::verdict(result, self.plan.min_required as usize);
            prop_assert_eq!(given, (assessment, consensus, Some(reason)), "{:?}", result);
        }
        // The answers are what the models said, under the letters that they were not shown.
        for given in &result.model_answers {
            let choices = self.world.choices();
            let said = choices
                .iter()
                .find(|choice| choice.model == given.model && choice.question == result.original_question);
            let text = result.original_options[&given.answer].as_str().unwrap();
            prop_assert_eq!(said.map(|said| said.option.as_str()), Some(text));
            prop_assert_eq!(given.reason.is_some() && !self.plan.explain, false);
        }
        self.seats(result, is_cut)
    }

    /// Whoever failed was replaced while somebody stood by; nobody was asked twice.
    fn seats(&self, result: &ClaimResult, is_cut: bool) -> Held {
        let roster =
            [&names("panel", self.plan.panel)[..self.plan.total], &names("standby", self.plan.standby)];
        let roster: Vec<String> = roster.concat();
        let answered = result.model_answers.iter().map(|given| given.model.as_str());
        let failed = result.model_errors.iter().map(|error| error.model.as_str());
        let place = |model: &str| roster.iter().position(|known| known == model);
        for listed in [answered.clone().map(place).collect::<Vec<_>>(), failed.clone().map(place).collect()] {
            prop_assert!(listed.iter().all(Option::is_some) && listed.is_sorted(), "in panel order");
        }
        let mut seats: Vec<_> = answered.chain(failed).map(place).collect();
        seats.sort_unstable();
        let asked = seats.len();
        seats.dedup();
        prop_assert_eq!(seats.len(), asked, "nobody sits twice");
        let replaceable = result.model_errors.iter().filter(|error| error.code != "refused").count();
        let most = self.plan.total + replaceable.min(self.plan.standby);
        if is_cut {
            prop_assert!((self.plan.total..=most).contains(&asked));
        } else {
            prop_assert_eq!(asked, most);
        }
        Ok(())
    }

    fn sums(&self, response: &VerifyResponse) -> Held {
        let reports = self.world.reports();
        let sum = |holds: &dyn Fn(&Report) -> bool| {
            let tokens = |report: &Report| report.usage.total();
            reports.iter().filter(|report| holds(report)).map(tokens).sum::<u64>()
        };
        let usage = &response.token_usage;
        prop_assert_eq!(usage.total_tokens, sum(&|_| true));
        prop_assert_eq!(usage.prompt_tokens, reports.iter().map(|report| report.usage.prompt).sum::<u64>());
        prop_assert_eq!(usage.extraction_tokens, Some(sum(&|report| report.purpose == Purpose::Extraction)));
        prop_assert_eq!(
            usage.verification_tokens,
            Some(sum(&|report| report.purpose == Purpose::Verification))
        );
        let by_model = usage.model_usage.as_deref().unwrap_or_default();
        for of_model in by_model {
            prop_assert_eq!(of_model.total_tokens, sum(&|report| report.model == of_model.model));
        }
        prop_assert_eq!(usage.total_tokens, by_model.iter().map(|model| model.total_tokens).sum::<u64>());
        Ok(())
    }
}

/// How far a claim has been told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Not,
    Begun,
    Done,
}
