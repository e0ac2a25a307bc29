//! One streamed answer, from the provider's bytes to the caller's.
//!
//! It is pull-based: the provider is read only as fast as the caller reads, so a slow caller slows the provider down
//! and memory does not grow. Whatever one piece from the provider yields is passed on as one piece. What must hold: the
//! end is written only if every choice has its finish reason and no part of the answer was lost on the way.
//!
//! No stream is endless: one that goes far beyond its limit of tokens, or sends more bytes than any answer has, is
//! stopped at the provider and broken off for the caller. What it cost until then is booked.
//!
//! A finish reason is usually the end, whatever happens to the connection after it. But some providers send one with
//! every piece of the answer, and then only the end of the stream tells that nothing is missing, or an event that comes
//! after the answer by its format, such as one with nothing but the usage.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use super::lost_content;
use crate::money::{Tokens, Usage};
use crate::providers::call::open_response::OpenResponse;
use crate::providers::call::timed_response::TimedResponse;
use crate::providers::sandbox::chat::Script;
use crate::providers::{
    CallPermit, ChunkWriter, CompletionRequest, EventOutcome, Failure, ResponseMeta, StreamDecoder, sse,
};
use crate::secret::SecretString;

/// How long to wait, after the last finish reason, for the usage and the end marker, which some providers never send.
/// Long enough for a lost packet to be retransmitted, as without the usage the token counts are a guess.
const EPILOGUE: Duration = Duration::from_secs(2);

/// The maximum number of connections that are drained in the background after their answer is complete and their permit
/// released; further ones are closed instead.
const MAX_DRAINING: usize = 64;

/// The most that is read of one streamed answer. A chunk with a token takes some 300 bytes, so an answer of 128,000
/// takes 40 MB, and one with the log probabilities of many alternatives several times as much.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// How many characters an answer may have for each token of its limit, and beyond that, before it is taken for one that
/// knows no limit. A token has four characters on average; runs of blanks or dashes, which have the most, some dozen.
const CHARACTERS_PER_TOKEN: u64 = 32;
const SPARE_CHARACTERS: u64 = 16 * 1024;

static DRAIN_PERMITS: Semaphore = Semaphore::const_new(MAX_DRAINING);

/// A streamed answer in progress. Dropping it stops the provider, and so does its deadline.
pub struct CompletionStream {
    source: Source,
    events: sse::Decoder,
    decoder: Box<dyn StreamDecoder>,
    chunks: ChunkWriter,
    state: State,
    /// The number of bytes read.
    read: u64,
    /// The number of characters after which it is stopped.
    max_characters: u64,
    /// The number of events that were skipped because they were not in the format.
    skipped: u32,
    /// The provider's key, which failures must not repeat.
    secret: Option<SecretString>,
}

/// Where the bytes come from; dropping it releases the connection and the permit.
enum Source {
    Http(TimedResponse),
    Sandbox {
        script: Script,
        _permit: CallPermit,
    },
    /// Nothing more is read: the answer is complete or broken.
    Released,
}

enum State {
    Open,
    /// Every choice is finished; the usage is awaited until then.
    Complete(Instant),
    /// Every choice has a finish reason, but with the first content or with more of it after that: the provider may go
    /// on until it ends the stream, or sends what comes after the answer by its format.
    Unsettled,
    /// The failure to be returned after the chunks before it.
    Failed(Failure),
    Over,
}

impl CompletionStream {
    pub(in crate::providers) fn new(
        response: OpenResponse,
        decoder: Box<dyn StreamDecoder>,
        chunks: ChunkWriter,
        permit: CallPermit,
        secret: Option<SecretString>,
    ) -> Self {
        let source = Source::Http(TimedResponse::new(response, permit));
        Self { secret, ..Self::from_source(source, decoder, chunks) }
    }

    pub(in crate::providers) fn simulated(
        script: Script,
        decoder: Box<dyn StreamDecoder>,
        request: &CompletionRequest<'_>,
        meta: ResponseMeta,
        permit: CallPermit,
    ) -> Self {
        Self::from_source(
            Source::Sandbox { script, _permit: permit },
            decoder,
            ChunkWriter::new(request, meta),
        )
    }

    fn from_source(source: Source, decoder: Box<dyn StreamDecoder>, chunks: ChunkWriter) -> Self {
        let events = sse::Decoder::default();
        let (state, max_characters) = (State::Open, u64::MAX);
        Self { source, events, decoder, chunks, state, read: 0, max_characters, skipped: 0, secret: None }
    }

    /// Stops the stream if it goes far beyond this many tokens.
    pub fn limit_tokens(&mut self, tokens: u64) {
        self.max_characters = tokens.saturating_mul(CHARACTERS_PER_TOKEN).saturating_add(SPARE_CHARACTERS);
    }

    /// Makes this the continuation of an answer whose chunks begin with `head`. To be called before the first pull.
    pub fn continue_from(&mut self, head: &[u8]) {
        self.chunks.continue_from(head);
    }

    /// The beginning of every chunk: `{` and the fields that are the same throughout an answer.
    pub fn head(&self) -> &[u8] {
        self.chunks.head()
    }

    /// The text passed on so far, as [`CompletionStream::take_text`] would take it.
    pub fn text(&self) -> Option<&str> {
        self.chunks.text()
    }

    /// Why the choices that have ended did.
    pub fn finish_reasons(&self) -> impl Iterator<Item = &str> {
        self.chunks.finish_reasons()
    }

    /// Takes the text passed on so far; `None` if there was anything but text, too much of it, or if it has been taken.
    /// Only after a failure is it certain that the caller has pulled all of it.
    pub fn take_text(&mut self) -> Option<String> {
        self.chunks.take_text()
    }

    /// The next bytes for the caller; `None` after the end. Cancel-safe.
    ///
    /// # Errors
    /// Once, if the answer broke; nothing follows.
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
                State::Open | State::Complete(_) | State::Unsettled => {}
            }
            let piece = self.pull().await;
            self.process(piece);
        }
    }

    const fn is_open(&self) -> bool {
        matches!(self.state, State::Open | State::Complete(_) | State::Unsettled)
    }

    fn process(&mut self, piece: Result<Option<Bytes>, Failure>) {
        match piece {
            Ok(Some(piece)) => {
                self.read += piece.len() as u64;
                self.events.feed(&piece);
                self.decode_events();
                if self.read > MAX_BYTES || self.chunks.characters() > self.max_characters {
                    self.close(Some(Failure::TooLarge { bytes: self.read }));
                }
            }
            Ok(None) => {
                self.events.end();
                self.decode_events();
                self.close(None);
            }
            Err(failure) => self.close(Some(failure)),
        }
    }

    /// The tokens used so far, estimated if the provider has not reported them.
    pub fn tokens(&self) -> Tokens {
        self.chunks.usage()
    }

    /// What the whole answer has used, as the provider has reported it; `None` as long as it has not.
    pub fn final_usage(&self) -> Option<Usage> {
        self.chunks.final_usage().map(Usage::reported)
    }

    /// What was used so far: reported or estimated.
    pub fn usage(&self) -> Usage {
        self.final_usage().unwrap_or_else(|| Usage::estimated(self.tokens()))
    }

    /// Takes the answer out of its place, where nothing more comes.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let over = Self::from_source(Source::Released, Box::new(NoEvents), ChunkWriter::default());
        std::mem::replace(self, Self { state: State::Over, ..over })
    }

    /// The token usage that the provider has reported so far; none at all was used if the connection ended before
    /// anything came. For calls that fail before their first chunk, for which nothing is estimated.
    pub fn usage_before_chunks(&self, failure: &Failure) -> Option<Tokens> {
        let unused = (self.read == 0 && *failure == Failure::Cut).then(Tokens::default);
        self.chunks.reported_usage().or(unused)
    }

    /// Whether the events are those of a native answer, in its protocol.
    pub const fn is_native(&self) -> bool {
        self.chunks.is_native()
    }

    /// Whether the answer is complete, so that only its end remains to be sent.
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// The number of events that were skipped because they were not in the format.
    pub const fn skipped_events(&self) -> u32 {
        self.skipped
    }

    /// The failure that the next call will return, if it is already known.
    pub fn pending_failure(&self) -> Option<&Failure> {
        match &self.state {
            State::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// The last bytes of an incomplete answer for the caller; what may still be read is for its usage alone. `error`
    /// has `message`, `type` and `code`.
    pub fn end_with_error(&mut self, error: &Value) -> Bytes {
        if !self.is_open() {
            self.state = State::Over;
        }
        self.chunks.end_with_error(error)
    }

    async fn pull(&mut self) -> Result<Option<Bytes>, Failure> {
        let source = &mut self.source;
        let piece = async {
            match source {
                Source::Http(lease) => lease.next().await,
                Source::Sandbox { script, .. } => script.next().await,
                Source::Released => Ok(None),
            }
        };
        match self.state {
            State::Complete(until) => timeout_at(until, piece).await.unwrap_or(Ok(None)),
            _ => piece.await,
        }
    }

    /// Decodes the events that are complete.
    fn decode_events(&mut self) {
        while self.is_open() {
            let event = match self.events.next() {
                Ok(Some(event)) => event,
                Ok(None) => return,
                Err(sse::TooLarge) => return self.close(Some(Failure::Malformed)),
            };
            let (before, had_content) = (self.chunks.characters(), self.chunks.has_content());
            let mut read = self.decoder.read(&event, &mut self.chunks);
            if read == Ok(EventOutcome::Unreadable)
                && let Cow::Owned(data) = String::from_utf8_lossy(event.data)
            {
                // Part of a character, as when two tokens share one: the rest of the event must not be lost.
                let event = sse::Event { name: event.name, data: data.as_bytes() };
                read = self.decoder.read(&event, &mut self.chunks);
            }
            let is_last = read == Ok(EventOutcome::Last);
            let is_damaged = read == Ok(EventOutcome::Unreadable) && lost_content::holds_answer(event.data);
            if matches!(self.state, State::Complete(_)) && (is_damaged || self.chunks.characters() != before)
            {
                self.state = State::Unsettled;
            }
            match read {
                Ok(EventOutcome::More | EventOutcome::Last) => {}
                Ok(EventOutcome::Unreadable) if is_damaged => {
                    return self.close(Some(Failure::Malformed));
                }
                Ok(EventOutcome::Skipped | EventOutcome::Unreadable) => {
                    self.skipped = self.skipped.saturating_add(1);
                }
                Ok(EventOutcome::End) => return self.close(None),
                Err(failure) => return self.close(Some(failure)),
            }
            if self.chunks.is_complete() {
                self.settle(is_last || self.chunks.is_final(), had_content);
            }
        }
    }

    /// Decides, with every choice finished, whether more of the answer may follow. `is_last` tells that the format or
    /// the finish reasons rule it out, and `had_content` that there was content before this event.
    fn settle(&mut self, is_last: bool, had_content: bool) {
        match self.state {
            State::Open | State::Unsettled if is_last => {}
            // If there was content without a reason, the provider does not send one with every piece.
            State::Open if had_content => {}
            State::Open => return self.state = State::Unsettled,
            _ => return,
        }
        self.state = State::Complete(Instant::now() + EPILOGUE);
    }

    /// Ends the answer: as complete if all of it has arrived, whatever followed it, otherwise with a failure.
    fn close(&mut self, failure: Option<Failure>) {
        if !self.is_open() {
            return;
        }
        let failure = failure.filter(|_| !matches!(self.state, State::Complete(_)));
        let failure = failure.or_else(|| self.decoder.end(&mut self.chunks).err());
        if failure.is_none() && self.chunks.may_end() {
            self.chunks.end();
            self.state = State::Over;
            if let Source::Http(lease) = std::mem::replace(&mut self.source, Source::Released)
                && let Some(response) = lease.into_response()
                && let Ok(permit) = DRAIN_PERMITS.try_acquire()
            {
                tokio::spawn(drain(response, permit));
            }
            return;
        }
        // What was never an event stream cannot be read, now or later.
        let is_foreign = self.events.is_foreign() && !self.chunks.has_begun();
        let premature_end = if self.skipped > 0 || is_foreign { Failure::Malformed } else { Failure::Cut };
        self.state = State::Failed(failure.unwrap_or(premature_end).redacted(self.secret.as_ref()));
        // The rest of a broken answer is not read, so the connection is closed and the permit released at once.
        self.source = Source::Released;
    }
}

/// The decoder of a stream that was taken away.
struct NoEvents;

impl StreamDecoder for NoEvents {
    fn read(&mut self, _: &sse::Event<'_>, _: &mut ChunkWriter) -> Result<EventOutcome, Failure> {
        Ok(EventOutcome::Skipped)
    }
}

/// Reads the rest of the body of a complete answer, as only then the connection can be reused.
async fn drain(mut response: OpenResponse, _permit: SemaphorePermit<'static>) {
    const MAX_PIECES: usize = 16;
    let end = Instant::now() + EPILOGUE;
    for _ in 0..MAX_PIECES {
        match timeout_at(end, response.next()).await {
            Ok(Ok(Some(_))) => {}
            _ => return,
        }
    }
}
