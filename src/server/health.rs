//! Health: open to everyone, answered from what the server knows of itself.

use http::StatusCode;
use serde::Serialize;
use warp::reply::Response;

use super::{Context, reply};

#[derive(Serialize)]
struct Health {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'static str>,
}

/// `GET /verify/v1/health`
pub(crate) fn verify(context: &Context, can_look_up_keys: bool) -> Response {
    answer(context, can_look_up_keys, None, None)
}

/// `GET /inference/v1/health`
pub(crate) fn inference(context: &Context, can_look_up_keys: bool) -> Response {
    answer(context, can_look_up_keys, Some("inference"), Some(env!("CARGO_PKG_VERSION")))
}

fn answer(
    context: &Context,
    can_look_up_keys: bool,
    service: Option<&'static str>,
    version: Option<&'static str>,
) -> Response {
    let (code, status) = if context.is_draining() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining")
    } else if !can_look_up_keys {
        (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable")
    } else {
        (StatusCode::OK, "ok")
    };
    reply::json(code, &Health { status, service, version })
}
