//! Conversions from the errors of other rooms.

use http::StatusCode;

use super::ApiError;
use crate::keys::{Denied, ManageError};
use crate::log_throttle::LogThrottle;
use crate::server::in_flight::AbortReason;
use crate::storage::{self, InvalidCredential};
use crate::usage::ReportError;

/// Failures of the database, shared by all requests: the cause is logged once, while each request has a log line of its
/// own with its outcome.
static STORE: LogThrottle = LogThrottle::new();

impl ApiError {
    /// Logs why the database has failed, and returns an error that does not reveal it.
    pub(crate) fn store_failed(cause: &storage::Error) -> Self {
        if let Some(suppressed) = STORE.failed(cause) {
            tracing::error!(%cause, suppressed, "the store cannot be used");
        }
        Self::store_unavailable()
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
            Denied::InvalidSession => Self::invalid_session(),
            Denied::Unavailable(cause) => Self::store_failed(&cause),
        }
    }
}

impl From<storage::Error> for ApiError {
    fn from(cause: storage::Error) -> Self {
        match cause {
            storage::Error::NotFound => {
                Self::not_found("no such app or key; the lists under /v1/apps show those there are")
            }
            storage::Error::Conflict(why) => Self::conflict(why),
            // The same error as from the gate.
            storage::Error::InvalidCredential(how) => Self::from(match how {
                InvalidCredential::Revoked => Denied::Revoked,
                InvalidCredential::Expired => Denied::Expired,
                InvalidCredential::SessionEnded => Denied::InvalidSession,
            }),
            _ => Self::store_failed(&cause),
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

impl From<ReportError> for ApiError {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::TooLong => Self::parameter("invalid_parameter", "by", error.to_string()),
            ReportError::Storage(storage::Error::NotFound) => {
                Self::new(StatusCode::NOT_FOUND, "not_found", "there is no app with this id")
            }
            ReportError::Storage(cause) => {
                tracing::error!(%cause, "cannot read usage");
                Self::store_unavailable()
            }
        }
    }
}

impl From<AbortReason> for ApiError {
    fn from(reason: AbortReason) -> Self {
        match reason {
            AbortReason::KeyRevoked => Self::key_revoked(),
            AbortReason::KeyExpired => Denied::Expired.into(),
            AbortReason::ShuttingDown => Self::shutting_down(),
        }
    }
}
