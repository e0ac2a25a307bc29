//! Answers: the one error type of the HTTP side, every `From` into it, and the headers of limits.
//!
//! Below this file nobody knows status codes. Nothing internal gets into a body: what a caller cannot use is
//! logged with the request's id, and the answer is bland.

mod provider;
mod rate;
mod report;
mod session;

pub(crate) use rate::{Rate, write_rate_headers};

use std::time::Duration;

use http::header::{self, HeaderValue};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use warp::reply::Response;

use super::streams::Cut;
use crate::api::error::{ErrorBody, ErrorEvent};
use crate::keys::{Denied, ManageError};
use crate::limits::{State, Window};
use crate::storage;

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

    /// 400 about a parameter, by its JSON path.
    pub(crate) fn parameter(
        code: &'static str,
        param: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { param: Some(param.into()), ..Self::new(StatusCode::BAD_REQUEST, code, message) }
    }

    /// 400 for a body that is no JSON.
    pub(crate) fn invalid_json(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_json", message)
    }

    /// 413 with the limit.
    pub(crate) fn body_too_large(limit: usize) -> Self {
        let message = format!("the request body is larger than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
    }

    /// 415.
    pub(crate) fn unsupported_media_type(message: &'static str) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
    }

    /// 408 for a body that does not arrive.
    pub(crate) fn body_timeout() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", "the request body did not arrive in time")
    }

    /// 404 for an address that does not exist.
    pub(crate) fn unknown_route() -> Self {
        let message = "no such address; the API lives under /verify/v1, /inference/v1 and /v1";
        Self::new(StatusCode::NOT_FOUND, "unknown_route", message)
    }

    /// 405 with the methods that the address has.
    pub(crate) fn method_not_allowed(allow: &'static str) -> Self {
        let message = format!("this address takes {allow}");
        Self {
            allow: Some(allow),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
        }
    }

    /// For a request that is no HTTP this server can read.
    pub(crate) fn unreadable(status: StatusCode) -> Self {
        match status {
            StatusCode::URI_TOO_LONG => {
                Self::new(status, "uri_too_long", "the request's address is too long")
            }
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
                Self::new(status, "headers_too_large", "the request's headers are too large")
            }
            _ => Self::new(status, "malformed_request", "the request is not valid HTTP"),
        }
    }

    /// 500. The cause belongs in the log, not here.
    pub(crate) fn internal() -> Self {
        let message = "something went wrong inside the server; its log tells more under this request_id";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    /// 503 while the server ends.
    pub(crate) fn shutting_down() -> Self {
        let mut error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "shutting_down",
            "the server is shutting down; try again in a moment",
        );
        error.retry_after = Some(Duration::from_secs(1));
        error
    }

    /// 503 when too few models are configured.
    pub(crate) fn no_provider_available(message: impl Into<String>) -> Self {
        let mut error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "no_provider_available", message);
        error.retry_after = Some(Duration::from_mins(1));
        error
    }

    /// 503 when the database cannot answer: never a pass.
    pub(crate) fn store_unavailable() -> Self {
        let mut error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "store_unavailable",
            "the key store cannot be reached; try again in a moment",
        );
        error.retry_after = Some(Duration::from_secs(5));
        error
    }

    /// 401 for a key revoked while its request ran.
    pub(crate) fn key_revoked() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "api_key_revoked", "API key has been revoked")
    }

    /// 429, with the state that its headers describe.
    pub(crate) fn rate_limited(state: State, window: Window) -> Self {
        let (code, message) = match window {
            Window::Minute => ("rate_limited_minute", "Too many requests per minute"),
            Window::Day => ("rate_limited_day", "Too many requests per day"),
        };
        let violated = match window {
            Window::Minute => state.minute,
            Window::Day => state.day,
        };
        Self {
            retry_after: violated.map(|window| Duration::from_secs(window.reset_in)),
            hopeless: window == Window::Day,
            rate: Some(Rate { state, violated: Some(window) }),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, code, message)
        }
    }

    /// The error that ended a verification, as an answer of its own. Its title decides the status.
    pub(crate) fn from_event(event: ErrorEvent) -> Self {
        let status = match event.error.as_str() {
            "Unauthorized" => StatusCode::UNAUTHORIZED,
            "Payment Required" => StatusCode::PAYMENT_REQUIRED,
            "Forbidden" => StatusCode::FORBIDDEN,
            "Internal Server Error" => StatusCode::INTERNAL_SERVER_ERROR,
            "Service Unavailable" => StatusCode::SERVICE_UNAVAILABLE,
            "Gateway Timeout" => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::BAD_GATEWAY,
        };
        Self {
            hopeless: matches!(
                event.code.as_str(),
                "provider_auth_failed" | "provider_quota_exhausted" | "budget_exceeded"
            ),
            retry_after: (status == StatusCode::SERVICE_UNAVAILABLE).then_some(Duration::from_secs(5)),
            provider: event.provider,
            ..Self::new(status, event.code, event.message)
        }
    }

    /// The error as the terminal frame of a verification stream.
    pub(crate) fn into_event(self, request_id: &str) -> ErrorEvent {
        ErrorEvent {
            error: self.error.to_owned(),
            message: self.message,
            code: self.code,
            request_id: request_id.to_owned(),
            provider: self.provider,
        }
    }

    /// The error as the `error` of a chat stream's last chunk.
    pub(crate) fn into_chunk_error(self) -> serde_json::Value {
        serde_json::json!({"message": self.message, "type": self.error, "code": self.code})
    }

    /// 404 for a thing that does not exist, or not for this caller: `no such app`.
    pub(crate) fn not_found(message: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// 404 for a model that cannot be asked for.
    pub(crate) fn model_not_found(message: impl Into<String>) -> Self {
        Self {
            param: Some("model".to_owned()),
            ..Self::new(StatusCode::NOT_FOUND, "model_not_found", message)
        }
    }

    /// 403 for a model that the key is not for.
    pub(crate) fn model_not_allowed(message: impl Into<String>) -> Self {
        Self {
            param: Some("model".to_owned()),
            ..Self::new(StatusCode::FORBIDDEN, "model_not_allowed", message)
        }
    }

    /// Its code, as in the body.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// 403 for a verification that would ask models that the key is not for.
    pub(crate) fn verification_not_allowed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "model_not_allowed", message)
    }

    /// The error with the limits that its headers describe; a 429 keeps its own.
    #[must_use]
    pub(crate) fn with_rate(mut self, rate: State) -> Self {
        self.rate.get_or_insert(rate.into());
        self
    }

    /// Body and headers of the answer, limits and request id apart.
    pub(crate) fn into_parts(self, request_id: &str) -> (Vec<u8>, HeaderMap) {
        let mut headers = HeaderMap::new();
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
            headers.insert("x-mk-attempts", HeaderValue::from(attempts));
        }
        let body = ErrorBody {
            error: self.error.to_owned(),
            message: self.message,
            code: self.code,
            request_id: request_id.to_owned(),
            param: self.param,
            provider: self.provider,
        };
        // Strings alone always serialize.
        (serde_json::to_vec(&body).unwrap_or_default(), headers)
    }

    /// The answer.
    pub(crate) fn into_response(self, request_id: &str) -> Response {
        let (status, rate, code) = (self.status, self.rate, ErrorCode(self.code.clone()));
        let (body, headers) = self.into_parts(request_id);
        let mut response = Response::new(body.into());
        response.extensions_mut().insert(code);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        if let Some(rate) = rate {
            response.extensions_mut().insert(rate);
        }
        response
    }
}

impl From<Denied> for ApiError {
    fn from(denied: Denied) -> Self {
        let unauthorized = |code, message| Self::new(StatusCode::UNAUTHORIZED, code, message);
        match denied {
            Denied::Missing => unauthorized("missing_api_key", "Invalid or missing API key"),
            Denied::Invalid => unauthorized("invalid_api_key", "Invalid or missing API key"),
            Denied::Revoked => Self::key_revoked(),
            Denied::Expired => unauthorized("api_key_expired", "API key has expired"),
            Denied::WrongService => unauthorized("wrong_service", "API key not authorized for this service"),
            Denied::AddressNotAllowed => Self::new(
                StatusCode::FORBIDDEN,
                "address_not_allowed",
                "this API key may not be used from this address",
            ),
            Denied::NoSession => Self::invalid_session(),
            Denied::Unavailable(cause) => {
                tracing::error!(%cause, "cannot look up keys");
                Self::store_unavailable()
            }
        }
    }
}

impl From<storage::Error> for ApiError {
    fn from(cause: storage::Error) -> Self {
        match cause {
            storage::Error::NotFound => {
                Self::not_found("no such app or key; the lists under /v1/apps show those there are")
            }
            storage::Error::Conflict(why) => Self::new(StatusCode::CONFLICT, "conflict", why),
            _ => {
                tracing::error!(%cause, "the store cannot be used");
                Self::store_unavailable()
            }
        }
    }
}

impl From<ManageError> for ApiError {
    fn from(cause: ManageError) -> Self {
        match cause {
            ManageError::Invalid(field, why) => {
                let goes_on = why.starts_with("must ") || why.starts_with("may ");
                let message = if goes_on { format!("`{field}` {why}") } else { format!("`{field}`: {why}") };
                Self::parameter("invalid_parameter", field, message)
            }
            ManageError::Storage(cause) => cause.into(),
            ManageError::Randomness(cause) => {
                tracing::error!(%cause, "a key cannot be made");
                Self::internal()
            }
        }
    }
}

impl From<Cut> for ApiError {
    fn from(why: Cut) -> Self {
        match why {
            Cut::KeyRevoked => Self::key_revoked(),
            Cut::ShuttingDown => Self::shutting_down(),
        }
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
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
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
