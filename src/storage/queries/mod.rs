//! What the store is asked and told, written once for all databases (see [`super::db`] for what that takes).

mod apps;
mod audit;
pub(super) mod keys;
mod ledger;
mod names;
mod rollup;
mod sessions;
mod usage;
mod values;
mod warrant;

pub use apps::LAST_APP;
pub use warrant::{Lapsed, Warrant};
