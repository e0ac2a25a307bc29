//! One single-threaded runtime per core, for connections and all work on their behalf.
//!
//! A request that stays on one core wakes no other thread: its tasks, its timers and the connections to providers that
//! it uses belong to that core. Measured on a completion relayed from a provider that responds at once, a shared
//! runtime takes more than one system call per request to wake threads, this one none.
//!
//! What must hold: whatever exists per worker, such as a pool of connections, is looked up by [`current`], as using a
//! connection that another worker drives would cost what is saved here.

use std::cell::Cell;
use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::{io, thread};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

static CORES: LazyLock<usize> =
    LazyLock::new(|| thread::available_parallelism().map_or(1, NonZeroUsize::get));

/// The default number of workers: as many as there are cores for this process.
pub fn cores() -> usize {
    *CORES
}

/// The number of the worker that this thread is, from 1; 0 on any other thread.
pub fn current() -> usize {
    CURRENT.get()
}

/// One value for each worker, and one for all other threads: a cache line that several cores write to moves between
/// them each time, which takes longer than most of what is done with it.
#[derive(Debug)]
pub struct PerWorker<T>(Box<[Aligned<T>]>);

/// On cache lines of its own, of which processors fetch two at a time.
#[derive(Debug)]
#[repr(align(128))]
struct Aligned<T>(T);

impl<T> PerWorker<T> {
    /// One value for each core, and one more.
    pub fn new(make: impl FnMut() -> T) -> Self {
        Self(std::iter::repeat_with(make).map(Aligned).take(cores() + 1).collect())
    }

    /// This thread's value.
    pub fn here(&self) -> &T {
        self.of(self.place())
    }

    /// Where this thread's value is.
    pub fn place(&self) -> usize {
        current().min(self.0.len() - 1)
    }

    /// The value at a place.
    pub fn of(&self, place: usize) -> &T {
        &self.0[place].0
    }

    /// All values.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|own| &own.0)
    }
}

impl<T: Default> Default for PerWorker<T> {
    fn default() -> Self {
        Self::new(T::default)
    }
}

/// Yields once to everything else that is ready on this worker. What is sent to another process may have to wake it,
/// which costs more than sending: several requests in a row, or several responses in a row, wake it once.
///
/// tokio's `yield_now` polls the system for events first, which is a system call and no better.
pub async fn yield_to_ready() {
    let mut has_passed = false;
    poll_fn(|context| {
        if has_passed {
            return Poll::Ready(());
        }
        has_passed = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Runtimes on threads of their own. They end on drop, with everything that still runs on them.
pub struct Workers {
    handles: Vec<Handle>,
    next: AtomicUsize,
    _running: Vec<oneshot::Sender<()>>,
}

impl Workers {
    /// Starts this many workers; zero is allowed.
    ///
    /// # Errors
    /// If the system cannot create a thread, or has no file descriptors for its runtime.
    pub fn start(count: usize) -> io::Result<Self> {
        let mut handles = Vec::with_capacity(count);
        let mut running = Vec::with_capacity(count);
        for number in 1..=count {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            handles.push(runtime.handle().clone());
            let (sender, ended) = oneshot::channel::<()>();
            running.push(sender);
            thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
                CURRENT.set(number);
                // Nothing is ever sent: dropping the sender is the signal.
                let _ = runtime.block_on(ended);
                runtime.shutdown_background();
            })?;
        }
        Ok(Self { handles, next: AtomicUsize::new(0), _running: running })
    }

    /// The runtime for the next connection, round robin; the caller's own if there are no workers.
    pub fn next(&self) -> Handle {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        match self.handles.len() {
            0 => Handle::current(),
            count => self.handles[turn % count].clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn work_is_spread_round_robin_and_knows_its_worker() {
        let workers = Workers::start(2).unwrap();
        let here = Builder::new_current_thread().build().unwrap();
        let places: Vec<usize> =
            (0..4).map(|_| here.block_on(workers.next().spawn(async { current() })).unwrap()).collect();
        assert_eq!(places, [1, 2, 1, 2]);
        assert_eq!(current(), 0);
    }

    #[test]
    fn each_worker_has_a_value_and_all_other_threads_share_one() {
        let workers = Workers::start(1).unwrap();
        let mut made = 0;
        let each = PerWorker::new(|| {
            made += 1;
            made
        });
        let here = Builder::new_current_thread().build().unwrap();
        assert_eq!(*each.here(), 1);
        let (each, there) = here
            .block_on(workers.next().spawn(async move {
                let there = *each.here();
                (each, there)
            }))
            .unwrap();
        assert_eq!((there, *each.here()), (2, 1));
        assert_eq!(made, cores() + 1);
    }

    #[test]
    fn a_task_that_yields_continues_after_what_is_ready() {
        let steps = Arc::new(Mutex::new(Vec::new()));
        let step = |name| {
            let steps = steps.clone();
            move || steps.lock().unwrap().push(name)
        };
        let (begun, other, done) = (step("begun"), step("other"), step("done"));
        Builder::new_current_thread().build().unwrap().block_on(async {
            let passing = tokio::spawn(async move {
                begun();
                yield_to_ready().await;
                done();
            });
            tokio::spawn(async move { other() }).await.unwrap();
            passing.await.unwrap();
        });
        assert_eq!(*steps.lock().unwrap(), ["begun", "other", "done"]);
    }

    #[test]
    fn without_workers_work_stays_where_it_is() {
        let here = Builder::new_current_thread().build().unwrap();
        let place = here.block_on(async {
            let workers = Workers::start(0).unwrap();
            workers.next().spawn(async { thread::current().id() }).await.unwrap()
        });
        assert_eq!(place, thread::current().id());
    }

    #[test]
    fn what_runs_on_a_worker_ends_with_it() {
        let workers = Workers::start(1).unwrap();
        let (sender, receiver) = oneshot::channel::<()>();
        workers.next().spawn(async move {
            let _held = sender;
            std::future::pending::<()>().await;
        });
        drop(workers);
        assert!(Builder::new_current_thread().build().unwrap().block_on(receiver).is_err());
    }
}
