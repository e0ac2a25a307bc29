//! `GET /v1/key`: what a key of any service may know about itself, and a session about the key it was made from. It
//! does not count against the key's limits, so that a program can ask before it starts, and a person as often as they
//! like.

use std::sync::Arc;

use http::StatusCode;
use warp::reply::Response;

use super::Request;
use crate::api::console::{OwnKey, WindowLeft};
use crate::app::AppState;
use crate::limits::{LimitState, WindowState};
use crate::server::gate;
use crate::server::reply::{self, ApiError, ErrorCode};
use crate::storage::{Error, ReadPurpose, Store};
use crate::{keys, usage};

/// Answers the request.
pub(super) async fn show(request: &Request) -> Result<Response, ApiError> {
    let (caller, limits) = gate::own_key(&request.context, &request.incoming, &request.method).await?;
    let answered = async {
        request.no_query()?;
        let described = describe(&request.context.app, &caller.key.id, limits).await.map_err(|cause| {
            tracing::error!(%cause, "a key cannot be read");
            ApiError::from(ErrorCode::StoreUnavailable)
        });
        Ok(reply::json(StatusCode::OK, &described?))
    };
    reply::within(caller.rate, answered.await)
}

async fn describe(app: &AppState, id: &Arc<str>, limits: LimitState) -> Result<OwnKey, Error> {
    let (id, now) = (id.clone(), app.clock.now());
    let found = move |store: &Store| {
        let usage = usage::month_of_key(store, &id, now)?;
        Ok::<_, Error>((store.key(&id)?, keys::spending(store, &id, now)?, usage))
    };
    let (key, spent, usage) = app.store.read_async(ReadPurpose::Console, found).await?;
    Ok(OwnKey {
        key: keys::record(&key, spent, now),
        minute: limits.minute.map(left),
        day: limits.day.map(left),
        usage,
    })
}

const fn left(window: WindowState) -> WindowLeft {
    WindowLeft { limit: window.limit, remaining: window.remaining, reset: window.reset }
}
