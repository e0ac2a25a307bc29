//! What one check has found.

use serde_json::{Value, json};

use crate::config::ConfigError;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// As it should be.
    Ok,
    /// Neither good nor bad, and worth knowing.
    Note,
    /// It works, and probably not as it is meant to.
    Warning,
    /// It does not work.
    Failed,
}

impl State {
    /// Its word.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// What one check has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    /// What was looked at.
    pub(super) name: String,
    /// How it came out.
    pub(super) state: State,
    /// What was found, without a full stop. May hold foreign text.
    pub(super) message: String,
    /// What to do next, best first.
    pub(super) hints: Vec<String>,
}

impl Check {
    fn new(name: impl Into<String>, state: State, message: impl Into<String>) -> Self {
        Self { name: name.into(), state, message: message.into(), hints: Vec::new() }
    }

    /// All is well.
    pub(super) fn ok(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(name, State::Ok, message)
    }

    /// Worth knowing.
    pub(super) fn note(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(name, State::Note, message)
    }

    /// Doubtful.
    pub(super) fn warning(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(name, State::Warning, message)
    }

    /// Broken.
    pub(super) fn failed(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(name, State::Failed, message)
    }

    /// Broken by what is configured.
    pub(super) fn misconfigured(name: impl Into<String>, error: ConfigError) -> Self {
        Self { hints: error.hints, ..Self::failed(name, error.message) }
    }

    /// Adds what to do next.
    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// As it stands in the document.
    pub(super) fn document(&self) -> Value {
        json!({
            "check": self.name,
            "status": self.state.as_str(),
            "message": self.message,
            "hints": self.hints,
        })
    }
}
