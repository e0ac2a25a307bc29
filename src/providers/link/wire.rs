//! One connection: bytes go out and come in, and nothing is held that nobody waits for.
//!
//! While a model thinks, a call takes its socket and little more: thousands of verifications may wait at once. So what
//! comes is read into room on the stack, and only what has come is kept.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::coop;
use tokio_rustls::client::TlsStream;

use super::framing::Framing;
use super::head::{self, FirstWord, Head};
use super::question::Question;
use super::{Broken, Connected};

/// The most that is read at once; TLS gives no more.
const READ_BYTES: usize = 16 * 1024;

/// One connection.
pub(super) struct Wire {
    stream: Stream,
    /// What came and was not yet taken.
    came: BytesMut,
    /// How much of the present answer came before its last word, and was taken away.
    passed: usize,
}

enum Stream {
    Plain(TcpStream),
    /// In a box, as it is large, and a call that waits would have room for it in every place that the connection is
    /// moved to.
    Tls(Box<TlsStream<TokioIo<Connected>>>),
}

/// What became of a request.
pub(super) enum Sent {
    /// All of it has left.
    Whole,
    /// The provider has refused it, or closed, before it had taken all.
    InPart,
    /// Nothing has left.
    Nothing,
}

impl Wire {
    pub(super) fn new(stream: MaybeHttpsStream<Connected>) -> Self {
        let stream = match stream {
            MaybeHttpsStream::Http(plain) => Stream::Plain(plain.into_inner()),
            MaybeHttpsStream::Https(tls) => Stream::Tls(Box::new(tls.into_inner())),
        };
        Self { stream, came: BytesMut::new(), passed: 0 }
    }

    /// Sends a request, unless the provider refuses it before all of it has left.
    pub(super) async fn send(&mut self, question: &mut Question) -> Sent {
        self.passed = 0;
        poll_fn(|context| {
            loop {
                let is_sent = question.is_sent();
                let outcome =
                    if is_sent { self.poll_flush(context) } else { self.poll_write(context, question) };
                match outcome {
                    Poll::Ready(Ok(_)) if is_sent => return Poll::Ready(Sent::Whole),
                    Poll::Ready(Ok(count)) if count > 0 => question.has_sent(count),
                    Poll::Ready(_) if question.has_begun() => return Poll::Ready(Sent::InPart),
                    Poll::Ready(_) => return Poll::Ready(Sent::Nothing),
                    Poll::Pending if question.has_begun() => {
                        return self.poll_refused(context).map(|()| Sent::InPart);
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await
    }

    /// The head of the answer.
    pub(super) async fn head(&mut self) -> Result<Head, Broken> {
        poll_fn(|context| {
            loop {
                if let Some(head) = head::take(&mut self.came, &mut self.passed)? {
                    return Poll::Ready(Ok(head));
                }
                if ready!(self.poll_read(context)).map_err(|_| Broken)? == 0 {
                    return Poll::Ready(Err(Broken));
                }
            }
        })
        .await
    }

    /// The next data of a body; `None` behind its end. All that came at once is given at once.
    pub(super) fn poll_data(
        &mut self,
        context: &mut Context<'_>,
        framing: &mut Framing,
    ) -> Poll<Result<Option<Bytes>, Broken>> {
        loop {
            let data = if self.came.is_empty() { Bytes::new() } else { framing.take(&mut self.came)? };
            if !data.is_empty() {
                return Poll::Ready(Ok(Some(data)));
            }
            if framing.is_over() {
                return Poll::Ready(Ok(None));
            }
            if ready!(self.poll_read(context)).map_err(|_| Broken)? == 0 {
                let ends_so = *framing == Framing::UntilClosed;
                return Poll::Ready(if ends_so { Ok(None) } else { Err(Broken) });
            }
        }
    }

    /// Whether another request may follow: nothing came that nobody asked for, and the provider has not closed it.
    pub(super) fn is_quiet(&mut self) -> bool {
        if !self.came.is_empty() {
            return false;
        }
        // A task that has done much is told of every socket that there is nothing, unless it is asked so.
        let look = coop::unconstrained(poll_fn(|context| self.poll_read(context)));
        pin!(look).poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// Waits until the runtime has heard that something can be read, or the end; nothing is taken.
    #[cfg(test)]
    pub(super) async fn heard(&self) {
        let plain = match &self.stream {
            Stream::Plain(plain) => plain,
            Stream::Tls(tls) => tls.get_ref().0.inner().inner(),
        };
        let heard = tokio::time::timeout(std::time::Duration::from_secs(20), plain.readable()).await;
        assert!(matches!(heard, Ok(Ok(()))), "nothing comes: {heard:?}");
    }

    /// Holds nothing any more but the connection, and wakes nobody; whether another request may follow, as far as is
    /// known.
    pub(super) fn rest(&mut self) -> bool {
        let is_empty = self.came.is_empty();
        self.came = BytesMut::new();
        // A socket has let go of whom it woke. Under TLS, who has got all may still wait for more.
        is_empty && (matches!(self.stream, Stream::Plain(_)) || self.is_quiet())
    }

    /// Whether the provider has refused, or closed, so that no more of the request need be sent. One that begins with its
    /// answer may still read, and what it says is left where it is until the request has left.
    fn poll_refused(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            match head::first_word(&mut self.came, &mut self.passed) {
                Some(FirstWord::Answer) => return Poll::Pending,
                Some(FirstWord::Refusal) => return Poll::Ready(()),
                None => {}
            }
            if !matches!(ready!(self.poll_read(context)), Ok(count) if count > 0) {
                return Poll::Ready(());
            }
        }
    }

    /// Reads what there is, and how much that was; none at the end.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut room = [const { MaybeUninit::uninit() }; READ_BYTES];
        let mut room = ReadBuf::uninit(&mut room);
        ready!(match &mut self.stream {
            Stream::Plain(plain) => Pin::new(plain).poll_read(context, &mut room),
            Stream::Tls(tls) => Pin::new(tls).poll_read(context, &mut room),
        })?;
        self.came.extend_from_slice(room.filled());
        Poll::Ready(Ok(room.filled().len()))
    }

    fn poll_write(&mut self, context: &mut Context<'_>, question: &Question) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(plain) => Pin::new(plain).poll_write_vectored(context, &question.left()),
            Stream::Tls(tls) => Pin::new(tls).poll_write_vectored(context, &question.left()),
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

/// Without what came, which is somebody's answer.
impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").finish_non_exhaustive()
    }
}
