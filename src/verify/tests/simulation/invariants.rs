//! The invariants that must hold for a finished run.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;

use super::super::receipts;
use super::super::support::{is_terminal, name};
use super::models::{CallReport, SimulatedModels};
use super::{Plan, names, reference_vote};
use crate::api::verify::{ClaimResult, ClaimsExtracted, Event, ReasonCode, SkipReason, VerifyResponse};
use crate::storage::AttemptRow;
use crate::usage::Purpose;
use crate::verify::EventResult;

type CheckResult = Result<(), TestCaseError>;

/// A finished run.
pub(super) struct Run {
    pub(super) plan: Plan,
    /// The events that the reader took, and when.
    pub(super) events: Vec<(EventResult, Instant)>,
    pub(super) began: Instant,
    pub(super) ended: Instant,
    pub(super) rows: Vec<AttemptRow>,
    pub(super) models: Arc<SimulatedModels>,
}

impl Run {
    pub(super) fn check(&self) -> CheckResult {
        self.calls_end_with_the_run()?;
        self.ledger_matches_reports()?;
        self.events_are_in_order()?;
        let Some((last, _)) = self.events.last() else { return Ok(()) };
        match last {
            Ok(Event::Completed(response)) => self.check_response(response),
            Err(_) => self.error_is_justified(),
            _ => {
                prop_assert!(self.plan.reader.leaves.is_some(), "only a reader that leaves sees no end");
                Ok(())
            }
        }
    }

    fn calls_end_with_the_run(&self) -> CheckResult {
        prop_assert_eq!(self.models.open(), 0, "no call outlives the run");
        if self.plan.reader.pause.is_zero() && self.plan.reader.leaves.is_none() {
            prop_assert!(self.ended - self.began <= self.plan.deadline + Duration::from_millis(2));
        }
        Ok(())
    }

    /// The ledger has a row for each call, with the usage that the model reported. A cancelled call has timed out,
    /// unless the reader has left, as it is unknown which came first.
    fn ledger_matches_reports(&self) -> CheckResult {
        let has_left = self.plan.reader.leaves.is_some();
        let of_report = |report: &CallReport| {
            let usage = report.usage;
            let outcome = if report.outcome == "cancelled" { "timeout" } else { report.outcome };
            (report.model.clone(), outcome.to_owned(), usage.prompt, usage.completion)
        };
        let mut reported: Vec<_> = self.models.reports().iter().map(of_report).collect();
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

    fn events_are_in_order(&self) -> CheckResult {
        let order = ["starting", "extracting_claims", "claims_extracted", "verifying_claims"];
        let names: Vec<&str> = self.events.iter().map(|(event, _)| name(event)).collect();
        let is_over = |event: &(EventResult, Instant)| is_terminal(&event.0);
        prop_assert!(self.events.iter().rev().skip(1).all(|event| !is_over(event)), "{:?}", names);
        let beginning = names.iter().zip(order).take_while(|(name, _)| **name != "error");
        prop_assert!(beginning.clone().all(|(name, expected)| *name == expected), "{:?}", names);
        let mut progress =
            vec![Progress::NotStarted; self.claims_extracted().map_or(0, |extracted| extracted.count)];
        for (event, _) in self.events.iter().skip(order.len()) {
            match event {
                Ok(Event::VerifyingClaim(begun)) => {
                    prop_assert_eq!(progress[begun.claim_index], Progress::NotStarted);
                    prop_assert_eq!(
                        &begun.claim,
                        &self.claims_extracted().unwrap().claims[begun.claim_index]
                    );
                    progress[begun.claim_index] = Progress::Started;
                }
                Ok(Event::ClaimVerified(done)) => {
                    prop_assert_eq!(progress[done.claim_index], Progress::Started);
                    prop_assert_eq!(done.result.is_some(), self.plan.progress);
                    progress[done.claim_index] = Progress::Done;
                }
                Ok(Event::ModelAnswered(answered)) => {
                    prop_assert!(self.plan.progress && answered.answered <= answered.asked);
                    prop_assert_eq!(progress[answered.claim_index], Progress::Started);
                }
                Ok(Event::Completed(_)) => {
                    prop_assert!(progress.iter().all(|claim| *claim == Progress::Done));
                }
                Err(_) => prop_assert!(progress.iter().all(|claim| *claim == Progress::Started)),
                other => prop_assert!(false, "{} after the beginning", name(other)),
            }
        }
        Ok(())
    }

    fn claims_extracted(&self) -> Option<&ClaimsExtracted> {
        self.events.iter().find_map(|(event, _)| match event {
            Ok(Event::ClaimsExtracted(extracted)) => Some(extracted),
            _ => None,
        })
    }

    /// There is an error only if no model has given a valid answer in time.
    fn error_is_justified(&self) -> CheckResult {
        let deadline = self.began + self.plan.deadline;
        let is_answered = self.models.choices().iter().any(|choice| choice.at < deadline);
        let has_claims = self.claims_extracted().is_some_and(|extracted| extracted.count > 0);
        prop_assert!(self.claims_extracted().is_none() || (!is_answered && has_claims));
        Ok(())
    }

    fn check_response(&self, response: &VerifyResponse) -> CheckResult {
        receipts::check(response);
        let extracted = self.claims_extracted().unwrap();
        let expected = self.plan.claims.min(self.plan.max_claims);
        prop_assert_eq!(extracted.count, expected);
        let over = extracted.skipped.iter().filter(|part| part.reason == SkipReason::OverLimit).count();
        prop_assert_eq!(over, self.plan.claims - expected);
        // The response is what the events reported, folded.
        prop_assert_eq!(&response.skipped, &extracted.skipped);
        let texts: Vec<&str> = response.results.iter().map(|result| result.claim.as_str()).collect();
        prop_assert_eq!(texts, extracted.claims.iter().map(String::as_str).collect::<Vec<_>>());
        for (event, at) in &self.events {
            if let Ok(Event::ClaimVerified(done)) = event {
                let result = &response.results[done.claim_index];
                prop_assert_eq!(done.assessment, result.assessment);
                prop_assert_eq!(&done.consensus_answer, &result.consensus_answer);
                prop_assert_eq!(&done.model_answers, &result.model_answers);
                prop_assert!(done.result.as_deref().is_none_or(|reported| reported == result));
                self.check_claim(result, *at)?;
            }
        }
        self.check_usage(response)
    }

    fn check_claim(&self, result: &ClaimResult, reported_at: Instant) -> CheckResult {
        // Only claims that the deadline cut off may differ from the vote of the listed answers, and only while the
        // models that had not answered could change it.
        let may_be_cut = reported_at >= self.began + self.plan.deadline
            && result
                .model_errors
                .iter()
                .any(|error| ["timeout", "rate_limited"].contains(&error.code.as_str()));
        let is_cut = may_be_cut && result.reason_code == Some(ReasonCode::InsufficientAnswers);
        let actual = (result.assessment, result.consensus_answer.clone(), result.reason_code);
        if is_cut {
            prop_assert!(result.consensus_answer.is_empty());
        } else {
            let (assessment, consensus, reason) =
                reference_vote::verdict(result, self.plan.min_required as usize);
            prop_assert_eq!(actual, (assessment, consensus, Some(reason)), "{:?}", result);
        }
        // The answers are what the models chose, under the letters of the original order, which they were not shown.
        for answer in &result.model_answers {
            let choices = self.models.choices();
            let choice = choices
                .iter()
                .find(|choice| choice.model == answer.model && choice.question == result.original_question);
            let text = result.original_options[&answer.answer].as_str().unwrap();
            prop_assert_eq!(choice.map(|choice| choice.option.as_str()), Some(text));
            prop_assert_eq!(answer.reason.is_some() && !self.plan.explain, false);
        }
        self.check_seats(result, may_be_cut)
    }

    /// Failed models were replaced while there was a standby model; none was asked twice.
    fn check_seats(&self, result: &ClaimResult, is_cut: bool) -> CheckResult {
        let roster =
            [&names("panel", self.plan.panel)[..self.plan.total], &names("standby", self.plan.standby)];
        let roster: Vec<String> = roster.concat();
        let answered = result.model_answers.iter().map(|answer| answer.model.as_str());
        let failed = result.model_errors.iter().map(|error| error.model.as_str());
        let seat = |model: &str| roster.iter().position(|known| known == model);
        for listed in [answered.clone().map(seat).collect::<Vec<_>>(), failed.clone().map(seat).collect()] {
            prop_assert!(listed.iter().all(Option::is_some) && listed.is_sorted(), "in panel order");
        }
        let mut seats: Vec<_> = answered.chain(failed).map(seat).collect();
        seats.sort_unstable();
        let asked = seats.len();
        seats.dedup();
        prop_assert_eq!(seats.len(), asked, "no model has two seats");
        let replaceable = result.model_errors.iter().filter(|error| error.code != "refused").count();
        let max_asked = self.plan.total + replaceable.min(self.plan.standby);
        if is_cut {
            prop_assert!((self.plan.total..=max_asked).contains(&asked));
        } else {
            prop_assert_eq!(asked, max_asked);
        }
        Ok(())
    }

    fn check_usage(&self, response: &VerifyResponse) -> CheckResult {
        let reports = self.models.reports();
        let sum = |matches: &dyn Fn(&CallReport) -> bool| {
            let tokens = |report: &CallReport| report.usage.total();
            reports.iter().filter(|report| matches(report)).map(tokens).sum::<u64>()
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
        for model in by_model {
            prop_assert_eq!(model.total_tokens, sum(&|report| report.model == model.model));
        }
        prop_assert_eq!(usage.total_tokens, by_model.iter().map(|model| model.total_tokens).sum::<u64>());
        Ok(())
    }
}

/// How far the events about a claim have got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    NotStarted,
    Started,
    Done,
}
