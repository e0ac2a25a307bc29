//! What the rooms below HTTP complain of, as errors for callers.

use http::StatusCode;

use super::ApiError;
use crate::keys::{Denied, ManageError};
use crate::log_throttle::LogThrottle;
use crate::server::in_flight::Cut;
use crate::storage::{self, InvalidCredential};

/// The store, as all requests meet it: each of them has a line in the log that says how it ended, the cause only one.
static STORE: LogThrottle = LogThrottle::new();

impl ApiError {
    /// The store has failed: the cause for the log, and an answer that does not tell it.
    pub(crate) fn store_failed(cause: &storage::Error) -> Self {
        if let Some(untold) = STORE.failed(cause) {
            tracing::error!(%cause, untold, "the store cannot be used");
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
            // As the gate would have said it.
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

impl From<Cut> for ApiError {
    fn from(why: Cut) -> Self {
        match why {
            Cut::KeyRevoked => Self::key_revoked(),
            Cut::ShuttingDown => Self::shutting_down(),
        }
    }
}
