//! What surrounds every request, whatever its route: its id, the headers that every answer carries, one line of log,
//! and an answer even when a handler panics.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use http::{HeaderValue, Request};
use hyper::body::Incoming as Body;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::incoming::Incoming;
use super::reply::{self, ApiError, Rate};
use super::{Context, gate};

/// Answers one request.
pub(crate) async fn answer(
    mut request: Request<Body>,
    peer: SocketAddr,
    routes: BoxedFilter<(Response,)>,
    context: Arc<Context>,
) -> Result<Response, Infallible> {
    let started = Instant::now();
    let incoming = Incoming::new(request.headers(), peer, &context.app.trusted_proxies);
    request.extensions_mut().insert(incoming.clone());
    let method = request.method().clone();
    let path = request.uri().path().to_owned();

    let service = TowerToHyperService::new(warp::service(routes));
    let outcome = AssertUnwindSafe(service.call(request)).catch_unwind().await;
    let mut response = match outcome {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_panic) => {
            tracing::error!(request_id = %incoming.request_id, %method, path, "a handler panicked");
            ApiError::internal().into_response(&incoming.request_id)
        }
    };

    let rate = response.extensions_mut().remove::<Rate>();
    let rate = rate.unwrap_or_else(|| gate::open_state(&context.app, &incoming).into());
    reply::write_rate_headers(response.headers_mut(), &rate);
    if let Ok(id) = HeaderValue::from_str(&incoming.request_id) {
        response.headers_mut().insert("x-request-id", id);
    }
    tracing::info!(
        request_id = %incoming.request_id,
        %method,
        path,
        status = response.status().as_u16(),
        client = %incoming.address,
        ms = started.elapsed().as_millis(),
        "request"
    );
    Ok(response)
}
