//! Examines a data directory without changing it, for the operator who wants to know what is wrong.
//!
//! Nothing is created and no migration is applied. A server may be running meanwhile: SQLite reads what was committed
//! when the check began.

use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, MAIN_DB, TransactionBehavior};

use super::database::{READ_ONLY, connect};
use super::{LEDGER_FILE, MAIN_FILE, files, migrations, refuse_half_restored, schema};
use crate::storage::{Condition, Error, Examination, Exposed};

/// How long another write is waited for before the database counts as locked.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// The maximum number of findings reported as damage.
const MAX_FINDINGS: usize = 5;

/// SQLite's heading above its findings about a connection's only database.
const HEADING: &str = "*** in database main ***\n";

/// The suffixes of a database's files, which share its mode.
const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// Examines `dir`; `None` if there is no database in it and one could be created. The check of each database takes
/// `limit` at most. Fails if one of two files that belong together is missing, as opening does. Blocking.
pub fn examine(dir: &Path, limit: Duration) -> Result<Option<Examination>, Error> {
    refuse_half_restored(dir)?;
    let is_there = |name: &str| dir.join(name).try_exists().map_err(|cause| files::plain(&cause, ""));
    if !is_there(MAIN_FILE)? && !is_there(LEDGER_FILE)? {
        ensure_creatable(dir)?;
        return Ok(None);
    }
    let mut found = Examination { free_bytes: free_bytes(dir), ..Examination::default() };
    found.exposed.extend(exposed(dir, 0o700));
    for (name, steps) in [(MAIN_FILE, migrations::MAIN), (LEDGER_FILE, migrations::LEDGER)] {
        let path = dir.join(name);
        found.databases.push((name, condition(&path, steps, limit)));
        let beside = SUFFIXES.iter().map(|ending| dir.join(format!("{name}{ending}")));
        found.exposed.extend(beside.filter_map(|path| exposed(&path, 0o600)));
    }
    Ok(Some(found))
}

fn condition(path: &Path, steps: &[&str], limit: Duration) -> Result<Condition, Error> {
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    std::fs::metadata(path).map_err(|cause| files::plain(&cause, ""))?;
    let mut connection = connect(path)?;
    connection.busy_timeout(WRITE_TIMEOUT)?;
    let taken = migrations::applied_count(&connection)?;
    if taken > known {
        return Err(Error::TooNew { found: taken, known });
    }
    let (mut damage, is_complete) = damage(&connection, limit)?;
    damage.extend(schema::difference(&connection, steps)?);
    // On a read-only file SQLite lets a write transaction begin, and fails only at the first change.
    let unwritable = if connection.is_readonly(MAIN_DB)? {
        Some(READ_ONLY.to_owned())
    } else {
        try_write_lock(&mut connection).err().map(|cause| cause.to_string())
    };
    Ok(Condition { schema: (taken, known), damage, is_complete, unwritable })
}

/// The damage found, and whether the check was completed.
pub(super) fn damage(connection: &Connection, limit: Duration) -> Result<(Vec<String>, bool), Error> {
    let interrupt = connection.get_interrupt_handle();
    let (done, is_done) = mpsc::channel::<()>();
    let watch = std::thread::Builder::new().spawn(move || {
        if is_done.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            interrupt.interrupt();
        }
    })?;
    let findings = quick_check(connection);
    drop(done);
    // Its result does not matter; it must only not interrupt what comes next on this connection.
    let _ = watch.join();
    match findings {
        Ok(findings) => {
            let damage = findings.iter().map(|finding| finding.strip_prefix(HEADING).unwrap_or(finding));
            Ok((damage.filter(|finding| *finding != "ok").map(str::to_owned).collect(), true))
        }
        Err(cause) if cause.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            Ok((Vec::new(), false))
        }
        Err(cause) => Err(cause.into()),
    }
}

fn quick_check(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut check = connection.prepare(&format!("PRAGMA quick_check({MAX_FINDINGS})"))?;
    check.query_map([], |row| row.get(0))?.collect()
}

/// Takes the write lock and releases it.
fn try_write_lock(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)?.rollback()
}

/// Whether files could be created in `dir`, or `dir` itself in its nearest existing ancestor.
#[cfg(unix)]
fn ensure_creatable(dir: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};
    let dir = std::path::absolute(dir)?;
    let Some(ground) = dir.ancestors().find(|place| place.exists()) else { return Ok(()) };
    let place = format!("{}: ", ground.display());
    if !ground.is_dir() {
        return Err(files::plain(&io::ErrorKind::NotADirectory.into(), &place));
    }
    access(ground, Access::WRITE_OK | Access::EXEC_OK).map_err(|cause| files::plain(&cause.into(), &place))
}

/// Other systems have access control lists; the first start shows.
#[cfg(not(unix))]
fn ensure_creatable(_dir: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn exposed(path: &Path, proper: u32) -> Option<Exposed> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o7777;
    (mode & 0o077 != 0).then(|| Exposed { path: path.to_owned(), mode, proper })
}

/// Other systems have access control lists, which are right by default in the user's own directory.
#[cfg(not(unix))]
fn exposed(_path: &Path, _proper: u32) -> Option<Exposed> {
    None
}

#[cfg(unix)]
fn free_bytes(dir: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(dir).map_err(io::Error::from).ok()?;
    found.f_bavail.checked_mul(found.f_frsize)
}

#[cfg(not(unix))]
fn free_bytes(_dir: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Time;
    use crate::storage::Store;

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn examining_an_empty_place_creates_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert!(examine(&dir.path().join("none"), LIMIT).unwrap().is_none());
        assert!(examine(dir.path(), LIMIT).unwrap().is_none());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn usage_without_keys_is_reported_as_opening_reports_it() {
        let dir = tempfile::tempdir().unwrap();
        drop(Store::open(dir.path(), Time::from_unix_ms(0)).unwrap());
        std::fs::remove_file(dir.path().join(MAIN_FILE)).unwrap();
        for beside in [None, Some("")] {
            if let Some(text) = beside {
                std::fs::write(dir.path().join(MAIN_FILE), text).unwrap();
            }
            let told = examine(dir.path(), LIMIT).unwrap_err();
            let started = Store::open(dir.path(), Time::from_unix_ms(0)).err().unwrap();
            assert!(told.is_corrupt() && told.to_string().contains("interrupted restore"), "{told}");
            assert_eq!(told.to_string(), started.to_string());
        }
    }

    #[test]
    fn a_healthy_store_is_found_healthy_while_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let _in_use = Store::open(&data, Time::from_unix_ms(0)).unwrap();
        let found = examine(&data, LIMIT).unwrap().unwrap();
        assert_eq!(found.exposed, []);
        for (name, condition) in found.databases {
            let condition = condition.unwrap();
            assert_eq!(condition.schema.0, condition.schema.1, "{name}");
            assert_eq!((condition.damage, condition.is_complete, condition.unwritable), (vec![], true, None));
        }
    }

    #[test]
    fn damage_is_reported_without_a_heading() {
        let dir = tempfile::tempdir().unwrap();
        drop(Store::open(dir.path(), Time::from_unix_ms(0)).unwrap());
        let file = dir.path().join(MAIN_FILE);
        let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'keys_of_console'";
        let page: i64 = Connection::open(&file).unwrap().query_row(root, [], |row| row.get(0)).unwrap();
        let page = usize::try_from(page).unwrap();
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[(page - 1) * 4096..page * 4096].fill(0);
        std::fs::write(&file, bytes).unwrap();
        let found = examine(dir.path(), LIMIT).unwrap().unwrap();
        let damage = &found.databases[0].1.as_ref().unwrap().damage;
        assert!(damage[0].starts_with("Tree "), "{damage:?}");
    }

    #[test]
    fn what_mk_did_not_make_is_reported_and_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        drop(Store::open(dir.path(), Time::from_unix_ms(0)).unwrap());
        let trigger = "CREATE TRIGGER kept BEFORE UPDATE ON keys BEGIN SELECT RAISE(IGNORE); END";
        Connection::open(dir.path().join(MAIN_FILE)).unwrap().execute_batch(trigger).unwrap();
        let found = examine(dir.path(), LIMIT).unwrap().unwrap();
        let damage = &found.databases[0].1.as_ref().unwrap().damage;
        assert!(damage[0].contains("its trigger `kept` was not created by mk"), "{damage:?}");
        let refused = Store::open(dir.path(), Time::from_unix_ms(0)).err().unwrap();
        assert!(refused.is_corrupt() && refused.to_string().contains("trigger `kept`"), "{refused}");
    }

    #[test]
    fn a_file_that_is_not_a_database_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(MAIN_FILE), "x".repeat(4096)).unwrap();
        let found = examine(dir.path(), LIMIT).unwrap().unwrap();
        assert!(found.databases.iter().all(|(_, condition)| condition.is_err()), "{found:?}");
    }
}
