//! A semaphore whose number of permits can change while they are held, and which knows about workers and owners.
//!
//! Where permits have owners, no owner gets all of them: one takes at most `SHARE` times as many as are left free, so
//! that the next finds some, and a released permit goes to the waiting owner who holds the fewest. Eight permits and
//! more are never all held by one; fewer may be, until the first of them is released.
//!
//! If many tasks of an owner wait, a released permit goes to a task of the same worker: waking another worker takes a
//! system call for every permit, on a server that is busy already. Without this, 128 callers who share 64 permits wake
//! the other of two workers for one request in four more, and a request takes 3 % more processor time (28 November 2026).
//! Apart from this slight preference, an owner's permits are granted in the order of arrival.
//!
//! What must hold: every waiting task gets a permit as long as any are released; a dropped permit is free at once,
//! whatever became of the work that held it. If the number is lowered, work under way ends in its own time, and no
//! permit is granted until fewer are held than the number allows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::lock::Lock;

use slab::Slab;

use super::workers;

/// How many times as many permits as are free one owner may hold.
const SHARE: usize = 7;
/// How much later than a task of another worker a task may have arrived and still be served first. Less than anybody
/// notices, and more than the time that permits of busy workers are waited for.
const HEAD_START: Duration = Duration::from_millis(5);
/// The fewest owners known at which those that hold nothing are forgotten.
const MANY_OWNERS: usize = 1024;

/// A number of permits.
#[derive(Debug)]
pub struct Semaphore(Mutex<Queue>);

/// A permit; released on drop.
#[derive(Debug)]
pub struct Permit {
    semaphore: Arc<Semaphore>,
    owner: usize,
}

/// The number of permits held, and the tasks that wait.
#[derive(Debug)]
struct Queue {
    limit: usize,
    /// Including those granted to a task that has not been polled since.
    held: usize,
    owners: Slab<Owner>,
    by_name: HashMap<Arc<str>, usize>,
    /// How many named owners there may be before some are forgotten.
    max_owners: usize,
    /// The owners whose tasks wait.
    ranking: BTreeSet<(Rank, usize)>,
    /// The tasks that were granted a permit and have not been polled since.
    served: BTreeSet<Ticket>,
    next: Ticket,
}

/// Who holds permits.
#[derive(Debug, Default)]
struct Owner {
    /// `None` for the one who stands for all tasks without an owner.
    name: Option<Arc<str>>,
    held: usize,
    /// By worker, each in the order of arrival.
    waiting: Vec<BTreeMap<Ticket, Waiting>>,
    /// Its place in the ranking.
    rank: Option<Rank>,
}

/// The permits held, and the ticket of the task that has waited longest: the lowest is served next.
type Rank = (usize, Ticket);

/// The number of a waiting task.
type Ticket = u64;

#[derive(Debug)]
struct Waiting {
    since: Instant,
    waker: Waker,
}

/// The place of the owner who stands for all tasks without one.
const NOBODY: usize = 0;

impl Semaphore {
    /// This many permits, all of them free.
    pub fn new(limit: usize) -> Self {
        Self(Mutex::new(Queue::new(limit)))
    }

    /// Waits for a permit. Cancel safe: a task that gives up waiting takes no permit from the others.
    pub fn acquire(self: &Arc<Self>) -> impl Future<Output = Permit> {
        self.acquire_by(None)
    }

    /// Waits for a permit that `owner` holds, on a semaphore all permits of which have owners. Cancel safe.
    pub fn acquire_for<'a>(
        self: &'a Arc<Self>,
        owner: &'a Arc<str>,
    ) -> impl Future<Output = Permit> + use<'a> {
        self.acquire_by(Some(owner))
    }

    /// No `async fn`, which would store its arguments twice while it waits.
    fn acquire_by<'a>(self: &'a Arc<Self>, name: Option<&'a Arc<str>>) -> Wait<'a> {
        Wait { semaphore: self, worker: workers::current(), name, waiting: None }
    }

    fn permit(self: &Arc<Self>, owner: usize) -> Permit {
        Permit { semaphore: self.clone(), owner }
    }

    /// Changes the number of permits.
    pub fn resize(&self, limit: usize) {
        let mut queue = self.0.locked();
        queue.limit = limit;
        let served: Vec<Waker> = std::iter::from_fn(|| queue.serve_next(workers::current())).collect();
        drop(queue);
        served.into_iter().for_each(Waker::wake);
    }

    /// The number of free permits.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.0.locked().free()
    }

    fn release(&self, worker: usize, owner: usize) {
        let next = self.0.locked().release(worker, owner);
        if let Some(waker) = next {
            waker.wake();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.semaphore.release(workers::current(), self.owner);
    }
}

impl Queue {
    fn new(limit: usize) -> Self {
        let mut owners = Slab::new();
        owners.insert(Owner::default());
        Self {
            limit,
            held: 0,
            owners,
            by_name: HashMap::default(),
            max_owners: MANY_OWNERS,
            ranking: BTreeSet::new(),
            served: BTreeSet::new(),
            next: 0,
        }
    }

    const fn free(&self) -> usize {
        self.limit.saturating_sub(self.held)
    }

    /// The place of an owner.
    fn owner(&mut self, name: Option<&Arc<str>>) -> usize {
        let Some(name) = name else { return NOBODY };
        if let Some(owner) = self.by_name.get(name) {
            return *owner;
        }
        if self.by_name.len() >= self.max_owners {
            let Self { by_name, owners, .. } = self;
            by_name.retain(|_, owner| {
                let is_needed =
                    owners.get(*owner).is_some_and(|owner| owner.held > 0 || owner.rank.is_some());
                if !is_needed {
                    owners.try_remove(*owner);
                }
                is_needed
            });
            self.max_owners = MANY_OWNERS.max(2 * self.by_name.len());
        }
        let owner = self.owners.insert(Owner { name: Some(name.clone()), ..Owner::default() });
        self.by_name.insert(name.clone(), owner);
        owner
    }

    /// Whether an owner may take one more permit.
    fn may_take(&self, owner: usize) -> bool {
        let (free, owner) = (self.free(), &self.owners[owner]);
        free > 0 && (owner.name.is_none() || owner.held < SHARE.saturating_mul(free))
    }

    /// Takes a permit if one is free for this owner. Then none of its tasks is waiting: they were served first.
    fn try_acquire(&mut self, owner: usize) -> bool {
        let is_free = self.may_take(owner);
        if is_free {
            self.held += 1;
            self.owners[owner].held += 1;
        }
        is_free
    }

    /// Adds a waiting task of an owner to those of a worker.
    fn wait(&mut self, worker: usize, owner: usize, since: Instant, waker: Waker) -> Ticket {
        let ticket = self.next;
        self.next += 1;
        let waiting = &mut self.owners[owner].waiting;
        if waiting.len() <= worker {
            waiting.resize_with(worker + 1, BTreeMap::new);
        }
        waiting[worker].insert(ticket, Waiting { since, waker });
        if self.owners[owner].rank.is_none() {
            self.rank(owner);
        }
        ticket
    }

    /// Removes a waiting task.
    fn give_up(&mut self, worker: usize, owner: usize, ticket: Ticket) -> Option<Waiting> {
        let removed = self.owners[owner].waiting[worker].remove(&ticket);
        self.rank(owner);
        removed
    }

    /// Releases a permit. Returns the task that gets it, which is to be woken.
    fn release(&mut self, worker: usize, owner: usize) -> Option<Waker> {
        self.held -= 1;
        self.owners[owner].held -= 1;
        if self.owners[owner].rank.is_some() {
            self.rank(owner);
        }
        self.serve_next(worker)
    }

    /// Grants a free permit to the next task, which is to be woken.
    fn serve_next(&mut self, worker: usize) -> Option<Waker> {
        let (_, owner) = *self.ranking.first()?;
        // If the one who holds the fewest may not take it, nobody may.
        if !self.may_take(owner) {
            return None;
        }
        let (ticket, of) = self.owners[owner].next(worker)?;
        self.held += 1;
        self.owners[owner].held += 1;
        self.served.insert(ticket);
        self.give_up(of, owner, ticket).map(|waiting| waiting.waker)
    }

    /// Updates an owner's place in the ranking.
    fn rank(&mut self, at: usize) {
        let owner = &mut self.owners[at];
        let rank = owner.first().map(|ticket| (owner.held, ticket));
        if let Some(before) = std::mem::replace(&mut owner.rank, rank) {
            self.ranking.remove(&(before, at));
        }
        if let Some(rank) = rank {
            self.ranking.insert((rank, at));
        }
    }
}

impl Owner {
    /// The task that has waited longest.
    fn first(&self) -> Option<Ticket> {
        self.waiting.iter().filter_map(|tasks| tasks.first_key_value()).map(|(ticket, _)| *ticket).min()
    }

    /// The task to be served by a worker, and its own worker.
    fn next(&self, worker: usize) -> Option<(Ticket, usize)> {
        let first = |of: usize| {
            let (ticket, waiting) = self.waiting.get(of)?.first_key_value()?;
            Some((*ticket, waiting.since, of))
        };
        let (ticket, since, of) = (0..self.waiting.len()).filter_map(first).min()?;
        let own = first(worker).filter(|(_, own_since, _)| *own_since <= since + HEAD_START);
        let (ticket, _, of) = own.unwrap_or((ticket, since, of));
        Some((ticket, of))
    }
}

/// The future of waiting for a permit.
struct Wait<'a> {
    semaphore: &'a Arc<Semaphore>,
    worker: usize,
    name: Option<&'a Arc<str>>,
    /// The owner and the ticket; set from the first poll until it is served.
    waiting: Option<(usize, Ticket)>,
}

impl Future for Wait<'_> {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Permit> {
        let mut queue = self.semaphore.0.locked();
        let Some((owner, ticket)) = self.waiting else {
            let owner = queue.owner(self.name);
            if queue.try_acquire(owner) {
                return Poll::Ready(self.semaphore.permit(owner));
            }
            let ticket = queue.wait(self.worker, owner, Instant::now(), context.waker().clone());
            drop(queue);
            self.waiting = Some((owner, ticket));
            return Poll::Pending;
        };
        if queue.served.remove(&ticket) {
            drop(queue);
            self.waiting = None;
            return Poll::Ready(self.semaphore.permit(owner));
        }
        if let Some(waiting) = queue.owners[owner].waiting[self.worker].get_mut(&ticket) {
            waiting.waker.clone_from(context.waker());
        }
        Poll::Pending
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let Some((owner, ticket)) = self.waiting else { return };
        let mut queue = self.semaphore.0.locked();
        let is_served = queue.served.remove(&ticket);
        let waiting = if is_served { None } else { queue.give_up(self.worker, owner, ticket) };
        // A waker may own a task, and a task a permit: neither may be dropped while the queue is locked.
        drop(queue);
        drop(waiting);
        if is_served {
            self.semaphore.release(self.worker, owner);
        }
    }
}

#[cfg(test)]
mod tests;
