//! A lock for a file that is read, changed and replaced, so that processes do not overwrite each other's changes.
//!
//! It is taken on a separate file beside it, as the file itself is replaced by a new one. The lock file is never
//! removed: that could take it away from somebody who has just locked it. The system releases a lock when its process
//! ends, however it ends.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{io, thread};

use super::files;
use crate::config::ConfigError;
use crate::private;

/// How long to wait for the lock. A change takes milliseconds; whoever holds it for longer is stopped, or hangs.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// A lock, held until dropped.
#[derive(Debug)]
pub(in crate::config) struct Lock {
    /// Closing it releases the lock. `None` where the file system has no locks.
    _file: Option<File>,
}

impl Lock {
    /// Waits for the lock of this file, which need not exist.
    pub(in crate::config) fn acquire(path: &Path) -> Result<Self, ConfigError> {
        Self::acquire_within(path, TIMEOUT)
    }

    fn acquire_within(path: &Path, timeout: Duration) -> Result<Self, ConfigError> {
        let path = lock_path(path);
        let file = open(&path).map_err(|cause| files::unwritable(&path, &cause))?;
        let since = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: Some(file) }),
                Err(TryLockError::WouldBlock) if since.elapsed() < timeout => thread::sleep(RETRY_INTERVAL),
                Err(TryLockError::WouldBlock) => {
                    let message = format!("another process has locked {} for too long", path.display());
                    return Err(ConfigError::new(message)
                        .hint("wait for the other mk login or mk logout to end, and try again"));
                }
                Err(TryLockError::Error(cause)) if cause.kind() == io::ErrorKind::Unsupported => {
                    return Ok(Self { _file: None });
                }
                Err(TryLockError::Error(cause)) => return Err(files::unwritable(&path, &cause)),
            }
        }
    }
}

/// The path of the lock file; the same for every link to a file.
fn lock_path(path: &Path) -> PathBuf {
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}.lock"))
}

fn open(path: &Path) -> io::Result<File> {
    private::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    private::open_or_create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_exclusive_and_waits_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/credentials.toml");
        let held = Lock::acquire(&path).unwrap();
        let refused = Lock::acquire_within(&path, Duration::ZERO).unwrap_err();
        assert!(refused.message.contains(".credentials.toml.lock"), "{refused}");
        assert!(!refused.hints.is_empty());
        drop(held);
        Lock::acquire_within(&path, Duration::ZERO).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn the_lock_is_private_and_the_same_through_a_link() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        std::fs::write(&real, "").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let _held = Lock::acquire(&link).unwrap();
        let mode = std::fs::metadata(dir.path().join(".real.lock")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(Lock::acquire_within(&real, Duration::ZERO).is_err());
    }
}
