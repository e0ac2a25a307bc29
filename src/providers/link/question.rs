//! A request as it goes to the wire.

use std::io::IoSlice;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderName, HeaderValue, Method};

use super::Asked;

/// The bytes of a request, and how many have left.
pub(in crate::providers) struct Question {
    head: Vec<u8>,
    body: Bytes,
    sent: usize,
}

impl Question {
    /// This request to a provider that is called `host`.
    pub(in crate::providers) fn new(asked: &Asked<'_>, host: &HeaderValue) -> Self {
        let mut head = Vec::with_capacity(512);
        for part in [asked.method.as_str(), " ", &asked.target, " HTTP/1.1\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
        let mut field = |name: &HeaderName, value: &[u8]| {
            for part in [name.as_str().as_bytes(), b": ", value, b"\r\n"] {
                head.extend_from_slice(part);
            }
        };
        field(&HOST, host.as_bytes());
        for (name, value) in &asked.headers {
            field(name, value.as_bytes());
        }
        if !asked.body.is_empty() || asked.method != Method::GET {
            field(&CONTENT_LENGTH, itoa::Buffer::new().format(asked.body.len()).as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        Self { head, body: asked.body.clone(), sent: 0 }
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
    use super::*;

    /// All of it, as it leaves in steps of so many bytes.
    fn sent(method: Method, target: &str, body: &'static str, step: usize) -> String {
        let (name, value) = (HeaderName::from_static("x-key"), HeaderValue::from_static("k"));
        let headers = vec![(&name, &value)];
        let asked =
            Asked { method, target: target.into(), headers, body: Bytes::from_static(body.as_bytes()) };
        let mut question = Question::new(&asked, &HeaderValue::from_static("a.example"));
        let mut bytes = Vec::new();
        let left = |question: &Question| -> Vec<u8> {
            question.left().iter().flat_map(|part| part.to_vec()).collect()
        };
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
        let expected =
            "POST /v1/x?y=z HTTP/1.1\r\nhost: a.example\r\nx-key: k\r\ncontent-length: 8\r\n\r\nquestion";
        for step in [1, 7, 80, 1000] {
            assert_eq!(sent(Method::POST, "/v1/x?y=z", "question", step), expected);
        }
    }

    #[test]
    fn only_what_may_have_a_body_tells_its_length() {
        let head = "host: a.example\r\nx-key: k\r\n";
        assert_eq!(sent(Method::GET, "/models", "", 1000), format!("GET /models HTTP/1.1\r\n{head}\r\n"));
        let post = format!("POST /x HTTP/1.1\r\n{head}content-length: 0\r\n\r\n");
        assert_eq!(sent(Method::POST, "/x", "", 1000), post);
    }
}
