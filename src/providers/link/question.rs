//! A request as it goes to the wire.

use std::io::IoSlice;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderValue, Method};

use super::Asked;

/// The bytes of a request, and how many have left.
pub(super) struct Question {
    head: Vec<u8>,
    body: Bytes,
    sent: usize,
}

impl Question {
    /// This request to a provider that is called `host`.
    pub(super) fn new(request: Asked, host: &HeaderValue) -> Self {
        let (parts, body) = request.into_parts();
        let mut head = Vec::with_capacity(512);
        let path = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        for part in [parts.method.as_str(), " ", path, " HTTP/1.1\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
        let mut field = |name: &str, value: &[u8]| {
            for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                head.extend_from_slice(part);
            }
        };
        field(HOST.as_str(), host.as_bytes());
        for (name, value) in &parts.headers {
            if ![HOST, CONTENT_LENGTH, TRANSFER_ENCODING].contains(name) {
                field(name.as_str(), value.as_bytes());
            }
        }
        if !body.is_empty() || parts.method != Method::GET {
            field(CONTENT_LENGTH.as_str(), itoa::Buffer::new().format(body.len()).as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        Self { head, body, sent: 0 }
    }

    /// What has not left.
    pub(super) fn left(&self) -> [IoSlice<'_>; 2] {
        let head = self.head.get(self.sent..).unwrap_or_default();
        let body = self.body.get(self.sent.saturating_sub(self.head.len())..).unwrap_or_default();
        [IoSlice::new(head), IoSlice::new(body)]
    }

    /// Notes that so many more bytes have left.
    pub(super) const fn has_sent(&mut self, count: usize) {
        self.sent += count;
    }

    /// Whether anything has left.
    pub(super) const fn has_begun(&self) -> bool {
        self.sent > 0
    }

    /// Whether all has left.
    pub(super) const fn is_sent(&self) -> bool {
        self.sent >= self.head.len() + self.body.len()
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    /// All of it, as it leaves in steps of so many bytes.
    fn sent(request: Request<Bytes>, step: usize) -> String {
        let mut question = Question::new(Box::new(request), &HeaderValue::from_static("a.example"));
        let mut bytes = Vec::new();
        let left =
            |question: &Question| question.left().iter().flat_map(|part| part.to_vec()).collect::<Vec<u8>>();
        while !question.is_sent() {
            let left = left(&question);
            let count = left.len().min(step);
            bytes.extend_from_slice(&left[..count]);
            question.has_sent(count);
        }
        assert!(left(&question).is_empty());
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_request_goes_out_in_any_steps() {
        let request = || {
            let request = Request::post("/v1/x?y=z").header("x-key", "k").header(HOST, "b.example");
            request.body(Bytes::from("question")).unwrap()
        };
        let expected =
            "POST /v1/x?y=z HTTP/1.1\r\nhost: a.example\r\nx-key: k\r\ncontent-length: 8\r\n\r\nquestion";
        for step in [1, 7, 80, 1000] {
            assert_eq!(sent(request(), step), expected);
        }
    }

    #[test]
    fn only_what_may_have_a_body_tells_its_length() {
        let get = Request::get("/models").body(Bytes::new()).unwrap();
        assert_eq!(sent(get, 1000), "GET /models HTTP/1.1\r\nhost: a.example\r\n\r\n");
        let post = Request::post("/x").body(Bytes::new()).unwrap();
        assert_eq!(sent(post, 1000), "POST /x HTTP/1.1\r\nhost: a.example\r\ncontent-length: 0\r\n\r\n");
    }
}
