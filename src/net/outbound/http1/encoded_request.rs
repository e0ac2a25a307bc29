//! A request, encoded for the wire.

use std::io::IoSlice;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderName, HeaderValue, Method};

use super::HttpRequest;

/// The bytes of a request, and how many of them have been sent.
pub(crate) struct EncodedRequest {
    head: Vec<u8>,
    body: Bytes,
    sent: usize,
}

impl EncodedRequest {
    /// Encodes a request to `host`.
    pub(crate) fn new(request: &HttpRequest<'_>, host: &HeaderValue) -> Self {
        let mut head = Vec::with_capacity(512);
        for part in [request.method.as_str(), " ", &request.target, " HTTP/1.1\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
        let mut field = |name: &HeaderName, value: &[u8]| {
            for part in [name.as_str().as_bytes(), b": ", value, b"\r\n"] {
                head.extend_from_slice(part);
            }
        };
        field(&HOST, host.as_bytes());
        for (name, value) in &request.headers {
            field(name, value.as_bytes());
        }
        if !request.body.is_empty() || request.method != Method::GET {
            field(&CONTENT_LENGTH, itoa::Buffer::new().format(request.body.len()).as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        Self { head, body: request.body.clone(), sent: 0 }
    }

    /// The bytes that have not been sent.
    pub(super) fn unsent(&self) -> [IoSlice<'_>; 2] {
        let head = self.head.get(self.sent..).unwrap_or_default();
        let body = self.body.get(self.sent.saturating_sub(self.head.len())..).unwrap_or_default();
        [IoSlice::new(head), IoSlice::new(body)]
    }

    /// Notes that `count` more bytes have been sent.
    pub(super) const fn advance(&mut self, count: usize) {
        self.sent += count;
    }

    /// Whether any byte has been sent.
    pub(super) const fn has_begun(&self) -> bool {
        self.sent > 0
    }

    /// Whether all bytes have been sent.
    pub(super) const fn is_sent(&self) -> bool {
        self.sent >= self.head.len() + self.body.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All bytes of a request that is sent in steps of `step` bytes.
    fn sent(method: Method, target: &str, body: &'static str, step: usize) -> String {
        let (name, value) = (HeaderName::from_static("x-key"), HeaderValue::from_static("k"));
        let headers = vec![(&name, &value)];
        let request =
            HttpRequest { method, target: target.into(), headers, body: Bytes::from_static(body.as_bytes()) };
        let mut encoded = EncodedRequest::new(&request, &HeaderValue::from_static("a.example"));
        let mut bytes = Vec::new();
        let unsent = |encoded: &EncodedRequest| -> Vec<u8> {
            encoded.unsent().iter().flat_map(|part| part.to_vec()).collect()
        };
        while !encoded.is_sent() {
            let unsent = unsent(&encoded);
            let count = unsent.len().min(step);
            bytes.extend_from_slice(&unsent[..count]);
            encoded.advance(count);
        }
        assert!(unsent(&encoded).is_empty());
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_request_is_sent_in_steps_of_any_size() {
        let expected =
            "POST /v1/x?y=z HTTP/1.1\r\nhost: a.example\r\nx-key: k\r\ncontent-length: 8\r\n\r\nquestion";
        for step in [1, 7, 80, 1000] {
            assert_eq!(sent(Method::POST, "/v1/x?y=z", "question", step), expected);
        }
    }

    #[test]
    fn only_requests_that_may_have_a_body_have_a_content_length() {
        let head = "host: a.example\r\nx-key: k\r\n";
        assert_eq!(sent(Method::GET, "/models", "", 1000), format!("GET /models HTTP/1.1\r\n{head}\r\n"));
        let post = format!("POST /x HTTP/1.1\r\n{head}content-length: 0\r\n\r\n");
        assert_eq!(sent(Method::POST, "/x", "", 1000), post);
    }
}
