//! Prompts before something that cannot be undone.

use std::io;

use super::printer::Printer;
use crate::cli::process::exit::{Failure, Kind};
use crate::cli::process::runtime;

/// The flag that answers yes.
const FLAG: &str = "--yes";

/// Warns and asks `question`, which ends with the consequences, unless `is_confirmed` tells that the answer was given
/// by the flag. Where nobody can be asked, the failure names the flag.
pub(crate) fn confirm(
    printer: &Printer,
    question: &str,
    warning: Option<&str>,
    is_confirmed: bool,
) -> Result<(), Failure> {
    let terminal = &printer.terminal;
    let nobody_is_there = !terminal.input_is_tty || !terminal.err.is_terminal;
    if !is_confirmed && nobody_is_there {
        return Err(Failure::usage(
            "this cannot be undone, and there is no terminal to ask for confirmation",
        )
        .hint(format!("add {FLAG} to confirm")));
    }
    if let Some(warning) = warning {
        printer.warning(warning);
    }
    if is_confirmed {
        return Ok(());
    }
    if printer.question(&format!("{question} [y/N]")).is_ok() && is_yes(&answer(printer)?) {
        return Ok(());
    }
    Err(Failure::new(Kind::Declined, "nothing was changed"))
}

/// A line from the terminal; empty if there is none. It is read on another thread: once a command has made a request,
/// Ctrl-C only ends it where something listens for it.
fn answer(printer: &Printer) -> Result<String, Failure> {
    let line = || {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line)
    };
    runtime::run(printer, async {
        let read = tokio::task::spawn_blocking(line).await;
        Ok(read.ok().and_then(Result::ok).unwrap_or_default())
    })
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::term::{Paint, Terminal};

    #[test]
    fn only_a_clear_yes_counts() {
        assert!(is_yes("y\n") && is_yes(" Yes\r\n"));
        assert!(!is_yes("") && !is_yes("\n") && !is_yes("no") && !is_yes("yessir"));
    }

    #[test]
    fn without_a_terminal_the_flag_is_named() {
        let printer = Printer { terminal: Terminal::test(80, Paint::Plain), quiet: false, verbose: false };
        let failure = confirm(&printer, "Really?", None, false).unwrap_err();
        assert_eq!(failure.kind, Kind::Usage);
        assert!(failure.hints[0].contains("--yes"));
        assert!(confirm(&printer, "Really?", None, true).is_ok());
    }
}
