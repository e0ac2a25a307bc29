//! hyper answers requests that it cannot read (400, 414, 431) by itself, before any service is asked: without a body,
//! a request id or limits. This wrapper around the connection puts our own answer in the place of such a head, so
//! that every answer has the documented shape.
//!
//! It is recognised by its exact form at the end of what hyper writes, after which hyper closes. No answer of ours can
//! be taken for it, wherever its bytes are cut on their way to a slow reader: its lines end in CR LF, and our bodies
//! hold no CR that is not the wire's own.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};

use http::{HeaderMap, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::reply::{self, ApiError, Rate};
use super::{Context, gate, incoming, record};

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
        let request_id = incoming::request_id(&HeaderMap::new());
        let app = &self.context.app;
        let client = self.peer.ip().to_canonical();
        let rate = Rate::from(gate::open_state(app, &app.configured(), client));
        let error = ApiError::unreadable(status);
        record::unreadable(&app.metrics, &request_id, client, status, error.code());
        let (body, mut headers) = error.into_parts(&request_id);
        reply::write_rate_headers(&mut headers, &rate);
        let mut bytes =
            format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in &headers {
            bytes.extend([name.as_str(), ": ", value.to_str().unwrap_or_default(), "\r\n"]);
        }
        bytes.extend(["x-request-id: ", &*request_id, "\r\n\r\n"]);
        let mut bytes = bytes.into_bytes();
        bytes.extend_from_slice(&body);
        bytes
    }
}

/// More than a head of hyper's own is long.
const LONGEST_REFUSAL: usize = 160;

/// Where a head begins that hyper made by itself, and its status, if `bytes` end with one.
fn bare_refusal(bytes: &[u8]) -> Option<(usize, StatusCode)> {
    if !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let tail = bytes.len().saturating_sub(LONGEST_REFUSAL);
    // Every answer passes by here, and an H is rare in a head. Looking at every byte without a way out lets the
    // compiler look at many at once.
    if bytes[tail..].iter().fold(0, |found, byte| found | u8::from(*byte == b'H')) == 0 {
        return None;
    }
    let begin = (tail..bytes.len()).rev().find(|at| bytes[*at..].starts_with(b"HTTP/1.1 4"))?;
    let mut lines = std::str::from_utf8(&bytes[begin..]).ok()?.split("\r\n");
    let status = StatusCode::from_bytes(lines.next()?.as_bytes().get(9..12)?).ok()?;
    let mut has_no_body = false;
    for line in lines {
        match line {
            "content-length: 0" => has_no_body = true,
            "connection: close" | "" => {}
            date if date.starts_with("date: ") => {}
            _ => return None,
        }
    }
    has_no_body.then_some((begin, status))
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Refusals<S> {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Task<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.replacement.is_none() {
            match bare_refusal(bytes) {
                None => {}
                Some((0, status)) => this.replacement = Some((this.answer(status), 0, bytes.len())),
                // What stands before it goes out first.
                Some((begin, _)) => return Pin::new(&mut this.inner).poll_write(task, &bytes[..begin]),
            }
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

    const BARE: &str =
        "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\ndate: Fri, 20 Nov 2026 12:00:00 GMT\r\n\r\n";

    fn found(bytes: &str) -> Option<(usize, u16)> {
        bare_refusal(bytes.as_bytes()).map(|(begin, status)| (begin, status.as_u16()))
    }

    #[test]
    fn only_heads_that_hyper_made_are_taken_for_refusals() {
        assert_eq!(found(BARE), Some((0, 400)));
        assert_eq!(found(&BARE.replace("date", "connection: close\r\ndate")), Some((0, 400)));
        assert_eq!(found("HTTP/1.1 404 Not Found\r\nx-request-id: req_1\r\ncontent-length: 0\r\n\r\n"), None);
        assert_eq!(found("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"), None);
        assert_eq!(found("HTTP/1.1 400 Bad Request\r\n\r\n"), None);
        assert_eq!(found(&BARE[..BARE.len() - 2]), None);
    }

    #[test]
    fn a_refusal_is_found_behind_an_answer() {
        let answer = "HTTP/1.1 404 Not Found\r\nx-request-id: req_1\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(found(&format!("{answer}{BARE}")), Some((answer.len(), 400)));
    }

    #[test]
    fn a_body_cut_anywhere_is_never_a_refusal() {
        let body = format!("event: completed\ndata: {}\n\n", serde_json::json!({"original_fact": BARE}));
        let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        for at in 0..chunk.len() {
            assert_eq!(found(&chunk[at..]), None, "{at}");
            assert_eq!(found(&chunk[..at]), None, "{at}");
        }
    }
}
