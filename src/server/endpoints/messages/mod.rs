//! `POST /anthropic/v1/messages`: a model's answer in the format of the Messages API, complete or as a stream; and
//! `POST /anthropic/v1/messages/count_tokens`, the length of a request.
//!
//! Models of Anthropic's get a request as it came, and their answer goes back as it is (`native`). For all others it is
//! translated into a chat completion (`request`) and the answer is translated back (`answer`, `events`). Either way it is
//! asked as a chat completion is, so that everything holds that holds there: limits, budgets, retries, fallbacks.

mod answer;
mod events;
mod models;
mod native;
mod request;

pub(crate) use models::{list, one};

use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures_util::Stream;
use http::StatusCode;
use serde_json::json;
use warp::reply::Response;

use super::asked_models::AskedModels;
use super::chat::{self, Answer, Answered, Native, Translation};
use crate::api::Service;
use crate::inference::{ChatError, Failure, Fields, NotCounted, Protocol};
use crate::server::ServerState;
use crate::server::gate::{self, Caller};
use crate::server::reply::{self, ApiError, ErrorCode};
use crate::server::request::incoming::Incoming;
use crate::server::request::params::Params;
use events::Events;
use native::NativeEvents;
pub(crate) use request::Purpose;
use request::Translated;

/// Answers a request for a message, or for the length of one.
pub(crate) async fn create<B: Buf, E>(
    context: &Arc<ServerState>,
    incoming: &Incoming,
    body: impl Stream<Item = Result<B, E>>,
    purpose: Purpose,
) -> Result<Response, ApiError> {
    let caller = gate::admit(&context.app, incoming, Service::Inference).await?;
    let answered = async {
        let body = context.read_inference_json(incoming, body).await?;
        match purpose {
            Purpose::Answer => ask(context, &caller, incoming, body).await,
            Purpose::Count => length(&caller, incoming, &body).await,
        }
    };
    reply::within(caller.rate, answered.await)
}

impl Translation for Translated {
    fn body(&self) -> &Bytes {
        &self.body
    }

    fn name_here(&self, param: &str) -> Option<String> {
        Some(self.names.of(param))
    }
}

fn translate(incoming: &Incoming, fields: &Fields<'_>, purpose: Purpose) -> Result<Translated, ApiError> {
    let gateway = &incoming.configured.gateway;
    request::of(fields, purpose, gateway.drops_unsupported(), |model| gateway.takes(model))
}

/// Asks a model for an answer, and gives it in this API's form.
async fn ask(
    context: &Arc<ServerState>,
    caller: &Caller,
    incoming: &Incoming,
    body: Bytes,
) -> Result<Response, ApiError> {
    let translate = |fields: &Fields<'_>| translate(incoming, fields, Purpose::Answer);
    let request = (Protocol::Messages, &body);
    let asked =
        chat::ask_in(context, caller, incoming, request, native::may_pass, Params::raw, translate).await;
    let (Answered { mut about, answer }, translated) = asked?;
    drop(body);
    let request_id = incoming.request_id.clone();
    let mut response = match (answer, translated) {
        (Answer::Native(message), _) => reply::json_bytes(message),
        (Answer::Stream(stream), _) if stream.is_native() => {
            stream.into_response(Some(Box::new(NativeEvents { request_id })))
        }
        (answer, Some(translated)) => {
            let Translated { body: _, names, left_out, shows_thinking, stop_sequences } = translated;
            about.left_out = about.left_out.iter().map(|name| names.of(name)).chain(left_out).collect();
            about.left_out.dedup();
            match answer {
                Answer::Whole(completion) | Answer::Native(completion) => {
                    let message = answer::message(&completion, shows_thinking, &stop_sequences);
                    let message =
                        message.ok_or_else(|| ApiError::broken_stream(&about.model, Failure::NoAnswer))?;
                    reply::json_bytes(chat::with_verification(message, about.verification.as_deref()))
                }
                Answer::Stream(stream) => {
                    let answered = (about.model.clone(), about.prompt_tokens);
                    let events = Events::new(request_id, answered, shows_thinking, stop_sequences);
                    stream.into_response(Some(Box::new(events)))
                }
            }
        }
        // Only what is translated is answered as a chat completion.
        (_, None) => return Err(ErrorCode::Internal.into()),
    };
    about.write(response.headers_mut());
    Ok(response)
}

/// The length of a request in tokens: as the model's provider counts it, else estimated.
async fn length(caller: &Caller, incoming: &Incoming, body: &Bytes) -> Result<Response, ApiError> {
    let gateway = &incoming.configured.gateway;
    let native = chat::object(body)
        .ok()
        .and_then(|fields| Native::read(incoming, (Protocol::Messages, body), &fields));
    if let Some(Native { model, request, .. }) = native {
        let model =
            AskedModels::of(gateway, caller, caller.has_budget(), &model, || None)?.chain.swap_remove(0);
        match gateway.count_tokens(&model, &request, &caller.key.id).await {
            Ok(counted) => return Ok(reply::json_bytes(counted)),
            Err(NotCounted::Failed(failure)) => return Err(ChatError { model, failure, attempts: 1 }.into()),
            Err(NotCounted::Unable) => {}
        }
    }
    let translated = translate(incoming, &Params::raw(body)?, Purpose::Count)?;
    let named = |error: ApiError| error.renamed(|param| translated.name_here(param));
    let tokens = chat::prompt_tokens(caller, incoming, &translated.body).map_err(named)?;
    Ok(reply::json(StatusCode::OK, &json!({"input_tokens": tokens, "estimated": true})))
}
