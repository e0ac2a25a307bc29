//! From a listener to the end: accepting connections, draining them, the last write.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::background::tasks;
use super::connection::{self, Terms};
use super::in_flight::AbortReason;
use super::routes::Routes;
use super::state::{Options, ServerState};
use crate::app::AppState;
use crate::log_throttle::LogThrottle;
use crate::net::workers::Workers;

/// How long aborted requests have to send their last frame.
const ABORT_GRACE: Duration = Duration::from_secs(2);

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
    app: Arc<AppState>,
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
        tracing::error!(lost, "usage could not be written and is lost");
    }
    flushed
}

/// Writes usage and counters, and then the verdict cache. A database that is down may be back in a moment, as many are
/// restarted together with their clients; so may one that is read-only until another has taken over. So the write is
/// retried until [`FINAL_WRITE_TIMEOUT`] after `start`.
async fn final_write(app: &Arc<AppState>, start: Instant) -> io::Result<()> {
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

pub(super) async fn accept(
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
        let terms = Terms { peer, routes, context, closing };
        let task = async move {
            // Registered again, with the reactor of the worker's runtime.
            if let Ok(stream) = TcpStream::from_std(stream) {
                connection::serve(stream, &terms).await;
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
    let reason = "the limit of open connections is reached; idle ones are closed for new ones";
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
                    tracing::warn!(%cause, suppressed, "cannot accept a connection; trying again");
                }
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

pub(super) async fn drain(context: &ServerState, connections: &mut JoinSet<()>) {
    let ended = async |connections: &mut JoinSet<()>| while connections.join_next().await.is_some() {};
    let why = tokio::select! {
        () = ended(connections) => return,
        () = sleep(context.options.drain) => "requests are still running after the grace period and are cut off",
        () = context.options.abort.cancelled() => "requests are still running and are cut off, because the \
            grace period was ended",
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
        tracing::error!(open = context.runs.len(), "requests do not end; their usage is not recorded");
    }
}
