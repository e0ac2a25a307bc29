//! A small, fixed pool of threads for work that blocks or takes much memory.
//!
//! The allocator keeps, for each thread, the peak that the thread ever took. If the console's jobs ran on the runtimes'
//! blocking pools, each of their threads would end up holding as much as the largest report takes, and for hours. So
//! they run on a few dedicated threads instead.
//!
//! What must hold: no more jobs run at once than there are threads; jobs run in the order they came; a job that nobody
//! waits for any more when its turn comes is not run; a panic ends only its own job. A job never waits for another one
//! of the same pool: reads and writes have separate pools, as a database may be locked for long. What notices revocations
//! does not run here, nor what requests to real providers need; simulated models do.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{io, thread};

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::lock::Lock;

type Job = Box<dyn FnOnce() + Send>;

/// A pool of threads, which start with the first job and end when the pool is dropped.
pub(crate) struct ThreadPool {
    name: &'static str,
    count: usize,
    queue_timeout: Duration,
    queue: Mutex<Option<Sender<Job>>>,
}

impl ThreadPool {
    /// A pool of `count` threads of this name. A job that does not start within `queue_timeout` is given up.
    pub(crate) const fn new(name: &'static str, count: usize, queue_timeout: Duration) -> Self {
        Self { name, count, queue_timeout, queue: Mutex::new(None) }
    }

    /// Runs a job when it is its turn, and returns its result.
    ///
    /// # Errors
    /// If it did not start in time, in which case it is not run; if there is no thread for it, or it panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (started, mut has_started) = oneshot::channel();
        let (sender, result) = oneshot::channel();
        self.enqueue(Box::new(move || {
            // Fails if the caller has left or given up meanwhile.
            if started.send(()).is_ok() {
                let _ = sender.send(job());
            }
        }))?;
        if timeout(self.queue_timeout, &mut has_started).await.is_err() {
            has_started.close();
            // It may have started since.
            has_started.try_recv().map_err(|_| {
                io::Error::new(io::ErrorKind::TimedOut, "what came before goes on for too long")
            })?;
        }
        result.await.map_err(|_| io::Error::other("it panicked"))
    }

    fn enqueue(&self, job: Job) -> io::Result<()> {
        let mut queue = self.queue.locked();
        let sender = match queue.take() {
            Some(sender) => sender,
            None => self.start()?,
        };
        let sent = queue.insert(sender).send(job);
        sent.map_err(|_| io::Error::other("its threads have ended"))
    }

    /// Starts the threads. If one of them cannot be started, those before it end by themselves, as their sender is
    /// gone.
    fn start(&self) -> io::Result<Sender<Job>> {
        let (sender, jobs) = channel();
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..self.count {
            let jobs = jobs.clone();
            thread::Builder::new().name(self.name.to_owned()).spawn(move || run_jobs(&jobs))?;
        }
        Ok(sender)
    }
}

fn run_jobs(jobs: &Mutex<Receiver<Job>>) {
    loop {
        // The thread that waits for a job holds the lock, and releases it before it runs the job.
        let next = jobs.locked().recv();
        let Ok(job) = next else { return };
        // A panic leaves no state behind that could be inconsistent; it has been logged already.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn all_jobs_run_on_one_thread_and_never_two_at_once() {
        let (pool, busy) =
            (Arc::new(ThreadPool::new("pool", 1, Duration::MAX)), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..40)
            .map(|number| {
                let (pool, busy) = (pool.clone(), busy.clone());
                tokio::spawn(async move {
                    let work = move || {
                        let others = busy.fetch_add(1, Ordering::SeqCst);
                        thread::yield_now();
                        busy.fetch_sub(1, Ordering::SeqCst);
                        (number, others, thread::current().id())
                    };
                    pool.run(work).await.unwrap()
                })
            })
            .collect();
        let mut threads = Vec::new();
        for (number, task) in tasks.into_iter().enumerate() {
            let (made, others, thread) = task.await.unwrap();
            assert_eq!((made, others), (number, 0));
            threads.push(thread);
        }
        threads.dedup();
        assert_eq!(threads.len(), 1);
    }

    #[tokio::test]
    async fn a_panic_ends_only_its_own_job() {
        let pool = ThreadPool::new("pool", 1, Duration::MAX);
        assert!(pool.run(|| -> u8 { panic!("on purpose") }).await.is_err());
        assert_eq!(pool.run(|| 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_job_that_nobody_waits_for_is_not_run() {
        let (pool, made) = (ThreadPool::new("pool", 1, Duration::MAX), Arc::new(AtomicUsize::new(0)));
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (started, has_started) = oneshot::channel();
        let first = pool.run(move || {
            let _ = started.send(());
            wait.recv().is_ok()
        });
        let second = {
            let made = made.clone();
            pool.run(move || made.fetch_add(1, Ordering::SeqCst))
        };
        let mut first = Box::pin(first);
        tokio::select! {
            _ = &mut first => unreachable!("it waits"),
            _ = has_started => {}
        }
        let mut second = Box::pin(second);
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(second);
        go.send(()).unwrap();
        assert!(first.await.unwrap());
        pool.run(|| ()).await.unwrap();
        assert_eq!(made.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn a_job_that_waits_too_long_is_given_up_and_one_that_has_started_is_not() {
        let (pool, made) =
            (ThreadPool::new("pool", 1, Duration::from_secs(10)), Arc::new(AtomicUsize::new(0)));
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (started, has_started) = oneshot::channel();
        let first = pool.run(move || {
            let _ = started.send(());
            wait.recv().is_ok()
        });
        let second = async {
            has_started.await.unwrap();
            // Not earlier: paused time advances by itself while the runtime only waits for a thread.
            tokio::time::pause();
            let made = made.clone();
            let late = pool.run(move || made.fetch_add(1, Ordering::SeqCst)).await;
            tokio::time::resume();
            go.send(()).unwrap();
            late
        };
        let (first, second) = tokio::join!(first, second);
        assert!(first.unwrap());
        assert_eq!(second.unwrap_err().kind(), io::ErrorKind::TimedOut);
        pool.run(|| ()).await.unwrap();
        assert_eq!(made.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn several_jobs_run_at_once() {
        let thread_pool = ThreadPool::new("pool", 2, Duration::MAX);
        let barrier = Arc::new(std::sync::Barrier::new(2));
        let meet = || {
            let barrier = barrier.clone();
            thread_pool.run(move || barrier.wait().is_leader())
        };
        let (one, other) = tokio::join!(meet(), meet());
        assert_ne!(one.unwrap(), other.unwrap());
    }
}
