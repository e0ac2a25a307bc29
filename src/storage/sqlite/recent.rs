//! What look-ups of keys found lately, good for as long as `mk.db` has not been written to by anybody: rows, and that
//! there is no such key, as who has an old one often goes on asking with it.
//!
//! Every commit writes to the database's `-wal` file before anyone can see it, so its time of modification tells
//! whether something may have changed, also by another process, for a microsecond instead of a read's four and its
//! file locks. A time alone does not tell two writes within one tick of the file system's clock apart: rows are only
//! kept, and only used, when the last write was some seconds ago, so that the next one is certain to change the time.
//! Until then every look-up is a read.
//!
//! Even so a look costs as much as a tenth of what a cached answer's way through the server does in user space, so what
//! it has found holds for a moment, [`HOLDS`]. Nobody can tell: a write is reported as done that long after its commit
//! ([`Database::write`](super::database::Database::write)), by whatever process, when all that was found before is over.
//!
//! What was written can be seen only when it has been flushed, and a disk may take longer for that than any time that
//! could be waited here. So rows are only kept of a state in which nobody was writing
//! ([`Database::is_at_rest`](super::database::Database::is_at_rest)), asked once for each state.
//!
//! Every request takes the lock here, so nothing long may be done under it: rows that are given up are freed behind it.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::storage::{KeyHash, KeyRow};

/// More than the coarsest clock of a file system that SQLite's WAL works on: two seconds.
const SETTLED: Duration = Duration::from_secs(3);
/// How long a state that was found is taken for the present one. A busy server looks a thousand times a second then,
/// and a write takes as much longer.
pub(super) const HOLDS: Duration = Duration::from_millis(1);
/// Rows in a generation, of which there are two: some 50 MB each, once so many keys are in use that have no lists of
/// models and addresses.
const ROWS: usize = 100_000;
/// Hashes of unknown keys in a generation: 80 KB in all. Apart from the rows, so that whoever guesses takes no place of
/// a key that exists.
const UNKNOWN: usize = 1_000;
/// From so many rows on, freeing them takes a millisecond and longer, which no request is to wait for.
const MANY: usize = 2_000;

/// Which state of the database something was true of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    modified: SystemTime,
    length: u64,
}

/// What a look-up finds: the row, or that there is none.
pub(super) type Found = Option<Arc<KeyRow>>;

/// What look-ups found lately.
pub(super) struct RecentKeys {
    wal: PathBuf,
    /// The file at `wal`, held open, so that asking about it follows no path. SQLite's locks are on other files.
    open: Mutex<Option<Arc<File>>>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    stamp: Option<Stamp>,
    /// When somebody began to look who has found this state.
    seen: Option<Instant>,
    rows: Generations<Arc<KeyRow>, ROWS>,
    unknown: Generations<(), UNKNOWN>,
}

/// Values by key.
type ByHash<T> = HashMap<KeyHash, T>;

/// Values in two generations of so many, so that which are used lately is known without a note of each use: what is used
/// moves to the younger one, and when that is full, it becomes the elder, whose values nobody has used since are given up.
struct Generations<T, const MOST: usize> {
    younger: ByHash<T>,
    elder: ByHash<T>,
    /// What was given up and is still to be freed.
    given_up: Option<ByHash<T>>,
}

impl RecentKeys {
    /// For the database file at `path`, which is in WAL mode and stays open.
    pub(super) fn new(path: &Path) -> Self {
        let mut wal = path.as_os_str().to_owned();
        wal.push("-wal");
        Self { wal: wal.into(), open: Mutex::default(), kept: Mutex::default() }
    }

    /// The present state of the database; `None` where it was written to just now, or the clock went back. To be
    /// taken before a row is read that is to be kept with it.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        let found = self.look()?;
        let modified = found.modified().ok()?;
        let age = SystemTime::now().duration_since(modified).ok()?;
        (age > SETTLED).then_some(Stamp { modified, length: found.len() })
    }

    /// The file as it is now. SQLite deletes it with the last connection, and makes another one for the next.
    fn look(&self) -> Option<Metadata> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(found) = open.and_then(|file| file.metadata().ok())
            && is_linked(&found)
        {
            return Some(found);
        }
        let file = Arc::new(File::open(&self.wal).ok()?);
        let found = file.metadata().ok()?;
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        Some(found)
    }

    /// What was found of this key, if it was kept in the state that somebody has seen within [`HOLDS`].
    pub(super) fn get_unseen(&self, hash: &KeyHash, now: Instant) -> Option<Found> {
        self.with_kept(|kept| {
            let seen = kept.seen?;
            if now.saturating_duration_since(seen) < HOLDS { kept.get(hash) } else { None }
        })
    }

    /// What was found of this key, if it was kept in this very state, which was seen by looking at `since` or later.
    pub(super) fn get(&self, hash: &KeyHash, stamp: Stamp, since: Instant) -> Option<Found> {
        self.with_kept(|kept| {
            if kept.stamp != Some(stamp) {
                return None;
            }
            kept.seen = kept.seen.max(Some(since));
            kept.get(hash)
        })
    }

    /// Whether what is found in this state may be kept; if that is not known yet, `is_at_rest` says whether nobody
    /// writes now. To be asked before it is read.
    pub(super) fn may_keep(&self, stamp: Stamp, is_at_rest: impl FnOnce() -> bool) -> bool {
        if self.lock().stamp == Some(stamp) {
            return true;
        }
        if !is_at_rest() {
            return false;
        }
        let mut kept = self.lock();
        if kept.stamp != Some(stamp) {
            let before = std::mem::replace(&mut *kept, Kept { stamp: Some(stamp), ..Kept::default() });
            drop(kept);
            free(before.rows.younger);
            free(before.rows.elder);
        }
        true
    }

    /// Keeps what was read after `stamp` was taken and may be kept with it.
    pub(super) fn keep(&self, hash: &KeyHash, found: &Found, stamp: Stamp) {
        self.with_kept(|kept| match found {
            _ if kept.stamp != Some(stamp) => {}
            Some(row) => kept.rows.insert(*hash, row.clone()),
            None => kept.unknown.insert(*hash, ()),
        });
    }

    /// Works on what is kept. What is given up by it is freed when nobody has to wait for that.
    fn with_kept<R>(&self, work: impl FnOnce(&mut Kept) -> R) -> R {
        let mut kept = self.lock();
        let result = work(&mut kept);
        let (rows, unknown) = (kept.rows.given_up.take(), kept.unknown.given_up.take());
        drop(kept);
        drop(unknown);
        rows.into_iter().for_each(free);
        result
    }

    /// Also after a panic elsewhere: what is kept is whole.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn get(&mut self, hash: &KeyHash) -> Option<Found> {
        if let Some(row) = self.rows.get(hash) {
            return Some(Some(row));
        }
        self.unknown.get(hash).map(|()| None)
    }
}

impl<T: Clone, const MOST: usize> Generations<T, MOST> {
    fn get(&mut self, hash: &KeyHash) -> Option<T> {
        if let Some(value) = self.younger.get(hash) {
            return Some(value.clone());
        }
        let value = self.elder.remove(hash)?;
        self.insert(*hash, value.clone());
        Some(value)
    }

    fn insert(&mut self, hash: KeyHash, value: T) {
        if self.younger.len() >= MOST {
            let younger = std::mem::take(&mut self.younger);
            self.given_up = Some(std::mem::replace(&mut self.elder, younger));
        }
        self.younger.insert(hash, value);
    }
}

impl<T, const MOST: usize> Default for Generations<T, MOST> {
    fn default() -> Self {
        Self { younger: HashMap::new(), elder: HashMap::new(), given_up: None }
    }
}

/// Frees rows; where they are many, on a thread of their own, as the present one serves requests.
fn free(rows: ByHash<Arc<KeyRow>>) {
    if rows.len() < MANY {
        return drop(rows);
    }
    // Where there can be no thread, they are freed here all the same.
    let _ = std::thread::Builder::new().name("free-rows".to_owned()).spawn(move || drop(rows));
}

/// Whether an open file still stands in its directory. Elsewhere an open file cannot be taken away.
fn is_linked(found: &Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::nlink(found) > 0;
    #[cfg(not(unix))]
    return found.is_file();
}

#[cfg(test)]
#[path = "recent_tests.rs"]
mod tests;
