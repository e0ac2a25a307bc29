//! A stream under guard: what of it goes out, and when.
//!
//! The text is read as it passes. With the last bytes of the answer, all but the end marker goes out, and the end marker
//! follows with what was found. What is held goes out in the pieces that it came in.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio_util::task::AbortOnDropHandle;

use super::texts::Texts;
use super::{FIELD, Finding, Watch, json};
use crate::inference::{Failure, Reader, Relay};
use crate::json::fields::write_field;

/// The end marker of a stream.
pub(in crate::server) const DONE: &[u8] = b"data: [DONE]\n\n";
/// The most that is held of a stream, in bytes: the longest text that is verified by default, in pieces of a word.
const MAX_HELD: usize = 32 << 20;

/// A piece of a guarded stream.
pub(in crate::server) enum Piece {
    /// Chunks of the answer.
    Chunks(Bytes),
    /// The end, with what was found, as JSON.
    End(Box<str>),
}

/// A stream under guard.
pub(in crate::server) struct Ward {
    watch: Watch,
    texts: Texts,
    head: Head,
    state: State,
}

enum State {
    /// The answer is read, and goes out as it comes, or is held.
    Reading(VecDeque<Bytes>, usize),
    /// It is being verified.
    Verifying(AbortOnDropHandle<Finding>),
    /// It may be given.
    Released(VecDeque<Bytes>, Box<str>),
    Over,
}

impl Ward {
    pub(super) fn new(watch: Watch) -> Self {
        let texts = Texts::new(watch.most_chars());
        Self { watch, texts, head: Head::default(), state: State::Reading(VecDeque::new(), 0) }
    }

    pub(super) const fn watch(&self) -> &Watch {
        &self.watch
    }

    /// The next piece; `None` after the end. Cancel-safe.
    ///
    /// # Errors
    /// If the answer broke.
    pub(in crate::server) async fn next(&mut self, relay: &mut Relay) -> Option<Result<Piece, Failure>> {
        loop {
            match &mut self.state {
                State::Reading(..) => {
                    let chunks = match self.read(relay).await? {
                        Ok(chunks) => chunks,
                        Err(failure) => return Some(Err(failure)),
                    };
                    if relay.is_over() {
                        let texts = self.take_texts();
                        self.state = State::Verifying(self.watch.begin(texts));
                    }
                    if !chunks.is_empty() {
                        return Some(Ok(Piece::Chunks(chunks)));
                    }
                }
                State::Verifying(work) => {
                    let finding = self.watch.finding(work.await);
                    self.state = State::Over;
                    return Some(Ok(Piece::End(json(&finding.report))));
                }
                State::Released(held, verification) => {
                    if let Some(chunks) = held.pop_front() {
                        return Some(Ok(Piece::Chunks(chunks)));
                    }
                    if relay.is_over() {
                        let verification = std::mem::take(verification);
                        self.state = State::Over;
                        return Some(Ok(Piece::End(verification)));
                    }
                    // It was too long to be verified, and is given nevertheless.
                    match self.read(relay).await? {
                        Ok(chunks) => return Some(Ok(Piece::Chunks(chunks))),
                        Err(failure) => return Some(Err(failure)),
                    }
                }
                State::Over => return None,
            }
        }
    }

    /// Reads on and holds it: the texts, once the answer is complete or too long to be verified. Cancel-safe.
    ///
    /// # Errors
    /// If the answer broke.
    pub(super) async fn hold(&mut self, relay: &mut Relay) -> Option<Result<Option<Texts>, Failure>> {
        let chunks = match self.read(relay).await? {
            Ok(chunks) => chunks,
            Err(failure) => return Some(Err(failure)),
        };
        if let State::Reading(held, bytes) = &mut self.state {
            *bytes += chunks.len();
            held.push_back(chunks);
            if *bytes > MAX_HELD {
                self.texts.give_up();
            }
        }
        let is_over = relay.is_over() || self.texts.is_too_long();
        Some(Ok(is_over.then(|| self.take_texts())))
    }

    /// Lets out what is held.
    pub(super) fn release(&mut self, verification: Box<str>) {
        if let State::Reading(held, _) = &mut self.state {
            self.state = State::Released(std::mem::take(held), verification);
        }
    }

    /// The last chunk of a stream without any other protocol, which tells what was found, and the end marker.
    pub(in crate::server) fn last_chunk(&self, verification: &str) -> Bytes {
        let mut chunk = b"data: {".to_vec();
        for (name, value) in
            [("id", &self.head.id), ("created", &self.head.created), ("model", &self.head.model)]
        {
            if !value.is_empty() {
                write_field(&mut chunk, name, value);
            }
        }
        write_field(&mut chunk, "object", "\"chat.completion.chunk\"");
        write_field(&mut chunk, "choices", "[]");
        write_field(&mut chunk, FIELD, verification);
        chunk.extend_from_slice(b"}\n\n");
        chunk.extend_from_slice(DONE);
        chunk.into()
    }

    /// The next bytes of the answer, without the end marker.
    async fn read(&mut self, relay: &mut Relay) -> Option<Result<Bytes, Failure>> {
        let chunks = match relay.next().await? {
            Ok(chunks) => chunks,
            Err(failure) => return Some(Err(failure)),
        };
        self.head.read(&chunks);
        self.texts.read_chunks(&chunks);
        let rest = chunks.strip_suffix(DONE).map_or(chunks.len(), <[u8]>::len);
        Some(Ok(chunks.slice(..rest)))
    }

    fn take_texts(&mut self) -> Texts {
        std::mem::replace(&mut self.texts, Texts::new(0))
    }
}

/// What is the same in all chunks of a stream, as JSON.
#[derive(Default)]
struct Head {
    id: String,
    created: String,
    model: String,
}

impl Head {
    /// Reads it of the first chunk.
    fn read(&mut self, sse: &[u8]) {
        if !self.id.is_empty() {
            return;
        }
        let text = std::str::from_utf8(sse).unwrap_or_default();
        let Some(chunk) = text.split("\n\n").find_map(|line| line.strip_prefix("data: {")) else { return };
        let whole = format!("{{{chunk}");
        if let Some([id, created, model]) = Reader::new(&whole).fields(["id", "created", "model"]) {
            let text = |value: Option<crate::inference::Json<'_>>| {
                value.map_or_else(String::new, |value| value.get().to_owned())
            };
            (self.id, self.created, self.model) = (text(id), text(created), text(model));
        }
    }
}
