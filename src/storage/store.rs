//! The store, over whichever database it has.

use std::path::Path;
use std::sync::Arc;

use super::db::Db;
use super::postgres::{self, Lane, PostgresAddress};
use super::sqlite;
use super::{Actor, Error, KeyHash, KeyRow, Warrant};
use crate::clock::Time;

/// Apps, keys, sessions, audit and usage. Clones share connections.
#[derive(Clone)]
pub struct Store {
    databases: Arc<Databases>,
    /// In whose name it writes.
    pub(super) actor: Arc<Actor>,
    /// What that rests on; `None` where it is nobody's to end.
    pub(super) warrant: Option<Arc<Warrant>>,
}

#[expect(clippy::large_enum_variant, reason = "there is one, for as long as the process runs")]
enum Databases {
    Sqlite(sqlite::Databases),
    Postgres(postgres::Database),
}

/// The part of the store that a call is about.
pub(super) enum Part<'a> {
    /// A file's.
    Sqlite(&'a sqlite::Database),
    /// A part of the one database.
    Postgres(&'a postgres::Database, Lane),
}

impl Store {
    /// Opens the two files in `dir`, making directory (0700), files (0600) and the `default` app if they are not
    /// there. Any number of processes may do so at once.
    pub fn open(dir: &Path, now: Time) -> Result<Self, Error> {
        Self::with_default_app(Databases::Sqlite(sqlite::Databases::open(dir)?), now)
    }

    /// A store that is gone with its last clone: for the embedded server of one command, and for tests.
    pub fn in_memory(now: Time) -> Result<Self, Error> {
        #[cfg(test)]
        if let Some(database) = postgres::testing::database() {
            return Self::with_default_app(Databases::Postgres(database), now);
        }
        Self::with_default_app(Databases::Sqlite(sqlite::Databases::in_memory()?), now)
    }

    /// Connects to a PostgreSQL database, making its tables and the `default` app if they are not there. Any number of
    /// servers may do so at once. Blocking, for some seconds where nobody answers.
    pub fn connect(address: &PostgresAddress, now: Time) -> Result<Self, Error> {
        Self::with_default_app(Databases::Postgres(postgres::Database::open(address)?), now)
    }

    fn with_default_app(databases: Databases, now: Time) -> Result<Self, Error> {
        let store = Self { databases: Arc::new(databases), actor: Arc::default(), warrant: None };
        store.ensure_first_app(now)?;
        Ok(store)
    }

    /// The same store, with this actor in the audit of every write. Without it, the server itself has done it.
    #[must_use]
    pub fn acting(&self, actor: Actor) -> Self {
        Self { actor: Arc::new(actor), ..self.clone() }
    }

    /// The same store, which writes to apps, keys and sessions only while this is good.
    #[must_use]
    pub fn on(&self, warrant: Warrant) -> Self {
        Self { warrant: Some(Arc::new(warrant)), ..self.clone() }
    }

    /// Fails if it can only be read. A command that lists something is content with that, a server is not.
    pub fn must_be_writable(&self) -> Result<(), Error> {
        match &*self.databases {
            Databases::Sqlite(files) => files.must_be_writable(),
            Databases::Postgres(database) => database.must_be_writable(),
        }
    }

    /// The same of where apps and keys are: what changes those needs no ledger that can be written.
    pub fn main_must_be_writable(&self) -> Result<(), Error> {
        match &*self.databases {
            Databases::Sqlite(files) => files.main_must_be_writable(),
            Databases::Postgres(database) => database.must_be_writable(),
        }
    }

    /// A number that changes whenever apps or keys have changed, by whatever process. Only good for comparing with
    /// an earlier answer of the same store; writes of the ledger do not change it.
    pub fn version(&self) -> Result<i64, Error> {
        self.main().version()
    }

    /// The key with this hash, as [`Store::key_by_hash`] would give it; the look-up of every request. SQLite: usually less
    /// than 2 µs, as what was found before is kept for as long as nothing is written, which is looked at once a
    /// millisecond. PostgreSQL: one query, for two seconds at most.
    pub async fn look_up_key(&self, hash: &KeyHash) -> Result<Option<Arc<KeyRow>>, Error> {
        match &*self.databases {
            Databases::Sqlite(files) => files.look_up_key(hash),
            Databases::Postgres(database) => Ok(database.look_up_key(hash).await?.map(Arc::new)),
        }
    }

    /// Asks from a task: here where that takes microseconds, on a thread that may wait where it is a way over the network. Of
    /// those there are few at a time, whoever asks: who gets none within two seconds is told that the store is busy.
    pub async fn ask<T: Send + 'static, E: From<Error> + Send + 'static>(
        &self,
        question: impl FnOnce(&Self) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let Databases::Postgres(database) = &*self.databases else { return question(self) };
        // Held to the end of the question: its thread waits as long.
        let turn = database.turn().await?;
        let store = self.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            question(&store)
        });
        asked.await.unwrap_or_else(|cause| Err(Error::Io(std::io::Error::other(cause)).into()))
    }

    /// Whether it answers what every request asks it, as it would be asked for a key that nobody has.
    pub async fn is_well(&self) -> bool {
        self.look_up_key(&[0; 32]).await.is_ok()
    }

    /// Whether reading takes microseconds.
    pub fn is_local(&self) -> bool {
        matches!(&*self.databases, Databases::Sqlite(_))
    }

    /// The files that it must have.
    #[cfg(test)]
    pub(super) fn files(&self) -> &sqlite::Databases {
        match &*self.databases {
            Databases::Sqlite(files) => files,
            Databases::Postgres(_) => panic!("no files"),
        }
    }

    /// Apps, keys, sessions and their audit.
    pub(super) fn main(&self) -> Part<'_> {
        match &*self.databases {
            Databases::Sqlite(files) => Part::Sqlite(&files.main),
            Databases::Postgres(database) => Part::Postgres(database, Lane::Main),
        }
    }

    /// Usage.
    pub(super) fn ledger(&self) -> Part<'_> {
        match &*self.databases {
            Databases::Sqlite(files) => Part::Sqlite(&files.ledger),
            Databases::Postgres(database) => Part::Postgres(database, Lane::Ledger),
        }
    }
}

impl Part<'_> {
    /// Reads. `query` sees everything that was committed before the call, by whatever process.
    pub(super) fn read<T>(&self, query: impl FnOnce(&Db<'_>) -> Result<T, Error>) -> Result<T, Error> {
        match self {
            Self::Sqlite(file) => file.read(|db| query(&Db::Sqlite(db))),
            Self::Postgres(database, _) => database.read(|session| query(&Db::Postgres(session))),
        }
    }

    /// Writes in one transaction: kept if `change` succeeds, undone if it fails, and behind all others. When it returns,
    /// nobody acts on what was true before any more, in no process.
    pub(super) fn write<T>(&self, change: impl FnOnce(&Db<'_>) -> Result<T, Error>) -> Result<T, Error> {
        match self {
            Self::Sqlite(file) => file.write(|db| change(&Db::Sqlite(db))),
            Self::Postgres(database, lane) => database.write(*lane, |session| change(&Db::Postgres(session))),
        }
    }

    /// The same for `rows` that are presented again, from the same beginning, until this succeeds: `write` gets those that
    /// were not written before.
    pub(super) fn write_once<T>(
        &self,
        rows: &[T],
        write: impl Fn(&Db<'_>, &[T]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self {
            // Whether a file has kept a commit is never in doubt.
            Self::Sqlite(_) => self.write(|db| write(db, rows)),
            Self::Postgres(database, _) => {
                database.write_once(rows, |session, new| write(&Db::Postgres(session), new))
            }
        }
    }

    /// A number that changes with every change, by whatever connection.
    pub(super) fn version(&self) -> Result<i64, Error> {
        match self {
            Self::Sqlite(file) => file.version(),
            Self::Postgres(database, lane) => database.version(*lane),
        }
    }
}
