//! The store's queries, written once for both databases (see [`super::db`] for the rules).

mod apps;
mod attempts;
mod audit;
mod calls;
mod credential;
mod end_users;
pub(super) mod keys;
mod ledger;
mod names;
mod rollup;
mod sessions;
mod signing_keys;
mod spending;
mod usage;
mod values;
mod verdicts;

pub use apps::LAST_APP;
pub use credential::{Credential, InvalidCredential};
pub use signing_keys::Seed;

use super::Order;

impl Order {
    /// The condition for the records after the one with the bound id, if that is not empty, and how they are sorted:
    /// ids sort by the time at which they were made.
    fn after(self, id: &str, bound: &str) -> (String, String) {
        match self {
            Self::OldestFirst => (format!("{id} > {bound}"), id.to_owned()),
            Self::NewestFirst => (format!("({bound} = '' OR {id} < {bound})"), format!("{id} DESC")),
        }
    }
}
