//! Parking of streams that are silent for long: while models think, a caller's HTTP/1 connection holds its socket and
//! the response body, and nothing else.
//!
//! hyper holds two buffers of 8 KB per connection, whose size cannot be set, and thousands of verifications may be open
//! at once. So a body that may be parked is given to hyper as a [`ParkableBody`]: while it has nothing to send, it lies
//! in the connection's [`ParkingSlot`], from where the connection takes it, drops hyper's state and writes the rest of
//! the response itself ([`finish`]), in chunks. Then hyper is set up again for the next request. Reading HTTP and
//! writing heads stays with hyper alone.
//!
//! What must hold: hyper is dropped only when everything it was given is written
//! ([`super::write_timeout::WriteStalled`] tells), and only for a chunked response; where hyper would close the
//! connection after the response, so do we; bytes of further requests that hyper has read ahead are read again, all of
//! them and in order; a body that fails never gets its last chunk.

use std::future::{Future, poll_fn};
use std::io::{self, Write as _};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use crate::lock::Lock;

use bytes::{Buf, Bytes};
use futures_util::FutureExt;
use http::{Extensions, HeaderMap, Response, Version, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::write_timeout::WriteStalled;

/// About how many bytes that are ready are written at once.
const WRITE_SIZE: usize = 16 * 1024;
/// The end of a chunk.
const CHUNK_END: &[u8] = b"\r\n";
/// The end of a chunked body.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Extension that marks a response as one that may be parked.
#[derive(Clone, Copy)]
struct MayPark {
    /// Whether the caller wants the connection closed after it.
    is_last: bool,
}

/// Lets the response to a request with these headers be parked whenever it is silent.
///
/// Not if the request was chunked: where it has a `Content-Length` as well, hyper removes that header and closes the
/// connection afterwards, as others may have read another request; and only hyper knows that it did.
pub(crate) fn allow(response: &mut Extensions, request_headers: &HeaderMap) {
    if !request_headers.contains_key(header::TRANSFER_ENCODING) {
        response.insert(MayPark { is_last: says_close(request_headers) });
    }
}

fn says_close(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|option| option.trim().eq_ignore_ascii_case("close"))
}

/// The rest of a response that has nothing to send at the moment.
pub(crate) struct Parked<B> {
    body: B,
    is_last: bool,
}

/// Where the response in progress on a connection lies while it is silent. Clones share the slot.
pub(crate) struct ParkingSlot<B>(Arc<Mutex<Option<Parked<B>>>>);

impl<B> Clone for ParkingSlot<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B> ParkingSlot<B> {
    /// An empty slot.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(None)))
    }

    /// Wraps the response to a request of this HTTP version for hyper.
    pub(crate) fn wrap(&self, mut response: Response<B>, version: Version) -> Response<ParkableBody<B>> {
        let mark = response.extensions_mut().remove::<MayPark>().filter(|_| version == Version::HTTP_11);
        let Some(MayPark { is_last }) = mark else { return response.map(ParkableBody::Fixed) };
        let is_last = is_last || says_close(response.headers());
        response
            .map(|body| ParkableBody::Parkable { rest: Some(Parked { body, is_last }), slot: self.clone() })
    }

    /// Drives hyper's `connection` until it ends (`Err`), or until all it has to do is wait for a silent response.
    pub(crate) async fn drive<C: Future>(
        &self,
        mut connection: Pin<&mut C>,
        stalled: &WriteStalled,
    ) -> Result<Parked<B>, C::Output> {
        poll_fn(|context| match connection.as_mut().poll(context) {
            Poll::Ready(ended) => Poll::Ready(Err(ended)),
            Poll::Pending if stalled.get() => Poll::Pending,
            Poll::Pending => self.take().map_or(Poll::Pending, |parked| Poll::Ready(Ok(parked))),
        })
        .await
    }

    fn take(&self) -> Option<Parked<B>> {
        self.0.locked().take()
    }

    fn put(&self, parked: Parked<B>) {
        *self.0.locked() = Some(parked);
    }
}

/// A response body as hyper gets it.
pub(crate) enum ParkableBody<B> {
    /// It stays with hyper to its end.
    Fixed(B),
    /// It stays with hyper while it has something to send, and otherwise lies in its slot.
    Parkable { rest: Option<Parked<B>>, slot: ParkingSlot<B> },
}

impl<B: Body + Unpin> Body for ParkableBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        match &mut *self {
            Self::Fixed(body) => Pin::new(body).poll_frame(context),
            Self::Parkable { rest, slot } => {
                let Some(mut current) = rest.take().or_else(|| slot.take()) else {
                    return Poll::Ready(None);
                };
                let frame = Pin::new(&mut current.body).poll_frame(context);
                match &frame {
                    Poll::Pending => slot.put(current),
                    Poll::Ready(_) => *rest = Some(current),
                }
                frame
            }
        }
    }

    /// A body that may be parked reveals nothing beforehand, so that hyper sends it in chunks.
    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Fixed(body) if body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Fixed(body) => body.size_hint(),
            Self::Parkable { .. } => SizeHint::default(),
        }
    }
}

/// A connection for hyper to read and write, to which bytes that were read can be given back.
pub(crate) struct RewindIo<S> {
    stream: TokioIo<S>,
    /// Bytes to be read again before those of the stream.
    rewound: Bytes,
}

impl<S> RewindIo<S> {
    /// Wraps a connection of which nothing was read yet.
    pub(crate) fn new(stream: S) -> Self {
        Self { stream: TokioIo::new(stream), rewound: Bytes::new() }
    }

    /// Gives back the bytes that were read last: they are read again, before any that were given back earlier and are
    /// still unread.
    pub(crate) fn rewind(&mut self, bytes: &[u8]) {
        // Copied, as a reference would keep the whole of the buffer that they are part of.
        self.rewound = [bytes, &self.rewound].concat().into();
    }

    /// The connection itself, for writing to.
    pub(crate) fn stream(&mut self) -> &mut S {
        self.stream.inner_mut()
    }
}

impl<S: AsyncRead + Unpin> Read for RewindIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rewound.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let count = self.rewound.len().min(buffer.remaining());
        buffer.put_slice(&self.rewound.split_to(count));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Write for RewindIo<S> {
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
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
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

/// Writes the rest of a response. Returns whether another request may follow on the connection.
///
/// # Errors
/// If the connection or the body fails. Nothing can follow then.
pub(crate) async fn finish<S, B>(stream: &mut S, parked: Parked<B>) -> io::Result<bool>
where
    S: AsyncWrite + Unpin,
    B: Body + Unpin,
{
    let Parked { mut body, is_last } = parked;
    let mut is_done = false;
    while !is_done {
        // Waits for one frame, and takes those that are ready behind it along.
        let mut chunks = Vec::new();
        let mut frame = body.frame().await;
        loop {
            match frame {
                Some(Ok(frame)) => {
                    if let Some(large) = push_chunk(&mut chunks, frame)? {
                        stream.write_all(&std::mem::take(&mut chunks)).await?;
                        // Boxed, as few frames are large.
                        Box::pin(write_buffer(stream, large)).await?;
                        chunks.extend_from_slice(CHUNK_END);
                    }
                }
                Some(Err(_)) => return Err(io::ErrorKind::InvalidData.into()),
                None => {
                    is_done = true;
                    chunks.extend_from_slice(LAST_CHUNK);
                }
            }
            if is_done || chunks.len() >= WRITE_SIZE {
                break;
            }
            let Some(ready) = body.frame().now_or_never() else { break };
            frame = ready;
        }
        stream.write_all(&chunks).await?;
        stream.flush().await?;
    }
    Ok(!is_last)
}

/// Appends a frame of the body as a chunk, but for the data of a large one, which is returned: it is to be written as
/// it is, and [`CHUNK_END`] behind it. An empty chunk would end the body, and trailers are not sent.
fn push_chunk<D: Buf>(chunks: &mut Vec<u8>, frame: Frame<D>) -> io::Result<Option<D>> {
    let Ok(mut data) = frame.into_data() else { return Ok(None) };
    if !data.has_remaining() {
        return Ok(None);
    }
    write!(chunks, "{:x}\r\n", data.remaining())?;
    if data.remaining() > WRITE_SIZE {
        return Ok(Some(data));
    }
    while data.has_remaining() {
        let part = data.chunk();
        chunks.extend_from_slice(part);
        let count = part.len();
        data.advance(count);
    }
    chunks.extend_from_slice(CHUNK_END);
    Ok(None)
}

async fn write_buffer(stream: &mut (impl AsyncWrite + Unpin), mut data: impl Buf) -> io::Result<()> {
    stream.write_all_buf(&mut data).await
}

#[cfg(test)]
mod tests;
