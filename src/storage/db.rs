//! A connection of either kind of database, as the queries see it: they are written once, in what both understand.
//!
//! What that takes of a query: parameters are `?1`, `?2`, …; one that is only asked whether it is null says its type
//! (`CAST(?1 AS TEXT) IS NULL`), and so does a column of nulls; where something is there already, the columns that tell
//! so are named (`ON CONFLICT (id)`), and columns of the row that is there by their table; sums are cast to `BIGINT`;
//! there is no `min` and `max` of two values.
//!
//! Values are SQLite's: integers of 64 bits, texts, bytes. PostgreSQL's columns are of the like.

use rusqlite::OptionalExtension;
use rusqlite::types::{FromSql, ToSql, Type, Value, ValueRef};

use super::Error;
use super::postgres;

/// What is bound to a statement.
pub(super) type Params<'p> = &'p [&'p dyn ToSql];

/// Takes the parameters of one statement of many.
pub(super) type Bind<'b> = dyn FnMut(Params<'_>) -> Result<(), Error> + 'b;

/// A connection within a read or a write.
pub(super) enum Db<'a> {
    /// To a file.
    Sqlite(&'a rusqlite::Connection),
    /// Over the network.
    Postgres(&'a postgres::Session<'a>),
}

/// A row of an answer.
pub(super) enum Row<'a> {
    /// Of a file's.
    Sqlite(&'a rusqlite::Row<'a>),
    /// Of one that came over the network.
    Postgres(&'a tokio_postgres::Row),
}

impl Db<'_> {
    /// The connection to the file that it must be.
    #[cfg(test)]
    pub(super) fn file(&self) -> &rusqlite::Connection {
        match self {
            Self::Sqlite(file) => file,
            Self::Postgres(_) => panic!("no file"),
        }
    }

    /// The first row of the answer, if there is one.
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

    /// All rows of the answer.
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

    /// Of each of `items` the first row of its answer, in their order. `bind` gives the parameters of each, once. Over the
    /// network all are asked before the first answer is waited for.
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
                session.query_each(sql, collected(items, bind)?)?.into_iter().map(first).collect()
            }
        }
    }

    /// Carries out a statement; how many rows it has changed.
    pub(super) fn execute(&self, sql: &str, params: Params<'_>) -> Result<usize, Error> {
        match self {
            Self::Sqlite(db) => Ok(db.prepare_cached(sql)?.execute(params)?),
            Self::Postgres(session) => session.execute(sql, params),
        }
    }

    /// Carries out a statement for each of `items`, in their order, as [`Db::query_each`] asks.
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
            Self::Postgres(session) => session.execute_each(sql, collected(items, bind)?),
        }
    }

    /// Changes the row of each of `items`, or adds one, in their order: `update` and `insert` take the same parameters, and
    /// `insert` minds a row that is there. Most rows are: of a file `update` finds one by a single look into a tree, where
    /// `insert` takes three. Over the network each statement costs a message, so there is but one.
    pub(super) fn put_each<I>(
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

/// The parameters of each item.
fn collected<I>(
    items: impl IntoIterator<Item = I>,
    mut bind: impl FnMut(I, &mut Bind<'_>) -> Result<(), Error>,
) -> Result<Vec<Vec<Value>>, Error> {
    let mut all = Vec::new();
    for item in items {
        bind(item, &mut |params| {
            all.push(postgres::owned(params)?);
            Ok(())
        })?;
    }
    Ok(all)
}

impl Row<'_> {
    /// The value of a column, from 0 on.
    pub(super) fn get<T: FromSql>(&self, column: usize) -> rusqlite::Result<T> {
        match self {
            Self::Sqlite(row) => row.get(column),
            Self::Postgres(_) => T::column_result(self.get_ref(column)?).map_err(|cause| {
                rusqlite::Error::FromSqlConversionFailure(column, Type::Null, Box::new(cause))
            }),
        }
    }

    /// The same, where it lies.
    pub(super) fn get_ref(&self, column: usize) -> rusqlite::Result<ValueRef<'_>> {
        match self {
            Self::Sqlite(row) => row.get_ref(column),
            Self::Postgres(row) => postgres::value(row, column),
        }
    }
}
