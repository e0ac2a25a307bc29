//! What holds for one statement and for all others of a command: a refused key, or a server that cannot be reached.
//!
//! Servers limit how often a caller may be refused, so once is enough. A connection that fails takes its time, so a few
//! in a row are. From then on nothing is sent, and each further statement fails with the same reason.

use std::cell::{Cell, RefCell};

use crate::cli::process::exit::{Failure, Kind};
use crate::client;

/// How many statements in a row may fail to reach the server before the rest is given up.
pub(crate) const MAX_UNREACHED: usize = 5;

/// Why no more statements of a command are asked, if that is so.
#[derive(Debug, Default)]
pub(crate) struct Refusal {
    reason: RefCell<Option<(Kind, String)>>,
    /// How many in a row failed to reach the server.
    unreached: Cell<usize>,
}

impl Refusal {
    /// Asks for one statement, unless others have shown that this is pointless.
    pub(crate) async fn unless_refused<T>(
        &self,
        ask: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        if let Some((kind, why)) = self.reason.borrow().as_ref() {
            return Err(Failure::new(*kind, format!("not asked, because {why}")));
        }
        let outcome = ask.await;
        let failure = outcome.as_ref().err();
        let unreached = if failure.is_some_and(has_no_connection) { self.unreached.get() + 1 } else { 0 };
        self.unreached.set(unreached);
        let why = match failure {
            Some(failure) if failure.kind == Kind::Unauthorized => "another one was refused",
            Some(_) if unreached >= MAX_UNREACHED => "those before did not reach the server",
            _ => return outcome,
        };
        outcome.inspect_err(|failure| {
            self.reason.replace(Some((failure.kind, format!("{why}: {}", failure.message))));
        })
    }
}

/// Whether there was no connection; a statement that took too long says nothing about the others.
fn has_no_connection(failure: &Failure) -> bool {
    use client::Error::{BadCertificate, NoTls, Unreachable, Unresolved};
    let cause = failure.source.as_ref().and_then(|cause| cause.downcast_ref());
    matches!(cause, Some(Unresolved | NoTls | Unreachable(_) | BadCertificate(..)))
}
