//! The result of one check.

use serde_json::{Value, json};

use crate::config::ConfigError;

/// The status of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// As it should be.
    Ok,
    /// Neither good nor bad, but worth knowing.
    Note,
    /// It works, but probably not as intended.
    Warning,
    /// It does not work.
    Failed,
}

impl Status {
    /// The word for it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    /// What was checked.
    pub(super) name: String,
    /// The status.
    pub(super) state: Status,
    /// What was found, without a full stop. May contain foreign text.
    pub(super) message: String,
    /// What to do next, best first.
    pub(super) hints: Vec<String>,
}

impl Check {
    fn new(name: impl Into<String>, state: Status, message: impl Into<String>) -> Self {
        Self { name: name.into(), state, message: message.into(), hints: Vec::new() }
    }

    /// Everything is fine.
    pub(super) fn ok(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(name, Status::Ok, message)
    }

    /// Worth knowing.
    pub(super) fn note(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(name, Status::Note, message)
    }

    /// Works, but probably not as intended.
    pub(super) fn warning(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(name, Status::Warning, message)
    }

    /// Does not work.
    pub(super) fn failed(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(name, Status::Failed, message)
    }

    /// Does not work, as the configuration is wrong.
    pub(super) fn misconfigured(name: impl Into<String>, error: ConfigError) -> Self {
        Self { hints: error.hints, ..Self::failed(name, error.message) }
    }

    /// Adds what to do next.
    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The JSON object for it.
    pub(super) fn document(&self) -> Value {
        json!({
            "check": self.name,
            "status": self.state.as_str(),
            "message": self.message,
            "hints": self.hints,
        })
    }
}
