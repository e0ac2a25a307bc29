//! A stream that has begun, on its way to the caller, with its account.
//!
//! The attempt is booked once: when the whole answer has come (before its last bytes go out), when it breaks, or when
//! the relay is dropped because the caller left or was cut off; then with what had come until then.

use bytes::Bytes;
use serde_json::Value;

use crate::money::Price;
use crate::providers::{Failure, Flow};
use crate::usage::Attempt;

/// A stream that has begun. Dropping it stops the provider.
pub struct Relay {
    /// The bytes that were waited for before the caller got a status.
    first: Option<Bytes>,
    flow: Flow,
    /// `None` once it is booked.
    attempt: Option<Attempt>,
    price: Option<Price>,
    /// The request's, for what is logged after its handler has returned.
    span: tracing::Span,
}

impl Relay {
    pub(super) fn new(flow: Flow, first: Bytes, attempt: Attempt, price: Option<Price>) -> Self {
        let span = tracing::Span::current();
        Self { first: Some(first), flow, attempt: Some(attempt), price, span }
    }

    /// The next bytes; `None` behind the end. Nothing is lost if the wait is given up.
    ///
    /// # Errors
    /// Once, if the answer broke; the caller is then told by [`Relay::fault`].
    pub async fn next(&mut self) -> Option<Result<Bytes, Failure>> {
        let piece = match self.first.take() {
            Some(first) => Some(Ok(first)),
            None => self.flow.next().await,
        };
        match &piece {
            Some(Ok(_)) if self.flow.is_over() => self.book("ok"),
            Some(Ok(_)) => self.note(),
            Some(Err(failure)) => {
                self.span.in_scope(|| tracing::warn!(outcome = failure.code(), ?failure, "a stream broke"));
                self.book(failure.code());
            }
            None => {}
        }
        piece
    }

    /// The last bytes of a stream that is not whole: a chunk with `error`, and the end mark.
    pub fn fault(&mut self, error: &Value) -> Bytes {
        self.flow.fault(error)
    }

    fn note(&mut self) {
        let used = self.flow.used();
        let cost = self.price.map(|price| price.of(used.prompt_tokens, used.completion_tokens));
        if let Some(attempt) = &mut self.attempt {
            attempt.expect(used.prompt_tokens, used.completion_tokens, cost);
        }
    }

    fn book(&mut self, outcome: &str) {
        let skipped = self.flow.skipped();
        if skipped > 0 {
            self.span.in_scope(|| {
                tracing::warn!(skipped, "chunks of a stream could not be read and were left out");
            });
        }
        let used = self.flow.used();
        let cost = self.price.map(|price| price.of(used.prompt_tokens, used.completion_tokens));
        if let Some(attempt) = self.attempt.take() {
            attempt.finish(outcome, used.prompt_tokens, used.completion_tokens, cost);
        }
    }
}
