//! Threads of their own for what blocks or takes much memory: few, and always the same.
//!
//! The allocator keeps for each thread the most that the thread ever took. If the console's work ran on the runtimes'
//! pools of blocking threads, each of those would come to hold as much as the largest report takes, and would for hours.
//! So it runs on a few threads of this kind instead.
//!
//! What must hold: no more runs at once than there are threads; who comes first is served first; what nobody waits for
//! any more when its turn comes is not run; a panic ends its own work alone. Work never waits for other work of the same
//! pool: what reads and what writes have pools of their own, as a database may be locked for long. What requests to
//! models need, and what notices revocations, does not come here.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

type Work = Box<dyn FnOnce() + Send>;

/// Some threads. They begin with the first work and end when this is dropped.
pub(crate) struct ThreadPool {
    name: &'static str,
    count: usize,
    patience: Duration,
    inbox: Mutex<Option<Sender<Work>>>,
}

impl ThreadPool {
    /// So many on threads of this name. Work whose turn does not come within `patience` is given up.
    pub(crate) const fn new(name: &'static str, count: usize, patience: Duration) -> Self {
        Self { name, count, patience, inbox: Mutex::new(None) }
    }

    /// What `work` comes to, when it is its turn.
    ///
    /// # Errors
    /// If its turn has not come in time: then it is not run. If there is no thread for it, or it panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (begun, mut has_begun) = oneshot::channel();
        let (made, wanted) = oneshot::channel();
        self.hand_over(Box::new(move || {
            // Whoever has left or given up meanwhile needs it no more.
            if begun.send(()).is_ok() {
                let _ = made.send(work());
            }
        }))?;
        if timeout(self.patience, &mut has_begun).await.is_err() {
            has_begun.close();
            // It may have begun since.
            has_begun.try_recv().map_err(|_| {
                io::Error::new(io::ErrorKind::TimedOut, "what came before goes on for too long")
            })?;
        }
        wanted.await.map_err(|_| io::Error::other("it panicked"))
    }

    fn hand_over(&self, work: Work) -> io::Result<()> {
        let mut inbox = lock(&self.inbox);
        let sender = match inbox.take() {
            Some(sender) => sender,
            None => self.begin()?,
        };
        let sent = inbox.insert(sender).send(work);
        sent.map_err(|_| io::Error::other("its threads have ended"))
    }

    /// Those that have begun end by themselves if a further thread cannot: nobody can send them anything then.
    fn begin(&self) -> io::Result<Sender<Work>> {
        let (sender, works) = channel();
        let works = Arc::new(Mutex::new(works));
        for _ in 0..self.count {
            let works = works.clone();
            thread::Builder::new().name(self.name.to_owned()).spawn(move || work_off(&works))?;
        }
        Ok(sender)
    }
}

fn work_off(works: &Mutex<Receiver<Work>>) {
    loop {
        // Whoever waits for work has the lock, and gives it away before it begins with what it got.
        let next = lock(works).recv();
        let Ok(work) = next else { return };
        // Nothing outlives it that it could have left half done; the panic itself has been logged.
        let _ = catch_unwind(AssertUnwindSafe(work));
    }
}

/// Nothing can be half done under these locks, also after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn all_is_made_on_one_thread_and_never_two_at_once() {
        let (pool, busy) =
            (Arc::new(ThreadPool::new("pool", 1, Duration::MAX)), Arc::new(AtomicUsize::new(0)));
        let asked: Vec<_> = (0..40)
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
        for (number, asked) in asked.into_iter().enumerate() {
            let (made, others, thread) = asked.await.unwrap();
            assert_eq!((made, others), (number, 0));
            threads.push(thread);
        }
        threads.dedup();
        assert_eq!(threads.len(), 1);
    }

    #[tokio::test]
    async fn a_panic_ends_nothing_but_its_own() {
        let pool = ThreadPool::new("pool", 1, Duration::MAX);
        assert!(pool.run(|| -> u8 { panic!("on purpose") }).await.is_err());
        assert_eq!(pool.run(|| 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_not_made() {
        let (pool, made) = (ThreadPool::new("pool", 1, Duration::MAX), Arc::new(AtomicUsize::new(0)));
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        let first = pool.run(move || {
            let _ = begun.send(());
            wait.recv().is_ok()
        });
        let second = {
            let made = made.clone();
            pool.run(move || made.fetch_add(1, Ordering::SeqCst))
        };
        let mut first = Box::pin(first);
        tokio::select! {
            _ = &mut first => unreachable!("it waits"),
            _ = has_begun => {}
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
    async fn what_waits_too_long_for_its_turn_is_given_up_and_what_has_begun_is_not() {
        let (pool, made) =
            (ThreadPool::new("pool", 1, Duration::from_secs(10)), Arc::new(AtomicUsize::new(0)));
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        let first = pool.run(move || {
            let _ = begun.send(());
            wait.recv().is_ok()
        });
        let second = async {
            has_begun.await.unwrap();
            // Not before: time that stands still runs ahead where only a thread is waited for.
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
    async fn several_work_at_once() {
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
