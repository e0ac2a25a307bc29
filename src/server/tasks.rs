//! What the server does beside requests: writing counters and usage out, and noticing revoked keys.
//!
//! Both run on one thread of the blocking pool each turn, so that no request waits for the disk.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::task::AbortOnDropHandle;

use super::Context;
use crate::storage::Error;

/// Counters and usage are at most this old on disk (twice this after a slow write): a second may be lost to `kill -9`.
const FLUSH: Duration = Duration::from_millis(400);
/// How soon a revocation by another process ends running streams; the contract allows a second.
const WATCH: Duration = Duration::from_millis(200);

/// The background tasks; they end when this is dropped.
pub(crate) struct Background {
    _flush: AbortOnDropHandle<()>,
    _watch: AbortOnDropHandle<()>,
}

/// Starts them.
pub(crate) fn start(context: &Arc<Context>) -> Background {
    Background {
        _flush: AbortOnDropHandle::new(tokio::spawn(flush(context.clone()))),
        _watch: AbortOnDropHandle::new(tokio::spawn(watch(context.clone()))),
    }
}

async fn flush(context: Arc<Context>) {
    let mut turns = interval(FLUSH);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        turns.tick().await;
        let app = context.app.clone();
        let outcome = tokio::task::spawn_blocking(move || app.flush()).await;
        if let Ok(Err(cause)) = outcome {
            tracing::error!(%cause, "usage and counters cannot be written; they are kept and tried again");
        }
    }
}

async fn watch(context: Arc<Context>) {
    let mut turns = interval(WATCH);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = None;
    loop {
        turns.tick().await;
        let context = context.clone();
        let turn = tokio::task::spawn_blocking(move || cut_revoked(&context, seen)).await;
        match turn {
            Ok(Ok(version)) => seen = Some(version),
            Ok(Err(cause)) => tracing::error!(%cause, "cannot tell whether keys were revoked"),
            Err(cause) => tracing::error!(%cause, "cannot tell whether keys were revoked"),
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
    for key_id in context.streams.keys() {
        let usable = match store.key(&key_id) {
            Ok(key) => key.revoked_at.is_none(),
            Err(Error::NotFound) => false,
            Err(cause) => return Err(cause),
        };
        if !usable {
            context.streams.cut_key(&key_id);
        }
    }
    Ok(version)
}
