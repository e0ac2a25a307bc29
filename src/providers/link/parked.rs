//! Calls that wait long for their answer, parked: while a model thinks, such a call takes its socket and nothing else.
//!
//! hyper's client holds some 27 KB per connection (buffers of reads and writes, a queue of requests), from the request
//! on. A chat streams soon, but thousands of verifications may wait for a model at once. So here the request is
//! written by hand, its bytes are dropped, and hyper is called in when the answer begins: it is given a stand-in for
//! the request, which [`Wire`] swallows, and reads the answer as ever. Reading HTTP stays hyper's alone.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};

use super::{Asked, Body, Link, Links, Stream};
use crate::providers::Failure;

/// A connection under hyper.
#[derive(Debug)]
pub(super) struct Wire {
    stream: Stream,
    stand_in: StandIn,
    /// What was read before hyper was called in, and is read by it first: at most [`STATUS_AT`] and one more.
    ahead: Vec<u8>,
}

/// Where the status stands in an answer: `HTTP/1.1 200`.
const STATUS_AT: usize = 9;

/// How far the stand-in for a request that has been sent is.
#[derive(Debug, PartialEq, Eq)]
enum StandIn {
    /// There is none, or it was swallowed to its end: everything is passed on.
    Over,
    /// hyper is to write it, and must not read before: it takes an answer to nothing for an error.
    Awaited,
    /// Some of it is swallowed.
    Begun,
}

/// What became of a request that was written by hand.
enum Handed {
    /// All of it has left.
    Whole,
    /// The provider has answered, or closed, before it had taken all.
    InPart,
    /// Nothing has left.
    Not,
}

impl Links {
    /// As [`Links::send`], for an answer that may be long in coming. One that begins before the request has left
    /// is read as well, and its connection is closed then.
    ///
    /// # Errors
    /// As [`Links::send`].
    pub(in crate::providers) fn send_parked(
        &self,
        mut request: Asked,
    ) -> impl Future<Output = Result<Response<Body>, Failure>> {
        request.headers_mut().insert(HOST, self.host.clone());
        let method = request.method().clone();
        let bytes = written(*request);
        // What stands outside of this is no part of the call that waits.
        async move {
            let (mut wire, handed) = Box::pin(self.hand_over(&bytes)).await?;
            drop(bytes);
            wire.answer_begins().await;
            Box::pin(self.read(wire, method, matches!(handed, Handed::Whole))).await
        }
    }

    /// Writes a request to a connection that takes it: a kept one, else a new one.
    async fn hand_over(&self, bytes: &[u8]) -> Result<(Wire, Handed), Failure> {
        while let Some(mut link) = self.idle.take() {
            if !link.is_usable() {
                continue;
            }
            let Some(mut wire) = link.into_wire() else { continue };
            match wire.hand_over(bytes).await {
                Handed::Not => {}
                handed => return Ok((wire, handed)),
            }
        }
        let mut wire = Wire::new(self.connect().await?);
        match wire.hand_over(bytes).await {
            Handed::Not => Err(Failure::Cut),
            handed => Ok((wire, handed)),
        }
    }

    /// Reads the head of the answer to a request that was written by hand.
    async fn read(&self, mut wire: Wire, method: Method, is_whole: bool) -> Result<Response<Body>, Failure> {
        wire.stand_in = StandIn::Awaited;
        let mut link = Link::over(wire).await?;
        link.is_spent = !is_whole;
        let mut stand_in = Asked::default();
        *stand_in.method_mut() = method;
        match link.ask(stand_in).await {
            Ok((link, response)) => Ok(self.answered(link, response)),
            Err(_) => Err(Failure::Cut),
        }
    }
}

impl Link {
    /// The bare connection; `None` if something came that nobody asked for.
    fn into_wire(self) -> Option<Wire> {
        let parts = Pin::into_inner(self.connection).into_parts();
        parts.read_buf.is_empty().then_some(parts.io)
    }
}

/// A request as it goes to the wire.
fn written(request: Request<Full<Bytes>>) -> Vec<u8> {
    let (mut head, body) = request.into_parts();
    // A body that is whole is there at once.
    let body = futures_util::FutureExt::now_or_never(body.collect());
    let body = body.and_then(Result::ok).map(http_body_util::Collected::to_bytes).unwrap_or_default();
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    let mut bytes = Vec::with_capacity(1024 + body.len());
    for part in [head.method.as_str(), " ", &head.uri.to_string(), " HTTP/1.1\r\n"] {
        bytes.extend_from_slice(part.as_bytes());
    }
    for (name, value) in &head.headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(&body);
    bytes
}

impl Wire {
    /// A connection on which everything is passed on.
    pub(super) const fn new(stream: Stream) -> Self {
        Self { stream, stand_in: StandIn::Over, ahead: Vec::new() }
    }

    /// Waits until there is something of the answer, or the connection has ended, which shows when the answer is read.
    /// That the socket has bytes says little: under TLS, most servers begin with some of their own.
    async fn answer_begins(&mut self) {
        poll_fn(|context| self.poll_ahead(context, 1)).await;
    }

    /// Reads ahead until there are `length` bytes; fewer if the connection has ended.
    fn poll_ahead(&mut self, context: &mut Context<'_>, length: usize) -> Poll<()> {
        while self.ahead.len() < length {
            let mut bytes = [0; STATUS_AT + 1];
            let mut buffer = ReadBuf::new(&mut bytes[..length - self.ahead.len()]);
            let outcome = ready!(Pin::new(&mut self.stream).poll_read(context, buffer.unfilled()));
            if outcome.is_err() || buffer.filled().is_empty() {
                break;
            }
            self.ahead.extend_from_slice(buffer.filled());
        }
        Poll::Ready(())
    }

    /// Whether the peer has answered, or closed, so that no more of the request need be sent. An answer of 1xx is not
    /// its last word.
    fn poll_refused(&mut self, context: &mut Context<'_>) -> Poll<()> {
        ready!(self.poll_ahead(context, STATUS_AT + 1));
        if self.ahead.get(STATUS_AT) == Some(&b'1') { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Writes it all, unless the peer has its say before.
    async fn hand_over(&mut self, bytes: &[u8]) -> Handed {
        let mut left = bytes;
        poll_fn(|context| {
            loop {
                let outcome = match Pin::new(&mut self.stream).poll_write(context, left) {
                    Poll::Ready(Ok(count)) if count > 0 && !left.is_empty() => {
                        left = &left[count..];
                        continue;
                    }
                    Poll::Ready(Ok(_)) if left.is_empty() => Pin::new(&mut self.stream).poll_flush(context),
                    Poll::Ready(Ok(_)) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Ready(Err(cause)) => Poll::Ready(Err(cause)),
                    Poll::Pending => Poll::Pending,
                };
                return match outcome {
                    Poll::Ready(Ok(())) => Poll::Ready(Handed::Whole),
                    Poll::Ready(Err(_)) if left.len() == bytes.len() => Poll::Ready(Handed::Not),
                    Poll::Ready(Err(_)) => Poll::Ready(Handed::InPart),
                    Poll::Pending if left.len() == bytes.len() => Poll::Pending,
                    Poll::Pending => self.poll_refused(context).map(|()| Handed::InPart),
                };
            }
        })
        .await
    }
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match self.stand_in {
            StandIn::Over if !self.ahead.is_empty() => {
                let count = self.ahead.len().min(buffer.remaining());
                buffer.put_slice(&self.ahead[..count]);
                self.ahead.drain(..count);
                Poll::Ready(Ok(()))
            }
            StandIn::Over => Pin::new(&mut self.stream).poll_read(context, buffer),
            // Woken when the stand-in is swallowed.
            StandIn::Awaited | StandIn::Begun => Poll::Pending,
        }
    }
}

impl Write for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.stand_in == StandIn::Over {
            return Pin::new(&mut self.stream).poll_write(context, bytes);
        }
        self.stand_in = StandIn::Begun;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.stand_in == StandIn::Over {
            return Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        }
        self.stand_in = StandIn::Begun;
        Poll::Ready(Ok(pieces.iter().map(|piece| piece.len()).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes when it has written a request to its end.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.stand_in {
            StandIn::Over => Pin::new(&mut self.stream).poll_flush(context),
            StandIn::Awaited => Poll::Ready(Ok(())),
            StandIn::Begun => {
                self.stand_in = StandIn::Over;
                context.waker().wake_by_ref();
                Poll::Ready(Ok(()))
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
