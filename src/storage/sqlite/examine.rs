//! Looking at a data directory without changing it: for the operator who asks what is wrong.
//!
//! Nothing is made and no step of the tables is taken. A server may be at work meanwhile: SQLite reads what was
//! committed when the look began.

use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, MAIN_DB, TransactionBehavior};

use super::database::{READ_ONLY, connect};
use super::{LEDGER_FILE, MAIN_FILE, files, migrations, must_not_be_half};
use crate::storage::{Condition, Error, Examination, Exposed};

/// How long somebody else's write is waited for before the database counts as locked.
const WRITE_PATIENCE: Duration = Duration::from_secs(2);

/// Damage is told in so many sentences at most.
const MOST_DAMAGE: usize = 5;

/// SQLite's heading above what it finds of the one database that a connection has.
const HEADING: &str = "*** in database main ***\n";

/// Beside a database, with its mode.
const COMPANIONS: [&str; 3] = ["", "-wal", "-shm"];

/// Looks at `dir`; `None` if there is no database in it, and one could be made. Each database is looked at for `limit`
/// at most. Fails where there is only a half of what belongs together, as a start does. Blocking.
pub fn examine(dir: &Path, limit: Duration) -> Result<Option<Examination>, Error> {
    must_not_be_half(dir)?;
    let is_there = |name: &str| dir.join(name).try_exists().map_err(|cause| files::plain(&cause, ""));
    if !is_there(MAIN_FILE)? && !is_there(LEDGER_FILE)? {
        could_make(dir)?;
        return Ok(None);
    }
    let mut found = Examination { free_bytes: free_bytes(dir), ..Examination::default() };
    found.exposed.extend(exposed(dir, 0o700));
    for (name, steps) in [(MAIN_FILE, migrations::MAIN), (LEDGER_FILE, migrations::LEDGER)] {
        let path = dir.join(name);
        let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
        found.databases.push((name, condition(&path, known, limit)));
        let beside = COMPANIONS.iter().map(|ending| dir.join(format!("{name}{ending}")));
        found.exposed.extend(beside.filter_map(|path| exposed(&path, 0o600)));
    }
    Ok(Some(found))
}

fn condition(path: &Path, known: i64, limit: Duration) -> Result<Condition, Error> {
    std::fs::metadata(path).map_err(|cause| files::plain(&cause, ""))?;
    let mut connection = connect(path)?;
    connection.busy_timeout(WRITE_PATIENCE)?;
    let taken = migrations::steps_taken(&connection)?;
    if taken > known {
        return Err(Error::TooNew { found: taken, known });
    }
    let (damage, is_complete) = damage(&connection, limit)?;
    // SQLite begins a write of a file that it could only open for reading, and fails when there is something to write.
    let unwritable = if connection.is_readonly(MAIN_DB)? {
        Some(READ_ONLY.to_owned())
    } else {
        could_write(&mut connection).err().map(|cause| cause.to_string())
    };
    Ok(Condition { schema: (taken, known), damage, is_complete, unwritable })
}

/// What is damaged, and whether all of it was looked at.
pub(super) fn damage(connection: &Connection, limit: Duration) -> Result<(Vec<String>, bool), Error> {
    let interrupt = connection.get_interrupt_handle();
    let (done, is_done) = mpsc::channel::<()>();
    let watch = std::thread::Builder::new().spawn(move || {
        if is_done.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            interrupt.interrupt();
        }
    })?;
    let told = quick_check(connection);
    drop(done);
    // It has nothing to answer; it only must not interrupt what comes next on this connection.
    let _ = watch.join();
    match told {
        Ok(told) => {
            let damage = told.iter().map(|told| told.strip_prefix(HEADING).unwrap_or(told));
            Ok((damage.filter(|told| *told != "ok").map(str::to_owned).collect(), true))
        }
        Err(cause) if cause.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            Ok((Vec::new(), false))
        }
        Err(cause) => Err(cause.into()),
    }
}

fn quick_check(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut check = connection.prepare(&format!("PRAGMA quick_check({MOST_DAMAGE})"))?;
    check.query_map([], |row| row.get(0))?.collect()
}

/// Takes the lock that writing takes, and gives it back.
fn could_write(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)?.rollback()
}

/// Whether files could be made in `dir`, or `dir` itself in what is there of the way to it.
#[cfg(unix)]
fn could_make(dir: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};
    let dir = std::path::absolute(dir)?;
    let Some(ground) = dir.ancestors().find(|place| place.exists()) else { return Ok(()) };
    let place = format!("{}: ", ground.display());
    if !ground.is_dir() {
        return Err(files::plain(&io::ErrorKind::NotADirectory.into(), &place));
    }
    access(ground, Access::WRITE_OK | Access::EXEC_OK).map_err(|cause| files::plain(&cause.into(), &place))
}

/// Access is by lists elsewhere; the first start tells.
#[cfg(not(unix))]
fn could_make(_dir: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn exposed(path: &Path, proper: u32) -> Option<Exposed> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o7777;
    (mode & 0o077 != 0).then(|| Exposed { path: path.to_owned(), mode, proper })
}

/// Access is by lists elsewhere, which the user's own directory gets right by default.
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
    fn nothing_is_made_where_nothing_is() {
        let dir = tempfile::tempdir().unwrap();
        assert!(examine(&dir.path().join("none"), LIMIT).unwrap().is_none());
        assert!(examine(dir.path(), LIMIT).unwrap().is_none());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn usage_without_keys_is_told_as_a_start_tells_it() {
        let dir = tempfile::tempdir().unwrap();
        drop(Store::open(dir.path(), Time::from_unix_ms(0)).unwrap());
        std::fs::remove_file(dir.path().join(MAIN_FILE)).unwrap();
        for beside in [None, Some("")] {
            if let Some(text) = beside {
                std::fs::write(dir.path().join(MAIN_FILE), text).unwrap();
            }
            let told = examine(dir.path(), LIMIT).unwrap_err();
            let started = Store::open(dir.path(), Time::from_unix_ms(0)).err().unwrap();
            assert!(told.is_damage() && told.to_string().contains("half way"), "{told}");
            assert_eq!(told.to_string(), started.to_string());
        }
    }

    #[test]
    fn a_good_store_is_found_good_while_it_is_in_use() {
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
    fn damage_is_told_without_a_heading() {
        let dir = tempfile::tempdir().unwrap();
        drop(Store::open(dir.path(), Time::from_unix_ms(0)).unwrap());
        let file = dir.path().join(MAIN_FILE);
        let mut bytes = std::fs::read(&file).unwrap();
        let last_page = bytes.len() - 4096;
        bytes[last_page..].fill(0);
        std::fs::write(&file, bytes).unwrap();
        let found = examine(dir.path(), LIMIT).unwrap().unwrap();
        let damage = &found.databases[0].1.as_ref().unwrap().damage;
        assert!(damage[0].starts_with("Tree "), "{damage:?}");
    }

    #[test]
    fn a_file_that_is_no_database_is_told() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(MAIN_FILE), "x".repeat(4096)).unwrap();
        let found = examine(dir.path(), LIMIT).unwrap().unwrap();
        assert!(found.databases.iter().all(|(_, condition)| condition.is_err()), "{found:?}");
    }
}
