//! The requests in flight, so that they can be aborted: when their key is revoked or expires, or when the server shuts
//! down.
//!
//! An abort reaches a request as a value on a channel of its own; the request then ends with a proper terminal frame,
//! and dropping its work stops the provider calls. Work that runs in a task of its own is aborted along with it: the
//! request may be waiting for a reader who takes nothing, and notice late. Each worker has a list of its own: every
//! request is added and removed, while hardly any is ever aborted.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use slab::Slab;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::clock::Time;
use crate::lock::Lock;
use crate::net::workers::PerWorker;

/// Why a request in flight is aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AbortReason {
    /// Its key was revoked.
    KeyRevoked,
    /// Its key has expired.
    KeyExpired,
    /// The server is shutting down.
    ShuttingDown,
}

struct Entry {
    key_id: Arc<str>,
    /// When its key expires.
    expires_at: Option<Time>,
    /// `None` once it was used. The entry stays until the request is over, so that its index is not reused before.
    abort: Option<oneshot::Sender<AbortReason>>,
    work: Option<AbortHandle>,
}

/// All requests in flight that can be aborted.
pub(crate) struct InFlight {
    lists: PerWorker<List>,
    /// No key of a request expires before this Unix time in milliseconds.
    next_expiry: AtomicI64,
}

/// The requests of one worker; clones share the list.
#[derive(Clone, Default)]
struct List(Arc<Mutex<Slab<Entry>>>);

/// The registration of a request; removes it from the list when dropped.
pub(crate) struct Registration {
    index: usize,
    list: List,
    abort: oneshot::Receiver<AbortReason>,
}

impl Default for InFlight {
    fn default() -> Self {
        Self { lists: PerWorker::default(), next_expiry: AtomicI64::new(i64::MAX) }
    }
}

impl InFlight {
    /// Registers a request of the key `key_id`, which expires at this time.
    pub(crate) fn register(&self, key_id: &Arc<str>, expires_at: Option<Time>) -> Registration {
        let (sender, receiver) = oneshot::channel();
        let list = self.lists.here().clone();
        let entry = Entry { key_id: key_id.clone(), expires_at, abort: Some(sender), work: None };
        let index = list.0.locked().insert(entry);
        self.expect_expiry(expires_at);
        Registration { index, list, abort: receiver }
    }

    /// Changes when a key expires.
    pub(crate) fn set_expiry(&self, key_id: &str, expires_at: Option<Time>) {
        for list in self.lists.all() {
            for (_, entry) in list.0.locked().iter_mut().filter(|(_, entry)| *entry.key_id == *key_id) {
                entry.expires_at = expires_at;
            }
        }
        self.expect_expiry(expires_at);
    }

    /// Aborts the requests of keys that have expired.
    pub(crate) fn abort_expired(&self, now: Time) {
        if self.next_expiry.load(Ordering::Relaxed) > now.unix_ms() {
            return;
        }
        // Before the lists are read: what is registered meanwhile sets it anew.
        self.next_expiry.store(i64::MAX, Ordering::Relaxed);
        self.abort_where(AbortReason::KeyExpired, |entry| {
            let is_over = entry.expires_at.is_some_and(|at| at <= now);
            if !is_over {
                self.expect_expiry(entry.expires_at);
            }
            is_over
        });
    }

    fn expect_expiry(&self, expires_at: Option<Time>) {
        if let Some(at) = expires_at {
            self.next_expiry.fetch_min(at.unix_ms(), Ordering::Relaxed);
        }
    }

    /// The keys of all requests in flight that were not aborted.
    pub(crate) fn keys(&self) -> HashSet<Arc<str>> {
        let mut keys = HashSet::new();
        for list in self.lists.all() {
            let entries = list.0.locked();
            let running = entries.iter().filter(|(_, entry)| entry.abort.is_some());
            keys.extend(running.map(|(_, entry)| entry.key_id.clone()));
        }
        keys
    }

    /// Aborts the requests of a revoked key.
    pub(crate) fn abort_key(&self, key_id: &str) {
        self.abort_where(AbortReason::KeyRevoked, |entry| *entry.key_id == *key_id);
    }

    /// Aborts all requests.
    pub(crate) fn abort_all(&self, reason: AbortReason) {
        self.abort_where(reason, |_| true);
    }

    fn abort_where(&self, reason: AbortReason, matches: impl Fn(&Entry) -> bool) {
        for list in self.lists.all() {
            for (_, entry) in list.0.locked().iter_mut().filter(|(_, entry)| matches(entry)) {
                if let Some(abort) = entry.abort.take() {
                    // A request that has just ended no longer listens; then there is nothing to abort.
                    let _ = abort.send(reason);
                    if let Some(work) = entry.work.take() {
                        work.abort();
                    }
                }
            }
        }
    }
}

impl Registration {
    /// Sets the task that is aborted along with the request.
    pub(crate) fn set_work(&self, work: AbortHandle) {
        match self.list.0.locked().get_mut(self.index) {
            Some(entry) if entry.abort.is_some() => entry.work = Some(work),
            _ => work.abort(),
        }
    }

    /// Waits until the request is aborted; for ever if it never is.
    pub(crate) async fn aborted(&mut self) -> AbortReason {
        match (&mut self.abort).await {
            Ok(reason) => reason,
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Otherwise dropping the sender would wake the task that drops this.
        self.abort.close();
        // Dropped after the lock is released.
        let _entry = self.list.0.locked().try_remove(self.index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_abort_reaches_only_the_requests_of_its_key() {
        let in_flight = InFlight::default();
        let mut mine = in_flight.register(&"key_1".into(), None);
        let other = in_flight.register(&"key_2".into(), None);
        in_flight.abort_key("key_1");
        assert_eq!(mine.aborted().await, AbortReason::KeyRevoked);
        assert_eq!(in_flight.keys(), HashSet::from(["key_2".into()]));
        // The aborted request keeps its index until it is dropped: no other request takes it.
        let third = in_flight.register(&"key_3".into(), None);
        drop((mine, other));
        assert_eq!(in_flight.keys(), HashSet::from(["key_3".into()]));
        drop(third);
        assert!(in_flight.keys().is_empty());
    }

    #[tokio::test]
    async fn requests_end_with_the_life_of_their_key() {
        let at = Time::from_unix_ms;
        let in_flight = InFlight::default();
        let mut first = in_flight.register(&"key_1".into(), Some(at(1000)));
        let mut second = in_flight.register(&"key_2".into(), Some(at(2000)));
        let _for_ever = in_flight.register(&"key_3".into(), None);
        in_flight.abort_expired(at(999));
        assert_eq!(in_flight.keys().len(), 3);
        in_flight.abort_expired(at(1000));
        assert_eq!(first.aborted().await, AbortReason::KeyExpired);
        // A rotation or an operator may bring the end forward.
        in_flight.set_expiry("key_2", Some(at(1500)));
        in_flight.abort_expired(at(1499));
        assert_eq!(in_flight.keys().len(), 2);
        in_flight.abort_expired(at(1500));
        assert_eq!(second.aborted().await, AbortReason::KeyExpired);
        assert_eq!(in_flight.keys(), HashSet::from(["key_3".into()]));
    }

    #[tokio::test]
    async fn work_is_aborted_whether_it_is_set_before_the_abort_or_after() {
        let in_flight = InFlight::default();
        let request = in_flight.register(&"key_1".into(), None);
        let early = tokio::spawn(std::future::pending::<()>());
        request.set_work(early.abort_handle());
        in_flight.abort_key("key_2");
        assert!(!early.is_finished());
        in_flight.abort_key("key_1");
        assert!(early.await.unwrap_err().is_cancelled());
        let late = tokio::spawn(std::future::pending::<()>());
        request.set_work(late.abort_handle());
        assert!(late.await.unwrap_err().is_cancelled());
    }
}
