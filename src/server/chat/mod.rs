//! `POST /inference/v1/chat/completions`: a model's answer, whole or as a stream.
//!
//! The caller's bytes are checked where they are documented and otherwise passed on (see `request`); what the answer
//! is, the gateway below decides. A status of success is only sent once there is an answer, of a stream its first
//! event: whatever fails before that is a real status.

mod message;
mod request;
mod stream;

pub(super) use message::ROLES;
pub(super) use request::{MOST_TOKENS, TEMPERATURE, read};

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::Stream;
use http::HeaderValue;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::gate::{self, Pass};
use super::in_flight::Registration;
use super::incoming::Incoming;
use super::reply::{self, Answer, ApiError};
use super::{Context, header_names, routes};
use crate::api::Service;
use crate::inference::{Answered, CompletionRequest, Gateway, Given};
use crate::keys;
use crate::model_id;
use crate::usage::Meter;
use crate::workers::pass_turn;

/// Of a body that takes longer than this to come, the key is looked at again: it may have been revoked meanwhile.
const SLOW_BODY: Duration = Duration::from_millis(50);

/// The route, behind path and method.
pub(crate) fn route(filter: BoxedFilter<()>, context: &Arc<Context>) -> BoxedFilter<(Response,)> {
    filter
        .and(routes::with_context(context))
        .and(warp::body::stream())
        .then(|context: Arc<Context>, incoming: Incoming, body| async move {
            complete(&context, &incoming, body).await.into()
        })
        .boxed()
}

/// Answers a request for a completion.
pub(crate) async fn complete<B: Buf, E>(
    context: &Arc<Context>,
    incoming: &Incoming,
    body: impl Stream<Item = Result<B, E>>,
) -> Answer {
    let pass = match gate::keyed(&context.app, incoming, Service::Inference).await {
        Ok(pass) => pass,
        Err(refused) => return refused.into_answer(&incoming.request_id),
    };
    match answer(context, &pass, incoming, body).await {
        Ok(response) => Answer { rate: Some(pass.rate.into()), ..response.into() },
        Err(error) => error.with_rate(pass.rate).into_answer(&incoming.request_id),
    }
}

async fn answer<B: Buf, E>(
    context: &Arc<Context>,
    pass: &Pass,
    incoming: &Incoming,
    body: impl Stream<Item = Result<B, E>>,
) -> Result<Response, ApiError> {
    let body = context.read_json(incoming, body).await?;
    let (model, asked) = read(&body)?;
    let chain = chain(&incoming.configured.gateway, pass, &model)?;
    // A whole answer may end as it began; a stream goes on for long, and so may a caller who sends.
    let listed = if asked.stream || incoming.record.age() > SLOW_BODY {
        gate::enlist(context, pass).await?
    } else {
        context.in_flight.register(&pass.key.id)
    };
    ask(context, pass, incoming, (&asked, &body), chain, listed).await
}

/// The models to ask: the one that is named, and those of its fallbacks that the key may use, and pay for.
fn chain(gateway: &Gateway, pass: &Pass, model: &str) -> Result<Vec<Arc<str>>, ApiError> {
    if model_id::parse(model).is_none() || !gateway.knows(model) {
        return Err(ApiError::model_not_found(unknown(gateway, model)));
    }
    if !keys::may_use(&pass.key, model) {
        return Err(ApiError::model_not_allowed(model, &pass.key.models));
    }
    let mut chain = gateway.chain(model);
    chain.retain(|id| keys::may_use(&pass.key, id));
    if pass.budget().is_set() {
        // What the model itself costs is the gateway's question, so that its answer is told.
        chain.retain(|id| **id == *model || gateway.about(id).price.is_some());
    }
    Ok(chain)
}

fn unknown(gateway: &Gateway, model: &str) -> String {
    let configured = gateway.provider_names().join(", ");
    let what = match model_id::split(model) {
        Some((provider, _)) if gateway.provider_names().contains(&provider) => {
            "`model` names a model that its provider does not have".to_owned()
        }
        Some(_) => "`model` names a provider that is not configured".to_owned(),
        None => "`model` is not of the form <provider>/<model_name>".to_owned(),
    };
    format!("{what}; configured providers: {configured}. GET /inference/v1/models lists their models")
}

async fn ask(
    context: &Arc<Context>,
    pass: &Pass,
    incoming: &Incoming,
    (asked, body): (&CompletionRequest<'_>, &Bytes),
    chain: Vec<Arc<str>>,
    mut listed: Registration,
) -> Result<Response, ApiError> {
    let run = context.runs.token();
    let account = pass.account(incoming.request_id.clone());
    let meter = Meter::new(account, context.app.books());
    pass.record.asks(chain.first(), &meter);
    let answered = tokio::select! {
        biased;
        answered = incoming.configured.gateway.chat(asked, body, chain, &meter) => answered?,
        why = listed.cut() => return Err(why.into()),
    };
    let Answered { model, attempts, given } = answered;
    pass.record.set_answering_model(model.clone());
    let mut response = match given {
        Given::Whole(body) => {
            pass_turn().await;
            reply::written(body)
        }
        Given::Stream(relay) => {
            pass.record.streams();
            let (keep_alive, record) = (context.options.keep_alive, pass.record.clone());
            stream::respond(stream::Running { relay, listed, keep_alive, record, _run: run })
        }
    };
    let headers = response.headers_mut();
    headers.insert(&header_names::ATTEMPTS, HeaderValue::from(attempts));
    if let Ok(model) = HeaderValue::from_str(&model) {
        headers.insert(&header_names::MODEL, model);
    }
    Ok(response)
}
