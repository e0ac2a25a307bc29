//! A caller's chat completion: attempts, retries and fallbacks, until a model answers or a stream has begun.
//!
//! A model is retried after transient failures, then its fallbacks are called in order; once the caller has received a
//! byte, only to continue from there (see `resume`). A request makes six calls at most, and no model is retried at the
//! expense of one that has not been called at all. Every attempt is booked exactly once, even if the caller leaves. A
//! request that a model's format cannot express is not sent to it, which is no call: it is neither counted nor booked.
//!
//! Some failures end the search at once: a content refusal, which is an answer and not to be routed around; a request
//! that the requested model rejects as invalid, which the caller has to correct; and a budget that does not cover the
//! first call. Others only skip a model: a budget that does not cover a later call, a pause (and no wait is cut short
//! in favour of a fallback that is paused), and a fallback that rejects the request as invalid, because one model may
//! support what another does not (a prefill, a tool, a temperature), and the caller has not chosen the fallback. The
//! failure that is reported is that of the requested model.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::candidate::{Candidate, MAX_ATTEMPTS, Predecessor};
use super::gateway::Gateway;
use super::relay::Relay;
use super::resume::Resumption;
use crate::api::error_code::DEFAULT_RETRY_AFTER;
use crate::json::reader::Json;
use crate::providers::{CompletionRequest, Failure};
use crate::usage::Meter;

/// A model's answer to a chat completion.
pub struct ChatAnswer {
    /// The full identifier of the model that answers.
    pub model: Arc<str>,
    /// How many calls were made to providers, including the one that succeeded.
    pub attempts: u32,
    /// The response for the caller.
    pub reply: ChatReply,
    /// The names of what was left out of the request, as the model's format has nothing like it.
    pub left_out: Vec<String>,
}

/// The response for the caller.
pub enum ChatReply {
    /// The complete response, in the chat-completion format.
    Whole(Bytes),
    /// The complete response to a native request, in its protocol.
    Native(Bytes),
    /// A stream that has begun, in the one or the other ([`Relay::is_native`]).
    Stream(Box<Relay>),
}

/// Why no model answered.
#[derive(Debug)]
pub struct ChatError {
    /// The full identifier of the requested model, or of the one whose failure ended the search.
    pub model: Arc<str>,
    /// Why it did not answer.
    pub failure: Failure,
    /// How many calls were made to providers.
    pub attempts: u32,
}

impl Gateway {
    /// Calls the models of `chain` in order until one answers or its stream has begun. `body` is what `request` was
    /// parsed from: it is needed again to resume a stream that breaks.
    ///
    /// # Errors
    /// The first model's failure if none answers, or the failure that ended the search.
    pub async fn chat(
        self: &Arc<Self>,
        request: &CompletionRequest<'_>,
        body: &Bytes,
        chain: Vec<Arc<str>>,
        meter: &Meter,
    ) -> Result<ChatAnswer, ChatError> {
        let mut attempts = 0;
        let mut first = None;
        let mut soonest: Option<Duration> = None;
        let mut after = None;
        for position in 0..chain.len() {
            if attempts >= MAX_ATTEMPTS {
                break;
            }
            let (id, before) = (&chain[position], attempts);
            let load = self.loads().begin(id);
            let failure = match self.candidate(&chain, position, (request, body), meter) {
                None => Failure::UnknownModel,
                Some(candidate) => {
                    let candidate = Candidate { after, ..candidate };
                    let deadline = candidate.upstream.time.deadline;
                    match candidate.ask(&mut attempts).await {
                        Ok((mut reply, left_out)) => {
                            let model = id.clone();
                            if let ChatReply::Stream(relay) = &mut reply {
                                relay.load = load;
                                let retries = (attempts - before).saturating_sub(1);
                                relay.set_resumption(Resumption {
                                    gateway: self.clone(),
                                    body: body.clone(),
                                    include_usage: request.include_usage,
                                    prompt_tokens: request.prompt_tokens,
                                    chain,
                                    position,
                                    retries,
                                    attempts,
                                    meter: meter.clone(),
                                    deadline,
                                });
                            }
                            return Ok(ChatAnswer { model, attempts, reply, left_out });
                        }
                        Err(failure) => failure,
                    }
                }
            };
            let is_final = is_final(&failure, position) && !(self.chose_for(request) && is_unsent(&failure));
            if is_final || (first.is_none() && failure.is_unpaid()) {
                return Err(ChatError { model: id.to_owned(), failure, attempts });
            }
            if let Some(wait) = wait_before_retry(&failure) {
                soonest = Some(soonest.map_or(wait, |soonest| soonest.min(wait)));
            }
            if first.is_none() || attempts > before {
                after = Some(Predecessor { id, outcome: failure.code() });
            }
            first.get_or_insert(failure);
        }
        // Any of the models may answer a retry, so the shortest wait is the one to report.
        if let (Some(Failure::Paused { retry_after, .. }), Some(soonest)) = (&mut first, soonest) {
            *retry_after = soonest;
        }
        let model = chain.first().cloned().unwrap_or_else(|| "".into());
        Err(ChatError { model, failure: first.unwrap_or(Failure::UnknownModel), attempts })
    }

    /// Whether the request names a pool: then not the caller has chosen the model, and what one target's format cannot
    /// express may be no matter for the next.
    fn chose_for(&self, request: &CompletionRequest<'_>) -> bool {
        let model = request.fields.get("model").and_then(Json::string);
        model.is_some_and(|name| self.pool(&name).is_some())
    }
}

/// Whether the model was not called, as its format cannot express the request.
const fn is_unsent(failure: &Failure) -> bool {
    matches!(failure, Failure::Unsupported { .. })
}

/// Whether this failure of the model at `position` in the chain rules out calling any other.
pub(super) const fn is_final(failure: &Failure, position: usize) -> bool {
    match failure {
        Failure::Refused => true,
        Failure::Rejected { .. } | Failure::Unsupported { .. } => position == 0,
        _ => false,
    }
}

/// How long to wait before a retry of a call that failed like this may succeed; `None` if waiting alone does not help.
pub fn wait_before_retry(failure: &Failure) -> Option<Duration> {
    let is_temporary = failure.is_transient() || *failure == Failure::Timeout;
    failure.retry_after().or_else(|| is_temporary.then_some(DEFAULT_RETRY_AFTER))
}
