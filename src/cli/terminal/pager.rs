//! Shows a long page on a terminal with the person's pager, as `man` does.
//!
//! The pager is theirs (`PAGER`), run by the shell as everybody else runs it. Where there is none, or the page fits the
//! screen, it is printed.

use crate::cli::args::globals::Session;
use crate::cli::process::exit::Failure;

/// What is run if nobody names a pager.
const USUAL: &str = "less";

/// What `less` is told if nobody does: pass colours, end where all fits on a screen, leave it there.
const LESS: &str = "FRX";

/// Prints lines, with a pager if they do not fit the terminal.
pub(crate) fn print(session: &Session, lines: &[String]) -> Result<(), Failure> {
    let terminal = &session.printer.terminal;
    let text = lines.join("\n");
    let is_long = terminal.out.is_terminal && terminal.can_animate && lines.len() >= terminal.height;
    if is_long && is_shown_by_pager(session, &text) {
        return Ok(());
    }
    session.printer.result(&text)
}

/// Whether a pager could be run on the text. The person may leave it before its end.
#[cfg(unix)]
fn is_shown_by_pager(session: &Session, text: &str) -> bool {
    use std::io::Write;
    use std::process::{Command, Stdio};
    use std::sync::Arc;

    let named = |name| session.env.text(name).ok().flatten();
    // Ctrl-C in the pager is about the pager.
    let ignored = signal_hook::flag::register(crate::cli::process::runtime::SIGINT, Arc::default());
    let mut command = match named("PAGER") {
        Some(pager) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", pager]);
            shell
        }
        None => Command::new(USUAL),
    };
    command.stdin(Stdio::piped());
    if named("LESS").is_none() {
        command.env("LESS", LESS);
    }
    let Ok(mut pager) = command.spawn() else { return false };
    if let Some(mut input) = pager.stdin.take() {
        // Whoever has seen enough closes it.
        let _ = input.write_all(text.as_bytes()).and_then(|()| input.write_all(b"\n"));
    }
    let ended = pager.wait();
    let _ = ignored.map(signal_hook::low_level::unregister);
    // The shell's codes for a program that is not there, or is none.
    ended.is_ok_and(|status| !matches!(status.code(), Some(126 | 127)))
}

#[cfg(not(unix))]
fn is_shown_by_pager(_: &Session, _: &str) -> bool {
    false
}
