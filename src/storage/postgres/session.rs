//! A connection for the time of a read or a write.

use std::cell::Cell;

use deadpool_postgres::Object;
use futures_util::future::try_join_all;
use rusqlite::types::Value;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql};

use super::database::Database;
use super::values::Given;
use super::{Failure, given, owned, remote, translated};
use crate::storage::Error;
use crate::storage::db::Params;

/// So many statements are on their way at once.
const MOST_AT_ONCE: usize = 1000;

/// A connection, on which everything together has its time. Calls block.
pub(in crate::storage) struct Session<'a> {
    database: &'a Database,
    /// `None` only while this is dropped.
    client: Option<Object>,
    by: Instant,
    /// Whether a transaction has not come to its end.
    is_open: Cell<bool>,
    /// Whether it is of no use any more ([`Failure::spoils_connection`]).
    is_spoilt: Cell<bool>,
}

impl<'a> Session<'a> {
    pub(super) const fn new(database: &'a Database, client: Object, by: Instant) -> Self {
        Self { database, client: Some(client), by, is_open: Cell::new(false), is_spoilt: Cell::new(false) }
    }

    /// All rows of the answer.
    pub(in crate::storage) fn query(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Error> {
        let params = given(owned(params)?);
        self.wait(async |client| {
            let query = client.prepare_cached(&translated(sql)).await?;
            client.query(&query, &borrowed(&params)).await
        })
    }

    /// The same for each of these, all on their way before the first answer.
    pub(in crate::storage) fn query_each(
        &self,
        sql: &str,
        all: Vec<Vec<Value>>,
    ) -> Result<Vec<Vec<Row>>, Error> {
        let all: Vec<_> = all.into_iter().map(given).collect();
        self.wait(async |client| {
            let query = client.prepare_cached(&translated(sql)).await?;
            let mut answers = Vec::with_capacity(all.len());
            for some in all.chunks(MOST_AT_ONCE) {
                let asked = some.iter().map(async |params| client.query(&query, &borrowed(params)).await);
                answers.extend(try_join_all(asked).await?);
            }
            Ok(answers)
        })
    }

    /// Carries out a statement; how many rows it has changed.
    pub(in crate::storage) fn execute(&self, sql: &str, params: Params<'_>) -> Result<usize, Error> {
        let params = given(owned(params)?);
        let changed = self.wait(async |client| {
            let statement = client.prepare_cached(&translated(sql)).await?;
            client.execute(&statement, &borrowed(&params)).await
        })?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    /// The same for each of these, in their order: the futures are polled in it for the first time, and that is when the
    /// library sends what it is to send.
    pub(in crate::storage) fn execute_each(&self, sql: &str, all: Vec<Vec<Value>>) -> Result<(), Error> {
        let all: Vec<_> = all.into_iter().map(given).collect();
        self.wait(async |client| {
            let statement = client.prepare_cached(&translated(sql)).await?;
            for some in all.chunks(MOST_AT_ONCE) {
                let sent =
                    some.iter().map(async |params| client.execute(&statement, &borrowed(params)).await);
                try_join_all(sent).await?;
            }
            Ok(())
        })
    }

    /// Runs a text of statements without parameters.
    pub(super) fn run(&self, sql: &str) -> Result<(), Error> {
        self.wait(async |client| client.batch_execute(sql).await)
    }

    /// Begins a transaction, whose statements each see what was committed before them.
    pub(super) fn begin(&self) -> Result<(), Error> {
        self.is_open.set(true);
        self.run("BEGIN ISOLATION LEVEL READ COMMITTED")
    }

    /// Keeps what was written. If that fails, it may have been kept all the same.
    pub(super) fn commit(&self) -> Result<(), Error> {
        self.run("COMMIT")?;
        self.is_open.set(false);
        Ok(())
    }

    /// Undoes what was written. Where that fails, the connection's end does it.
    pub(super) fn undo(&self) {
        let is_undone = self.run("ROLLBACK").is_ok();
        self.is_open.set(!is_undone);
    }

    /// Waits for work on the connection.
    pub(super) fn wait<T>(
        &self,
        work: impl AsyncFnOnce(&Object) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Error> {
        let Some(client) = &self.client else { return Err(remote(Failure::TooLong)) };
        let outcome = self.database.wait(self.by, async { work(client).await.map_err(Failure::Refused) });
        if outcome.as_ref().is_err_and(Failure::spoils_connection) {
            self.is_spoilt.set(true);
        }
        outcome.map_err(remote)
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if let Some(client) = self.client.take()
            && (self.is_open.get() || self.is_spoilt.get())
        {
            drop(Object::take(client));
        }
    }
}

/// The first column of the first row, if there is one.
pub(super) fn first<'r, T: FromSql<'r>>(rows: &'r [Row]) -> Result<Option<T>, Error> {
    let value = rows.first().map(|row| row.try_get(0)).transpose();
    value.map_err(|cause| remote(Failure::Refused(cause)))
}

fn borrowed(params: &[Given]) -> Vec<&(dyn ToSql + Sync)> {
    params.iter().map(|param| param as _).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Lane, testing};
    use super::*;

    #[test]
    #[ignore = "needs PostgreSQL, which `cargo test` may not ask for, named by MK_TEST_DATABASE_URL; runs in .ci/run"]
    fn statements_are_carried_out_in_their_order() {
        let database = testing::database().expect("MK_TEST_DATABASE_URL");
        let given: Vec<i64> = (0..2_500).rev().collect();
        let table = "CREATE TABLE rows (place BIGINT GENERATED ALWAYS AS IDENTITY, given BIGINT)";
        database.read(|session| session.run(table)).unwrap();
        let all = given.iter().map(|number| vec![Value::Integer(*number)]).collect();
        let sent = |session: &Session<'_>| session.execute_each("INSERT INTO rows (given) VALUES (?1)", all);
        database.write(Lane::Main, sent).unwrap();
        let read = |session: &Session<'_>| session.query("SELECT given FROM rows ORDER BY place", &[]);
        let found: Vec<i64> = database.read(read).unwrap().iter().map(|row| row.get(0)).collect();
        assert_eq!(found, given);
    }
}
