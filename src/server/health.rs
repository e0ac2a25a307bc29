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
pub(crate) fn verify(context: &Context) -> Response {
    answer(context, None, None)
}

/// `GET /inference/v1/health`
pub(crate) fn inference(context: &Context) -> Response {
    answer(context, Some("inference"), Some(env!("CARGO_PKG_VERSION")))
}

fn answer(context: &Context, service: Option<&'static str>, version: Option<&'static str>) -> Response {
    let (code, status) = if context.is_draining() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining")
    } else if !can_look_up_keys(context) {
        (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable")
    } else {
        (StatusCode::OK, "ok")
    };
    reply::json(code, &Health { status, service, version })
}

/// Asks the store what every request asks it, for a key that nobody has.
fn can_look_up_keys(context: &Context) -> bool {
    context.app.store.key_by_hash(&[0; 32]).is_ok()
}
