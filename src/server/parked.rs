//! Streams that are long silent, parked: while models think, a caller's HTTP/1 connection takes its socket and the
//! answer's body, and nothing else.
//!
//! hyper holds two buffers of 8 KB per connection, whose size cannot be set, and thousands of verifications may be open
//! at once. So a body that may be parked comes to hyper as a [`Lent`] one: when it has nothing to send, it lies in the
//! connection's [`Berth`], from where the connection picks it up, takes hyper apart and writes the rest of the answer
//! itself ([`finish`]), as chunks. Then hyper is called in again for the next request. Reading HTTP and writing heads
//! stays hyper's alone.
//!
//! What must hold: hyper is taken apart only when all that it was given has left it ([`super::stall::Stalled`] tells),
//! and only for an answer whose length is told by chunks; where hyper would let nothing follow, nothing does; what it has
//! read of next requests is read again, all of it and in its order; a body that breaks off never gets its last chunk.

use std::future::{Future, poll_fn};
use std::io::{self, Write as _};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use futures_util::FutureExt;
use http::{Extensions, HeaderMap, Response, Version, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::stall::Stalled;

/// Of what is ready at once, so much is written at once.
const AT_ONCE: usize = 16 * 1024;
/// The end of a body in chunks.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Marks an answer that may be parked.
#[derive(Clone, Copy)]
struct MayPark {
    /// Whether the caller lets no other request follow.
    is_last: bool,
}

/// Marks an answer to a request with these headers: it may be parked whenever it is silent.
///
/// Not if the request came in chunks: where a length comes along, hyper takes it out of the headers and lets nothing
/// follow, as others may have read another request; and that it does so, hyper alone knows.
pub(crate) fn allow(answer: &mut Extensions, asked: &HeaderMap) {
    if !asked.contains_key(header::TRANSFER_ENCODING) {
        answer.insert(MayPark { is_last: says_close(asked) });
    }
}

fn says_close(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|option| option.trim().eq_ignore_ascii_case("close"))
}

/// An answer that is silent: what there is left of it.
pub(crate) struct Silent<B> {
    body: B,
    is_last: bool,
}

/// Where the answer lies that a connection is busy with, while it is silent. Clones are one place.
pub(crate) struct Berth<B>(Arc<Slot<B>>);

struct Slot<B> {
    silent: Mutex<Option<Silent<B>>>,
    /// Whether there is one: a lock costs more than all else that a connection does here at each step of each request.
    is_taken: AtomicBool,
}

impl<B> Clone for Berth<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B> Berth<B> {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Slot { silent: Mutex::new(None), is_taken: AtomicBool::new(false) }))
    }

    /// The answer to a request of this version, as hyper gets it.
    pub(crate) fn lend(&self, mut answer: Response<B>, version: Version) -> Response<Lent<B>> {
        let mark = answer.extensions_mut().remove::<MayPark>().filter(|_| version == Version::HTTP_11);
        let Some(MayPark { is_last }) = mark else { return answer.map(Lent::Kept) };
        let is_last = is_last || says_close(answer.headers());
        answer.map(|body| Lent::Movable { silent: Some(Silent { body, is_last }), berth: self.clone() })
    }

    /// Drives hyper's `connection` until it ends, or until it has nothing to do but to wait for a silent answer.
    pub(crate) async fn follow<C: Future>(
        &self,
        mut connection: Pin<&mut C>,
        stalled: &Stalled,
    ) -> Result<Silent<B>, C::Output> {
        poll_fn(|context| match connection.as_mut().poll(context) {
            Poll::Ready(ended) => Poll::Ready(Err(ended)),
            Poll::Pending if stalled.is_so() => Poll::Pending,
            Poll::Pending => self.take().map_or(Poll::Pending, |silent| Poll::Ready(Ok(silent))),
        })
        .await
    }

    /// Takes out what lies there.
    fn take(&self) -> Option<Silent<B>> {
        if !self.0.is_taken.load(Ordering::Acquire) {
            return None;
        }
        let mut place = self.place();
        self.0.is_taken.store(false, Ordering::Release);
        place.take()
    }

    /// Puts an answer there.
    fn put(&self, silent: Silent<B>) {
        let mut place = self.place();
        *place = Some(silent);
        self.0.is_taken.store(true, Ordering::Release);
    }

    /// Also after a panic elsewhere: it is filled and emptied whole.
    fn place(&self) -> MutexGuard<'_, Option<Silent<B>>> {
        self.0.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer's body in hyper's hands.
pub(crate) enum Lent<B> {
    /// To its end.
    Kept(B),
    /// While it has something to send; else it lies in its berth.
    Movable { silent: Option<Silent<B>>, berth: Berth<B> },
}

impl<B: Body + Unpin> Body for Lent<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        match &mut *self {
            Self::Kept(body) => Pin::new(body).poll_frame(context),
            Self::Movable { silent, berth } => {
                let Some(mut answer) = silent.take().or_else(|| berth.take()) else {
                    return Poll::Ready(None);
                };
                let frame = Pin::new(&mut answer.body).poll_frame(context);
                match &frame {
                    Poll::Pending => berth.put(answer),
                    Poll::Ready(_) => *silent = Some(answer),
                }
                frame
            }
        }
    }

    /// A body that may be parked tells nothing beforehand, so that it goes in chunks.
    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Kept(body) if body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Kept(body) => body.size_hint(),
            Self::Movable { .. } => SizeHint::default(),
        }
    }
}

/// A connection as hyper reads and writes it.
pub(crate) struct Line<S> {
    stream: TokioIo<S>,
    /// What was read of it already, and is to be read first.
    ahead: Bytes,
}

impl<S> Line<S> {
    /// A connection of which nothing was read yet.
    pub(crate) fn new(stream: S) -> Self {
        Self { stream: TokioIo::new(stream), ahead: Bytes::new() }
    }

    /// Takes back what was read last: it is read again, before what is still ahead of what the connection brings.
    pub(crate) fn put_back(&mut self, bytes: &[u8]) {
        // Copied, as all of the buffer that they stand in would be kept for them.
        self.ahead = [bytes, &self.ahead].concat().into();
    }

    /// The connection itself, for writing to.
    pub(crate) fn stream(&mut self) -> &mut S {
        self.stream.inner_mut()
    }
}

impl<S: AsyncRead + Unpin> Read for Line<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let count = self.ahead.len().min(buffer.remaining());
        buffer.put_slice(&self.ahead.split_to(count));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Write for Line<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Writes what is left of an answer; whether another request may follow.
///
/// # Errors
/// If the connection or the body breaks. Nothing can follow then.
pub(crate) async fn finish<S, B>(stream: &mut S, answer: Silent<B>) -> io::Result<bool>
where
    S: AsyncWrite + Unpin,
    B: Body + Unpin,
{
    let Silent { mut body, is_last } = answer;
    let mut is_over = false;
    while !is_over {
        // Waits for one piece, and takes along what is ready behind it.
        let mut chunks = Vec::new();
        let mut piece = body.frame().await;
        loop {
            match piece {
                Some(Ok(frame)) => push_chunk(&mut chunks, frame)?,
                Some(Err(_)) => return Err(io::ErrorKind::InvalidData.into()),
                None => {
                    is_over = true;
                    chunks.extend_from_slice(LAST_CHUNK);
                }
            }
            if is_over || chunks.len() >= AT_ONCE {
                break;
            }
            let Some(ready) = body.frame().now_or_never() else { break };
            piece = ready;
        }
        stream.write_all(&chunks).await?;
        stream.flush().await?;
    }
    Ok(!is_last)
}

/// Adds a piece of a body as it goes over the wire. An empty one would end the body, and trailers are not sent.
fn push_chunk<D: Buf>(chunks: &mut Vec<u8>, frame: Frame<D>) -> io::Result<()> {
    let Ok(mut data) = frame.into_data() else { return Ok(()) };
    if !data.has_remaining() {
        return Ok(());
    }
    write!(chunks, "{:x}\r\n", data.remaining())?;
    while data.has_remaining() {
        let piece = data.chunk();
        chunks.extend_from_slice(piece);
        let count = piece.len();
        data.advance(count);
    }
    chunks.extend_from_slice(b"\r\n");
    Ok(())
}

#[cfg(test)]
mod tests;
