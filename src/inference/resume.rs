//! Going on with a stream that broke after the caller had a part of it.
//!
//! The same request is asked again, of the same model where that makes sense and is left to it, then of the fallbacks
//! behind it: with the same permits, limits, retries and accounts as before, and within the calls and the time that the
//! whole answer has. A new stream that says again what the caller has goes on from there, under the name the caller
//! knows it by. One that says anything else is stopped at once, and so is the search: the caller cannot be given two
//! answers in one.
//!
//! What must hold: not a byte goes out of a stream that has not repeated all of what went out before; and nothing is
//! asked again behind a refusal, or for an answer of more than text.

mod prefix;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::time::{Instant, sleep};
use tracing::Instrument;

use self::prefix::{Differs, Prefix};
use super::candidate::{Candidate, MOST_ATTEMPTS};
use super::chat::{Given, is_final};
use super::gateway::Gateway;
use super::relay::Relay;
use crate::providers::{CompletionRequest, Failure};
use crate::usage::Meter;

/// What it takes to ask for an answer again. Owned, as a stream outlives its request's handler.
pub(super) struct Resumption {
    pub(super) gateway: Arc<Gateway>,
    /// The caller's request; it is only read again if that is needed.
    pub(super) body: Bytes,
    pub(super) include_usage: bool,
    pub(super) prompt_tokens: u64,
    /// The models that may be asked, in their order.
    pub(super) chain: Vec<Arc<str>>,
    /// Where in the chain the model stands that answers.
    pub(super) place: usize,
    /// How often that model was tried again.
    pub(super) retried: u32,
    /// How many calls were made for the request, by all models.
    pub(super) attempts: u32,
    pub(super) meter: Meter,
    /// For the whole answer, whoever gives it.
    pub(super) deadline: Instant,
}

/// A stream that broke.
pub(super) struct Broken {
    pub(super) failure: Failure,
    /// All text that the caller has.
    pub(super) said: String,
    /// What the chunks that the caller has begin with.
    pub(super) head: Vec<u8>,
}

/// An attempt that goes on where another one broke.
pub(super) struct Successor {
    pub(super) relay: Box<Relay>,
    /// What is to go out before the relay's next bytes.
    pub(super) rest: Bytes,
    /// For the next break.
    pub(super) resumption: Box<Resumption>,
}

/// The search for a successor, under way; the failure of the broken stream if there is none. Dropping it stops what it
/// asks.
pub(super) struct Search {
    /// Never locked: it makes the work, which has one owner, what bodies of answers have to be (`Sync`).
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
enum Lost {
    Differs,
    Broke(Failure),
}

impl From<Differs> for Lost {
    fn from(Differs: Differs) -> Self {
        Self::Differs
    }
}

impl Resumption {
    /// Begins the search for a stream that goes on where `broken` ended.
    pub(super) fn search(self: Box<Self>, broken: Broken, span: tracing::Span) -> Search {
        let failure = broken.failure.clone();
        Search { work: Mutex::new(Box::pin(self.find(broken).instrument(span))), failure }
    }

    async fn find(mut self: Box<Self>, broken: Broken) -> Option<Successor> {
        let Broken { mut failure, said, head } = broken;
        let body = self.body.clone();
        let asked = CompletionRequest {
            fields: serde_json::from_slice(&body).ok()?,
            stream: true,
            include_usage: self.include_usage,
            choices: 1,
            prompt_tokens: self.prompt_tokens,
        };
        let (mut place, mut retried, mut attempts) = (self.place, self.retried, self.attempts);
        let mut after = place;
        // Whether the model at that place was tried again as often as makes sense.
        let mut is_exhausted = false;
        loop {
            let again =
                if is_exhausted { None } else { self.candidate(place, after, retried, &asked, &head) };
            match again.and_then(|model| model.pause(&failure, retried, attempts)) {
                Some(pause) => {
                    sleep(pause).await;
                    retried += 1;
                }
                None if is_final(&failure, place) => return None,
                None => (place, retried, is_exhausted) = (place + 1, 0, false),
            }
            let is_over = attempts >= MOST_ATTEMPTS || Instant::now() >= self.deadline;
            if is_over || place >= self.chain.len() {
                return None;
            }
            // Behind the pause, as its time begins now, and other models may be in use than were before.
            let Some(candidate) = self.candidate(place, after, retried, &asked, &head) else {
                failure = Failure::UnknownModel;
                continue;
            };
            let before = attempts;
            let given = candidate.ask(&mut attempts).await;
            let made = attempts - before;
            retried += made.saturating_sub(1);
            if made > 0 {
                after = place;
            }
            let mut relay = match given {
                Ok(Given::Stream(relay)) => relay,
                // Nobody gives a whole answer for a stream.
                Ok(Given::Whole(_)) => return None,
                Err(new) => {
                    (failure, is_exhausted) = (new, true);
                    continue;
                }
            };
            match catch_up(&mut relay, &said).await {
                Ok(rest) => {
                    tracing::info!(model = &**relay.model(), "a stream that broke goes on");
                    (self.place, self.retried, self.attempts) = (place, retried, attempts);
                    return Some(Successor { relay, rest, resumption: self });
                }
                Err(Lost::Differs) => {
                    tracing::info!(
                        model = &**relay.model(),
                        "another answer does not go on where a stream broke"
                    );
                    return None;
                }
                Err(Lost::Broke(new)) => failure = new,
            }
        }
    }

    /// The model at a place of the chain, to be asked for the rest of an answer after the one at another place failed.
    fn candidate<'a>(
        &'a self,
        place: usize,
        after: usize,
        retried: u32,
        asked: &'a CompletionRequest<'a>,
        head: &'a [u8],
    ) -> Option<Candidate<'a>> {
        let mut first = self.gateway.candidate(&self.chain, place, asked, &self.meter)?;
        let deadline = &mut first.upstream.span.deadline;
        *deadline = self.deadline.min(*deadline);
        let after = self.chain.get(after).map(|id| &**id);
        Some(Candidate { after, retried, head: Some(head), ..first })
    }
}

/// Pulls a new stream until it has said all that the caller has; what came beyond.
async fn catch_up(relay: &mut Relay, said: &str) -> Result<Bytes, Lost> {
    let mut prefix = Prefix::new(said);
    loop {
        match relay.pull().await {
            Some(Ok(piece)) => {
                if let Some(rest) = prefix.swallow(&piece)? {
                    return Ok(rest.into());
                }
            }
            Some(Err(failure)) => return Err(Lost::Broke(failure)),
            None => return Err(Lost::Differs),
        }
    }
}
