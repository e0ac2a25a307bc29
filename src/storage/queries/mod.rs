//! The store's queries, written once for both databases (see [`super::db`] for the rules).

mod apps;
mod audit;
mod calls;
mod credential;
pub(super) mod keys;
mod ledger;
mod names;
mod rollup;
mod sessions;
mod usage;
mod values;

pub use apps::LAST_APP;
pub use credential::{Credential, InvalidCredential};
