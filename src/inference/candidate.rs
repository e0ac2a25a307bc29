//! One model of a fallback chain, called for a caller's chat completion: with retries of transient failures, until it
//! has answered or its stream has begun.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep, timeout_at};

use super::breaker::{CallTime, Ticket};
use super::call::{Call, OwnedCall};
use super::chat::ChatReply;
use super::followed::Followed;
use super::gateway::{Gateway, ProviderEntry};
use super::relay::Relay;
use super::upstream::{Started, Upstream};
use super::{max_cost, noted, retry};
use crate::money::{Tokens, Usage};
use crate::providers::catalog::estimate;
use crate::providers::{
    CallPermit, CompletionRequest, CompletionResponse, FailedCall, Failure, ReducedRequest, ResponseMeta,
};
use crate::usage::{Attempt, BudgetError, Meter, Purpose};

/// The most calls to models for one request, whatever the settings for retries and fallbacks: after so many failures
/// more calls would not help, and one request of a caller must not become a flood.
pub(super) const MAX_ATTEMPTS: u32 = 6;

/// A model's reply, and the names of what was left out of the request for it.
pub(super) type ReplyAndLeftOut = (ChatReply, Vec<String>);

/// One model to be called, and what all attempts share.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) id: &'a Arc<str>,
    pub(super) upstream: Upstream<'a>,
    pub(super) request: &'a CompletionRequest<'a>,
    /// What it was parsed from.
    pub(super) body: &'a Bytes,
    /// How many models after it could be called.
    pub(super) fallbacks_left: u32,
    /// The longest single wait while there is a fallback: for a permit, for the pause before a retry, for the first
    /// token. Without a fallback, only the call's own timeouts apply.
    pub(super) wait_limit: Option<Duration>,
    /// While there is a fallback: how long a call may take to the first token of a stream, or else to the whole answer.
    pub(super) answer_limit: Option<Duration>,
    /// The model whose failure led to this call: itself, if its own stream broke.
    pub(super) after: Option<Predecessor<'a>>,
    /// How often it has been retried already.
    pub(super) retries: u32,
    /// The head of each chunk of the broken stream that this call is to continue.
    pub(super) head: Option<&'a [u8]>,
    /// Whether what the model's format does not have is left out of the request.
    pub(super) drop_unsupported: bool,
}

/// A model that was to be called before.
#[derive(Clone, Copy)]
pub(super) struct Predecessor<'a> {
    pub(super) id: &'a str,
    /// The code of its failure.
    pub(super) outcome: &'static str,
}

impl Gateway {
    /// The model at `position` of `chain`, not called yet; `None` if its provider is not configured.
    pub(super) fn candidate<'a>(
        &'a self,
        chain: &'a [Arc<str>],
        position: usize,
        (request, body): (&'a CompletionRequest<'a>, &'a Bytes),
        meter: &'a Meter,
    ) -> Option<Candidate<'a>> {
        let id = chain.get(position)?;
        let (entry, model) = self.find_entry(id)?;
        let now = Instant::now();
        let call_policy = entry.provider.call_policy(model);
        let time = CallTime { requested: now, deadline: now + call_policy.total_timeout };
        let fallbacks_left = self.count_available(&chain[position + 1..], now);
        let settings = self.settings();
        let first_token =
            call_policy.first_token_timeout.unwrap_or(settings.first_token_timeout_with_fallback);
        let whole_answer =
            call_policy.whole_answer_timeout.unwrap_or(settings.whole_answer_timeout_with_fallback);
        let has_fallback = fallbacks_left > 0;
        Some(Candidate {
            id,
            upstream: Upstream::new(entry, model, &call_policy, time, meter),
            request,
            body,
            fallbacks_left,
            wait_limit: has_fallback.then_some(first_token),
            answer_limit: has_fallback.then_some(if request.stream { first_token } else { whole_answer }),
            after: None,
            retries: 0,
            head: None,
            drop_unsupported: self.settings().drop_unsupported,
        })
    }

    /// How many of these models are configured and not paused.
    fn count_available(&self, ids: &[Arc<str>], now: Instant) -> u32 {
        let is_available =
            |(entry, model): (&Arc<ProviderEntry>, &str)| entry.breakers.paused(model, now).is_none();
        let count = ids.iter().filter(|id| self.find_entry(id).is_some_and(is_available)).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

impl Candidate<'_> {
    /// Calls the model, with retries of transient failures. `attempts` counts all calls for the request, and is less
    /// than [`MAX_ATTEMPTS`].
    pub(super) async fn ask(&self, attempts: &mut u32) -> Result<ReplyAndLeftOut, Failure> {
        let mut left_out = self.upstream.entry.provider.ignored_fields(self.request, self.upstream.model);
        let Some(reduced) = self.check()? else { return Ok((self.call(attempts).await?, left_out)) };
        left_out.extend_from_slice(&reduced.left_out);
        // Boxed, so that other calls do not reserve memory for it.
        Ok((Box::pin(self.call_reduced(reduced, attempts)).await?, left_out))
    }

    /// Calls the model with this instead of the caller's request.
    async fn call_reduced(&self, reduced: ReducedRequest, attempts: &mut u32) -> Result<ChatReply, Failure> {
        let request = reduced.request(self.request).ok_or(Failure::Malformed)?;
        let candidate = Candidate { request: &request, ..*self };
        candidate.call(attempts).await
    }

    /// Calls the model with a request that it supports.
    async fn call(&self, attempts: &mut u32) -> Result<ChatReply, Failure> {
        let (mut after, mut retries) = (self.after, self.retries);
        let mut failed = None;
        let mut now = self.upstream.time.requested;
        loop {
            let Started { permit, ticket, attempt, at } =
                match self.upstream.start(now, self.wait_limit, |now| self.reserve(now)).await {
                    Ok(started) => started,
                    Err(not_started) => return Err(failed.unwrap_or(not_started)),
                };
            *attempts += 1;
            self.count_retry_or_fallback(after);
            let answer_by = self.answer_limit.map(|limit| at + limit);
            let failure = match self.attempt(attempt, permit, ticket, answer_by).await {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            let pause = self.pause(&failure, retries, *attempts);
            retry::log_failed_attempt(self.id, &failure, pause);
            let Some(pause) = pause else { return Err(failure) };
            sleep(pause).await;
            now = Instant::now();
            retries += 1;
            after = Some(Predecessor { id: self.id, outcome: failure.code() });
            failed = Some(failure);
        }
    }

    /// Checks that the model can be asked at all: a request that is never sent is no call, so it needs no permit and no
    /// budget, and is not booked. Returns the request that can be sent, if it is not the caller's own.
    fn check(&self) -> Result<Option<ReducedRequest>, Failure> {
        let Upstream { entry, model, .. } = self.upstream;
        let checked = match entry.provider.check_chat(self.request, model) {
            Ok(()) => Ok(None),
            Err(refused) if self.drop_unsupported => {
                entry.provider.reduce_chat(self.request, model, refused).map(Some)
            }
            Err(refused) => Err(refused),
        };
        checked.inspect_err(|failure| {
            let detail = failure.detail();
            tracing::info!(
                model = &**self.id,
                detail,
                "a model was not called: it does not support the request"
            );
        })
    }

    /// Like [`Upstream::pause`]; also `None` if the pause exceeds `wait_limit`, or if the `attempts` made for the
    /// request leave at most one for each model after this one.
    pub(super) fn pause(&self, failure: &Failure, retries: u32, attempts: u32) -> Option<Duration> {
        self.upstream.pause(failure, retries).filter(|pause| {
            attempts.saturating_add(self.fallbacks_left) < MAX_ATTEMPTS
                && self.wait_limit.is_none_or(|limit| *pause <= limit)
        })
    }

    /// Counts a call that follows a failure: as a retry if it was this model's, otherwise as a fallback.
    fn count_retry_or_fallback(&self, after: Option<Predecessor<'_>>) {
        match after {
            Some(Predecessor { id, .. }) if *id == **self.id => self.upstream.meter.count_retry(id),
            Some(Predecessor { id, outcome }) => self.upstream.meter.count_fallback(id, outcome, self.id),
            None => {}
        }
    }

    /// Reserves the most that an attempt may cost.
    fn reserve(&self, now: Instant) -> Result<Attempt, BudgetError> {
        let Upstream { entry, model, meter, .. } = self.upstream;
        let provider = &entry.provider;
        let price = provider.price(self.id, model);
        let max_cost = || max_cost::for_completion(self.request, provider, model, price);
        let purpose = if self.request.is_for_embeddings() { Purpose::Embeddings } else { Purpose::Chat };
        let mut attempt = meter.attempt(self.id.clone(), purpose, price, now.into_std(), max_cost)?;
        attempt.set_expected(Tokens::of_prompt(self.request.prompt_tokens));
        attempt.note(|span| noted::request(span, self.request));
        Ok(attempt)
    }

    /// Makes an attempt that has been started. `answer_by` is the time of [`Candidate::answer_limit`]. Not an `async
    /// fn`, which would store its arguments twice while it waits.
    fn attempt(
        &self,
        mut attempt: Attempt,
        permit: CallPermit,
        ticket: Ticket<'_>,
        answer_by: Option<Instant>,
    ) -> impl Future<Output = Result<ChatReply, Failure>> {
        let up = &self.upstream;
        let created = up.meter.now().unix_ms().div_euclid(1000);
        let whole_by = answer_by.filter(|_| !self.request.stream);
        let call = Call {
            entry: up.entry,
            model: up.model,
            meta: ResponseMeta { model: self.id.clone(), created },
            deadline: whole_by.map_or(up.time.deadline, |limit| limit.min(up.time.deadline)),
            max_completion_tokens: self.request.stream.then(|| self.max_completion_tokens()).flatten(),
            head: self.head,
        };
        async move {
            if attempt.is_paid_by_budget() {
                // Boxed, as only these calls need room for it.
                return Box::pin(self.attempt_followed(attempt, call, permit, ticket, answer_by)).await;
            }
            if !self.request.stream {
                return match call.complete(permit, self.request).await {
                    Ok(completed) => Ok(book_answer(attempt, ticket, completed)),
                    Err(failed) => Err(self.book_failure(attempt, ticket, failed)),
                };
            }
            // Boxed, so that calls without streaming do not reserve memory for it.
            let opening = Box::pin(call.open(permit, self.request));
            let opened = match answer_by {
                Some(limit) => timeout_at(limit, opening).await.unwrap_or(Err(Failure::Timeout.into())),
                None => opening.await,
            };
            match opened {
                Ok((stream, first)) => {
                    attempt.mark_first_token();
                    Ok(ChatReply::Stream(Box::new(Relay::new(
                        call.meta.model,
                        stream,
                        first,
                        attempt,
                        ticket,
                    ))))
                }
                Err(failed) => Err(self.book_failure(attempt, ticket, failed)),
            }
        }
    }

    /// As [`Candidate::attempt`], of a call that a budget pays for: it goes on if this is dropped.
    async fn attempt_followed(
        &self,
        attempt: Attempt,
        call: Call<'_>,
        permit: CallPermit,
        ticket: Ticket<'_>,
        answer_by: Option<Instant>,
    ) -> Result<ChatReply, Failure> {
        let owned = OwnedCall::new(&call, self.request, self.body);
        if !self.request.stream {
            return match Followed::new(attempt, owned.complete(permit)).await {
                (Some(attempt), Ok(completed)) => Ok(book_answer(attempt, ticket, completed)),
                (Some(attempt), Err(failed)) => Err(self.book_failure(attempt, ticket, failed)),
                (None, _) => Err(Failure::Cut),
            };
        }
        let mut opening = Followed::new(attempt, owned.open(permit));
        let opened = match answer_by {
            Some(limit) => timeout_at(limit, &mut opening).await,
            None => Ok((&mut opening).await),
        };
        let (attempt, opened) = match opened {
            Ok(opened) => opened,
            Err(_) => (opening.abort(), Err(Failure::Timeout.into())),
        };
        match (attempt, opened) {
            (Some(mut attempt), Ok((stream, first))) => {
                attempt.mark_first_token();
                Ok(ChatReply::Stream(Box::new(Relay::new(call.meta.model, stream, first, attempt, ticket))))
            }
            (Some(attempt), Err(failed)) => Err(self.book_failure(attempt, ticket, failed)),
            (None, _) => Err(Failure::Cut),
        }
    }

    /// The most tokens that the answer may have; `None` if nobody says, unless a budget counts on some limit.
    fn max_completion_tokens(&self) -> Option<u64> {
        let Upstream { entry, model, meter, .. } = self.upstream;
        let limit = max_cost::max_completion_tokens(self.request, &entry.provider, model);
        limit.or_else(|| meter.has_budget().then(|| max_cost::default_completion_tokens(self.request)))
    }

    /// Settles and books an attempt that has failed; returns the failure.
    fn book_failure(&self, attempt: Attempt, ticket: Ticket<'_>, failed: FailedCall) -> Failure {
        let FailedCall { failure, usage } = failed;
        ticket.failed(&failure, Instant::now());
        let prompt = if failure.may_have_cost() { self.request.prompt_tokens } else { 0 };
        let completion = match failure {
            // The provider charges for all of it, but its token usage was not read.
            Failure::TooLarge { bytes } => {
                let most = self.max_completion_tokens();
                let most = most.unwrap_or_else(|| max_cost::default_completion_tokens(self.request));
                estimate::length_tokens(bytes).min(most)
            }
            _ => 0,
        };
        let estimated = || Usage::estimated(Tokens::new(prompt, completion));
        attempt.finish(failure.code(), usage.map_or_else(estimated, Usage::reported));
        failure
    }
}

/// Settles and books an attempt that has got a whole answer.
fn book_answer(attempt: Attempt, ticket: Ticket<'_>, completed: CompletionResponse) -> ChatReply {
    ticket.succeeded();
    attempt.note(|span| noted::completion(span, &completed.body));
    attempt.finish("ok", completed.usage);
    let CompletionResponse { body, is_native, .. } = completed;
    if is_native { ChatReply::Native(body) } else { ChatReply::Whole(body) }
}
