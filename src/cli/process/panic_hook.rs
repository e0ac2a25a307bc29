//! Panics, reported as defects of this program in one line, without a panic message that may hold secrets.
//!
//! The default hook would print the message, which may quote a key or control the terminal, and the process would end
//! with an exit code that no script knows. A server reports defects in its log, along with everything else about it.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};

use super::exit::{Failure, Kind, Outcome};

/// Makes panics be reported as defects from here on.
pub(crate) fn install_hook() {
    set_hook(Box::new(report));
}

/// Runs a command; a panic in it becomes an ordinary failure.
pub(crate) fn catch(command: impl FnOnce() -> Outcome) -> Outcome {
    catch_unwind(AssertUnwindSafe(command)).unwrap_or_else(|_panic| {
        Err(Failure::new(Kind::Other, "this is a bug in mk; the command did not finish")
            .hint("please report it, with the line above and what you did"))
    })
}

fn report(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map_or_else(|| "unknown location".to_owned(), ToString::to_string);
    let text = constant_message(panic.payload()).unwrap_or("text not shown");
    if tracing::dispatcher::has_been_set() {
        tracing::error!(place, text, "bug in mk");
        return;
    }
    let trace = Backtrace::capture();
    let mut err = io::stderr().lock();
    // If nobody reads standard error, nobody misses the message.
    let _ = writeln!(err, "bug: {place}: {text}");
    if trace.status() == BacktraceStatus::Captured {
        let _ = writeln!(err, "{trace}");
    }
}

/// The message of a panic if it is a constant: only then is it known to hold nothing of a key or a caller.
fn constant_message(payload: &(dyn Any + Send)) -> Option<&'static str> {
    payload.downcast_ref::<&'static str>().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_message_with_values_in_it_is_not_shown() {
        let key = String::from("mk_verify_secret");
        let formatted = catch_unwind(|| panic!("cannot use {key}")).unwrap_err();
        assert_eq!(constant_message(&*formatted), None);
        let constant = catch_unwind(|| panic!("out of order")).unwrap_err();
        assert_eq!(constant_message(&*constant), Some("out of order"));
    }

    #[test]
    fn a_defect_becomes_an_ordinary_failure() {
        let failure = catch(|| panic!("as a test wants it")).unwrap_err();
        assert_eq!(failure.kind.code(), 1);
        assert_eq!(catch(|| Ok(7)).unwrap(), 7);
    }
}
