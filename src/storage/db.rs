//! A connection to either database, as the queries see it: they are written once, in the SQL that both understand.
//!
//! This restricts the queries: parameters are `?1`, `?2`, …; a parameter that is only compared with null states its
//! type (`CAST(?1 AS TEXT) IS NULL`), and so does a column of nulls; upserts name the columns in conflict (`ON CONFLICT
//! (id)`) and qualify the existing row's columns with the table; sums are cast to `BIGINT`; there is no two-argument
//! `min` or `max`.
//!
//! Values are SQLite's: 64-bit integers, text, bytes. PostgreSQL's columns have the corresponding types.

use rusqlite::OptionalExtension;
use rusqlite::types::{FromSql, ToSql, Type, Value, ValueRef};

use super::Error;
use super::postgres;
use crate::clock::Time;

/// The parameters of a statement.
pub(super) type Params<'p> = &'p [&'p dyn ToSql];

/// Runs a batched statement once with the given parameters.
pub(super) type Bind<'b> = dyn FnMut(Params<'_>) -> Result<(), Error> + 'b;

/// A connection for the duration of a read or a write.
pub(super) enum Db<'a> {
    /// To a SQLite file.
    Sqlite(&'a rusqlite::Connection),
    /// To PostgreSQL, over the network.
    Postgres(&'a postgres::Session<'a>),
}

/// A row of a query's result.
pub(super) enum Row<'a> {
    /// From SQLite.
    Sqlite(&'a rusqlite::Row<'a>),
    /// From PostgreSQL.
    Postgres(&'a tokio_postgres::Row),
}

impl Db<'_> {
    /// The SQLite connection, which it must be.
    #[cfg(test)]
    pub(super) fn file(&self) -> &rusqlite::Connection {
        match self {
            Self::Sqlite(file) => file,
            Self::Postgres(_) => panic!("no file"),
        }
    }

    /// The time by a clock that everybody on this database shares: of a file, this machine's, which says `here`; of
    /// PostgreSQL, its own.
    pub(super) fn now(&self, here: Time) -> Result<Time, Error> {
        let Self::Postgres(_) = self else { return Ok(here) };
        let sql = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";
        Ok(self.query_row(sql, &[], |row| row.get(0))?.map_or(here, Time::from_unix_ms))
    }

    /// The first row of the result, if there is one.
    pub(super) fn query_row<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Error> {
        match self {
            Self::Sqlite(db) => {
                let mut query = db.prepare_cached(sql)?;
                Ok(query.query_row(params, |row| read(&Row::Sqlite(row))).optional()?)
            }
            Self::Postgres(session) => {
                let rows = session.query(sql, params)?;
                Ok(rows.first().map(|row| read(&Row::Postgres(row))).transpose()?)
            }
        }
    }

    /// All rows of the result.
    pub(super) fn query<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Error> {
        match self {
            Self::Sqlite(db) => {
                let mut query = db.prepare_cached(sql)?;
                let rows = query.query_map(params, |row| read(&Row::Sqlite(row)))?;
                Ok(rows.collect::<Result<_, _>>()?)
            }
            Self::Postgres(session) => {
                let rows = session.query(sql, params)?;
                Ok(rows.iter().map(|row| read(&Row::Postgres(row))).collect::<Result<_, _>>()?)
            }
        }
    }

    /// Runs a query for each of `items` and returns the first row of each result, in their order. `bind` supplies the
    /// parameters of an item, once. PostgreSQL gets all queries before the first result is awaited.
    pub(super) fn query_each<I, T>(
        &self,
        sql: &str,
        items: impl IntoIterator<Item = I>,
        mut bind: impl FnMut(I, &mut Bind<'_>) -> Result<(), Error>,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<Option<T>>, Error> {
        match self {
            Self::Sqlite(db) => {
                let mut query = db.prepare_cached(sql)?;
                let mut found = Vec::new();
                for item in items {
                    bind(item, &mut |params| {
                        found.push(query.query_row(params, |row| read(&Row::Sqlite(row))).optional()?);
                        Ok(())
                    })?;
                }
                Ok(found)
            }
            Self::Postgres(session) => {
                let first = |rows: Vec<tokio_postgres::Row>| {
                    Ok(rows.first().map(|row| read(&Row::Postgres(row))).transpose()?)
                };
                session.query_each(sql, collect_params(items, bind)?)?.into_iter().map(first).collect()
            }
        }
    }

    /// Executes a statement and returns the number of rows changed.
    pub(super) fn execute(&self, sql: &str, params: Params<'_>) -> Result<usize, Error> {
        match self {
            Self::Sqlite(db) => Ok(db.prepare_cached(sql)?.execute(params)?),
            Self::Postgres(session) => session.execute(sql, params),
        }
    }

    /// Executes a statement for each of `items`, in their order; `bind` as in [`Db::query_each`].
    pub(super) fn execute_each<I>(
        &self,
        sql: &str,
        items: impl IntoIterator<Item = I>,
        mut bind: impl FnMut(I, &mut Bind<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self {
            Self::Sqlite(db) => {
                let mut statement = db.prepare_cached(sql)?;
                let mut execute = |params: Params<'_>| {
                    statement.execute(params)?;
                    Ok(())
                };
                items.into_iter().try_for_each(|item| bind(item, &mut execute))
            }
            Self::Postgres(session) => session.execute_each(sql, collect_params(items, bind)?),
        }
    }

    /// Updates the row of each of `items` or inserts one, in their order. `update` and `insert` take the same
    /// parameters, and `insert` handles an existing row. Most rows exist already: in SQLite `update` finds one by a
    /// single tree look-up, where `insert` takes three. PostgreSQL gets `insert` alone, as each statement costs a
    /// message.
    pub(super) fn upsert_each<I>(
        &self,
        update: &str,
        insert: &str,
        items: impl IntoIterator<Item = I>,
        mut bind: impl FnMut(I, &mut Bind<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Self::Sqlite(db) = self else { return self.execute_each(insert, items, bind) };
        let (mut update, mut insert) = (db.prepare_cached(update)?, db.prepare_cached(insert)?);
        let mut execute = |params: Params<'_>| {
            if update.execute(params)? == 0 {
                insert.execute(params)?;
            }
            Ok(())
        };
        items.into_iter().try_for_each(|item| bind(item, &mut execute))
    }
}

/// The parameters of every item.
fn collect_params<I>(
    items: impl IntoIterator<Item = I>,
    mut bind: impl FnMut(I, &mut Bind<'_>) -> Result<(), Error>,
) -> Result<Vec<Vec<Value>>, Error> {
    let mut all = Vec::new();
    for item in items {
        bind(item, &mut |params| {
            all.push(postgres::owned_params(params)?);
            Ok(())
        })?;
    }
    Ok(all)
}

impl Row<'_> {
    /// The value of a column; the first is 0.
    pub(super) fn get<T: FromSql>(&self, column: usize) -> rusqlite::Result<T> {
        match self {
            Self::Sqlite(row) => row.get(column),
            Self::Postgres(_) => T::column_result(self.get_ref(column)?).map_err(|cause| {
                rusqlite::Error::FromSqlConversionFailure(column, Type::Null, Box::new(cause))
            }),
        }
    }

    /// The value of a column, borrowed from the row.
    pub(super) fn get_ref(&self, column: usize) -> rusqlite::Result<ValueRef<'_>> {
        match self {
            Self::Sqlite(row) => row.get_ref(column),
            Self::Postgres(row) => postgres::column_value(row, column),
        }
    }
}
