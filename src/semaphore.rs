//! A semaphore whose number of permits can be changed while they are held, and which knows workers.
//!
//! Where many wait, a permit that comes free goes to a task of the same worker: to wake another worker takes a system
//! call, for each permit, of a server that has enough to do. In the order of coming all the same, but for a moment.
//!
//! What must hold: whoever waits gets a permit, as long as any come free; one that is dropped is free at once, whatever
//! became of the work that held it. Where the number is lowered, what is under way ends in its own time, and nobody
//! gets one until fewer are held than the number says.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::workers;

/// So much later than on another worker a task may have come that is served first. Less than anybody notices, and more
/// than permits of busy workers are waited for.
const HEAD_START: Duration = Duration::from_millis(5);

/// So many permits.
#[derive(Debug)]
pub struct Semaphore(Mutex<Queue>);

/// One of them; given back when it is dropped.
#[derive(Debug)]
pub struct Permit {
    semaphore: Arc<Semaphore>,
}

/// How many are held, and who waits.
#[derive(Debug)]
struct Queue {
    limit: usize,
    /// Those included that were given to a task which has not looked yet.
    held: usize,
    /// By worker, each in the order of coming.
    waiting: Vec<BTreeMap<Ticket, Waiting>>,
    /// The tasks that were given one and have not looked yet.
    served: BTreeSet<Ticket>,
    next: Ticket,
}

/// The number of somebody who waits.
type Ticket = u64;

#[derive(Debug)]
struct Waiting {
    since: Instant,
    waker: Waker,
}

impl Semaphore {
    /// So many, all of them free.
    pub const fn new(limit: usize) -> Self {
        Self(Mutex::new(Queue { limit, held: 0, waiting: Vec::new(), served: BTreeSet::new(), next: 0 }))
    }

    /// Waits for a permit. Whoever gives up waiting keeps nobody from one.
    pub async fn acquire(self: &Arc<Self>) -> Permit {
        Wait { semaphore: self, worker: workers::current(), ticket: None }.await;
        Permit { semaphore: self.clone() }
    }

    /// Lets so many be held at once from now on.
    pub fn resize(&self, limit: usize) {
        let mut served = Vec::new();
        let mut queue = self.queue();
        queue.limit = limit;
        while queue.held < queue.limit
            && let Some(waker) = queue.serve_next(workers::current())
        {
            queue.held += 1;
            served.push(waker);
        }
        drop(queue);
        served.into_iter().for_each(Waker::wake);
    }

    /// How many nobody has.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        let queue = self.queue();
        queue.limit.saturating_sub(queue.held)
    }

    fn release(&self, worker: usize) {
        let next = self.queue().release(worker);
        if let Some(waker) = next {
            waker.wake();
        }
    }

    /// Also after a panic elsewhere: no change is left half done.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.semaphore.release(workers::current());
    }
}

impl Queue {
    /// Takes a permit if one is free. Nobody waits then: whoever waited was served.
    const fn try_acquire(&mut self) -> bool {
        let is_free = self.held < self.limit;
        if is_free {
            self.held += 1;
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

    /// Gives a permit back, or on to a task that is to be woken.
    fn release(&mut self, worker: usize) -> Option<Waker> {
        let next = if self.held > self.limit { None } else { self.serve_next(worker) };
        if next.is_none() {
            self.held -= 1;
        }
        next
    }

    /// Serves the next task, which is to be woken.
    fn serve_next(&mut self, worker: usize) -> Option<Waker> {
        let first = |of: usize| {
            let (ticket, waiting) = self.waiting.get(of)?.first_key_value()?;
            Some((*ticket, waiting.since, of))
        };
        let (ticket, since, of) = (0..self.waiting.len()).filter_map(first).min()?;
        let own = first(worker).filter(|(_, own_since, _)| *own_since <= since + HEAD_START);
        let (ticket, _, of) = own.unwrap_or((ticket, since, of));
        self.served.insert(ticket);
        self.waiting[of].remove(&ticket).map(|waiting| waiting.waker)
    }
}

/// Waiting for a permit.
struct Wait<'a> {
    semaphore: &'a Semaphore,
    worker: usize,
    /// From the first look on, until it is served.
    ticket: Option<Ticket>,
}

impl Future for Wait<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut queue = self.semaphore.queue();
        let Some(ticket) = self.ticket else {
            if queue.try_acquire() {
                return Poll::Ready(());
            }
            let ticket = queue.wait(self.worker, Instant::now(), context.waker().clone());
            drop(queue);
            self.ticket = Some(ticket);
            return Poll::Pending;
        };
        if queue.served.remove(&ticket) {
            drop(queue);
            self.ticket = None;
            return Poll::Ready(());
        }
        if let Some(waiting) = queue.waiting[self.worker].get_mut(&ticket) {
            waiting.waker.clone_from(context.waker());
        }
        Poll::Pending
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut queue = self.semaphore.queue();
        let is_served = queue.served.remove(&ticket);
        let waiting = queue.waiting[self.worker].remove(&ticket);
        // A waker may hold a task, and a task a permit: neither is dropped while the queue is locked.
        drop(queue);
        drop(waiting);
        if is_served {
            self.semaphore.release(self.worker);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use proptest::prelude::*;

    use super::*;

    /// Takes as many as there are.
    fn take_all(semaphore: &Arc<Semaphore>) -> Vec<Permit> {
        std::iter::from_fn(|| semaphore.acquire().now_or_never()).collect()
    }

    #[test]
    fn a_permit_that_is_dropped_is_free_again() {
        let semaphore = Arc::new(Semaphore::new(3));
        for _ in 0..2 {
            assert_eq!(take_all(&semaphore).len(), 3);
        }
    }

    #[test]
    fn a_lower_limit_lets_work_end_and_nobody_in_until_it_holds() {
        let semaphore = Arc::new(Semaphore::new(4));
        let mut taken = take_all(&semaphore);
        semaphore.resize(2);
        for left in [3, 2] {
            drop(taken.pop());
            assert!(semaphore.acquire().now_or_never().is_none(), "{left} are under way");
        }
        drop(taken.pop());
        assert_eq!(take_all(&semaphore).len(), 1);
        drop(taken);
        assert_eq!(take_all(&semaphore).len(), 2);
    }

    #[test]
    fn a_higher_limit_lets_waiting_ones_in_at_once() {
        let semaphore = Arc::new(Semaphore::new(1));
        let first = take_all(&semaphore);
        let mut waiting = Box::pin(semaphore.acquire());
        assert!(waiting.as_mut().now_or_never().is_none());
        semaphore.resize(3);
        let second = waiting.now_or_never().expect("it still waits");
        assert_eq!(take_all(&semaphore).len(), 1);
        drop((first, second));
        assert_eq!(take_all(&semaphore).len(), 3);
    }

    #[test]
    fn whoever_is_served_and_does_not_come_leaves_the_permit_to_the_next() {
        let semaphore = Arc::new(Semaphore::new(1));
        let first = take_all(&semaphore);
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(semaphore.acquire())).collect();
        for wait in &mut waiting {
            assert!(wait.now_or_never().is_none());
        }
        // One gives up waiting, one is served and gives up.
        drop(waiting.remove(1));
        drop(first);
        drop(waiting.remove(0));
        assert!(semaphore.acquire().now_or_never().is_none(), "the last one has it");
        drop(waiting.remove(0).now_or_never().expect("it still waits"));
        assert_eq!(semaphore.free(), 1);
    }

    #[test]
    fn whoever_waits_is_woken() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let workers = workers::Workers::start(2).unwrap();
        let semaphore = Arc::new(Semaphore::new(2));
        let crowd: Vec<_> = (0..200)
            .map(|_| {
                let semaphore = semaphore.clone();
                workers.next().spawn(async move {
                    for _ in 0..20 {
                        let _permit = semaphore.acquire().await;
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
        assert_eq!(semaphore.free(), 2);
    }

    /// A queue, watched without tasks.
    struct Watched {
        queue: Queue,
        begun: Instant,
    }

    impl Watched {
        fn new(limit: usize) -> Self {
            let Semaphore(queue) = Semaphore::new(limit);
            Self { queue: queue.into_inner().unwrap(), begun: Instant::now() }
        }

        /// A task comes at this moment; whether a permit is free.
        fn comes(&mut self, worker: usize, millis: u64) -> bool {
            let since = self.begun + Duration::from_millis(millis);
            let is_free = self.queue.try_acquire();
            if !is_free {
                self.queue.wait(worker, since, Waker::noop().clone());
            }
            is_free
        }

        /// A permit comes back; the ticket of the task that gets it.
        fn leaves(&mut self, worker: usize) -> Option<Ticket> {
            self.queue.release(worker)?;
            let served = self.queue.served.pop_first();
            assert!(self.queue.served.is_empty());
            served
        }
    }

    #[test]
    fn a_permit_stays_with_its_worker_but_for_those_who_wait_longer() {
        let mut watched = Watched::new(1);
        assert!(watched.comes(1, 0));
        for (worker, millis) in [(1, 0), (2, 4), (1, 5), (2, 6), (1, 12), (2, 13)] {
            assert!(!watched.comes(worker, millis));
        }
        let order: Vec<_> = [2, 2, 2, 2, 1, 1].map(|worker| watched.leaves(worker).unwrap()).into();
        // The first has waited 4 ms less than 0, the next of its worker would have waited 6 ms less.
        assert_eq!(order, [1, 0, 3, 2, 4, 5]);
        assert_eq!(watched.leaves(1), None);
        assert_eq!(watched.queue.held, 0);
    }

    proptest! {
        #[test]
        fn nobody_waits_while_a_permit_is_free_and_nobody_for_ever(
            limits in prop::collection::vec(0_usize..5, 1..4),
            steps in prop::collection::vec((0_usize..4, 0_usize..3), 0..200),
        ) {
            let mut watched = Watched::new(limits[0]);
            let (mut within, mut waiting) = (0, BTreeSet::new());
            let mut arrivals = BTreeMap::new();
            for (millis, (what, worker)) in steps.into_iter().enumerate() {
                match what {
                    0 | 1 => {
                        let ticket = watched.queue.next;
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
                        watched.queue.limit = limit;
                        while watched.queue.held < limit && watched.queue.serve_next(worker).is_some() {
                            watched.queue.held += 1;
                            within += 1;
                            waiting.remove(&watched.queue.served.pop_first().unwrap());
                        }
                    }
                }
                prop_assert_eq!(watched.queue.held, within);
                prop_assert!(waiting.is_empty() || within >= watched.queue.limit);
            }
        }
    }
}
