//! What a command returns: [`Failure`], and its exit code. Exit codes are a promise to scripts; the table is part of
//! `mk --help`.

use std::fmt;
use std::time::Duration;

use serde_json::json;

use crate::api::error_code::ErrorCode;
use crate::config::ConfigError;
use crate::os_error;

/// At least one claim was found false.
pub(crate) const CLAIM_FALSE: u8 = 10;
/// No claim was found false, but at least one found no consensus.
pub(crate) const NO_CONSENSUS: u8 = 11;
/// Nothing could be verified.
pub(crate) const NOTHING_TO_VERIFY: u8 = 12;
/// No claim was found false or without consensus, but a part was not checked.
pub(crate) const UNCHECKED: u8 = 13;

/// Every exit code with its meaning, for help and manual.
pub(crate) const MEANINGS: [(u8, &str); 17] = [
    (0, "success; verify: every claim TRUE"),
    (1, "other failure"),
    (2, "usage or configuration"),
    (3, "declined at a prompt"),
    (4, "no key, or refused"),
    (5, "server or provider failed"),
    (6, "cannot reach, or --timeout"),
    (7, "refused for now (limits, overload)"),
    (8, "the answer ended too early"),
    (9, "not found or conflict"),
    (CLAIM_FALSE, "a claim is FALSE"),
    (NO_CONSENSUS, "none FALSE, one without consensus"),
    (NOTHING_TO_VERIFY, "nothing to verify"),
    (UNCHECKED, "a part was not checked"),
    (130, "ended by Ctrl-C (SIGINT)"),
    (141, "output closed early (SIGPIPE)"),
    (143, "ended by SIGTERM"),
];

/// The kind of a failure, which decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// None of the others.
    Other,
    /// Wrong flags, arguments or configuration.
    Usage,
    /// The person declined at a prompt.
    Declined,
    /// No key, or one that was refused.
    Unauthorized,
    /// The server or a provider failed.
    Server,
    /// No connection, or no answer in time.
    Unreachable,
    /// Refused for now; it may work later.
    Busy,
    /// The response ended too early.
    Incomplete,
    /// No such thing.
    NotFound,
    /// Such a thing exists already.
    Conflict,
    /// Whoever read our output has left. The command ends without a message.
    ClosedPipe,
    /// Ctrl-C.
    Interrupted,
    /// SIGTERM.
    Terminated,
}

impl Kind {
    /// Its name in JSON and plain lines.
    pub(crate) const fn as_str(self) -> &'static str {
        self.name_and_code().0
    }

    /// The exit code; for the last three what a shell shows for the signal.
    pub(crate) const fn code(self) -> u8 {
        self.name_and_code().1
    }

    const fn name_and_code(self) -> (&'static str, u8) {
        match self {
            Self::Other => ("other", 1),
            Self::Usage => ("usage", 2),
            Self::Declined => ("declined", 3),
            Self::Unauthorized => ("unauthorized", 4),
            Self::Server => ("server", 5),
            Self::Unreachable => ("unreachable", 6),
            Self::Busy => ("busy", 7),
            Self::Incomplete => ("incomplete", 8),
            Self::NotFound => ("not_found", 9),
            Self::Conflict => ("conflict", 9),
            Self::Interrupted => ("interrupted", 130),
            Self::ClosedPipe => ("closed_pipe", 141),
            Self::Terminated => ("terminated", 143),
        }
    }
}

/// What a server reported about a failure; empty where it reported nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerError {
    /// The server's error code.
    pub(crate) code: String,
    /// The request's identifier.
    pub(crate) request_id: String,
    /// How long to wait before a retry makes sense, if it does.
    pub(crate) retry_after: Option<Duration>,
}

/// Why a command did not do its work, and what to do next.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Decides the exit code.
    pub(crate) kind: Kind,
    /// What happened, as one sentence without a full stop.
    pub(crate) message: String,
    /// What to do next, one sentence each.
    pub(crate) hints: Vec<String>,
    /// What the server reported, if it was a server that failed.
    pub(crate) server_error: Option<Box<ServerError>>,
    /// The underlying error; shown with `-v`.
    pub(crate) source: Option<anyhow::Error>,
    /// The document of what was done before the failure.
    pub(crate) partial: Option<Box<serde_json::Value>>,
}

impl Failure {
    /// A failure with a message.
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        let message = os_error::without_numbers(message.into());
        Self { kind, message, hints: Vec::new(), server_error: None, source: None, partial: None }
    }

    /// Wrong flags, arguments or configuration.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// Adds a sentence on what to do next.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Replaces the first hint, which says what to do next; what follows it, such as where something was looked for,
    /// stays.
    #[must_use]
    pub(crate) fn with_first_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.splice(..self.hints.len().min(1), [hint.into()]);
        self
    }

    /// The server's error code, if a server failed and this version knows it.
    pub(crate) fn code(&self) -> Option<ErrorCode> {
        self.server_error.as_ref().and_then(|server_error| ErrorCode::find(&server_error.code))
    }

    /// Adds the underlying error.
    #[must_use]
    pub(crate) fn caused_by(mut self, source: impl Into<anyhow::Error>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds the document of what was done before the failure.
    #[must_use]
    pub(crate) fn with_partial(mut self, document: serde_json::Value) -> Self {
        self.partial = Some(Box::new(document));
        self
    }

    /// The failure as the one document of `--json`.
    pub(crate) fn document(&self) -> serde_json::Value {
        let mut error = json!({ "kind": self.kind.as_str(), "message": self.message, "hints": self.hints });
        if let Some(server_error) = &self.server_error {
            error["code"] = json!(server_error.code);
            error["request_id"] = json!(server_error.request_id);
        }
        let mut document = json!({ "schema": "mk.error/1", "error": error, "exit": self.kind.code() });
        if let Some(partial) = &self.partial {
            document["partial"] = (**partial).clone();
        }
        document
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self { hints: error.hints, ..Self::usage(error.message) }
    }
}

/// What a command returns: an exit code, 0 in most cases, or a failure.
pub(crate) type Outcome = Result<u8, Failure>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_match_the_table() {
        let table = [
            (Kind::Other, 1),
            (Kind::Usage, 2),
            (Kind::Declined, 3),
            (Kind::Unauthorized, 4),
            (Kind::Server, 5),
            (Kind::Unreachable, 6),
            (Kind::Busy, 7),
            (Kind::Incomplete, 8),
            (Kind::NotFound, 9),
            (Kind::Conflict, 9),
            (Kind::Interrupted, 130),
            (Kind::ClosedPipe, 141),
            (Kind::Terminated, 143),
        ];
        for (kind, code) in table {
            assert_eq!(kind.code(), code, "{kind:?}");
        }
    }

    #[test]
    fn a_message_has_the_system_s_words_but_not_its_numbers() {
        let failure = Failure::usage("cannot read x: No such file (os error 2); try y (os error 13)");
        assert_eq!(failure.message, "cannot read x: No such file; try y");
    }

    #[test]
    fn the_document_contains_what_is_known() {
        let mut failure = Failure::new(Kind::Busy, "too many requests").hint("wait");
        failure.server_error = Some(Box::new(ServerError {
            code: "rate_limited_minute".to_owned(),
            request_id: "req_1".to_owned(),
            retry_after: None,
        }));
        assert_eq!(
            failure.document(),
            json!({
                "schema": "mk.error/1",
                "error": {
                    "kind": "busy",
                    "message": "too many requests",
                    "hints": ["wait"],
                    "code": "rate_limited_minute",
                    "request_id": "req_1",
                },
                "exit": 7,
            })
        );
    }
}
