//! The settings of a server, and the state that all of its requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::Stream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Tls;
use super::endpoints::console::RefusedLogins;
use super::endpoints::openapi;
use super::in_flight::InFlight;
use super::reply::{ApiError, ErrorCode};
use super::request::body::{self, BodyLimits, BodyMemory};
use super::request::incoming::Incoming;
use crate::app::AppState;
use crate::net::inbound::open_connections::OpenConnections;
use crate::net::thread_pool::ThreadPool;
use crate::net::workers;

/// Limits and timeouts of a server. The defaults are for production.
#[derive(Clone)]
pub struct Options {
    /// Set to speak TLS.
    pub tls: Option<Tls>,
    /// The maximum number of connections. For further ones, idle ones are closed; if there are none, they wait in the
    /// kernel's backlog.
    pub max_connections: usize,
    /// How long a connection must have been idle to be closed for another one.
    pub evictable_after: Duration,
    /// Timeout for a request's head to arrive, which is also how long a kept-alive connection may idle.
    pub header_timeout: Duration,
    /// Timeout between two chunks of a request body.
    pub body_idle: Duration,
    /// Timeout of a whole request body.
    pub body_total: Duration,
    /// Timeout for the peer to take a chunk of a response; one that does not even acknowledge it has twice as long, but
    /// no more than 45 s.
    pub write_timeout: Duration,
    /// How long requests in flight may take to end after shutdown, before they are aborted.
    pub drain: Duration,
    /// Cancelled to end this grace period before its time.
    pub abort: CancellationToken,
    /// How often a stream without events gets a keep-alive comment.
    pub keep_alive: Duration,
    /// How long the system clock must have run without a jump before attempts are deleted because of their age.
    pub clock_stable_for: Duration,
    /// How many worker threads connections are spread over; with none, all stay on the runtime of
    /// [`serve`](fn@super::serve::serve).
    pub workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tls: None,
            max_connections: 10_000,
            evictable_after: Duration::from_secs(2),
            header_timeout: Duration::from_secs(30),
            body_idle: Duration::from_secs(15),
            body_total: Duration::from_mins(1),
            write_timeout: Duration::from_secs(30),
            drain: Duration::from_secs(20),
            abort: CancellationToken::new(),
            keep_alive: Duration::from_secs(15),
            clock_stable_for: Duration::from_hours(1),
            workers: workers::cores(),
        }
    }
}

/// Threads that read from storage for the console: a page takes less than a millisecond, and waits for no writer.
const READERS: usize = 2;

/// How long console requests wait for a thread that accesses storage; a write then waits as long for other processes.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);

/// The state that all requests of a server share.
pub(crate) struct ServerState {
    pub(crate) app: Arc<AppState>,
    pub(crate) in_flight: InFlight,
    pub(crate) open_connections: OpenConnections,
    body_memory: BodyMemory,
    pub(crate) options: Options,
    /// The verifications and completions in flight; each books its usage when it ends or is dropped.
    pub(crate) runs: TaskTracker,
    /// Makes reports, one at a time: their memory grows with the usage they cover.
    pub(crate) reports: ThreadPool,
    /// Reads from storage for the console.
    pub(crate) readers: ThreadPool,
    /// Writes to storage for the console. A database has a single writer: more threads would wait for each other.
    pub(crate) writer: ThreadPool,
    /// The refused logins that the audit log shows.
    pub(super) refused_logins: RefusedLogins,
    /// The `OpenAPI` description, built on first use.
    pub(super) openapi: openapi::Cache,
    pub(super) draining: AtomicBool,
}

impl ServerState {
    pub(crate) fn new(app: Arc<AppState>, options: Options) -> Self {
        Self {
            app,
            in_flight: InFlight::default(),
            open_connections: OpenConnections::default(),
            body_memory: BodyMemory::default(),
            options,
            runs: TaskTracker::new(),
            reports: ThreadPool::new("reports", 1, Duration::MAX),
            readers: ThreadPool::new("readers", READERS, QUEUE_TIMEOUT),
            writer: ThreadPool::new("writer", 1, QUEUE_TIMEOUT),
            refused_logins: RefusedLogins::default(),
            openapi: openapi::Cache::default(),
            draining: AtomicBool::new(false),
        }
    }

    /// Reads a request's JSON body within this server's limits; new work is rejected while the server drains.
    pub(crate) async fn read_json<B: Buf, E>(
        &self,
        incoming: &Incoming,
        body: impl Stream<Item = Result<B, E>>,
    ) -> Result<Bytes, ApiError> {
        body::json_body(&incoming.headers, body, self.body_limits(incoming)?).await
    }

    /// Like [`Self::read_json`], for a request to a model.
    pub(crate) async fn read_inference_json<B: Buf, E>(
        &self,
        incoming: &Incoming,
        body: impl Stream<Item = Result<B, E>>,
    ) -> Result<Bytes, ApiError> {
        let bytes = incoming.configured.inference_max_body_bytes;
        let limits = BodyLimits { bytes, ..self.body_limits(incoming)? };
        body::json_body(&incoming.headers, body, limits).await
    }

    /// Like [`Self::read_json`], for a body of up to `bytes`, if that is more than others may have.
    pub(crate) async fn read_large_json<B: Buf, E>(
        &self,
        incoming: &Incoming,
        body: impl Stream<Item = Result<B, E>>,
        bytes: usize,
    ) -> Result<Bytes, ApiError> {
        let limits = self.body_limits(incoming)?;
        let limits = BodyLimits { bytes: limits.bytes.max(bytes), ..limits };
        body::json_body(&incoming.headers, body, limits).await
    }

    /// Like [`Self::read_json`], for a body that may be omitted; then it is empty.
    pub(crate) async fn read_optional_json<B: Buf>(
        &self,
        incoming: &Incoming,
        body: impl Stream<Item = Result<B, warp::Error>>,
    ) -> Result<Bytes, ApiError> {
        body::optional_json_body(&incoming.headers, body, self.body_limits(incoming)?).await
    }

    fn body_limits(&self, incoming: &Incoming) -> Result<BodyLimits<'_>, ApiError> {
        if self.is_draining() {
            return Err(ApiError::from(ErrorCode::ShuttingDown));
        }
        Ok(BodyLimits {
            bytes: incoming.configured.max_body_bytes,
            usual_bytes: incoming.configured.max_body_bytes,
            idle: self.options.body_idle,
            total: self.options.body_total,
            memory: &self.body_memory,
        })
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}
