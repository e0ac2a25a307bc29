//! What a database's schema has to be: what its migrations make, and nothing else.
//!
//! A file may come from elsewhere, such as a backup from an unknown hand. A trigger in it could undo each revocation, a
//! view could show other keys than there are. So the schema is compared with that of an empty database with the same
//! migrations, which takes a millisecond to make, before anything is read from a file that is opened or restored.

use std::collections::BTreeMap;
use std::io;

use rusqlite::Connection;

use super::migrations::applied_count;
use crate::storage::Error;
use crate::unsafe_chars::name_in_message;

/// Kind and name of each object, with its table and its definition.
type Objects = BTreeMap<(String, String), (String, String)>;

/// Fails if the schema is not what these migrations make, as far as they are applied.
pub(super) fn check(connection: &Connection, migrations: &[&str]) -> Result<(), Error> {
    match difference(connection, migrations)? {
        None => Ok(()),
        Some(what) => Err(io::Error::new(io::ErrorKind::InvalidData, what).into()),
    }
}

/// The first difference from what these migrations make, as far as they are applied. That there are more than these is
/// no difference.
pub(super) fn difference(connection: &Connection, migrations: &[&str]) -> Result<Option<String>, Error> {
    // Both are read at the same moment: another process may apply a migration.
    let moment = connection.unchecked_transaction()?;
    let applied = applied_count(&moment)?;
    let found = objects(&moment)?;
    drop(moment);
    let Ok(applied) = usize::try_from(applied) else {
        return Ok(Some(format!("its schema version, {applied}, is invalid")));
    };
    let Some(steps) = migrations.get(..applied) else { return Ok(None) };
    let reference = Connection::open_in_memory()?;
    steps.iter().try_for_each(|step| reference.execute_batch(step))?;
    let expected = objects(&reference)?;
    let foreign = found.keys().find(|key| !expected.contains_key(*key));
    let missing = || expected.keys().find(|key| !found.contains_key(*key));
    let changed =
        || expected.iter().find(|(key, object)| found.get(*key) != Some(object)).map(|(key, _)| key);
    let named =
        |(kind, name): &(String, String)| format!("{} `{}`", name_in_message(kind), name_in_message(name));
    Ok(if let Some(key) = foreign {
        Some(format!(
            "its {} was not created by mk; remove it, or restore a backup that you trust",
            named(key)
        ))
    } else if let Some(key) = missing() {
        Some(format!("its {} is missing; restore a backup", named(key)))
    } else {
        changed().map(|key| format!("its {} was changed; restore a backup that you trust", named(key)))
    })
}

/// All objects but the statistics that an operator may have had SQLite collect.
fn objects(connection: &Connection) -> rusqlite::Result<Objects> {
    let mut query = connection.prepare(
        "SELECT type, name, tbl_name, ifnull(sql, '') FROM sqlite_schema
         WHERE NOT (type = 'table' AND name IN ('sqlite_stat1', 'sqlite_stat4'))",
    )?;
    let object = |row: &rusqlite::Row<'_>| {
        let sql: String = row.get(3)?;
        Ok(((row.get(0)?, row.get(1)?), (row.get(2)?, plain(&sql))))
    };
    query.query_map([], object)?.collect()
}

/// A definition without comments, and with single spaces outside of quotes: earlier versions of a migration may have
/// been written differently.
fn plain(sql: &str) -> String {
    let mut plain = String::with_capacity(sql.len());
    let mut quote = None;
    let mut rest = sql.chars().peekable();
    while let Some(char) = rest.next() {
        match quote {
            Some(end) => {
                plain.push(char);
                if char == end {
                    quote = None;
                }
            }
            None if char == '-' && rest.peek() == Some(&'-') => {
                rest.by_ref().find(|char| *char == '\n');
                push_space(&mut plain);
            }
            None if char.is_ascii_whitespace() => push_space(&mut plain),
            None => {
                plain.push(char);
                quote = matches!(char, '\'' | '"' | '`').then_some(char);
            }
        }
    }
    plain
}

fn push_space(text: &mut String) {
    if !text.ends_with(' ') {
        text.push(' ');
    }
}

#[cfg(test)]
mod tests {
    use super::super::migrations::{LEDGER, MAIN};
    use super::*;

    fn database(migrations: &[&str]) -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        super::super::migrate(&mut connection, migrations).unwrap();
        connection
    }

    #[test]
    fn every_version_of_a_schema_is_as_expected() {
        for steps in [MAIN, LEDGER] {
            for applied in 0..=steps.len() {
                let connection = database(&steps[..applied]);
                assert_eq!(difference(&connection, steps).unwrap(), None);
            }
            // A later version is refused elsewhere, by its number.
            assert_eq!(difference(&database(steps), &steps[..1]).unwrap(), None);
        }
        let connection = database(MAIN);
        connection.execute_batch("ANALYZE").unwrap();
        assert_eq!(difference(&connection, MAIN).unwrap(), None);
    }

    #[test]
    fn any_other_object_is_found() {
        for (change, expected) in [
            (
                "CREATE TRIGGER t BEFORE UPDATE OF revoked_at ON keys BEGIN SELECT RAISE(IGNORE); END",
                "its trigger `t` was not created by mk",
            ),
            ("CREATE VIEW v AS SELECT * FROM keys", "its view `v` was not created by mk"),
            ("CREATE TABLE \"x\u{1b}[2J\" (a)", "its table `x\u{fffd}[2J` was not created by mk"),
            ("CREATE UNIQUE INDEX i ON keys (name)", "its index `i` was not created by mk"),
            ("DROP INDEX keys_by_app", "its index `keys_by_app` is missing"),
            (
                "DROP INDEX keys_of_console; CREATE INDEX keys_of_console ON keys (expires_at)
                     WHERE service = 'con -- \n sole' AND revoked_at IS NULL",
                "its index `keys_of_console` was changed",
            ),
            ("ALTER TABLE keys ADD COLUMN more TEXT", "its table `keys` was changed"),
            ("PRAGMA user_version = -1", "its schema version, -1, is invalid"),
            ("PRAGMA user_version = 0", "its index `apps_by_name` was not created by mk"),
        ] {
            let connection = database(MAIN);
            connection.execute_batch(change).unwrap();
            let found = difference(&connection, MAIN).unwrap().unwrap_or_default();
            assert!(found.starts_with(expected), "{change}: {found}");
            assert!(check(&connection, MAIN).unwrap_err().is_corrupt());
        }
    }

    #[test]
    fn comments_and_spaces_make_no_difference_and_quotes_do() {
        assert_eq!(plain("CREATE  TABLE a ( -- why\n\n  b TEXT)"), "CREATE TABLE a ( b TEXT)");
        assert_eq!(plain("'a  -- b'  c"), "'a  -- b' c");
    }
}
