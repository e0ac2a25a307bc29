//! Writes several buffers to a TCP connection, small ones in one piece.
//!
//! A write of a list of buffers goes through the kernel's file layer, which imports the list and checks it; a plain
//! write to a socket goes straight to it. The difference is 0.15 to 0.2 µs (Linux 6.18, head and body of a completion
//! over loopback), several times what copying the bytes together takes.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncWrite, ReadBuf};

/// What is gathered at most: more than most heads, chunks and completions have.
const GATHERED_BYTES: usize = 4 * 1024;

/// Writes `buffers` in order, as [`AsyncWrite::poll_write_vectored`] does.
pub fn poll_write(
    connection: Pin<&mut (impl AsyncWrite + ?Sized)>,
    context: &mut Context<'_>,
    buffers: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    let length = buffers.iter().fold(0_usize, |sum, buffer| sum.saturating_add(buffer.len()));
    if length > GATHERED_BYTES {
        return connection.poll_write_vectored(context, buffers);
    }
    let mut gathered = [const { MaybeUninit::uninit() }; GATHERED_BYTES];
    let mut gathered = ReadBuf::uninit(&mut gathered);
    for buffer in buffers {
        gathered.put_slice(buffer);
    }
    connection.poll_write(context, gathered.filled())
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Takes up to `room` bytes per write.
    struct Peer {
        room: usize,
        taken: Vec<u8>,
        vectored: usize,
    }

    impl AsyncWrite for Peer {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let count = bytes.len().min(self.room);
            self.taken.extend_from_slice(&bytes[..count]);
            Poll::Ready(Ok(count))
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffers: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.vectored += 1;
            self.poll_write(context, &buffers.iter().flat_map(|buffer| buffer.to_vec()).collect::<Vec<u8>>())
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// What a peer with this much room takes of head and body, and whether they were gathered.
    fn written(head: &[u8], body: &[u8], room: usize) -> (Vec<u8>, bool) {
        let mut peer = Peer { room, taken: Vec::new(), vectored: 0 };
        let buffers = [IoSlice::new(head), IoSlice::new(&[]), IoSlice::new(body)];
        let outcome = poll_write(Pin::new(&mut peer), &mut Context::from_waker(Waker::noop()), &buffers);
        let Poll::Ready(Ok(count)) = outcome else { panic!("{outcome:?}") };
        assert_eq!(count, peer.taken.len());
        (peer.taken, peer.vectored == 0)
    }

    #[test]
    fn small_buffers_are_written_in_one_piece_and_large_ones_as_they_are() {
        let head = b"head".as_slice();
        for (length, is_gathered) in [(0, true), (GATHERED_BYTES - 4, true), (GATHERED_BYTES - 3, false)] {
            let body = vec![b'x'; length];
            assert_eq!(written(head, &body, usize::MAX), ([head, &body].concat(), is_gathered), "{length}");
        }
        assert_eq!(written(head, b"body", 6), (b"headbo".to_vec(), true), "a peer may take a part");
        assert_eq!(written(b"", b"", 6), (Vec::new(), true));
    }
}
