//! Places: how much may go on at once, as a limit that can be changed while it is kept.
//!
//! What must hold: whoever waits is let in, in the order of coming; a place that is dropped is free at once, whatever
//! became of the work in it. Where the limit is lowered, what is under way ends in its own time, and its places go with
//! it until no more are left than the limit says.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

/// So many places.
#[derive(Debug)]
pub struct Places {
    semaphore: Semaphore,
    /// Places that go with the work in them.
    owed: AtomicUsize,
    limit: Mutex<usize>,
}

/// One of them; given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
}

impl Places {
    /// So many, all of them free.
    pub fn new(limit: usize) -> Self {
        let limit = limit.min(Semaphore::MAX_PERMITS);
        Self { semaphore: Semaphore::new(limit), owed: AtomicUsize::new(0), limit: Mutex::new(limit) }
    }

    /// Waits for a place, in the order of asking.
    pub async fn take(self: &Arc<Self>) -> Place {
        // The semaphore is never closed.
        if let Ok(permit) = self.semaphore.acquire().await {
            permit.forget();
        }
        Place { places: self.clone() }
    }

    /// Lets so many be taken at once from now on.
    pub fn resize(&self, limit: usize) {
        let limit = limit.min(Semaphore::MAX_PERMITS);
        let mut current = self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        if limit < *current {
            let fewer = *current - limit;
            let free = self.semaphore.forget_permits(fewer);
            self.owed.fetch_add(fewer - free, Ordering::Relaxed);
        } else {
            let more = (*current..limit).filter(|_| !self.repay()).count();
            self.semaphore.add_permits(more);
        }
        *current = limit;
    }

    /// How many nobody has.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.semaphore.available_permits()
    }

    /// Takes one off what is owed, if anything is.
    fn repay(&self) -> bool {
        self.owed.load(Ordering::Relaxed) > 0
            && self
                .owed
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |owed| owed.checked_sub(1))
                .is_ok()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.places.repay() {
            self.places.semaphore.add_permits(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// Takes as many as there are.
    fn take_all(places: &Arc<Places>) -> Vec<Place> {
        std::iter::from_fn(|| places.take().now_or_never()).collect()
    }

    #[test]
    fn a_place_that_is_dropped_is_free_again() {
        let places = Arc::new(Places::new(3));
        for _ in 0..2 {
            assert_eq!(take_all(&places).len(), 3);
        }
    }

    #[test]
    fn a_lower_limit_lets_work_end_and_nobody_in_until_it_holds() {
        let places = Arc::new(Places::new(4));
        let mut taken = take_all(&places);
        places.resize(2);
        for left in [3, 2] {
            drop(taken.pop());
            assert!(places.take().now_or_never().is_none(), "{left} are under way");
        }
        drop(taken.pop());
        assert_eq!(take_all(&places).len(), 1);
        drop(taken);
        assert_eq!(take_all(&places).len(), 2);
    }

    #[test]
    fn a_higher_limit_lets_waiting_ones_in_at_once() {
        let places = Arc::new(Places::new(1));
        let first = take_all(&places);
        let mut waiting = Box::pin(places.take());
        assert!(waiting.as_mut().now_or_never().is_none());
        places.resize(3);
        let second = waiting.now_or_never().expect("it still waits");
        assert_eq!(take_all(&places).len(), 1);
        drop((first, second));
        assert_eq!(take_all(&places).len(), 3);
    }

    #[test]
    fn limits_that_go_down_and_up_while_all_is_taken_add_up() {
        let places = Arc::new(Places::new(5));
        let taken = take_all(&places);
        for limit in [1, 3, 2, 6, 4] {
            places.resize(limit);
        }
        // One came free while the limit was 6.
        let one_more = take_all(&places).len();
        assert!(one_more <= 1, "{one_more}");
        drop(taken);
        assert_eq!(take_all(&places).len(), 4);
    }
}
