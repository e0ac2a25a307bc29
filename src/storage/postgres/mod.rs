//! Storage in PostgreSQL, for several servers behind a load balancer.
//!
//! Nothing is kept here of what the database holds: each request looks its key up, so that what was acknowledged to
//! whomever, a revocation above all, holds for the next request to any server; and while the database cannot be asked,
//! nobody passes.
//!
//! What must hold: all that is written to apps, keys and sessions waits for what was begun before, on every server
//! ([`Lane`]), as writes of one SQLite file do; the audit's order and the queries' checks rely on it. No call waits
//! longer than its time, whatever the network does, and a connection on which one did is not used again. Nothing here
//! blocks an async worker but calls that say so.

mod address;
mod batches;
mod database;
mod examine;
mod failure;
mod fill;
mod migrations;
mod session;
#[cfg(test)]
pub(super) mod testing;
mod values;

use rusqlite::types::Value;

pub use address::{DatabaseUrl, PostgresAddress};
pub use examine::{examine as examine_postgres, is_empty as is_empty_postgres};
pub use failure::Failure;

pub(super) use database::{Database, Lane};
pub(super) use fill::Column;
pub(super) use session::Session;
pub(super) use values::{owned, value};

use super::Error;

/// A statement for PostgreSQL, of one that is written for both: its parameters are called otherwise.
fn translated(sql: &str) -> String {
    sql.replace('?', "$")
}

/// What went wrong, as storage tells it.
fn remote(cause: impl Into<Failure>) -> Error {
    Error::Remote(cause.into())
}

/// Values as they are sent.
fn given(params: Vec<Value>) -> Vec<values::Given> {
    params.into_iter().map(values::Given).collect()
}
