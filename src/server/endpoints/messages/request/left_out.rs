//! What is left out of a request on its way into another protocol.

use super::path::Path;
use crate::server::reply::{ApiError, ErrorCode};
use crate::unsafe_chars::name_in_message;

/// The names of what was left out so far.
#[derive(Debug)]
pub(super) struct LeftOut {
    names: Vec<String>,
    /// Whether what would change the answer is left out as well, instead of the request being refused.
    drop_unsupported: bool,
}

impl LeftOut {
    pub(super) const fn new(drop_unsupported: bool) -> Self {
        Self { names: Vec::new(), drop_unsupported }
    }

    /// Leaves out what only tunes the answer.
    pub(super) fn note(&mut self, name: &str) {
        if self.names.iter().all(|known| known != name) {
            self.names.push(name_in_message(name));
        }
    }

    /// Leaves out what would change the answer, if the operator wants that.
    ///
    /// # Errors
    /// 400 with the path of the field, and `why` other models do not have it and what to do about it.
    pub(super) fn refuse(&mut self, path: &Path<'_>, name: &str, why: &str) -> Result<(), ApiError> {
        if self.drop_unsupported {
            self.note(name);
            return Ok(());
        }
        let path = name_in_message(&path.to_string());
        let message = format!("`{path}`: {why}");
        Err(ApiError::parameter(ErrorCode::UnsupportedParameter, path, message))
    }

    pub(super) fn finish(self) -> Vec<String> {
        self.names
    }
}
