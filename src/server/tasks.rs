//! What the server does beside requests: writing counters and usage out, noticing revoked keys, and deleting attempts
//! for their age.
//!
//! Each runs on one thread of the blocking pool each turn, so that no request waits for the disk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::task::AbortOnDropHandle;

use super::Context;
use super::steady::Steady;
use crate::clock::Time;
use crate::log_throttle::LogThrottle;
use crate::storage::Error;

/// Counters and usage are at most this old on disk (twice this after a slow write): a second may be lost to `kill -9`.
const FLUSH: Duration = Duration::from_millis(400);
/// How soon a revocation by another process ends running streams; the contract allows a second.
const WATCH: Duration = Duration::from_millis(200);

/// How soon attempts go that have become too old.
const FORGET: Duration = Duration::from_secs(1);
/// So many at once: a few milliseconds in which the ledger's writer waits.
const FORGET_AT_ONCE: usize = 500;
/// Between two batches, so that a long backlog leaves the writer and the disk to others most of the time.
const FORGET_PAUSE: Duration = Duration::from_millis(20);

/// The background tasks.
pub(crate) struct Background {
    ending: watch::Sender<()>,
    flush: JoinHandle<()>,
    _watch: AbortOnDropHandle<()>,
    _forget: AbortOnDropHandle<()>,
}

/// Starts them.
pub(crate) fn start(context: &Arc<Context>) -> Background {
    let (ending, ended) = watch::channel(());
    Background {
        ending,
        flush: tokio::spawn(flush(context.clone(), ended)),
        _watch: AbortOnDropHandle::new(tokio::spawn(watch_keys(context.clone()))),
        _forget: AbortOnDropHandle::new(tokio::spawn(forget(context.clone()))),
    }
}

impl Background {
    /// Ends them, a write that is under way not before it is done: the rows in it are in no queue any more.
    pub(crate) async fn end(self) {
        drop(self.ending);
        // A flush that panicked has left its rows to nobody.
        let _ = self.flush.await;
    }
}

async fn flush(context: Arc<Context>, mut ended: watch::Receiver<()>) {
    let mut turns = interval(FLUSH);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let trouble = LogThrottle::new();
    loop {
        let is_turn = tokio::select! {
            _ = turns.tick() => true,
            () = context.app.ledger.batch_ready() => false,
            _ = ended.changed() => return,
        };
        let app = context.app.clone();
        let write = move || if is_turn { app.flush() } else { app.ledger.flush() };
        let outcome = tokio::task::spawn_blocking(write).await;
        match outcome {
            Ok(Err(cause)) => {
                if let Some(untold) = trouble.failed(&cause) {
                    let kept = context.app.ledger.queued_rows();
                    tracing::error!(%cause, untold, kept, "usage and counters cannot be written; they are kept and tried again");
                }
            }
            // Of rows alone it does not tell that counters are written too.
            Ok(Ok(())) if is_turn && trouble.succeeded() => {
                tracing::info!("usage and counters are written again");
            }
            _ => {}
        }
    }
}

async fn watch_keys(context: Arc<Context>) {
    let mut turns = interval(WATCH);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = None;
    let trouble = LogThrottle::new();
    let tell = |cause: &dyn std::fmt::Display| {
        if let Some(untold) = trouble.failed(&cause) {
            tracing::error!(%cause, untold, "cannot tell whether keys were revoked");
        }
    };
    loop {
        turns.tick().await;
        let context = context.clone();
        let turn = tokio::task::spawn_blocking(move || cut_revoked(&context, seen)).await;
        match turn {
            Ok(Ok(version)) => {
                seen = Some(version);
                if trouble.succeeded() {
                    tracing::info!("revoked keys are noticed again");
                }
            }
            Ok(Err(cause)) => tell(&cause),
            Err(cause) => tell(&cause),
        }
    }
}

/// Ends the streams of revoked keys, if anything has changed since the version `seen`.
fn cut_revoked(context: &Context, seen: Option<i64>) -> Result<i64, Error> {
    let store = &context.app.store;
    let version = store.version()?;
    if seen == Some(version) {
        return Ok(version);
    }
    let keys = context.in_flight.keys();
    let ids: Vec<&str> = keys.iter().map(|id| &**id).collect();
    // At once: of a database over the network one after the other would be told after many ways there and back.
    for id in store.ended_keys(&ids)? {
        context.in_flight.cut_key(id);
    }
    Ok(version)
}

/// Deletes attempts that are older than they may be, in small batches, by a clock that can be believed.
async fn forget(context: Arc<Context>) {
    let mut turns = interval(FORGET);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (trouble, mut steady) = (LogThrottle::new(), Steady::default());
    loop {
        turns.tick().await;
        loop {
            let now = context.app.clock.now();
            let span = steady.span(now, Instant::now());
            let retention = context.app.configured().usage_retention;
            let Some(age) = due(context.options.settled, span, retention) else { break };
            if forget_some(&context, now.minus(age), &trouble).await < FORGET_AT_ONCE {
                break;
            }
            sleep(FORGET_PAUSE).await;
        }
    }
}

/// How old attempts may become that are deleted now, by a clock that has gone evenly for `span`; `None` if none are:
/// what a clock that is wrong takes for old would be gone for good.
fn due(settled: Duration, span: Duration, retention: Option<Duration>) -> Option<Duration> {
    retention.filter(|_| span >= settled)
}

/// Deletes a batch of those before this moment; how many.
async fn forget_some(context: &Arc<Context>, before: Time, trouble: &LogThrottle) -> usize {
    let app = context.app.clone();
    let deleted =
        tokio::task::spawn_blocking(move || app.store.forget_attempts(before, FORGET_AT_ONCE)).await;
    let cause = match deleted {
        Ok(Ok(count)) => {
            if trouble.succeeded() {
                tracing::info!("attempts that are too old are deleted again");
            }
            return count;
        }
        Ok(Err(cause)) => cause.to_string(),
        Err(cause) => cause.to_string(),
    };
    if let Some(untold) = trouble.failed(&cause) {
        tracing::error!(cause, untold, "attempts that are too old cannot be deleted");
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_deleted_by_a_clock_before_it_has_gone_evenly_for_long_enough() {
        let (hour, day) = (Duration::from_hours(1), Duration::from_hours(24));
        let almost = hour.saturating_sub(Duration::from_millis(1));
        assert_eq!(
            [Duration::ZERO, almost, hour, day].map(|span| due(hour, span, Some(day))),
            [None, None, Some(day), Some(day)]
        );
        assert_eq!(due(hour, day, None), None, "everything is kept");
        assert_eq!(due(Duration::ZERO, Duration::ZERO, Some(day)), Some(day));
    }
}
