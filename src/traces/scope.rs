//! The span that a thread is working in, so that what begins deep inside, such as a call to a model, becomes its child.
//!
//! As [`crate::log_scope`] is for the log; apart from it, as the parts of a verification that run side by side have spans
//! of their own.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::span::{Parent, Span};

thread_local! {
    static CURRENT: Cell<Parent> = const { Cell::new(Parent::none()) };
}

/// The span that this thread is in.
pub fn current() -> Parent {
    let current = CURRENT.take();
    CURRENT.set(current.clone());
    current
}

pin_project! {
    /// A future that is polled inside a span, which ends with it.
    pub struct InSpan<F, J> {
        // First, so that it is dropped before the span ends.
        #[pin]
        work: F,
        judge: J,
        span: Span,
    }
}

/// Puts the outer span back, even if what ran in the inner one has panicked.
struct Entered(Parent);

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(std::mem::take(&mut self.0));
    }
}

impl Span {
    /// `work`, inside this span whenever it is polled; in the end, `judge` tells the span what became of it.
    pub const fn around<F: Future, J: Fn(&F::Output, &mut Self)>(self, work: F, judge: J) -> InSpan<F, J> {
        InSpan { work, judge, span: self }
    }
}

impl<F: Future, J: Fn(&F::Output, &mut Span)> Future for InSpan<F, J> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if this.span.is_none() {
            return this.work.poll(context);
        }
        let entered = Entered(CURRENT.replace(this.span.as_parent()));
        let output = ready!(this.work.poll(context));
        drop(entered);
        (this.judge)(&output, this.span);
        drop(std::mem::take(this.span));
        Poll::Ready(output)
    }
}
