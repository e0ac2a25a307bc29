//! One database: a single writer, and readers that never wait for it.
//!
//! Readers come from a small pool rather than from thread-local storage: async runtimes have hundreds of threads that
//! may each read once, and a pool closes its connections together with the store. Taking a reader and giving it back is
//! two uncontended locks, about 40 ns beside a read of some microseconds.
//!
//! The memory used does not depend on the size of the database: every connection has a bounded page cache
//! ([`READER_CACHE_KB`], [`Durability::writer_cache_kb`]), and there are at most [`MAX_IDLE_READERS`] of them beside
//! the
//! writer, the version connection and the lock probe. SQLite's default, 2 MB per connection, is one that a growing
//! ledger fills in every connection.

use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, MAIN_DB, OpenFlags, Transaction, TransactionBehavior};

use super::error;
use super::files::OpenedFile;
use super::key_cache;
use super::migrations::migrate;
use super::schema;
use crate::lock::Lock;
use crate::storage::Error;

/// How long to wait for another process's write or checkpoint.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// The minimum busy timeout of a write that has already waited for other writes of this process.
const MIN_BUSY_TIMEOUT: Duration = Duration::from_millis(20);
/// The pause between retries where SQLite does not wait by itself.
const BUSY_PAUSE: Duration = Duration::from_millis(5);
/// Readers kept open; any beyond these are opened and closed as needed.
const MAX_IDLE_READERS: usize = 16;
/// More than the number of distinct statements, so that none is ever compiled twice.
const STATEMENT_CACHE: usize = 128;
/// The page cache of a connection other than the writer. What is read repeatedly are the upper levels of the trees;
/// everything else comes from the operating system's shared file cache, for a copy of a page.
const READER_CACHE_KB: i64 = 256;

/// Why SQLite could open a file only for reading.
pub(super) const READ_ONLY: &str = "the file is read-only, or on a read-only file system";

/// When a commit is flushed to disk.
#[derive(Clone, Copy)]
pub(super) enum Durability {
    /// On every commit.
    EveryCommit,
    /// Only at checkpoints: survives a crash of the process, not always a power failure.
    Batches,
}

impl Durability {
    /// The page cache of the writer: a batch has to fit in, or its pages go to the log more than once. Single commits
    /// touch few pages.
    const fn writer_cache_kb(self) -> i64 {
        match self {
            Self::EveryCommit => 512,
            Self::Batches => 2048,
        }
    }
}

/// One database with its connections.
pub(in crate::storage) struct Database {
    /// A panic rolls its transaction back before it gives the lock up.
    writer: Mutex<Connection>,
    /// `None` in memory, where only the writer's connection can exist.
    readers: Option<Readers>,
    /// How long a write waits after its commit: the longest that anybody may still serve the state before it.
    commit_delay: Duration,
}

struct Readers {
    file: OpenedFile,
    idle: Mutex<Vec<Connection>>,
    /// Only queried for the data version, whose values are comparable on one and the same connection only.
    version_connection: Mutex<Option<Connection>>,
    /// Never writes and never waits: only tests whether the write lock is free.
    lock_probe: Mutex<Option<Connection>>,
}

impl Database {
    /// Opens an existing file (an empty one is a new database) with the schema of its version, and applies pending
    /// migrations.
    pub(super) fn open(path: &Path, durability: Durability, migrations: &[&str]) -> Result<Self, Error> {
        let mut writer = connect(path)?;
        schema::check(&writer, migrations)?;
        set_page_cache(&writer, durability.writer_cache_kb())?;
        retry_while_busy(|| writer.pragma_update(None, "journal_mode", "WAL"))?;
        let (synchronous, commit_delay) = match durability {
            Durability::EveryCommit => ("FULL", key_cache::FRESH_FOR),
            Durability::Batches => ("NORMAL", Duration::ZERO),
        };
        writer.pragma_update(None, "synchronous", synchronous)?;
        migrate(&mut writer, migrations)?;
        let readers = Readers {
            file: OpenedFile::of(path)?,
            idle: Mutex::default(),
            version_connection: Mutex::default(),
            lock_probe: Mutex::default(),
        };
        Ok(Self { writer: Mutex::new(writer), readers: Some(readers), commit_delay })
    }

    /// Fails if SQLite could open the file only for reading.
    pub(super) fn ensure_writable(&self) -> Result<(), Error> {
        if !self.writer.locked().is_readonly(MAIN_DB)? {
            return Ok(());
        }
        let message = format!("it may not be written to: {READ_ONLY}");
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message).into())
    }

    /// A database that no other connection can see and that leaves nothing behind.
    pub(super) fn in_memory(migrations: &[&str]) -> Result<Self, Error> {
        let mut writer = Connection::open_in_memory()?;
        prepare(&writer)?;
        migrate(&mut writer, migrations)?;
        Ok(Self { writer: Mutex::new(writer), readers: None, commit_delay: Duration::ZERO })
    }

    /// Reads. `query` sees everything that was committed before the call, by whatever process.
    pub(in crate::storage) fn read<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.check_file()?;
        self.read_unchecked(query)
    }

    /// Like [`Database::read`], for callers that have just called [`Database::check_file`].
    pub(super) fn read_unchecked<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Some(readers) = &self.readers else { return query(&self.writer.locked()) };
        let reader = readers.take()?;
        let outcome = query(&reader);
        readers.give_back(reader);
        outcome
    }

    /// Writes in one transaction, which is committed if `change` succeeds and rolled back if it fails. Waits for other
    /// writers of this and other processes, [`BUSY_TIMEOUT`] in all: the last in a long queue fails as soon as the
    /// first. Once it returns, no process acts on the previous state any more ([`key_cache`]).
    pub(in crate::storage) fn write<T>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.check_file()?;
        let begun = Instant::now();
        let mut writer = self.writer.locked();
        writer.busy_timeout(BUSY_TIMEOUT.saturating_sub(begun.elapsed()).max(MIN_BUSY_TIMEOUT))?;
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let outcome = change(&transaction)?;
        transaction.commit()?;
        drop(writer);
        std::thread::sleep(self.commit_delay);
        Ok(outcome)
    }

    /// Frees the pages that the writer has cached. It reads those that it still needs again.
    pub(in crate::storage) fn shrink_writer_cache(&self) -> Result<(), Error> {
        Ok(self.writer.locked().execute_batch("PRAGMA shrink_memory")?)
    }

    /// Fails if the file is no longer at its path.
    pub(super) fn check_file(&self) -> Result<(), Error> {
        match &self.readers {
            Some(readers) => Ok(readers.file.check()?),
            None => Ok(()),
        }
    }

    /// Whether no process is in the middle of a write, so that everything in the log by now is visible to every read
    /// that begins from now on. Never waits; returns false if it cannot tell.
    pub(super) fn has_no_writer(&self) -> bool {
        self.readers.as_ref().is_some_and(|readers| readers.try_write_lock().is_ok())
    }

    /// A number that changes with every change of the database, through whatever connection.
    pub(in crate::storage) fn version(&self) -> Result<i64, Error> {
        let Some(readers) = &self.readers else {
            return Ok(i64::try_from(self.writer.locked().total_changes()).unwrap_or(i64::MAX));
        };
        readers.file.check()?;
        readers.data_version()
    }
}

impl Readers {
    fn take(&self) -> Result<Connection, Error> {
        let idle = self.idle.locked().pop();
        match idle {
            Some(reader) => Ok(reader),
            None => self.open(),
        }
    }

    fn give_back(&self, reader: Connection) {
        let mut idle = self.idle.locked();
        if idle.len() < MAX_IDLE_READERS {
            idle.push(reader);
        }
    }

    fn open(&self) -> Result<Connection, Error> {
        let reader = connect(self.file.path())?;
        reader.pragma_update(None, "query_only", true)?;
        Ok(reader)
    }

    /// A writer holds the lock from before its first byte in the log until its commit is visible.
    fn try_write_lock(&self) -> Result<(), Error> {
        let mut lock_probe = self.lock_probe.locked();
        let connection = match lock_probe.take() {
            Some(connection) => connection,
            None => connect(self.file.path())?,
        };
        connection.busy_timeout(Duration::ZERO)?;
        let connection = lock_probe.insert(connection);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        Ok(transaction.rollback()?)
    }

    fn data_version(&self) -> Result<i64, Error> {
        let mut version_connection = self.version_connection.locked();
        let connection = match version_connection.take() {
            Some(connection) => connection,
            None => self.open()?,
        };
        let connection = version_connection.insert(connection);
        Ok(connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
    }
}

/// Connects to a file that must exist; its path is never parsed as a URI.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    prepare(&connection)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    set_page_cache(connection, READER_CACHE_KB)?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    // Otherwise the planner recompiles a cached join for every bound value: 40 µs instead of 4.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "foreign_keys", true)
}

/// Bounds the page cache of a connection.
fn set_page_cache(connection: &Connection, kilobytes: i64) -> rusqlite::Result<()> {
    // SQLite reads a positive number as a count of pages.
    connection.pragma_update(None, "cache_size", -kilobytes)
}

/// Retries while another process is in the way, for what SQLite refuses as busy without waiting: turning WAL mode on
/// while others do the same.
fn retry_while_busy<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(cause) if error::is_busy(&cause) && begun.elapsed() < BUSY_TIMEOUT => {
                std::thread::sleep(BUSY_PAUSE);
            }
            outcome => return outcome,
        }
    }
}
