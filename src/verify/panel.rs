//! The blind panel: asks every model about every claim, all concurrently, and processes answers as they arrive.
//!
//! Options are shuffled for each claim and model, and answers mapped back, so that a model's preference for a letter
//! cannot produce a consensus. That includes "None of these", which is a vote. Only "Cannot be determined" keeps its
//! place at the end: a preference for the last letter merely produces abstentions. The order is derived from the ids,
//! so that a verification can be reproduced.
//!
//! Claims come from a [`Feed`](super::extraction::Feed) while the extraction goes on, and are asked about at once.
//! Nothing is reported of them until the extraction is done; then those that were taken back are forgotten, and the
//! others are listed in the order of the text.
//!
//! One loop owns all state. It emits events without waiting for a slow reader, because open calls hold permits that
//! other verifications wait for.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;
use tracing::warn;

use super::answer::read_vote;
use super::ballot::{Ballot, Next, PanelAnswer, Roster};
use super::calls::{Calls, IfLimited, from_now};
use super::claim::Claim;
use super::error::Error;
use super::extraction::{Change, Found};
use super::outbox::Outbox;
use super::pacing;
use super::prompts::{self, Fences};
use super::{Event, Job};
use crate::api::verify::{ClaimResult, ClaimVerified, ModelAnswered, VerifyingClaim, VerifyingClaims};
use crate::inference::{Answer, Chat, DEFAULT_RETRY_AFTER, Failure, Finish};
use crate::model_id;
use crate::usage::Purpose;

/// A panel at work on the claims of one verification.
pub(super) struct Panel<'a> {
    pub(super) calls: &'a Calls<'a>,
    pub(super) job: &'a Job,
    pub(super) fences: &'a Fences,
    pub(super) roster: &'a Roster<'a>,
}

/// A claim that is asked about.
struct Asked {
    claim: Claim,
    /// Whether its votes are no longer needed: it was taken back, or those still to come could not change the outcome.
    given_up: AtomicBool,
}

impl Asked {
    fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }
}

/// The outcome of one call, with the positions of its claim and seat.
struct CallOutcome {
    claim: usize,
    seat: usize,
    answer: Result<PanelAnswer, Failure>,
}

/// Where the claims come from.
pub(super) struct Source<'a> {
    /// Boxed, and dropped when it is done, as the panel, for which most of a run waits, needs less memory.
    pub(super) extraction: BoxFuture<'a, Result<Found, Error>>,
    /// What the extraction tells before.
    pub(super) changes: UnboundedReceiver<Change>,
}

impl Panel<'_> {
    /// Asks about all claims until each is settled or the deadline passes. The results are in the order of the claims;
    /// with them comes what else the extraction found.
    ///
    /// A model that limits its rate is waited for until the deadline if it can still change the outcome of the claim.
    /// Otherwise it is given up once no such model has answered for as long as any call may take.
    pub(super) async fn run(
        &self,
        source: Source<'_>,
        outbox: &mut Outbox<'_>,
        mut deadline: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<(Vec<ClaimResult>, Found), Error> {
        let Source { extraction, mut changes } = source;
        let (mut extraction, mut found) = (Some(extraction), Found::default());
        let mut results = PanelResults::new(self);
        let mut patience = pin!(sleep(self.calls.model_timeout));
        let (mut is_patient, mut answers) = (true, 0);
        let mut open = FuturesUnordered::new();
        let ask = |claim: &Arc<Asked>, at: usize| {
            (0..self.roster.panel_size()).map(move |seat| (claim.clone(), at, seat)).collect::<Vec<_>>()
        };
        while extraction.is_some() || !results.are_settled() {
            tokio::select! {
                biased;
                () = &mut deadline => {
                    if extraction.is_some() {
                        return Err(Error::Deadline);
                    }
                    break;
                }
                () = outbox.flush(), if !outbox.is_empty() => {}
                Some(change) = changes.recv(), if extraction.is_some() => {
                    if let Some(at) = results.change(change) {
                        let calls = ask(&results.asked[at], at);
                        open.extend(calls.into_iter().map(|(claim, at, seat)| self.ask(claim, at, seat, IfLimited::Fail)));
                    }
                }
                end = done(&mut extraction), if extraction.is_some() => {
                    extraction = None;
                    found = end?;
                    while let Ok(change) = changes.try_recv() {
                        if let Some(at) = results.change(change) {
                            let calls = ask(&results.asked[at], at);
                            open.extend(calls.into_iter().map(|(claim, at, seat)| self.ask(claim, at, seat, IfLimited::Fail)));
                        }
                    }
                    for at in results.list(&mut found, outbox) {
                        let calls = ask(&results.asked[at], at);
                        open.extend(calls.into_iter().map(|(claim, at, seat)| self.ask(claim, at, seat, IfLimited::Fail)));
                    }
                    is_patient = true;
                    patience.as_mut().reset(from_now(self.calls.model_timeout));
                }
                () = &mut patience, if is_patient => {
                    is_patient = false;
                    (0..results.asked.len()).for_each(|claim| results.give_up(claim, outbox));
                }
                Some(outcome) = open.next(), if !open.is_empty() => {
                    let (claim, seat) = (outcome.claim, outcome.seat);
                    let asked = results.asked[claim].clone();
                    if asked.is_given_up() {
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
                        Next::Again if asked.is_given_up() => {}
                        Next::Again => open.push(self.ask(asked, claim, seat, IfLimited::Wait { again })),
                        Next::Standby(next) => {
                            if let (Some(model), Some(standby)) = (self.roster.model(seat), self.roster.model(next)) {
                                self.calls.meter.count_fallback(model, code, standby);
                            }
                            open.push(self.ask(asked, claim, next, IfLimited::Fail));
                        }
                    }
                }
            }
        }
        // Calls that are still open are cancelled and booked before anything is summed up.
        drop(open);
        Ok((results.finish(outbox)?, found))
    }

    #[expect(clippy::manual_async_fn, reason = "an async fn would store its arguments twice while it waits")]
    fn ask(
        &self,
        asked: Arc<Asked>,
        at: usize,
        seat: usize,
        if_limited: IfLimited,
    ) -> impl Future<Output = CallOutcome> {
        async move {
            let Some(model) = self.roster.model(seat) else {
                return CallOutcome { claim: at, seat, answer: Err(Failure::UnknownModel) };
            };
            let order = option_order(&self.job.id, &asked.claim, model).into_boxed_slice();
            let vote = Vote { panel: self, asked, order };
            let (prompt, read) = (|| vote.prompt(), |answer: &Answer| vote.read(answer, model));
            let answer = self.calls.structured(model, Purpose::Verification, if_limited, prompt, read).await;
            CallOutcome { claim: at, seat, answer }
        }
    }
}

/// Waits for the end of the extraction.
async fn done(extraction: &mut Option<BoxFuture<'_, Result<Found, Error>>>) -> Result<Found, Error> {
    match extraction {
        Some(extraction) => extraction.await,
        None => std::future::pending().await,
    }
}

/// One model's vote on one claim.
struct Vote<'a> {
    panel: &'a Panel<'a>,
    asked: Arc<Asked>,
    /// The order in which the model is shown the options.
    order: Box<[usize]>,
}

impl Vote<'_> {
    /// `None` once the vote is no longer needed.
    fn prompt(&self) -> Option<Chat> {
        let is_needed = !self.asked.is_given_up();
        is_needed.then(|| prompts::panel(self.panel.job, self.panel.fences, &self.asked.claim, &self.order))
    }

    fn read(&self, answer: &Answer, model: &str) -> Result<PanelAnswer, String> {
        let claim = &self.asked.claim;
        if let Some(recorder) = self.panel.calls.recorder {
            recorder.vote(claim, model, &self.order, answer);
        }
        let is_cut_off = answer.finish == Finish::Length;
        read_vote(&answer.text, is_cut_off, claim.options(), &self.order, self.panel.job.explain)
    }
}

/// The ballots of all claims, and the results reported so far.
struct PanelResults<'a> {
    panel: &'a Panel<'a>,
    /// All claims that were asked about, in the order in which that began.
    asked: Vec<Arc<Asked>>,
    /// Parallel to `asked`.
    ballots: Vec<Ballot<'a>>,
    /// Parallel to `asked`: the claims' positions in the list, once there is one.
    positions: Vec<Option<usize>>,
    /// By position in the list: the claims, as the extraction leaves them.
    claims: Vec<Claim>,
    /// By position in the list.
    results: Vec<Option<ClaimResult>>,
    /// Claims that are settled but not reported, by their order in `asked`: nothing is until there is a list, and no
    /// model has answered any claim yet: they are reported after the first answer, or never, as a verification without
    /// any answer ends in an error.
    unreported: Vec<usize>,
    /// How many listed claims are settled.
    settled: usize,
    /// How many votes models have given that had limited their rate before.
    answers_of_limited: usize,
}

impl<'a> PanelResults<'a> {
    const fn new(panel: &'a Panel<'a>) -> Self {
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
    const fn are_settled(&self) -> bool {
        self.settled == self.results.len()
    }

    /// Follows the extraction. Returns the claim that is to be asked about, if it is a new one.
    fn change(&mut self, change: Change) -> Option<usize> {
        match change {
            Change::Ask(claim) => Some(self.add(*claim, Ballot::new(self.panel.roster))),
            Change::Known(claim, answers) => {
                self.add(*claim, Ballot::cached(self.panel.roster, answers));
                None
            }
            Change::Withdraw(id) => {
                self.asked.iter().filter(|asked| asked.claim.id == id).for_each(|asked| asked.give_up());
                None
            }
        }
    }

    fn add(&mut self, claim: Claim, ballot: Ballot<'a>) -> usize {
        self.asked.push(Arc::new(Asked { claim, given_up: AtomicBool::new(false) }));
        self.ballots.push(ballot);
        self.positions.push(None);
        self.asked.len() - 1
    }

    /// Takes the claims out of what the extraction found, lists them, and reports what is known of them already. Returns
    /// those that are still to be asked about.
    fn list(&mut self, found: &mut Found, outbox: &mut Outbox<'_>) -> Vec<usize> {
        let job = self.panel.job;
        outbox.push(Event::ClaimsExtracted(found.listed(job)));
        self.claims = std::mem::take(&mut found.claims);
        self.results = vec![None; self.claims.len()];
        let models = if job.model_progress {
            self.panel.roster.models().map(str::to_owned).collect()
        } else {
            Vec::new()
        };
        outbox.push(Event::VerifyingClaims(VerifyingClaims { total_claims: self.claims.len(), models }));
        let mut new = Vec::new();
        for position in 0..self.claims.len() {
            let claim = self.claims[position].clone();
            outbox.push(Event::VerifyingClaim(VerifyingClaim {
                claim_index: position,
                claim: claim.text.clone(),
            }));
            let known =
                self.asked.iter().position(|asked| asked.claim.id == claim.id && !asked.is_given_up());
            let at = known.unwrap_or_else(|| self.add(claim, Ballot::new(self.panel.roster)));
            if known.is_none() {
                new.push(at);
            }
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
    fn give_up(&mut self, at: usize, outbox: &mut Outbox<'_>) {
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
    fn finish(mut self, outbox: &mut Outbox<'_>) -> Result<Vec<ClaimResult>, Error> {
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
            return Ok(self.results.into_iter().flatten().collect());
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
            let result = self.ballots[at].result(&self.claims[position], self.panel.job);
            outbox.push(Event::ClaimVerified(ClaimVerified {
                claim_index: position,
                assessment: result.assessment,
                consensus_answer: result.consensus_answer.clone(),
                model_answers: result.model_answers.clone(),
                result: self.panel.job.model_progress.then(|| Box::new(result.clone())),
            }));
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
    use crate::api::verify::Span;
    use proptest::prelude::*;

    fn claim(rivals: usize) -> Claim {
        let rivals = (0..rivals).map(|n| format!("rival {n}")).collect();
        let text = |text: &str| text.to_owned();
        Claim::new(0, text("claim"), text("question"), text("claimed"), rivals, (0..0, Span::default()))
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
        fn size<'a, F>(_: impl FnOnce(&'a Panel<'a>, Arc<Asked>, usize, usize, IfLimited) -> F) -> usize {
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
