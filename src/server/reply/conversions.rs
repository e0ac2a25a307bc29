//! Conversions from the errors of other rooms.

use super::{ApiError, ErrorCode};
use crate::keys::setup::SetupError;
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
            tracing::error!(%cause, suppressed, "the database is unavailable");
        }
        Self::from(ErrorCode::StoreUnavailable)
    }
}

impl From<Denied> for ApiError {
    fn from(denied: Denied) -> Self {
        Self::from(match denied {
            Denied::Missing => ErrorCode::MissingApiKey,
            Denied::Invalid => ErrorCode::InvalidApiKey,
            Denied::Revoked => ErrorCode::ApiKeyRevoked,
            Denied::Expired => ErrorCode::ApiKeyExpired,
            Denied::WrongService => ErrorCode::WrongService,
            Denied::AddressNotAllowed => ErrorCode::AddressNotAllowed,
            Denied::InvalidSession => ErrorCode::InvalidSession,
            Denied::Unavailable(cause) => return Self::store_failed(&cause),
        })
    }
}

impl From<storage::Error> for ApiError {
    fn from(cause: storage::Error) -> Self {
        match cause {
            storage::Error::NotFound => ErrorCode::NotFound.into(),
            storage::Error::Conflict(why) => Self::new(ErrorCode::Conflict, why),
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
            ManageError::Invalid(field, what) => {
                let message = format!("`{field}`{what}");
                Self::parameter(ErrorCode::InvalidParameter, field, message)
            }
            ManageError::Storage(cause) => cause.into(),
            ManageError::Randomness(cause) => {
                tracing::error!(%cause, "a key cannot be created");
                Self::from(ErrorCode::Internal)
            }
        }
    }
}

impl From<ReportError> for ApiError {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::TooLong | ReportError::ByUserAndTag => {
                Self::parameter(ErrorCode::InvalidParameter, "by", error.to_string())
            }
            ReportError::Storage(storage::Error::NotFound) => {
                Self::new(ErrorCode::NotFound, "there is no app with this id")
            }
            ReportError::Storage(cause) => {
                tracing::error!(%cause, "cannot read usage");
                Self::from(ErrorCode::StoreUnavailable)
            }
        }
    }
}

impl From<AbortReason> for ApiError {
    fn from(reason: AbortReason) -> Self {
        match reason {
            AbortReason::KeyRevoked => Self::from(ErrorCode::ApiKeyRevoked),
            AbortReason::KeyExpired => Denied::Expired.into(),
            AbortReason::ShuttingDown => Self::from(ErrorCode::ShuttingDown),
        }
    }
}

impl From<SetupError> for ApiError {
    fn from(cause: SetupError) -> Self {
        match cause {
            SetupError::Denied => Self::from(ErrorCode::InvalidSetupToken),
            SetupError::Failed(ManageError::Storage(storage::Error::Conflict(what))) => {
                Self::new(ErrorCode::Conflict, what)
            }
            SetupError::Failed(cause) => Self::session_not_started(cause),
        }
    }
}

impl ApiError {
    /// For a session that could not be started. If its key has ended meanwhile, the error is the same as from the gate.
    pub(crate) fn session_not_started(cause: ManageError) -> Self {
        if let ManageError::Storage(storage::Error::InvalidCredential(_)) = cause {
            return cause.into();
        }
        tracing::error!(%cause, "cannot begin a session");
        match cause {
            ManageError::Storage(_) => Self::from(ErrorCode::StoreUnavailable),
            ManageError::Invalid(..) | ManageError::Randomness(_) => Self::from(ErrorCode::Internal),
        }
    }
}
