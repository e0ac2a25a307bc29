//! `GET /inference/v1/models`: the models that can be asked for, as the chat-completion API lists them.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use serde::Serialize;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::incoming::Incoming;
use super::{Context, gate, rated, reply, routes};
use crate::api::Service;
use crate::keys;

#[derive(Serialize)]
struct List<'a> {
    object: &'static str,
    data: Vec<Model<'a>>,
}

#[derive(Serialize)]
struct Model<'a> {
    id: &'a str,
    object: &'static str,
    /// Unix seconds. Nobody here knows when a model was made: the time at which it is listed.
    created: i64,
    owned_by: &'a str,
}

/// The route, behind path and method.
pub(crate) fn route(filter: BoxedFilter<()>, context: &Arc<Context>) -> BoxedFilter<(Response,)> {
    filter
        .and(routes::with_context(context))
        .and(warp::header::headers_cloned())
        .map(|context: Arc<Context>, incoming: Incoming, headers: HeaderMap| {
            match gate::keyed(&context.app, &incoming, &headers, Service::Inference) {
                Ok(pass) => rated(list(&context, &pass), pass.rate),
                Err(refused) => refused.into_response(&incoming.request_id),
            }
        })
        .boxed()
}

/// Those that the key may use.
fn list(context: &Context, pass: &gate::Pass) -> Response {
    let now = context.app.clock.now();
    let ids = context.app.gateway.models(now);
    let created = now.unix_ms().div_euclid(1000);
    let data = ids
        .iter()
        .filter(|id| keys::may_use(&pass.key, id))
        .map(|id| {
            let owned_by = id.split_once('/').map_or(id.as_str(), |(provider, _)| provider);
            Model { id, object: "model", created, owned_by }
        })
        .collect();
    reply::json(StatusCode::OK, &List { object: "list", data })
}
