//! A stream that has begun, on its way to the caller, with its account.
//!
//! The attempt is booked once: when the whole answer has come (before its last bytes go out), when it breaks, or when
//! the relay is dropped because the caller left or was cut off; then with what had come until then. A stream that
//! breaks goes on with the attempt that another one has found (see `resume`), if there is any.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tokio::time::Instant;

use super::breaker::Ticket;
use super::chat::is_final;
use super::resume::{Broken, Resumption, Search, Successor};
use crate::providers::{CompletionStream, Failure};
use crate::usage::Attempt;

/// A stream that has begun. Dropping it stops the provider.
pub struct Relay {
    /// The full identifier of the model that answers.
    model: Arc<str>,
    /// Bytes that were pulled already: the caller got no status before they were there.
    first: Option<Bytes>,
    flow: CompletionStream,
    /// `None` once it is booked.
    attempt: Option<Attempt>,
    /// `None` once it is settled.
    ticket: Option<Ticket<'static>>,
    /// What it takes to go on if the flow breaks.
    resumption: Option<Box<Resumption>>,
    /// Under way since the flow broke.
    search: Option<Search>,
    /// The request's, for what is logged after its handler has returned.
    span: tracing::Span,
}

impl Relay {
    pub(super) fn new(
        model: Arc<str>,
        flow: CompletionStream,
        first: Bytes,
        attempt: Attempt,
        ticket: Ticket<'_>,
    ) -> Self {
        Self {
            model,
            first: Some(first),
            flow,
            attempt: Some(attempt),
            ticket: Some(ticket.under_way()),
            resumption: None,
            search: None,
            span: tracing::Span::current(),
        }
    }

    /// Sets what it takes to go on if the stream breaks; without it, it ends there.
    pub(super) fn resume_by(&mut self, resumption: Resumption) {
        self.resumption = Some(Box::new(resumption));
    }

    /// The full identifier of the model that answers; behind a failure, of the one that failed.
    pub const fn model(&self) -> &Arc<str> {
        &self.model
    }

    /// The next bytes; `None` behind the end. Nothing is lost if the wait is given up.
    ///
    /// # Errors
    /// Once, if the answer broke and nobody could go on from there; the caller is then told by [`Relay::fault`].
    pub async fn next(&mut self) -> Option<Result<Bytes, Failure>> {
        loop {
            if let Some(search) = &mut self.search {
                let found = search.await;
                self.search = None;
                match found {
                    Ok(successor) => self.go_on(successor),
                    Err(failure) => return Some(Err(failure)),
                }
            }
            match self.pull().await {
                Some(Err(failure)) => match self.seek(&failure) {
                    Some(search) => self.search = Some(search),
                    None => return Some(Err(failure)),
                },
                piece => return piece,
            }
        }
    }

    /// Begins to look for a stream that goes on where this one broke; `None` if none could.
    fn seek(&mut self, failure: &Failure) -> Option<Search> {
        let resumption = self.resumption.take().filter(|from| !is_final(failure, from.place))?;
        let said = self.flow.take_text()?;
        let broken = Broken { failure: failure.clone(), said, head: self.flow.head().to_vec() };
        Some(resumption.search(broken, self.span.clone()))
    }

    fn go_on(&mut self, successor: Successor) {
        let Successor { relay, rest, resumption } = successor;
        let Self { model, flow, attempt, ticket, .. } = *relay;
        (self.model, self.flow, self.attempt, self.ticket) = (model, flow, attempt, ticket);
        self.first = (!rest.is_empty()).then_some(rest);
        self.resumption = Some(resumption);
    }

    /// The next bytes of this attempt, accounted; `None` behind the end. Nothing is lost if the wait is given up.
    ///
    /// # Errors
    /// Once, if the answer broke.
    pub(super) async fn pull(&mut self) -> Option<Result<Bytes, Failure>> {
        let piece = match self.first.take() {
            Some(first) => Some(Ok(first)),
            None => self.flow.next().await,
        };
        match &piece {
            Some(Ok(_)) if self.flow.is_over() => {
                if let Some(ticket) = self.ticket.take() {
                    ticket.succeeded();
                }
                self.book("ok");
            }
            Some(Ok(_)) => self.note(),
            Some(Err(failure)) => {
                self.span.in_scope(|| {
                    tracing::warn!(outcome = failure.code(), detail = failure.detail(), "a stream broke");
                });
                if let Some(ticket) = self.ticket.take() {
                    self.span.in_scope(|| ticket.failed(failure, Instant::now()));
                }
                self.book(failure.code());
            }
            None => {}
        }
        piece
    }

    /// Whether the whole answer has been given, but for what waits to be taken.
    pub const fn is_over(&self) -> bool {
        self.flow.is_over()
    }

    /// The last bytes of a stream that is not whole: a chunk with `error`, and the end mark.
    pub fn fault(&mut self, error: &Value) -> Bytes {
        self.flow.end_with_error(error)
    }

    fn note(&mut self) {
        let used = self.flow.usage();
        if let Some(attempt) = &mut self.attempt {
            attempt.expect(used);
        }
    }

    fn book(&mut self, outcome: &'static str) {
        let Some(attempt) = self.attempt.take() else { return };
        let skipped = self.flow.skipped_events();
        if skipped > 0 {
            self.span.in_scope(|| {
                tracing::warn!(skipped, "chunks of a stream could not be read and were left out");
            });
        }
        attempt.finish(outcome, self.flow.usage());
    }
}
