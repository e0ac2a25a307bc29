//! The errors of the API, by status.

use std::time::Duration;

use http::StatusCode;

use super::{ApiError, Rate};
use crate::inference::DEFAULT_RETRY_AFTER;
use crate::limits::{LimitState, Window};

impl ApiError {
    /// 400 for a parameter, named by its JSON path.
    pub(crate) fn parameter(
        code: &'static str,
        param: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { param: Some(param.into()), ..Self::new(StatusCode::BAD_REQUEST, code, message) }
    }

    /// 400 for a body that is not JSON.
    pub(crate) fn invalid_json(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_json", message)
    }

    /// 413; the message tells the limit.
    pub(crate) fn body_too_large(limit: usize) -> Self {
        let message = format!("the request body is larger than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
    }

    /// 415 for a body that is not plain JSON.
    pub(crate) fn unsupported_media_type(message: &'static str) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
    }

    /// 408 for a body that does not arrive in time.
    pub(crate) fn body_timeout() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", "the request body did not arrive in time")
    }

    /// 404 for a route that does not exist.
    pub(crate) fn unknown_route() -> Self {
        let message = "no such endpoint; the API is under /verify/v1, /inference/v1 and /v1";
        Self::new(StatusCode::NOT_FOUND, "unknown_route", message)
    }

    /// 405; `Allow` lists the methods of the route.
    pub(crate) fn method_not_allowed(allow: &'static str) -> Self {
        let message = format!("this endpoint accepts {allow} only");
        Self {
            allow: Some(allow),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
        }
    }

    /// For a request that this server cannot parse as HTTP.
    pub(crate) fn malformed(status: StatusCode) -> Self {
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

    /// 503 during shutdown.
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

    /// 503 when the database cannot answer: the request is never admitted.
    pub(crate) fn store_unavailable() -> Self {
        let mut error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "store_unavailable",
            "the server's database cannot be used now; try again in a moment",
        );
        error.retry_after = Some(DEFAULT_RETRY_AFTER);
        error
    }

    /// 503 when the bodies of other requests take all the memory there is for them.
    pub(crate) fn server_overloaded() -> Self {
        let mut error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "server_overloaded",
            "this server has too many large requests under way; try again in a moment",
        );
        error.retry_after = Some(DEFAULT_RETRY_AFTER);
        error
    }

    /// 409 for a change that the present state does not allow.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }

    /// 401 for a revoked key, possibly revoked while its request ran.
    pub(crate) fn key_revoked() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "api_key_revoked", "API key has been revoked")
    }

    /// 429 with the rate limits that its headers describe.
    pub(crate) fn rate_limited(state: LimitState, window: Window) -> Self {
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
            no_retry: window == Window::Day,
            rate: Some(Rate { state, violated: Some(window) }),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, code, message)
        }
    }

    /// 404 for an object that does not exist, or not for this caller.
    pub(crate) fn not_found(message: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// 404 for a model that cannot be requested.
    pub(crate) fn model_not_found(message: impl Into<String>) -> Self {
        Self {
            param: Some("model".to_owned()),
            ..Self::new(StatusCode::NOT_FOUND, "model_not_found", message)
        }
    }

    /// 403 for a model that is not among those that the key may use.
    pub(crate) fn model_not_allowed(model: &str, allowed: &[String]) -> Self {
        let allowed = allowed.join(", ");
        Self {
            param: Some("model".to_owned()),
            ..Self::new(
                StatusCode::FORBIDDEN,
                "model_not_allowed",
                format!("this API key cannot use {model}; it is limited to {allowed}"),
            )
        }
    }

    /// 403 for a verification that would use models that the key may not use.
    pub(crate) fn verification_not_allowed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "model_not_allowed", message)
    }
}
