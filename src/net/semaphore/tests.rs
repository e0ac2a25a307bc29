//! Tests by example and at random.

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

fn owner(number: usize) -> Arc<str> {
    format!("key_{number}").into()
}

/// Takes all permits that are free for an owner.
fn take_all_for(semaphore: &Arc<Semaphore>, number: usize) -> Vec<Permit> {
    std::iter::from_fn(|| semaphore.acquire_for(&owner(number)).now_or_never()).collect()
}

#[test]
fn no_owner_takes_all_of_eight_permits_or_more() {
    for (limit, expected) in
        [(1, [1, 0, 0]), (7, [7, 0, 0]), (8, [7, 1, 0]), (64, [56, 7, 1]), (640, [560, 70, 9])]
    {
        let semaphore = Arc::new(Semaphore::new(limit));
        let held = [0, 1, 2].map(|number| take_all_for(&semaphore, number));
        assert_eq!(held.each_ref().map(Vec::len), expected, "{limit}");
    }
}

#[test]
fn a_released_permit_goes_to_the_waiting_owner_with_the_fewest() {
    let semaphore = Arc::new(Semaphore::new(4));
    let (greedy, modest) = (owner(0), owner(1));
    let mut held = take_all_for(&semaphore, 0);
    assert_eq!(held.len(), 4);
    let mut first = Box::pin(semaphore.acquire_for(&greedy));
    let mut second = Box::pin(semaphore.acquire_for(&modest));
    assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
    held.pop();
    assert!(first.as_mut().now_or_never().is_none(), "it came first, and holds three");
    let second = second.now_or_never().expect("it still waits");
    drop(second);
    drop(first.now_or_never().expect("it still waits"));
    drop(held);
    assert_eq!(semaphore.free(), 4);
}

#[test]
fn owners_that_hold_nothing_are_forgotten() {
    let semaphore = Arc::new(Semaphore::new(8));
    let kept = take_all_for(&semaphore, 0);
    for number in 1..10 * MANY_OWNERS {
        drop(take_all_for(&semaphore, number));
    }
    let queue = semaphore.0.locked();
    assert!(queue.by_name.len() <= 2 * MANY_OWNERS && queue.owners.len() <= 2 * MANY_OWNERS);
    drop(queue);
    drop(kept);
    assert_eq!(semaphore.free(), 8);
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
        Self { queue: Queue::new(limit), begun: Instant::now() }
    }

    /// A task arrives at this time; returns whether a permit is free.
    fn comes(&mut self, worker: usize, millis: u64) -> bool {
        let since = self.begun + Duration::from_millis(millis);
        let is_free = self.queue.try_acquire(NOBODY);
        if !is_free {
            self.queue.wait(worker, NOBODY, since, Waker::noop().clone());
        }
        is_free
    }

    /// A permit is released; returns the ticket of the task that gets it.
    fn leaves(&mut self, worker: usize) -> Option<Ticket> {
        self.queue.release(worker, NOBODY)?;
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
                    while watched.queue.serve_next(worker).is_some() {
                        within += 1;
                        waiting.remove(&watched.queue.served.pop_first().unwrap());
                    }
                }
            }
            prop_assert_eq!(watched.queue.held, within);
            prop_assert!(waiting.is_empty() || within >= watched.queue.limit);
        }
    }

    #[test]
    fn no_owner_waits_for_a_permit_that_it_may_take(
        limit in 1_usize..20,
        steps in prop::collection::vec((any::<bool>(), 0_usize..4), 0..200),
    ) {
        let mut queue = Queue::new(limit);
        let (mut held, mut waiting) = (Vec::new(), BTreeMap::new());
        for (comes, number) in steps {
            let at = queue.owner(Some(&owner(number)));
            if comes {
                if queue.try_acquire(at) {
                    held.push(at);
                } else {
                    waiting.insert(queue.wait(0, at, Instant::now(), Waker::noop().clone()), at);
                }
            } else if !held.is_empty() {
                let released = held.swap_remove(number % held.len());
                queue.release(0, released);
                held.extend(queue.served.pop_first().and_then(|ticket| waiting.remove(&ticket)));
                prop_assert!(queue.served.is_empty());
            }
            prop_assert_eq!(queue.held, held.len());
            prop_assert!(queue.held <= limit);
            prop_assert!(waiting.values().all(|at| !queue.may_take(*at)));
            prop_assert!(waiting.is_empty() || !held.is_empty());
        }
    }
}
