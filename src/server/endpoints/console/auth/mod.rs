//! Dashboard sessions and the first console key: `/v1/auth`.
//!
//! What must hold: every login sets a new cookie, and ends the session of the one that the browser had; keys and tokens
//! are read from a body only, so that they are in no URL and no log.

pub(super) mod refused_logins;

use bytes::Buf;
use futures_util::Stream;
use http::{HeaderValue, Method, StatusCode, header};
use warp::reply::Response;

use super::Request;
use super::query::Query;
use crate::api::console::{Channel, CreatedKey, SessionInfo, SetUp};
use crate::app::AppState;
use crate::keys::sessions::{self, Session};
use crate::keys::{self};
use crate::money::NanoUsd;
use crate::secret::{ExposeSecret, SecretString};
use crate::server::ServerState;
use crate::server::gate::{self, cookie, origin};
use crate::server::reply::{self, ApiError, ErrorCode};
use crate::server::request::params::Params;
use crate::storage::{Actor, Credential, Error, KeyRow, ReadPurpose};

/// The actor's name in the audit log when the first key is made.
const SETUP_ACTOR: &str = "setup link";

/// `GET`, `POST` and `DELETE /v1/auth/session`.
pub(super) async fn session<B: Buf>(
    request: Request,
    body: impl Stream<Item = Result<B, warp::Error>>,
) -> Result<Response, ApiError> {
    match request.method {
        Method::POST => log_in(&request, body).await,
        Method::DELETE => log_out(&request).await,
        _ => show(&request).await,
    }
}

async fn show(request: &Request) -> Result<Response, ApiError> {
    let Request { context, incoming, .. } = request;
    let (session, rate) = gate::session(context, incoming).await?;
    let answered = async {
        request.no_query()?;
        let id = session.key.id.clone();
        let found = context.app.store.read_async(ReadPurpose::Console, move |store| store.key(&id)).await;
        Ok(reply::json(StatusCode::OK, &full_info(&context.app, &session, &found)))
    };
    reply::within(rate, answered.await)
}

async fn log_in<B: Buf>(
    request: &Request,
    body: impl Stream<Item = Result<B, warp::Error>>,
) -> Result<Response, ApiError> {
    let Request { context, incoming, .. } = request;
    let rate = gate::login(&context.app, incoming).await?;
    let answered = async {
        let presented = secret(request, body, "key").await?;
        let found = gate::console_key(&context.app, incoming, presented.expose_secret(), rate).await;
        if let Err(error) = &found {
            refused_logins::note(context, incoming, error).await;
        }
        let key = found?;
        let actor = gate::actor(&key, Channel::Dashboard, incoming);
        let replaced = gate::session_cookie(context, incoming).map(str::to_owned);
        let started = write(context, move |app| {
            let credential = Credential { key_id: key.id.clone(), session: None, clock: app.clock.clone() };
            let (store, now) = (app.store.acting_as(actor).with_credential(credential), app.clock.now());
            let (token, session) =
                sessions::begin(&store, &key, now).map_err(ApiError::session_not_started)?;
            if let Some(replaced) = replaced {
                sessions::end(&store, &replaced, now).map_err(session_error)?;
            }
            let found = store.key(&session.key.id);
            Ok((token, full_info(app, &session, &found)))
        });
        let (token, info) = started.await?;
        Ok(request.with_cookie(reply::json(StatusCode::CREATED, &info), &token))
    };
    reply::within(rate, answered.await)
}

async fn log_out(request: &Request) -> Result<Response, ApiError> {
    let Request { context, incoming, .. } = request;
    let (token, rate) = gate::logout(context, incoming).await?;
    reply::within(rate, end_session(request, token).await)
}

async fn end_session(request: &Request, token: Option<String>) -> Result<Response, ApiError> {
    let Request { context, incoming, .. } = request;
    request.no_query()?;
    if let Some(token) = token {
        let (address, unknown) = (incoming.address, gate::anonymous_actor(Channel::Dashboard, incoming));
        let ended = write(context, move |app| {
            let now = app.clock.now();
            let found = sessions::recognise(&app.store, &token, address, now);
            let actor = match found {
                Ok(Session { key, .. }) => {
                    Actor { id: Some(key.id.to_string()), name: key.name.clone(), ..unknown }
                }
                // It has ended anyway; or the store cannot be read, and so not be written either.
                Err(_) => unknown,
            };
            sessions::end(&app.store.acting_as(actor), &token, now).map_err(session_error)
        });
        ended.await?;
    }
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(with_header(response, cookie::clear(origin::is_https(context, incoming))))
}

/// `POST /v1/auth/setup`.
pub(super) async fn set_up<B: Buf>(
    request: Request,
    body: impl Stream<Item = Result<B, warp::Error>>,
) -> Result<Response, ApiError> {
    let Request { context, incoming, .. } = &request;
    let rate = gate::login(&context.app, incoming).await?;
    let answered = async {
        let presented = secret(&request, body, "token").await?;
        let unknown = gate::anonymous_actor(Channel::Dashboard, incoming);
        let actor = Actor { name: Some(SETUP_ACTOR.to_owned()), ..unknown };
        let completed = write(context, move |app| {
            let now = app.clock.now();
            Ok(app.setup.complete(&app.store.acting_as(actor), presented.expose_secret(), now))
        });
        let made = match completed.await? {
            Ok(made) => made,
            Err(cause) => {
                let error = gate::setup_error(&context.app, incoming, cause, rate).await;
                refused_logins::note(context, incoming, &error).await;
                return Err(error);
            }
        };
        incoming.record.set_key(made.session.key.clone());
        let session = info(&context.app, &made.session, &made.session.key);
        let created = CreatedKey { key: made.key.expose_secret().to_owned(), record: session.key.clone() };
        let response = reply::json(StatusCode::CREATED, &SetUp { created, session });
        Ok(request.with_cookie(response, &made.token))
    };
    reply::within(rate, answered.await)
}

/// The one string in a body, without whitespace that was copied along with it.
async fn secret<B: Buf>(
    request: &Request,
    body: impl Stream<Item = Result<B, warp::Error>>,
    name: &'static str,
) -> Result<SecretString, ApiError> {
    request.no_query()?;
    let body = request.context.read_json(&request.incoming, body).await?;
    let mut params = Params::parse(&body)?;
    let text = params.required_text(name)?;
    params.finish(&[name])?;
    Ok(SecretString::from(text.trim()))
}

/// What a session may know about itself and its key.
fn info(app: &AppState, session: &Session, key: &KeyRow) -> SessionInfo {
    SessionInfo {
        // A console key uses no models, and spends nothing.
        key: keys::record(key, NanoUsd(0), app.clock.now()),
        expires_at: session.expires_at.rfc3339(),
        idle_seconds: sessions::IDLE.as_secs(),
        mode: if app.configured().is_sandbox { "sandbox" } else { "live" }.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Like [`info`], with the last use of the key if it can be read; if not, people must still get in, as they may have to
/// revoke a key.
fn full_info(app: &AppState, session: &Session, found: &Result<KeyRow, Error>) -> SessionInfo {
    let key = found.as_ref().unwrap_or_else(|cause| {
        tracing::warn!(%cause, "the last use of a key cannot be read");
        &session.key
    });
    info(app, session, key)
}

impl Request {
    /// Rejects any query: a secret that somebody puts there must not be silently ignored.
    pub(super) fn no_query(&self) -> Result<(), ApiError> {
        Query::parse(self.query())?.finish(&[])
    }

    fn with_cookie(&self, response: Response, token: &SecretString) -> Response {
        let is_https = origin::is_https(&self.context, &self.incoming);
        with_header(response, cookie::set(token.expose_secret(), is_https))
    }
}

fn with_header(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// Runs work that writes to storage on the writer thread.
pub(super) async fn write<T: Send + 'static>(
    context: &ServerState,
    work: impl FnOnce(&AppState) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let app = context.app.clone();
    match context.writer.run(move || work(&app)).await {
        Ok(outcome) => outcome,
        Err(cause) => Err(super::pool_error(cause)),
    }
}

fn session_error(cause: Error) -> ApiError {
    if let Error::InvalidCredential(_) = cause {
        return cause.into();
    }
    tracing::error!(%cause, "sessions cannot be read or written");
    ApiError::from(ErrorCode::StoreUnavailable)
}
