//! A future that is polled only when it has been woken itself, whatever its task is woken for.
//!
//! A task that waits for several things polls all of them whenever one of them moves. What waits for the end of a
//! connection was so polled at each step of each request, and registered its waker with a timer or a list each time: a
//! tenth of all that a short answer takes outside the kernel.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Polls a future once, and then only when it has been woken.
pub(crate) struct PollOnWake<F> {
    wait: F,
    bell: Arc<Bell>,
    /// What rings the bell.
    waker: Waker,
    /// Whom the bell wakes.
    told: Option<Waker>,
}

/// The future's waker. `has_rung` is set before the task is woken, and the task's own waker stays: a poll that sees the
/// flag before the task was woken takes no later wake-up away.
struct Bell {
    task: Mutex<Option<Waker>>,
    has_rung: AtomicBool,
}

impl<F: Future + Unpin> PollOnWake<F> {
    pub(crate) fn new(wait: F) -> Self {
        // It has not been polled yet.
        let bell = Arc::new(Bell { task: Mutex::new(None), has_rung: AtomicBool::new(true) });
        Self { wait, waker: bell.clone().into(), bell, told: None }
    }
}

impl<F: Future + Unpin> Future for PollOnWake<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        if this.told.as_ref().is_none_or(|told| !told.will_wake(context.waker())) {
            *this.bell.task() = Some(context.waker().clone());
            this.told = Some(context.waker().clone());
        }
        // What rings behind this look wakes the task.
        if !this.bell.has_rung.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        this.bell.has_rung.swap(false, Ordering::AcqRel);
        Pin::new(&mut this.wait).poll(&mut Context::from_waker(&this.waker))
    }
}

impl Bell {
    /// Also after a panic elsewhere: it is set whole.
    fn task(&self) -> MutexGuard<'_, Option<Waker>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.has_rung.store(true, Ordering::Release);
        let task = self.task().clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::Notify;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn task() -> (Arc<Count>, Waker) {
        let count = Arc::<Count>::default();
        (count.clone(), count.into())
    }

    #[test]
    fn it_is_polled_once_and_when_it_was_woken() {
        let notify = Notify::new();
        let mut notified = std::pin::pin!(notify.notified());
        let mut polls = 0;
        let (count, waker) = task();
        let mut polled = PollOnWake::new(poll_fn(|context| {
            polls += 1;
            notified.as_mut().poll(context)
        }));
        let mut poll = || Pin::new(&mut polled).poll(&mut Context::from_waker(&waker));
        for _ in 0..3 {
            assert!(poll().is_pending());
        }
        notify.notify_waiters();
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert!(poll().is_ready());
        assert_eq!(polls, 2);
    }

    #[test]
    fn whoever_polled_last_is_woken_each_time() {
        let (wake, waits) = (futures_util::task::AtomicWaker::new(), AtomicUsize::new(0));
        let mut polled = PollOnWake::new(poll_fn(|context| {
            waits.fetch_add(1, Ordering::SeqCst);
            wake.register(context.waker());
            Poll::<()>::Pending
        }));
        let ((first, its), (second, other)) = (task(), task());
        let woken = || (first.0.swap(0, Ordering::SeqCst), second.0.swap(0, Ordering::SeqCst));
        for (waker, expected) in
            [(&its, (1, 0)), (&its, (1, 0)), (&other, (0, 1)), (&other, (0, 1)), (&its, (1, 0))]
        {
            assert!(Pin::new(&mut polled).poll(&mut Context::from_waker(waker)).is_pending());
            wake.wake();
            assert_eq!(woken(), expected);
        }
        assert_eq!(waits.load(Ordering::SeqCst), 5);
    }

    #[test]
    fn a_ring_that_is_seen_before_it_is_heard_takes_nothing_from_the_next() {
        for _ in 0..2_000 {
            let (bell, polls) = (Mutex::<Option<Waker>>::default(), AtomicUsize::new(0));
            let (count, waker) = task();
            let mut polled = PollOnWake::new(poll_fn(|context| {
                polls.fetch_add(1, Ordering::SeqCst);
                *bell.lock().unwrap() = Some(context.waker().clone());
                Poll::<()>::Pending
            }));
            let mut poll =
                || assert!(Pin::new(&mut polled).poll(&mut Context::from_waker(&waker)).is_pending());
            poll();
            let ring = bell.lock().unwrap().clone().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| ring.wake_by_ref());
                while polls.load(Ordering::SeqCst) < 2 {
                    poll();
                }
            });
            poll();
            let before = count.0.load(Ordering::SeqCst);
            ring.wake_by_ref();
            assert_eq!(count.0.load(Ordering::SeqCst), before + 1);
        }
    }

    #[test]
    fn a_future_that_wakes_itself_is_polled_again() {
        let mut left = 3;
        let polled = PollOnWake::new(poll_fn(|context| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        futures_util::FutureExt::now_or_never(async {
            let mut polled = polled;
            while poll_fn(|context| Poll::Ready(Pin::new(&mut polled).poll(context).is_pending())).await {}
        })
        .unwrap();
    }
}
