//! `POST /openai/v1/responses`: a model's answer as the Responses API gives it, whole or as typed events. Nothing is
//! stored: each request brings its whole conversation.
//!
//! A request becomes a chat completion (`request`, `items`, `content`, `tools`), which is asked as any other one; the
//! answer becomes a response (`response`, `output`) or its events (`events`, `frame`).

mod content;
mod echo;
mod events;
mod frame;
mod items;
mod output;
mod raw;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod tools;

use std::sync::Arc;

use bytes::Buf;
use futures_util::Stream;

use self::events::Events;
use self::request::Translated;
use self::response::Response;
use super::chat::{self, Answer, Answered};
use crate::api::Service;
use crate::server::ServerState;
use crate::server::gate::{self, Caller};
use crate::server::reply::{self, ApiError, ErrorCode, Reply};
use crate::server::request::incoming::Incoming;

/// Answers a request for a response.
pub(crate) async fn create<B: Buf, E>(
    context: &Arc<ServerState>,
    incoming: &Incoming,
    body: impl Stream<Item = Result<B, E>>,
) -> Reply {
    let caller = match gate::admit(&context.app, incoming, Service::Inference).await {
        Ok(caller) => caller,
        Err(refused) => return refused.into_reply(incoming),
    };
    match answer(context, &caller, incoming, body).await {
        Ok(response) => Reply { rate: Some(caller.rate.into()), ..response.into() },
        Err(error) => error.with_rate(caller.rate).into_reply(incoming),
    }
}

/// Answers an admitted request.
async fn answer<B: Buf, E>(
    context: &Arc<ServerState>,
    caller: &Caller,
    incoming: &Incoming,
    body: impl Stream<Item = Result<B, E>>,
) -> Result<warp::reply::Response, ApiError> {
    let body = context.read_inference_json(incoming, body).await?;
    let Translated { body, names, echo, left_out, origins } = request::translate(&body)?;
    let answered = chat::ask(context, caller, incoming, &body).await;
    let name_here = |name: &str| request::name_here(name, &origins);
    let Answered { mut about, answer } = answered.map_err(|error| error.renamed(name_here))?;
    for name in &mut about.left_out {
        *name = name_here(name).unwrap_or_else(|| std::mem::take(name));
    }
    about.left_out.extend(left_out);
    let mut response = match answer {
        Answer::Whole(completion) => {
            let whole = response::whole(&completion, echo, &names, &about.model);
            reply::json_bytes(whole.ok_or(ErrorCode::Internal)?)
        }
        Answer::Stream(stream) => {
            let begun = Response::new(echo, &about.model, context.app.clock.now().unix_ms() / 1000);
            stream.into_response(Some(Box::new(Events::new(begun, names))))
        }
    };
    about.write(response.headers_mut());
    Ok(response)
}
