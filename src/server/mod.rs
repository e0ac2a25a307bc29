//! The HTTP server: one accept loop, warp's routes behind it, everything that is about HTTP and nothing else.
//!
//! ```text
//! accept ─ TLS? ─ connection ─ envelope ─ route ─ gate ─ body ─ domain ─ reply
//!                 (timeouts)   (request id, headers of every answer, log, panics)
//! ```
//!
//! [`serve`] is the seam: production and every test go through it with a listener that is bound already. What must
//! hold: a caller that is slow, silent or gone costs a bounded amount of time and memory; every answer carries its
//! request id and limits; after `shutdown`, requests under way get a grace period, then a proper end, and nothing
//! that was counted is lost.

mod chat;
mod connection;
mod console;
mod cookie;
mod dashboard;
mod envelope;
mod framing;
mod gate;
mod header_names;
mod health;
mod in_flight;
mod incoming;
mod listener;
mod local;
mod metrics;
mod models;
mod openapi;
mod params;
mod parked;
mod poll_on_wake;
mod record;
mod refusal;
mod reply;
pub mod requests;
mod routes;
mod shown;
mod site;
mod socket;
mod stall;
mod steady;
mod tasks;
mod thread_pool;
mod tls;
mod turns;
mod unique;
mod unread;
mod vanished;
mod verify;

pub use listener::listen;
pub use tls::{Certificate, Tls, TlsError};

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use futures_util::Stream;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::task::TaskTracker;
use warp::reply::Response;

use crate::app::App;
use crate::limits::LimitState;
use crate::log_throttle::LogThrottle;
use crate::workers::{self, Workers};
use in_flight::{Cut, InFlight};
use incoming::{BodyLimits, Incoming};
use reply::ApiError;
use routes::Routes;
use thread_pool::ThreadPool;

/// How a server treats its connections. The defaults are for production.
#[derive(Clone)]
pub struct Options {
    /// Speaks TLS when set.
    pub tls: Option<Tls>,
    /// The most connections at once; further ones wait in the kernel's queue.
    pub max_connections: usize,
    /// For a request's head to arrive, also the longest a kept-alive connection may idle.
    pub header_timeout: Duration,
    /// Between two pieces of a request's body.
    pub body_idle: Duration,
    /// For a whole body.
    pub body_total: Duration,
    /// For the peer to take a piece of an answer; one that does not even acknowledge has twice as long.
    pub write_timeout: Duration,
    /// For requests under way to end after shutdown; then they are cut.
    pub drain: Duration,
    /// Without a frame, a stream gets a comment this often.
    pub keep_alive: Duration,
    /// How long the clock has to have gone evenly until attempts are deleted for their age.
    pub settled: Duration,
    /// Threads that connections are spread over; with none, all stay on the runtime that [`serve`] runs on.
    pub workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tls: None,
            max_connections: 10_000,
            header_timeout: Duration::from_secs(30),
            body_idle: Duration::from_secs(15),
            body_total: Duration::from_mins(1),
            write_timeout: Duration::from_secs(30),
            drain: Duration::from_secs(20),
            keep_alive: Duration::from_secs(15),
            settled: Duration::from_hours(1),
            workers: workers::cores(),
        }
    }
}

/// For cut requests to send their last frame, at the very end.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Threads that read from storage for the console: a page takes less than a millisecond, and waits for no writer.
const READERS: usize = 2;
/// How long the console waits for its turn at storage; a write then waits as long for other processes.
const PATIENCE: Duration = Duration::from_secs(10);

/// What all requests of a server share.
pub(crate) struct Context {
    pub(crate) app: Arc<App>,
    pub(crate) in_flight: InFlight,
    pub(crate) options: Options,
    /// The verifications and completions under way; each books what it has used when it ends or is dropped.
    pub(crate) runs: TaskTracker,
    /// Makes reports, one at a time: their memory grows with the usage they tell of.
    pub(crate) reports: ThreadPool,
    /// Read from storage for the console.
    pub(crate) readers: ThreadPool,
    /// Writes to storage for the console. There is one writer to a database: more would wait for each other.
    pub(crate) writer: ThreadPool,
    /// The description of the API, once somebody has asked for it.
    openapi: openapi::Description,
    draining: AtomicBool,
}

impl Context {
    fn new(app: Arc<App>, options: Options) -> Self {
        Self {
            app,
            in_flight: InFlight::default(),
            options,
            runs: TaskTracker::new(),
            reports: ThreadPool::new("reports", 1, Duration::MAX),
            readers: ThreadPool::new("readers", READERS, PATIENCE),
            writer: ThreadPool::new("writer", 1, PATIENCE),
            openapi: openapi::Description::default(),
            draining: AtomicBool::new(false),
        }
    }

    /// Reads a request's JSON body within this server's limits; new work is refused once the server drains.
    pub(crate) async fn read_json<B: Buf, E>(
        &self,
        incoming: &Incoming,
        body: impl Stream<Item = Result<B, E>>,
    ) -> Result<Bytes, ApiError> {
        incoming::json_body(&incoming.headers, body, self.body_limits(incoming)?).await
    }

    /// The same of a body that may be left out; then it is empty.
    pub(crate) async fn read_optional_json<B: Buf>(
        &self,
        incoming: &Incoming,
        body: impl Stream<Item = Result<B, warp::Error>>,
    ) -> Result<Bytes, ApiError> {
        incoming::optional_json_body(&incoming.headers, body, self.body_limits(incoming)?).await
    }

    fn body_limits(&self, incoming: &Incoming) -> Result<BodyLimits, ApiError> {
        if self.is_draining() {
            return Err(ApiError::shutting_down());
        }
        Ok(BodyLimits {
            bytes: incoming.configured.max_body_bytes,
            idle: self.options.body_idle,
            total: self.options.body_total,
        })
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

/// How long what is left is tried to be written at the end, where the database cannot take it now.
const LAST_WRITE: Duration = Duration::from_secs(10);

/// Between two tries of that.
const LAST_WRITE_PAUSE: Duration = Duration::from_millis(250);

/// Serves `app` on `listener` until `shutdown` resolves, then drains.
///
/// # Errors
/// If the threads of its workers cannot be started, or the state of limits and usage cannot be written at the end.
pub async fn serve(
    listener: TcpListener,
    app: Arc<App>,
    options: Options,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let workers = Workers::start(options.workers)?;
    let context = Arc::new(Context::new(app, options));
    let background = tasks::start(&context);
    // Nobody waits for it: a store of limits that cannot be reached stops no server.
    let greeted = context.app.clone();
    tokio::spawn(async move { greeted.limiter.connect().await });
    let (closing, _) = watch::channel(());
    let mut connections = JoinSet::new();

    accept(&listener, &workers, &context, &closing, &mut connections, shutdown).await;

    drop(listener);
    context.draining.store(true, Ordering::Relaxed);
    closing.send_replace(());
    drain(&context, &mut connections).await;
    await_runs(&context).await;
    let begun = Instant::now();
    background.end().await;

    let flushed = write_the_rest(&context.app, begun).await;
    let lost = context.app.ledger.queued_rows();
    if lost > 0 {
        tracing::error!(lost, "what was used could not be written, and is lost with this server");
    }
    flushed
}

/// Writes what has been used and counted. A database that is gone may be back in a moment, as many are restarted with those
/// who use them, and so may one that can only be read, until another one has taken its place: it is tried again, until
/// [`LAST_WRITE`] after `begun`.
async fn write_the_rest(app: &Arc<App>, begun: Instant) -> io::Result<()> {
    loop {
        let writer = app.clone();
        let cause = match tokio::task::spawn_blocking(move || writer.flush()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(cause)) => cause,
            Err(cause) => return Err(io::Error::other(cause)),
        };
        if !cause.is_transient() || begun.elapsed() >= LAST_WRITE {
            return Err(io::Error::other(cause));
        }
        sleep(LAST_WRITE_PAUSE).await;
    }
}

async fn accept(
    listener: &TcpListener,
    workers: &Workers,
    context: &Arc<Context>,
    closing: &watch::Sender<()>,
    connections: &mut JoinSet<()>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let routes = Routes::new(context);
    let places = Arc::new(Semaphore::new(context.options.max_connections));
    let trouble = LogThrottle::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let arrival = async {
            // The semaphore, Tokio's, is never closed; a place is given back when its connection ends.
            let place = places.clone().acquire_owned().await.ok();
            (place, next_connection(listener, &trouble).await)
        };
        tokio::select! {
            () = &mut shutdown => return,
            (place, (stream, peer)) = arrival => {
                let (routes, context, closing) = (routes.clone(), context.clone(), closing.subscribe());
                let task = async move {
                    // Registered anew, with the worker's own events. The place is given back at the end.
                    if let Ok(stream) = TcpStream::from_std(stream) {
                        connection::serve(stream, peer, routes, context, closing).await;
                    }
                    drop(place);
                };
                connections.spawn_on(task, &workers.next());
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

/// The next connection. Errors of `accept` are those of single connections, or of descriptors running out; both pass.
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
                if let Some(untold) = trouble.failed(&cause) {
                    tracing::warn!(%cause, untold, "cannot accept a connection; it waits, and is tried again");
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn drain(context: &Context, connections: &mut JoinSet<()>) {
    let ended = async |connections: &mut JoinSet<()>| while connections.join_next().await.is_some() {};
    if tokio::time::timeout(context.options.drain, ended(connections)).await.is_ok() {
        return;
    }
    tracing::warn!(open = connections.len(), "requests still run after the grace period and are cut");
    context.in_flight.cut_all(Cut::ShuttingDown);
    if tokio::time::timeout(LAST_WORDS, ended(connections)).await.is_err() {
        connections.shutdown().await;
    }
}

/// Runs whose answers are gone are dropped by the runtime a little later, and only then have they booked everything.
async fn await_runs(context: &Context) {
    context.runs.close();
    if tokio::time::timeout(LAST_WORDS, context.runs.wait()).await.is_err() {
        tracing::error!(open = context.runs.len(), "requests do not end; what they used is not booked");
    }
}

/// An answer with the limits that its headers describe.
pub(crate) fn rated(mut response: Response, rate: LimitState) -> Response {
    response.extensions_mut().insert(reply::Rate::from(rate));
    response
}
