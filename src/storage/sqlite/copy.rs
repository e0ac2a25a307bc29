//! Copies a database that others are writing to, by SQLite's own means.
//!
//! What must hold: the copy is of one moment. The source is held at that moment by a read transaction, in which a
//! writer is not waited for and does not wait; without it, every write of another process would make the copy begin
//! anew.

use std::path::Path;
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::database::connect;
use super::{examine, migrations};
use crate::storage::Error;

/// Between two looks at whether to go on: some 4 MiB.
const PAGES_AT_ONCE: i32 = 1000;

/// Pauses where another process is in the way for a moment.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// No file that is read by a person waiting for it takes longer.
const CHECK_LIMIT: Duration = Duration::from_hours(24);

/// Copies the database at `from` into the empty file `to`; `Ok(false)` if `go_on` said no. The copy needs no other
/// file beside it.
pub(in crate::storage) fn copy(from: &Path, to: &Path, go_on: &dyn Fn() -> bool) -> Result<bool, Error> {
    let mut source = connect(from)?;
    let moment = source.transaction_with_behavior(TransactionBehavior::Deferred)?;
    // A transaction begins with its first read.
    migrations::steps_taken(&moment)?;
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

/// Fails unless the database at `path` is whole and not of a later version. Writes nothing.
pub(in crate::storage) fn must_be_whole(path: &Path, steps: &[&str]) -> Result<(), Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    let found = migrations::steps_taken(&connection)?;
    if found > known {
        return Err(Error::TooNew { found, known });
    }
    let (damage, _) = examine::damage(&connection, CHECK_LIMIT)?;
    match damage.first() {
        None => Ok(()),
        Some(first) => Err(std::io::Error::other(format!("it is damaged: {first}")).into()),
    }
}
