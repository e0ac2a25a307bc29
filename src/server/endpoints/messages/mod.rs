//! `POST /anthropic/v1/messages`: a model's answer in the format of the Messages API, complete or as a stream; and
//! `POST /anthropic/v1/messages/count_tokens`, the length of a request.
//!
//! A request is translated into a chat completion (`request`) and asked as one, so that everything holds that holds
//! there: limits, budgets, retries, fallbacks. The answer is translated back (`answer`, `events`).

mod answer;
mod events;
mod models;
mod request;

pub(crate) use models::{list, one};

use std::sync::Arc;

use bytes::Buf;
use futures_util::Stream;
use http::StatusCode;
use serde_json::json;
use warp::reply::Response;

use super::chat::{self, Answer, Answered};
use crate::api::Service;
use crate::inference::Failure;
use crate::server::ServerState;
use crate::server::gate::{self, Caller};
use crate::server::reply::{self, ApiError, Reply};
use crate::server::request::incoming::Incoming;
use events::Events;
use request::{Purpose, Translated};

/// Answers a request for a message, or for the length of one.
pub(crate) async fn create<B: Buf, E>(
    context: &Arc<ServerState>,
    incoming: &Incoming,
    body: impl Stream<Item = Result<B, E>>,
) -> Reply {
    respond(context, incoming, body, Purpose::Answer).await
}

/// Answers a request for the length of a message.
pub(crate) async fn count<B: Buf, E>(
    context: &Arc<ServerState>,
    incoming: &Incoming,
    body: impl Stream<Item = Result<B, E>>,
) -> Reply {
    respond(context, incoming, body, Purpose::Count).await
}

async fn respond<B: Buf, E>(
    context: &Arc<ServerState>,
    incoming: &Incoming,
    body: impl Stream<Item = Result<B, E>>,
    purpose: Purpose,
) -> Reply {
    let caller = match gate::admit(&context.app, incoming, Service::Inference).await {
        Ok(caller) => caller,
        Err(refused) => return refused.into_reply(incoming),
    };
    let answered = async {
        let body = context.read_inference_json(incoming, body).await?;
        let gateway = &incoming.configured.gateway;
        let drops = gateway.drops_unsupported();
        let translated = request::translate(&body, purpose, drops, |model| gateway.takes(model))?;
        match purpose {
            Purpose::Answer => ask(context, &caller, incoming, translated).await,
            Purpose::Count => estimate(&caller, incoming, &translated),
        }
    };
    match answered.await {
        Ok(response) => Reply { rate: Some(caller.rate.into()), ..response.into() },
        Err(error) => error.with_rate(caller.rate).into_reply(incoming),
    }
}

/// Asks a model for an answer, and translates it.
async fn ask(
    context: &Arc<ServerState>,
    caller: &Caller,
    incoming: &Incoming,
    translated: Translated,
) -> Result<Response, ApiError> {
    let Translated { body, names, left_out, shows_thinking, stop_sequences } = translated;
    let named = |error: ApiError| error.renamed(|param| Some(names.of(param)));
    let Answered { mut about, answer } = chat::ask(context, caller, incoming, &body).await.map_err(named)?;
    drop(body);
    let mut response = match answer {
        Answer::Whole(completion) => {
            let message = answer::message(&completion, shows_thinking, &stop_sequences);
            let message = message.ok_or_else(|| ApiError::broken_stream(&about.model, Failure::NoAnswer))?;
            reply::json(StatusCode::OK, &message)
        }
        Answer::Stream(stream) => {
            let request_id = incoming.request_id.clone();
            let events = Events::new(request_id, about.prompt_tokens, shows_thinking, stop_sequences);
            stream.into_response(Some(Box::new(events)))
        }
    };
    about.left_out = about.left_out.iter().map(|name| names.of(name)).chain(left_out).collect();
    about.left_out.dedup();
    about.write(response.headers_mut());
    Ok(response)
}

/// The estimated length of a request in tokens.
fn estimate(caller: &Caller, incoming: &Incoming, translated: &Translated) -> Result<Response, ApiError> {
    let named = |error: ApiError| error.renamed(|param| Some(translated.names.of(param)));
    let tokens = chat::prompt_tokens(caller, incoming, &translated.body).map_err(named)?;
    Ok(reply::json(StatusCode::OK, &json!({"input_tokens": tokens, "estimated": true})))
}
