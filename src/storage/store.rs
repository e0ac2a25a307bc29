//! The store over either database.

use std::path::Path;
use std::sync::Arc;

use super::db::Db;
use super::postgres::{self, PostgresAddress, WriteLock};
use super::{Actor, Credential, Error, KeyHash, KeyLife, KeyRow, sqlite};
use crate::clock::Time;

/// Apps, keys, sessions, audit log and usage. Clones share connections.
#[derive(Clone)]
pub struct Store {
    databases: Arc<Databases>,
    /// Who makes its writes.
    pub(super) actor: Arc<Actor>,
    /// The credential that its writes depend on; `None` if they depend on none.
    pub(super) credential: Option<Arc<Credential>>,
}

#[expect(clippy::large_enum_variant, reason = "there is one, for as long as the process runs")]
enum Databases {
    Sqlite(sqlite::Databases),
    Postgres(postgres::Database),
}

/// The part of the store that a call works on.
pub(super) enum Part<'a> {
    /// A database file.
    Sqlite(&'a sqlite::Database),
    /// A part of the one PostgreSQL database.
    Postgres(&'a postgres::Database, WriteLock),
}

/// What a read from an async task is for. Reads of one purpose never wait for those of another: a table that is locked
/// or slow must not delay requests that do not need it.
#[derive(Clone, Copy, Debug)]
pub enum ReadPurpose {
    /// Sessions and the records of keys, for the console.
    Console,
    /// How many requests a key has made today.
    DayCount,
    /// What has been spent of a budget.
    Spending,
    /// Entries of the verdict cache.
    Verdicts,
}

impl ReadPurpose {
    pub(super) const COUNT: usize = Self::Verdicts as usize + 1;
}

impl Store {
    /// Opens the two files in `dir`, creating the directory (0700), the files (0600) and the `default` app if they are
    /// missing. Any number of processes may do so at once.
    pub fn open(dir: &Path, now: Time) -> Result<Self, Error> {
        Self::with_default_app(Databases::Sqlite(sqlite::Databases::open(dir)?), now)
    }

    /// A store that ends with its last clone: for the embedded server of one command, and for tests.
    pub fn in_memory(now: Time) -> Result<Self, Error> {
        #[cfg(test)]
        if let Some(database) = postgres::testing::database() {
            return Self::with_default_app(Databases::Postgres(database), now);
        }
        Self::with_default_app(Databases::Sqlite(sqlite::Databases::in_memory()?), now)
    }

    /// Connects to a PostgreSQL database, creating its tables and the `default` app if they are missing. Any number of
    /// servers may do so at once. Blocking; takes some seconds if nobody answers.
    pub fn connect(address: &PostgresAddress, now: Time) -> Result<Self, Error> {
        Self::with_default_app(Databases::Postgres(postgres::Database::open(address)?), now)
    }

    fn with_default_app(databases: Databases, now: Time) -> Result<Self, Error> {
        let store = Self { databases: Arc::new(databases), actor: Arc::default(), credential: None };
        store.ensure_first_app(now)?;
        Ok(store)
    }

    /// The same store, with this actor in the audit log of every write. Without it, writes are the server's own.
    #[must_use]
    pub fn acting_as(&self, actor: Actor) -> Self {
        Self { actor: Arc::new(actor), ..self.clone() }
    }

    /// The same store, whose writes to apps, keys and sessions fail once this credential has ended.
    #[must_use]
    pub fn with_credential(&self, credential: Credential) -> Self {
        Self { credential: Some(Arc::new(credential)), ..self.clone() }
    }

    /// Fails if the store is read-only. A command that lists something can live with that, a server cannot.
    pub fn ensure_writable(&self) -> Result<(), Error> {
        match &*self.databases {
            Databases::Sqlite(files) => files.ensure_writable(),
            Databases::Postgres(database) => database.ensure_writable(),
        }
    }

    /// Like [`Store::ensure_writable`], but only for apps and keys: changing those does not need a writable ledger.
    pub fn ensure_main_writable(&self) -> Result<(), Error> {
        match &*self.databases {
            Databases::Sqlite(files) => files.ensure_main_writable(),
            Databases::Postgres(database) => database.ensure_writable(),
        }
    }

    /// A number that changes whenever apps or keys have changed, through whatever process. Only good for comparison
    /// with an earlier value of the same store; writes to the ledger do not change it.
    pub fn version(&self) -> Result<i64, Error> {
        self.main().version()
    }

    /// The key with this hash, as [`Store::key_by_hash`] returns it: the look-up of every request. With SQLite it
    /// usually takes less than 2 µs: rows are cached for as long as nothing is written, which is checked once a
    /// millisecond. With PostgreSQL it is one query of two seconds at most.
    pub async fn look_up_key(&self, hash: &KeyHash) -> Result<Option<Arc<KeyRow>>, Error> {
        match &*self.databases {
            Databases::Sqlite(files) => files.look_up_key(hash),
            Databases::Postgres(database) => Ok(database.look_up_key(hash).await?.map(Arc::new)),
        }
    }

    /// Whether this key exists and is not revoked, as in [`Store::key_lives`]: asked once more by every request that
    /// may take long. Like [`Store::look_up_key`] it waits for no other kind of read.
    pub async fn is_key_live(&self, id: &str) -> Result<bool, Error> {
        match &*self.databases {
            Databases::Sqlite(_) => Ok(!self.key_lives(&[id])?.contains(&KeyLife::Ended)),
            Databases::Postgres(database) => database.is_key_live(id).await,
        }
    }

    /// Reads from an async task: inline where that takes microseconds (SQLite), on a blocking thread where it takes a
    /// network round trip (PostgreSQL). Only a few such reads of one purpose run at a time; one that cannot start
    /// within two seconds fails as busy.
    pub async fn read_async<T: Send + 'static, E: From<Error> + Send + 'static>(
        &self,
        purpose: ReadPurpose,
        read: impl FnOnce(&Self) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let Databases::Postgres(database) = &*self.databases else { return read(self) };
        // Held until the read ends: the blocking thread may outlive this task.
        let permit = database.read_permit(purpose).await?;
        let store = self.clone();
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            read(&store)
        });
        task.await.unwrap_or_else(|cause| Err(Error::Io(std::io::Error::other(cause)).into()))
    }

    /// Whether it answers the look-up of every request, for a key that nobody has.
    pub async fn is_healthy(&self) -> bool {
        self.look_up_key(&[0; 32]).await.is_ok()
    }

    /// Whether reads are local and take microseconds.
    pub fn is_local(&self) -> bool {
        matches!(&*self.databases, Databases::Sqlite(_))
    }

    /// The SQLite files, which it must have.
    #[cfg(test)]
    pub(super) fn files(&self) -> &sqlite::Databases {
        match &*self.databases {
            Databases::Sqlite(files) => files,
            Databases::Postgres(_) => panic!("no files"),
        }
    }

    /// Writes beside the ledger what nothing in it depends on, in one transaction: with PostgreSQL, the ledger's writes
    /// do not wait for it. Rows are to be written in one order everywhere, so that no two such writes block each other.
    pub(super) fn write_beside_ledger<T>(
        &self,
        change: impl FnOnce(&Db<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match &*self.databases {
            Databases::Sqlite(files) => files.ledger.write(|db| change(&Db::Sqlite(db))),
            Databases::Postgres(database) => database.write_apart(|session| change(&Db::Postgres(session))),
        }
    }

    /// Apps, keys, sessions and the audit log.
    pub(super) fn main(&self) -> Part<'_> {
        match &*self.databases {
            Databases::Sqlite(files) => Part::Sqlite(&files.main),
            Databases::Postgres(database) => Part::Postgres(database, WriteLock::Main),
        }
    }

    /// Usage.
    pub(super) fn ledger(&self) -> Part<'_> {
        match &*self.databases {
            Databases::Sqlite(files) => Part::Sqlite(&files.ledger),
            Databases::Postgres(database) => Part::Postgres(database, WriteLock::Ledger),
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

    /// Writes in one transaction, which is committed if `change` succeeds, rolled back if it fails, and serialised with
    /// all other writes of this part. Once it returns, no process acts on the previous state any more.
    pub(super) fn write<T>(&self, change: impl FnOnce(&Db<'_>) -> Result<T, Error>) -> Result<T, Error> {
        match self {
            Self::Sqlite(file) => file.write(|db| change(&Db::Sqlite(db))),
            Self::Postgres(database, lane) => database.write(*lane, |session| change(&Db::Postgres(session))),
        }
    }

    /// Writes `rows` exactly once, although the caller passes them again, from the same beginning, until this succeeds:
    /// `write` gets only those that were not written before.
    pub(super) fn write_once<T>(
        &self,
        rows: &[T],
        write: impl Fn(&Db<'_>, &[T]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self {
            // With a file it is never in doubt whether a commit was kept.
            Self::Sqlite(_) => self.write(|db| write(db, rows)),
            Self::Postgres(database, _) => {
                database.write_once(rows, |session, new| write(&Db::Postgres(session), new))
            }
        }
    }

    /// Frees the pages that its writer has cached.
    pub(super) fn shrink_writer_cache(&self) -> Result<(), Error> {
        match self {
            Self::Sqlite(file) => file.shrink_writer_cache(),
            Self::Postgres(..) => Ok(()),
        }
    }

    /// A number that changes with every change, through whatever connection.
    pub(super) fn version(&self) -> Result<i64, Error> {
        match self {
            Self::Sqlite(file) => file.version(),
            Self::Postgres(database, lane) => database.version(*lane),
        }
    }
}
