//! The server's log: a line for each request, with its calls and tokens.

use std::path::Path;

use serde_json::Value;

use crate::token;

/// A request in the log.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Its number, if it came from one of the bench's callers.
    pub(crate) token: Option<u64>,
    /// The id of its rows in the ledger.
    pub(crate) ledger_id: String,
    pub(crate) method: String,
    pub(crate) path: String,
    /// `None` if its caller left before a response.
    pub(crate) status: Option<u16>,
    /// The number of calls to models.
    pub(crate) attempts: u64,
    /// Tokens of prompts and completions.
    pub(crate) tokens: (u64, u64),
}

/// The contents of a log.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// One for each request, in the order in which they ended.
    pub(crate) requests: Vec<Line>,
    /// Lines of the level ERROR.
    pub(crate) errors: Vec<String>,
    /// Lines that are not log records: a panic, a library's warning.
    pub(crate) strange: Vec<String>,
}

impl Log {
    /// Reads a log.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn read(file: &Path) -> anyhow::Result<Self> {
        let mut log = Self::default();
        for text in std::fs::read_to_string(file)?.lines() {
            let Ok(line) = serde_json::from_str::<Value>(text) else {
                log.strange.push(text.to_owned());
                continue;
            };
            if line["level"] == "ERROR" {
                log.errors.push(text.to_owned());
            }
            if line["message"] == "request" {
                log.requests.push(Line::new(&line));
            }
        }
        Ok(log)
    }
}

impl Line {
    fn new(line: &Value) -> Self {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| line[name].as_u64().unwrap_or_default();
        let id = text("request_id");
        Self {
            token: token::of_id(&id),
            ledger_id: line["verification"].as_str().map_or(id, str::to_owned),
            method: text("method"),
            path: text("path"),
            status: line["status"].as_u64().and_then(|status| u16::try_from(status).ok()),
            attempts: number("attempts"),
            tokens: (number("prompt_tokens"), number("completion_tokens")),
        }
    }
}
