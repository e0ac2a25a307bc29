//! The request that a thread is working on, so that every line it logs can name that request.
//!
//! A span of `tracing` is for this too, but it is registered and unregistered for each request, and entered and left at
//! each step of it: 2 % more instructions for a completion, 5 % for a refusal and 7 % for a health page (28 November
//! 2026), most of which log a single line. This is an identifier in a place that the log looks at (`cli/process/log`).
//!
//! What must hold: whatever polls or drops the work of a request, in whichever task, does so inside its scope; nothing
//! else does.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

thread_local! {
    static CURRENT: Cell<Option<Arc<str>>> = const { Cell::new(None) };
}

/// What lines are about: a request, or nothing in particular.
#[derive(Clone, Debug, Default)]
pub struct LogScope(Option<Arc<str>>);

pin_project! {
    /// A future that is polled and dropped inside a scope.
    #[derive(Debug)]
    pub struct Scoped<F> {
        scope: LogScope,
        // There until it is dropped.
        #[pin]
        work: Option<F>,
    }

    impl<F> PinnedDrop for Scoped<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            this.scope.run(|| this.work.set(None));
        }
    }
}

/// Puts the outer scope back, even if what ran in the inner one has panicked.
struct Entered<'a> {
    scope: &'a mut LogScope,
    outer: Option<Arc<str>>,
}

impl LogScope {
    /// That of the request with this id.
    pub const fn of_request(id: Arc<str>) -> Self {
        Self(Some(id))
    }

    /// The one that this thread is in.
    pub fn current() -> Self {
        let current = CURRENT.take();
        CURRENT.set(current.clone());
        Self(current)
    }

    /// The id of the request, if it is about one.
    pub fn request_id(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Runs `work` inside it.
    pub fn run<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let _entered = Entered { outer: CURRENT.replace(self.0.take()), scope: self };
        work()
    }

    /// `work`, inside it whenever it is polled, and when it is dropped.
    pub const fn around<F>(self, work: F) -> Scoped<F> {
        Scoped { scope: self, work: Some(work) }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.scope.0 = CURRENT.replace(self.outer.take());
    }
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.scope.run(|| this.work.as_pin_mut().map_or(Poll::Pending, |work| work.poll(context)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn current() -> Option<String> {
        LogScope::current().request_id().map(str::to_owned)
    }

    fn scope(id: &str) -> LogScope {
        LogScope::of_request(id.into())
    }

    #[test]
    fn scopes_are_left_as_they_were_entered_even_by_a_panic() {
        let mut outer = scope("req_1");
        outer.run(|| {
            scope("req_2").run(|| assert_eq!(current().as_deref(), Some("req_2")));
            let mut inner = scope("req_3");
            let broken =
                std::panic::AssertUnwindSafe(|| inner.run(|| std::panic::resume_unwind(Box::new(()))));
            assert!(std::panic::catch_unwind(broken).is_err());
            assert_eq!((current().as_deref(), inner.request_id()), (Some("req_1"), Some("req_3")));
            LogScope::default().run(|| assert_eq!(current(), None));
        });
        assert_eq!((current(), outer.request_id()), (None, Some("req_1")));
    }

    #[test]
    fn work_that_is_given_up_is_dropped_inside_its_scope() {
        struct Dropped<'a>(&'a Cell<Option<String>>);

        impl Drop for Dropped<'_> {
            fn drop(&mut self) {
                self.0.set(current());
            }
        }

        let seen = Cell::new(None);
        let dropped = Dropped(&seen);
        drop(scope("req_1").around(async move {
            let _dropped = dropped;
            std::future::pending::<()>().await;
        }));
        assert_eq!((seen.take().as_deref(), current()), (Some("req_1"), None));
    }

    #[tokio::test]
    async fn futures_that_take_turns_are_each_in_their_own_scope() {
        let steps = |id: &'static str| {
            scope(id).around(async move {
                for _ in 0..3 {
                    assert_eq!(current().as_deref(), Some(id));
                    tokio::task::yield_now().await;
                }
                current()
            })
        };
        let (first, second, none) = tokio::join!(steps("req_1"), steps("req_2"), async { current() });
        assert_eq!((first.as_deref(), second.as_deref(), none), (Some("req_1"), Some("req_2"), None));
    }
}
