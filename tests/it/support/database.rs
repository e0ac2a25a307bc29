//! The files of a server that is its own storage, as they are found when it has ended or while it lives.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

/// As the next server would find them; looking at the files themselves would already mend them. SQLite also wants to
/// find them by a path of their own.
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

/// Holds that both databases pass SQLite's own checks.
pub fn must_be_whole(data: &Path) {
    for name in ["mk.db", "ledger.db"] {
        // One that is not there would be made, and be whole.
        let database =
            Connection::open_with_flags(data.join(name), OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
        let found: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(found, "ok", "{name}");
        let query = "SELECT count(*) FROM pragma_foreign_key_check";
        let broken: i64 = database.query_row(query, [], |row| row.get(0)).unwrap();
        assert_eq!(broken, 0, "{name}");
    }
}
