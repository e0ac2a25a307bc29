//! One model of a chain, asked for a caller's chat completion: again for what may pass, until it answers or a stream of
//! it has begun.
//!
//! What must hold: nothing is called without a place among the provider's calls, leave of the breakers and the money
//! for it, taken in this order, so that nothing is reserved and no probe is held while a call waits for its turn; a call
//! that was not made is neither booked nor counted.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep, timeout_at};

use super::breaker::{Span, Table, Ticket};
use super::chat::Given;
use super::gateway::{Gateway, Known, price, threshold};
use super::relay::Relay;
use super::{most, retry};
use crate::money::{Price, Tokens};
use crate::providers::{Completion, Failed, Failure, Flow, Labels, Patience, Permit, Provider, estimate};
use crate::usage::{Attempt, Meter, Purpose};

/// The most calls to models for one request, whatever is set about retries and fallbacks: what so many did not answer
/// is not answered by more, and a caller's request must not become a flood.
pub(super) const MOST_ATTEMPTS: u32 = 6;

/// One model to be asked, and what all attempts at it share.
pub(super) struct Candidate<'a> {
    pub(super) id: &'a Arc<str>,
    pub(super) provider: &'a Provider,
    pub(super) breakers: &'a Arc<Table>,
    pub(super) model: &'a str,
    pub(super) patience: Patience,
    pub(super) price: Option<Price>,
    pub(super) asked: &'a Completion<'a>,
    pub(super) meter: &'a Meter,
    pub(super) span: Span,
    /// How many models after it could be asked.
    pub(super) fallbacks_left: u32,
    /// The model whose failure it is asked after: itself, where a stream of its own broke.
    pub(super) after: Option<&'a str>,
    /// How often it was tried again already.
    pub(super) retried: u32,
    /// What the chunks of the stream that it is to go on with begin with.
    pub(super) head: Option<&'a [u8]>,
}

impl Gateway {
    /// The model at `place` of `chain`, to be asked for the first time; `None` if its provider is not configured.
    pub(super) fn candidate<'a>(
        &'a self,
        chain: &'a [Arc<str>],
        place: usize,
        asked: &'a Completion<'a>,
        meter: &'a Meter,
    ) -> Option<Candidate<'a>> {
        let id = chain.get(place)?;
        let (Known { provider, breakers }, model) = self.known(id)?;
        let now = Instant::now();
        let patience = provider.patience(model);
        Some(Candidate {
            id,
            provider,
            breakers,
            model,
            patience,
            price: price(id, provider, model),
            asked,
            meter,
            span: Span { asked: now, deadline: now + patience.total_timeout },
            fallbacks_left: self.in_use(&chain[place + 1..], now),
            after: None,
            retried: 0,
            head: None,
        })
    }

    /// How many of these models are configured and not paused.
    fn in_use(&self, ids: &[Arc<str>], now: Instant) -> u32 {
        let is_in_use = |(known, model): (&Known, &str)| known.breakers.refusal(model, now).is_none();
        let count = ids.iter().filter(|id| self.known(id).is_some_and(is_in_use)).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Asks one model, again for what may pass. `attempts` are all that were made for the request, and fewer than
    /// [`MOST_ATTEMPTS`].
    pub(super) async fn ask_candidate(
        &self,
        candidate: &Candidate<'_>,
        attempts: &mut u32,
    ) -> Result<Given, Failure> {
        let Candidate { provider, breakers, model, patience, .. } = candidate;
        let deadline = candidate.span.deadline;
        let (mut after, mut retries) = (candidate.after, candidate.retried);
        let mut failed = None;
        let mut now = candidate.span.asked;
        loop {
            // Asked before the wait for a turn as well: nobody queues up for a call that will not be made.
            if let Some(paused) = breakers.refusal(model, now) {
                return Err(failed.unwrap_or(paused));
            }
            let limit = candidate.limit(self.settings().first_token_timeout_with_fallback);
            let admitted_by = limit.map_or(deadline, |limit| now + limit);
            let (permit, admitted) = match provider.admit(now, admitted_by.min(deadline)).await {
                Ok(admitted) => admitted,
                Err(late) => return Err(failed.unwrap_or(late)),
            };
            let ticket = match breakers.enter(model, threshold(patience), candidate.span, admitted) {
                Ok(ticket) => ticket,
                Err(paused) => return Err(failed.unwrap_or(paused)),
            };
            candidate.meter.load_spending().await;
            // Without the money for it, nothing is called.
            let attempt = match candidate.begin(admitted) {
                Ok(attempt) => attempt,
                Err(unpaid) => return Err(failed.unwrap_or(unpaid)),
            };
            *attempts += 1;
            candidate.follow(after);
            let first_token = limit.filter(|_| candidate.asked.stream).map(|limit| admitted + limit);
            let failure = match candidate.attempt(attempt, permit, ticket, first_token).await {
                Ok(given) => return Ok(given),
                Err(failure) => failure,
            };
            let pause = candidate.pause(&failure, retries, *attempts, limit);
            retry::log_failed_attempt(candidate.id, &failure, pause);
            let Some(pause) = pause else { return Err(failure) };
            sleep(pause).await;
            now = Instant::now();
            retries += 1;
            (after, failed) = (Some(&**candidate.id), Some(failure));
        }
    }
}

impl Candidate<'_> {
    /// How long to wait for this model at a time while another one could be asked: for a place in its queue, for the
    /// end of a pause, for the first token. Without another one, only the call's own limits hold.
    pub(super) fn limit(&self, with_fallback: Duration) -> Option<Duration> {
        (self.fallbacks_left > 0).then(|| self.patience.first_token_timeout.unwrap_or(with_fallback))
    }

    /// How long to pause before this model is tried once more than the `retries` so far; `None` if it should not be:
    /// also where the `attempts` made for the request leave no more than one for each model behind this one.
    pub(super) fn pause(
        &self,
        failure: &Failure,
        retries: u32,
        attempts: u32,
        limit: Option<Duration>,
    ) -> Option<Duration> {
        let now = Instant::now();
        retry::pause(failure, retries, retry::chance()).filter(|pause| {
            retries < self.patience.retries
                && attempts.saturating_add(self.fallbacks_left) < MOST_ATTEMPTS
                && now + *pause < self.span.deadline
                && limit.is_none_or(|limit| *pause <= limit)
                && self.breakers.refusal(self.model, now).is_none()
        })
    }

    /// Counts a call that is made because another one failed: to the same model, or to the one before it.
    fn follow(&self, after: Option<&str>) {
        match after {
            Some(id) if *id == **self.id => self.meter.retried(id),
            Some(id) => self.meter.fell_back(id, self.id),
            None => {}
        }
    }

    fn begin(&self, now: Instant) -> Result<Attempt, Failure> {
        let most = || most::of_completion(self.asked, self.provider, self.model, self.price);
        let (id, begun) = (self.id.clone(), now.into_std());
        let mut attempt = self.meter.attempt(id, Purpose::Chat, self.price, begun, most)?;
        attempt.expect(Tokens::of_prompt(self.asked.prompt_tokens));
        Ok(attempt)
    }

    async fn attempt(
        &self,
        mut attempt: Attempt,
        permit: Permit,
        ticket: Ticket<'_>,
        first_token: Option<Instant>,
    ) -> Result<Given, Failure> {
        let created = self.meter.now().unix_ms().div_euclid(1000);
        let labels = Labels { model: self.id.clone(), created };
        if !self.asked.stream {
            let answer =
                self.provider.chat(permit, self.asked, self.model, &labels, self.span.deadline).await;
            return match answer {
                Ok(completed) => {
                    ticket.succeeded();
                    attempt.finish("ok", completed.usage);
                    Ok(Given::Whole(completed.body))
                }
                Err(failed) => Err(self.give_up(attempt, ticket, failed)),
            };
        }
        // In a box, as a whole answer needs no room for it.
        let opening = Box::pin(self.open(permit, &labels));
        let opened = match first_token {
            Some(limit) => timeout_at(limit, opening).await.unwrap_or(Err(Failure::Timeout.into())),
            None => opening.await,
        };
        match opened {
            Ok((flow, first)) => {
                attempt.streams();
                let relay = Relay::new(labels.model, flow, first, attempt, ticket);
                Ok(Given::Stream(Box::new(relay)))
            }
            Err(failed) => Err(self.give_up(attempt, ticket, failed)),
        }
    }

    /// Opens a stream and waits for its first event. What fails until then, or right behind it, has reached nobody.
    async fn open(&self, permit: Permit, labels: &Labels) -> Result<(Flow, Bytes), Failed> {
        let mut flow = self.provider.open(permit, self.asked, self.model, labels, self.span.deadline).await?;
        if let Some(head) = self.head {
            flow.go_on(head);
        }
        match flow.next().await {
            Some(Ok(first)) => match flow.failed() {
                Some(failure) => Err(Failed { failure: failure.clone(), usage: Some(flow.used()) }),
                None => Ok((flow, first)),
            },
            Some(Err(failure)) => Err(failure.into()),
            None => Err(Failure::Cut.into()),
        }
    }

    fn give_up(&self, attempt: Attempt, ticket: Ticket<'_>, failed: Failed) -> Failure {
        let Failed { failure, usage } = failed;
        ticket.failed(&failure, Instant::now());
        let prompt = if failure.may_have_cost() { self.asked.prompt_tokens } else { 0 };
        let completion = match failure {
            // What it says it took was not read, and all of it is charged.
            Failure::TooLarge { bytes } => {
                let most = most::completion_tokens(self.asked, self.provider, self.model);
                estimate::length_tokens(bytes).min(most)
            }
            _ => 0,
        };
        attempt.finish(failure.code(), usage.unwrap_or(Tokens { prompt, completion }));
        failure
    }
}
