//! Storage in SQLite: two database files, each with one writer and a few readers.
//!
//! `mk.db` is written with `synchronous=FULL`: a revoked key stays revoked, whatever happens to the machine.
//! `ledger.db` is written in batches with `synchronous=NORMAL`: a commit costs no disk flush, and a power failure may
//! lose the latest batches, a killed process never does. Both are in WAL mode, so that readers and the writer do not
//! wait for each other.
//!
//! What must hold: every write begins with `BEGIN IMMEDIATE` (a read that upgrades to a write fails at once, whatever
//! the busy timeout), and nothing but SQLite opens a database file that SQLite may have open in this process (closing
//! any descriptor of a file releases all of the process's POSIX locks on it; see [`files`]).

mod copy;
mod database;
pub(super) mod error;
mod examine;
mod files;
mod key_cache;
mod migrations;
mod names;
mod schema;
#[cfg(test)]
pub(super) mod tests;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

pub(super) use copy::{copy, ensure_intact};
pub(super) use database::Database;
pub use examine::examine;
#[cfg(test)]
pub(super) use migrations::{LEDGER as LEDGER_MIGRATIONS, migrate};
pub use names::names;

use database::Durability;
use key_cache::KeyCache;

use super::db::Db;
use super::queries::keys;
use super::{Error, KeyHash, KeyRow};

/// The database that must never lose a write.
const MAIN_FILE: &str = "mk.db";
/// The database that is written in batches.
const LEDGER_FILE: &str = "ledger.db";

/// Both databases with their migrations. The one that refers to the other comes first, so that copies made in this
/// order contain whatever they refer to.
pub(super) const DATABASES: [(&str, &[&str]); 2] =
    [(LEDGER_FILE, migrations::LEDGER), (MAIN_FILE, migrations::MAIN)];

/// Both databases, open.
pub(super) struct Databases {
    pub(super) main: Database,
    pub(super) ledger: Database,
    /// `None` in memory, where nothing tells whether there was a write.
    key_cache: Option<KeyCache>,
}

impl Databases {
    /// Opens the two files in `dir`, creating the directory and the files if they are missing.
    pub(super) fn open(dir: &Path) -> Result<Self, Error> {
        refuse_half_restored(dir)?;
        // Created in this order, for [`refuse_half_restored`].
        let prepared = files::prepare(dir, &[MAIN_FILE, LEDGER_FILE])?;
        let open = |name, durability, steps| {
            Database::open(&dir.join(name), durability, steps).map_err(|cause| named(name, cause))
        };
        let main = open(MAIN_FILE, Durability::EveryCommit, migrations::MAIN)?;
        let ledger = open(LEDGER_FILE, Durability::Batches, migrations::LEDGER)?;
        drop(prepared);
        let key_cache = Some(KeyCache::new(&dir.join(MAIN_FILE)));
        Ok(Self { main, ledger, key_cache })
    }

    /// Databases in memory, which nobody else can see.
    pub(super) fn in_memory() -> Result<Self, Error> {
        let main = Database::in_memory(migrations::MAIN)?;
        let ledger = Database::in_memory(migrations::LEDGER)?;
        Ok(Self { main, ledger, key_cache: None })
    }

    /// Fails if a file is read-only.
    pub(super) fn ensure_writable(&self) -> Result<(), Error> {
        self.ensure_main_writable()?;
        self.ledger.ensure_writable().map_err(|cause| of_file(LEDGER_FILE, &cause))
    }

    /// Fails if the file of apps and keys is read-only.
    pub(super) fn ensure_main_writable(&self) -> Result<(), Error> {
        self.main.ensure_writable().map_err(|cause| of_file(MAIN_FILE, &cause))
    }

    /// The key with this hash, from the cache if nothing was written since it was read.
    pub(super) fn look_up_key(&self, hash: &KeyHash) -> Result<Option<Arc<KeyRow>>, Error> {
        let Some(cache) = &self.key_cache else {
            let found = self.main.read(|db| keys::by_hash(&Db::Sqlite(db), hash))?;
            return Ok(found.map(Arc::new));
        };
        let begun = Instant::now();
        if let Some(found) = cache.get_if_fresh(hash, begun) {
            return Ok(found);
        }
        self.main.check_file()?;
        let stamp = cache.stamp();
        if let Some(found) = stamp.and_then(|stamp| cache.get(hash, stamp, begun)) {
            return Ok(found);
        }
        let stamp = stamp.filter(|stamp| cache.may_cache(*stamp, || self.main.has_no_writer()));
        let found = self.main.read_unchecked(|db| keys::by_hash(&Db::Sqlite(db), hash))?.map(Arc::new);
        if let Some(stamp) = stamp {
            cache.insert(hash, &found, stamp);
        }
        Ok(found)
    }
}

/// Fails if there is usage without keys, as an interrupted restore leaves it: starting anew beside it would silently
/// lose all keys. Whoever starts in this directory creates the file with the keys first, and writes to it before it
/// writes to the other.
pub(super) fn refuse_half_restored(dir: &Path) -> io::Result<()> {
    // Checked in the reverse order of creation: a pair that is being created at the moment looks complete.
    let (usage, keys) = (size(&dir.join(LEDGER_FILE))?, size(&dir.join(MAIN_FILE))?);
    let (how, what) = match (usage, keys) {
        (Some(_), None) => ("without", "it"),
        // On a file system without hard links, a restore claims the name with an empty file first.
        (Some(1..), Some(0)) => ("beside an empty", "both"),
        _ => return Ok(()),
    };
    let message = format!(
        "there is {LEDGER_FILE} {how} {MAIN_FILE}, as after an interrupted restore: move {what} away and restore again"
    );
    Err(io::Error::new(io::ErrorKind::InvalidData, message))
}

/// The size of a file in bytes, if it exists.
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

/// Names the file: there are two, and an operator needs to know which one is unusable.
fn named(file: &str, cause: Error) -> Error {
    match cause {
        Error::Sqlite(cause) => {
            let kind =
                if error::is_corrupt(&cause) { io::ErrorKind::InvalidData } else { io::ErrorKind::Other };
            Error::Io(io::Error::new(kind, format!("{file}: {cause}{}", error::hint(&cause))))
        }
        other => other,
    }
}
