//! Storage in SQLite: two database files, each with one writer and a few readers.
//!
//! `mk.db` is written with `synchronous=FULL`: a key that was revoked stays revoked, whatever happens to the
//! machine. `ledger.db` is written in batches with `synchronous=NORMAL`: a commit costs no disk flush, and the
//! newest batches may be lost with the power, never with the process alone. Both are in WAL mode, so that readers
//! and the writer do not wait for each other.
//!
//! What must hold: every write begins with `BEGIN IMMEDIATE` (a read that turns into a write fails at once, however
//! long the busy timeout), and nothing but SQLite opens a database file that SQLite may have open in this process
//! (closing any descriptor of a file drops all of the process's POSIX locks on it; see [`files`]).

mod copy;
mod database;
mod examine;
mod files;
mod migrations;
mod recent;
#[cfg(test)]
pub(super) mod tests;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

pub(super) use copy::{copy, must_be_whole};
pub(super) use database::Database;
pub use examine::examine;
#[cfg(test)]
pub(super) use migrations::{LEDGER as LEDGER_STEPS, migrate};

use database::Durability;
use recent::RecentKeys;

use super::db::Db;
use super::queries::keys;
use super::{Error, KeyHash, KeyRow, explain};

/// The database that must never lose a write.
const MAIN_FILE: &str = "mk.db";
/// The database that is written in batches.
const LEDGER_FILE: &str = "ledger.db";

/// Both databases with the steps of their tables: the one that refers to the other first, so that copies made in this
/// order hold whatever they refer to.
pub(super) const DATABASES: [(&str, &[&str]); 2] =
    [(LEDGER_FILE, migrations::LEDGER), (MAIN_FILE, migrations::MAIN)];

/// Both databases, open.
pub(super) struct Databases {
    pub(super) main: Database,
    pub(super) ledger: Database,
    /// `None` in memory, where nothing tells whether something was written.
    recent_keys: Option<RecentKeys>,
}

impl Databases {
    /// Opens the two files in `dir`, making directory and files if they are not there.
    pub(super) fn open(dir: &Path) -> Result<Self, Error> {
        must_not_be_half(dir)?;
        // In this order, for those who look whether one is there alone.
        let prepared = files::prepare(dir, &[MAIN_FILE, LEDGER_FILE])?;
        let open = |name, durability, steps| {
            Database::open(&dir.join(name), durability, steps).map_err(|cause| named(name, cause))
        };
        let main = open(MAIN_FILE, Durability::EveryCommit, migrations::MAIN)?;
        let ledger = open(LEDGER_FILE, Durability::Batches, migrations::LEDGER)?;
        drop(prepared);
        let recent_keys = Some(RecentKeys::new(&dir.join(MAIN_FILE)));
        Ok(Self { main, ledger, recent_keys })
    }

    /// Databases that nobody else can see.
    pub(super) fn in_memory() -> Result<Self, Error> {
        let main = Database::in_memory(migrations::MAIN)?;
        let ledger = Database::in_memory(migrations::LEDGER)?;
        Ok(Self { main, ledger, recent_keys: None })
    }

    /// Fails if a file can only be read.
    pub(super) fn must_be_writable(&self) -> Result<(), Error> {
        self.main_must_be_writable()?;
        self.ledger.must_be_writable().map_err(|cause| of_file(LEDGER_FILE, &cause))
    }

    /// The same of the file of apps and keys alone.
    pub(super) fn main_must_be_writable(&self) -> Result<(), Error> {
        self.main.must_be_writable().map_err(|cause| of_file(MAIN_FILE, &cause))
    }

    /// The key with this hash, by what was read before where nothing was written since.
    pub(super) fn look_up_key(&self, hash: &KeyHash) -> Result<Option<Arc<KeyRow>>, Error> {
        let Some(recent) = &self.recent_keys else {
            let found = self.main.read(|db| keys::by_hash(&Db::Sqlite(db), hash))?;
            return Ok(found.map(Arc::new));
        };
        let begun = Instant::now();
        if let Some(found) = recent.get_unseen(hash, begun) {
            return Ok(found);
        }
        self.main.check_place()?;
        let stamp = recent.stamp();
        if let Some(found) = stamp.and_then(|stamp| recent.get(hash, stamp, begun)) {
            return Ok(found);
        }
        let stamp = stamp.filter(|stamp| recent.may_keep(*stamp, || self.main.is_at_rest()));
        let found = self.main.read_in_place(|db| keys::by_hash(&Db::Sqlite(db), hash))?.map(Arc::new);
        if let Some(stamp) = stamp {
            recent.keep(hash, &found, stamp);
        }
        Ok(found)
    }
}

/// Fails if usage is there without keys, as a restore leaves it that was ended half way: who began anew beside it would
/// have lost all keys without a word. What begins in this directory makes the file with the keys first, and writes to
/// it before it writes to the other one.
pub(super) fn must_not_be_half(dir: &Path) -> io::Result<()> {
    // Looked at in the order in which they are not made: what comes to be in between is whole.
    let (usage, keys) = (size(&dir.join(LEDGER_FILE))?, size(&dir.join(MAIN_FILE))?);
    let (how, what) = match (usage, keys) {
        (Some(_), None) => ("without", "it"),
        // A restore on a file system without hard links takes the name first.
        (Some(1..), Some(0)) => ("beside an empty", "both"),
        _ => return Ok(()),
    };
    let message = format!(
        "{LEDGER_FILE} is there {how} {MAIN_FILE}, as a restore leaves it that was ended half way: move {what} away \
         and restore again"
    );
    Err(io::Error::new(io::ErrorKind::InvalidData, message))
}

/// The size of a file in bytes, if it is there.
fn size(path: &Path) -> io::Result<Option<u64>> {
    match std::fs::metadata(path) {
        Ok(found) => Ok(Some(found.len())),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(files::plain(&cause, "")),
    }
}

fn of_file(file: &str, cause: &Error) -> Error {
    Error::Io(io::Error::other(format!("{file}: {cause}")))
}

/// Of two files an operator needs to know which one cannot be used.
fn named(file: &str, cause: Error) -> Error {
    match cause {
        Error::Unavailable(cause) => {
            Error::Io(io::Error::other(format!("{file}: {cause}{}", explain::more(&cause))))
        }
        other => other,
    }
}
