//! The blind panel: asks every model about every claim, all concurrently, and processes answers as they arrive.
//!
//! Each model is shown the options in an order of its own (`order`). What is known of each claim, and what was reported
//! of it, is kept apart from the calls (`results`).
//!
//! Claims come from a [`Feed`](crate::verify::extraction::Feed) while the extraction goes on, and are asked about at
//! once. Nothing is reported of them until the extraction is done; then those that were taken back are forgotten, and
//! the others are listed in the order of the text.
//!
//! One loop owns all state. It emits events without waiting for a slow reader, because open calls hold permits that
//! other verifications wait for.

mod order;
mod results;

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::time::sleep;

use self::order::option_order;
use self::results::PanelResults;
use super::answer::read_vote;
use super::ballot::{Next, PanelAnswer, Roster};
use crate::api::verify::ClaimResult;
use crate::inference::{Answer, Chat, Failure, Finish};
use crate::lock::Lock;
use crate::traces::{Kind, Span};
use crate::usage::Purpose;
use crate::verify::Job;
use crate::verify::claim::Claim;
use crate::verify::error::Error;
use crate::verify::extraction::{Changes, Found, Step};
use crate::verify::model_calls::calls::{Calls, IfLimited, from_now};
use crate::verify::model_calls::outbox::Outbox;
use crate::verify::prompts::{self, Fences};

/// A panel at work on the claims of one verification.
pub(in crate::verify) struct Panel<'a> {
    pub(in crate::verify) calls: &'a Calls<'a>,
    pub(in crate::verify) job: &'a Job,
    pub(in crate::verify) fences: &'a Fences,
    pub(in crate::verify) roster: &'a Roster<'a>,
}

/// A claim that is asked about.
struct Asked {
    claim: Arc<Claim>,
    /// Whether its votes are no longer needed: it was taken back, or those still to come could not change the outcome.
    given_up: AtomicBool,
    /// From its first vote to its report.
    span: Mutex<Span>,
}

impl Asked {
    fn new(claim: Arc<Claim>, mut span: Span) -> Self {
        if span.is_recorded() {
            span.set("mk.claim.id", claim.id.clone());
            if span.captures() {
                span.set("mk.claim", claim.text.clone());
            }
        }
        Self { claim, given_up: AtomicBool::new(false), span: Mutex::new(span) }
    }

    /// A span for one of its votes.
    fn begin_vote(&self) -> Span {
        let claim = self.span.locked();
        if claim.is_none() {
            return Span::default();
        }
        claim.as_parent().child("vote", Kind::Internal, Instant::now())
    }

    /// Ends its span with the result.
    fn end_span(&self, assessment: &'static str) {
        let mut span = std::mem::take(&mut *self.span.locked());
        span.set("mk.claim.assessment", assessment);
    }

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
pub(in crate::verify) struct Source<'a> {
    /// Boxed, and dropped when it is done, as the panel, for which most of a run waits, needs less memory.
    pub(in crate::verify) extraction: BoxFuture<'a, Result<Found, Error>>,
    /// What the extraction tells before.
    pub(in crate::verify) changes: Changes,
}

impl Panel<'_> {
    /// Asks about all claims until each is settled or the deadline passes. The results are in the order of the claims;
    /// with them comes what else the extraction found.
    ///
    /// A model that limits its rate is waited for until the deadline if it can still change the outcome of the claim.
    /// Otherwise it is given up once no such model has answered for as long as any call may take.
    pub(in crate::verify) async fn run(
        &self,
        source: Source<'_>,
        outbox: &mut Outbox<'_>,
        mut deadline: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<(Vec<ClaimResult>, Found), Error> {
        let Source { extraction, changes } = source;
        let (mut extraction, mut found) = (Some(extraction), Found::default());
        let mut results = PanelResults::new(self);
        let mut patience = pin!(sleep(self.calls.model_timeout));
        let (mut is_patient, mut answers) = (true, 0);
        let mut open = FuturesUnordered::new();
        let ask_all = |asked: &[Arc<Asked>], at: usize| {
            let claim = asked[at].clone();
            (0..self.roster.panel_size()).map(move |seat| self.ask(claim.clone(), at, seat, IfLimited::Fail))
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
                step = next_step(&mut extraction, &changes), if extraction.is_some() => {
                    let told = match step {
                        Step::Changes(told) => told,
                        Step::End(end) => {
                            extraction = None;
                            found = end?;
                            changes.take()
                        }
                    };
                    for change in told {
                        if let Some(at) = results.change(change) {
                            open.extend(ask_all(&results.asked, at));
                        }
                    }
                    if extraction.is_none() {
                        for at in results.list(&mut found, outbox) {
                            open.extend(ask_all(&results.asked, at));
                        }
                        is_patient = true;
                        patience.as_mut().reset(from_now(self.calls.model_timeout));
                    }
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

    /// One model's vote on one claim. Not an `async fn`, which would store its arguments twice while it waits.
    fn ask(
        &self,
        asked: Arc<Asked>,
        at: usize,
        seat: usize,
        if_limited: IfLimited,
    ) -> impl Future<Output = CallOutcome> {
        let span = asked.begin_vote();
        let work = async move {
            let Some(model) = self.roster.model(seat) else {
                return CallOutcome { claim: at, seat, answer: Err(Failure::UnknownModel) };
            };
            let vote = Vote { panel: self, asked };
            let (is_needed, prompt) = (|| !vote.asked.is_given_up(), || vote.prompt(model));
            let read = |answer: &Answer| vote.read(answer, model);
            let calls = self.calls;
            let answer =
                calls.structured(model, Purpose::Verification, if_limited, is_needed, prompt, read).await;
            CallOutcome { claim: at, seat, answer }
        };
        span.around(work, |outcome, span| {
            if let Err(failure) = &outcome.answer {
                span.fail(failure.code());
            }
        })
    }
}

/// What the extraction does next.
async fn next_step(
    extraction: &mut Option<BoxFuture<'_, Result<Found, Error>>>,
    changes: &Changes,
) -> Step<Result<Found, Error>> {
    match extraction {
        Some(extraction) => changes.follow(extraction.as_mut()).await,
        None => std::future::pending().await,
    }
}

/// One model's vote on one claim.
struct Vote<'a> {
    panel: &'a Panel<'a>,
    asked: Arc<Asked>,
}

impl Vote<'_> {
    fn prompt(&self, model: &str) -> Chat {
        prompts::panel(self.panel.job, self.panel.fences, &self.asked.claim, &self.order(model))
    }

    /// The order in which the model is shown the options. Not kept, as thousands of votes wait.
    fn order(&self, model: &str) -> Vec<usize> {
        option_order(&self.panel.job.id, &self.asked.claim, model)
    }

    fn read(&self, answer: &Answer, model: &str) -> Result<PanelAnswer, String> {
        let (claim, order) = (&self.asked.claim, self.order(model));
        if let Some(recorder) = self.panel.calls.recorder {
            recorder.vote(claim, model, &order, answer);
        }
        let is_cut_off = answer.finish == Finish::Length;
        read_vote(&answer.text, is_cut_off, claim.options(), &order, self.panel.job.explain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The set of open calls adds 72 bytes; together they must fit into the allocator's size class of 512.
    #[test]
    fn the_future_of_a_vote_is_small() {
        fn size<'a, F>(_: impl FnOnce(&'a Panel<'a>, Arc<Asked>, usize, usize, IfLimited) -> F) -> usize {
            size_of::<F>()
        }
        let size = size(Panel::ask) + 72;
        assert!(size <= 512, "{size}");
    }
}
