//! A connection for the duration of a read or a write.

use std::cell::Cell;

use deadpool_postgres::Object;
use futures_util::future::try_join_all;
use rusqlite::types::Value;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql};

use super::database::Database;
use super::values::SqlParam;
use super::{PostgresError, owned_params, sql_params, storage_error, to_postgres_sql};
use crate::storage::Error;
use crate::storage::db::Params;

/// The maximum number of statements in flight.
const MAX_IN_FLIGHT: usize = 1000;

/// A connection with a deadline for everything done on it. Calls block.
pub(in crate::storage) struct Session<'a> {
    database: &'a Database,
    /// `None` only during drop.
    client: Option<Object>,
    deadline: Instant,
    /// Whether a transaction is open.
    is_open: Cell<bool>,
    /// Whether the connection must not be reused ([`PostgresError::invalidates_connection`]).
    is_invalid: Cell<bool>,
}

impl<'a> Session<'a> {
    pub(super) const fn new(database: &'a Database, client: Object, deadline: Instant) -> Self {
        Self {
            database,
            client: Some(client),
            deadline,
            is_open: Cell::new(false),
            is_invalid: Cell::new(false),
        }
    }

    /// All rows of the result.
    pub(in crate::storage) fn query(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Error> {
        let params = sql_params(owned_params(params)?);
        self.wait(async |client| {
            let query = client.prepare_cached(&to_postgres_sql(sql)).await?;
            client.query(&query, &as_dyn(&params)).await
        })
    }

    /// Runs the query with each of these parameter lists; all are sent before the first result.
    pub(in crate::storage) fn query_each(
        &self,
        sql: &str,
        all: Vec<Vec<Value>>,
    ) -> Result<Vec<Vec<Row>>, Error> {
        let all: Vec<_> = all.into_iter().map(sql_params).collect();
        self.wait(async |client| {
            let query = client.prepare_cached(&to_postgres_sql(sql)).await?;
            let mut answers = Vec::with_capacity(all.len());
            for some in all.chunks(MAX_IN_FLIGHT) {
                let queries = some.iter().map(async |params| client.query(&query, &as_dyn(params)).await);
                answers.extend(try_join_all(queries).await?);
            }
            Ok(answers)
        })
    }

    /// Executes a statement and returns the number of rows changed.
    pub(in crate::storage) fn execute(&self, sql: &str, params: Params<'_>) -> Result<usize, Error> {
        let params = sql_params(owned_params(params)?);
        let changed = self.wait(async |client| {
            let statement = client.prepare_cached(&to_postgres_sql(sql)).await?;
            client.execute(&statement, &as_dyn(&params)).await
        })?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    /// Executes the statement with each of these parameter lists, in their order: the futures are first polled in that
    /// order, which is when the library sends their messages.
    pub(in crate::storage) fn execute_each(&self, sql: &str, all: Vec<Vec<Value>>) -> Result<(), Error> {
        let all: Vec<_> = all.into_iter().map(sql_params).collect();
        self.wait(async |client| {
            let statement = client.prepare_cached(&to_postgres_sql(sql)).await?;
            for some in all.chunks(MAX_IN_FLIGHT) {
                let sent = some.iter().map(async |params| client.execute(&statement, &as_dyn(params)).await);
                try_join_all(sent).await?;
            }
            Ok(())
        })
    }

    /// Runs a batch of statements without parameters.
    pub(super) fn execute_batch(&self, sql: &str) -> Result<(), Error> {
        self.wait(async |client| client.batch_execute(sql).await)
    }

    /// Begins a transaction, each of whose statements sees what was committed before it.
    pub(super) fn begin(&self) -> Result<(), Error> {
        self.is_open.set(true);
        self.execute_batch("BEGIN ISOLATION LEVEL READ COMMITTED")
    }

    /// Commits the transaction. If that fails, it may have been committed nevertheless.
    pub(super) fn commit(&self) -> Result<(), Error> {
        self.execute_batch("COMMIT")?;
        self.is_open.set(false);
        Ok(())
    }

    /// Rolls the transaction back. If that fails, closing the connection does it.
    pub(super) fn rollback(&self) {
        let is_undone = self.execute_batch("ROLLBACK").is_ok();
        self.is_open.set(!is_undone);
    }

    /// Waits for `work` on the connection.
    pub(super) fn wait<T>(
        &self,
        work: impl AsyncFnOnce(&Object) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Error> {
        #[cfg(test)]
        super::testing::count_wait();
        let Some(client) = &self.client else { return Err(storage_error(PostgresError::Timeout)) };
        let outcome =
            self.database.wait(self.deadline, async { work(client).await.map_err(PostgresError::Client) });
        if outcome.as_ref().is_err_and(PostgresError::invalidates_connection) {
            self.is_invalid.set(true);
        }
        outcome.map_err(storage_error)
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if let Some(client) = self.client.take()
            && (self.is_open.get() || self.is_invalid.get())
        {
            drop(Object::take(client));
        }
    }
}

/// The first column of the first row, if there is one.
pub(super) fn first<'r, T: FromSql<'r>>(rows: &'r [Row]) -> Result<Option<T>, Error> {
    let value = rows.first().map(|row| row.try_get(0)).transpose();
    value.map_err(|cause| storage_error(PostgresError::Client(cause)))
}

fn as_dyn(params: &[SqlParam]) -> Vec<&(dyn ToSql + Sync)> {
    params.iter().map(|param| param as _).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{WriteLock, testing};
    use super::*;

    #[test]
    #[ignore = "needs PostgreSQL, which `cargo test` may not ask for, named by MK_TEST_DATABASE_URL; runs in .ci/run"]
    fn statements_are_executed_in_order() {
        let database = testing::database().expect("MK_TEST_DATABASE_URL");
        let given: Vec<i64> = (0..2_500).rev().collect();
        let table = "CREATE TABLE rows (place BIGINT GENERATED ALWAYS AS IDENTITY, given BIGINT)";
        database.read(|session| session.execute_batch(table)).unwrap();
        let all = given.iter().map(|number| vec![Value::Integer(*number)]).collect();
        let sent = |session: &Session<'_>| session.execute_each("INSERT INTO rows (given) VALUES (?1)", all);
        database.write(WriteLock::Main, sent).unwrap();
        let read = |session: &Session<'_>| session.query("SELECT given FROM rows ORDER BY place", &[]);
        let found: Vec<i64> = database.read(read).unwrap().iter().map(|row| row.get(0)).collect();
        assert_eq!(found, given);
    }
}
