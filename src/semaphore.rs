//! A semaphore whose number of permits can change while they are held, and which knows about workers.
//!
//! If many tasks wait, a released permit goes to a task of the same worker: waking another worker takes a system call
//! for every permit, on a server that is busy already. Apart from this slight preference, permits are granted in the
//! order of arrival.
//!
//! What must hold: every waiting task gets a permit as long as any are released; a dropped permit is free at once,
//! whatever became of the work that held it. If the number is lowered, work under way ends in its own time, and no
//! permit is granted until fewer are held than the number allows.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::workers;

/// How much later than a task of another worker a task may have arrived and still be served first. Less than anybody
/// notices, and more than the time that permits of busy workers are waited for.
const HEAD_START: Duration = Duration::from_millis(5);

/// A number of permits.
#[derive(Debug)]
pub struct Semaphore(Mutex<Queue>);

/// A permit; released on drop.
#[derive(Debug)]
pub struct Permit {
    semaphore: Arc<Semaphore>,
}

/// The number of permits held, and the tasks that wait.
#[derive(Debug)]
struct Queue {
    limit: usize,
    /// Including those granted to a task that has not been polled since.
    held: usize,
    /// By worker, each in the order of arrival.
    waiting: Vec<BTreeMap<Ticket, Waiting>>,
    /// The tasks that were granted a permit and have not been polled since.
    served: BTreeSet<Ticket>,
    next: Ticket,
}

/// The number of a waiting task.
type Ticket = u64;

#[derive(Debug)]
struct Waiting {
    since: Instant,
    waker: Waker,
}

impl Semaphore {
    /// This many permits, all of them free.
    pub const fn new(limit: usize) -> Self {
        Self(Mutex::new(Queue { limit, held: 0, waiting: Vec::new(), served: BTreeSet::new(), next: 0 }))
    }

    /// Waits for a permit. Cancel safe: a task that gives up waiting takes no permit from the others.
    pub async fn acquire(self: &Arc<Self>) -> Permit {
        Wait { semaphore: self, worker: workers::current(), ticket: None }.await;
        Permit { semaphore: self.clone() }
    }

    /// Changes the number of permits.
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

    /// The number of free permits.
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

    /// Ignores poisoning: no change is left half done.
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
    /// Takes a permit if one is free. Then nobody is waiting: waiting tasks were served first.
    const fn try_acquire(&mut self) -> bool {
        let is_free = self.held < self.limit;
        if is_free {
            self.held += 1;
        }
        is_free
    }

    /// Adds a waiting task to those of a worker.
    fn wait(&mut self, worker: usize, since: Instant, waker: Waker) -> Ticket {
        let ticket = self.next;
        self.next += 1;
        if self.waiting.len() <= worker {
            self.waiting.resize_with(worker + 1, BTreeMap::new);
        }
        self.waiting[worker].insert(ticket, Waiting { since, waker });
        ticket
    }

    /// Releases a permit, or passes it on to a task, which is to be woken.
    fn release(&mut self, worker: usize) -> Option<Waker> {
        let next = if self.held > self.limit { None } else { self.serve_next(worker) };
        if next.is_none() {
            self.held -= 1;
        }
        next
    }

    /// Grants a permit to the next task, which is to be woken.
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

/// The future of waiting for a permit.
struct Wait<'a> {
    semaphore: &'a Semaphore,
    worker: usize,
    /// Set from the first poll until it is served.
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
        // A waker may own a task, and a task a permit: neither may be dropped while the queue is locked.
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

    /// Takes all free permits.
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
    fn a_lower_limit_lets_work_finish_and_admits_nobody_until_it_is_met() {
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
    fn a_higher_limit_admits_waiting_tasks_at_once() {
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
    fn a_served_task_that_gives_up_passes_the_permit_on() {
        let semaphore = Arc::new(Semaphore::new(1));
        let first = take_all(&semaphore);
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(semaphore.acquire())).collect();
        for wait in &mut waiting {
            assert!(wait.now_or_never().is_none());
        }
        // One gives up waiting, one gives up after it was served.
        drop(waiting.remove(1));
        drop(first);
        drop(waiting.remove(0));
        assert!(semaphore.acquire().now_or_never().is_none(), "the last one has it");
        drop(waiting.remove(0).now_or_never().expect("it still waits"));
        assert_eq!(semaphore.free(), 1);
    }

    #[test]
    fn waiting_tasks_are_woken() {
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

    /// A queue, tested without tasks.
    struct Watched {
        queue: Queue,
        begun: Instant,
    }

    impl Watched {
        fn new(limit: usize) -> Self {
            let Semaphore(queue) = Semaphore::new(limit);
            Self { queue: queue.into_inner().unwrap(), begun: Instant::now() }
        }

        /// A task arrives at this time; returns whether a permit is free.
        fn comes(&mut self, worker: usize, millis: u64) -> bool {
            let since = self.begun + Duration::from_millis(millis);
            let is_free = self.queue.try_acquire();
            if !is_free {
                self.queue.wait(worker, since, Waker::noop().clone());
            }
            is_free
        }

        /// A permit is released; returns the ticket of the task that gets it.
        fn leaves(&mut self, worker: usize) -> Option<Ticket> {
            self.queue.release(worker)?;
            let served = self.queue.served.pop_first();
            assert!(self.queue.served.is_empty());
            served
        }
    }

    #[test]
    fn a_permit_stays_with_its_worker_unless_others_have_waited_longer() {
        let mut watched = Watched::new(1);
        assert!(watched.comes(1, 0));
        for (worker, millis) in [(1, 0), (2, 4), (1, 5), (2, 6), (1, 12), (2, 13)] {
            assert!(!watched.comes(worker, millis));
        }
        let order: Vec<_> = [2, 2, 2, 2, 1, 1].map(|worker| watched.leaves(worker).unwrap()).into();
        // The first arrived 4 ms after ticket 0; the next one of its worker arrived 6 ms after it.
        assert_eq!(order, [1, 0, 3, 2, 4, 5]);
        assert_eq!(watched.leaves(1), None);
        assert_eq!(watched.queue.held, 0);
    }

    proptest! {
        #[test]
        fn no_task_waits_while_a_permit_is_free_or_for_ever(
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
