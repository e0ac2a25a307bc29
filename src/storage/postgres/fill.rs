//! Filling a database that holds nothing yet: whole tables at once, all or none.

use std::pin::pin;
use std::time::Duration;

use rusqlite::types::Value;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;

use super::session::first;
use super::{Database, Session, given};
use crate::storage::Error;

/// Many million rows take minutes.
const PATIENCE: Duration = Duration::from_hours(24);

/// The app that a server makes where there is none does not count, as long as nothing was done with it: whatever is done,
/// the audit tells.
const IS_IN_USE: &str = "SELECT EXISTS (SELECT 1 FROM apps OFFSET 1) OR EXISTS (SELECT 1 FROM audit OFFSET 1)
    OR EXISTS (SELECT 1 FROM keys) OR EXISTS (SELECT 1 FROM attempts) OR EXISTS (SELECT 1 FROM usage_days)";

/// A column to fill, and the type that it has.
pub(in crate::storage) struct Column {
    /// Its name.
    pub(in crate::storage) name: String,
    /// One of those that our tables are made of.
    pub(in crate::storage) of: Type,
}

impl Database {
    /// Whether anything was stored here. Blocking.
    pub(in crate::storage) fn is_in_use(&self) -> Result<bool, Error> {
        self.read(is_in_use)
    }

    /// Has `fill` fill the tables, in one transaction for which all writes of servers wait; `None` if the database is in
    /// use. Blocking, for as long as it takes.
    pub(in crate::storage) fn fill<T>(
        &self,
        fill: impl FnOnce(&Session<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.in_transaction(PATIENCE, |session| {
            session.run("SET LOCAL statement_timeout = 0; UPDATE writes SET number = number + 1")?;
            if is_in_use(session)? {
                return Ok(None);
            }
            session.run("DELETE FROM audit; DELETE FROM apps")?;
            fill(session).map(Some)
        })
    }
}

fn is_in_use(session: &Session<'_>) -> Result<bool, Error> {
    Ok(first(&session.query(IS_IN_USE, &[])?)?.unwrap_or(true))
}

impl Session<'_> {
    /// Puts rows into a table, as `next` gives them, until there are no more; how many there were. What refers to another
    /// row is checked when all are there.
    pub(in crate::storage) fn fill(
        &self,
        table: &str,
        columns: &[Column],
        mut next: impl FnMut() -> Result<Option<Vec<Value>>, Error>,
    ) -> Result<u64, Error> {
        let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        let types: Vec<_> = columns.iter().map(|column| column.of.clone()).collect();
        let sql = format!("COPY {table} ({}) FROM STDIN (FORMAT binary)", names.join(", "));
        let mut broken = None;
        let filled = self.wait(async |client| {
            let mut writer = pin!(BinaryCopyInWriter::new(client.copy_in(&sql).await?, &types));
            loop {
                match next() {
                    Ok(Some(row)) => writer.as_mut().write_raw(given(row)).await?,
                    Ok(None) => return writer.finish().await,
                    Err(cause) => {
                        // Without its end the database throws away what has come.
                        broken = Some(cause);
                        return Ok(0);
                    }
                }
            }
        })?;
        broken.map_or(Ok(filled), Err)
    }
}
