//! Whoever waits for a connection, as the connection knows it.
//!
//! Taking a piece of an answer makes room for the next one, of which the connection tells whoever polled it last. That
//! is the one who takes, who comes back by himself when he wants more: he would be woken for each piece that he has just
//! taken, and find nothing. So a wake-up is held back while a piece is taken. What must hold: none is lost on who goes
//! on to wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// The one who waits, if there is one.
#[derive(Debug)]
pub(super) struct Waiting {
    shared: Arc<Shared>,
    /// What the connection wakes.
    waker: Waker,
}

#[derive(Debug, Default)]
struct Shared {
    task: AtomicWaker,
    is_taking: AtomicBool,
    was_called: AtomicBool,
}

impl Default for Waiting {
    fn default() -> Self {
        let shared = Arc::<Shared>::default();
        Self { waker: shared.clone().into(), shared }
    }
}

impl Waiting {
    /// Polls the connection for the task of `context`.
    pub(super) fn poll_for<T>(
        &self,
        context: &Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.shared.task.register(context.waker());
        poll(&mut Context::from_waker(&self.waker))
    }

    /// Takes what there is. Whoever gets something is not woken for what happened meanwhile, as he looks again anyway.
    pub(super) fn undisturbed<T>(&self, take: impl FnOnce() -> Poll<T>) -> Poll<T> {
        let Shared { task, is_taking, was_called } = &*self.shared;
        is_taking.store(true, Ordering::SeqCst);
        let taken = take();
        is_taking.store(false, Ordering::SeqCst);
        if was_called.swap(false, Ordering::SeqCst) && taken.is_pending() {
            task.wake();
        }
        taken
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_taking.load(Ordering::SeqCst) {
            return self.task.wake();
        }
        self.was_called.store(true, Ordering::SeqCst);
        // The taking may have ended in between, and then nobody asks for it.
        if !self.is_taking.load(Ordering::SeqCst) && self.was_called.swap(false, Ordering::SeqCst) {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn only_who_takes_something_is_not_woken_for_it() {
        let (count, waiting) = (Arc::<Count>::default(), Waiting::default());
        let task = Waker::from(count.clone());
        let mut known = None;
        let poll = |context: &mut Context<'_>| {
            known = Some(context.waker().clone());
            Poll::<()>::Pending
        };
        assert!(waiting.poll_for(&Context::from_waker(&task), poll).is_pending());
        let known = known.unwrap();
        let woken = || count.0.swap(0, Ordering::SeqCst);
        let taking = |outcome: Poll<()>| {
            waiting.undisturbed(|| {
                known.wake_by_ref();
                outcome
            })
        };

        assert!(taking(Poll::Ready(())).is_ready());
        assert_eq!(woken(), 0, "he comes back by himself");
        // Each wake-up of a task needs it to have been polled again.
        assert!(taking(Poll::Pending).is_pending());
        assert_eq!(woken(), 1, "he goes on to wait");
        assert!(waiting.poll_for(&Context::from_waker(&task), |_| Poll::<()>::Pending).is_pending());
        known.wake_by_ref();
        assert_eq!(woken(), 1);
    }
}
