//! hyper answers requests that it cannot read (400, 414, 431) by itself, before any service is asked: without a body,
//! a request id or limits. This wrapper around the connection puts our own answer in the place of such a head, so
//! that every answer has the documented shape.
//!
//! Recognised by what it lacks: a head that begins with a 4xx status and has no `x-request-id`, which every answer of
//! ours carries. hyper writes such a head in one piece and closes afterwards.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};

use http::{HeaderMap, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::incoming::Incoming;
use super::reply::{self, ApiError, Rate};
use super::{Context, gate};

/// A connection on which hyper's bare refusals become ours.
pub(crate) struct Refusals<S> {
    inner: S,
    peer: SocketAddr,
    context: Arc<Context>,
    /// Our answer, how much of it is written, and how many of hyper's bytes it stands for.
    replacement: Option<(Vec<u8>, usize, usize)>,
}

impl<S> Refusals<S> {
    pub(crate) fn new(inner: S, peer: SocketAddr, context: Arc<Context>) -> Self {
        Self { inner, peer, context, replacement: None }
    }

    fn answer(&self, status: StatusCode) -> Vec<u8> {
        // A request that could not be read has no headers that could be believed.
        let incoming = Incoming::new(&HeaderMap::new(), self.peer, &[]);
        let rate = Rate::from(gate::open_state(&self.context.app, &incoming));
        let (body, mut headers) = ApiError::unreadable(status).into_parts(&incoming.request_id);
        reply::write_rate_headers(&mut headers, &rate);
        let mut bytes =
            format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in &headers {
            bytes.extend([name.as_str(), ": ", value.to_str().unwrap_or_default(), "\r\n"]);
        }
        bytes.extend(["x-request-id: ", &*incoming.request_id, "\r\n\r\n"]);
        let mut bytes = bytes.into_bytes();
        bytes.extend_from_slice(&body);
        bytes
    }
}

/// The status of a head that hyper made by itself.
fn bare_refusal(head: &[u8]) -> Option<StatusCode> {
    let digits = head.strip_prefix(b"HTTP/1.1 ").or_else(|| head.strip_prefix(b"HTTP/1.0 "))?.get(..3)?;
    let status = StatusCode::from_bytes(digits).ok().filter(StatusCode::is_client_error)?;
    let ours = head.windows(14).any(|window| window.eq_ignore_ascii_case(b"\r\nx-request-id"));
    (!ours).then_some(status)
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Refusals<S> {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Task<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.replacement.is_none()
            && let Some(status) = bare_refusal(bytes)
        {
            this.replacement = Some((this.answer(status), 0, bytes.len()));
        }
        let Some((answer, written, stands_for)) = &mut this.replacement else {
            return Pin::new(&mut this.inner).poll_write(task, bytes);
        };
        while *written < answer.len() {
            match ready!(Pin::new(&mut this.inner).poll_write(task, &answer[*written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => *written += count,
            }
        }
        let count = *stands_for;
        this.replacement = None;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(task)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Task<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = pieces.iter().find(|piece| !piece.is_empty());
        match first {
            Some(head) if self.replacement.is_some() || bare_refusal(head).is_some() => {
                self.poll_write(task, head)
            }
            _ => Pin::new(&mut self.inner).poll_write_vectored(task, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Refusals<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Task<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(task, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_heads_that_hyper_made_are_taken_for_refusals() {
        assert_eq!(
            bare_refusal(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"),
            Some(StatusCode::BAD_REQUEST)
        );
        assert_eq!(bare_refusal(b"HTTP/1.1 404 Not Found\r\nx-request-id: req_1\r\n\r\n"), None);
        assert_eq!(bare_refusal(b"HTTP/1.1 200 OK\r\n\r\n"), None);
        assert_eq!(bare_refusal(b"event: error\n"), None);
    }
}
