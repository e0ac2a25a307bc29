//! Responses: the one error type of the HTTP side, the conversions into it, and the rate-limit headers. What errors
//! there are says the table in `api/error_code.rs`; `constructors` makes them, `conversions` and its neighbours map the
//! errors of other rooms to them; `doors` writes them as the protocol of a door has them.
//!
//! No other room knows status codes. Nothing internal gets into a body: what a caller cannot use is logged with the
//! request's id, and the response is generic.

mod constructors;
mod conversions;
mod doors;
mod provider;
mod rate;
mod verification;

pub(crate) use crate::api::error_code::ErrorCode;
pub(crate) use doors::body as error_body;
pub(crate) use rate::{Rate, write_rate_headers};

use std::borrow::Cow;
use std::time::Duration;

use http::header::{self, HeaderValue};
use http::{HeaderMap, StatusCode};
use hyper::body::Body as _;
use serde::Serialize;
use warp::reply::Response;

use super::request::header_names;
use super::request::incoming::Incoming;
use crate::api::endpoint::Door;
use crate::api::error::{ErrorBody, ErrorEvent};
use crate::api::guard::{AnswerVerification, GuardError};
use crate::limits::LimitState;

/// About how many headers a response has, so that their map need not grow.
const HEADER_CAPACITY: usize = 12;

/// An error on its way to a caller.
#[derive(Debug)]
pub(crate) struct ApiError {
    code: ErrorCode,
    /// A provider's own code for what it refuses, which is sent in place of ours.
    provider_code: Option<Box<str>>,
    message: Cow<'static, str>,
    param: Option<String>,
    provider: Option<Box<str>>,
    /// What a provider says about a prompt that is too long. Clients of its own protocol match on it.
    words: Option<Box<str>>,
    /// What the model wrote and its provider could not use.
    failed_generation: Option<Box<str>>,
    /// What was found about an answer that is not given.
    verification: Option<Box<AnswerVerification>>,
    retry_after: Option<Duration>,
    allow: Option<&'static str>,
    /// Whether clients are told not to retry.
    no_retry: bool,
    /// How many calls to providers were made before the request failed.
    attempts: Option<u32>,
    rate: Option<Rate>,
}

/// The code of the error in a response, for the request's record.
#[derive(Clone, Debug)]
pub(crate) struct SentCode(pub(crate) Cow<'static, str>);

/// A response with what is known about it. While it passes through warp's filters, that travels in its extensions.
pub(crate) struct Reply {
    pub(crate) response: Response,
    pub(crate) rate: Option<Rate>,
    pub(crate) error: Option<SentCode>,
}

impl From<Response> for Reply {
    fn from(mut response: Response) -> Self {
        let extensions = response.extensions_mut();
        let (rate, error) = (extensions.remove(), extensions.remove());
        Self { response, rate, error }
    }
}

impl From<Reply> for Response {
    fn from(reply: Reply) -> Self {
        let Reply { mut response, rate, error } = reply;
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
    /// The error as the terminal frame of a verification stream, which has four fields and no headers.
    pub(crate) fn into_event(self, request_id: &str) -> ErrorEvent {
        ErrorEvent {
            error: self.code.title().to_owned(),
            code: self.code().to_owned(),
            message: self.message.into(),
            request_id: request_id.to_owned(),
        }
    }

    /// The error as the `error` of a chat stream's last chunk.
    pub(crate) fn into_chunk_error(self) -> serde_json::Value {
        let (kind, code) = (self.code.title(), self.code());
        let mut error = serde_json::json!({"message": self.message, "type": kind, "code": code});
        if let Some(param) = self.param {
            error["param"] = param.into();
        }
        if let Some(written) = self.failed_generation {
            error["failed_generation"] = (*written).into();
        }
        error
    }

    /// Whether it refuses a key, a session or an address.
    pub(crate) fn is_denial(&self) -> bool {
        matches!(self.code.status(), 401 | 403)
    }

    /// The error's code, as in the body.
    pub(crate) fn code(&self) -> &str {
        self.provider_code.as_deref().unwrap_or(self.code.as_str())
    }

    /// The error as the reason why an answer could not be verified.
    pub(crate) fn as_guard_error(&self) -> GuardError {
        GuardError { code: self.code().to_owned(), message: self.message.clone().into_owned() }
    }

    /// Sets what was found about the answer that is not given.
    #[must_use]
    pub(crate) fn with_verification(self, found: AnswerVerification) -> Self {
        Self { verification: Some(Box::new(found)), ..self }
    }

    /// Puts this before the message.
    #[must_use]
    pub(crate) fn with_prefix(mut self, prefix: &str) -> Self {
        self.message.to_mut().insert_str(0, prefix);
        self
    }

    /// Appends to the message.
    #[must_use]
    pub(crate) fn with_suffix(mut self, suffix: &str) -> Self {
        self.message.to_mut().push_str(suffix);
        self
    }

    /// The same about a parameter that is called otherwise in the caller's request, if `name` knows it.
    #[must_use]
    pub(crate) fn renamed(mut self, name: impl FnOnce(&str) -> Option<String>) -> Self {
        let Some(param) = &mut self.param else { return self };
        let Some(new) = name(param) else { return self };
        self.message = self.message.replace(&format!("`{param}`"), &format!("`{new}`")).into();
        *param = new;
        self
    }

    /// Sets the rate limits that the headers describe; a 429 keeps its own.
    #[must_use]
    pub(crate) fn with_rate(mut self, rate: LimitState) -> Self {
        self.rate.get_or_insert(rate.into());
        self
    }

    /// The body and the headers of the response, without those for rate limits and the request id.
    pub(crate) fn into_parts(mut self, door: Door, request_id: &str) -> (Vec<u8>, HeaderMap) {
        let mut headers = HeaderMap::with_capacity(HEADER_CAPACITY);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.code.status() == 401 {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(allow) = self.allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        if let Some(wait) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
        }
        if self.no_retry {
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        if let Some(attempts) = self.attempts {
            headers.insert(&header_names::ATTEMPTS, HeaderValue::from(attempts));
        }
        let (code, words) = (self.code, self.words.take());
        (doors::body(door, code, words.as_deref(), self.into_body(request_id)), headers)
    }

    /// The body of the response, in the documented form.
    pub(crate) fn into_body(self, request_id: &str) -> ErrorBody {
        ErrorBody {
            error: self.code.title().to_owned(),
            code: self.code().to_owned(),
            message: self.message.into(),
            request_id: request_id.to_owned(),
            param: self.param,
            provider: self.provider.map(Into::into),
            failed_generation: self.failed_generation.map(Into::into),
            mk_verification: self.verification,
        }
    }

    /// The response, with what is known about it.
    pub(crate) fn into_reply(self, incoming: &Incoming) -> Reply {
        let status = StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let code =
            self.provider_code.as_deref().map_or(self.code.as_str().into(), |code| code.to_owned().into());
        let rate = self.rate;
        let (body, headers) = self.into_parts(incoming.door, &incoming.request_id);
        let mut response = Response::new(body.into());
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Reply { response, rate, error: Some(SentCode(code)) }
    }

    /// The response for warp's filters.
    pub(crate) fn into_response(self, incoming: &Incoming) -> Response {
        self.into_reply(incoming).into()
    }
}

/// What came of a request that was admitted within these limits, which the headers of the response describe; the error of
/// one that was refused for them keeps its own.
pub(crate) fn within(rate: LimitState, outcome: Result<Response, ApiError>) -> Result<Response, ApiError> {
    match outcome {
        Ok(mut response) => {
            response.extensions_mut().insert(Rate::from(rate));
            Ok(response)
        }
        Err(error) => Err(error.with_rate(rate)),
    }
}

/// A JSON response.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => {
            let mut response = json_bytes(bytes);
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

/// A 200 response with JSON that is serialized already.
pub(crate) fn json_bytes(body: impl Into<bytes::Bytes>) -> Response {
    let mut response = Response::new(body.into().into());
    *response.headers_mut() = HeaderMap::with_capacity(HEADER_CAPACITY);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Removes the body for HEAD, which hyper does for HTTP/1 alone. `Content-Length` stays that of GET (RFC 9110, section
/// 9.3.2).
pub(crate) fn without_body(mut response: Response) -> Response {
    let length = response.body().size_hint().exact();
    if let Some(length) = length.filter(|_| !response.headers().contains_key(header::CONTENT_LENGTH)) {
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
    response.map(|_| Response::default().into_body())
}

/// Sets the headers of an event stream.
pub(crate) fn set_stream_headers(headers: &mut HeaderMap) {
    let content_type = "text/event-stream; charset=utf-8";
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
}

/// A wait in whole seconds, as for `Retry-After`: rounded up, and at least one.
const fn whole_seconds(wait: Duration) -> u64 {
    let seconds = wait.as_secs();
    if seconds == 0 || wait.subsec_nanos() > 0 { seconds.saturating_add(1) } else { seconds }
}
