//! The gate: authentication, authorisation and rate limits. The order of checks is part of the API contract: key
//! present and well formed, known, revoked, expired, right service, address, then the rate limits.
//!
//! What must hold: no body is read and no work is done before the gate has admitted the request; a database that cannot
//! answer never admits anybody; failed attempts are counted per address, apart from valid keys, so that nobody can lock
//! out a key by guessing next to it.
//!
//! What is defended, how, and by which tests: `gate/threats.md`.

mod caller;
mod console;
pub(super) mod cookie;
pub(super) mod origin;

pub(crate) use caller::Caller;
pub(crate) use console::{
    actor, anonymous_actor, console, console_key, login, logout, own_key, session, session_cookie,
    setup_error, trial,
};

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use super::ServerState;
use super::in_flight::Registration;
use super::reply::{ApiError, ErrorCode};
use super::request::incoming::Incoming;
use crate::api::Service;
use crate::app::{AppState, Configured};
use crate::clock::Time;
use crate::keys::{self, Denied};
use crate::limits::{Decision, LimitState, Quota, Subject, Window};
use crate::storage::{EndUser, KeyRow};

/// How long a request waits for a [`lookup_permit`].
const LOOKUP_PERMIT_TIMEOUT: Duration = Duration::from_secs(2);

/// What is said if two keys were sent: Claude Code sends both of its variables, if both are set.
const SEVERAL_KEYS: &str = ": `x-api-key` and `authorization` hold different keys; send one of them";

/// Admits a request with a valid key for `service` that is within its rate limits.
pub(crate) async fn admit(app: &AppState, incoming: &Incoming, service: Service) -> Result<Caller, ApiError> {
    let now = app.clock.now();
    let key = authenticate(app, incoming, service, now).await?;
    let rate = take(app, &Subject::Key(key.id.clone()), quota_of(incoming, &key), now).await?;
    Ok(Caller { key, rate, record: incoming.record.clone(), session: None })
}

/// A key's own rate limits, or the server's defaults.
fn quota_of(incoming: &Incoming, key: &KeyRow) -> Quota {
    let default = incoming.configured.limits.keys;
    Quota {
        per_minute: key.per_minute.unwrap_or(default.per_minute),
        per_day: key.per_day.unwrap_or(default.per_day),
    }
}

/// Admits operators: a request from this machine itself, or one with a console key. It counts as a request for an open
/// page and not against the key: scraping every few seconds would use up any daily limit.
pub(crate) async fn admit_operator(app: &AppState, incoming: &Incoming) -> Result<LimitState, ApiError> {
    if !incoming.is_local() {
        let now = app.clock.now();
        let key = authenticate(app, incoming, Service::Console, now).await?;
        app.limiter.record_use(&key.id, now);
    }
    open_page(app, incoming).await
}

/// The key of a request, if it is valid for `service`.
async fn authenticate(
    app: &AppState,
    incoming: &Incoming,
    service: Service,
    now: Time,
) -> Result<Arc<KeyRow>, ApiError> {
    let _permit = lookup_permit(app, incoming, now).await?;
    let found = keys::authenticate(&app.store, incoming.key(), service, incoming.address, now);
    let key = or_deny(app, incoming, found.await, None)
        .await
        .map_err(|error| if incoming.has_several_keys() { error.with_suffix(SEVERAL_KEYS) } else { error })?;
    incoming.record.set_key(key.clone());
    Ok(key)
}

/// The permit to look up a key, which addresses that have failed too often need if the database is accessed over the
/// network: a flood of unknown keys must leave the database connections to others. A valid key from such an address
/// needs one as well.
async fn lookup_permit<'a>(
    app: &'a AppState,
    incoming: &Incoming,
    now: Time,
) -> Result<Option<SemaphorePermit<'a>>, ApiError> {
    if app.store.is_local() {
        return Ok(None);
    }
    let quota = per_minute(incoming.configured.limits.failed_auth_per_minute);
    let subject = Subject::FailedAuth(incoming.address);
    let state = app.limiter.peek_local(&subject, quota, now);
    if state.minute.is_none_or(|minute| minute.remaining > 0) {
        return Ok(None);
    }
    match timeout(LOOKUP_PERMIT_TIMEOUT, app.suspects.acquire()).await {
        Ok(Ok(permit)) => Ok(Some(permit)),
        _ => Err(rate_limited(app, &subject, state, Window::Minute)),
    }
}

/// Unwraps the result of an authentication, or turns its error into the response of [`deny`].
async fn or_deny<T>(
    app: &AppState,
    incoming: &Incoming,
    result: Result<T, Denied>,
    rate: Option<LimitState>,
) -> Result<T, ApiError> {
    match result {
        Ok(value) => Ok(value),
        // Boxed, so that admitted requests reserve no space for it.
        Err(denied) => Err(Box::pin(deny(app, incoming, denied, rate)).await),
    }
}

/// The error for a caller that could not be authenticated. Counted as a failed attempt of its address, unless it is the
/// database that has failed. The response describes `rate`, or else the limits of such attempts.
async fn deny(app: &AppState, incoming: &Incoming, denied: Denied, rate: Option<LimitState>) -> ApiError {
    let is_counted = !matches!(denied, Denied::Unavailable(_));
    let error = ApiError::from(denied);
    let error = if let Some(rate) = rate { error.with_rate(rate) } else { error };
    if is_counted {
        count_failure(app, incoming, error).await
    } else {
        error.with_rate(open_page_state(app, &incoming.configured, incoming.address))
    }
}

/// Counts a failed attempt. Returns the error, or the one for too many attempts.
async fn count_failure(app: &AppState, incoming: &Incoming, error: ApiError) -> ApiError {
    app.metrics.http.count_denied(error.code());
    let quota = per_minute(incoming.configured.limits.failed_auth_per_minute);
    match take(app, &Subject::FailedAuth(incoming.address), quota, app.clock.now()).await {
        Ok(rate) => error.with_rate(rate),
        Err(limited) => limited,
    }
}

/// Unwraps a result, counting an error as a failed attempt.
async fn or_count_failure<T>(
    app: &AppState,
    incoming: &Incoming,
    result: Result<T, ApiError>,
) -> Result<T, ApiError> {
    match result {
        Ok(value) => Ok(value),
        Err(error) => Err(Box::pin(count_failure(app, incoming, error)).await),
    }
}

/// Counts a request against the limits of whom it is for, beside those of its key, or rejects it.
pub(crate) async fn admit_end_user(
    app: &AppState,
    caller: &Caller,
    quota: Quota,
    end_user: &EndUser,
) -> Result<(), ApiError> {
    if quota.per_minute == 0 && quota.per_day == 0 {
        return Ok(());
    }
    let source = if caller.key.end_users.is_some() { "`end_users` of the key" } else { "`limits.end_users`" };
    let limited = |error: ApiError| error.with_suffix(&format!(" for this end user ({source})"));
    take(app, &Subject::EndUser(end_user.id.as_str().into()), quota, app.clock.now())
        .await
        .map(drop)
        .map_err(limited)
}

/// Counts a request against the limits of its subject, or rejects it.
async fn take(app: &AppState, subject: &Subject, quota: Quota, now: Time) -> Result<LimitState, ApiError> {
    match app.limiter.take(subject, quota, now).await {
        Decision::Admitted(state) => Ok(state),
        Decision::Refused(state, window) => Err(rate_limited(app, subject, state, window)),
    }
}

/// The error for a request beyond its limits, which is counted in the metrics.
fn rate_limited(app: &AppState, subject: &Subject, state: LimitState, window: Window) -> ApiError {
    let name = match subject {
        Subject::Key(_) => "key",
        Subject::Session(_) => "session",
        Subject::OpenPage(_) => "open_page",
        Subject::Login(_) => "login",
        Subject::FailedAuth(_) => "failed_auth",
        Subject::EndUser(_) => "end_user",
    };
    match window {
        Window::Minute => app.metrics.http.count_limited_by_minute(name),
        Window::Day => app.metrics.http.count_limited_by_day(name),
    }
    ApiError::rate_limited(state, window)
}

/// Registers a request that may take long, so that it is aborted when its key is revoked or expires.
pub(crate) async fn register(context: &ServerState, caller: &Caller) -> Result<Registration, ApiError> {
    let registration = context.in_flight.register(&caller.key.id, caller.key.expires_at);
    // A revocation between authentication and registration would be missed by the task that watches for them.
    match context.app.store.is_key_live(&caller.key.id).await {
        Ok(true) => Ok(registration),
        Ok(false) => Err(ApiError::from(ErrorCode::ApiKeyRevoked)),
        Err(cause) => Err(ApiError::store_failed(&cause)),
    }
}

/// Admits a request that needs no key: health pages, and routes that do not exist.
pub(crate) async fn open_page(app: &AppState, incoming: &Incoming) -> Result<LimitState, ApiError> {
    let quota = per_minute(incoming.configured.limits.open_pages_per_minute);
    take(app, &Subject::OpenPage(incoming.address), quota, app.clock.now()).await
}

/// The state of the limits of open pages, as counted by this server alone, without counting a request: for responses to
/// requests that are not counted, some of which cannot wait.
pub(crate) fn open_page_state(app: &AppState, configured: &Configured, address: IpAddr) -> LimitState {
    let quota = per_minute(configured.limits.open_pages_per_minute);
    app.limiter.peek_local(&Subject::OpenPage(address), quota, app.clock.now())
}

const fn per_minute(per_minute: u32) -> Quota {
    Quota { per_minute, per_day: 0 }
}
