//! The gate: who is this, and may they go on? In the contract's order: key present and well formed, known, revoked,
//! expired, right service, address, then the limits.
//!
//! What must hold: nothing of a request is read, and no work is done, before the gate has said yes; a store that
//! cannot answer is never a pass; failed attempts are counted per address, in buckets apart from valid keys, so that
//! nobody locks out a key by guessing beside it.

use std::sync::Arc;

use http::HeaderMap;

use super::Context;
use super::incoming::{Incoming, bearer};
use super::reply::ApiError;
use super::streams::Registration;
use crate::api::Service;
use crate::app::App;
use crate::keys::{self, Denied};
use crate::limits::{Decision, Quota, State, Subject};
use crate::storage::KeyRow;

/// A request that may go on.
#[derive(Debug)]
pub(crate) struct Pass {
    /// The caller's key.
    pub(crate) key: Arc<KeyRow>,
    /// Its limits, this request counted.
    pub(crate) rate: State,
}

/// Lets a request with a valid key for `service` through.
pub(crate) fn keyed(
    app: &App,
    incoming: &Incoming,
    headers: &HeaderMap,
    service: Service,
) -> Result<Pass, ApiError> {
    let now = app.clock.now();
    let key = match keys::authenticate(&app.store, bearer(headers), service, incoming.address, now) {
        Ok(key) => key,
        Err(denied @ Denied::Unavailable(_)) => {
            return Err(ApiError::from(denied).with_rate(open_state(app, incoming)));
        }
        Err(denied) => {
            let quota = per_minute(app.limits.failed_auth_per_minute);
            return Err(match app.limiter.take(&Subject::FailedAuth(incoming.address), quota, now) {
                Decision::Admitted(state) => ApiError::from(denied).with_rate(state),
                Decision::Refused(state, window) => ApiError::rate_limited(state, window),
            });
        }
    };
    let quota = Quota {
        per_minute: key.per_minute.unwrap_or(app.limits.keys.per_minute),
        per_day: key.per_day.unwrap_or(app.limits.keys.per_day),
    };
    match app.limiter.take(&Subject::Key(key.id.clone()), quota, now) {
        Decision::Admitted(rate) => Ok(Pass { key, rate }),
        Decision::Refused(state, window) => Err(ApiError::rate_limited(state, window)),
    }
}

/// Lists a request that may take long, so that it ends when its key is revoked.
pub(crate) fn enlist(context: &Context, pass: &Pass) -> Result<Registration, ApiError> {
    let listed = context.streams.register(&pass.key.id);
    // A revocation between the gate and the list would be missed by the watcher.
    match context.app.store.is_key_live(&pass.key.id) {
        Ok(true) => Ok(listed),
        Ok(false) => Err(ApiError::key_revoked()),
        Err(cause) => {
            tracing::error!(%cause, "cannot look up a key");
            Err(ApiError::store_unavailable())
        }
    }
}

/// Lets a request for an open page through: health, and addresses that do not exist.
pub(crate) fn open(app: &App, incoming: &Incoming) -> Result<State, ApiError> {
    let quota = per_minute(app.limits.open_pages_per_minute);
    match app.limiter.take(&Subject::OpenPage(incoming.address), quota, app.clock.now()) {
        Decision::Admitted(state) => Ok(state),
        Decision::Refused(state, window) => Err(ApiError::rate_limited(state, window)),
    }
}

/// The limits of open pages as they stand for this caller, nothing counted.
pub(crate) fn open_state(app: &App, incoming: &Incoming) -> State {
    let quota = per_minute(app.limits.open_pages_per_minute);
    app.limiter.peek(&Subject::OpenPage(incoming.address), quota, app.clock.now())
}

const fn per_minute(per_minute: u32) -> Quota {
    Quota { per_minute, per_day: 0 }
}
