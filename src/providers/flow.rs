//! One streamed answer, from a provider's bytes to the caller's.
//!
//! It is pulled: nothing is read of the provider that nobody asked for, so that a slow reader slows the provider down
//! and no memory grows. Everything that one piece of the provider's brings goes out as one piece. What must hold: the
//! end is only written when every choice has its finish reason, and when nothing of the answer was lost on the way.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use super::lease::Lease;
use super::opened::Opened;
use super::sandbox::chat::Script;
use super::{Chunks, Completion, Decoder, Failure, Labels, Permit, Step, hole, sse};
use crate::money::Tokens;
use crate::secret::SecretString;

/// How long a whole answer waits for its usage and the end mark, which some providers never send. Long enough for what is
/// lost on the way to be sent again: without the usage its tokens are a guess.
const EPILOGUE: Duration = Duration::from_secs(2);

/// The most connections on which the end is waited for behind an answer that is whole and has given its place back; on
/// others it is not worth it.
const MOST_LEAVING: usize = 64;

static LEAVING: Semaphore = Semaphore::const_new(MOST_LEAVING);

/// A streamed answer under way. Dropping it stops the provider, and so does the end of its time.
pub struct Flow {
    source: Source,
    events: sse::Decoder,
    decoder: Box<dyn Decoder>,
    chunks: Chunks,
    state: State,
    /// Events that were not in the format and were left out.
    skipped: u32,
    /// What a failure must not repeat.
    secret: Option<SecretString>,
}

/// Where the bytes come from; what it holds is given back when the provider is left alone.
enum Source {
    Http(Lease),
    Sandbox {
        script: Script,
        _permit: Permit,
    },
    /// The answer is whole or broken; what may follow is of no interest.
    Spent,
}

enum State {
    Open,
    /// Every choice is finished; the usage may still come until then.
    Whole(Instant),
    /// The failure that the next call tells, behind the chunks before it.
    Failed(Failure),
    Over,
}

impl Flow {
    pub(super) fn of(
        opened: Opened,
        decoder: Box<dyn Decoder>,
        asked: &Completion<'_>,
        labels: Labels,
        permit: Permit,
        secret: Option<SecretString>,
    ) -> Self {
        let source = Source::Http(Lease::new(opened, permit));
        Self { secret, ..Self::new(source, decoder, Chunks::new(asked, labels)) }
    }

    pub(super) fn simulated(
        script: Script,
        decoder: Box<dyn Decoder>,
        asked: &Completion<'_>,
        labels: Labels,
        permit: Permit,
    ) -> Self {
        Self::new(Source::Sandbox { script, _permit: permit }, decoder, Chunks::new(asked, labels))
    }

    fn new(source: Source, decoder: Box<dyn Decoder>, chunks: Chunks) -> Self {
        let events = sse::Decoder::default();
        Self { source, events, decoder, chunks, state: State::Open, skipped: 0, secret: None }
    }

    /// Makes this the rest of an answer whose chunks begin with `head`. To be called before anything is pulled.
    pub fn go_on(&mut self, head: &[u8]) {
        self.chunks.go_on(head);
    }

    /// What every chunk begins with: `{` and the fields that are the same throughout an answer.
    pub fn head(&self) -> &[u8] {
        self.chunks.head()
    }

    /// All text that was given out, once; `None` if there was more than text, or too much of it. Only behind a failure
    /// is it sure that nothing of it is still to be pulled.
    pub fn take_said(&mut self) -> Option<String> {
        self.chunks.take_said()
    }

    /// The next bytes for the caller; `None` behind the end. Nothing is lost if the wait is given up.
    ///
    /// # Errors
    /// Once, if the answer broke; nothing comes behind it.
    pub async fn next(&mut self) -> Option<Result<Bytes, Failure>> {
        loop {
            if !self.chunks.is_empty() {
                return Some(Ok(self.chunks.take()));
            }
            match &self.state {
                State::Over => return None,
                State::Failed(failure) => {
                    let failure = failure.clone();
                    self.state = State::Over;
                    return Some(Err(failure));
                }
                State::Open | State::Whole(_) => {}
            }
            let piece = self.pull().await;
            self.take_in(piece);
        }
    }

    const fn is_open(&self) -> bool {
        matches!(self.state, State::Open | State::Whole(_))
    }

    fn take_in(&mut self, piece: Result<Option<Bytes>, Failure>) {
        match piece {
            Ok(Some(piece)) => {
                self.events.feed(&piece);
                self.digest();
            }
            Ok(None) => {
                self.events.end();
                self.digest();
                self.close(None);
            }
            Err(failure) => self.close(Some(failure)),
        }
    }

    /// What the answer took so far, estimated if the provider did not say.
    pub fn used(&self) -> Tokens {
        self.chunks.used()
    }

    /// The same, if the provider did say; of what failed before its first word, nothing is estimated.
    pub fn reported(&self) -> Option<Tokens> {
        self.chunks.reported()
    }

    /// Whether the whole answer came, so that only its end is left to be sent.
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// How many events were not in the format and were left out.
    pub const fn skipped(&self) -> u32 {
        self.skipped
    }

    /// The failure that comes behind the bytes given last, if it is known already.
    pub fn failed(&self) -> Option<&Failure> {
        match &self.state {
            State::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// The last bytes of an answer that is not whole. `error` has `message`, `type` and `code`.
    pub fn fault(&mut self, error: &Value) -> Bytes {
        self.state = State::Over;
        self.chunks.fault(error)
    }

    async fn pull(&mut self) -> Result<Option<Bytes>, Failure> {
        let source = &mut self.source;
        let piece = async {
            match source {
                Source::Http(lease) => lease.next().await,
                Source::Sandbox { script, .. } => script.next().await,
                Source::Spent => Ok(None),
            }
        };
        match self.state {
            State::Whole(until) => timeout_at(until, piece).await.unwrap_or(Ok(None)),
            _ => piece.await,
        }
    }

    /// Reads the events that are complete by now.
    fn digest(&mut self) {
        while self.is_open() {
            let event = match self.events.next() {
                Ok(Some(event)) => event,
                Ok(None) => return,
                Err(sse::TooLarge) => return self.close(Some(Failure::Malformed)),
            };
            let mut read = self.decoder.read(&event, &mut self.chunks);
            if read == Ok(Step::Unreadable)
                && let Cow::Owned(data) = String::from_utf8_lossy(event.data)
            {
                // Half a character, as where two tokens share one: nothing else of its event is to be lost.
                let event = sse::Event { name: event.name, data: data.as_bytes() };
                read = self.decoder.read(&event, &mut self.chunks);
            }
            match read {
                Ok(Step::More) => {}
                Ok(Step::Unreadable) if hole::holds_text(event.data) => {
                    return self.close(Some(Failure::Malformed));
                }
                Ok(Step::Skipped | Step::Unreadable) => self.skipped = self.skipped.saturating_add(1),
                Ok(Step::End) => return self.close(None),
                Err(failure) => return self.close(Some(failure)),
            }
            if self.chunks.is_whole() && matches!(self.state, State::Open) {
                self.state = State::Whole(Instant::now() + EPILOGUE);
            }
        }
    }

    /// Ends the answer: whole if all of it came, whatever came behind it, otherwise with a failure.
    fn close(&mut self, failure: Option<Failure>) {
        if !self.is_open() {
            return;
        }
        if self.chunks.is_whole() || (failure.is_none() && self.chunks.may_end()) {
            self.chunks.end();
            self.state = State::Over;
            if let Source::Http(lease) = std::mem::replace(&mut self.source, Source::Spent)
                && let Some(opened) = lease.end()
                && let Ok(leave) = LEAVING.try_acquire()
            {
                tokio::spawn(see_off(opened, leave));
            }
            return;
        }
        let ended = if self.skipped > 0 { Failure::Malformed } else { Failure::Cut };
        self.state = State::Failed(failure.unwrap_or(ended).without(self.secret.as_ref()));
        // Nobody pulls what is broken: the provider is left alone, and somebody else may have the place.
        self.source = Source::Spent;
    }
}

/// Reads the end of a body whose answer is whole: a connection can only be used again when nothing is left on it.
async fn see_off(mut opened: Opened, _leave: SemaphorePermit<'static>) {
    const MOST_PIECES: usize = 16;
    let end = Instant::now() + EPILOGUE;
    for _ in 0..MOST_PIECES {
        match timeout_at(end, opened.next()).await {
            Ok(Ok(Some(_))) => {}
            _ => return,
        }
    }
}
