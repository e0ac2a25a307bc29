//! Asks before something that cannot be undone.

use std::io::{self, BufRead};

use super::exit::{Failure, Kind};
use super::printer::Printer;

/// Asks `question`, which ends with what happens. Where nobody can be asked, says which flag stands for yes.
pub(crate) fn confirm(printer: &Printer, question: &str, flag: &str) -> Result<(), Failure> {
    let terminal = &printer.terminal;
    if !terminal.input_is_tty || !terminal.err.is_terminal {
        return Err(Failure::usage("this cannot be undone, and there is no terminal to ask on")
            .hint(format!("add {flag} if it is what you want")));
    }
    let asked = printer.question(&format!("{question} [y/N]"));
    let mut answer = String::new();
    let read = asked.and_then(|()| io::stdin().lock().read_line(&mut answer));
    if read.is_ok() && is_yes(&answer) {
        return Ok(());
    }
    Err(Failure::new(Kind::Declined, "nothing was changed"))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::term::{Paint, Terminal};

    #[test]
    fn only_a_clear_yes_counts() {
        assert!(is_yes("y\n") && is_yes(" Yes\r\n"));
        assert!(!is_yes("") && !is_yes("\n") && !is_yes("no") && !is_yes("yessir"));
    }

    #[test]
    fn without_a_terminal_the_flag_is_named() {
        let printer = Printer { terminal: Terminal::test(80, Paint::Plain), quiet: false, verbose: false };
        let failure = confirm(&printer, "Really?", "--yes").unwrap_err();
        assert_eq!(failure.kind, Kind::Usage);
        assert!(failure.hints[0].contains("--yes"));
    }
}
