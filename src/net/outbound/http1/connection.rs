//! One connection: sends a request and reads the response, with no buffers while nothing arrives.
//!
//! While a model is thinking, a call should take its socket and little more, as thousands of verifications may be
//! waiting at once. So reads go into a buffer on the stack, and only the bytes that have arrived are kept.

use std::future::{Future, poll_fn};
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use std::{fmt, io};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::coop;
use tokio_rustls::client::TlsStream;

use super::BrokenResponse;
use super::encoded_request::EncodedRequest;
use super::framing::Framing;
use super::head::{self, EarlyResponse, Head};

/// The maximum size of one read; TLS never yields more.
const READ_BYTES: usize = 16 * 1024;

/// One connection.
pub(super) struct Connection {
    stream: Stream,
    /// Bytes that have been received but not consumed.
    received: BytesMut,
    /// How many bytes of interim responses (1xx) to the current request have been consumed.
    interim_bytes: usize,
}

enum Stream {
    Plain(TcpStream),
    /// Boxed, as it is large, and the future of a waiting call would reserve space for it wherever the connection is
    /// moved.
    Tls(Box<TlsStream<TcpStream>>),
}

/// How much of a request was sent.
pub(super) enum SendOutcome {
    /// All of it.
    Complete,
    /// A part: the provider refused it or closed the connection before taking the rest.
    Partial,
    /// None of it.
    Nothing,
}

impl Connection {
    /// A connection on which anybody may read.
    pub(super) fn plain(stream: TcpStream) -> Self {
        Self::new(Stream::Plain(stream))
    }

    /// A connection that the provider's certificate was shown on.
    pub(super) fn encrypted(stream: TlsStream<TcpStream>) -> Self {
        Self::new(Stream::Tls(Box::new(stream)))
    }

    fn new(stream: Stream) -> Self {
        Self { stream, received: BytesMut::new(), interim_bytes: 0 }
    }

    /// Sends a request, unless the provider refuses it before it has been sent completely.
    pub(super) async fn send(&mut self, request: &mut EncodedRequest) -> SendOutcome {
        self.interim_bytes = 0;
        poll_fn(|context| {
            loop {
                let is_sent = request.is_sent();
                let outcome =
                    if is_sent { self.poll_flush(context) } else { self.poll_write(context, request) };
                match outcome {
                    Poll::Ready(Ok(_)) if is_sent => return Poll::Ready(SendOutcome::Complete),
                    Poll::Ready(Ok(count)) if count > 0 => request.advance(count),
                    Poll::Ready(_) if request.has_begun() => return Poll::Ready(SendOutcome::Partial),
                    Poll::Ready(_) => return Poll::Ready(SendOutcome::Nothing),
                    Poll::Pending if request.has_begun() => {
                        return self.poll_refused(context).map(|()| SendOutcome::Partial);
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await
    }

    /// The head of the response.
    pub(super) async fn head(&mut self) -> Result<Head, BrokenResponse> {
        poll_fn(|context| {
            loop {
                if let Some(head) = head::take(&mut self.received, &mut self.interim_bytes)? {
                    return Poll::Ready(Ok(head));
                }
                if ready!(self.poll_read(context)).map_err(|_| BrokenResponse)? == 0 {
                    return Poll::Ready(Err(BrokenResponse));
                }
            }
        })
        .await
    }

    /// The next data of a body; `None` after its end. All data that has arrived is returned as one piece.
    pub(super) fn poll_data(
        &mut self,
        context: &mut Context<'_>,
        framing: &mut Framing,
    ) -> Poll<Result<Option<Bytes>, BrokenResponse>> {
        loop {
            let data =
                if self.received.is_empty() { Bytes::new() } else { framing.take(&mut self.received)? };
            if !data.is_empty() {
                return Poll::Ready(Ok(Some(data)));
            }
            if framing.is_over() {
                return Poll::Ready(Ok(None));
            }
            if ready!(self.poll_read(context)).map_err(|_| BrokenResponse)? == 0 {
                let is_end = *framing == Framing::UntilClosed;
                return Poll::Ready(if is_end { Ok(None) } else { Err(BrokenResponse) });
            }
        }
    }

    /// Whether another request may follow: nothing unsolicited has arrived, and the provider has not closed the
    /// connection.
    pub(super) fn is_reusable(&mut self) -> bool {
        if !self.received.is_empty() {
            return false;
        }
        // Unconstrained, as any socket appears pending to a task that has used up its cooperative budget.
        let read = coop::unconstrained(poll_fn(|context| self.poll_read(context)));
        pin!(read).poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// Waits until the runtime knows that there are bytes to read or that the end was reached; reads nothing.
    #[cfg(test)]
    pub(super) async fn readable(&self) {
        let plain = match &self.stream {
            Stream::Plain(plain) => plain,
            Stream::Tls(tls) => tls.get_ref().0,
        };
        let readable = tokio::time::timeout(std::time::Duration::from_secs(20), plain.readable()).await;
        assert!(matches!(readable, Ok(Ok(()))), "nothing comes: {readable:?}");
    }

    /// Frees the buffer and makes sure that no task is woken any more. Returns whether another request may follow, as
    /// far as is known.
    pub(super) fn make_idle(&mut self) -> bool {
        let is_empty = self.received.is_empty();
        self.received = BytesMut::new();
        // A plain socket has dropped the waker that it woke. With TLS, the last read may have left one registered.
        is_empty && (matches!(self.stream, Stream::Plain(_)) || self.is_reusable())
    }

    /// Ready once the provider has refused the request or closed the connection, so that the rest need not be sent. A
    /// provider that begins a successful response may still be reading; the response stays buffered until the request
    /// has been sent.
    fn poll_refused(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            match head::early_response(&mut self.received, &mut self.interim_bytes) {
                Some(EarlyResponse::Success) => return Poll::Pending,
                Some(EarlyResponse::Refusal) => return Poll::Ready(()),
                None => {}
            }
            if !matches!(ready!(self.poll_read(context)), Ok(count) if count > 0) {
                return Poll::Ready(());
            }
        }
    }

    /// Reads what has arrived and returns its length, which is zero at the end.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut buffer = [const { MaybeUninit::uninit() }; READ_BYTES];
        let mut buffer = ReadBuf::uninit(&mut buffer);
        ready!(match &mut self.stream {
            Stream::Plain(plain) => Pin::new(plain).poll_read(context, &mut buffer),
            Stream::Tls(tls) => Pin::new(tls).poll_read(context, &mut buffer),
        })?;
        self.received.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    }

    fn poll_write(&mut self, context: &mut Context<'_>, request: &EncodedRequest) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(plain) => Pin::new(plain).poll_write_vectored(context, &request.unsent()),
            Stream::Tls(tls) => Pin::new(tls).poll_write_vectored(context, &request.unsent()),
        }
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let flushed = match &mut self.stream {
            Stream::Plain(plain) => Pin::new(plain).poll_flush(context),
            Stream::Tls(tls) => Pin::new(tls).poll_flush(context),
        };
        flushed.map_ok(|()| 0)
    }
}

/// Without the received bytes, which are somebody's answer.
impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}
