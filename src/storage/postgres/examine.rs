//! Looking at a database without changing it: for a server that starts, and for the operator who asks what is wrong.

use std::time::Duration;

use super::session::first;
use super::{Database, PostgresAddress, Session, migrations};
use crate::storage::{Condition, Error};

/// The tables, all of which a server reads and writes.
const TABLES: [&str; 12] = [
    "schema_steps",
    "writes",
    "apps",
    "keys",
    "audit",
    "sessions",
    "attempts",
    "batches",
    "day_counts",
    "key_last_used",
    "spend",
    "usage_days",
];

/// Looks at a database, for so long at most. Of damage within its tables only its own server knows. Blocking.
pub fn examine(address: &PostgresAddress, limit: Duration) -> Result<Condition, Error> {
    let database = Database::connect(address)?;
    let session = database.session(limit)?;
    let (taken, known) = (migrations::taken(&session)?, migrations::known());
    if taken > known {
        return Err(Error::TooNew { found: taken, known });
    }
    let tables = Tables::look(&session)?;
    let damage = if taken == known && !tables.missing.is_empty() {
        vec![format!("{} is missing", tables.missing.join(", "))]
    } else {
        Vec::new()
    };
    let unwritable = if taken == 0 { unmakeable(&session, &tables)? } else { unwritable(&tables) };
    Ok(Condition { schema: (taken, known), damage, is_complete: true, unwritable })
}

/// Whether mk has made no tables there yet; asks for so long at most. Blocking.
pub fn is_empty(address: &PostgresAddress, limit: Duration) -> Result<bool, Error> {
    Ok(migrations::taken(&Database::connect(address)?.session(limit)?)? == 0)
}

/// Why nothing can be written to the tables that there are, if so.
pub(super) fn why_unwritable(session: &Session<'_>) -> Result<Option<String>, Error> {
    Ok(unwritable(&Tables::look(session)?))
}

fn unwritable(tables: &Tables) -> Option<String> {
    let which = match &tables.forbidden[..] {
        [] => return None,
        all if all.len() == TABLES.len() => "its tables".to_owned(),
        some => some.join(", "),
    };
    Some(format!("this user may not read and write {which}"))
}

/// Why the tables cannot be made, if so.
fn unmakeable(session: &Session<'_>, tables: &Tables) -> Result<Option<String>, Error> {
    let there: Vec<_> = TABLES.into_iter().filter(|name| !tables.missing.contains(name)).collect();
    if !there.is_empty() {
        return Ok(Some(format!("it has tables that mk did not create: {}", there.join(", "))));
    }
    let rows = session.query("SELECT has_schema_privilege(current_schema(), 'CREATE')", &[])?;
    // Without a schema that is there, nobody may make anything in it.
    if first::<Option<bool>>(&rows)?.flatten() != Some(true) {
        return Ok(Some("this user is not allowed to create tables in it".to_owned()));
    }
    Ok(None)
}

/// What is found of the tables.
struct Tables {
    missing: Vec<&'static str>,
    /// Those of which not everything is allowed that a server does.
    forbidden: Vec<&'static str>,
}

impl Tables {
    fn look(session: &Session<'_>) -> Result<Self, Error> {
        let mut tables = Self { missing: Vec::new(), forbidden: Vec::new() };
        for name in TABLES {
            let asked = "SELECT has_table_privilege(to_regclass(?1), 'SELECT')
                AND has_table_privilege(to_regclass(?1), 'INSERT')
                AND has_table_privilege(to_regclass(?1), 'UPDATE')
                AND has_table_privilege(to_regclass(?1), 'DELETE')";
            let rows = session.query(asked, &[&name])?;
            match first::<Option<bool>>(&rows)?.flatten() {
                None => tables.missing.push(name),
                Some(false) => tables.forbidden.push(name),
                Some(true) => {}
            }
        }
        Ok(tables)
    }
}
