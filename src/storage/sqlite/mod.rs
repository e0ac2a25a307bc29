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

mod apps;
mod audit;
mod copy;
mod database;
mod examine;
mod files;
mod keys;
mod ledger;
mod migrations;
mod names;
mod recent;
mod rollup;
mod sessions;
#[cfg(test)]
mod tests;
mod usage;
mod values;

use std::io;
use std::path::Path;
use std::sync::Arc;

pub use apps::LAST_APP;
pub(super) use copy::{copy, must_be_whole};
pub use examine::examine;

use database::{Database, Durability};
use recent::RecentKeys;

use super::{Actor, Error, explain};
use crate::clock::Time;

/// The database that must never lose a write.
const MAIN_FILE: &str = "mk.db";
/// The database that is written in batches.
const LEDGER_FILE: &str = "ledger.db";

/// Both databases with the steps of their tables: the one that refers to the other first, so that copies made in this
/// order hold whatever they refer to.
pub(super) const DATABASES: [(&str, &[&str]); 2] =
    [(LEDGER_FILE, migrations::LEDGER), (MAIN_FILE, migrations::MAIN)];

/// Storage in SQLite. Clones share connections.
#[derive(Clone)]
pub struct Store {
    databases: Arc<Databases>,
    /// In whose name it writes.
    actor: Arc<Actor>,
}

struct Databases {
    main: Database,
    ledger: Database,
    /// `None` in memory, where nothing tells whether something was written.
    recent_keys: Option<RecentKeys>,
}

impl Store {
    /// Opens the two files in `dir`, making directory (0700), files (0600) and the `default` app if they are not
    /// there. Any number of processes may do so at once.
    pub fn open(dir: &Path, now: Time) -> Result<Self, Error> {
        let prepared = files::prepare(dir, &[MAIN_FILE, LEDGER_FILE])?;
        let open = |name, durability, steps| {
            Database::open(&dir.join(name), durability, steps).map_err(|cause| named(name, cause))
        };
        let main = open(MAIN_FILE, Durability::EveryCommit, migrations::MAIN)?;
        let ledger = open(LEDGER_FILE, Durability::Batches, migrations::LEDGER)?;
        drop(prepared);
        let recent_keys = Some(RecentKeys::new(&dir.join(MAIN_FILE)));
        Self::with_default_app(Databases { main, ledger, recent_keys }, now)
    }

    /// A store that is gone with its last clone: for the embedded server of one command, and for tests.
    pub fn in_memory(now: Time) -> Result<Self, Error> {
        let main = Database::in_memory(migrations::MAIN)?;
        let ledger = Database::in_memory(migrations::LEDGER)?;
        Self::with_default_app(Databases { main, ledger, recent_keys: None }, now)
    }

    /// Fails if a file can only be read. A command that lists something is content with that, a server is not.
    pub fn must_be_writable(&self) -> Result<(), Error> {
        let named = |name| move |cause: Error| Error::Io(io::Error::other(format!("{name}: {cause}")));
        self.main().must_be_writable().map_err(named(MAIN_FILE))?;
        self.ledger().must_be_writable().map_err(named(LEDGER_FILE))
    }

    /// A number that changes whenever apps or keys have changed, by whatever process. Only good for comparing with
    /// an earlier answer of the same store; writes of the ledger do not change it.
    pub fn version(&self) -> Result<i64, Error> {
        self.main().version()
    }

    fn with_default_app(databases: Databases, now: Time) -> Result<Self, Error> {
        let store = Self { databases: Arc::new(databases), actor: Arc::default() };
        store.ensure_first_app(now)?;
        Ok(store)
    }

    /// The same store, with this actor in the audit of every write. Without it, the server itself has done it.
    #[must_use]
    pub fn acting(&self, actor: Actor) -> Self {
        Self { databases: self.databases.clone(), actor: Arc::new(actor) }
    }

    fn main(&self) -> &Database {
        &self.databases.main
    }

    fn ledger(&self) -> &Database {
        &self.databases.ledger
    }
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
