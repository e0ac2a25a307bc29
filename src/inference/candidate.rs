//! One model of a chain, asked for a caller's chat completion: again for what may pass, until it answers or a stream of
//! it has begun.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep, timeout_at};

use super::breaker::{Span, Ticket};
use super::chat::Given;
use super::gateway::{Gateway, Known, price};
use super::relay::Relay;
use super::upstream::{Started, Upstream};
use super::{most, retry};
use crate::money::Tokens;
use crate::providers::{
    CompletionRequest, CompletionStream, FailedCall, Failure, Permit, ResponseMeta, estimate,
};
use crate::usage::{Attempt, Meter, Purpose, Unpaid};

/// The most calls to models for one request, whatever is set about retries and fallbacks: what so many did not answer
/// is not answered by more, and a caller's request must not become a flood.
pub(super) const MOST_ATTEMPTS: u32 = 6;

/// One model to be asked, and what all attempts at it share.
pub(super) struct Candidate<'a> {
    pub(super) id: &'a Arc<str>,
    pub(super) upstream: Upstream<'a>,
    pub(super) asked: &'a CompletionRequest<'a>,
    /// How many models after it could be asked.
    pub(super) fallbacks_left: u32,
    /// How long to wait for it at a time while another one could be asked: for a place in its queue, for the end of a
    /// pause, for the first token. Without another one, only the call's own limits hold.
    pub(super) limit: Option<Duration>,
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
        asked: &'a CompletionRequest<'a>,
        meter: &'a Meter,
    ) -> Option<Candidate<'a>> {
        let id = chain.get(place)?;
        let (known, model) = self.known(id)?;
        let now = Instant::now();
        let call_policy = known.provider.call_policy(model);
        let span = Span { asked: now, deadline: now + call_policy.total_timeout };
        let fallbacks_left = self.in_use(&chain[place + 1..], now);
        let with_fallback =
            || call_policy.first_token_timeout.unwrap_or(self.settings().first_token_timeout_with_fallback);
        Some(Candidate {
            id,
            upstream: Upstream::new(known, model, &call_policy, span, meter),
            asked,
            fallbacks_left,
            limit: (fallbacks_left > 0).then(with_fallback),
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
}

impl Candidate<'_> {
    /// Asks the model, again for what may pass. `attempts` are all that were made for the request, and fewer than
    /// [`MOST_ATTEMPTS`].
    pub(super) async fn ask(&self, attempts: &mut u32) -> Result<Given, Failure> {
        let (mut after, mut retries) = (self.after, self.retried);
        let mut failed = None;
        let mut now = self.upstream.span.asked;
        loop {
            let Started { permit, ticket, attempt, at } =
                match self.upstream.start(now, self.limit, |now| self.begin(now)).await {
                    Ok(started) => started,
                    Err(refused) => return Err(failed.unwrap_or(refused)),
                };
            *attempts += 1;
            self.follow(after);
            let first_token = self.limit.filter(|_| self.asked.stream).map(|limit| at + limit);
            let failure = match self.attempt(attempt, permit, ticket, first_token).await {
                Ok(given) => return Ok(given),
                Err(failure) => failure,
            };
            let pause = self.pause(&failure, retries, *attempts);
            retry::log_failed_attempt(self.id, &failure, pause);
            let Some(pause) = pause else { return Err(failure) };
            sleep(pause).await;
            now = Instant::now();
            retries += 1;
            (after, failed) = (Some(&**self.id), Some(failure));
        }
    }

    /// As [`Upstream::pause`]; also `None` for longer than `limit`, and where the `attempts` made for the request leave
    /// no more than one for each model behind this one.
    pub(super) fn pause(&self, failure: &Failure, retries: u32, attempts: u32) -> Option<Duration> {
        self.upstream.pause(failure, retries).filter(|pause| {
            attempts.saturating_add(self.fallbacks_left) < MOST_ATTEMPTS
                && self.limit.is_none_or(|limit| *pause <= limit)
        })
    }

    /// Counts a call that is made because another one failed: to the same model, or to the one before it.
    fn follow(&self, after: Option<&str>) {
        match after {
            Some(id) if *id == **self.id => self.upstream.meter.retried(id),
            Some(id) => self.upstream.meter.fell_back(id, self.id),
            None => {}
        }
    }

    /// Reserves what an attempt may cost.
    fn begin(&self, now: Instant) -> Result<Attempt, Unpaid> {
        let Upstream { known, model, meter, .. } = self.upstream;
        let provider = &known.provider;
        let price = price(self.id, provider, model);
        let most = || most::of_completion(self.asked, provider, model, price);
        let mut attempt = meter.attempt(self.id.clone(), Purpose::Chat, price, now.into_std(), most)?;
        attempt.expect(Tokens::of_prompt(self.asked.prompt_tokens));
        Ok(attempt)
    }

    /// Makes an attempt that has begun. No `async fn`, which would keep its arguments twice while it waits.
    fn attempt(
        &self,
        mut attempt: Attempt,
        permit: Permit,
        ticket: Ticket<'_>,
        first_token: Option<Instant>,
    ) -> impl Future<Output = Result<Given, Failure>> {
        let up = &self.upstream;
        let created = up.meter.now().unix_ms().div_euclid(1000);
        let meta = ResponseMeta { model: self.id.clone(), created };
        async move {
            if !self.asked.stream {
                return match up
                    .known
                    .provider
                    .chat(permit, self.asked, up.model, &meta, up.span.deadline)
                    .await
                {
                    Ok(completed) => {
                        ticket.succeeded();
                        attempt.finish("ok", completed.usage);
                        Ok(Given::Whole(completed.body))
                    }
                    Err(failed) => Err(self.give_up(attempt, ticket, failed)),
                };
            }
            // In a box, as a whole answer needs no room for it.
            let opening = Box::pin(self.open(permit, &meta));
            let opened = match first_token {
                Some(limit) => timeout_at(limit, opening).await.unwrap_or(Err(Failure::Timeout.into())),
                None => opening.await,
            };
            match opened {
                Ok((stream, first)) => {
                    attempt.streams();
                    let relay = Relay::new(meta.model, stream, first, attempt, ticket);
                    Ok(Given::Stream(Box::new(relay)))
                }
                Err(failed) => Err(self.give_up(attempt, ticket, failed)),
            }
        }
    }

    /// Opens a stream and waits for its first event. What fails until then, or right behind it, has reached nobody.
    async fn open(
        &self,
        permit: Permit,
        meta: &ResponseMeta,
    ) -> Result<(CompletionStream, Bytes), FailedCall> {
        let up = &self.upstream;
        let mut stream =
            up.known.provider.chat_stream(permit, self.asked, up.model, meta, up.span.deadline).await?;
        if let Some(head) = self.head {
            stream.continue_from(head);
        }
        match stream.next().await {
            Some(Ok(first)) => match stream.pending_failure() {
                Some(failure) => Err(FailedCall { failure: failure.clone(), usage: Some(stream.usage()) }),
                None => Ok((stream, first)),
            },
            Some(Err(failure)) => Err(FailedCall { failure, usage: stream.reported_usage() }),
            None => Err(Failure::Cut.into()),
        }
    }

    fn give_up(&self, attempt: Attempt, ticket: Ticket<'_>, failed: FailedCall) -> Failure {
        let FailedCall { failure, usage } = failed;
        ticket.failed(&failure, Instant::now());
        let prompt = if failure.may_have_cost() { self.asked.prompt_tokens } else { 0 };
        let completion = match failure {
            // What it says it took was not read, and all of it is charged.
            Failure::TooLarge { bytes } => {
                let most =
                    most::completion_tokens(self.asked, &self.upstream.known.provider, self.upstream.model);
                estimate::length_tokens(bytes).min(most)
            }
            _ => 0,
        };
        attempt.finish(failure.code(), usage.unwrap_or(Tokens { prompt, completion }));
        failure
    }
}
