//! Why a server gave no response, or not a proper one.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use tokio_rustls::rustls;

use super::Health;
use super::certificate::CertificateFlaw;
use crate::api::error::{ErrorBody, ErrorEvent};
use crate::api::error_code::ErrorCode;

/// The most that is read of an error's body; ours are far smaller.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Why there is no proper response.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The client cannot be set up, for example because of a wrong address or an unreadable certificate.
    #[error("{0}")]
    Setup(String),
    /// No connection, as there is no address of this name.
    #[error("the name cannot be resolved")]
    Unresolved,
    /// No connection, as the server does not speak TLS.
    #[error("it does not speak TLS")]
    NoTls,
    /// The server speaks something else, perhaps TLS.
    #[error("its answer is not HTTP")]
    NotHttp,
    /// No connection for another reason: this.
    #[error("{0}")]
    Unreachable(String),
    /// No connection, as the server's certificate is refused: its flaw, and the library's message.
    #[error("{} ({})", .0.as_str(), .1)]
    BadCertificate(CertificateFlaw, String),
    /// Connected, but nothing arrived for too long.
    #[error("no answer in time")]
    Timeout,
    /// The server responded with an error status.
    #[error("{} ({})", .0.body.message, .0.status)]
    Refused(Box<Refusal>),
    /// The server reports that it is unhealthy, and why.
    #[error("{0}")]
    Unhealthy(&'static str),
    /// The server reported a failure within its response.
    #[error("{}", .0.message)]
    Failed(Box<ErrorEvent>),
    /// The response ended before its terminal event.
    #[error("the answer ended too early")]
    Incomplete,
    /// The response is not what this API sends; says what was found instead.
    #[error("{0}")]
    Malformed(String),
}

/// A response with an error status.
#[derive(Debug)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The error body; its fields are empty if the server is not one of ours.
    pub body: ErrorBody,
    /// How long to wait before a retry, if the server tells.
    pub retry_after: Option<Duration>,
    /// Whether the server says that a retry is hopeless.
    pub hopeless: bool,
}

impl Error {
    /// The code of the server's error, if this version knows it.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused(refusal) => ErrorCode::find(&refusal.body.code),
            Self::Failed(event) => ErrorCode::find(&event.code),
            _ => None,
        }
    }

    /// The error for a failure before a response began.
    pub(super) fn from_transport(cause: &reqwest::Error) -> Self {
        if cause.is_timeout() && !cause.is_connect() {
            return Self::Timeout;
        }
        if is_not_http(cause) {
            return Self::NotHttp;
        }
        if cause.is_connect() || cause.is_request() {
            let flaw = sources(cause).find_map(|source| CertificateFlaw::from_tls_error(tls_error(source)?));
            return match flaw {
                Some(flaw) => Self::BadCertificate(flaw, innermost(cause)),
                None => unconnected(cause),
            };
        }
        Self::Malformed(innermost(cause))
    }

    /// The error for a failure within a response.
    pub(super) fn from_body(cause: &reqwest::Error) -> Self {
        if cause.is_timeout() { Self::Timeout } else { Self::Incomplete }
    }
}

/// The error for a health check with status 503; for a server that is not one of ours, an error status like any other.
pub(super) async fn unhealthy_response(response: Response) -> Error {
    let (status, headers) = (response.status(), response.headers().clone());
    let body = capped_body(response).await;
    let status_text = serde_json::from_slice(&body).map(|health: Health| health.status);
    match status_text.as_deref() {
        Ok("store_unavailable") => Error::Unhealthy("its database is unavailable"),
        Ok("draining") => Error::Unhealthy("it is shutting down"),
        _ => refusal(status, &headers, &body),
    }
}

/// Reads a response with an error status.
pub(super) async fn error_response(response: Response) -> Error {
    let (status, headers) = (response.status(), response.headers().clone());
    refusal(status, &headers, &capped_body(response).await)
}

fn refusal(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
    let retry_after = retry_after(headers);
    let hopeless = headers.get("x-should-retry").is_some_and(|value| value == "false");
    let location = headers.get("location").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let mut body: ErrorBody = serde_json::from_slice(body).unwrap_or_default();
    if body.message.is_empty() {
        let title = status.canonical_reason().unwrap_or("an unknown status");
        body.message = match location {
            Some(location) => format!("{title}: the server is at {location}"),
            None => title.to_owned(),
        };
    }
    Error::Refused(Box::new(Refusal { status: status.as_u16(), body, retry_after, hopeless }))
}

/// Only the form in seconds is understood, as that is what our servers send.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

async fn capped_body(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        if body.len() + chunk.len() > MAX_ERROR_BYTES {
            break;
        }
        body.extend_from_slice(&chunk);
    }
    body
}

/// Whether the other side speaks another protocol, such as TLS where none was expected.
fn is_not_http(cause: &reqwest::Error) -> bool {
    sources(cause).any(|source| source.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse))
}

/// The sources of an error, from the outside in.
fn sources(cause: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(cause.source(), |source| (*source).source())
}

/// The error if no connection was established, in plain words where they are known.
fn unconnected(cause: &reqwest::Error) -> Error {
    if cause.is_timeout() {
        return Error::Unreachable("no answer in time".to_owned());
    }
    for source in sources(cause) {
        if source.to_string().contains("dns error") {
            return Error::Unresolved;
        }
        if matches!(tls_error(source), Some(rustls::Error::InvalidMessage(_))) {
            return Error::NoTls;
        }
        if let Some(io) = source.downcast_ref::<io::Error>()
            && let Some(words) = io_reason(io.kind())
        {
            return Error::Unreachable(words.to_owned());
        }
    }
    Error::Unreachable(innermost(cause))
}

/// The TLS error of a failed handshake. It is inside I/O errors, which do not report it as their source.
fn tls_error<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    match cause.downcast_ref::<io::Error>() {
        Some(outer) => outer.get_ref().and_then(|inner| tls_error(inner)),
        None => cause.downcast_ref(),
    }
}

const fn io_reason(kind: io::ErrorKind) -> Option<&'static str> {
    Some(match kind {
        io::ErrorKind::ConnectionRefused => "connection refused",
        io::ErrorKind::ConnectionReset => "connection reset",
        io::ErrorKind::HostUnreachable => "host unreachable",
        io::ErrorKind::NetworkUnreachable => "network unreachable",
        io::ErrorKind::TimedOut => "no answer in time",
        _ => return None,
    })
}

/// The innermost source, which is the one that says something.
pub(super) fn innermost(cause: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = cause;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
