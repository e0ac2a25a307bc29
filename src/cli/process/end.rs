//! How the process ends: by an exit code, or by the signal that stopped it. A shell loop stops at Ctrl-C only if the
//! command really dies of the signal, so the process does that instead of `exit(130)`.

use std::ffi::OsString;

use super::exit::{Kind, Outcome};
use super::runtime;
use crate::cli::terminal::printer::Printer;

/// POSIX's number of the signal for a write that nobody reads.
const SIGPIPE: i32 = 13;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By an exit code.
    Code(u8),
    /// By a signal.
    Signal(i32),
}

impl End {
    /// Ends the process by the signal, so that the parent sees it; returns the code to exit with where there are no
    /// signals.
    pub fn into_code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => {
                // Does not return where the signal exists; elsewhere the code a shell shows for it is the best we have.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
                u8::try_from(128 + signal).unwrap_or(1)
            }
        }
    }
}

/// Whether these arguments ask for JSON, so that standard output must hold exactly one document, whatever happens. It is
/// told by the words, as there may be mistakes among them.
pub(crate) fn wants_json(args: &[OsString]) -> bool {
    args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json" || arg == "--jsonl")
}

/// Reports what a command returned. `wants_json` says whether standard output must hold one document even now.
pub(crate) fn report(outcome: Outcome, printer: &Printer, wants_json: bool) -> End {
    let failure = match outcome {
        // Whoever asked the command to end, perhaps while it wrote its last lines, must see that it did.
        Ok(code) => return runtime::received_stop_signal().map_or(End::Code(code), End::Signal),
        Err(failure) => failure,
    };
    match failure.kind {
        Kind::ClosedPipe => return End::Signal(SIGPIPE),
        // Already reported when the key was pressed.
        Kind::Interrupted => {}
        Kind::Terminated => printer.notice(&failure.message),
        _ => printer.failure(&failure),
    }
    let written = if wants_json { printer.document(&failure.document()) } else { Ok(()) };
    match (failure.kind.stop_signal().or_else(runtime::received_stop_signal), written) {
        // Whoever would read the document may have died of the same signal.
        (Some(signal), _) => End::Signal(signal),
        (None, Err(unwritten)) if unwritten.kind == Kind::ClosedPipe => End::Signal(SIGPIPE),
        (None, _) => End::Code(failure.kind.code()),
    }
}
