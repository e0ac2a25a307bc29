//! Why there is no report, as an answer.

use http::StatusCode;

use super::ApiError;
use crate::storage::Error;
use crate::usage::ReportError;

impl From<ReportError> for ApiError {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::TooLong => Self::parameter("invalid_parameter", "by", error.to_string()),
            ReportError::Storage(Error::NotFound) => {
                Self::new(StatusCode::NOT_FOUND, "not_found", "there is no app with this id")
            }
            ReportError::Storage(cause) => {
                tracing::error!(%cause, "cannot read usage");
                Self::store_unavailable()
            }
        }
    }
}
