//! Storage in PostgreSQL, for several servers behind a load balancer.
//!
//! Nothing is cached: every request looks its key up in the database, so that whatever any server acknowledged, above
//! all a revocation, holds for the next request to any server; and while the database cannot be reached, nobody is let
//! in.
//!
//! What must hold: writes to apps, keys and sessions are serialised across all servers ([`WriteLock`]), as writes to
//! one SQLite file are; the order of the audit log and the checks within queries rely on it. No call waits longer than
//! its timeout, whatever the network does, and a connection on which a call timed out is not reused. Nothing here
//! blocks an async worker, except for calls that say so.

mod address;
mod batches;
mod bulk_load;
mod database;
mod error;
mod examine;
mod migrations;
mod session;
#[cfg(test)]
pub(super) mod testing;
mod values;

use rusqlite::types::Value;

pub use address::{DatabaseUrl, PostgresAddress};
pub use error::PostgresError;
pub use examine::{examine as examine_postgres, is_empty as is_empty_postgres};

pub(super) use bulk_load::Column;
pub(super) use database::{Database, WriteLock};
pub(super) use session::Session;
pub(super) use values::{column_value, owned_params};

use super::Error;

/// Translates a statement that is written for both databases: PostgreSQL marks parameters with `$`.
fn to_postgres_sql(sql: &str) -> String {
    sql.replace('?', "$")
}

/// The storage error for a failure.
fn storage_error(cause: impl Into<PostgresError>) -> Error {
    Error::Postgres(cause.into())
}

/// Values wrapped for sending.
fn sql_params(params: Vec<Value>) -> Vec<values::SqlParam> {
    params.into_iter().map(values::SqlParam).collect()
}
