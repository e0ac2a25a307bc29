//! How errors are made. Most are their code alone, whose table has all the rest.

use std::borrow::Cow;
use std::time::Duration;

use super::{ApiError, ErrorCode, Rate};
use crate::api::error_code::Retry;
use crate::limits::{LimitState, Window};

impl From<ErrorCode> for ApiError {
    fn from(code: ErrorCode) -> Self {
        Self::new(code, code.message())
    }
}

impl ApiError {
    /// An error with a message of its own.
    pub(crate) fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        let retry_after = match code.retry() {
            Some(Retry::After(wait)) => Some(wait),
            Some(Retry::Never) | None => None,
        };
        Self {
            code,
            provider_code: None,
            message: message.into(),
            param: None,
            provider: None,
            words: None,
            failed_generation: None,
            verification: None,
            retry_after,
            allow: None,
            no_retry: code.retry() == Some(Retry::Never),
            attempts: None,
            rate: None,
        }
    }

    /// Whether this is its code.
    pub(crate) fn is(&self, code: ErrorCode) -> bool {
        self.code == code
    }

    /// For a parameter, named by its JSON path.
    pub(crate) fn parameter(
        code: ErrorCode,
        param: impl Into<String>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { param: Some(param.into()), ..Self::new(code, message) }
    }

    /// 413; the message tells the limit.
    pub(crate) fn body_too_large(limit: usize) -> Self {
        Self::new(ErrorCode::BodyTooLarge, format!("the request body is larger than {limit} bytes"))
    }

    /// 405; `Allow` lists the methods of the route.
    pub(crate) fn method_not_allowed(allow: &'static str) -> Self {
        let message = format!("this endpoint accepts {allow} only");
        Self { allow: Some(allow), ..Self::new(ErrorCode::MethodNotAllowed, message) }
    }

    /// 429 with the rate limits that its headers describe.
    pub(crate) fn rate_limited(state: LimitState, window: Window) -> Self {
        let (code, violated) = match window {
            Window::Minute => (ErrorCode::RateLimitedMinute, state.minute),
            Window::Day => (ErrorCode::RateLimitedDay, state.day),
        };
        Self {
            retry_after: violated.map(|window| Duration::from_secs(window.reset_in)),
            rate: Some(Rate { state, violated: Some(window) }),
            ..code.into()
        }
    }

    /// 403 for a model that is not among those that the key may use.
    pub(crate) fn model_not_allowed(model: &str, allowed: &[String]) -> Self {
        let allowed = allowed.join(", ");
        let message = format!("this API key cannot use {model}; it is limited to {allowed}");
        Self::parameter(ErrorCode::ModelNotAllowed, "model", message)
    }
}
