//! `/v1/apps/{id}/try`: verifications and completions from the dashboard, on the account of an app and without a key of
//! it, so that trying something out leaves no keys behind.
//!
//! Bodies and responses are those of the areas themselves, whose handlers answer; what differs is who is admitted
//! ([`gate::trial`]).

use bytes::Buf;
use futures_util::Stream;
use http::StatusCode;
use warp::reply::Response;

use super::{ConsoleRequest, Request};
use crate::api::Service;
use crate::api::console::{DomainOffer, ModelOffer, TryOffer};
use crate::api::models::ModelKind;
use crate::api::verify::Domain;
use crate::server::endpoints::{chat, models, verify};
use crate::server::gate::{self, Caller};
use crate::server::reply::{self, ApiError};
use crate::verify::Work;

/// `GET /v1/apps/{id}/try`
pub(super) async fn offer(call: ConsoleRequest, id: String) -> Result<Response, ApiError> {
    call.query()?.finish(&[])?;
    call.read(move |store, _| store.app_by_id(&id)).await?;
    let (configured, now) = (call.context.app.configured(), call.context.app.clock.now());
    let (gateway, verifier) = (&configured.gateway, &configured.verifier);
    let domains = [Domain::General, Domain::Legal].map(|domain| DomainOffer {
        domain,
        panel: verify::panel_size(verifier.settings(domain)),
        is_simulated: verifier.mode(domain).is_some(),
    });
    let mut ids = gateway.models(now);
    ids.retain(|id| gateway.kind(id) == ModelKind::Chat);
    let panel = &verifier.settings(Domain::General).panel;
    let default_model = gateway.first_choice(panel.iter().map(String::as_str), &ids);
    let models = ids.into_iter().map(|id| ModelOffer {
        is_simulated: gateway.is_simulated(&id),
        model: models::model(gateway, id, now),
    });
    let offer = TryOffer { domains: domains.to_vec(), default_model, models: models.collect() };
    Ok(reply::json(StatusCode::OK, &offer))
}

/// `POST /v1/apps/{id}/try/verify`
pub(super) async fn verify<B: Buf>(
    request: &Request,
    body: impl Stream<Item = Result<B, warp::Error>>,
) -> Result<Response, ApiError> {
    let caller = admit(request, Service::Verify).await?;
    let answered = verify::answer(&request.context, &caller, &request.incoming, body, Work::Verify).await;
    reply::within(caller.rate, answered)
}

/// `POST /v1/apps/{id}/try/chat`
pub(super) async fn chat<B: Buf>(
    request: &Request,
    body: impl Stream<Item = Result<B, warp::Error>>,
) -> Result<Response, ApiError> {
    let caller = admit(request, Service::Inference).await?;
    let answered = chat::answer(&request.context, &caller, &request.incoming, body).await;
    reply::within(caller.rate, answered)
}

async fn admit(request: &Request, service: Service) -> Result<Caller, ApiError> {
    let app = match request.incoming.endpoint {
        Some(endpoint) => endpoint.ids(request.uri.path())[0],
        None => "",
    };
    let caller = gate::trial(&request.context, &request.incoming, &request.method, app, service).await?;
    request.no_query().map_err(|error| error.with_rate(caller.rate))?;
    Ok(caller)
}
