//! A caller's TCP connection, in two handles: one that is spoken through, and one that watches it from beside.
//!
//! hyper tells that a caller has left by reading, and it does not read while an answer is under way if bytes of a
//! next request wait already. The watching handle asks the operating system instead. It also sees a connection to
//! its end: whoever closes while bytes lie unread makes the system send a reset, which can destroy an answer
//! that the caller has not read yet.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{sleep, timeout};

/// How often a connection is looked at while bytes wait in it.
const LOOK: Duration = Duration::from_millis(100);
/// For answers that are ready when a caller stops sending.
const GRACE: Duration = Duration::from_millis(100);
/// The longest that a caller is listened to after the last answer.
const LINGER: Duration = Duration::from_secs(2);
/// Bytes thrown away at once.
const DISCARD: usize = 16 * 1024;

/// The handle that is spoken through. Dropping it tells the peer that nothing more comes.
pub(crate) struct Socket {
    read: Arc<OwnedReadHalf>,
    write: OwnedWriteHalf,
}

/// The handle that watches.
pub(crate) struct Watch(Arc<OwnedReadHalf>);

/// Takes a connection apart.
pub(crate) fn split(stream: TcpStream) -> (Socket, Watch) {
    let (read, write) = stream.into_split();
    let read = Arc::new(read);
    (Socket { read: read.clone(), write }, Watch(read))
}

impl Watch {
    /// Waits until the peer has stopped sending, and a moment longer. One that only closed its sending side cannot
    /// be told from one that left, and counts as gone: work that nobody waits for costs money.
    pub(crate) async fn left(&self) {
        loop {
            match self.0.ready(Interest::READABLE).await {
                Ok(ready) if !ready.is_read_closed() => sleep(LOOK).await,
                _ => return sleep(GRACE).await,
            }
        }
    }

    /// Throws away what still comes, until the peer closes or time is up.
    pub(crate) async fn linger(&self) {
        let mut scratch = vec![0; DISCARD];
        let discard = async {
            while self.0.ready(Interest::READABLE).await.is_ok() {
                match self.0.try_read(&mut scratch) {
                    Ok(0) => return,
                    Err(cause) if cause.kind() != ErrorKind::WouldBlock => return,
                    _ => {}
                }
            }
        };
        // Time is up: the peer has had its chance to read.
        let _ = timeout(LINGER, discard).await;
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = self.read.as_ref().as_ref();
        loop {
            ready!(stream.poll_read_ready(context))?;
            let mut taken = Err(ErrorKind::WouldBlock.into());
            // Less than there was room for means that nothing is left. The runtime is to know, so that the watching
            // handle sleeps, and it hears of it only from who finds nothing.
            let _ = stream.try_io(Interest::READABLE, || {
                taken = self.read.try_read_buf(buffer);
                match taken {
                    Ok(1..) if buffer.remaining() > 0 => Err(ErrorKind::WouldBlock.into()),
                    _ => Ok(()),
                }
            });
            match taken {
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => {}
                taken => return Poll::Ready(taken.map(drop)),
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.write).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.write).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.write.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_shutdown(context)
    }
}
