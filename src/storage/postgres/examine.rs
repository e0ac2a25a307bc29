//! Examines a database without changing it: for a server that starts, and for the operator who wants to know what is
//! wrong.

use std::time::Duration;

use super::session::first;
use super::{Database, PostgresAddress, Session, migrations};
use crate::storage::{Condition, Error};

/// The tables. A server reads and writes all of them.
const TABLES: [&str; 16] = [
    "schema_steps",
    "writes",
    "apps",
    "keys",
    "audit",
    "sessions",
    "signing_keys",
    "attempts",
    "batches",
    "day_counts",
    "key_last_used",
    "spend",
    "usage_days",
    "usage_labels",
    "verdicts",
    "calls_under_way",
];

/// Examines a database with this time limit. Corruption within its tables is for its own server to detect. Blocking.
pub fn examine(address: &PostgresAddress, limit: Duration) -> Result<Condition, Error> {
    let database = Database::connect(address)?;
    let session = database.session(limit)?;
    let (applied, known) = (migrations::applied_count(&session)?, migrations::known_count());
    if applied > known {
        return Err(Error::TooNew { found: applied, known });
    }
    let tables = Tables::look(&session)?;
    let damage = if applied == known && !tables.missing.is_empty() {
        vec![format!("{} is missing", tables.missing.join(", "))]
    } else {
        Vec::new()
    };
    let unwritable =
        if applied == 0 { why_not_creatable(&session, &tables)? } else { missing_privileges(&tables) };
    Ok(Condition { schema: (applied, known), damage, is_complete: true, unwritable })
}

/// Whether mk has created no tables there yet, checked with this time limit. Blocking.
pub fn is_empty(address: &PostgresAddress, limit: Duration) -> Result<bool, Error> {
    Ok(migrations::applied_count(&Database::connect(address)?.session(limit)?)? == 0)
}

/// Why the existing tables cannot be written to, if so.
pub(super) fn why_unwritable(session: &Session<'_>) -> Result<Option<String>, Error> {
    Ok(missing_privileges(&Tables::look(session)?))
}

fn missing_privileges(tables: &Tables) -> Option<String> {
    let which = match &tables.forbidden[..] {
        [] => return None,
        all if all.len() == TABLES.len() => "its tables".to_owned(),
        some => some.join(", "),
    };
    Some(format!("this user may not read and write {which}"))
}

/// Why the tables cannot be created, if so.
fn why_not_creatable(session: &Session<'_>, tables: &Tables) -> Result<Option<String>, Error> {
    let there: Vec<_> = TABLES.into_iter().filter(|name| !tables.missing.contains(name)).collect();
    if !there.is_empty() {
        return Ok(Some(format!("it has tables that mk did not create: {}", there.join(", "))));
    }
    let rows = session.query("SELECT has_schema_privilege(current_schema(), 'CREATE')", &[])?;
    // Null without an existing schema, in which nothing can be created either.
    if first::<Option<bool>>(&rows)?.flatten() != Some(true) {
        return Ok(Some("this user is not allowed to create tables in it".to_owned()));
    }
    Ok(None)
}

/// The state of the tables.
struct Tables {
    missing: Vec<&'static str>,
    /// Tables on which this user lacks a privilege that a server needs.
    forbidden: Vec<&'static str>,
}

impl Tables {
    fn look(session: &Session<'_>) -> Result<Self, Error> {
        let mut tables = Self { missing: Vec::new(), forbidden: Vec::new() };
        for name in TABLES {
            let sql = "SELECT has_table_privilege(to_regclass(?1), 'SELECT')
                AND has_table_privilege(to_regclass(?1), 'INSERT')
                AND has_table_privilege(to_regclass(?1), 'UPDATE')
                AND has_table_privilege(to_regclass(?1), 'DELETE')";
            let rows = session.query(sql, &[&name])?;
            match first::<Option<bool>>(&rows)?.flatten() {
                None => tables.missing.push(name),
                Some(false) => tables.forbidden.push(name),
                Some(true) => {}
            }
        }
        Ok(tables)
    }
}
