//! One database: a single writer, and readers that never wait for it.
//!
//! Readers come from a small pool rather than from thread-local storage: async runtimes have hundreds of threads
//! that may each read once, and a pool closes its connections when the store goes. Taking one and giving it back
//! is two uncontended locks, about 40 ns beside a read of some microseconds.
//!
//! What a database holds in memory does not follow from its size: every connection has a bound of pages
//! ([`READER_CACHE_KB`], [`Durability::writer_cache_kb`]), and there are at most [`MAX_IDLE_READERS`] of them beside the writer, the
//! watch and the probe. SQLite's own bound, 2 MB for each connection, is one that a growing ledger fills in all of them.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, MAIN_DB, OpenFlags, Transaction, TransactionBehavior};

use super::files::OpenedFile;
use super::migrations::migrate;
use super::recent;
use crate::storage::{Error, explain};

/// How long to wait for another process's write or clean-up.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// The least that is left to a write which has waited for others of this process already.
const BUSY_LEAST: Duration = Duration::from_millis(20);
/// How soon to try again where SQLite does not wait by itself.
const BUSY_PAUSE: Duration = Duration::from_millis(5);
/// Readers kept open; more than this many at once are opened and closed as needed.
const MAX_IDLE_READERS: usize = 16;
/// More than there are different statements, so that none is ever compiled twice.
const STATEMENT_CACHE: usize = 96;
/// The pages that a connection keeps, but for the writer. What is read again are the upper levels of the trees; all
/// else comes from the system's own cache of the files, which is shared, for a copy of a page.
const READER_CACHE_KB: i64 = 256;

/// Why SQLite could only open a file for reading.
pub(super) const READ_ONLY: &str = "the file is read-only, or lies on a read-only file system";

/// What a commit waits for.
#[derive(Clone, Copy)]
pub(super) enum Durability {
    /// The disk, every time.
    EveryCommit,
    /// The disk only at checkpoints: survives the process, not always the power.
    Batches,
}

impl Durability {
    /// The pages that the writer keeps: a batch has to fit in, or its pages go to the log more than once. What is
    /// committed one by one touches few.
    const fn writer_cache_kb(self) -> i64 {
        match self {
            Self::EveryCommit => 512,
            Self::Batches => 2048,
        }
    }
}

/// One database with its connections.
pub(in crate::storage) struct Database {
    writer: Mutex<Connection>,
    /// `None` in memory, where the writer's connection is the only one there can be.
    readers: Option<Readers>,
    /// What a write waits for behind its commit: the longest that somebody may hold what was true before it.
    afterwards: Duration,
}

struct Readers {
    place: OpenedFile,
    idle: Mutex<Vec<Connection>>,
    /// Asked for nothing but the data version: its answers are comparable only on one and the same connection.
    watch: Mutex<Option<Connection>>,
    /// Writes nothing, waits for nobody: only tries whether it could write.
    probe: Mutex<Option<Connection>>,
}

impl Database {
    /// Opens a file that exists (an empty one is a new database) and brings its tables up to date.
    pub(super) fn open(path: &Path, durability: Durability, migrations: &[&str]) -> Result<Self, Error> {
        let mut writer = connect(path)?;
        keep_pages(&writer, durability.writer_cache_kb())?;
        patiently(|| writer.pragma_update(None, "journal_mode", "WAL"))?;
        let (synchronous, afterwards) = match durability {
            Durability::EveryCommit => ("FULL", recent::HOLDS),
            Durability::Batches => ("NORMAL", Duration::ZERO),
        };
        writer.pragma_update(None, "synchronous", synchronous)?;
        migrate(&mut writer, migrations)?;
        let readers = Readers {
            place: OpenedFile::of(path)?,
            idle: Mutex::default(),
            watch: Mutex::default(),
            probe: Mutex::default(),
        };
        Ok(Self { writer: Mutex::new(writer), readers: Some(readers), afterwards })
    }

    /// Fails if SQLite could only open the file for reading.
    pub(super) fn must_be_writable(&self) -> Result<(), Error> {
        if !lock(&self.writer).is_readonly(MAIN_DB)? {
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
        Ok(Self { writer: Mutex::new(writer), readers: None, afterwards: Duration::ZERO })
    }

    /// Reads. `query` sees everything that was committed before the call, by whatever process.
    pub(in crate::storage) fn read<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.check_place()?;
        self.read_in_place(query)
    }

    /// The same, for those who have just had [`Database::check_place`] look.
    pub(super) fn read_in_place<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Some(readers) = &self.readers else { return query(&lock(&self.writer)) };
        let reader = readers.take()?;
        let outcome = query(&reader);
        readers.give_back(reader);
        outcome
    }

    /// Writes in one transaction: kept if `change` succeeds, undone if it fails. Waits for other writers, of this
    /// process and of others, [`BUSY_TIMEOUT`] in all: whoever stands last in a long queue is told as soon as the first.
    /// When it returns, nobody acts on what was true before any more, in no process ([`recent`]).
    pub(in crate::storage) fn write<T>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.check_place()?;
        let begun = Instant::now();
        let mut writer = lock(&self.writer);
        writer.busy_timeout(BUSY_TIMEOUT.saturating_sub(begun.elapsed()).max(BUSY_LEAST))?;
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let outcome = change(&transaction)?;
        transaction.commit()?;
        drop(writer);
        std::thread::sleep(self.afterwards);
        Ok(outcome)
    }

    /// Fails if the file is not in its place any more.
    pub(super) fn check_place(&self) -> Result<(), Error> {
        match &self.readers {
            Some(readers) => Ok(readers.place.check()?),
            None => Ok(()),
        }
    }

    /// Whether nobody is in the middle of a write, in whatever process: what has been written to the log by now can be
    /// seen by every read that begins from now on. Never waits; what cannot be told is a no.
    pub(super) fn is_at_rest(&self) -> bool {
        self.readers.as_ref().is_some_and(|readers| readers.could_write().is_ok())
    }

    /// A number that changes with every change of the database, by whatever connection.
    pub(in crate::storage) fn version(&self) -> Result<i64, Error> {
        let Some(readers) = &self.readers else {
            return Ok(i64::try_from(lock(&self.writer).total_changes()).unwrap_or(i64::MAX));
        };
        readers.place.check()?;
        readers.data_version()
    }
}

impl Readers {
    fn take(&self) -> Result<Connection, Error> {
        let idle = lock(&self.idle).pop();
        match idle {
            Some(reader) => Ok(reader),
            None => self.open(),
        }
    }

    fn give_back(&self, reader: Connection) {
        let mut idle = lock(&self.idle);
        if idle.len() < MAX_IDLE_READERS {
            idle.push(reader);
        }
    }

    fn open(&self) -> Result<Connection, Error> {
        let reader = connect(self.place.path())?;
        reader.pragma_update(None, "query_only", true)?;
        Ok(reader)
    }

    /// A writer has the lock from before its first byte in the log until its commit can be seen.
    fn could_write(&self) -> Result<(), Error> {
        let mut probe = lock(&self.probe);
        let connection = match probe.take() {
            Some(connection) => connection,
            None => connect(self.place.path())?,
        };
        connection.busy_timeout(Duration::ZERO)?;
        let connection = probe.insert(connection);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        Ok(transaction.rollback()?)
    }

    fn data_version(&self) -> Result<i64, Error> {
        let mut watch = lock(&self.watch);
        let connection = match watch.take() {
            Some(connection) => connection,
            None => self.open()?,
        };
        let connection = watch.insert(connection);
        Ok(connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
    }
}

/// Locks, also after a panic elsewhere: an interrupted transaction has been undone by then.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connects to a file that must exist; its path is never read as an URI.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    prepare(&connection)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    keep_pages(connection, READER_CACHE_KB)?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    // Otherwise the planner compiles a cached join anew for every value that is bound to it: 40 µs, not 4.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "foreign_keys", true)
}

/// Bounds the pages that a connection keeps.
fn keep_pages(connection: &Connection, kilobytes: i64) -> rusqlite::Result<()> {
    // SQLite takes a positive number for pages.
    connection.pragma_update(None, "cache_size", -kilobytes)
}

/// Tries again while another process is in the way, for what SQLite answers with "busy" without waiting: turning
/// WAL mode on while others do the same.
fn patiently<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(cause) if explain::is_busy(&cause) && begun.elapsed() < BUSY_TIMEOUT => {
                std::thread::sleep(BUSY_PAUSE);
            }
            outcome => return outcome,
        }
    }
}
