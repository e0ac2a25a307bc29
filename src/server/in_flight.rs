//! The requests under way, so that they can be cut: when their key is revoked, when the server ends.
//!
//! A cut reaches the request as a value on a channel of its own; the request then ends with a proper terminal
//! frame, and dropping its work stops the provider calls. Work that is a task of its own is stopped with the cut: the
//! request may be waiting for a reader who takes nothing, and hear of it late. Each worker lists its own: every request comes and goes here,
//! and hardly ever is one cut.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use slab::Slab;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::workers::PerWorker;

/// Why a request under way is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Its key was revoked.
    KeyRevoked,
    /// The server is about to end.
    ShuttingDown,
}

struct Open {
    key_id: Arc<str>,
    /// `None` once it was used. The entry stays until the request is over, so that no other one takes its place before.
    cut: Option<oneshot::Sender<Cut>>,
    work: Option<AbortHandle>,
}

/// All requests under way that can be cut.
#[derive(Default)]
pub(crate) struct InFlight(PerWorker<List>);

/// Those of one worker. Clones are one list.
#[derive(Clone, Default)]
struct List(Arc<Mutex<Slab<Open>>>);

/// A request's entry; leaves the list when dropped.
pub(crate) struct Registration {
    place: usize,
    list: List,
    cut: oneshot::Receiver<Cut>,
}

impl InFlight {
    /// Lists a request of the key `key_id`.
    pub(crate) fn register(&self, key_id: &Arc<str>) -> Registration {
        let (sender, receiver) = oneshot::channel();
        let list = self.0.here().clone();
        let place = list.lock().insert(Open { key_id: key_id.clone(), cut: Some(sender), work: None });
        Registration { place, list, cut: receiver }
    }

    /// The keys that requests are under way for.
    pub(crate) fn keys(&self) -> HashSet<Arc<str>> {
        let mut keys = HashSet::new();
        for list in self.0.all() {
            let open = list.lock();
            let uncut = open.iter().filter(|(_, open)| open.cut.is_some());
            keys.extend(uncut.map(|(_, open)| open.key_id.clone()));
        }
        keys
    }

    /// Ends the requests of one key.
    pub(crate) fn cut_key(&self, key_id: &str) {
        self.cut_where(Cut::KeyRevoked, |open| *open.key_id == *key_id);
    }

    /// Ends all requests.
    pub(crate) fn cut_all(&self, why: Cut) {
        self.cut_where(why, |_| true);
    }

    fn cut_where(&self, why: Cut, chosen: impl Fn(&Open) -> bool) {
        for list in self.0.all() {
            for (_, open) in list.lock().iter_mut().filter(|(_, open)| chosen(open)) {
                if let Some(cut) = open.cut.take() {
                    // A request that has just ended no longer listens; then there is nothing to cut.
                    let _ = cut.send(why);
                    if let Some(work) = open.work.take() {
                        work.abort();
                    }
                }
            }
        }
    }
}

impl List {
    fn lock(&self) -> std::sync::MutexGuard<'_, Slab<Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registration {
    /// Has a cut stop this work as well.
    pub(crate) fn stops(&self, work: AbortHandle) {
        match self.list.lock().get_mut(self.place) {
            Some(open) if open.cut.is_some() => open.work = Some(work),
            _ => work.abort(),
        }
    }

    /// Waits until the request is to be cut; for ever if it never is.
    pub(crate) async fn cut(&mut self) -> Cut {
        match (&mut self.cut).await {
            Ok(why) => why,
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Otherwise the other half wakes whoever drops this one.
        self.cut.close();
        // Freed behind the lock.
        let _open = self.list.lock().try_remove(self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cut_reaches_the_requests_of_its_key_only() {
        let in_flight = InFlight::default();
        let mut mine = in_flight.register(&"key_1".into());
        let other = in_flight.register(&"key_2".into());
        in_flight.cut_key("key_1");
        assert_eq!(mine.cut().await, Cut::KeyRevoked);
        assert_eq!(in_flight.keys(), HashSet::from(["key_2".into()]));
        // What was cut is still under way, and no other request in its place.
        let third = in_flight.register(&"key_3".into());
        drop((mine, other));
        assert_eq!(in_flight.keys(), HashSet::from(["key_3".into()]));
        drop(third);
        assert!(in_flight.keys().is_empty());
    }

    #[tokio::test]
    async fn work_is_stopped_whether_the_cut_comes_before_it_or_behind() {
        let in_flight = InFlight::default();
        let request = in_flight.register(&"key_1".into());
        let early = tokio::spawn(std::future::pending::<()>());
        request.stops(early.abort_handle());
        in_flight.cut_key("key_2");
        assert!(!early.is_finished());
        in_flight.cut_key("key_1");
        assert!(early.await.unwrap_err().is_cancelled());
        let late = tokio::spawn(std::future::pending::<()>());
        request.stops(late.abort_handle());
        assert!(late.await.unwrap_err().is_cancelled());
    }
}
