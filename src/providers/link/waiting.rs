//! Whoever waits for a connection, as the connection knows it.
//!
//! Taking a piece of an answer makes room for the next one, of which the connection tells whoever polled it last. That
//! is the one who takes, who comes back by himself when he wants more: he would be woken for each piece that he has just
//! taken, and find nothing. So nobody is woken while a piece is taken; it is only noted that the connection has something
//! to do. And one that has not is not polled again, however often somebody looks for a piece. What must hold: no wake-up
//! is lost on who goes on to wait.

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
    /// Whether the connection has been woken since it was polled last.
    is_due: AtomicBool,
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
        self.shared.is_due.store(false, Ordering::SeqCst);
        poll(&mut Context::from_waker(&self.waker))
    }

    /// The same of a connection that was pending when it was polled last, if it has something to do since.
    pub(super) fn poll_if_due<T>(
        &self,
        context: &Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        // Before the look, so that whoever wakes the connection behind it wakes the right one.
        self.shared.task.register(context.waker());
        if self.shared.is_due.load(Ordering::SeqCst) { self.poll_for(context, poll) } else { Poll::Pending }
    }

    /// Takes what there is, woken by none of it.
    pub(super) fn undisturbed<T>(&self, take: impl FnOnce() -> T) -> T {
        self.shared.is_taking.store(true, Ordering::SeqCst);
        let taken = take();
        self.shared.is_taking.store(false, Ordering::SeqCst);
        taken
    }

    /// Nobody waits any more; the one who did is let go.
    pub(super) fn is_over(&self) {
        drop(self.shared.task.take());
    }

    /// To be asked by whoever has got nothing, last of all: what was held back meanwhile wakes him.
    pub(super) fn goes_on(&self) {
        if self.shared.is_due.load(Ordering::SeqCst) {
            self.shared.task.wake();
        }
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_due.store(true, Ordering::SeqCst);
        // Whoever takes just now comes back, or looks for it before he goes on to wait.
        if !self.is_taking.load(Ordering::SeqCst) {
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

    /// A waker as a connection gets it, and how often it has woken the task.
    fn known(waiting: &Waiting, task: &Waker) -> Waker {
        let mut known = None;
        let poll = |context: &mut Context<'_>| {
            known = Some(context.waker().clone());
            Poll::<()>::Pending
        };
        assert!(waiting.poll_for(&Context::from_waker(task), poll).is_pending());
        known.unwrap()
    }

    #[test]
    fn only_who_takes_something_is_not_woken_for_it() {
        let (count, waiting) = (Arc::<Count>::default(), Waiting::default());
        let task = Waker::from(count.clone());
        let woken = || count.0.swap(0, Ordering::SeqCst);

        let connection = known(&waiting, &task);
        waiting.undisturbed(|| connection.wake_by_ref());
        assert_eq!(woken(), 0, "he may have got something, and comes back");
        waiting.goes_on();
        assert_eq!(woken(), 1, "he has got nothing");

        let connection = known(&waiting, &task);
        waiting.goes_on();
        assert_eq!(woken(), 0);
        connection.wake_by_ref();
        assert_eq!(woken(), 1);
    }

    #[test]
    fn a_connection_is_polled_when_it_has_something_to_do() {
        let (count, waiting) = (Arc::<Count>::default(), Waiting::default());
        let task = Waker::from(count.clone());
        let connection = known(&waiting, &task);
        let mut polls = 0;
        let mut look = || {
            polls = 0;
            let _ = waiting.poll_if_due(&Context::from_waker(&task), |_| {
                polls += 1;
                Poll::<()>::Pending
            });
            polls
        };
        assert_eq!(look(), 0);
        connection.wake_by_ref();
        assert_eq!((look(), look()), (1, 0));
        waiting.undisturbed(|| connection.wake_by_ref());
        assert_eq!((look(), look()), (1, 0));
    }

    #[test]
    fn who_waits_no_more_is_let_go() {
        let (count, waiting) = (Arc::<Count>::default(), Waiting::default());
        let connection = known(&waiting, &Waker::from(count.clone()));
        assert_eq!(Arc::strong_count(&count), 2);
        waiting.is_over();
        assert_eq!(Arc::strong_count(&count), 1, "kept for as long as the connection");
        connection.wake_by_ref();
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn who_looks_last_is_the_one_who_is_woken() {
        let (first, second) = (Arc::<Count>::default(), Arc::<Count>::default());
        let waiting = Waiting::default();
        let connection = known(&waiting, &Waker::from(first.clone()));
        let poll = |_: &mut Context<'_>| Poll::<()>::Pending;
        assert!(waiting.poll_if_due(&Context::from_waker(&Waker::from(second.clone())), poll).is_pending());
        connection.wake_by_ref();
        assert_eq!((first.0.load(Ordering::SeqCst), second.0.load(Ordering::SeqCst)), (0, 1));
    }
}
