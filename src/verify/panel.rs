//! The blind panel: asks every model about every claim, all concurrently, and processes answers as they arrive.
//!
//! Options are shuffled for each claim and model, and answers mapped back, so that a model's preference for a letter
//! cannot produce a consensus. That includes "None of these", which is a vote. Only "Cannot be determined" keeps its
//! place at the end: a preference for the last letter merely produces abstentions. The order is derived from the ids,
//! so that a verification can be reproduced.
//!
//! One loop owns all state. It emits events without waiting for a slow reader, because open calls hold permits that
//! other verifications wait for.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sha2::{Digest, Sha256};
use tokio::time::sleep;
use tracing::warn;

use super::answer::read_answer;
use super::ballot::{Ballot, Next, PanelAnswer, Roster};
use super::calls::{Calls, IfLimited, from_now};
use super::claims::Claim;
use super::error::Error;
use super::outbox::Outbox;
use super::pacing;
use super::prompts::{self, Fences};
use super::{Event, Job};
use crate::api::verify::{ClaimResult, ClaimVerified, ModelAnswered, VerifyingClaim};
use crate::inference::{Chat, DEFAULT_RETRY_AFTER, Failure};
use crate::model_id;
use crate::usage::Purpose;

/// A panel at work on the claims of one verification.
pub(super) struct Panel<'a> {
    pub(super) calls: &'a Calls<'a>,
    pub(super) job: &'a Job,
    pub(super) fences: &'a Fences,
    pub(super) roster: &'a Roster<'a>,
    pub(super) claims: &'a [Claim],
    /// By claim: whether models that limit their rate are no longer waited for, as they could not change the outcome.
    pub(super) given_up: Vec<AtomicBool>,
}

/// The outcome of one call, with the positions of its claim and seat.
struct CallOutcome {
    claim: usize,
    seat: usize,
    answer: Result<PanelAnswer, Failure>,
}

impl Panel<'_> {
    /// Asks about all claims until each is settled or the deadline passes. The results are in the order of the claims.
    ///
    /// A model that limits its rate is waited for until the deadline if it can still change the outcome of the claim.
    /// Otherwise it is given up once no such model has answered for as long as any call may take.
    pub(super) async fn run(
        &self,
        outbox: &mut Outbox<'_>,
        mut deadline: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Vec<ClaimResult>, Error> {
        let mut results = PanelResults::new(self);
        let mut patience = pin!(sleep(self.calls.model_timeout));
        let (mut is_patient, mut answers) = (true, 0);
        let mut open = FuturesUnordered::new();
        for (at, claim) in self.claims.iter().enumerate() {
            outbox.push(Event::VerifyingClaim(VerifyingClaim { claim_index: at, claim: claim.text.clone() }));
            open.extend((0..self.roster.panel_size()).map(|seat| self.ask(at, seat, IfLimited::Fail)));
        }
        while !results.are_settled() {
            tokio::select! {
                biased;
                () = &mut deadline => break,
                () = outbox.flush(), if !outbox.is_empty() => {}
                () = &mut patience, if is_patient => {
                    is_patient = false;
                    (0..self.claims.len()).for_each(|claim| results.give_up(claim, outbox));
                }
                outcome = open.next() => {
                    let Some(outcome) = outcome else { break };
                    let (claim, seat) = (outcome.claim, outcome.seat);
                    if self.has_given_up(claim) {
                        continue;
                    }
                    let again = matches!(outcome.answer, Err(Failure::RateLimited { .. }));
                    let code = outcome.answer.as_ref().err().map_or("", Failure::code);
                    let next = results.record(outcome, outbox);
                    if results.answers_of_limited > answers {
                        (is_patient, answers) = (true, results.answers_of_limited);
                        patience.as_mut().reset(from_now(self.calls.model_timeout));
                    }
                    if !is_patient {
                        results.give_up(claim, outbox);
                    }
                    match next {
                        Next::Nobody => {}
                        Next::Again if self.has_given_up(claim) => {}
                        Next::Again => open.push(self.ask(claim, seat, IfLimited::Wait { again })),
                        Next::Standby(next) => {
                            if let (Some(model), Some(standby)) = (self.roster.model(seat), self.roster.model(next)) {
                                self.calls.meter.count_fallback(model, code, standby);
                            }
                            open.push(self.ask(claim, next, IfLimited::Fail));
                        }
                    }
                }
            }
        }
        // Calls that are still open are cancelled and booked before anything is summed up.
        drop(open);
        results.finish(outbox)
    }

    #[expect(clippy::manual_async_fn, reason = "an async fn would store its arguments twice while it waits")]
    fn ask(&self, at: usize, seat: usize, if_limited: IfLimited) -> impl Future<Output = CallOutcome> {
        async move {
            let Some(vote) = self.vote(at, seat) else {
                return CallOutcome { claim: at, seat, answer: Err(Failure::UnknownModel) };
            };
            let (prompt, read) = (|| vote.prompt(), |answer: &str| vote.read(answer));
            let answer =
                self.calls.structured(vote.model, Purpose::Verification, if_limited, prompt, read).await;
            CallOutcome { claim: at, seat, answer }
        }
    }

    fn has_given_up(&self, claim: usize) -> bool {
        self.given_up.get(claim).is_some_and(|given_up| given_up.load(Ordering::Relaxed))
    }

    fn vote(&self, at: usize, seat: usize) -> Option<Vote<'_>> {
        let (claim, model) = (self.claims.get(at)?, self.roster.model(seat)?);
        let order = option_order(&self.job.id, claim, model).into_boxed_slice();
        Some(Vote { panel: self, claim, given_up: self.given_up.get(at)?, model, order })
    }
}

/// One model's vote on one claim.
struct Vote<'a> {
    panel: &'a Panel<'a>,
    claim: &'a Claim,
    given_up: &'a AtomicBool,
    model: &'a str,
    /// The order in which the model is shown the options.
    order: Box<[usize]>,
}

impl Vote<'_> {
    /// `None` once the vote is no longer needed.
    fn prompt(&self) -> Option<Chat> {
        let is_needed = !self.given_up.load(Ordering::Relaxed);
        is_needed
            .then(|| prompts::panel(self.panel.job, self.panel.fences, self.claim, self.model, &self.order))
    }

    fn read(&self, answer: &str) -> Result<PanelAnswer, String> {
        read_answer(answer, self.claim.options(), &self.order, self.panel.job.explain)
    }
}

/// The ballots of all claims, and the results reported so far.
struct PanelResults<'a> {
    panel: &'a Panel<'a>,
    ballots: Vec<Ballot<'a>>,
    results: Vec<Option<ClaimResult>>,
    /// Claims that are settled but not reported, as no model has answered any claim yet: they are reported after the
    /// first answer, or never, as a verification without any answer ends in an error.
    unreported: Vec<usize>,
    /// How many claims are settled.
    settled: usize,
    /// How many votes models have given that had limited their rate before.
    answers_of_limited: usize,
}

impl<'a> PanelResults<'a> {
    fn new(panel: &'a Panel<'a>) -> Self {
        Self {
            panel,
            ballots: panel.claims.iter().map(|_| Ballot::new(panel.roster)).collect(),
            results: vec![None; panel.claims.len()],
            unreported: Vec::new(),
            settled: 0,
            answers_of_limited: 0,
        }
    }

    const fn are_settled(&self) -> bool {
        self.settled == self.ballots.len()
    }

    /// Records the outcome of a call. Returns who is to be asked next.
    fn record(&mut self, outcome: CallOutcome, outbox: &mut Outbox<'_>) -> Next {
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
        if let (Some(code), Some(claim)) = (code, self.panel.claims.get(at)) {
            warn!(verification = %self.panel.job.id, claim = %claim.id, model, code, "no answer");
        }
        if self.panel.job.model_progress {
            outbox.push(Event::ModelAnswered(ModelAnswered {
                claim_index: at,
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

    /// Settles a claim for which only models that limit their rate are waited for, if they can no longer change the
    /// outcome.
    fn give_up(&mut self, at: usize, outbox: &mut Outbox<'_>) {
        let (Some(ballot), Some(claim)) = (self.ballots.get_mut(at), self.panel.claims.get(at)) else {
            return;
        };
        if ballot.give_up_limited(claim, self.panel.job.min_required) {
            self.panel.given_up[at].store(true, Ordering::Relaxed);
            self.settle(at, outbox);
        }
    }

    fn settle(&mut self, at: usize, outbox: &mut Outbox<'_>) {
        self.settled += 1;
        self.unreported.push(at);
        self.report(outbox);
    }

    /// Settles the claims that the deadline left open. An error if no model has answered any claim.
    fn finish(mut self, outbox: &mut Outbox<'_>) -> Result<Vec<ClaimResult>, Error> {
        for (at, ballot) in self.ballots.iter_mut().enumerate() {
            if self.results[at].is_none() && !self.unreported.contains(&at) {
                ballot.cut_off(|model| self.panel.calls.pacing.turn(model).time_left());
                self.unreported.push(at);
            }
        }
        self.report(outbox);
        if self.unreported.is_empty() {
            return Ok(self.results.into_iter().flatten().collect());
        }
        let failure = most_frequent_failure(self.ballots.iter().flat_map(Ballot::failures));
        Err(failure.map_or(Error::Unconfigured, |(failure, provider)| Error::NoAnswers { failure, provider }))
    }

    /// Reports settled claims, once any model has answered any claim.
    fn report(&mut self, outbox: &mut Outbox<'_>) {
        if !self.ballots.iter().any(Ballot::has_answers) {
            return;
        }
        for at in self.unreported.drain(..) {
            let (Some(ballot), Some(claim)) = (self.ballots.get(at), self.panel.claims.get(at)) else {
                continue;
            };
            let result = ballot.result(claim, self.panel.job.min_required);
            outbox.push(Event::ClaimVerified(ClaimVerified {
                claim_index: at,
                assessment: result.assessment,
                consensus_answer: result.consensus_answer.clone(),
                model_answers: result.model_answers.clone(),
                result: self.panel.job.model_progress.then(|| Box::new(result.clone())),
            }));
            self.results[at] = Some(result);
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

/// The order in which a model is shown a claim's options, as positions in the claim's own order. `SHA-256` of the
/// ids drives a Fisher–Yates shuffle: its eight draws of 32 bits suffice for the seven options that move, and their
/// bias (below 2⁻²⁹) is negligible.
fn option_order(request: &str, claim: &Claim, model: &str) -> Vec<usize> {
    let seed = Sha256::digest(format!("{request}\n{}\n{model}", claim.id));
    let mut order: Vec<usize> = (0..claim.options().len()).collect();
    for (draw, last) in seed.chunks_exact(4).zip((1..claim.undetermined()).rev()) {
        let random = draw.iter().fold(0_usize, |number, &byte| (number << 8) | usize::from(byte));
        order.swap(last, random % (last + 1));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn claim(rivals: usize) -> Claim {
        let rivals = (0..rivals).map(|n| format!("rival {n}")).collect();
        Claim::new(0, "claim".to_owned(), "question".to_owned(), "claimed".to_owned(), rivals)
    }

    #[test]
    fn every_voting_option_is_shown_under_every_letter_about_equally_often() {
        let claim = claim(3);
        let mut counts = [[0_u32; 5]; 5];
        for n in 0..5_000 {
            let order = option_order(&format!("ver_{n}"), &claim, "a/b");
            assert_eq!(order[5], claim.undetermined());
            (0..5).for_each(|at| counts[order[at]][at] += 1);
        }
        assert!(counts.as_flattened().iter().all(|count| (900..1_100).contains(count)), "{counts:?}");
    }

    /// The set of open calls adds 72 bytes; together they must fit into the allocator's size class of 512.
    #[test]
    fn the_future_of_a_vote_is_small() {
        fn size<'a, F>(_: impl FnOnce(&'a Panel<'a>, usize, usize, IfLimited) -> F) -> usize {
            size_of::<F>()
        }
        let size = size(Panel::ask) + 72;
        assert!(size <= 512, "{size}");
    }

    #[test]
    fn the_order_depends_on_request_and_model_and_can_be_reproduced() {
        let claim = claim(5);
        let shown = |request: &str, model: &str| option_order(request, &claim, model);
        assert_eq!(shown("ver_1", "a/b"), shown("ver_1", "a/b"));
        assert_ne!(shown("ver_1", "a/b"), shown("ver_2", "a/b"));
        assert_ne!(shown("ver_1", "a/b"), shown("ver_1", "a/c"));
    }

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

    proptest! {
        #[test]
        fn an_order_is_a_permutation(request in any::<String>(), model in any::<String>(), rivals in 1_usize..6) {
            let claim = claim(rivals);
            let mut order = option_order(&request, &claim, &model);
            order.sort_unstable();
            prop_assert_eq!(order, (0..rivals + 3).collect::<Vec<_>>());
        }
    }
}
