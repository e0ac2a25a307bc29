//! The gate: who is this, and may they go on? In the contract's order: key present and well formed, known, revoked,
//! expired, right service, address, then the limits.
//!
//! What must hold: nothing of a request is read, and no work is done, before the gate has said yes; a store that
//! cannot answer is never a pass; failed attempts are counted per address, in buckets apart from valid keys, so that
//! nobody locks out a key by guessing beside it.

use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;

use super::Context;
use super::incoming::{Incoming, bearer};
use super::record::Record;
use super::reply::ApiError;
use super::streams::Registration;
use crate::api::Service;
use crate::api::console::Channel;
use crate::app::App;
use crate::keys::{self, Denied};
use crate::limits::{Decision, Quota, State, Subject, Window};
use crate::storage::{Actor, KeyRow};
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
    let quota = Quota {
        per_minute: key.per_minute.unwrap_or(app.limits.keys.per_minute),
        per_day: key.per_day.unwrap_or(app.limits.keys.per_day),
    };
    let rate = take(app, &Subject::Key(key.id.clone()), quota)?;
    Ok(Pass { key, rate, record: incoming.record.clone() })
}

/// A request of the console that may go on.
pub(crate) struct Admitted {
    /// The console key, itself or the one behind a session.
    pub(crate) key: Arc<KeyRow>,
    /// The limits that its answer describes, this request counted.
    pub(crate) rate: State,
    /// In whose name it writes.
    pub(crate) actor: Actor,
}

/// Lets a request of the console through.
pub(crate) fn console(app: &App, incoming: &Incoming, headers: &HeaderMap) -> Result<Admitted, ApiError> {
    let Pass { key, rate, .. } = keyed(app, incoming, headers, Service::Console)?;
    let actor = actor(&key, Channel::Api, incoming);
    Ok(Admitted { key, rate, actor })
}

/// What the audit says of a request with this key.
fn actor(key: &KeyRow, channel: Channel, incoming: &Incoming) -> Actor {
    Actor {
        id: Some(key.id.clone()),
        name: key.name.clone(),
        channel,
        address: Some(incoming.address),
        request_id: Some(incoming.request_id.to_string()),
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
    match keys::authenticate(&app.store, bearer(headers), service, incoming.address, now) {
        Ok(key) => {
            incoming.record.came_with(&key);
            Ok(key)
        }
        Err(denied @ Denied::Unavailable(_)) => {
            Err(ApiError::from(denied).with_rate(open_state(app, incoming.address)))
        }
        Err(denied) => {
            let error = ApiError::from(denied);
            app.metrics.http.count_denied(error.code());
            let quota = per_minute(app.limits.failed_auth_per_minute);
            take(app, &Subject::FailedAuth(incoming.address), quota)
                .and_then(|rate| Err(error.with_rate(rate)))
        }
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
        Subject::OpenPage(_) => "open_page",
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
    let quota = per_minute(app.limits.open_pages_per_minute);
    take(app, &Subject::OpenPage(incoming.address), quota)
}

/// The limits of open pages as they stand for this caller, nothing counted.
pub(crate) fn open_state(app: &App, address: IpAddr) -> State {
    let quota = per_minute(app.limits.open_pages_per_minute);
    app.limiter.peek(&Subject::OpenPage(address), quota, app.clock.now())
}

const fn per_minute(per_minute: u32) -> Quota {
    Quota { per_minute, per_day: 0 }
}
