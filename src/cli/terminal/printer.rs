//! The only way to the terminal: results to standard output, everything else to standard error.
//!
//! A value instead of `println!`, which panics on a closed pipe. Printing results fails when nobody reads them any
//! longer; printing messages does not, as losing one is no reason to stop.

use std::io::{self, Write};

use serde::Serialize;

use super::term::{Style, Terminal};
use super::{sanitize, wrap};
use crate::cli::process::exit::{Failure, Kind};

/// Prints results and messages.
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
    /// The same printer, using all columns of the terminal for text.
    pub(crate) fn with_full_width(&self) -> Self {
        let width = self.terminal.full_width;
        Self { terminal: Terminal { width, ..self.terminal.clone() }, ..self.clone() }
    }

    /// Prints a line of results, unless `-q`.
    pub(crate) fn line(&self, line: &str) -> Result<(), Failure> {
        if self.quiet {
            return Ok(());
        }
        self.result(line)
    }

    /// Prints a line of results even with `-q`: JSON that was asked for, or a secret that exists only now.
    #[expect(clippy::unused_self, reason = "whoever prints has a printer")]
    pub(crate) fn result(&self, line: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let written =
            out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
        written.map_err(output_failure)
    }

    /// Prints part of a result (sanitized) as it is, without a line end, even with `-q`.
    #[expect(clippy::unused_self, reason = "whoever prints has a printer")]
    pub(crate) fn part(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(output_failure)
    }

    /// Prints a JSON document: indented on a terminal, on one line elsewhere.
    pub(crate) fn document(&self, document: &impl Serialize) -> Result<(), Failure> {
        let text = if self.terminal.out.is_terminal {
            serde_json::to_string_pretty(document)
        } else {
            serde_json::to_string(document)
        };
        self.result(&sanitize::json(&text.map_err(json_failure)?))
    }

    /// Prints one line of JSON.
    pub(crate) fn json_line(&self, object: &impl Serialize) -> Result<(), Failure> {
        self.result(&sanitize::json(&serde_json::to_string(object).map_err(json_failure)?))
    }

    /// Prints a notice, unless `-q`.
    pub(crate) fn notice(&self, text: &str) {
        if !self.quiet {
            write_line(text);
        }
    }

    /// Prints a line (sanitized) that must not be missed, even with `-q`.
    #[expect(clippy::unused_self, reason = "whoever prints has a printer")]
    pub(crate) fn alert(&self, line: &str) {
        write_line(line);
    }

    /// Prints a sentence (sanitized) that must not be missed, even with `-q`, wrapped for people.
    pub(crate) fn urgent_sentence(&self, text: &str) {
        self.wrapped(text, 0).iter().for_each(|line| write_line(line));
    }

    /// Prints a notice only with `-v`.
    pub(crate) fn detail(&self, text: &str) {
        if self.verbose {
            write_line(text);
        }
    }

    /// Prints a warning, unless `-q`.
    pub(crate) fn warning(&self, text: &str) {
        if !self.quiet {
            self.urgent_warning(text);
        }
    }

    /// Prints a warning that must not be missed, even with `-q`.
    pub(crate) fn urgent_warning(&self, text: &str) {
        self.labelled("warning:", Style::Open, text);
    }

    /// Prints a notice (sanitized) behind a label of `indent` cells, wrapped for people.
    pub(crate) fn labelled_notice(&self, label: &str, indent: usize, text: &str) {
        let lines = wrap::hanging(&format!("{label:<indent$}"), indent, &self.wrapped(text, indent));
        for line in lines {
            self.notice(&line);
        }
    }

    /// Prints a notice that is a sentence (sanitized), wrapped for people.
    pub(crate) fn sentence(&self, text: &str) {
        self.labelled_notice("", 0, text);
    }

    /// Prints a question (sanitized), wrapped for people, and leaves the cursor behind it for the answer.
    pub(crate) fn question(&self, text: &str) -> io::Result<()> {
        let mut err = io::stderr().lock();
        write!(err, "{} ", self.wrapped(text, 0).join("\n"))?;
        err.flush()
    }

    /// Prints why a command failed and what to do next.
    pub(crate) fn failure(&self, failure: &Failure) {
        self.labelled("error:", Style::False, &failure.message);
        for hint in &failure.hints {
            self.labelled("hint:", Style::Strong, hint);
        }
        if !self.verbose {
            return;
        }
        if let Some(source) = &failure.source {
            let causes = source.chain().map(ToString::to_string);
            for cause in causes.filter(|cause| *cause != failure.message) {
                write_line(&format!("cause: {}", sanitize::line(&cause)));
            }
        }
        if let Some(server_error) = &failure.server_error {
            for (label, text) in [("code", &server_error.code), ("request", &server_error.request_id)] {
                if !text.is_empty() {
                    write_line(&format!("{label}: {}", sanitize::line(text)));
                }
            }
        }
    }
}

impl Printer {
    fn labelled(&self, label: &str, style: Style, text: &str) {
        let indent = label.len() + 1;
        let painted = format!("{} ", self.terminal.err.paint.apply(style, label));
        let lines = wrap::hanging(&painted, indent, &self.wrapped(text, indent));
        for line in lines {
            write_line(&line);
        }
    }

    /// Lines that fit behind `indent` cells on a terminal; a single line elsewhere.
    fn wrapped(&self, text: &str, indent: usize) -> Vec<String> {
        let text = self.terminal.symbols.adapt(sanitize::line(text));
        if !self.terminal.err.is_terminal {
            return vec![text.into_owned()];
        }
        wrap::wrap(&text, self.terminal.width.saturating_sub(indent))
    }
}

/// Writes a line to standard error. If nobody reads it, nobody misses it.
fn write_line(text: &str) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.write_all(b"\n"));
}

fn output_failure(cause: io::Error) -> Failure {
    if cause.kind() == io::ErrorKind::BrokenPipe {
        return Failure::new(Kind::ClosedPipe, "the output was closed");
    }
    Failure::new(Kind::Other, format!("cannot write to standard output: {cause}")).caused_by(cause)
}

fn json_failure(cause: serde_json::Error) -> Failure {
    Failure::new(Kind::Other, "the result cannot be written as JSON").caused_by(cause)
}
