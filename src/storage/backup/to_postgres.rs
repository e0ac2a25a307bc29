//! Copies the contents of the SQLite files into a PostgreSQL database, for moving from one machine to several.
//!
//! Tables and columns have the same names in both. Row ids that the database assigns are assigned anew, in the same
//! order. Calls under way are those of servers that know nothing of the new database: there they are booked as calls of
//! servers that died. Those that are booked already name a row id of the old one, which nobody asks for.

use rusqlite::types::Value;
use tokio_postgres::types::Type;

use crate::storage::postgres::{self, Column, Session};
use crate::storage::{Error, sqlite};

/// Tables of `mk.db`, each after those that it references.
const MAIN: [&str; 5] = ["apps", "keys", "sessions", "audit", "signing_keys"];
/// Tables of `ledger.db`.
const LEDGER: [&str; 8] = [
    "attempts",
    "calls_under_way",
    "day_counts",
    "key_last_used",
    "spend",
    "usage_days",
    "usage_labels",
    "verdicts",
];

/// The table whose `id` the database assigns.
const WITH_ASSIGNED_ID: &str = "attempts";

/// Tables, with the number of rows copied from each.
pub(super) type CopiedTables = Vec<(&'static str, u64)>;

/// Copies everything in one transaction; `None` if the database is in use, which is then left as it was. `may_go_on` is
/// called again and again: an error of it aborts the copy, and nothing was changed. Blocking.
pub(super) fn copy_to_postgres(
    files: &sqlite::Databases,
    database: &postgres::Database,
    may_go_on: &dyn Fn() -> Result<(), Error>,
) -> Result<Option<CopiedTables>, Error> {
    database.load_if_empty(|session| {
        let mut copied = CopiedTables::new();
        for (file, tables) in [(&files.main, &MAIN[..]), (&files.ledger, &LEDGER)] {
            for table in tables {
                let rows = file.read(|connection| copy_table(connection, session, table, may_go_on))?;
                copied.push((*table, rows));
            }
        }
        Ok(copied)
    })
}

fn copy_table(
    connection: &rusqlite::Connection,
    session: &Session<'_>,
    table: &str,
    may_go_on: &dyn Fn() -> Result<(), Error>,
) -> Result<u64, Error> {
    let columns = columns(connection, table)?;
    let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
    let order = if table == WITH_ASSIGNED_ID { " ORDER BY id" } else { "" };
    let mut query = connection.prepare(&format!("SELECT {} FROM {table}{order}", names.join(", ")))?;
    let mut rows = query.query([])?;
    session.copy_in(table, &columns, || {
        may_go_on()?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let values = (0..columns.len()).map(|column| row.get::<_, Value>(column));
        Ok(Some(values.collect::<Result<_, _>>()?))
    })
}

/// The columns of a table, without an assigned row id.
fn columns(connection: &rusqlite::Connection, table: &str) -> Result<Vec<Column>, Error> {
    let mut query = connection.prepare("SELECT name, type FROM pragma_table_info(?1)")?;
    let all = query.query_map([table], |row| {
        let ty = match row.get_ref(1)?.as_str()? {
            "INTEGER" => Type::INT8,
            "BLOB" => Type::BYTEA,
            _ => Type::TEXT,
        };
        Ok(Column { name: row.get(0)?, ty })
    })?;
    let is_copied = |column: &Column| !(table == WITH_ASSIGNED_ID && column.name == "id");
    Ok(all.collect::<Result<Vec<_>, _>>()?.into_iter().filter(is_copied).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_table_is_left_out() {
        let files = sqlite::Databases::in_memory().unwrap();
        for (file, mut copied) in [(&files.main, MAIN.to_vec()), (&files.ledger, LEDGER.to_vec())] {
            let there = file.read(|connection| {
                let mut query = connection.prepare(
                    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY 1",
                )?;
                Ok(query.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?)
            });
            copied.sort_unstable();
            assert_eq!(there.unwrap(), copied);
        }
    }
}
