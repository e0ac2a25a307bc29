//! Places: how much may go on at once, as a limit that can be changed while it is kept.
//!
//! Where many wait, a place that comes free goes to somebody of the same worker: to wake another one takes a system
//! call, for each place, of a server that has enough to do. In the order of coming all the same, but for a moment.
//!
//! What must hold: whoever waits is let in, as long as places come free anywhere; a place that is dropped is free at
//! once, whatever became of the work in it. Where the limit is lowered, what is under way ends in its own time, and
//! nobody comes in until fewer are left than the limit says.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::workers;

/// So much later than on another worker one may have come who is let in first. Less than anybody notices, and more than
/// places of busy workers are waited for.
const HEAD_START: Duration = Duration::from_millis(5);

/// So many places.
#[derive(Debug)]
pub struct Places(Mutex<Door>);

/// One of them; given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
}

/// Who is within, and who waits.
#[derive(Debug)]
struct Door {
    limit: usize,
    /// Those who are let in and have not looked yet included.
    taken: usize,
    /// By worker, each in the order of coming.
    waiting: Vec<BTreeMap<Ticket, Waiting>>,
    /// Those who are let in and have not looked yet.
    called: BTreeSet<Ticket>,
    next: Ticket,
}

/// The number of somebody who waits.
type Ticket = u64;

#[derive(Debug)]
struct Waiting {
    since: Instant,
    waker: Waker,
}

impl Places {
    /// So many, all of them free.
    pub const fn new(limit: usize) -> Self {
        Self(Mutex::new(Door { limit, taken: 0, waiting: Vec::new(), called: BTreeSet::new(), next: 0 }))
    }

    /// Waits for a place. Whoever gives up waiting keeps nobody from one.
    pub async fn take(self: &Arc<Self>) -> Place {
        Wait { places: self, worker: workers::current(), ticket: None }.await;
        Place { places: self.clone() }
    }

    /// Lets so many be taken at once from now on.
    pub fn resize(&self, limit: usize) {
        let mut called = Vec::new();
        let mut door = self.door();
        door.limit = limit;
        while door.taken < door.limit
            && let Some(waker) = door.call(workers::current())
        {
            door.taken += 1;
            called.push(waker);
        }
        drop(door);
        called.into_iter().for_each(Waker::wake);
    }

    /// How many nobody has.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        let door = self.door();
        door.limit.saturating_sub(door.taken)
    }

    fn leave(&self, worker: usize) {
        let called = self.door().leave(worker);
        if let Some(waker) = called {
            waker.wake();
        }
    }

    /// Also after a panic elsewhere: no change is left half done.
    fn door(&self) -> MutexGuard<'_, Door> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.leave(workers::current());
    }
}

impl Door {
    /// Takes a place if one is free. Nobody waits then: whoever waits has been let in.
    const fn enter(&mut self) -> bool {
        let is_free = self.taken < self.limit;
        if is_free {
            self.taken += 1;
        }
        is_free
    }

    /// Joins those of a worker who wait.
    fn wait(&mut self, worker: usize, since: Instant, waker: Waker) -> Ticket {
        let ticket = self.next;
        self.next += 1;
        if self.waiting.len() <= worker {
            self.waiting.resize_with(worker + 1, BTreeMap::new);
        }
        self.waiting[worker].insert(ticket, Waiting { since, waker });
        ticket
    }

    /// Gives a place back, or on to somebody who is to be woken.
    fn leave(&mut self, worker: usize) -> Option<Waker> {
        let called = if self.taken > self.limit { None } else { self.call(worker) };
        if called.is_none() {
            self.taken -= 1;
        }
        called
    }

    /// Lets the next one in, who is to be woken.
    fn call(&mut self, worker: usize) -> Option<Waker> {
        let first = |of: usize| {
            let (ticket, waiting) = self.waiting.get(of)?.first_key_value()?;
            Some((*ticket, waiting.since, of))
        };
        let (ticket, since, of) = (0..self.waiting.len()).filter_map(first).min()?;
        let own = first(worker).filter(|(_, own_since, _)| *own_since <= since + HEAD_START);
        let (ticket, _, of) = own.unwrap_or((ticket, since, of));
        self.called.insert(ticket);
        self.waiting[of].remove(&ticket).map(|waiting| waiting.waker)
    }
}

/// Waiting for a place.
struct Wait<'a> {
    places: &'a Places,
    worker: usize,
    /// From the first look on, until it is let in.
    ticket: Option<Ticket>,
}

impl Future for Wait<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut door = self.places.door();
        let Some(ticket) = self.ticket else {
            if door.enter() {
                return Poll::Ready(());
            }
            let ticket = door.wait(self.worker, Instant::now(), context.waker().clone());
            drop(door);
            self.ticket = Some(ticket);
            return Poll::Pending;
        };
        if door.called.remove(&ticket) {
            drop(door);
            self.ticket = None;
            return Poll::Ready(());
        }
        if let Some(waiting) = door.waiting[self.worker].get_mut(&ticket) {
            waiting.waker.clone_from(context.waker());
        }
        Poll::Pending
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut door = self.places.door();
        let is_called = door.called.remove(&ticket);
        let waiting = door.waiting[self.worker].remove(&ticket);
        // A waker may hold a task, and a task a place: neither is let go of behind the door's lock.
        drop(door);
        drop(waiting);
        if is_called {
            self.places.leave(self.worker);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use proptest::prelude::*;

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
    fn whoever_is_let_in_and_does_not_come_leaves_the_place_to_the_next() {
        let places = Arc::new(Places::new(1));
        let first = take_all(&places);
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(places.take())).collect();
        for wait in &mut waiting {
            assert!(wait.now_or_never().is_none());
        }
        // One gives up waiting, one is let in and gives up.
        drop(waiting.remove(1));
        drop(first);
        drop(waiting.remove(0));
        assert!(places.take().now_or_never().is_none(), "the last one has it");
        drop(waiting.remove(0).now_or_never().expect("it still waits"));
        assert_eq!(places.free(), 1);
    }

    #[test]
    fn whoever_waits_is_woken() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let workers = workers::Workers::start(2).unwrap();
        let places = Arc::new(Places::new(2));
        let crowd: Vec<_> = (0..200)
            .map(|_| {
                let places = places.clone();
                workers.next().spawn(async move {
                    for _ in 0..20 {
                        let _place = places.take().await;
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        runtime.block_on(async {
            for one in crowd {
                one.await.unwrap();
            }
        });
        assert_eq!(places.free(), 2);
    }

    /// A door with everybody it has let in so far, by ticket.
    struct Watched {
        door: Door,
        begun: Instant,
    }

    impl Watched {
        fn new(limit: usize) -> Self {
            let Places(door) = Places::new(limit);
            Self { door: door.into_inner().unwrap(), begun: Instant::now() }
        }

        /// Somebody comes at this moment; whether there is a place.
        fn comes(&mut self, worker: usize, millis: u64) -> bool {
            let since = self.begun + Duration::from_millis(millis);
            let enters = self.door.enter();
            if !enters {
                self.door.wait(worker, since, Waker::noop().clone());
            }
            enters
        }

        /// Somebody leaves; the ticket of whoever is let in for that.
        fn leaves(&mut self, worker: usize) -> Option<Ticket> {
            self.door.leave(worker)?;
            let called = self.door.called.pop_first();
            assert!(self.door.called.is_empty());
            called
        }
    }

    #[test]
    fn a_place_stays_with_its_worker_but_for_those_who_wait_longer() {
        let mut watched = Watched::new(1);
        assert!(watched.comes(1, 0));
        for (worker, millis) in [(1, 0), (2, 4), (1, 5), (2, 6), (1, 12), (2, 13)] {
            assert!(!watched.comes(worker, millis));
        }
        let order: Vec<_> = [2, 2, 2, 2, 1, 1].map(|worker| watched.leaves(worker).unwrap()).into();
        // The first has waited 4 ms less than 0, the next of its worker would have waited 6 ms less.
        assert_eq!(order, [1, 0, 3, 2, 4, 5]);
        assert_eq!(watched.leaves(1), None);
        assert_eq!(watched.door.taken, 0);
    }

    proptest! {
        #[test]
        fn nobody_waits_while_a_place_is_free_and_nobody_for_ever(
            limits in prop::collection::vec(0_usize..5, 1..4),
            steps in prop::collection::vec((0_usize..4, 0_usize..3), 0..200),
        ) {
            let mut watched = Watched::new(limits[0]);
            let (mut within, mut waiting) = (0, BTreeSet::new());
            let mut arrivals = BTreeMap::new();
            for (millis, (what, worker)) in steps.into_iter().enumerate() {
                match what {
                    0 | 1 => {
                        let ticket = watched.door.next;
                        if watched.comes(worker, millis as u64) {
                            within += 1;
                        } else {
                            waiting.insert(ticket);
                            arrivals.insert(ticket, millis);
                        }
                    }
                    2 if within > 0 => {
                        match watched.leaves(worker) {
                            Some(ticket) => {
                                prop_assert!(waiting.remove(&ticket));
                                let since = arrivals[&ticket];
                                let oldest = waiting.first().map_or(since, |first| arrivals[first]);
                                prop_assert!(since <= oldest + 5, "{since} before {oldest}");
                            }
                            None => within -= 1,
                        }
                    }
                    _ => {
                        let limit = limits[millis % limits.len()];
                        watched.door.limit = limit;
                        while watched.door.taken < limit && watched.door.call(worker).is_some() {
                            watched.door.taken += 1;
                            within += 1;
                            waiting.remove(&watched.door.called.pop_first().unwrap());
                        }
                    }
                }
                prop_assert_eq!(watched.door.taken, within);
                prop_assert!(waiting.is_empty() || within >= watched.door.limit);
            }
        }
    }
}
