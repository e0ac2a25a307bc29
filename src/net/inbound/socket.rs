//! A caller's TCP connection, in two handles: one for I/O, and one that watches whether the peer is still there.
//!
//! hyper notices that a caller has left by reading, and it does not read during a response if bytes of the next request
//! wait already. The watching handle asks the operating system instead. It also drains the connection at its end:
//! closing a socket with unread bytes makes the system send a reset, which can destroy a response that the caller has
//! not read yet.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{sleep, timeout};

/// How often a connection is polled while bytes wait in it.
const POLL: Duration = Duration::from_millis(100);
/// Time for a response that is ready when a caller stops sending.
const GRACE: Duration = Duration::from_millis(100);
/// How long to keep reading at most after the last response.
const LINGER: Duration = Duration::from_secs(2);
/// Bytes discarded per read.
const DISCARD_SIZE: usize = 16 * 1024;

/// The handle for I/O. Dropping it tells the peer that nothing more will come.
pub(crate) struct Socket {
    read: Arc<OwnedReadHalf>,
    write: OwnedWriteHalf,
}

/// The handle that watches the peer.
pub(crate) struct PeerWatch(Arc<OwnedReadHalf>);

/// Splits a connection into its handles.
pub(crate) fn split(stream: TcpStream) -> (Socket, PeerWatch) {
    let (read, write) = stream.into_split();
    let read = Arc::new(read);
    (Socket { read: read.clone(), write }, PeerWatch(read))
}

impl PeerWatch {
    /// Waits until the peer has stopped sending, and a moment longer. A peer that only closed its sending side cannot
    /// be told from one that left, and counts as gone: work that nobody waits for costs money.
    pub(crate) async fn peer_left(&self) {
        loop {
            match self.0.ready(Interest::READABLE).await {
                Ok(ready) if !ready.is_read_closed() => sleep(POLL).await,
                _ => return sleep(GRACE).await,
            }
        }
    }

    /// Discards what still arrives, until the peer closes or time is up.
    pub(crate) async fn linger(&self) {
        let mut scratch = vec![0; DISCARD_SIZE];
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
            let mut outcome = Err(ErrorKind::WouldBlock.into());
            // A read that does not fill the buffer means that nothing is left. Reporting that as `WouldBlock` clears
            // the runtime's readiness, so that the watching handle sleeps.
            let _ = stream.try_io(Interest::READABLE, || {
                outcome = self.read.try_read_buf(buffer);
                match outcome {
                    Ok(1..) if buffer.remaining() > 0 => Err(ErrorKind::WouldBlock.into()),
                    _ => Ok(()),
                }
            });
            match outcome {
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => {}
                outcome => return Poll::Ready(outcome.map(drop)),
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
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.write).poll_write_vectored(context, buffers)
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
