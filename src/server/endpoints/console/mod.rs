//! The console API, `/v1`: apps, keys, usage, billing and audit, for holders of a console key.
//!
//! Handlers are grouped by subject. What must hold: whatever is written is written in the
//! caller's name ([`ConsoleRequest::write`]), so that the audit log knows who did it, and only while the caller's credentials are
//! still valid, as a body may take its time; a response that holds a key is never cached; storage is only accessed on
//! threads that may block.

pub(in crate::server) mod apps;
mod audit;
mod auth;
mod billing;
mod csv;
pub(in crate::server) mod keys;
mod own_key;
pub(in crate::server) mod query;
mod trials;
pub(in crate::server) mod usage;

pub(in crate::server) use auth::refused_logins::RefusedLogins;
pub(in crate::server) use keys::MAX_GRACE_SECONDS;
pub(in crate::server) use query::{DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE};

use std::io;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures_util::Stream;
use http::{HeaderValue, Method, StatusCode, header};
use serde::Serialize;
use warp::reply::Response;

use crate::api::console::Page;
use crate::api::endpoint::Endpoint;
use crate::clock::Time;
use crate::net::thread_pool::ThreadPool;
use crate::server::ServerState;
use crate::server::gate::{self, Caller};
use crate::server::reply::{self, ApiError, ErrorCode};
use crate::server::request::incoming::Incoming;
use crate::server::request::params::Params;
use crate::server::routes::Request;
use crate::storage::Store;
use query::Query;

/// An admitted request with its body.
struct ConsoleRequest {
    context: Arc<ServerState>,
    incoming: Incoming,
    /// The query string, without the question mark.
    query: String,
    /// Empty if the method or the endpoint takes none.
    body: Bytes,
    caller: Caller,
}

impl ConsoleRequest {
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
    /// included ([`thread_pool`](crate::net::thread_pool)).
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
        let store = app.store.acting_as(self.caller.actor(&self.incoming));
        let (store, now) = (store.with_credential(self.caller.credential(&app.clock)), app.clock.now());
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
    ApiError::from(ErrorCode::Internal)
}

/// Answers a request for one of the console's endpoints: those that are named here and in [`dispatch`].
pub(in crate::server) async fn handle<B: Buf>(
    request: Request,
    endpoint: Endpoint,
    body: impl Stream<Item = Result<B, warp::Error>>,
) -> Response {
    let incoming = request.incoming.clone();
    let outcome = match endpoint {
        // These have their own gates.
        Endpoint::Session => auth::session(request, body).await,
        Endpoint::Setup => auth::set_up(request, body).await,
        Endpoint::OwnKey => own_key::show(&request).await,
        Endpoint::TryVerify => trials::verify(&request, body).await,
        Endpoint::TryChat => trials::chat(&request, body).await,
        _ => admit(request, endpoint, body).await,
    };
    without_caching(outcome.unwrap_or_else(|error| error.into_response(&incoming)))
}

/// Answers what holders of a console key may do.
async fn admit<B: Buf>(
    request: Request,
    endpoint: Endpoint,
    body: impl Stream<Item = Result<B, warp::Error>>,
) -> Result<Response, ApiError> {
    let caller = gate::console(&request.context, &request.incoming, &request.method).await?;
    let rate = caller.rate;
    let answered = async {
        let body = read_body(&request, endpoint, body).await?;
        let ids = endpoint.ids(request.uri.path()).map(str::to_owned);
        let query = request.query().to_owned();
        let Request { context, incoming, method, .. } = request;
        let call = ConsoleRequest { context, incoming, query, body, caller };
        dispatch(endpoint, &method, call, ids).await
    };
    reply::within(rate, answered.await)
}

async fn read_body<B: Buf>(
    request: &Request,
    endpoint: Endpoint,
    body: impl Stream<Item = Result<B, warp::Error>>,
) -> Result<Bytes, ApiError> {
    let Request { context, incoming, method, .. } = request;
    match endpoint {
        Endpoint::Rotation => context.read_optional_json(incoming, body).await,
        _ if *method == Method::POST || *method == Method::PATCH => context.read_json(incoming, body).await,
        _ => Ok(Bytes::new()),
    }
}

/// Forbids caching: responses of the console are about keys and people. A stream says so itself, and more: nothing on
/// its way may transform it.
fn without_caching(mut response: Response) -> Response {
    response.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Calls the handler of an endpoint for one of its methods; HEAD is GET without the body.
async fn dispatch(
    endpoint: Endpoint,
    method: &Method,
    call: ConsoleRequest,
    [app, key]: [String; 2],
) -> Result<Response, ApiError> {
    match (endpoint, method.as_str()) {
        (Endpoint::Apps, "POST") => apps::create(call).await,
        (Endpoint::Apps, _) => apps::list(call).await,
        (Endpoint::App, "PATCH") => apps::update(call, app).await,
        (Endpoint::App, "DELETE") => apps::delete(call, app).await,
        (Endpoint::App, _) => apps::show(call, app).await,
        (Endpoint::Keys, "POST") => keys::create(call, app).await,
        (Endpoint::Keys, _) => keys::list(call, app).await,
        (Endpoint::Key, "PATCH") => keys::update(call, app, key).await,
        (Endpoint::Key, "DELETE") => keys::revoke(call, app, key).await,
        (Endpoint::Key, _) => keys::show(call, app, key).await,
        (Endpoint::Rotation, _) => keys::rotate(call, app, key).await,
        (Endpoint::Try, _) => trials::offer(call, app).await,
        (Endpoint::Audit, _) => audit::list(call).await,
        (Endpoint::Usage, _) => usage::report(call).await,
        (Endpoint::ForgetUser, _) => usage::forget_user(call).await,
        (Endpoint::Billing, _) => billing::billing(call).await,
        (Endpoint::Statement, _) => billing::statement(call, app).await,
        _ => Err(ApiError::from(ErrorCode::UnknownRoute)),
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
