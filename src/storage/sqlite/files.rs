//! The files' birth: made for the owner alone before SQLite first opens them.
//!
//! SQLite gives its `-wal` and `-shm` files the mode of the database, so that one mode decides for all three.
//! Files that are there already keep theirs: whoever widened it had a reason.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{private, reason};

/// Held from making files until SQLite has opened them. A new file's descriptor is closed before SQLite opens the
/// file, but a second store of this process might open it in between, and the close would drop its locks.
static OPENING: Mutex<()> = Mutex::new(());

/// Makes `dir` (0700) and the named files in it (0600), where they are not there yet. The guard is to be held until
/// the files have been opened.
pub(super) fn prepare(dir: &Path, names: &[&str]) -> io::Result<MutexGuard<'static, ()>> {
    let guard = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    private::create_dir_all(dir).map_err(|cause| plain(&cause, ""))?;
    for name in names {
        make_file(&dir.join(name)).map_err(|cause| plain(&cause, &format!("{name}: ")))?;
    }
    Ok(guard)
}

/// A file by its path, and which file that was when it was opened.
pub(super) struct OpenedFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl OpenedFile {
    /// The file that is at `path` now.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let found =
            std::fs::metadata(path).map_err(|cause| plain(&cause, &format!("{}: ", path.display())))?;
        Ok(Self { path: path.to_owned(), identity: identity(&found) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails if the path does not lead to the file any more. SQLite goes on with a file that was deleted or replaced,
    /// and would never hear of a revocation that is written to the new one. A look costs about a microsecond.
    pub(super) fn check(&self) -> io::Result<()> {
        let is_same = std::fs::metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity);
        if is_same {
            return Ok(());
        }
        let message = format!(
            "{} was moved, deleted or replaced while in use; restart the server",
            self.path.display()
        );
        Err(io::Error::new(ErrorKind::NotFound, message))
    }
}

/// Device and number.
#[cfg(unix)]
fn identity(found: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (found.dev(), found.ino())
}

/// Elsewhere an open file cannot be taken away.
#[cfg(not(unix))]
fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

/// The same error in words for an operator, without the operating system's number for it.
pub(super) fn plain(cause: &io::Error, place: &str) -> io::Error {
    let text = match cause.kind() {
        // All that can be in a directory's way and is none.
        ErrorKind::AlreadyExists => "it is not a directory".to_owned(),
        _ => reason::of(cause),
    };
    io::Error::new(cause.kind(), format!("{place}{text}"))
}

fn make_file(path: &Path) -> io::Result<()> {
    // An existing file fails here without having been opened, and therefore without a close.
    match private::create_new(path) {
        Err(cause) if cause.kind() != ErrorKind::AlreadyExists => Err(cause),
        _ => Ok(()),
    }
}
