//! A caller's chat completion: tries, fallbacks, accounts, until a model answers or a stream has begun.
//!
//! A model is tried again for what may pass, then its fallbacks are asked in their order; once the caller has a byte,
//! only to go on from there (see `resume`). All that takes six calls at most, and no model is tried again at the cost of
//! one that was not asked at all. A content refusal is an answer that nobody routes around, and a request that the model
//! asked for calls wrong is the caller's to mend: both end it at once. So does a budget that does not cover the first
//! call; what it does not cover later is passed over, like a model that is paused, and no wait is shortened for the sake
//! of a fallback that is paused. A fallback that calls the request wrong is passed over as well: what one model takes (a
//! prefill, a tool, a temperature) another may not, and the caller has not chosen it. The failure that is told is that
//! of the model that was asked for. Every attempt is booked exactly once, also when the caller leaves.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::candidate::{Candidate, MOST_ATTEMPTS};
use super::gateway::Gateway;
use super::relay::Relay;
use super::resume::Resumption;
use crate::providers::{CompletionRequest, Failure};
use crate::usage::Meter;

/// What a caller is asked to wait where a provider does not say.
pub const SHORTLY: Duration = Duration::from_secs(5);

/// An answer, and whose it is.
pub struct Answered {
    /// The full identifier of the model that answers.
    pub model: Arc<str>,
    /// How many calls were made to providers, this one included.
    pub attempts: u32,
    /// The answer.
    pub given: Given,
}

/// An answer for the caller, in the chat-completion format.
pub enum Given {
    /// All of it.
    Whole(Bytes),
    /// Its beginning, with more to be pulled.
    Stream(Box<Relay>),
}

/// Why nobody answered.
#[derive(Debug)]
pub struct Unanswered {
    /// The full identifier of the model that was asked for.
    pub model: Arc<str>,
    /// Why it did not answer.
    pub failure: Failure,
    /// How many calls were made to providers.
    pub attempts: u32,
}

impl Gateway {
    /// The models to ask when `id` is asked for, in order, itself first: what is set for the model, then what is set
    /// for chat completions. Fallbacks of fallbacks are not followed.
    pub fn chain(&self, id: &str) -> Vec<Arc<str>> {
        let mut chain = vec![id.into()];
        let own = self.find(id).and_then(|(provider, model)| provider.model_settings(model));
        let own = own.map(|settings| settings.fallbacks.as_slice()).unwrap_or_default();
        let general = self.settings().fallbacks.get(id).map(Vec::as_slice).unwrap_or_default();
        for fallback in own.iter().chain(general) {
            if chain.iter().all(|id: &Arc<str>| **id != **fallback) {
                chain.push(fallback.as_str().into());
            }
        }
        chain
    }

    /// Asks the models of `chain` in order until one answers; of a stream, until its first event is there. `body` is
    /// what `asked` was read from: a stream that breaks may have to be asked for again.
    ///
    /// # Errors
    /// With the first model's failure if none answers, or with the one that ends the search.
    pub async fn chat(
        self: &Arc<Self>,
        asked: &CompletionRequest<'_>,
        body: &Bytes,
        chain: Vec<Arc<str>>,
        meter: &Meter,
    ) -> Result<Answered, Unanswered> {
        let mut attempts = 0;
        let mut first = None;
        let mut soonest: Option<Duration> = None;
        let mut after = None;
        for place in 0..chain.len() {
            if attempts >= MOST_ATTEMPTS {
                break;
            }
            let (id, before) = (&chain[place], attempts);
            let failure = match self.candidate(&chain, place, asked, meter) {
                None => Failure::UnknownModel,
                Some(candidate) => {
                    let candidate = Candidate { after, ..candidate };
                    let deadline = candidate.upstream.span.deadline;
                    match candidate.ask(&mut attempts).await {
                        Ok(mut given) => {
                            let model = id.clone();
                            if let Given::Stream(relay) = &mut given {
                                let retried = (attempts - before).saturating_sub(1);
                                relay.resume_by(Resumption {
                                    gateway: self.clone(),
                                    body: body.clone(),
                                    include_usage: asked.include_usage,
                                    prompt_tokens: asked.prompt_tokens,
                                    chain,
                                    place,
                                    retried,
                                    attempts,
                                    meter: meter.clone(),
                                    deadline,
                                });
                            }
                            return Ok(Answered { model, attempts, given });
                        }
                        Err(failure) => failure,
                    }
                }
            };
            if is_final(&failure, place) || (first.is_none() && failure.is_unpaid()) {
                return Err(Unanswered { model: id.to_owned(), failure, attempts });
            }
            if let Some(wait) = wait_for(&failure) {
                soonest = Some(soonest.map_or(wait, |soonest| soonest.min(wait)));
            }
            if first.is_none() || attempts > before {
                after = Some(&**id);
            }
            first.get_or_insert(failure);
        }
        // Whichever of them is asked again first may answer.
        if let (Some(Failure::Paused { retry_after, .. }), Some(soonest)) = (&mut first, soonest) {
            *retry_after = soonest;
        }
        let model = chain.first().cloned().unwrap_or_else(|| "".into());
        Err(Unanswered { model, failure: first.unwrap_or(Failure::UnknownModel), attempts })
    }
}

/// Whether no other model may or need be asked after the one at this place of the chain has failed.
pub(super) const fn is_final(failure: &Failure, place: usize) -> bool {
    match failure {
        Failure::Refused => true,
        Failure::Rejected { .. } | Failure::Unsupported { .. } => place == 0,
        _ => false,
    }
}

/// How long to wait before a model that failed like this may answer; `None` where that takes more than a wait.
pub fn wait_for(failure: &Failure) -> Option<Duration> {
    let may_pass = failure.is_transient() || *failure == Failure::Timeout;
    failure.retry_after().or_else(|| may_pass.then_some(SHORTLY))
}
