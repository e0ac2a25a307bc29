//! The HTTP server: an accept loop, warp's routes behind it, and everything else that concerns HTTP.
//!
//! ```text
//! accept ─ TLS? ─ connection ─ envelope ─ route ─ gate ─ body ─ domain ─ reply
//!                 (timeouts)   (request id, common headers, log, panics)
//! ```
//!
//! [`serve`] is the entry point of production and of every test; it takes a listener that is bound already. What must
//! hold: a caller that is slow, silent or gone costs a bounded amount of time and memory; every response carries its
//! request id and rate limits; after `shutdown`, requests in flight get a grace period, then a proper end, and nothing
//! that was counted is lost.

mod background;
pub(crate) mod connection;
mod endpoints;
mod envelope;
pub mod fuzz_entry;
mod gate;
mod hyper_errors;
mod in_flight;
mod reply;
mod request;
pub(crate) mod routes;

pub use crate::net::inbound::listener::listen;
pub use crate::net::inbound::tls::{Certificate, Tls, TlsError, TlsFiles};
pub(crate) use endpoints::openapi::error_codes;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use futures_util::Stream;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use warp::reply::Response;

use crate::app::App;
use crate::limits::LimitState;
use crate::log_throttle::LogThrottle;
use crate::net::inbound::open_connections::OpenConnections;
use crate::net::thread_pool::ThreadPool;
use crate::net::workers::{self, Workers};
use background::tasks;
use endpoints::console::RefusedLogins;
use endpoints::openapi;
use in_flight::{AbortReason, InFlight};
use reply::ApiError;
use request::body::{self, BodyLimits, BodyMemory};
use request::incoming::Incoming;
use routes::Routes;

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
    /// How many worker threads connections are spread over; with none, all stay on the runtime of [`serve`].
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

/// How long aborted requests have to send their last frame.
const ABORT_GRACE: Duration = Duration::from_secs(2);

/// Threads that read from storage for the console: a page takes less than a millisecond, and waits for no writer.
const READERS: usize = 2;
/// How long console requests wait for a thread that accesses storage; a write then waits as long for other processes.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);

/// The state that all requests of a server share.
pub(crate) struct ServerState {
    pub(crate) app: Arc<App>,
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
    refused_logins: RefusedLogins,
    /// The `OpenAPI` description, built on first use.
    openapi: openapi::Cache,
    draining: AtomicBool,
}

impl ServerState {
    pub(crate) fn new(app: Arc<App>, options: Options) -> Self {
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
            return Err(ApiError::shutting_down());
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

/// How long the final write is retried while the database does not accept it.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause between two attempts of the final write.
const FINAL_WRITE_PAUSE: Duration = Duration::from_millis(250);

/// Serves `app` on `listener` until `shutdown` resolves, then drains.
///
/// # Errors
/// If the worker threads cannot be started, or usage and the state of the limits cannot be written at the end.
pub async fn serve(
    listener: TcpListener,
    app: Arc<App>,
    options: Options,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let workers = Workers::start(options.workers)?;
    let context = Arc::new(ServerState::new(app, options));
    let background = tasks::start(&context);
    // Not awaited: a shared store of limits that cannot be reached must not keep a server from starting.
    let greeting = context.app.clone();
    tokio::spawn(async move { greeting.limiter.connect().await });
    let (closing, _) = watch::channel(());
    let mut connections = JoinSet::new();

    accept(&listener, &workers, &context, &closing, &mut connections, shutdown).await;

    drop(listener);
    context.draining.store(true, Ordering::Relaxed);
    closing.send_replace(());
    drain(&context, &mut connections).await;
    await_runs(&context).await;
    context.app.ledger.end_late_calls().await;
    let start = Instant::now();
    background.end().await;

    let flushed = final_write(&context.app, start).await;
    let lost = context.app.ledger.queued_rows();
    if lost > 0 {
        tracing::error!(lost, "what was used could not be written, and is lost with this server");
    }
    flushed
}

/// Writes usage and counters, and then the verdict cache. A database that is down may be back in a moment, as many are
/// restarted together with their clients; so may one that is read-only until another has taken over. So the write is
/// retried until [`FINAL_WRITE_TIMEOUT`] after `start`.
async fn final_write(app: &Arc<App>, start: Instant) -> io::Result<()> {
    loop {
        let writer = app.clone();
        let write = move || {
            writer.flush()?;
            writer.flush_verdicts();
            Ok::<_, crate::storage::Error>(())
        };
        let cause = match tokio::task::spawn_blocking(write).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(cause)) => cause,
            Err(cause) => return Err(io::Error::other(cause)),
        };
        if !cause.is_transient() || start.elapsed() >= FINAL_WRITE_TIMEOUT {
            return Err(io::Error::other(cause));
        }
        sleep(FINAL_WRITE_PAUSE).await;
    }
}

async fn accept(
    listener: &TcpListener,
    workers: &Workers,
    context: &Arc<ServerState>,
    closing: &watch::Sender<()>,
    connections: &mut JoinSet<()>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let routes = Routes::new(context);
    let permits = Arc::new(Semaphore::new(context.options.max_connections));
    let (trouble, full) = (LogThrottle::new(), LogThrottle::new());
    let mut shutdown = pin!(shutdown);
    loop {
        let mut accepted = pin!(async {
            let (stream, peer) = next_connection(listener, &trouble).await;
            (connection_permit(&permits, context, &full).await, stream, peer)
        });
        let (permit, stream, peer) = loop {
            tokio::select! {
                () = &mut shutdown => return,
                accepted = &mut accepted => break accepted,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
            }
        };
        let (routes, context, closing) = (routes.clone(), context.clone(), closing.subscribe());
        let task = async move {
            // Registered again, with the reactor of the worker's runtime.
            if let Ok(stream) = TcpStream::from_std(stream) {
                connection::serve(stream, peer, routes, context, closing).await;
            }
            drop(permit);
        };
        connections.spawn_on(task, &workers.next());
    }
}

/// How long to wait for a place before more idle connections are closed.
const EVICTION_PAUSE: Duration = Duration::from_millis(50);

/// A place for a connection that was accepted. If all are taken, connections that have been idle for long make room.
async fn connection_permit(
    permits: &Arc<Semaphore>,
    context: &ServerState,
    full: &LogThrottle,
) -> Option<OwnedSemaphorePermit> {
    if let Ok(permit) = permits.clone().try_acquire_owned() {
        return Some(permit);
    }
    let max = context.options.max_connections;
    let reason = "as many connections as allowed are open; idle ones are closed for new ones";
    if let Some(suppressed) = full.failed(&reason) {
        tracing::warn!(max, suppressed, "{reason}");
    }
    loop {
        context.open_connections.evict_idle(context.options.evictable_after);
        // The semaphore is never closed; a permit is returned when its connection ends.
        if let Ok(permit) = timeout(EVICTION_PAUSE, permits.clone().acquire_owned()).await {
            return permit.ok();
        }
    }
}

/// The next connection. Errors of `accept` concern single connections, or descriptors running out; both are transient.
async fn next_connection(listener: &TcpListener, trouble: &LogThrottle) -> (std::net::TcpStream, SocketAddr) {
    loop {
        let accepted = listener.accept().await;
        match accepted.and_then(|(stream, peer)| Ok((stream.into_std()?, peer))) {
            Ok(connection) => {
                if trouble.succeeded() {
                    tracing::info!("connections are accepted again");
                }
                return connection;
            }
            Err(cause) => {
                if let Some(suppressed) = trouble.failed(&cause) {
                    tracing::warn!(%cause, suppressed, "cannot accept a connection; it waits, and is tried again");
                }
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn drain(context: &ServerState, connections: &mut JoinSet<()>) {
    let ended = async |connections: &mut JoinSet<()>| while connections.join_next().await.is_some() {};
    let why = tokio::select! {
        () = ended(connections) => return,
        () = sleep(context.options.drain) => "requests still run after the grace period and are cut",
        () = context.options.abort.cancelled() => "requests still run and are cut, as the grace period was ended",
    };
    tracing::warn!(open = connections.len(), "{why}");
    context.in_flight.abort_all(AbortReason::ShuttingDown);
    if timeout(ABORT_GRACE, ended(connections)).await.is_err() {
        connections.shutdown().await;
    }
}

/// Waits for the runs. Those whose responses were dropped are dropped by the runtime a little later, and only then have
/// they booked all their usage.
async fn await_runs(context: &ServerState) {
    context.runs.close();
    if timeout(ABORT_GRACE, context.runs.wait()).await.is_err() {
        tracing::error!(open = context.runs.len(), "requests do not end; what they used is not booked");
    }
}

/// Sets the rate limits that a response's headers describe.
pub(crate) fn with_rate(mut response: Response, rate: LimitState) -> Response {
    response.extensions_mut().insert(reply::Rate::from(rate));
    response
}
