//! Background tasks: writing counters and usage to storage, noticing revoked keys, deleting old attempts, tidying
//! the verdict cache, and booking the calls of servers that died.
//!
//! Each of their steps runs on a thread of the blocking pool, so that no request waits for the disk.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::clock_stability::ClockStability;
use crate::log_throttle::LogThrottle;
use crate::server::ServerState;
use crate::storage::{Error, KeyLife};

/// How often counters and usage are written. After a slow write they may be twice as old: a second may be lost to
/// `kill -9`.
const FLUSH_INTERVAL: Duration = Duration::from_millis(400);
/// How often it is looked for calls of servers that died: a small read.
const ADOPT_INTERVAL: Duration = Duration::from_secs(1);
/// How soon a revocation by another process, or the expiry of a key, ends running streams; the contract allows a
/// second.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);
/// How often the verdict cache is tidied: a few small reads, if there is nothing to delete.
const TIDY_INTERVAL: Duration = Duration::from_mins(1);

/// How often attempts that have become too old are deleted.
const PRUNE_INTERVAL: Duration = Duration::from_secs(1);
/// Attempts per batch: a few milliseconds during which the ledger's writer waits.
const PRUNE_BATCH: usize = 500;
/// The pause between two batches, so that a long backlog leaves the writer and the disk to others most of the time.
const PRUNE_PAUSE: Duration = Duration::from_millis(20);

/// The background tasks.
pub(crate) struct Background {
    shutdown: watch::Sender<()>,
    flush: JoinHandle<()>,
    /// Delivers traces.
    traces: Option<JoinHandle<()>>,
    closing: CancellationToken,
    _watch: AbortOnDropHandle<()>,
    _prune: AbortOnDropHandle<()>,
    _adopt: AbortOnDropHandle<()>,
    _verdicts: AbortOnDropHandle<()>,
}

/// Starts them.
pub(crate) fn start(context: &Arc<ServerState>) -> Background {
    let (shutdown, on_shutdown) = watch::channel(());
    let (closing, traces) = (CancellationToken::new(), context.app.traces.clone());
    Background {
        shutdown,
        traces: traces.map(|traces| tokio::spawn(traces.deliver(closing.clone()))),
        closing,
        flush: tokio::spawn(flush(context.clone(), on_shutdown)),
        _watch: AbortOnDropHandle::new(tokio::spawn(watch_keys(context.clone()))),
        _prune: AbortOnDropHandle::new(tokio::spawn(prune(context.clone()))),
        _adopt: AbortOnDropHandle::new(tokio::spawn(adopt(context.clone()))),
        _verdicts: AbortOnDropHandle::new(tokio::spawn(keep_verdicts(context.clone()))),
    }
}

impl Background {
    /// Ends them, after waiting for a write in progress, whose rows are in no queue any more, and for the last traces,
    /// which take no longer than a few seconds.
    pub(crate) async fn end(self) {
        drop(self.shutdown);
        self.closing.cancel();
        // The rows of a flush that panicked are lost.
        let _ = self.flush.await;
        if let Some(traces) = self.traces {
            let _ = traces.await;
        }
    }
}

async fn flush(context: Arc<ServerState>, mut on_shutdown: watch::Receiver<()>) {
    let mut ticks = ticks(FLUSH_INTERVAL);
    let trouble = LogThrottle::new();
    loop {
        let is_tick = tokio::select! {
            _ = ticks.tick() => true,
            () = context.app.ledger.batch_ready() => false,
            _ = on_shutdown.changed() => return,
        };
        let app = context.app.clone();
        let write = move || if is_tick { app.flush() } else { app.ledger.flush() };
        let outcome = tokio::task::spawn_blocking(write).await;
        match outcome {
            Ok(Err(cause)) => {
                if let Some(suppressed) = trouble.failed(&cause) {
                    let kept = context.app.ledger.queued_rows();
                    tracing::error!(%cause, suppressed, kept, "usage and counters cannot be written; they are \
                        kept, and writing is tried again");
                }
            }
            // A write of rows alone does not show that counters can be written too.
            Ok(Ok(())) if is_tick && trouble.succeeded() => {
                tracing::info!("usage and counters are written again");
            }
            _ => {}
        }
    }
}

/// Ticks with this pause between them, however long the work of one takes.
fn ticks(pause: Duration) -> Interval {
    let mut ticks = interval(pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// A step that is done again and again, with what is logged when it fails and when it works again.
struct Step {
    trouble: LogThrottle,
    fails: &'static str,
    works_again: &'static str,
}

impl Step {
    const fn new(fails: &'static str, works_again: &'static str) -> Self {
        Self { trouble: LogThrottle::new(), fails, works_again }
    }

    /// Does it on a thread of the blocking pool. `None` if it fails, which is logged.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Option<T> {
        match tokio::task::spawn_blocking(work).await {
            Ok(Ok(done)) => {
                if self.trouble.succeeded() {
                    tracing::info!("{}", self.works_again);
                }
                return Some(done);
            }
            Ok(Err(cause)) => self.failed(&cause),
            Err(cause) => self.failed(&cause),
        }
        None
    }

    fn failed(&self, cause: &impl Display) {
        if let Some(suppressed) = self.trouble.failed(cause) {
            tracing::error!(%cause, suppressed, "{}", self.fails);
        }
    }
}

async fn watch_keys(context: Arc<ServerState>) {
    let mut ticks = ticks(WATCH_INTERVAL);
    let step = Step::new("cannot check for revoked keys", "checking for revoked keys works again");
    let mut seen = None;
    loop {
        ticks.tick().await;
        context.in_flight.abort_expired(context.app.clock.now());
        let context = context.clone();
        seen = step.run(move || abort_revoked(&context, seen)).await.or(seen);
    }
}

/// Aborts the requests of revoked keys, and learns when others expire, if anything has changed since the version
/// `seen`.
fn abort_revoked(context: &ServerState, seen: Option<i64>) -> Result<i64, Error> {
    let store = &context.app.store;
    let version = store.version()?;
    if seen == Some(version) {
        return Ok(version);
    }
    let keys = context.in_flight.keys();
    let ids: Vec<&str> = keys.iter().map(|id| &**id).collect();
    // All at once: over the network, a query per key would take as many round trips.
    for (id, life) in ids.iter().zip(store.key_lives(&ids)?) {
        match life {
            KeyLife::Ended => context.in_flight.abort_key(id),
            KeyLife::Until(expires_at) => context.in_flight.set_expiry(id, expires_at),
        }
    }
    Ok(version)
}

/// Deletes attempts beyond their retention, in small batches, as long as the clock can be trusted.
async fn prune(context: Arc<ServerState>) {
    let mut ticks = ticks(PRUNE_INTERVAL);
    let step = Step::new("old attempts cannot be deleted", "old attempts are deleted again");
    let mut clock = ClockStability::default();
    loop {
        ticks.tick().await;
        loop {
            let now = context.app.clock.now();
            let stable_for = clock.observe(now, Instant::now());
            let retention = context.app.configured().usage_retention;
            let Some(age) = max_age(context.options.clock_stable_for, stable_for, retention) else { break };
            let (app, before) = (context.app.clone(), now.minus(age));
            let deleted = step.run(move || app.store.forget_attempts(before, PRUNE_BATCH)).await;
            if deleted.is_none_or(|count| count < PRUNE_BATCH) {
                break;
            }
            sleep(PRUNE_PAUSE).await;
        }
    }
}

/// The age from which on attempts are deleted, given that the clock has been stable for `stable_for`; `None` if none
/// are deleted: what a wrong clock takes for old would be gone for good.
fn max_age(required: Duration, stable_for: Duration, retention: Option<Duration>) -> Option<Duration> {
    retention.filter(|_| stable_for >= required)
}

/// Writes what verifications found into the verdict cache, and deletes what it need not keep any longer.
async fn keep_verdicts(context: Arc<ServerState>) {
    let mut ticks = ticks(FLUSH_INTERVAL);
    let step = Step::new("the verdict cache cannot be cleaned up", "the verdict cache is cleaned up again");
    let mut tidied: Option<Instant> = None;
    loop {
        ticks.tick().await;
        let app = context.app.clone();
        if tidied.is_none_or(|at| at.elapsed() >= TIDY_INTERVAL) {
            let work = move || {
                app.flush_verdicts();
                app.tidy_verdicts()
            };
            step.run(work).await;
            tidied = Some(Instant::now());
        } else if app.verdicts.has_waiting()
            && let Err(cause) = tokio::task::spawn_blocking(move || app.flush_verdicts()).await
        {
            step.failed(&cause);
        }
    }
}

/// Books the calls of servers that died, beginning with those that died before this one began.
async fn adopt(context: Arc<ServerState>) {
    let mut ticks = ticks(ADOPT_INTERVAL);
    let fails = "the calls of crashed servers cannot be recorded";
    let step = Step::new(fails, "the calls of crashed servers are recorded again");
    loop {
        ticks.tick().await;
        let app = context.app.clone();
        let booked = step.run(move || app.ledger.adopt(app.clock.now())).await;
        if let Some(booked) = booked.filter(|booked| *booked > 0) {
            tracing::warn!(
                booked,
                "calls were in progress when a server crashed; they are recorded as interrupted"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_deleted_before_the_clock_has_been_stable_for_long_enough() {
        let (hour, day) = (Duration::from_hours(1), Duration::from_hours(24));
        let almost = hour.saturating_sub(Duration::from_millis(1));
        assert_eq!(
            [Duration::ZERO, almost, hour, day].map(|stable_for| max_age(hour, stable_for, Some(day))),
            [None, None, Some(day), Some(day)]
        );
        assert_eq!(max_age(hour, day, None), None, "everything is kept");
        assert_eq!(max_age(Duration::ZERO, Duration::ZERO, Some(day)), Some(day));
    }
}
