//! The gate: who is this, and may they go on? In the contract's order: key present and well formed, known, revoked,
//! expired, right service, address, then the limits.
//!
//! What must hold: nothing of a request is read, and no work is done, before the gate has said yes; a store that
//! cannot answer is never a pass; failed attempts are counted per address, in buckets apart from valid keys, so that
//! nobody locks out a key by guessing beside it.

mod console;

pub(crate) use console::{
    Admitted, Own, actor, console, console_key, cookie_of, login, logout, own_key, refuse_setup, session,
    somebody,
};

use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;

use super::Context;
use super::incoming::{Incoming, bearer};
use super::record::Record;
use super::reply::ApiError;
use super::streams::Registration;
use crate::api::Service;
use crate::app::{App, Configured};
use crate::keys::{self, Denied};
use crate::limits::{Decision, Quota, State, Subject, Window};
use crate::storage::KeyRow;
use crate::usage::{Account, Budget};

/// A request that may go on.
pub(crate) struct Pass {
    /// The caller's key.
    pub(crate) key: Arc<KeyRow>,
    /// Its limits, this request counted.
    pub(crate) rate: State,
    /// What is noted of it.
    pub(crate) record: Arc<Record>,
}

impl Pass {
    /// What the key may spend.
    pub(crate) fn budget(&self) -> Budget {
        Budget { key: self.key.budget, app: self.key.app_budget }
    }

    /// The account that a request runs on.
    pub(crate) fn account(&self, request_id: &str) -> Account {
        Account {
            request_id: request_id.to_owned(),
            app_id: self.key.app_id.clone(),
            key_id: self.key.id.clone(),
            service: self.key.service,
            budget: self.budget(),
        }
    }
}

/// Lets a request with a valid key for `service` through.
pub(crate) fn keyed(
    app: &App,
    incoming: &Incoming,
    headers: &HeaderMap,
    service: Service,
) -> Result<Pass, ApiError> {
    let key = authenticated(app, incoming, headers, service)?;
    let rate = take(app, &Subject::Key(key.id.clone()), quota_of(incoming, &key))?;
    Ok(Pass { key, rate, record: incoming.record.clone() })
}

/// A key's own limits, or the server's.
fn quota_of(incoming: &Incoming, key: &KeyRow) -> Quota {
    let usual = incoming.configured.limits.keys;
    Quota {
        per_minute: key.per_minute.unwrap_or(usual.per_minute),
        per_day: key.per_day.unwrap_or(usual.per_day),
    }
}

/// Lets whoever looks after the server through: a request from this machine itself, or one with a console key. It
/// counts as one for an open page and not against the key: whoever scrapes every few seconds would use up any day.
pub(crate) fn operator(app: &App, incoming: &Incoming, headers: &HeaderMap) -> Result<State, ApiError> {
    if !incoming.is_local {
        let key = authenticated(app, incoming, headers, Service::Console)?;
        app.limiter.note_use(&key.id, app.clock.now());
    }
    open(app, incoming)
}

/// The key of a request, if it is one for `service`.
fn authenticated(
    app: &App,
    incoming: &Incoming,
    headers: &HeaderMap,
    service: Service,
) -> Result<Arc<KeyRow>, ApiError> {
    let now = app.clock.now();
    let found = keys::authenticate(&app.store, bearer(headers), service, incoming.address, now);
    let key = found.map_err(|denied| refuse(app, incoming, denied, None))?;
    incoming.record.came_with(&key);
    Ok(key)
}

/// What a caller is told who has not shown who it is. Counted as a failed attempt of its address, unless it is the
/// store that has failed. The answer describes `rate`, or else the limits of such attempts.
fn refuse(app: &App, incoming: &Incoming, denied: Denied, rate: Option<State>) -> ApiError {
    let is_counted = !matches!(denied, Denied::Unavailable(_));
    let error = ApiError::from(denied);
    let error = if let Some(rate) = rate { error.with_rate(rate) } else { error };
    if is_counted {
        count_failure(app, incoming, error)
    } else {
        error.with_rate(open_state(app, &incoming.configured, incoming.address))
    }
}

/// Counts a failed attempt: this error, or the one that there were too many.
fn count_failure(app: &App, incoming: &Incoming, error: ApiError) -> ApiError {
    app.metrics.http.count_denied(error.code());
    let quota = per_minute(incoming.configured.limits.failed_auth_per_minute);
    match take(app, &Subject::FailedAuth(incoming.address), quota) {
        Ok(rate) => error.with_rate(rate),
        Err(limited) => limited,
    }
}

/// Counts a request against its limits, or refuses it.
fn take(app: &App, subject: &Subject, quota: Quota) -> Result<State, ApiError> {
    let (state, window) = match app.limiter.take(subject, quota, app.clock.now()) {
        Decision::Admitted(state) => return Ok(state),
        Decision::Refused(state, window) => (state, window),
    };
    let name = match subject {
        Subject::Key(_) => "key",
        Subject::Session(_) => "session",
        Subject::OpenPage(_) => "open_page",
        Subject::Login(_) => "login",
        Subject::FailedAuth(_) => "failed_auth",
    };
    match window {
        Window::Minute => app.metrics.http.count_limited_by_minute(name),
        Window::Day => app.metrics.http.count_limited_by_day(name),
    }
    Err(ApiError::rate_limited(state, window))
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
    let quota = per_minute(incoming.configured.limits.open_pages_per_minute);
    take(app, &Subject::OpenPage(incoming.address), quota)
}

/// The limits of open pages as they stand for this caller, nothing counted.
pub(crate) fn open_state(app: &App, configured: &Configured, address: IpAddr) -> State {
    let quota = per_minute(configured.limits.open_pages_per_minute);
    app.limiter.peek(&Subject::OpenPage(address), quota, app.clock.now())
}

const fn per_minute(per_minute: u32) -> Quota {
    Quota { per_minute, per_day: 0 }
}
