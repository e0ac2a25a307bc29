//! Health pages: open to everyone, answered from the server's own state.

use http::StatusCode;
use serde::Serialize;
use warp::reply::Response;

use crate::server::reply::{self, Reply};
use crate::server::request::incoming::Incoming;
use crate::server::{ServerState, gate};

/// Renders a health page, given whether keys can be looked up.
pub(crate) type Page = fn(&ServerState, bool) -> Response;

#[derive(Serialize)]
struct Health {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'static str>,
}

/// `GET /verify/v1/health`
pub(crate) fn verify(context: &ServerState, can_look_up_keys: bool) -> Response {
    page(context, can_look_up_keys, None, None)
}

/// `GET /inference/v1/health`
pub(crate) fn inference(context: &ServerState, can_look_up_keys: bool) -> Response {
    page(context, can_look_up_keys, Some("inference"), Some(env!("CARGO_PKG_VERSION")))
}

/// Answers a request for a page.
pub(crate) async fn answer(context: &ServerState, incoming: &Incoming, page: Page) -> Reply {
    match gate::open_page(&context.app, incoming).await {
        Ok(rate) => {
            let response = page(context, context.app.store.is_healthy().await);
            Reply { response, rate: Some(rate.into()), error: None }
        }
        Err(limited) => limited.into_reply(incoming),
    }
}

fn page(
    context: &ServerState,
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
