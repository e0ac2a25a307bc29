//! Relays a stream that has begun to the caller, and books its attempt.
//!
//! The attempt is booked exactly once: when the answer is complete (before its last bytes go out), when it breaks, or
//! when the relay is dropped because the caller left or was cut off; then with what had arrived up to that point, or,
//! if
//! a budget pays for it, once the rest has been read (see `usage::late`). A stream that breaks continues with a new
//! attempt, if one can be found (see `resume`).

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tokio::time::Instant;

use super::breaker::Ticket;
use super::chat::is_final;
use super::followed::stream_usage;
use super::noted;
use super::pool::Load;
use super::resume::{BrokenStream, Resumption, Search, Successor};
use crate::log_scope::LogScope;
use crate::providers::{CompletionStream, Failure};
use crate::usage::Attempt;

/// A stream that has begun. Dropping it ends the provider's call, unless a budget pays for it.
pub struct Relay {
    /// The full identifier of the model that answers.
    model: Arc<str>,
    /// The first bytes, which had to arrive before the caller got a status.
    first: Option<Bytes>,
    flow: CompletionStream,
    /// `None` once booked.
    attempt: Option<Attempt>,
    /// `None` once settled.
    ticket: Option<Ticket<'static>>,
    /// Counts the call for the pool that it was made for.
    pub(super) load: Option<Load>,
    /// What is needed to resume if the flow breaks.
    resumption: Option<Box<Resumption>>,
    /// In progress since the flow broke.
    search: Option<Search>,
    /// That of the request, for what is logged after its handler has returned.
    log_scope: LogScope,
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
            ticket: Some(ticket.into_streaming()),
            load: None,
            resumption: None,
            search: None,
            log_scope: LogScope::current(),
        }
    }

    /// Sets what is needed to resume if the stream breaks; without it, the stream ends there.
    pub(super) fn set_resumption(&mut self, resumption: Resumption) {
        self.resumption = Some(Box::new(resumption));
    }

    /// The full identifier of the model that answers; after a failure, of the one that failed.
    pub const fn model(&self) -> &Arc<str> {
        &self.model
    }

    /// Whether these are the events of a native answer, in its protocol.
    pub const fn is_native(&self) -> bool {
        self.flow.is_native()
    }

    /// The next bytes; `None` after the end. Cancel-safe.
    ///
    /// # Errors
    /// Once, if the answer broke and could not be resumed; [`Relay::end_with_error`] then tells the caller.
    pub async fn next(&mut self) -> Option<Result<Bytes, Failure>> {
        loop {
            if let Some(search) = &mut self.search {
                let found = search.await;
                self.search = None;
                match found {
                    Ok(successor) => self.continue_with(successor),
                    Err(failure) => return Some(Err(failure)),
                }
            }
            match self.pull().await {
                Some(Err(failure)) => match self.start_search(&failure) {
                    Some(search) => self.search = Some(search),
                    None => return Some(Err(failure)),
                },
                bytes => return bytes,
            }
        }
    }

    /// Starts to search for a stream that continues where this one broke; `None` if none could.
    fn start_search(&mut self, failure: &Failure) -> Option<Search> {
        // What knew no end is not asked for again.
        if matches!(failure, Failure::TooLarge { .. }) {
            return None;
        }
        let resumption =
            self.resumption.take().filter(|resumption| !is_final(failure, resumption.position))?;
        let sent = self.flow.take_text()?;
        let broken = BrokenStream { failure: failure.clone(), sent, head: self.flow.head().to_vec() };
        Some(resumption.search(broken, self.log_scope.clone()))
    }

    fn continue_with(&mut self, successor: Successor) {
        let Successor { mut relay, rest, resumption } = successor;
        self.model = relay.model.clone();
        self.flow = relay.flow.take();
        (self.attempt, self.ticket) = (relay.attempt.take(), relay.ticket.take());
        self.first = (!rest.is_empty()).then_some(rest);
        self.resumption = Some(resumption);
    }

    /// The next bytes of the current attempt, with their accounting; `None` after the end. Cancel-safe.
    ///
    /// # Errors
    /// Once, if the answer broke.
    pub(super) async fn pull(&mut self) -> Option<Result<Bytes, Failure>> {
        let bytes = match self.first.take() {
            Some(first) => Some(Ok(first)),
            None => self.flow.next().await,
        };
        match &bytes {
            Some(Ok(_)) if self.flow.is_over() => {
                if let Some(ticket) = self.ticket.take() {
                    ticket.succeeded();
                }
                self.book("ok");
            }
            Some(Ok(_)) => self.update_expected_usage(),
            Some(Err(failure)) => {
                let (model, outcome, detail) = (&*self.model, failure.code(), failure.detail());
                self.log_scope.run(|| tracing::warn!(model, outcome, detail, "a stream broke"));
                if let Some(ticket) = self.ticket.take() {
                    self.log_scope.run(|| ticket.failed(failure, Instant::now()));
                }
                self.book(failure.code());
            }
            None => {}
        }
        bytes
    }

    /// Whether the answer is complete, apart from bytes that are still to be pulled.
    pub const fn is_over(&self) -> bool {
        self.flow.is_over()
    }

    /// The last bytes of an incomplete stream: a chunk with `error`, and the end marker.
    pub fn end_with_error(&mut self, error: &Value) -> Bytes {
        self.flow.end_with_error(error)
    }

    fn update_expected_usage(&mut self) {
        let usage = self.flow.tokens();
        if let Some(attempt) = &mut self.attempt {
            attempt.set_expected(usage);
        }
    }

    /// Ends a stream that nobody needs, and that no caller has left.
    pub(super) fn give_up(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            attempt.give_up();
        }
    }

    fn book(&mut self, outcome: &'static str) {
        let Some(attempt) = self.attempt.take() else { return };
        let skipped = self.flow.skipped_events();
        if skipped > 0 {
            let model = &*self.model;
            self.log_scope.run(|| {
                tracing::warn!(model, skipped, "unreadable chunks of a stream were dropped");
            });
        }
        attempt.note(|span| noted::stream(span, &self.flow));
        attempt.finish(outcome, self.flow.usage());
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let Some(attempt) = self.attempt.take().filter(Attempt::is_paid_by_budget) {
            attempt.follow(stream_usage(self.flow.take()));
        }
    }
}
