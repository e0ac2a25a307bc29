//! `GET /inference/v1/models`: the available models, in the format of the chat-completion API, with what is known about
//! them; and `GET /inference/v1/models/{id}`: one of them.

use http::StatusCode;
use percent_encoding::percent_decode_str;
use warp::reply::Response;

use crate::api::Service;
use crate::api::models::{Model, ModelList};
use crate::clock::Time;
use crate::inference::Gateway;
use crate::server::reply::{self, ApiError, ErrorCode};
use crate::server::request::incoming::Incoming;
use crate::server::{ServerState, gate};
use crate::{keys, model_id};

/// The owner of a name of the operator's own.
const POOL: &str = "pool";

/// Lists the models that the key may use.
pub(crate) async fn list(context: &ServerState, incoming: &Incoming) -> Result<Response, ApiError> {
    let caller = gate::admit(&context.app, incoming, Service::Inference).await?;
    let data = usable(context, &incoming.configured.gateway, &caller);
    let models = ModelList { object: "list".to_owned(), data };
    reply::within(caller.rate, Ok(reply::json(StatusCode::OK, &models)))
}

/// The models that a key may use, sorted by identifier.
pub(in crate::server) fn usable(
    context: &ServerState,
    gateway: &Gateway,
    caller: &gate::Caller,
) -> Vec<Model> {
    let now = context.app.clock.now();
    let ids = gateway.models(now).into_iter();
    ids.filter(|id| is_offered(gateway, caller, id)).map(|id| model(gateway, id, now)).collect()
}

/// Shows one model; slashes in its percent-encoded identifier may be encoded or not.
pub(crate) async fn one(
    context: &ServerState,
    incoming: &Incoming,
    encoded: &str,
) -> Result<Response, ApiError> {
    let caller = gate::admit(&context.app, incoming, Service::Inference).await?;
    let found = find(context, &incoming.configured.gateway, &caller, encoded);
    reply::within(caller.rate, found.map(|model| reply::json(StatusCode::OK, &model)))
}

/// The listed model with this percent-encoded identifier.
pub(in crate::server) fn find(
    context: &ServerState,
    gateway: &Gateway,
    caller: &gate::Caller,
    encoded: &str,
) -> Result<Model, ApiError> {
    let now = context.app.clock.now();
    let requested = percent_decode_str(encoded).decode_utf8_lossy();
    let Some(id) = gateway.models(now).into_iter().find(|id| *id == requested) else {
        return Err(ApiError::parameter(
            ErrorCode::ModelNotFound,
            "model",
            "there is no model with this identifier; GET /inference/v1/models lists the models",
        ));
    };
    if !is_offered(gateway, caller, &id) {
        return Err(ApiError::model_not_allowed(&id, &caller.key.models));
    }
    Ok(model(gateway, id, now))
}

/// Whether the key may use the model, or at least one target of the pool.
fn is_offered(gateway: &Gateway, caller: &gate::Caller, id: &str) -> bool {
    let targets = gateway.pool(id).map(|pool| pool.targets.as_slice()).unwrap_or_default();
    keys::may_use(&caller.key, id) || targets.iter().any(|target| keys::may_use(&caller.key, target))
}

/// What is known about the model with this identifier.
pub(in crate::server) fn model(gateway: &Gateway, id: String, now: Time) -> Model {
    let about = gateway.model_info(&id);
    let targets = gateway.pool(&id).map(|pool| pool.targets.clone()).unwrap_or_default();
    let kind = gateway.kind(&id);
    let owned_by = if targets.is_empty() { model_id::provider(&id) } else { POOL }.to_owned();
    Model {
        id,
        targets,
        object: "model".to_owned(),
        created: now.unix_ms().div_euclid(1000),
        owned_by,
        kind,
        context_window: about.context_window,
        max_output_tokens: about.max_output_tokens,
        input_usd_per_mtok: about.price.map(|price| price.input_per_mtok.usd()),
        output_usd_per_mtok: about.price.map(|price| price.output_per_mtok.usd()),
        cached_input_usd_per_mtok: about.price.and_then(|price| Some(price.cached_input_per_mtok?.usd())),
        cache_write_usd_per_mtok: about.price.and_then(|price| Some(price.cache_write_per_mtok?.usd())),
        deprecation_date: about.deprecation.map(str::to_owned),
    }
}
