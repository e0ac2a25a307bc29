//! Resumes a stream that broke after the caller had received a part of it.
//!
//! The request is repeated: to the same model, if a retry makes sense and it has retries left, then to the fallbacks
//! after it, with the same permits, limits, retries and accounting as before, and within the number of calls and the
//! deadline of the whole answer. A new stream that repeats what the caller has continues from there, its chunks with
//! the same `id`, `created` and `model` as before. If it says anything else, it is cancelled at once and the search
//! ends: the caller cannot get two answers in one.
//!
//! What must hold: no byte goes out of a stream that has not repeated all that was sent before, and a request is never
//! repeated after a refusal, nor for an answer with more than text.

mod prefix;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::time::{Instant, sleep};

use self::prefix::{Diverged, PrefixMatcher};
use super::candidate::{Candidate, MAX_ATTEMPTS, Predecessor};
use super::chat::{ChatReply, is_final};
use super::gateway::Gateway;
use super::relay::Relay;
use crate::log_scope::LogScope;
use crate::providers::{CompletionRequest, Failure};
use crate::usage::Meter;

/// What is needed to repeat a request. Owned, as a stream outlives the handler of its request.
pub(super) struct Resumption {
    pub(super) gateway: Arc<Gateway>,
    /// The caller's request, only parsed again if needed.
    pub(super) body: Bytes,
    pub(super) include_usage: bool,
    pub(super) prompt_tokens: u64,
    /// The models that may be called, in order.
    pub(super) chain: Vec<Arc<str>>,
    /// The position in the chain of the model that answers.
    pub(super) position: usize,
    /// How often that model has been retried.
    pub(super) retries: u32,
    /// How many calls were made for the request, to all models.
    pub(super) attempts: u32,
    pub(super) meter: Meter,
    /// For the whole answer, whichever models give it.
    pub(super) deadline: Instant,
}

/// A stream that broke.
pub(super) struct BrokenStream {
    pub(super) failure: Failure,
    /// All text that was sent to the caller.
    pub(super) sent: String,
    /// The head of each chunk that was sent to the caller.
    pub(super) head: Vec<u8>,
}

/// An attempt that continues where another one broke.
pub(super) struct Successor {
    pub(super) relay: Box<Relay>,
    /// What goes out before the next bytes of the relay.
    pub(super) rest: Bytes,
    /// For the case that this one breaks too.
    pub(super) resumption: Box<Resumption>,
}

/// A search for a successor; resolves to the failure of the broken stream if there is none. Dropping it cancels its
/// calls.
pub(super) struct Search {
    /// The mutex is never locked; it makes the future `Sync`, which response bodies have to be.
    work: Mutex<Pin<Box<dyn Future<Output = Option<Successor>> + Send>>>,
    failure: Failure,
}

impl Future for Search {
    type Output = Result<Successor, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let work = self.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        let found = std::task::ready!(work.as_mut().poll(context));
        Poll::Ready(found.ok_or_else(|| self.failure.clone()))
    }
}

/// Why a new stream did not catch up with the broken one.
enum CatchUpError {
    Diverged,
    Broke(Failure),
}

impl From<Diverged> for CatchUpError {
    fn from(Diverged: Diverged) -> Self {
        Self::Diverged
    }
}

impl Resumption {
    /// Starts the search for a stream that continues where `broken` ended.
    pub(super) fn search(self: Box<Self>, broken: BrokenStream, scope: LogScope) -> Search {
        let failure = broken.failure.clone();
        Search { work: Mutex::new(Box::pin(scope.around(self.find(broken)))), failure }
    }

    async fn find(mut self: Box<Self>, broken: BrokenStream) -> Option<Successor> {
        let BrokenStream { mut failure, sent, head } = broken;
        let body = self.body.clone();
        let request = CompletionRequest {
            fields: serde_json::from_slice(&body).ok()?,
            stream: true,
            include_usage: self.include_usage,
            choices: 1,
            prompt_tokens: self.prompt_tokens,
            native: None,
        };
        let (mut position, mut retries, mut attempts) = (self.position, self.retries, self.attempts);
        let mut after = (position, failure.code());
        // Whether no more retries of the model at `position` make sense.
        let mut is_exhausted = false;
        loop {
            let same =
                if is_exhausted { None } else { self.candidate(position, after, retries, &request, &head) };
            match same.and_then(|model| model.pause(&failure, retries, attempts)) {
                Some(pause) => {
                    sleep(pause).await;
                    retries += 1;
                }
                None if is_final(&failure, position) => return None,
                None => (position, retries, is_exhausted) = (position + 1, 0, false),
            }
            let is_over = attempts >= MAX_ATTEMPTS || Instant::now() >= self.deadline;
            if is_over || position >= self.chain.len() {
                return None;
            }
            // Created after the pause, as its time begins now, and as other models may have become available.
            let Some(candidate) = self.candidate(position, after, retries, &request, &head) else {
                failure = Failure::UnknownModel;
                continue;
            };
            let before = attempts;
            let reply = candidate.ask(&mut attempts).await;
            let made = attempts - before;
            retries += made.saturating_sub(1);
            if made > 0 {
                after.0 = position;
            }
            let mut relay = match reply {
                Ok((ChatReply::Stream(relay), _)) => relay,
                // A stream was requested, so this cannot happen.
                Ok((ChatReply::Whole(_) | ChatReply::Native(_), _)) => return None,
                Err(new) => {
                    if made > 0 {
                        after.1 = new.code();
                    }
                    (failure, is_exhausted) = (new, true);
                    continue;
                }
            };
            match catch_up(&mut relay, &sent).await {
                Ok(rest) => {
                    tracing::info!(model = &**relay.model(), "a broken stream was resumed");
                    (self.position, self.retries, self.attempts) = (position, retries, attempts);
                    return Some(Successor { relay, rest, resumption: self });
                }
                Err(CatchUpError::Diverged) => {
                    relay.give_up();
                    tracing::info!(
                        model = &**relay.model(),
                        "a broken stream could not be resumed: the new answer differs"
                    );
                    return None;
                }
                Err(CatchUpError::Broke(new)) => {
                    after.1 = new.code();
                    failure = new;
                }
            }
        }
    }

    /// The model at `position` of the chain, to be called for the rest of an answer after the one at `after` failed
    /// with this code.
    fn candidate<'a>(
        &'a self,
        position: usize,
        (after, outcome): (usize, &'static str),
        retries: u32,
        request: &'a CompletionRequest<'a>,
        head: &'a [u8],
    ) -> Option<Candidate<'a>> {
        let mut first = self.gateway.candidate(&self.chain, position, (request, &self.body), &self.meter)?;
        let deadline = &mut first.upstream.time.deadline;
        *deadline = self.deadline.min(*deadline);
        let after = self.chain.get(after).map(|id| Predecessor { id, outcome });
        Some(Candidate { after, retries, head: Some(head), ..first })
    }
}

/// Pulls a new stream until it has repeated all that the caller has. Returns what arrived beyond that.
async fn catch_up(relay: &mut Relay, sent: &str) -> Result<Bytes, CatchUpError> {
    let mut matcher = PrefixMatcher::new(sent);
    loop {
        match relay.pull().await {
            Some(Ok(bytes)) => {
                if let Some(rest) = matcher.consume(&bytes)? {
                    return Ok(rest.into());
                }
            }
            Some(Err(failure)) => return Err(CatchUpError::Broke(failure)),
            None => return Err(CatchUpError::Diverged),
        }
    }
}
