//! The blind panel: every model is asked about every claim, all at once, and heard as it answers.
//!
//! Options are shuffled for each claim and model, and answers mapped back, so that a liking for a letter cannot
//! make a consensus. That takes in "None of these", which is a vote. "Cannot be determined" alone keeps its place,
//! the last: a liking for the last letter makes nothing but abstentions. The order follows from the ids, so a
//! verification can be retraced.
//!
//! One loop owns all state. It writes events without waiting for a slow reader, because open calls hold permits
//! that other verifications wait for.

use std::pin::Pin;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tracing::warn;

use super::ballot::{Ballot, Given, Roster};
use super::calls::Calls;
use super::claims::{Claim, letter};
use super::error::Error;
use super::outbox::Outbox;
use super::prompts::{self, Fences};
use super::{Event, Job, json, text};
use crate::api::verify::{ClaimResult, ClaimVerified, ModelAnswered, VerifyingClaim};
use crate::inference::{Chat, Failure, SHORTLY};
use crate::model_id;
use crate::usage::Purpose;

/// The longest reason that is kept, in characters.
const MAX_REASON_CHARS: usize = 500;

/// A panel at work on the claims of one verification.
pub(super) struct Panel<'a> {
    pub(super) calls: Calls<'a>,
    pub(super) job: &'a Job,
    pub(super) fences: &'a Fences,
    pub(super) roster: &'a Roster<'a>,
    pub(super) claims: &'a [Claim],
}

/// What became of one call, and whose it was: positions of claim and seat.
struct Heard {
    claim: usize,
    seat: usize,
    outcome: Result<Given, Failure>,
}

impl Panel<'_> {
    /// Asks about all claims until each is settled or the deadline passes. Results are in claim order.
    pub(super) async fn judge(
        &self,
        outbox: &mut Outbox<'_>,
        mut deadline: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Vec<ClaimResult>, Error> {
        let mut minutes = PanelResults::new(self);
        let mut open = FuturesUnordered::new();
        for (at, claim) in self.claims.iter().enumerate() {
            outbox.push(Event::VerifyingClaim(VerifyingClaim { claim_index: at, claim: claim.text.clone() }));
            open.extend((0..self.roster.asked()).map(|seat| self.ask(at, seat)));
        }
        loop {
            tokio::select! {
                biased;
                () = &mut deadline => break,
                () = outbox.flush(), if !outbox.is_empty() => {}
                heard = open.next() => {
                    let Some(heard) = heard else { break };
                    let (claim, left) = (heard.claim, heard.seat);
                    if let Some(seat) = minutes.enter(heard, outbox) {
                        if let (Some(model), Some(standby)) = (self.roster.model(left), self.roster.model(seat)) {
                            self.calls.meter.count_fallback(model, standby);
                        }
                        open.push(self.ask(claim, seat));
                    }
                }
            }
        }
        // Calls that are still open are stopped and booked before anything is summed up.
        drop(open);
        minutes.close(outbox)
    }

    #[expect(clippy::manual_async_fn, reason = "an async fn would keep its arguments twice while it waits")]
    fn ask(&self, at: usize, seat: usize) -> impl Future<Output = Heard> {
        async move {
            let Some(vote) = self.vote(at, seat) else {
                return Heard { claim: at, seat, outcome: Err(Failure::UnknownModel) };
            };
            let (prompt, read) = (|| vote.prompt(), |answer: &str| vote.read(answer));
            let outcome = self.calls.structured(vote.model, Purpose::Verification, prompt, read).await;
            if let Err(failure) = &outcome {
                let (verification, claim, model) = (&self.job.id, &vote.claim.id, vote.model);
                warn!(%verification, %claim, model, code = failure.code(), "no answer");
            }
            Heard { claim: at, seat, outcome }
        }
    }

    fn vote(&self, at: usize, seat: usize) -> Option<Vote<'_>> {
        let (claim, model) = (self.claims.get(at)?, self.roster.model(seat)?);
        let order = order(&self.job.id, claim, model);
        Some(Vote { panel: self, claim, model, order })
    }
}

/// One model's vote on one claim.
struct Vote<'a> {
    panel: &'a Panel<'a>,
    claim: &'a Claim,
    model: &'a str,
    /// In which the model is shown the options.
    order: Vec<usize>,
}

impl Vote<'_> {
    fn prompt(&self) -> Chat {
        prompts::panel(self.panel.job, self.panel.fences, self.claim, self.model, &self.order)
    }

    fn read(&self, answer: &str) -> Option<Given> {
        read(answer, &self.order, self.panel.job.explain)
    }
}

/// The ballots of all claims, and what has been reported of them.
struct PanelResults<'a> {
    panel: &'a Panel<'a>,
    ballots: Vec<Ballot<'a>>,
    results: Vec<Option<ClaimResult>>,
    /// Settled without an answer, while no claim had one: reported with the first answer, or never, as a
    /// verification without any answer ends in an error.
    unheard: Vec<usize>,
}

impl<'a> PanelResults<'a> {
    fn new(panel: &'a Panel<'a>) -> Self {
        Self {
            panel,
            ballots: panel.claims.iter().map(|_| Ballot::new(panel.roster)).collect(),
            results: vec![None; panel.claims.len()],
            unheard: Vec::new(),
        }
    }

    /// Notes what became of a call; returns the seat that is to be asked in its place.
    fn enter(&mut self, heard: Heard, outbox: &mut Outbox<'_>) -> Option<usize> {
        let Heard { claim: at, seat, outcome } = heard;
        let ballot = self.ballots.get_mut(at)?;
        let replacement = ballot.record(seat, outcome);
        if self.panel.job.model_progress {
            outbox.push(Event::ModelAnswered(ModelAnswered {
                claim_index: at,
                model: self.panel.roster.model(seat).unwrap_or_default().to_owned(),
                answered: ballot.done(),
                asked: ballot.asked(),
            }));
        }
        if ballot.is_settled() {
            self.unheard.push(at);
        }
        self.report(outbox);
        replacement
    }

    /// Settles what the deadline left open.
    fn close(mut self, outbox: &mut Outbox<'_>) -> Result<Vec<ClaimResult>, Error> {
        for (at, ballot) in self.ballots.iter_mut().enumerate() {
            if self.results[at].is_none() && !self.unheard.contains(&at) {
                ballot.cut_off();
                self.unheard.push(at);
            }
        }
        self.report(outbox);
        if self.unheard.is_empty() {
            return Ok(self.results.into_iter().flatten().collect());
        }
        let failure = most_frequent(self.ballots.iter().flat_map(Ballot::failures));
        Err(failure.map_or(Error::Unconfigured, |(failure, provider)| Error::NoAnswers { failure, provider }))
    }

    /// Reports settled claims, once any model has answered anything.
    fn report(&mut self, outbox: &mut Outbox<'_>) {
        if !self.ballots.iter().any(Ballot::has_answers) {
            return;
        }
        for at in self.unheard.drain(..) {
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

/// The failure whose kind occurs most often, and of these the one that may be over first; with the provider, if it is a
/// single one whose models failed so.
fn most_frequent<'f>(
    failures: impl Iterator<Item = (&'f str, &'f Failure)>,
) -> Option<(Failure, Option<String>)> {
    let all: Vec<(&str, &Failure)> = failures.collect();
    let count = |code: &str| all.iter().filter(|(_, failure)| failure.code() == code).count();
    let (_, most) = all.iter().rev().max_by_key(|(_, failure)| count(failure.code()))?;
    let alike = || all.iter().filter(|(_, failure)| failure.code() == most.code());
    let (model, first) = alike().min_by_key(|(_, failure)| failure.retry_after().unwrap_or(SHORTLY))?;
    let provider = model_id::provider(model);
    let is_single = alike().all(|(model, _)| model_id::provider(model) == provider);
    Some(((*first).clone(), is_single.then(|| provider.to_owned())))
}

/// The order in which a model is shown a claim's options, as positions in the claim's own order. `SHA-256` of the
/// ids drives a Fisher–Yates shuffle: eight draws of 32 bits are enough for the seven options that move, and their
/// bias (below 2⁻²⁹) is nothing.
fn order(request: &str, claim: &Claim, model: &str) -> Vec<usize> {
    let seed = Sha256::digest(format!("{request}\n{}\n{model}", claim.id));
    let mut order: Vec<usize> = (0..claim.options().len()).collect();
    for (draw, last) in seed.chunks_exact(4).zip((1..claim.undetermined()).rev()) {
        let random = draw.iter().fold(0_usize, |number, &byte| (number << 8) | usize::from(byte));
        order.swap(last, random % (last + 1));
    }
    order
}

/// An answer of a model, before its letter is looked at.
#[derive(Deserialize)]
struct Draft {
    answer: String,
    reason: Option<String>,
}

/// What a panel model's answer says: the option in the claim's own order, where `order[0]` was shown as `A`, and the
/// reason if the model was to `explain`; `None` if it is not one letter of the options shown.
pub fn read(answer: &str, order: &[usize], explain: bool) -> Option<Given> {
    let draft: Draft = json::object(answer)?;
    let mut letters = draft.answer.trim().chars();
    let (Some(chosen), None) = (letters.next(), letters.next()) else { return None };
    let shown = (0..order.len()).find(|&position| letter(position) == chosen)?;
    let reason = draft.reason.filter(|_| explain).map(|reason| text::one_line(&reason));
    Some(Given {
        option: *order.get(shown)?,
        reason: reason
            .filter(|reason| !reason.is_empty())
            .map(|reason| text::shortened(&reason, MAX_REASON_CHARS)),
    })
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
            let order = order(&format!("ver_{n}"), &claim, "a/b");
            assert_eq!(order[5], claim.undetermined());
            (0..5).for_each(|at| counts[order[at]][at] += 1);
        }
        assert!(counts.as_flattened().iter().all(|count| (900..1_100).contains(count)), "{counts:?}");
    }

    /// The set of open calls adds 72 bytes; together they must fit into the allocator's size class of 512.
    #[test]
    fn a_vote_that_is_waited_for_is_small() {
        fn size<'a, F>(_: impl FnOnce(&'a Panel<'a>, usize, usize) -> F) -> usize {
            size_of::<F>()
        }
        let size = size(Panel::ask) + 72;
        assert!(size <= 512, "{size}");
    }

    #[test]
    fn the_order_depends_on_request_and_model_and_can_be_retraced() {
        let claim = claim(5);
        let shown = |request: &str, model: &str| order(request, &claim, model);
        assert_eq!(shown("ver_1", "a/b"), shown("ver_1", "a/b"));
        assert_ne!(shown("ver_1", "a/b"), shown("ver_2", "a/b"));
        assert_ne!(shown("ver_1", "a/b"), shown("ver_1", "a/c"));
    }

    #[test]
    fn reads_one_letter_of_those_shown() {
        let order = [2, 0, 1, 3];
        let option = |answer: &str| read(answer, &order, false).map(|given| given.option);
        assert_eq!(option(r#"{"answer":"A"}"#), Some(2));
        assert_eq!(option(r#"{"answer":" D "}"#), Some(3));
        for wrong in [r#"{"answer":"E"}"#, r#"{"answer":"AB"}"#, r#"{"answer":""}"#, r#"{"answer":"b"}"#, "B"]
        {
            assert_eq!(option(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn keeps_a_reason_only_when_asked_and_makes_it_harmless() {
        let answer = format!(r#"{{"reason":"a\u001b[2J\n{}","answer":"A"}}"#, "x".repeat(600));
        assert_eq!(read(&answer, &[0], false).unwrap().reason, None);
        let reason = read(&answer, &[0], true).unwrap().reason.unwrap();
        assert!(reason.starts_with("a[2J xxx") && reason.chars().count() == MAX_REASON_CHARS);
        assert_eq!(read(r#"{"answer":"A","reason":" "}"#, &[0], true).unwrap().reason, None);
    }

    #[test]
    fn blames_what_failed_most_often() {
        let failures = [Failure::Timeout, Failure::Unauthorized, Failure::Malformed, Failure::Unauthorized];
        let told = |models: &[&'static str]| most_frequent(models.iter().copied().zip(&failures));
        let one = Some("a".to_owned());
        assert_eq!(told(&["a/1", "a/2", "b/1", "a/3"]), Some((Failure::Unauthorized, one.clone())));
        assert_eq!(told(&["a/1", "a/2", "a/1", "b/3"]), Some((Failure::Unauthorized, None)));
        assert_eq!(told(&["a/1", "b/1"]), Some((Failure::Timeout, one)));
        assert_eq!(told(&[]), None);
    }

    proptest! {
        #[test]
        fn an_order_is_a_permutation(request in any::<String>(), model in any::<String>(), rivals in 1_usize..6) {
            let claim = claim(rivals);
            let mut order = order(&request, &claim, &model);
            order.sort_unstable();
            prop_assert_eq!(order, (0..rivals + 3).collect::<Vec<_>>());
        }
    }
}
