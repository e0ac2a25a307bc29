//! Answers: the one error type of the HTTP side, every `From` into it, and the headers of limits. `kinds` has the errors
//! there are, `causes` and its neighbours say which of them a complaint from below becomes.
//!
//! Below this file nobody knows status codes. Nothing internal gets into a body: what a caller cannot use is
//! logged with the request's id, and the answer is bland.

mod causes;
mod kinds;
mod provider;
mod rate;
mod report;
mod session;
mod verification;

pub(crate) use rate::{Rate, write_rate_headers};

use std::time::Duration;

use http::header::{self, HeaderValue};
use http::{HeaderMap, StatusCode};
use hyper::body::Body as _;
use serde::Serialize;
use warp::reply::Response;

use super::header_names;
use crate::api::error::{ErrorBody, ErrorEvent};
use crate::limits::LimitState;

/// About how many headers an answer has, so that their map need not grow.
const HEADERS: usize = 12;

/// An error on its way to a caller.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    error: &'static str,
    code: String,
    message: String,
    param: Option<String>,
    provider: Option<String>,
    retry_after: Option<Duration>,
    allow: Option<&'static str>,
    hopeless: bool,
    /// How many calls to providers failed before it came to this.
    attempts: Option<u32>,
    rate: Option<Rate>,
}

/// The code of the error that an answer tells, for the request's record.
#[derive(Clone, Debug)]
pub(crate) struct ErrorCode(pub(crate) String);

/// An answer, and what is known of it beside its bytes. On its way through filters, that travels in its extensions.
pub(crate) struct Answer {
    pub(crate) response: Response,
    pub(crate) rate: Option<Rate>,
    pub(crate) error: Option<ErrorCode>,
}

impl From<Response> for Answer {
    fn from(mut response: Response) -> Self {
        let extensions = response.extensions_mut();
        let (rate, error) = (extensions.remove(), extensions.remove());
        Self { response, rate, error }
    }
}

impl From<Answer> for Response {
    fn from(answer: Answer) -> Self {
        let Answer { mut response, rate, error } = answer;
        if let Some(rate) = rate {
            response.extensions_mut().insert(rate);
        }
        if let Some(error) = error {
            response.extensions_mut().insert(error);
        }
        response
    }
}

impl ApiError {
    fn new(status: StatusCode, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            status,
            error: title(status),
            code: code.into(),
            message: message.into(),
            param: None,
            provider: None,
            retry_after: None,
            allow: None,
            hopeless: false,
            attempts: None,
            rate: None,
        }
    }

    /// The error as the terminal frame of a verification stream, which has four fields and no headers.
    pub(crate) fn into_event(self, request_id: &str) -> ErrorEvent {
        ErrorEvent {
            error: self.error.to_owned(),
            message: self.message,
            code: self.code,
            request_id: request_id.to_owned(),
        }
    }

    /// The error as the `error` of a chat stream's last chunk.
    pub(crate) fn into_chunk_error(self) -> serde_json::Value {
        serde_json::json!({"message": self.message, "type": self.error, "code": self.code})
    }

    /// Its code, as in the body.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// The error with more words behind its own.
    #[must_use]
    pub(crate) fn adding(mut self, words: &str) -> Self {
        self.message.push_str(words);
        self
    }

    /// The error with the limits that its headers describe; a 429 keeps its own.
    #[must_use]
    pub(crate) fn with_rate(mut self, rate: LimitState) -> Self {
        self.rate.get_or_insert(rate.into());
        self
    }

    /// Body and headers of the answer, limits and request id apart.
    pub(crate) fn into_parts(self, request_id: &str) -> (Vec<u8>, HeaderMap) {
        let mut headers = HeaderMap::with_capacity(HEADERS);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(allow) = self.allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        if let Some(wait) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
        }
        if self.hopeless {
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        if let Some(attempts) = self.attempts {
            headers.insert(&header_names::ATTEMPTS, HeaderValue::from(attempts));
        }
        // Strings alone always serialize.
        (serde_json::to_vec(&self.into_body(request_id)).unwrap_or_default(), headers)
    }

    /// Body of the answer.
    pub(crate) fn into_body(self, request_id: &str) -> ErrorBody {
        ErrorBody {
            error: self.error.to_owned(),
            message: self.message,
            code: self.code,
            request_id: request_id.to_owned(),
            param: self.param,
            provider: self.provider,
        }
    }

    /// The answer.
    pub(crate) fn into_answer(self, request_id: &str) -> Answer {
        let (status, rate, code) = (self.status, self.rate, ErrorCode(self.code.clone()));
        let (body, headers) = self.into_parts(request_id);
        let mut response = Response::new(body.into());
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Answer { response, rate, error: Some(code) }
    }

    /// The answer for filters.
    pub(crate) fn into_response(self, request_id: &str) -> Response {
        self.into_answer(request_id).into()
    }
}

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => {
            let mut response = written(bytes);
            *response.status_mut() = status;
            response
        }
        Err(cause) => {
            tracing::error!(%cause, "an answer could not be written as JSON");
            let mut response = Response::new("{}".into());
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        }
    }
}

/// An answer of 200 in JSON that is written already.
pub(crate) fn written(body: impl Into<bytes::Bytes>) -> Response {
    let mut response = Response::new(body.into().into());
    *response.headers_mut() = HeaderMap::with_capacity(HEADERS);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An answer without its body, as HEAD gets it: hyper sees to that for HTTP/1 alone. The length that GET would get is
/// told (RFC 9110, section 9.3.2).
pub(crate) fn head_of(mut response: Response) -> Response {
    let length = response.body().size_hint().exact();
    if let Some(length) = length.filter(|_| !response.headers().contains_key(header::CONTENT_LENGTH)) {
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
    response.map(|_| Response::default().into_body())
}

/// The headers of a stream of events.
pub(crate) fn mark_stream(headers: &mut HeaderMap) {
    let kind = "text/event-stream; charset=utf-8";
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
}

/// A wait in the unit of `Retry-After`: at least a second, and never less than the wait.
const fn whole_seconds(wait: Duration) -> u64 {
    let seconds = wait.as_secs();
    if seconds == 0 || wait.subsec_nanos() > 0 { seconds.saturating_add(1) } else { seconds }
}

/// The `error` of a status.
pub(super) fn title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::TOO_MANY_REQUESTS => "Rate Limit Exceeded",
        other => other.canonical_reason().unwrap_or("Error"),
    }
}
