//! Sessions of the dashboard and the first console key: `/v1/auth`.
//!
//! What must hold: every login gives a new cookie, and ends the session of one that the browser had; a key or a token is
//! read from a body alone, so that it stands in no address and no log.

use bytes::Buf;
use futures_util::Stream;
use http::{HeaderValue, Method, StatusCode, header};
use warp::reply::Response;

use super::Request;
use super::query::Query;
use crate::api::console::{Channel, CreatedKey, SessionInfo, SetUp};
use crate::app::App;
use crate::keys;
use crate::keys::sessions::{self, Session};
use crate::limits::LimitState;
use crate::money::NanoUsd;
use crate::secret::{ExposeSecret, SecretString};
use crate::server::params::Params;
use crate::server::reply::{self, ApiError};
use crate::server::{Context, cookie, gate, site};
use crate::storage::{Actor, Credential, Error, KeyRow};

/// What the audit calls who makes the first key.
const LINK: &str = "setup link";

/// `GET`, `POST` and `DELETE /v1/auth/session`.
pub(super) async fn session<B: Buf>(
    request: Request,
    body: impl Stream<Item = Result<B, warp::Error>>,
) -> Result<(Response, LimitState), ApiError> {
    match request.method {
        Method::POST => log_in(&request, body).await,
        Method::DELETE => log_out(&request).await,
        _ => show(&request).await,
    }
}

async fn show(request: &Request) -> Result<(Response, LimitState), ApiError> {
    let Request { context, incoming, .. } = request;
    let (session, rate) = gate::session(context, incoming).await?;
    no_query(request).map_err(|error| error.with_rate(rate))?;
    let id = session.key.id.clone();
    let found = context.app.store.read_async(move |store| store.key(&id)).await;
    let info = full_info(&context.app, &session, &found);
    Ok((reply::json(StatusCode::OK, &info), rate))
}

async fn log_in<B: Buf>(
    request: &Request,
    body: impl Stream<Item = Result<B, warp::Error>>,
) -> Result<(Response, LimitState), ApiError> {
    let Request { context, incoming, .. } = request;
    let rate = gate::login(&context.app, incoming).await?;
    let presented = secret(request, body, "key").await.map_err(|error| error.with_rate(rate))?;
    let key = gate::console_key(&context.app, incoming, presented.expose_secret(), rate).await?;
    let actor = gate::actor(&key, Channel::Dashboard, incoming);
    let replaced = gate::cookie_of(context, incoming).map(str::to_owned);
    let begun = beside(context, move |app| {
        let credential = Credential { key_id: key.id.clone(), session: None, clock: app.clock.clone() };
        let (store, now) = (app.store.acting_as(actor).with_credential(credential), app.clock.now());
        let (token, session) = sessions::begin(&store, &key, now).map_err(ApiError::no_session)?;
        if let Some(replaced) = replaced {
            sessions::end(&store, &replaced, now).map_err(unreadable)?;
        }
        let found = store.key(&session.key.id);
        Ok((token, full_info(app, &session, &found)))
    });
    let (token, info) = begun.await.map_err(|error| error.with_rate(rate))?;
    Ok((request.with_cookie(reply::json(StatusCode::CREATED, &info), &token), rate))
}

async fn log_out(request: &Request) -> Result<(Response, LimitState), ApiError> {
    let Request { context, incoming, .. } = request;
    let (token, rate) = gate::logout(context, incoming).await?;
    no_query(request).map_err(|error| error.with_rate(rate))?;
    if let Some(token) = token {
        let (address, unknown) = (incoming.address, gate::somebody(Channel::Dashboard, incoming));
        let ended = beside(context, move |app| {
            let now = app.clock.now();
            let found = sessions::recognise(&app.store, &token, address, now);
            let actor = match found {
                Ok(Session { key, .. }) => Actor { id: Some(key.id.to_string()), name: key.name, ..unknown },
                // It is over anyway; a store that cannot be read cannot be written.
                Err(_) => unknown,
            };
            sessions::end(&app.store.acting_as(actor), &token, now).map_err(unreadable)
        });
        ended.await.map_err(|error| error.with_rate(rate))?;
    }
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    let cleared = cookie::clear(site::is_https(context, incoming));
    Ok((with_header(response, cleared), rate))
}

/// `POST /v1/auth/setup`.
pub(super) async fn set_up<B: Buf>(
    request: Request,
    body: impl Stream<Item = Result<B, warp::Error>>,
) -> Result<(Response, LimitState), ApiError> {
    let Request { context, incoming, .. } = &request;
    let rate = gate::login(&context.app, incoming).await?;
    let presented = secret(&request, body, "token").await.map_err(|error| error.with_rate(rate))?;
    let actor = Actor { name: Some(LINK.to_owned()), ..gate::somebody(Channel::Dashboard, incoming) };
    let completed = beside(context, move |app| {
        let now = app.clock.now();
        Ok(app.setup.complete(&app.store.acting_as(actor), presented.expose_secret(), now))
    });
    let completed = completed.await.map_err(|error| error.with_rate(rate))?;
    let made = match completed {
        Ok(made) => made,
        Err(cause) => return Err(gate::refuse_setup(&context.app, incoming, cause, rate).await),
    };
    incoming.record.came_with(made.session.key.clone());
    let session = info(&context.app, &made.session, &made.session.key);
    let created = CreatedKey { key: made.key.expose_secret().to_owned(), record: session.key.clone() };
    let response = reply::json(StatusCode::CREATED, &SetUp { created, session });
    Ok((request.with_cookie(response, &made.token), rate))
}

/// Nothing here takes a query; a secret that somebody puts there must not pass for sent.
fn no_query(request: &Request) -> Result<(), ApiError> {
    Query::parse(&request.query)?.finish(&[])
}

/// The one text that a body holds, without what copying adds around it.
async fn secret<B: Buf>(
    request: &Request,
    body: impl Stream<Item = Result<B, warp::Error>>,
    name: &'static str,
) -> Result<SecretString, ApiError> {
    no_query(request)?;
    let body = request.context.read_json(&request.incoming, body).await?;
    let mut params = Params::parse(&body)?;
    let text = params.required_text(name)?;
    params.finish(&[name])?;
    Ok(SecretString::from(text.trim()))
}

/// What a session may be told about itself and its key.
fn info(app: &App, session: &Session, key: &KeyRow) -> SessionInfo {
    SessionInfo {
        // A console key asks no models, and spends nothing.
        key: keys::record(key, NanoUsd(0), app.clock.now()),
        expires_at: session.expires_at.rfc3339(),
        idle_seconds: sessions::IDLE.as_secs(),
        mode: if app.configured().is_sandbox { "sandbox" } else { "live" }.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// The same, last use of the key included, if the ledger can tell it: whoever has to revoke a key must get in.
fn full_info(app: &App, session: &Session, found: &Result<KeyRow, Error>) -> SessionInfo {
    let key = found.as_ref().unwrap_or_else(|cause| {
        tracing::warn!(%cause, "the last use of a key cannot be read");
        &session.key
    });
    info(app, session, key)
}

impl Request {
    fn with_cookie(&self, response: Response, token: &SecretString) -> Response {
        let is_https = site::is_https(&self.context, &self.incoming);
        with_header(response, cookie::set(token.expose_secret(), is_https))
    }
}

fn with_header(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// Runs what writes to storage on the thread for that.
async fn beside<T: Send + 'static>(
    context: &Context,
    work: impl FnOnce(&App) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let app = context.app.clone();
    match context.writer.run(move || work(&app)).await {
        Ok(outcome) => outcome,
        Err(cause) => Err(super::not_made(cause)),
    }
}

fn unreadable(cause: Error) -> ApiError {
    if let Error::InvalidCredential(_) = cause {
        return cause.into();
    }
    tracing::error!(%cause, "sessions cannot be read or written");
    ApiError::store_unavailable()
}
