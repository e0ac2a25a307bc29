//! The SQLite files of a server, after its end or while it runs.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

/// Copies the files as the next process would find them: opening the originals would already repair them, and SQLite
/// needs a path of its own for each copy.
pub fn copy(data: &Path) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    for name in ["mk.db", "mk.db-wal", "ledger.db", "ledger.db-wal"] {
        let from = data.join(name);
        if from.exists() {
            std::fs::copy(from, to.path().join(name)).unwrap();
        }
    }
    to
}

/// Asserts that both databases pass SQLite's integrity checks.
pub fn assert_intact(data: &Path) {
    for name in ["mk.db", "ledger.db"] {
        // Without these flags, a missing database would be created and pass.
        let database =
            Connection::open_with_flags(data.join(name), OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
        let found: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(found, "ok", "{name}");
        let query = "SELECT count(*) FROM pragma_foreign_key_check";
        let broken: i64 = database.query_row(query, [], |row| row.get(0)).unwrap();
        assert_eq!(broken, 0, "{name}");
    }
}
