//! Copies a database that others are writing to, with SQLite's backup API.
//!
//! What must hold: the copy is a snapshot of one moment. A read transaction, which never blocks a writer and is never
//! blocked by one, pins the source to that moment; without it, every write of another process would restart the copy.

use std::path::Path;
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::database::connect;
use super::{examine, migrations, schema};
use crate::storage::Error;

/// The number of pages, about 4 MiB, between two calls of `go_on`.
const PAGES_AT_ONCE: i32 = 1000;

/// The pause while another process is in the way.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// Longer than the check takes of any file that somebody waits for.
const CHECK_LIMIT: Duration = Duration::from_hours(24);

/// Copies the database at `from` into the empty file `to`; `Ok(false)` if `go_on` returned false. The copy is a single
/// file.
pub(in crate::storage) fn copy(from: &Path, to: &Path, go_on: &dyn Fn() -> bool) -> Result<bool, Error> {
    let mut source = connect(from)?;
    let moment = source.transaction_with_behavior(TransactionBehavior::Deferred)?;
    // A deferred transaction begins with its first read.
    migrations::applied_count(&moment)?;
    let mut target = connect(to)?;
    {
        let backup = Backup::new(&moment, &mut target)?;
        loop {
            if !go_on() {
                return Ok(false);
            }
            match backup.step(PAGES_AT_ONCE)? {
                StepResult::Done => break,
                StepResult::Busy | StepResult::Locked => std::thread::sleep(BUSY_PAUSE),
                _ => {}
            }
        }
    }
    target.pragma_update(None, "journal_mode", "DELETE")?;
    Ok(true)
}

/// Fails if the database at `path` is damaged, of a later version, or holds what no version makes. Writes nothing.
pub(in crate::storage) fn ensure_intact(path: &Path, steps: &[&str]) -> Result<(), Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    let found = migrations::applied_count(&connection)?;
    if found > known {
        return Err(Error::TooNew { found, known });
    }
    schema::check(&connection, steps)?;
    let (damage, _) = examine::damage(&connection, CHECK_LIMIT)?;
    match damage.first() {
        None => Ok(()),
        Some(first) => Err(std::io::Error::other(format!("it is damaged: {first}")).into()),
    }
}
