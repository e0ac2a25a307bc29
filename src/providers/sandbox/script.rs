//! A simulated stream: bytes of the chat-completion format with pauses between, and the faults a real one may have.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

use crate::providers::Failure;

/// What happens next.
#[derive(Debug)]
pub(super) enum Beat {
    /// A piece comes after a pause.
    Send(Duration, Bytes),
    /// Nothing comes any more.
    Stall,
}

/// The stream; at its end the connection closes.
#[derive(Debug)]
pub(in crate::providers) struct Script {
    beats: VecDeque<Beat>,
    /// When the next piece is due; kept when a wait is given up and begun again.
    due: Option<Instant>,
    /// When a stream without a piece counts as timed out.
    patience: Duration,
}

impl Script {
    pub(super) fn new(beats: VecDeque<Beat>, patience: Duration) -> Self {
        Self { beats, due: None, patience }
    }

    /// The next piece; `None` at the end. Nothing is lost if the wait is given up.
    ///
    /// # Errors
    /// [`Failure::Timeout`] from a stream that stalls.
    pub(in crate::providers) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(beat) = self.beats.front() else { return Ok(None) };
        let pause = match beat {
            Beat::Send(pause, _) => *pause,
            Beat::Stall => self.patience,
        };
        if !pause.is_zero() {
            sleep_until(*self.due.get_or_insert_with(|| Instant::now() + pause)).await;
        }
        self.due = None;
        match self.beats.pop_front() {
            Some(Beat::Send(_, piece)) => Ok(Some(piece)),
            Some(Beat::Stall) => Err(Failure::Timeout),
            None => Ok(None),
        }
    }
}
