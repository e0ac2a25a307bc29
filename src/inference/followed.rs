//! A call that is paid for by a budget: if it is dropped before its end, because its caller left, it goes on until the
//! provider has said what it used.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;

use crate::money::Usage;
use crate::providers::{Answer, CompletionResponse, CompletionStream, FailedCall};
use crate::usage::Attempt;

/// A future that owns all that it needs.
type Owned<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What can be read on for its usage.
pub(super) trait ReadOn: Send + 'static {
    /// What was used, once that is known; `None` if it never will be.
    fn usage(self) -> impl Future<Output = Option<Usage>> + Send;
}

/// A call and its attempt. The future resolves to both; dropped before that, the attempt is booked late.
pub(super) struct Followed<T: ReadOn> {
    /// `None` once it is over.
    attempt: Option<Attempt>,
    call: Option<Owned<Result<T, FailedCall>>>,
}

impl<T: ReadOn> Followed<T> {
    /// A call that has not begun.
    pub(super) fn new(
        attempt: Attempt,
        call: impl Future<Output = Result<T, FailedCall>> + Send + 'static,
    ) -> Self {
        Self { attempt: Some(attempt), call: Some(Box::pin(call)) }
    }

    /// Ends the call at once; returns its attempt, unless it is over.
    pub(super) fn abort(mut self) -> Option<Attempt> {
        self.call = None;
        self.attempt.take()
    }
}

impl<T: ReadOn> Future for Followed<T> {
    type Output = (Option<Attempt>, Result<T, FailedCall>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(call) = &mut self.call else { return Poll::Pending };
        let result = ready!(call.as_mut().poll(context));
        self.call = None;
        Poll::Ready((self.attempt.take(), result))
    }
}

impl<T: ReadOn> Drop for Followed<T> {
    fn drop(&mut self) {
        let Some((attempt, call)) = self.attempt.take().zip(self.call.take()) else { return };
        attempt.follow(async move {
            match call.await {
                Ok(answer) => answer.usage().await,
                Err(FailedCall { failure, usage }) => {
                    let unused = (!failure.may_have_cost()).then(Usage::default);
                    usage.map(Usage::reported).or(unused)
                }
            }
        });
    }
}

impl ReadOn for CompletionResponse {
    async fn usage(self) -> Option<Usage> {
        Some(self.usage)
    }
}

impl ReadOn for Answer {
    async fn usage(self) -> Option<Usage> {
        self.usage.map(|tokens| Usage::reported(*tokens))
    }
}

/// A stream and its first bytes.
impl ReadOn for (CompletionStream, Bytes) {
    async fn usage(self) -> Option<Usage> {
        stream_usage(self.0).await
    }
}

/// What a stream has used, once it has been read to its end.
pub(super) async fn stream_usage(mut stream: CompletionStream) -> Option<Usage> {
    loop {
        match stream.next().await {
            Some(Ok(_)) => {}
            Some(Err(_)) => return stream.final_usage(),
            None => return Some(stream.usage()),
        }
    }
}
