//! Replaces the responses that hyper sends by itself. It answers requests that it cannot parse (400, 414, 431) before
//! any service is called, without a body, a request id or rate limits. This wrapper around the connection puts our own
//! response in their place, so that every response has the documented format.
//!
//! They are recognised by their exact form at the end of what hyper writes, after which hyper closes. No response of
//! ours can be mistaken for one, wherever its bytes are split on their way to a slow reader: the lines of a head end in
//! CR LF, and our bodies contain no CR except in the chunk framing and at the end of CSV rows.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};

use http::{HeaderMap, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::reply::{self, ApiError, ErrorCode, Rate};
use super::request::{incoming, record};
use super::{ServerState, gate};
use crate::api::endpoint::Door;

/// A connection on which hyper's own error responses are replaced by ours.
pub(crate) struct ReplaceHyperErrors<S> {
    inner: S,
    peer: SocketAddr,
    context: Arc<ServerState>,
    /// Our response, how much of it is written, and how many of hyper's bytes it replaces.
    replacement: Option<(Vec<u8>, usize, usize)>,
}

impl<S> ReplaceHyperErrors<S> {
    pub(crate) fn new(inner: S, peer: SocketAddr, context: Arc<ServerState>) -> Self {
        Self { inner, peer, context, replacement: None }
    }

    fn response(&self, status: StatusCode) -> Vec<u8> {
        // A request that could not be parsed has no headers that could be trusted.
        let request_id = incoming::request_id(&HeaderMap::new());
        let app = &self.context.app;
        let client = self.peer.ip().to_canonical();
        let rate = Rate::from(gate::open_page_state(app, &app.configured(), client));
        let error = ApiError::from(match status {
            StatusCode::URI_TOO_LONG => ErrorCode::UriTooLong,
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => ErrorCode::HeadersTooLarge,
            _ => ErrorCode::MalformedRequest,
        });
        record::malformed(&app.metrics, &request_id, client, status, error.code());
        let (body, mut headers) = error.into_parts(Door::Documented, &request_id);
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

/// An upper bound for the length of hyper's own error responses.
const MAX_LENGTH: usize = 160;

/// The offset and the status of an error response of hyper's own, if `bytes` end with one.
fn find_hyper_error(bytes: &[u8]) -> Option<(usize, StatusCode)> {
    if !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let tail = bytes.len().saturating_sub(MAX_LENGTH);
    // Every response passes through here, and an H is rare in a head. A fold without an early exit is vectorised.
    if bytes[tail..].iter().fold(0, |found, byte| found | u8::from(*byte == b'H')) == 0 {
        return None;
    }
    let start = (tail..bytes.len()).rev().find(|at| bytes[*at..].starts_with(b"HTTP/1.1 4"))?;
    let mut lines = std::str::from_utf8(&bytes[start..]).ok()?.split("\r\n");
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
    has_no_body.then_some((start, status))
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReplaceHyperErrors<S> {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Task<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.replacement.is_none() {
            match find_hyper_error(bytes) {
                None => {}
                Some((0, status)) => this.replacement = Some((this.response(status), 0, bytes.len())),
                // What precedes it is written first.
                Some((start, _)) => return Pin::new(&mut this.inner).poll_write(task, &bytes[..start]),
            }
        }
        let Some((response, written, replaced)) = &mut this.replacement else {
            return Pin::new(&mut this.inner).poll_write(task, bytes);
        };
        while *written < response.len() {
            match ready!(Pin::new(&mut this.inner).poll_write(task, &response[*written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => *written += count,
            }
        }
        let count = *replaced;
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
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = buffers.iter().find(|buffer| !buffer.is_empty());
        match first {
            Some(head) if self.replacement.is_some() || find_hyper_error(head).is_some() => {
                self.poll_write(task, head)
            }
            _ => Pin::new(&mut self.inner).poll_write_vectored(task, buffers),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReplaceHyperErrors<S> {
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
        find_hyper_error(bytes.as_bytes()).map(|(start, status)| (start, status.as_u16()))
    }

    #[test]
    fn only_responses_that_hyper_made_are_found() {
        assert_eq!(found(BARE), Some((0, 400)));
        assert_eq!(found(&BARE.replace("date", "connection: close\r\ndate")), Some((0, 400)));
        assert_eq!(found("HTTP/1.1 404 Not Found\r\nx-request-id: req_1\r\ncontent-length: 0\r\n\r\n"), None);
        assert_eq!(found("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"), None);
        assert_eq!(found("HTTP/1.1 400 Bad Request\r\n\r\n"), None);
        assert_eq!(found(&BARE[..BARE.len() - 2]), None);
    }

    #[test]
    fn an_error_of_hyper_s_is_found_behind_a_response() {
        let response = "HTTP/1.1 404 Not Found\r\nx-request-id: req_1\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(found(&format!("{response}{BARE}")), Some((response.len(), 400)));
    }

    #[test]
    fn a_body_split_anywhere_is_never_taken_for_one() {
        let body = format!("event: completed\ndata: {}\n\n", serde_json::json!({"original_fact": BARE}));
        let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        for at in 0..chunk.len() {
            assert_eq!(found(&chunk[at..]), None, "{at}");
            assert_eq!(found(&chunk[..at]), None, "{at}");
        }
    }
}
