//! The console's gates: console keys and dashboard sessions, logging in, and keys that ask about themselves.
//!
//! What must hold: a session is admitted only while its key would be, and writes only from our own pages; requests of
//! sessions do not count against their key, as a page makes more of them than a program; rejected attempts are counted
//! per address, as for keys.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use tokio::time::timeout;

use super::{
    Caller, admit, authenticate, cookie, count_failure, lookup_permit, open_page, open_page_state,
    or_count_failure, or_deny, origin, per_minute, quota_of, take,
};
use crate::api::Service;
use crate::api::console::Channel;
use crate::app::AppState;
use crate::keys::sessions::{self, Session};
use crate::keys::setup::SetupError;
use crate::keys::{self, Denied};
use crate::limits::{LOGINS_PER_MINUTE, LimitState, Subject};
use crate::secret::{ExposeSecret, SecretString};
use crate::server::ServerState;
use crate::server::reply::{ApiError, ErrorCode};
use crate::server::request::incoming::Incoming;
use crate::storage::{Actor, KeyRow, ReadPurpose, Store};

/// How long a request waits for the use of its session to be written: a database may be locked for long.
const NOTE_TIMEOUT: Duration = Duration::from_secs(1);

/// The session token of a request without a key: where it has both, the key counts.
fn session_token<'a>(context: &ServerState, incoming: &'a Incoming) -> Option<&'a str> {
    session_cookie(context, incoming).filter(|_| incoming.key().is_none())
}

/// The caller behind a request that comes with a session and without a key: counted, and if it writes, sent by one of
/// our own pages.
async fn by_session(
    context: &ServerState,
    incoming: &Incoming,
    method: &Method,
) -> Result<Option<Caller>, ApiError> {
    let Some(token) = session_token(context, incoming) else { return Ok(None) };
    let session = find_session(&context.app, incoming, token).await?;
    if !method.is_safe() {
        or_count_failure(&context.app, incoming, origin::require_same_origin(incoming)).await?;
    }
    let rate = count_session_request(context, incoming, &session).await?;
    let record = incoming.record.clone();
    Ok(Some(Caller { key: session.key, rate, record, session: Some(session.hash) }))
}

/// Admits a request to the console.
pub(crate) async fn console(
    context: &ServerState,
    incoming: &Incoming,
    method: &Method,
) -> Result<Caller, ApiError> {
    match by_session(context, incoming, method).await? {
        Some(caller) => Ok(caller),
        None => admit(&context.app, incoming, Service::Console).await,
    }
}

/// Admits a request that tries `service` out on the account of an app, without a key of that app: with the console key
/// behind the request, whose limits it counts against and with which it ends. The ledger knows this key and the app.
pub(crate) async fn trial(
    context: &ServerState,
    incoming: &Incoming,
    method: &Method,
    app_id: &str,
    service: Service,
) -> Result<Caller, ApiError> {
    let app = &context.app;
    let now = app.clock.now();
    let (key, session) = match by_session(context, incoming, method).await? {
        Some(caller) => (caller.key, caller.session),
        None => (authenticate(app, incoming, Service::Console, now).await?, None),
    };
    let rate = take(app, &Subject::Key(key.id.clone()), quota_of(incoming, &key), now).await?;
    let id = app_id.to_owned();
    let found = app.store.read_async(ReadPurpose::Console, move |store| store.app_by_id(&id)).await;
    let payer = found.map_err(|cause| ApiError::from(cause).with_rate(rate))?;
    let key = Arc::new(KeyRow {
        app_id: payer.id.into(),
        app_name: payer.name,
        app_budget: payer.budget,
        service,
        ..KeyRow::clone(&key)
    });
    incoming.record.set_key(key.clone());
    Ok(Caller { key, rate, record: incoming.record.clone(), session })
}

/// Admits a request that asks about its own session. Asking without one is no failed attempt and is not counted: every
/// load of the dashboard begins with it, and the answer costs nothing.
pub(crate) async fn session(
    context: &ServerState,
    incoming: &Incoming,
) -> Result<(Session, LimitState), ApiError> {
    let app = &context.app;
    let Some(token) = session_cookie(context, incoming) else {
        let rate = open_page_state(app, &incoming.configured, incoming.address);
        return Err(ApiError::from(ErrorCode::InvalidSession).with_rate(rate));
    };
    let session = find_session(app, incoming, token).await?;
    let rate = count_session_request(context, incoming, &session).await?;
    Ok((session, rate))
}

async fn find_session(app: &AppState, incoming: &Incoming, token: &str) -> Result<Session, ApiError> {
    let (presented, address, now) = (SecretString::from(token), incoming.address, app.clock.now());
    let recognise = move |store: &Store| sessions::recognise(store, presented.expose_secret(), address, now);
    // What cannot be a token is not worth a query.
    let found = if sessions::is_token(token) {
        app.store.read_async(ReadPurpose::Console, recognise).await
    } else {
        Err(Denied::InvalidSession)
    };
    let session = or_deny(app, incoming, found, None).await?;
    incoming.record.set_key(session.key.clone());
    Ok(session)
}

/// Counts a request of a session, and notes that session and key are in use.
async fn count_session_request(
    context: &ServerState,
    incoming: &Incoming,
    session: &Session,
) -> Result<LimitState, ApiError> {
    let app = &context.app;
    let subject = Subject::Session(session.key.id.clone());
    let now = app.clock.now();
    let rate = take(app, &subject, per_minute(incoming.configured.limits.open_pages_per_minute), now).await?;
    app.limiter.record_use(&session.key.id, now);
    if session.needs_touch {
        let (app, session) = (app.clone(), session.clone());
        let noting = context.writer.run(move || session.record_use(&app.store, now));
        // A write that has started by then is finished; one that has not is left to the next request.
        if let Ok(noted) = timeout(NOTE_TIMEOUT, noting).await
            && let Err(cause) = noted.unwrap_or_else(|cause| Err(cause.into()))
        {
            tracing::warn!(%cause, "the last use of a session cannot be recorded; it may end early");
        }
    }
    Ok(rate)
}

/// Admits an attempt to start a session, before it is authenticated.
pub(crate) async fn login(app: &AppState, incoming: &Incoming) -> Result<LimitState, ApiError> {
    let subject = Subject::Login(incoming.address);
    let rate = take(app, &subject, per_minute(LOGINS_PER_MINUTE), app.clock.now()).await?;
    let outcome = origin::reject_cross_origin(incoming).map_err(|error| error.with_rate(rate));
    or_count_failure(app, incoming, outcome).await?;
    Ok(rate)
}

/// The console key of a login attempt, which is counted in `rate` already.
pub(crate) async fn console_key(
    app: &AppState,
    incoming: &Incoming,
    presented: &str,
    rate: LimitState,
) -> Result<Arc<KeyRow>, ApiError> {
    let now = app.clock.now();
    let found = keys::authenticate(&app.store, Some(presented), Service::Console, incoming.address, now);
    let key = or_deny(app, incoming, found.await, Some(rate)).await?;
    incoming.record.set_key(key.clone());
    app.limiter.record_use(&key.id, now);
    Ok(key)
}

/// The error for a setup token that makes no first key; the attempt is counted in `rate` already.
pub(crate) async fn setup_error(
    app: &AppState,
    incoming: &Incoming,
    cause: SetupError,
    rate: LimitState,
) -> ApiError {
    let is_failure = matches!(cause, SetupError::Denied);
    let error = ApiError::from(cause).with_rate(rate);
    if is_failure { count_failure(app, incoming, error).await } else { error }
}

/// Admits a logout, also of a session that has ended already, as long as one of our own pages asks for it.
pub(crate) async fn logout(
    context: &ServerState,
    incoming: &Incoming,
) -> Result<(Option<String>, LimitState), ApiError> {
    let app = &context.app;
    let token = session_cookie(context, incoming);
    if token.is_some() {
        or_count_failure(app, incoming, origin::require_same_origin(incoming)).await?;
    }
    Ok((token.map(str::to_owned), open_page(app, incoming).await?))
}

/// Admits a key of any service that asks about itself, or a session that asks about the key it was made from. Also
/// returns the state of the key's limits: the request does not count against it but against its address, as for an open
/// page.
pub(crate) async fn own_key(
    context: &ServerState,
    incoming: &Incoming,
    method: &Method,
) -> Result<(Caller, LimitState), ApiError> {
    let app = &context.app;
    let now = app.clock.now();
    let limits = async |key: &KeyRow| {
        app.limiter.peek(&Subject::Key(key.id.clone()), quota_of(incoming, key), now).await
    };
    if let Some(caller) = by_session(context, incoming, method).await? {
        let limits = limits(&caller.key).await;
        return Ok((caller, limits));
    }
    let _permit = lookup_permit(app, incoming, now).await?;
    let found = keys::identify(&app.store, incoming.key(), incoming.address, now);
    let key = or_deny(app, incoming, found.await, None).await?;
    incoming.record.set_key(key.clone());
    open_page(app, incoming).await?;
    app.limiter.record_use(&key.id, now);
    let rate = limits(&key).await;
    Ok((Caller { key, rate, record: incoming.record.clone(), session: None }, rate))
}

/// Who is recorded in the audit log for a request with this key.
pub(crate) fn actor(key: &KeyRow, channel: Channel, incoming: &Incoming) -> Actor {
    Actor { id: Some(key.id.to_string()), name: key.name.clone(), ..anonymous_actor(channel, incoming) }
}

/// Who is recorded in the audit log for a request without a key.
pub(crate) fn anonymous_actor(channel: Channel, incoming: &Incoming) -> Actor {
    Actor {
        id: None,
        name: None,
        channel,
        address: Some(incoming.address),
        request_id: Some(incoming.request_id.to_string()),
    }
}

/// The value of a request's session cookie, if it has one.
pub(crate) fn session_cookie<'a>(context: &ServerState, incoming: &'a Incoming) -> Option<&'a str> {
    cookie::session(&incoming.headers, origin::is_https(context, incoming))
}
