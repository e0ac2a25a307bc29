//! The names in a database, read for completion at a shell's prompt: quickly, and without changing anything.
//!
//! A database in use is read beside its server. One at rest has no write-ahead log, and is read as a file that does not
//! change, so that SQLite makes none.

use std::path::Path;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, OpenFlags};

use super::MAIN_FILE;
use crate::storage::{Error, NamedKey, Names};

/// As many of the newest keys are looked at, so that a million of them take no longer.
const MAX_KEYS: u32 = 2000;

/// The names of apps, and of the newest keys that are not revoked. Fails if there is no database, or if it is locked
/// for longer than `patience`. Blocking.
pub fn names(dir: &Path, patience: Duration) -> Result<Names, Error> {
    let path = dir.join(MAIN_FILE);
    let is_at_rest = !dir.join(format!("{MAIN_FILE}-wal")).exists();
    let encoded = percent_encode(path.as_os_str().as_encoded_bytes(), NON_ALPHANUMERIC);
    let uri = format!("file:{encoded}?immutable={}", u8::from(is_at_rest));
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri, flags)?;
    connection.busy_timeout(patience)?;
    let mut apps = connection.prepare("SELECT name FROM apps WHERE deleted_at IS NULL ORDER BY name")?;
    let apps = apps.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    // Ids are in the order of creation.
    let mut keys = connection.prepare(
        "SELECT k.id, k.name, k.last4, k.service FROM keys k JOIN apps a ON a.id = k.app_id
         WHERE k.revoked_at IS NULL AND a.deleted_at IS NULL ORDER BY k.id DESC LIMIT ?1",
    )?;
    let keys = keys.query_map([MAX_KEYS], |row| {
        Ok(NamedKey { id: row.get(0)?, name: row.get(1)?, last4: row.get(2)?, service: row.get(3)? })
    })?;
    Ok(Names { apps, keys: keys.collect::<Result<_, _>>()? })
}
