//! `POST /openai/v1/responses`: a model's answer as the Responses API gives it, whole or as typed events. Nothing is
//! stored: each request brings its whole conversation.
//!
//! Providers that have this API get a request as it came, and their answer goes back as it is (`native`). For all others
//! it becomes a chat completion (`request`, `items`, `content`, `tools`), which is asked as any other one; the answer
//! becomes a response (`response`, `output`) or its events (`events`, `frame`).

mod content;
mod echo;
mod events;
mod frame;
mod items;
mod native;
mod output;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod tools;

use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures_util::Stream;

use self::events::Events;
use self::native::NativeEvents;
use self::request::Translated;
use self::response::Response;
use super::chat::{self, Answer, Answered, Told, Translation};
use crate::api::Service;
use crate::inference::{Fields, Protocol};
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
    let gateway = &incoming.configured.gateway;
    let drops = gateway.drops_unsupported();
    let translate = |fields: &Fields<'_>| request::of(fields, drops, |model| gateway.takes(model));
    let request = (Protocol::Responses, &body);
    let asked =
        chat::ask_in(context, caller, incoming, request, native::may_pass, chat::object, translate).await;
    let (Answered { mut about, answer }, translated) = asked?;
    let mut response = match (answer, translated) {
        (Answer::Native(response), _) => reply::json_bytes(response),
        (Answer::Stream(stream), _) if stream.is_native() => {
            stream.into_response(Some(Box::new(NativeEvents::default())))
        }
        (answer, Some(translated)) => {
            for name in &mut about.left_out {
                *name = translated.name_here(name).unwrap_or_else(|| std::mem::take(name));
            }
            let Translated { names, echo, left_out, .. } = translated;
            about.left_out.extend(left_out);
            match answer {
                Answer::Whole(completion) | Answer::Native(completion) => {
                    let whole = response::whole(&completion, echo, &names, &about.model);
                    let whole = whole.ok_or(ErrorCode::Internal)?;
                    reply::json_bytes(chat::with_verification(whole, about.verification.as_deref()))
                }
                Answer::Stream(stream) => {
                    let begun = Response::new(echo, &about.model, context.app.clock.now().unix_ms() / 1000);
                    stream.into_response(Some(Box::new(Events::new(begun, names))))
                }
            }
        }
        // Only what is translated is answered as a chat completion.
        (_, None) => return Err(ErrorCode::Internal.into()),
    };
    about.write(response.headers_mut());
    Ok(response)
}

impl Translation for Translated {
    fn told(&self, _: &Fields<'_>) -> Told {
        self.told.clone()
    }

    fn body(&self) -> &Bytes {
        &self.body
    }

    fn name_here(&self, param: &str) -> Option<String> {
        request::name_here(param, &self.origins)
    }
}
