//! The only way to the terminal: results to standard output, everything else to standard error.
//!
//! A value instead of `println!`, which panics on a closed pipe. Results answer with an error when nobody reads
//! them any longer; messages do not, as losing one is no reason to stop.

use std::io::{self, Write};

use serde::Serialize;

use super::exit::{Failure, Kind};
use super::sanitize;
use super::term::{Look, Terminal};

/// Prints.
#[derive(Clone, Debug)]
pub(crate) struct Printer {
    /// The streams it prints to.
    pub(crate) terminal: Terminal,
    /// `-q`: no results for people, no notices. Errors and JSON stay.
    pub(crate) quiet: bool,
    /// `-v`: causes and request ids.
    pub(crate) verbose: bool,
}

impl Printer {
    /// Prints a line of results.
    pub(crate) fn line(&self, line: &str) -> Result<(), Failure> {
        if self.quiet {
            return Ok(());
        }
        self.result(line)
    }

    /// Prints a line of results even with `-q`: what was asked for by `--json`, or a secret that exists only now.
    #[expect(clippy::unused_self, reason = "whoever prints has a printer")]
    pub(crate) fn result(&self, line: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let written =
            out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
        written.map_err(broken_output)
    }

    /// Prints a document of JSON: indented for people, on one line for programs.
    pub(crate) fn document(&self, document: &impl Serialize) -> Result<(), Failure> {
        let text = if self.terminal.out.is_terminal {
            serde_json::to_string_pretty(document)
        } else {
            serde_json::to_string(document)
        };
        self.result(&text.map_err(not_json)?)
    }

    /// Prints one line of JSON.
    pub(crate) fn json_line(&self, object: &impl Serialize) -> Result<(), Failure> {
        self.result(&serde_json::to_string(object).map_err(not_json)?)
    }

    /// Prints a notice, unless `-q`.
    pub(crate) fn notice(&self, text: &str) {
        if !self.quiet {
            message(text);
        }
    }

    /// Prints a notice only with `-v`.
    pub(crate) fn detail(&self, text: &str) {
        if self.verbose {
            message(text);
        }
    }

    /// Prints a warning, unless `-q`.
    pub(crate) fn warning(&self, text: &str) {
        let label = self.terminal.err.paint.apply(Look::Open, "warning:");
        self.notice(&format!("{label} {}", sanitize::line(text)));
    }

    /// Prints why a command failed and what to do next.
    pub(crate) fn failure(&self, failure: &Failure) {
        let paint = self.terminal.err.paint;
        message(&format!("{} {}", paint.apply(Look::False, "error:"), sanitize::line(&failure.message)));
        for hint in &failure.hints {
            message(&format!("{} {}", paint.apply(Look::Strong, "hint:"), sanitize::line(hint)));
        }
        if !self.verbose {
            return;
        }
        if let Some(source) = &failure.source {
            for cause in source.chain() {
                message(&format!("cause: {}", sanitize::line(&cause.to_string())));
            }
        }
        if let Some(said) = &failure.said {
            message(&format!("code: {}", sanitize::line(&said.code)));
            message(&format!("request: {}", sanitize::line(&said.request_id)));
        }
    }
}

/// Writes a line to standard error. Where nobody reads it, nobody misses it.
fn message(text: &str) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.write_all(b"\n"));
}

fn broken_output(cause: io::Error) -> Failure {
    if cause.kind() == io::ErrorKind::BrokenPipe {
        return Failure::new(Kind::ClosedPipe, "the output was closed");
    }
    Failure::new(Kind::Other, format!("cannot write to standard output: {cause}")).caused_by(cause)
}

fn not_json(cause: serde_json::Error) -> Failure {
    Failure::new(Kind::Other, "the result cannot be written as JSON").caused_by(cause)
}
