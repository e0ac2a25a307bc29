//! Why a configuration cannot be used, in words for the person who wrote it.

/// One error, and what to do about it. Never contains a secret, or a value that may be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    /// What is wrong and where, and what would be correct.
    pub message: String,
    /// What to do next, best first; may be empty.
    pub hints: Vec<String>,
}

impl ConfigError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hints: Vec::new() }
    }

    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds a hint if there is one.
    #[must_use]
    pub(super) fn hint_if_any(mut self, hint: Option<String>) -> Self {
        self.hints.extend(hint);
        self
    }
}
