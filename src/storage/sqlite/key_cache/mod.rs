//! A cache for look-ups of keys, valid for as long as nobody writes to `mk.db`. It also remembers hashes of unknown
//! keys, as clients with an old key tend to keep retrying. Without it, a completion takes 14 % more instructions
//! (28 November 2026).
//!
//! Every commit writes to the database's `-wal` file before it becomes visible, so that file's modification time tells
//! whether something may have changed, through whatever process, for a microsecond instead of a read's four and its
//! file locks. A modification time alone cannot tell two writes within one tick of the file system's clock apart: rows
//! are only cached, and only served, if the last write was some seconds ago, so that the next one is certain to change
//! the time. Until then every look-up is a read.
//!
//! Even this check costs as much as a tenth of a cached response's way through the server in user space, so its result
//! is reused for a moment, [`FRESH_FOR`]. Nobody can notice: a write returns that long after its commit
//! ([`Database::write`](super::database::Database::write)), in whatever process, when all earlier results have expired.
//!
//! A write becomes visible only once it is flushed, and a disk may take longer for that than any delay that would be
//! bearable here. So rows are only cached for a state in which nobody was writing
//! ([`Database::has_no_writer`](super::database::Database::has_no_writer)), checked once per state.
//!
//! Every request takes this lock, so nothing slow may happen under it: evicted rows are freed after it is released.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use crate::lock::Lock;
use crate::storage::{KeyHash, KeyRow};

/// More than the resolution of the coarsest file system clock on which SQLite's WAL works, two seconds.
const SETTLE_TIME: Duration = Duration::from_secs(3);
/// How long the result of a check is reused. A busy server then checks a thousand times a second, and a write takes
/// that much longer.
pub(super) const FRESH_FOR: Duration = Duration::from_millis(1);
/// The capacity of a generation of rows, of which there are two: some 50 MB each when full of keys without lists of
/// models and addresses.
const ROW_CAPACITY: usize = 100_000;
/// The capacity of a generation of unknown hashes: 80 KB in all. They are kept apart from the rows, so that guessing
/// evicts no existing key.
const UNKNOWN_CAPACITY: usize = 1_000;
/// From this many rows on, freeing takes a millisecond or longer, which no request should wait for.
const FREE_IN_BACKGROUND: usize = 2_000;

/// Identifies a state of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    modified: SystemTime,
    length: u64,
}

/// The result of a look-up: the row, or that there is none.
pub(super) type Found = Option<Arc<KeyRow>>;

/// Recent results of look-ups.
pub(super) struct KeyCache {
    wal: PathBuf,
    /// The file at `wal`, kept open, so that its metadata is read without resolving a path. SQLite's locks are on other
    /// files.
    open: Mutex<Option<Arc<File>>>,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    stamp: Option<Stamp>,
    /// When the latest check that found this state began.
    seen: Option<Instant>,
    rows: Generations<Arc<KeyRow>, ROW_CAPACITY>,
    unknown: Generations<(), UNKNOWN_CAPACITY>,
}

/// Values by the hash of a key.
type ByHash<T> = HashMap<KeyHash, T>;

/// An approximately least-recently-used cache of two generations, without bookkeeping per use: a value that is used
/// moves to the younger generation; when that is full it becomes the elder one, and the values of the former elder
/// generation, unused since, are evicted.
struct Generations<T, const CAPACITY: usize> {
    younger: ByHash<T>,
    elder: ByHash<T>,
    /// Evicted values that are yet to be freed.
    evicted: Option<ByHash<T>>,
}

impl KeyCache {
    /// A cache for the database file at `path`, which is in WAL mode and stays open.
    pub(super) fn new(path: &Path) -> Self {
        let mut wal = path.as_os_str().to_owned();
        wal.push("-wal");
        Self { wal: wal.into(), open: Mutex::default(), entries: Mutex::default() }
    }

    /// The current state of the database; `None` if it was written to just now, or if the clock went back. To be taken
    /// before reading a row that is to be cached with it.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        let found = self.wal_metadata()?;
        let modified = found.modified().ok()?;
        let age = SystemTime::now().duration_since(modified).ok()?;
        (age > SETTLE_TIME).then_some(Stamp { modified, length: found.len() })
    }

    /// The WAL file's metadata. SQLite deletes the file with the last connection and creates another one for the next.
    fn wal_metadata(&self) -> Option<Metadata> {
        let open = self.open.locked().clone();
        if let Some(found) = open.and_then(|file| file.metadata().ok())
            && is_linked(&found)
        {
            return Some(found);
        }
        let file = Arc::new(File::open(&self.wal).ok()?);
        let found = file.metadata().ok()?;
        *self.open.locked() = Some(file);
        Some(found)
    }

    /// The cached result for this key, if it was cached in the state that a check found within [`FRESH_FOR`].
    pub(super) fn get_if_fresh(&self, hash: &KeyHash, now: Instant) -> Option<Found> {
        self.with_entries(|entries| {
            let seen = entries.seen?;
            if now.saturating_duration_since(seen) < FRESH_FOR { entries.get(hash) } else { None }
        })
    }

    /// The cached result for this key, if it was cached in this very state, which a check that began at `since` or
    /// later has found.
    pub(super) fn get(&self, hash: &KeyHash, stamp: Stamp, since: Instant) -> Option<Found> {
        self.with_entries(|entries| {
            if entries.stamp != Some(stamp) {
                return None;
            }
            entries.seen = entries.seen.max(Some(since));
            entries.get(hash)
        })
    }

    /// Whether results may be cached in this state. If that is not yet known, `has_no_writer` tells whether nobody is
    /// writing now. To be called before the read.
    pub(super) fn may_cache(&self, stamp: Stamp, has_no_writer: impl FnOnce() -> bool) -> bool {
        if self.entries.locked().stamp == Some(stamp) {
            return true;
        }
        if !has_no_writer() {
            return false;
        }
        let mut entries = self.entries.locked();
        if entries.stamp != Some(stamp) {
            let before =
                std::mem::replace(&mut *entries, Entries { stamp: Some(stamp), ..Entries::default() });
            drop(entries);
            free_rows(before.rows.younger);
            free_rows(before.rows.elder);
        }
        true
    }

    /// Caches what was read after `stamp` was taken, if the cache is still in that state.
    pub(super) fn insert(&self, hash: &KeyHash, found: &Found, stamp: Stamp) {
        self.with_entries(|entries| match found {
            _ if entries.stamp != Some(stamp) => {}
            Some(row) => entries.rows.insert(*hash, row.clone()),
            None => entries.unknown.insert(*hash, ()),
        });
    }

    /// Runs `work` on the cache, and frees what it evicts once the lock is released.
    fn with_entries<R>(&self, work: impl FnOnce(&mut Entries) -> R) -> R {
        let mut entries = self.entries.locked();
        let result = work(&mut entries);
        let (rows, unknown) = (entries.rows.evicted.take(), entries.unknown.evicted.take());
        drop(entries);
        drop(unknown);
        rows.into_iter().for_each(free_rows);
        result
    }
}

impl Entries {
    fn get(&mut self, hash: &KeyHash) -> Option<Found> {
        if let Some(row) = self.rows.get(hash) {
            return Some(Some(row));
        }
        self.unknown.get(hash).map(|()| None)
    }
}

impl<T: Clone, const CAPACITY: usize> Generations<T, CAPACITY> {
    fn get(&mut self, hash: &KeyHash) -> Option<T> {
        if let Some(value) = self.younger.get(hash) {
            return Some(value.clone());
        }
        let value = self.elder.remove(hash)?;
        self.insert(*hash, value.clone());
        Some(value)
    }

    fn insert(&mut self, hash: KeyHash, value: T) {
        if self.younger.len() >= CAPACITY {
            let younger = std::mem::take(&mut self.younger);
            self.evicted = Some(std::mem::replace(&mut self.elder, younger));
        }
        self.younger.insert(hash, value);
    }
}

impl<T, const CAPACITY: usize> Default for Generations<T, CAPACITY> {
    fn default() -> Self {
        Self { younger: HashMap::default(), elder: HashMap::default(), evicted: None }
    }
}

/// Frees rows; many of them on a thread of their own, as the current one serves requests.
fn free_rows(rows: ByHash<Arc<KeyRow>>) {
    if rows.len() < FREE_IN_BACKGROUND {
        return drop(rows);
    }
    // If the thread cannot be spawned, they are freed here after all.
    let _ = std::thread::Builder::new().name("free-rows".to_owned()).spawn(move || drop(rows));
}

/// Whether an open file is still linked in its directory. On other systems an open file cannot be deleted.
fn is_linked(found: &Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::nlink(found) > 0;
    #[cfg(not(unix))]
    return found.is_file();
}

#[cfg(test)]
mod tests;
