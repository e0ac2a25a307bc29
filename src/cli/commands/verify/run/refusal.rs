//! A refused key: what holds for one statement holds for all others of a command.
//!
//! Servers limit how often a caller may be refused, so once is enough: nothing is sent any more, and each further
//! statement fails with the same reason.

use std::cell::RefCell;

use crate::cli::process::exit::{Failure, Kind};

/// Why the key of a command was refused, if it was.
#[derive(Debug, Default)]
pub(crate) struct Refusal(RefCell<Option<String>>);

impl Refusal {
    /// Asks for one statement, unless another was refused.
    pub(crate) async fn unless_refused<T>(
        &self,
        ask: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let refused = |why: &String| {
            Failure::new(Kind::Unauthorized, format!("not asked, as another was refused: {why}"))
        };
        if let Some(failure) = self.0.borrow().as_ref().map(refused) {
            return Err(failure);
        }
        ask.await.inspect_err(|failure| {
            if failure.kind == Kind::Unauthorized {
                self.0.replace(Some(failure.message.clone()));
            }
        })
    }
}
