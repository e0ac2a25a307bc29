//! Carries what files hold over into a PostgreSQL database, for whoever goes from one machine to several.
//!
//! Tables and columns have the same names in both. Numbers that are given to rows by the database itself are
//! given anew, in the same order.

use rusqlite::types::Value;
use tokio_postgres::types::Type;

use super::postgres::{self, Column, Session};
use super::{Error, sqlite};

/// Tables of `mk.db`, each behind those that it refers to.
const MAIN: [&str; 4] = ["apps", "keys", "sessions", "audit"];
/// Tables of `ledger.db`.
const LEDGER: [&str; 5] = ["attempts", "day_counts", "key_last_used", "spend", "usage_days"];

/// The table whose `id` the database gives.
const NUMBERED: &str = "attempts";

/// Tables, and how many rows of each were carried over.
pub(super) type Carried = Vec<(&'static str, u64)>;

/// Carries all over, in one transaction; `None` if the database is in use, and holds what it held. `may_go_on` is asked
/// again and again: an error of it ends the work, and nothing was done. Blocking.
pub(super) fn carry(
    files: &sqlite::Databases,
    database: &postgres::Database,
    may_go_on: &dyn Fn() -> Result<(), Error>,
) -> Result<Option<Carried>, Error> {
    database.fill(|session| {
        let mut carried = Carried::new();
        for (file, tables) in [(&files.main, &MAIN[..]), (&files.ledger, &LEDGER)] {
            for table in tables {
                let rows = file.read(|connection| copy(connection, session, table, may_go_on))?;
                carried.push((*table, rows));
            }
        }
        Ok(carried)
    })
}

fn copy(
    connection: &rusqlite::Connection,
    session: &Session<'_>,
    table: &str,
    may_go_on: &dyn Fn() -> Result<(), Error>,
) -> Result<u64, Error> {
    let columns = columns(connection, table)?;
    let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
    let order = if table == NUMBERED { " ORDER BY id" } else { "" };
    let mut query = connection.prepare(&format!("SELECT {} FROM {table}{order}", names.join(", ")))?;
    let mut rows = query.query([])?;
    session.fill(table, &columns, || {
        may_go_on()?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let values = (0..columns.len()).map(|column| row.get::<_, Value>(column));
        Ok(Some(values.collect::<Result<_, _>>()?))
    })
}

/// The columns of a table, without the number of its rows.
fn columns(connection: &rusqlite::Connection, table: &str) -> Result<Vec<Column>, Error> {
    let mut query = connection.prepare("SELECT name, type FROM pragma_table_info(?1)")?;
    let all = query.query_map([table], |row| {
        let of = match row.get_ref(1)?.as_str()? {
            "INTEGER" => Type::INT8,
            "BLOB" => Type::BYTEA,
            _ => Type::TEXT,
        };
        Ok(Column { name: row.get(0)?, of })
    })?;
    let is_told = |column: &Column| !(table == NUMBERED && column.name == "id");
    Ok(all.collect::<Result<Vec<_>, _>>()?.into_iter().filter(is_told).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_table_is_left_behind() {
        let files = sqlite::Databases::in_memory().unwrap();
        for (file, mut carried) in [(&files.main, MAIN.to_vec()), (&files.ledger, LEDGER.to_vec())] {
            let there = file.read(|connection| {
                let mut query = connection.prepare(
                    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY 1",
                )?;
                Ok(query.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?)
            });
            carried.sort_unstable();
            assert_eq!(there.unwrap(), carried);
        }
    }
}
