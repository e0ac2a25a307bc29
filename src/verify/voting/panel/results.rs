//! What is known of each claim: the ballots, and which results were reported.
//!
//! Nothing is reported of a claim until the extraction has listed it, nor of any claim until a model has answered one:
//! a verification without any answer ends in an error, with no results before it.

use std::collections::HashMap;
use std::sync::Arc;

use tracing::warn;

use super::{Asked, CallOutcome, Panel};
use crate::api::error_code::DEFAULT_RETRY_AFTER;
use crate::api::verify::{ClaimResult, ClaimVerified, ModelAnswered, VerifyingClaim, VerifyingClaims};
use crate::inference::Failure;
use crate::model_id;
use crate::verify::Event;
use crate::verify::claim::Claim;
use crate::verify::error::Error;
use crate::verify::extraction::{Change, Found};
use crate::verify::model_calls::outbox::Outbox;
use crate::verify::model_calls::pacing;
use crate::verify::voting::ballot::{Ballot, Next};

/// The ballots of all claims, and the results reported so far.
pub(super) struct PanelResults<'a> {
    panel: &'a Panel<'a>,
    /// All claims that were asked about, in the order in which that began.
    pub(super) asked: Vec<Arc<Asked>>,
    /// Parallel to `asked`.
    ballots: Vec<Ballot<'a>>,
    /// Parallel to `asked`: the claims' positions in the list, once there is one.
    positions: Vec<Option<usize>>,
    /// By position in the list: the claims, as the extraction leaves them.
    claims: Vec<Arc<Claim>>,
    /// By position in the list. Boxed, as most of the time there is none.
    results: Vec<Option<Box<ClaimResult>>>,
    /// Claims that are settled but not reported, by their order in `asked`: nothing is until there is a list, and no
    /// model has answered any claim yet: they are reported after the first answer, or never, as a verification without
    /// any answer ends in an error.
    unreported: Vec<usize>,
    /// How many listed claims are settled.
    settled: usize,
    /// How many votes models have given that had limited their rate before.
    pub(super) answers_of_limited: usize,
}

impl<'a> PanelResults<'a> {
    pub(super) const fn new(panel: &'a Panel<'a>) -> Self {
        Self {
            panel,
            asked: Vec::new(),
            ballots: Vec::new(),
            positions: Vec::new(),
            claims: Vec::new(),
            results: Vec::new(),
            unreported: Vec::new(),
            settled: 0,
            answers_of_limited: 0,
        }
    }

    /// Whether all claims of the list are settled.
    pub(super) const fn are_settled(&self) -> bool {
        self.settled == self.results.len()
    }

    /// Follows the extraction. Returns the claim that is to be asked about, if it is a new one.
    pub(super) fn change(&mut self, change: Change) -> Option<usize> {
        match change {
            Change::Ask(claim) => Some(self.add(claim, Ballot::new(self.panel.roster))),
            Change::Known(claim, answers) => {
                self.add(claim, Ballot::cached(self.panel.roster, answers));
                None
            }
            Change::Withdraw(id) => {
                self.asked.iter().filter(|asked| asked.claim.id == id).for_each(|asked| asked.give_up());
                None
            }
        }
    }

    fn add(&mut self, claim: Arc<Claim>, ballot: Ballot<'a>) -> usize {
        if self.asked.is_empty() {
            // A vector that grows by itself begins with room for four, and thousands of single claims may wait.
            self.asked.reserve_exact(1);
            self.ballots.reserve_exact(1);
            self.positions.reserve_exact(1);
        }
        self.asked.push(Arc::new(Asked::new(claim, self.panel.calls.meter.span("claim"))));
        self.ballots.push(ballot);
        self.positions.push(None);
        self.asked.len() - 1
    }

    /// Takes the claims out of what the extraction found, lists them, and reports what is known of them already.
    /// Returns those that are still to be asked about.
    pub(super) fn list(&mut self, found: &mut Found, outbox: &mut Outbox<'_>) -> Vec<usize> {
        let job = self.panel.job;
        outbox.push(Event::ClaimsExtracted(found.listed(job)));
        let claims = std::mem::take(&mut found.claims);
        self.results = vec![None; claims.len()];
        let models = if job.model_progress {
            self.panel.roster.models().map(str::to_owned).collect()
        } else {
            Vec::new()
        };
        outbox.push(Event::VerifyingClaims(VerifyingClaims { total_claims: claims.len(), models }));
        let asked = self.asked.iter().enumerate().filter(|(_, asked)| !asked.is_given_up());
        let known: HashMap<String, usize> = asked.map(|(at, asked)| (asked.claim.id.clone(), at)).collect();
        let mut new = Vec::new();
        self.claims.reserve_exact(claims.len());
        for (position, claim) in claims.into_iter().enumerate() {
            outbox.push(Event::VerifyingClaim(VerifyingClaim {
                claim_index: position,
                claim: claim.text.clone(),
            }));
            let asked = known.get(&claim.id).copied();
            let same = asked.map(|at| self.asked[at].claim.clone()).filter(|asked| **asked == claim);
            let claim = same.unwrap_or_else(|| Arc::new(claim));
            self.claims.push(claim.clone());
            let at = asked.unwrap_or_else(|| {
                let at = self.add(claim, Ballot::new(self.panel.roster));
                new.push(at);
                at
            });
            self.positions[at] = Some(position);
        }
        for (asked, position) in self.asked.iter().zip(&self.positions) {
            if position.is_none() {
                asked.give_up();
            }
        }
        for at in 0..self.asked.len() {
            let Some(position) = self.positions[at] else { continue };
            let (ballot, asked) = (&self.ballots[at], self.ballots[at].asked());
            if job.model_progress && !ballot.is_cached() {
                for (done, model) in ballot.done_models().enumerate() {
                    outbox.push(Event::ModelAnswered(ModelAnswered {
                        claim_index: position,
                        model: model.to_owned(),
                        answered: done + 1,
                        asked,
                    }));
                }
            }
            if ballot.is_settled() {
                self.settle(at, outbox);
            }
        }
        new
    }

    /// Records the outcome of a call. Returns who is to be asked next.
    pub(super) fn record(&mut self, outcome: CallOutcome, outbox: &mut Outbox<'_>) -> Next {
        let CallOutcome { claim: at, seat, answer } = outcome;
        let Some(ballot) = self.ballots.get_mut(at) else { return Next::Nobody };
        let answer = answer.map_err(pacing::reported);
        let code = answer.as_ref().err().map(Failure::code);
        self.answers_of_limited += usize::from(code.is_none() && ballot.is_limited(seat));
        let next = ballot.record(seat, answer);
        if next == Next::Again {
            return next;
        }
        let model = self.panel.roster.model(seat).unwrap_or_default();
        if let (Some(code), Some(asked)) = (code, self.asked.get(at)) {
            let claim = &asked.claim.id;
            warn!(verification = %self.panel.job.id, claim = %claim, model, code, "no answer");
        }
        let Some(position) = self.positions[at] else { return next };
        if self.panel.job.model_progress {
            outbox.push(Event::ModelAnswered(ModelAnswered {
                claim_index: position,
                model: model.to_owned(),
                answered: ballot.done(),
                asked: ballot.asked(),
            }));
        }
        if ballot.is_settled() {
            self.settle(at, outbox);
        } else {
            self.report(outbox);
        }
        next
    }

    /// Settles a listed claim for which only models that limit their rate are waited for, if they can no longer change
    /// the outcome.
    pub(super) fn give_up(&mut self, at: usize, outbox: &mut Outbox<'_>) {
        let Some(position) = self.positions[at] else { return };
        if self.ballots[at].give_up_limited(&self.claims[position], self.panel.job.min_required) {
            self.asked[at].give_up();
            self.settle(at, outbox);
        }
    }

    fn settle(&mut self, at: usize, outbox: &mut Outbox<'_>) {
        self.settled += 1;
        self.unreported.push(at);
        self.report(outbox);
    }

    /// Settles the claims that the deadline left open. An error if no model has answered any claim.
    pub(super) fn finish(mut self, outbox: &mut Outbox<'_>) -> Result<Vec<ClaimResult>, Error> {
        for (at, ballot) in self.ballots.iter_mut().enumerate() {
            let Some(position) = self.positions[at] else { continue };
            if self.results[position].is_none() && !self.unreported.contains(&at) {
                ballot.cut_off(|model| self.panel.calls.pacing.turn(model).time_left());
                if let Some(recorder) = self.panel.calls.recorder {
                    recorder.cut_off(&self.claims[position], ballot.outstanding());
                }
                self.unreported.push(at);
            }
        }
        self.report(outbox);
        if self.unreported.is_empty() {
            return Ok(self.results.into_iter().flatten().map(|result| *result).collect());
        }
        let failure = most_frequent_failure(self.ballots.iter().flat_map(Ballot::failures));
        Err(failure.map_or(Error::Unconfigured, |(failure, provider)| Error::NoAnswers { failure, provider }))
    }

    /// Reports settled claims, once any model has answered any claim.
    fn report(&mut self, outbox: &mut Outbox<'_>) {
        let mut listed = self.ballots.iter().zip(&self.positions);
        if !listed.any(|(ballot, position)| position.is_some() && ballot.has_answers()) {
            return;
        }
        for at in self.unreported.drain(..) {
            let Some(position) = self.positions[at] else { continue };
            let result = Box::new(self.ballots[at].result(&self.claims[position], self.panel.job));
            outbox.push(Event::ClaimVerified(ClaimVerified {
                claim_index: position,
                assessment: result.assessment,
                consensus_answer: result.consensus_answer.clone(),
                model_answers: result.model_answers.clone(),
                result: self.panel.job.model_progress.then(|| result.clone()),
            }));
            self.asked[at].end_span(result.assessment.as_str());
            self.results[position] = Some(result);
        }
    }
}

/// The most frequent kind of failure, and of that kind the one with the shortest wait before a retry; with the
/// provider, if only models of a single one failed like that.
fn most_frequent_failure<'f>(
    failures: impl Iterator<Item = (&'f str, &'f Failure)>,
) -> Option<(Failure, Option<String>)> {
    let all: Vec<(&str, &Failure)> = failures.collect();
    let count = |code: &str| all.iter().filter(|(_, failure)| failure.code() == code).count();
    let (_, most_frequent) = all.iter().rev().max_by_key(|(_, failure)| count(failure.code()))?;
    let alike = || all.iter().filter(|(_, failure)| failure.code() == most_frequent.code());
    let (model, first) =
        alike().min_by_key(|(_, failure)| failure.retry_after().unwrap_or(DEFAULT_RETRY_AFTER))?;
    let provider = model_id::provider(model);
    let is_single = alike().all(|(model, _)| model_id::provider(model) == provider);
    Some(((*first).clone(), is_single.then(|| provider.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_failure_is_reported() {
        let failures = [Failure::Timeout, Failure::Unauthorized, Failure::Malformed, Failure::Unauthorized];
        let reported = |models: &[&'static str]| most_frequent_failure(models.iter().copied().zip(&failures));
        let one = Some("a".to_owned());
        assert_eq!(reported(&["a/1", "a/2", "b/1", "a/3"]), Some((Failure::Unauthorized, one.clone())));
        assert_eq!(reported(&["a/1", "a/2", "a/1", "b/3"]), Some((Failure::Unauthorized, None)));
        assert_eq!(reported(&["a/1", "b/1"]), Some((Failure::Timeout, one)));
        assert_eq!(reported(&[]), None);
    }
}
