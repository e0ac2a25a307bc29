//! A simulated stream: bytes in the chat-completion format with pauses between them, and the faults that real streams
//! have.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

use crate::providers::Failure;

/// What happens next in a stream.
#[derive(Debug)]
pub(super) enum ScriptStep {
    /// A piece arrives after a pause.
    Send(Duration, Bytes),
    /// Nothing arrives any more.
    Stall,
}

/// A stream; its end is that of the connection.
#[derive(Debug)]
pub(in crate::providers) struct Script {
    steps: VecDeque<ScriptStep>,
    /// When the next piece is due; kept when a wait is cancelled and resumed.
    due: Option<Instant>,
    /// The time after which a stalled stream times out.
    idle_timeout: Duration,
}

impl Script {
    pub(super) fn new(steps: VecDeque<ScriptStep>, idle_timeout: Duration) -> Self {
        Self { steps, due: None, idle_timeout }
    }

    /// The next piece; `None` at the end. Cancel-safe.
    ///
    /// # Errors
    /// [`Failure::Timeout`] if the stream stalls.
    pub(in crate::providers) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(step) = self.steps.front() else { return Ok(None) };
        let pause = match step {
            ScriptStep::Send(pause, _) => *pause,
            ScriptStep::Stall => self.idle_timeout,
        };
        if !pause.is_zero() {
            sleep_until(*self.due.get_or_insert_with(|| Instant::now() + pause)).await;
        }
        self.due = None;
        match self.steps.pop_front() {
            Some(ScriptStep::Send(_, piece)) => Ok(Some(piece)),
            Some(ScriptStep::Stall) => Err(Failure::Timeout),
            None => Ok(None),
        }
    }
}
