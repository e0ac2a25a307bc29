//! Errors of logging in, of sessions, and of making the first key.

use http::StatusCode;

use super::ApiError;
use crate::keys::ManageError;
use crate::keys::setup::SetupError;
use crate::storage::Error;

impl ApiError {
    /// 401 for a session that does not exist or has ended.
    pub(crate) fn invalid_session() -> Self {
        let message = "there is no valid session; log in with a console key";
        Self::new(StatusCode::UNAUTHORIZED, "invalid_session", message)
    }

    /// 403 for a request that a browser sent from a foreign page.
    pub(crate) fn origin_not_allowed() -> Self {
        let message = "this request does not come from a page of this server; if it does, through a proxy, the proxy must \
                       pass `Host` on as it is, or be trusted and send `X-Forwarded-Host`";
        Self::new(StatusCode::FORBIDDEN, "origin_not_allowed", message)
    }

    /// 401 for a setup token that is not valid.
    fn invalid_setup_token() -> Self {
        let message = "this setup link is wrong, used or expired; on the server's machine, restart `mk serve` for a new \
                       one, or run `mk keys create --service console`";
        Self::new(StatusCode::UNAUTHORIZED, "invalid_setup_token", message)
    }
}

impl From<SetupError> for ApiError {
    fn from(cause: SetupError) -> Self {
        match cause {
            SetupError::Denied => Self::invalid_setup_token(),
            SetupError::Failed(ManageError::Storage(Error::Conflict(what))) => Self::conflict(what),
            SetupError::Failed(cause) => Self::session_not_started(cause),
        }
    }
}

impl ApiError {
    /// For a session that could not be started. If its key has ended meanwhile, the error is the same as from the gate.
    pub(crate) fn session_not_started(cause: ManageError) -> Self {
        if let ManageError::Storage(Error::InvalidCredential(_)) = cause {
            return cause.into();
        }
        tracing::error!(%cause, "cannot begin a session");
        match cause {
            ManageError::Storage(_) => Self::store_unavailable(),
            ManageError::Invalid(..) | ManageError::Randomness(_) => Self::internal(),
        }
    }
}
