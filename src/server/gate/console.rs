//! The console's gates: a console key or a session of the dashboard, logging in, and a key that asks about itself.
//!
//! What must hold: a session passes only while its key would, and writes only for pages of our own; what sessions ask
//! costs their key nothing, as a page asks more than a program; whoever is not let in is counted by address, as with
//! keys.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use tokio::time::timeout;

use super::{count_failure, keyed, open, or_failed, or_refused, per_minute, quota_of, take, turn};
use crate::api::Service;
use crate::api::console::Channel;
use crate::app::App;
use crate::keys::sessions::{self, Session};
use crate::keys::setup::SetupError;
use crate::keys::{self, Denied};
use crate::limits::{LOGINS_PER_MINUTE, LimitState, Subject};
use crate::secret::{ExposeSecret, SecretString};
use crate::server::incoming::{Incoming, bearer};
use crate::server::reply::ApiError;
use crate::server::{Context, cookie, site};
use crate::storage::{Actor, Credential, KeyRow, Store};

/// How long the note that a session is used holds up a request: a database may be locked for long.
const NOTING: Duration = Duration::from_secs(1);

/// A request of the console that may go on.
pub(crate) struct Admitted {
    /// The limits that its answer describes, this request counted.
    pub(crate) rate: LimitState,
    /// In whose name it writes.
    pub(crate) actor: Actor,
    /// What it may write with, if that is good still by then.
    pub(crate) credential: Credential,
}

/// What is left to a request that comes without a key: where it has both a key and a session, the key counts.
fn session_token<'a>(context: &Context, incoming: &'a Incoming) -> Option<&'a str> {
    cookie_of(context, incoming).filter(|_| bearer(&incoming.headers).is_none())
}

/// Lets a request of the console through.
pub(crate) async fn console(
    context: &Context,
    incoming: &Incoming,
    method: &Method,
) -> Result<Admitted, ApiError> {
    let app = &context.app;
    let Some(token) = session_token(context, incoming) else {
        let pass = keyed(app, incoming, Service::Console).await?;
        let actor = actor(&pass.key, Channel::Api, incoming);
        let credential = Credential { key_id: pass.key.id.clone(), session: None, clock: app.clock.clone() };
        return Ok(Admitted { rate: pass.rate, actor, credential });
    };
    let session = recognised(app, incoming, token).await?;
    if !method.is_safe() {
        or_failed(app, incoming, site::must_be_ours(incoming)).await?;
    }
    let rate = count(context, incoming, &session).await?;
    let actor = actor(&session.key, Channel::Dashboard, incoming);
    let credential = session.credential(&app.clock);
    Ok(Admitted { rate, actor, credential })
}

/// Lets a request that asks about its own session through. Who asks without any has not failed at anything.
pub(crate) async fn session(
    context: &Context,
    incoming: &Incoming,
) -> Result<(Session, LimitState), ApiError> {
    let app = &context.app;
    let Some(token) = cookie_of(context, incoming) else {
        return Err(ApiError::invalid_session().with_rate(open(app, incoming).await?));
    };
    let session = recognised(app, incoming, token).await?;
    let rate = count(context, incoming, &session).await?;
    Ok((session, rate))
}

async fn recognised(app: &App, incoming: &Incoming, token: &str) -> Result<Session, ApiError> {
    let (presented, address, now) = (SecretString::from(token), incoming.address, app.clock.now());
    let recognise = move |store: &Store| sessions::recognise(store, presented.expose_secret(), address, now);
    // What cannot be one is not worth a question.
    let found = if sessions::is_token(token) {
        app.store.read_async(recognise).await
    } else {
        Err(Denied::InvalidSession)
    };
    let session = or_refused(app, incoming, found, None).await?;
    incoming.record.came_with(session.key.clone());
    Ok(session)
}

/// Counts a request of a session, and notes that session and key are used.
async fn count(context: &Context, incoming: &Incoming, session: &Session) -> Result<LimitState, ApiError> {
    let app = &context.app;
    let subject = Subject::Session(session.key.id.clone());
    let now = app.clock.now();
    let rate = take(app, &subject, per_minute(incoming.configured.limits.open_pages_per_minute), now).await?;
    app.limiter.record_use(&session.key.id, now);
    if session.needs_touch {
        let (app, session) = (app.clone(), session.clone());
        let noting = context.writer.run(move || session.record_use(&app.store, now));
        // What has begun by then is finished; what has not, the next request does.
        if let Ok(noted) = timeout(NOTING, noting).await
            && let Err(cause) = noted.unwrap_or_else(|cause| Err(cause.into()))
        {
            tracing::warn!(%cause, "the use of a session cannot be written; it may end early");
        }
    }
    Ok(rate)
}

/// Lets an attempt to begin a session through, whatever will come of it.
pub(crate) async fn login(app: &App, incoming: &Incoming) -> Result<LimitState, ApiError> {
    let subject = Subject::Login(incoming.address);
    let rate = take(app, &subject, per_minute(LOGINS_PER_MINUTE), app.clock.now()).await?;
    let outcome = site::must_not_be_foreign(incoming).map_err(|error| error.with_rate(rate));
    or_failed(app, incoming, outcome).await?;
    Ok(rate)
}

/// The console key that an attempt has brought, which `rate` has counted already.
pub(crate) async fn console_key(
    app: &App,
    incoming: &Incoming,
    presented: &str,
    rate: LimitState,
) -> Result<Arc<KeyRow>, ApiError> {
    let now = app.clock.now();
    let found = keys::authenticate(&app.store, Some(presented), Service::Console, incoming.address, now);
    let key = or_refused(app, incoming, found.await, Some(rate)).await?;
    incoming.record.came_with(key.clone());
    app.limiter.record_use(&key.id, now);
    Ok(key)
}

/// What is told to whoever has presented a token that makes no first key; `rate` has counted the attempt already.
pub(crate) async fn refuse_setup(
    app: &App,
    incoming: &Incoming,
    cause: SetupError,
    rate: LimitState,
) -> ApiError {
    let is_failure = matches!(cause, SetupError::Denied);
    let error = ApiError::from(cause).with_rate(rate);
    if is_failure { count_failure(app, incoming, error).await } else { error }
}

/// Lets the end of a session through: also of one that has ended already, as long as a page of ours asks for it.
pub(crate) async fn logout(
    context: &Context,
    incoming: &Incoming,
) -> Result<(Option<String>, LimitState), ApiError> {
    let app = &context.app;
    let token = cookie_of(context, incoming);
    if token.is_some() {
        or_failed(app, incoming, site::must_be_ours(incoming)).await?;
    }
    Ok((token.map(str::to_owned), open(app, incoming).await?))
}

/// A key that asks about itself.
pub(crate) struct Own {
    /// The key, of any service.
    pub(crate) key: Arc<KeyRow>,
    /// Its limits, nothing counted.
    pub(crate) limits: LimitState,
    /// What the answer's headers describe: the key's limits, or the session's. A key is not charged for asking; its
    /// address is, as for an open page.
    pub(crate) rate: LimitState,
}

/// Lets a key of any service ask about itself, and a session about the key it was made from.
pub(crate) async fn own_key(context: &Context, incoming: &Incoming) -> Result<Own, ApiError> {
    let app = &context.app;
    let now = app.clock.now();
    let (key, of_session) = if let Some(token) = session_token(context, incoming) {
        let session = recognised(app, incoming, token).await?;
        let rate = count(context, incoming, &session).await?;
        (Arc::new(session.key), Some(rate))
    } else {
        let _turn = turn(app, incoming, now).await?;
        let found = keys::identify(&app.store, bearer(&incoming.headers), incoming.address, now);
        let key = or_refused(app, incoming, found.await, None).await?;
        incoming.record.came_with(key.clone());
        open(app, incoming).await?;
        app.limiter.record_use(&key.id, now);
        (key, None)
    };
    let limits = app.limiter.peek(&Subject::Key(key.id.clone()), quota_of(incoming, &key), now).await;
    Ok(Own { key, limits, rate: of_session.unwrap_or(limits) })
}

/// What the audit says of a request with this key.
pub(crate) fn actor(key: &KeyRow, channel: Channel, incoming: &Incoming) -> Actor {
    Actor { id: Some(key.id.to_string()), name: key.name.clone(), ..somebody(channel, incoming) }
}

/// What the audit says of a request without a key.
pub(crate) fn somebody(channel: Channel, incoming: &Incoming) -> Actor {
    Actor {
        id: None,
        name: None,
        channel,
        address: Some(incoming.address),
        request_id: Some(incoming.request_id.to_string()),
    }
}

/// What the session cookie of a request holds, if it has one.
pub(crate) fn cookie_of<'a>(context: &Context, incoming: &'a Incoming) -> Option<&'a str> {
    cookie::session(&incoming.headers, site::is_https(context, incoming))
}
