//! The one thread that makes reports.
//!
//! A report takes memory that grows with what it is made of: sums to sort, rows, the text of the answer. Made wherever
//! a thread is free, it takes that on every such thread, and the allocator keeps for each what it took at most: a server
//! whose reports grow, grows by that many times as much. What must hold: at most one report is in the making, and
//! always on the same thread; one whose caller has left before its turn is not made; a report that panics is the end of
//! itself alone.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use tokio::sync::oneshot;

type Work = Box<dyn FnOnce() + Send>;

/// Makes reports, one after the other. Its thread begins with the first and ends when this is dropped.
#[derive(Default)]
pub(crate) struct Clerk(Mutex<Option<Sender<Work>>>);

impl Clerk {
    /// What `work` makes, when it is its turn.
    ///
    /// # Errors
    /// If there is no thread for it, or it panicked.
    pub(crate) async fn make<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (made, wanted) = oneshot::channel();
        self.hand_over(Box::new(move || {
            if !made.is_closed() {
                // Whoever has left meanwhile needs it no more.
                let _ = made.send(work());
            }
        }))?;
        wanted.await.map_err(|_| io::Error::other("it panicked"))
    }

    fn hand_over(&self, work: Work) -> io::Result<()> {
        let mut thread = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = match thread.take() {
            Some(sender) => sender,
            None => begin()?,
        };
        let sent = thread.insert(sender).send(work);
        sent.map_err(|_| io::Error::other("its thread has ended"))
    }
}

fn begin() -> io::Result<Sender<Work>> {
    let (sender, works) = channel::<Work>();
    thread::Builder::new().name("reports".to_owned()).spawn(move || {
        for work in works {
            // Nothing outlives it that it could have left half done; the panic itself has been logged.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
    })?;
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn all_is_made_on_one_thread_and_never_two_at_once() {
        let (clerk, busy) = (Arc::new(Clerk::default()), Arc::new(AtomicUsize::new(0)));
        let asked: Vec<_> = (0..40)
            .map(|number| {
                let (clerk, busy) = (clerk.clone(), busy.clone());
                tokio::spawn(async move {
                    let work = move || {
                        let others = busy.fetch_add(1, Ordering::SeqCst);
                        thread::yield_now();
                        busy.fetch_sub(1, Ordering::SeqCst);
                        (number, others, thread::current().id())
                    };
                    clerk.make(work).await.unwrap()
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
        let clerk = Clerk::default();
        assert!(clerk.make(|| -> u8 { panic!("on purpose") }).await.is_err());
        assert_eq!(clerk.make(|| 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_not_made() {
        let (clerk, made) = (Clerk::default(), Arc::new(AtomicUsize::new(0)));
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        let first = clerk.make(move || {
            let _ = begun.send(());
            wait.recv().is_ok()
        });
        let second = {
            let made = made.clone();
            clerk.make(move || made.fetch_add(1, Ordering::SeqCst))
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
        clerk.make(|| ()).await.unwrap();
        assert_eq!(made.load(Ordering::SeqCst), 0);
    }
}
