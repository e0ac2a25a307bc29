//! Bulk-loads an empty database: whole tables at once, all or none.

use std::pin::pin;
use std::time::Duration;

use rusqlite::types::Value;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;

use super::session::first;
use super::{Database, Session, sql_params};
use crate::storage::Error;

/// Many million rows take minutes.
const TIMEOUT: Duration = Duration::from_hours(24);

/// The `default` app that a server creates does not count as long as nothing was done with it: whatever is done shows
/// in the audit log.
const IS_IN_USE: &str = "SELECT EXISTS (SELECT 1 FROM apps OFFSET 1) OR EXISTS (SELECT 1 FROM audit OFFSET 1)
    OR EXISTS (SELECT 1 FROM keys) OR EXISTS (SELECT 1 FROM attempts) OR EXISTS (SELECT 1 FROM usage_days)";

/// A column to load.
pub(in crate::storage) struct Column {
    /// Its name.
    pub(in crate::storage) name: String,
    /// One of the types that our tables use.
    pub(in crate::storage) ty: Type,
}

impl Database {
    /// Whether anything is stored in the database. Blocking.
    pub(in crate::storage) fn is_in_use(&self) -> Result<bool, Error> {
        self.read(is_in_use)
    }

    /// Has `load` fill the tables in one transaction, for which all servers' writes wait; `None` if the database is in
    /// use. Blocking, for as long as it takes.
    pub(in crate::storage) fn load_if_empty<T>(
        &self,
        load: impl FnOnce(&Session<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.in_transaction(TIMEOUT, |session| {
            session
                .execute_batch("SET LOCAL statement_timeout = 0; UPDATE writes SET number = number + 1")?;
            if is_in_use(session)? {
                return Ok(None);
            }
            session.execute_batch("DELETE FROM audit; DELETE FROM apps")?;
            load(session).map(Some)
        })
    }
}

fn is_in_use(session: &Session<'_>) -> Result<bool, Error> {
    Ok(first(&session.query(IS_IN_USE, &[])?)?.unwrap_or(true))
}

impl Session<'_> {
    /// Copies rows into a table until `next` returns no more; returns their number. Foreign keys are checked once all
    /// rows are there.
    pub(in crate::storage) fn copy_in(
        &self,
        table: &str,
        columns: &[Column],
        mut next: impl FnMut() -> Result<Option<Vec<Value>>, Error>,
    ) -> Result<u64, Error> {
        let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        let types: Vec<_> = columns.iter().map(|column| column.ty.clone()).collect();
        let sql = format!("COPY {table} ({}) FROM STDIN (FORMAT binary)", names.join(", "));
        let mut broken = None;
        let filled = self.wait(async |client| {
            let mut writer = pin!(BinaryCopyInWriter::new(client.copy_in(&sql).await?, &types));
            loop {
                match next() {
                    Ok(Some(row)) => writer.as_mut().write_raw(sql_params(row)).await?,
                    Ok(None) => return writer.finish().await,
                    Err(cause) => {
                        // Without the end of the copy, the database discards what it has received.
                        broken = Some(cause);
                        return Ok(0);
                    }
                }
            }
        })?;
        broken.map_or(Ok(filled), Err)
    }
}
