//! The console API, `/v1`: apps, keys, usage, billing and audit, for holders of a console key.
//!
//! A single filter takes everything under `/v1`, and paths and methods are matched here, so that the many routes cost
//! the hot ones nothing. Handlers are grouped by subject. What must hold: whatever is written is written in the
//! caller's name ([`Call::write`]), so that the audit log knows who did it, and only while the caller's credentials are
//! still valid, as a body may take its time; a response that holds a key is never cached; storage is only accessed on
//! threads that may block.

pub(super) mod apps;
mod audit;
mod auth;
mod billing;
mod csv;
pub(super) mod keys;
mod own_key;
pub(super) mod query;
mod refused_logins;
mod report_query;
#[cfg(test)]
mod tests;
mod trials;
pub(super) mod usage;

pub(super) use keys::MAX_GRACE_SECONDS;
pub(super) use query::{DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE};
pub(super) use refused_logins::RefusedLogins;

use std::io;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures_util::Stream;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Serialize;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::gate::{self, Admitted};
use super::incoming::Incoming;
use super::params::Params;
use super::reply::{self, ApiError};
use super::thread_pool::ThreadPool;
use super::{Context, routes, with_rate};
use crate::api::console::Page;
use crate::clock::Time;
use crate::limits::LimitState;
use crate::storage::Store;
use query::Query;

/// The endpoints under `/v1`.
#[cfg_attr(test, derive(Clone, Copy, Debug, PartialEq))]
pub(super) enum Endpoint<'a> {
    Apps,
    App(&'a str),
    Statement(&'a str),
    Keys(&'a str),
    Key(&'a str, &'a str),
    Rotation(&'a str, &'a str),
    Try(&'a str),
    TryVerify(&'a str),
    TryChat(&'a str),
    Usage,
    Billing,
    Audit,
    OwnKey,
    Session,
    Setup,
}

impl<'a> Endpoint<'a> {
    /// Parses the path after `/v1/`. Ids are letters, digits and underscores, so nothing is decoded. A trailing slash
    /// makes another path, as `Location` is relative to the requested one. [`crate::metrics::ROUTES`] lists them all.
    pub(super) fn parse(tail: &'a str) -> Option<Self> {
        let mut parts = tail.split('/');
        let found = match (parts.next()?, parts.next(), parts.next(), parts.next(), parts.next()) {
            ("apps", None, ..) => Self::Apps,
            ("apps", Some(app), None, ..) if !app.is_empty() => Self::App(app),
            ("apps", Some(app), Some("statement"), None, _) => Self::Statement(app),
            ("apps", Some(app), Some("keys"), None, _) => Self::Keys(app),
            ("apps", Some(app), Some("keys"), Some(key), None) if !key.is_empty() => Self::Key(app, key),
            ("apps", Some(app), Some("keys"), Some(key), Some("rotate")) => Self::Rotation(app, key),
            ("apps", Some(app), Some("try"), None, _) => Self::Try(app),
            ("apps", Some(app), Some("try"), Some("verify"), None) => Self::TryVerify(app),
            ("apps", Some(app), Some("try"), Some("chat"), None) => Self::TryChat(app),
            ("usage", None, ..) => Self::Usage,
            ("billing", None, ..) => Self::Billing,
            ("audit", None, ..) => Self::Audit,
            ("key", None, ..) => Self::OwnKey,
            ("auth", Some("session"), None, ..) => Self::Session,
            ("auth", Some("setup"), None, ..) => Self::Setup,
            _ => return None,
        };
        parts.next().is_none().then_some(found)
    }

    /// The methods of the endpoint, as `Allow` lists them.
    pub(super) const fn methods(&self) -> &'static str {
        match self {
            Self::Apps | Self::Keys(_) => "GET, HEAD, POST",
            Self::App(_) | Self::Key(..) => "GET, HEAD, PATCH, DELETE",
            Self::Statement(_) | Self::Usage | Self::Billing | Self::Audit | Self::OwnKey | Self::Try(_) => {
                "GET, HEAD"
            }
            Self::Rotation(..) | Self::Setup | Self::TryVerify(_) | Self::TryChat(_) => "POST",
            Self::Session => "GET, HEAD, POST, DELETE",
        }
    }
}

/// An admitted request with its body.
struct Call {
    context: Arc<Context>,
    headers: Arc<HeaderMap>,
    /// The query string, without the question mark.
    query: String,
    /// Empty if the method or the endpoint takes none.
    body: Bytes,
    /// The caller.
    admitted: Admitted,
}

impl Call {
    /// The parameters of the query string.
    fn query(&self) -> Result<Query, ApiError> {
        Query::parse(&self.query)
    }

    /// The parameters of the body. A write takes none in the query: somebody who asks there for a dry run, say, must
    /// not get a real one.
    fn params(&self) -> Result<Params, ApiError> {
        let params = Params::parse(&self.body)?;
        self.query()?.finish(&[])?;
        Ok(params)
    }

    /// Reads from the store.
    async fn read<T, E>(
        &self,
        work: impl FnOnce(&Store, Time) -> Result<T, E> + Send + 'static,
    ) -> Result<T, ApiError>
    where
        T: Send + 'static,
        E: Into<ApiError> + Send + 'static,
    {
        self.run_on(&self.context.readers, work).await
    }

    /// Changes the store in the caller's name. A change that has started is finished, even if the caller leaves.
    async fn write<T, E>(
        &self,
        work: impl FnOnce(&Store, Time) -> Result<T, E> + Send + 'static,
    ) -> Result<T, ApiError>
    where
        T: Send + 'static,
        E: Into<ApiError> + Send + 'static,
    {
        self.run_on(&self.context.writer, work).await
    }

    /// Makes a report, whose memory grows with the data it covers. Reports are made one at a time, serialisation
    /// included ([`thread_pool`](crate::server::thread_pool)).
    async fn report<E>(
        &self,
        work: impl FnOnce(&Store, Time) -> Result<Response, E> + Send + 'static,
    ) -> Result<Response, ApiError>
    where
        E: Into<ApiError> + Send + 'static,
    {
        self.run_on(&self.context.reports, work).await
    }

    async fn run_on<T, E>(
        &self,
        thread_pool: &ThreadPool,
        work: impl FnOnce(&Store, Time) -> Result<T, E> + Send + 'static,
    ) -> Result<T, ApiError>
    where
        T: Send + 'static,
        E: Into<ApiError> + Send + 'static,
    {
        let app = &self.context.app;
        let Admitted { actor, credential, .. } = &self.admitted;
        let (store, now) =
            (app.store.acting_as(actor.clone()).with_credential(credential.clone()), app.clock.now());
        match thread_pool.run(move || work(&store, now)).await {
            Ok(outcome) => outcome.map_err(Into::into),
            Err(cause) => Err(pool_error(cause)),
        }
    }
}

/// The error for work that did not run, or panicked.
fn pool_error(cause: io::Error) -> ApiError {
    if cause.kind() == io::ErrorKind::TimedOut {
        return ApiError::store_failed(&cause.into());
    }
    tracing::error!(%cause, "a request of the console failed");
    ApiError::internal()
}

/// The route for everything under `/v1`.
pub(crate) fn route(context: &Arc<Context>) -> BoxedFilter<(Response,)> {
    let raw_query = warp::query::raw().or(warp::any().map(String::new)).unify();
    warp::path("v1")
        .and(warp::path::tail())
        .and(raw_query)
        .and(routes::with_context(context))
        .and(warp::method())
        .and(warp::body::stream())
        .then(
            |tail: warp::path::Tail,
             query,
             context: Arc<Context>,
             incoming: Incoming,
             method,
             body| async move {
                let request = Request { context, incoming, method, query };
                // Boxed, as every request reserves space for this future, also those for other routes.
                without_caching(Box::pin(request.answer(tail.as_str(), body)).await)
            },
        )
        .boxed()
}

struct Request {
    context: Arc<Context>,
    incoming: Incoming,
    method: Method,
    query: String,
}

impl Request {
    async fn answer<B: Buf>(self, tail: &str, body: impl Stream<Item = Result<B, warp::Error>>) -> Response {
        let Some(endpoint) = Endpoint::parse(tail) else {
            return self.reject(ApiError::unknown_route()).await;
        };
        let allowed = endpoint.methods();
        if !allowed.split(", ").any(|method| method == self.method.as_str()) {
            return self.reject(ApiError::method_not_allowed(allowed)).await;
        }
        let request_id = self.incoming.request_id.clone();
        let outcome = match endpoint {
            // These have their own gates.
            Endpoint::Session => auth::session(self, body).await,
            Endpoint::Setup => auth::set_up(self, body).await,
            Endpoint::OwnKey => own_key::show(&self).await,
            Endpoint::TryVerify(app) => trials::verify(&self, app, body).await,
            Endpoint::TryChat(app) => trials::chat(&self, app, body).await,
            _ => self.admit_and_handle(&endpoint, body).await,
        };
        match outcome {
            Ok((response, rate)) => with_rate(response, rate),
            Err(error) => error.into_response(&request_id),
        }
    }

    async fn admit_and_handle<B: Buf>(
        self,
        endpoint: &Endpoint<'_>,
        body: impl Stream<Item = Result<B, warp::Error>>,
    ) -> Result<(Response, LimitState), ApiError> {
        let admitted = gate::console(&self.context, &self.incoming, &self.method).await?;
        let rate = admitted.rate;
        match self.handle(endpoint, admitted, body).await {
            Ok(response) => Ok((response, rate)),
            Err(error) => Err(error.with_rate(rate)),
        }
    }

    async fn handle<B: Buf>(
        self,
        endpoint: &Endpoint<'_>,
        admitted: Admitted,
        body: impl Stream<Item = Result<B, warp::Error>>,
    ) -> Result<Response, ApiError> {
        let takes_body = self.method == Method::POST || self.method == Method::PATCH;
        let body = match endpoint {
            Endpoint::Rotation(..) => self.context.read_optional_json(&self.incoming, body).await?,
            _ if takes_body => self.context.read_json(&self.incoming, body).await?,
            _ => Bytes::new(),
        };
        let Self { context, incoming, method, query } = self;
        let call = Call { context, headers: incoming.headers, query, body, admitted };
        dispatch(endpoint, &method, call).await
    }

    /// Answers a request that no endpoint takes, which counts as one for an open page.
    async fn reject(&self, error: ApiError) -> Response {
        let error = match gate::open_page(&self.context.app, &self.incoming).await {
            Ok(rate) => error.with_rate(rate),
            Err(limited) => limited,
        };
        error.into_response(&self.incoming.request_id)
    }
}

/// Forbids caching: responses of the console are about keys and people. A stream says so itself, and more: nothing on
/// its way may transform it.
fn without_caching(mut response: Response) -> Response {
    response.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Calls the handler of an endpoint for one of its methods; HEAD is GET without the body.
async fn dispatch(endpoint: &Endpoint<'_>, method: &Method, call: Call) -> Result<Response, ApiError> {
    match (endpoint, method.as_str()) {
        (Endpoint::Apps, "POST") => apps::create(call).await,
        (Endpoint::Apps, _) => apps::list(call).await,
        (Endpoint::App(app), "PATCH") => apps::update(call, app).await,
        (Endpoint::App(app), "DELETE") => apps::delete(call, app).await,
        (Endpoint::App(app), _) => apps::show(call, app).await,
        (Endpoint::Keys(app), "POST") => keys::create(call, app).await,
        (Endpoint::Keys(app), _) => keys::list(call, app).await,
        (Endpoint::Key(app, key), "PATCH") => keys::update(call, app, key).await,
        (Endpoint::Key(app, key), "DELETE") => keys::revoke(call, app, key).await,
        (Endpoint::Key(app, key), _) => keys::show(call, app, key).await,
        (Endpoint::Rotation(app, key), _) => keys::rotate(call, app, key).await,
        (Endpoint::Try(app), _) => trials::offer(call, app).await,
        (Endpoint::Audit, _) => audit::list(call).await,
        (Endpoint::Usage, _) => usage::report(call).await,
        (Endpoint::Billing, _) => billing::billing(call).await,
        (Endpoint::Statement(app), _) => billing::statement(call, app).await,
        // Handled in `answer`.
        (
            Endpoint::Session
            | Endpoint::Setup
            | Endpoint::OwnKey
            | Endpoint::TryVerify(_)
            | Endpoint::TryChat(_),
            _,
        ) => Err(ApiError::unknown_route()),
    }
}

/// A page of at most `limit` records, made from up to one more, which tells whether there is a next page.
fn page<T>(mut records: Vec<T>, limit: u32, id: impl Fn(&T) -> &String) -> Page<T> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let is_last = records.len() <= limit;
    records.truncate(limit);
    let next_cursor = if is_last { None } else { records.last().map(|record| id(record).clone()) };
    Page { data: records, next_cursor }
}

/// 201 for a new record, with its `Location`: relative to the requested path, as a proxy may add a prefix to it.
fn created(location: &str, record: &impl Serialize) -> Response {
    let mut response = reply::json(StatusCode::CREATED, record);
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

#[cfg(test)]
impl Endpoint<'static> {
    /// One of each, with the placeholders of the `OpenAPI` description. The match is a reminder to list new ones here.
    pub(super) const fn all() -> [Self; 15] {
        const APP: &str = "{app_id}";
        const KEY: &str = "{key_id}";
        match Self::Apps {
            Self::Apps
            | Self::App(_)
            | Self::Statement(_)
            | Self::Keys(_)
            | Self::Key(..)
            | Self::Rotation(..)
            | Self::Try(_)
            | Self::TryVerify(_)
            | Self::TryChat(_)
            | Self::Usage
            | Self::Billing
            | Self::Audit
            | Self::OwnKey
            | Self::Session
            | Self::Setup => [
                Self::Apps,
                Self::App(APP),
                Self::Statement(APP),
                Self::Keys(APP),
                Self::Key(APP, KEY),
                Self::Rotation(APP, KEY),
                Self::Try(APP),
                Self::TryVerify(APP),
                Self::TryChat(APP),
                Self::Usage,
                Self::Billing,
                Self::Audit,
                Self::OwnKey,
                Self::Session,
                Self::Setup,
            ],
        }
    }
}
