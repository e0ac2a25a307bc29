//! Creates the database files, accessible to the owner alone, before SQLite first opens them.
//!
//! SQLite gives its `-wal` and `-shm` files the mode of the database, so that one mode decides for all three. Existing
//! files keep their mode: whoever widened it had a reason.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use crate::lock::Lock;
use crate::{os_error, private};

/// Held from creating the files until SQLite has opened them. The descriptor of a new file is closed before SQLite
/// opens it, but a second store of this process might open it in between, and the close would release that store's
/// locks.
static OPENING: Mutex<()> = Mutex::new(());

/// Creates `dir` (0700) and the named files in it (0600) where they are missing. The guard must be held until the files
/// have been opened.
pub(super) fn prepare(dir: &Path, names: &[&str]) -> io::Result<MutexGuard<'static, ()>> {
    let guard = OPENING.locked();
    private::create_dir_all(dir).map_err(|cause| plain(&cause, ""))?;
    for name in names {
        make_file(&dir.join(name)).map_err(|cause| plain(&cause, &format!("{name}: ")))?;
    }
    Ok(guard)
}

/// The path of an open file, and the identity of the file that was there when it was opened.
pub(super) struct OpenedFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl OpenedFile {
    /// The file currently at `path`.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let found =
            std::fs::metadata(path).map_err(|cause| plain(&cause, &format!("{}: ", path.display())))?;
        Ok(Self { path: path.to_owned(), identity: identity(&found) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails if the path no longer leads to the file. SQLite carries on with a file that was deleted or replaced, and
    /// would never see a revocation that is written to the new one. The check costs about a microsecond.
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

/// Device and inode.
#[cfg(unix)]
fn identity(found: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (found.dev(), found.ino())
}

/// On other systems an open file cannot be moved or deleted.
#[cfg(not(unix))]
fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

/// The error in words for an operator, without the operating system's error number.
pub(super) fn plain(cause: &io::Error, place: &str) -> io::Error {
    let text = match cause.kind() {
        // The only thing that can be in the way of creating a directory.
        ErrorKind::AlreadyExists => "it is not a directory".to_owned(),
        _ => os_error::message(cause),
    };
    io::Error::new(cause.kind(), format!("{place}{text}"))
}

fn make_file(path: &Path) -> io::Result<()> {
    // For an existing file this fails without opening it, hence without closing it.
    match private::create_new(path) {
        Err(cause) if cause.kind() != ErrorKind::AlreadyExists => Err(cause),
        _ => Ok(()),
    }
}
