//! Reads configuration files with a size limit and clear errors, and writes them atomically.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::config::ConfigError;
use crate::{os_error, private};

/// The largest configuration file; anything larger is a mistake.
const MAX_BYTES: u64 = 1024 * 1024;

/// The text of a file; `None` if it does not exist.
pub(in crate::config) fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path, &error)),
    };
    if file.metadata().is_ok_and(|facts| facts.is_dir()) {
        return Err(ConfigError::new(format!("{} is a directory, not a file", path.display())));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("{} is larger than 1 MiB; is this the right file?", path.display());
        return Err(ConfigError::new(message));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(error) => {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = line_at(before, before.len());
            Err(ConfigError::new(format!("{} line {line} is not UTF-8 text", path.display())))
        }
    }
}

/// The line number of an offset, from 1.
pub(in crate::config) fn line_at(text: &[u8], offset: usize) -> usize {
    1 + text.iter().take(offset).filter(|byte| **byte == b'\n').count()
}

/// The error for a file that exists and cannot be read.
pub(in crate::config) fn unreadable(path: &Path, error: &io::Error) -> ConfigError {
    let failure = ConfigError::new(format!("cannot read {}: {}", path.display(), os_error::message(error)));
    if error.kind() == io::ErrorKind::PermissionDenied {
        return failure.hint("run mk as the file's owner, or change the file's permissions");
    }
    failure
}

/// Refuses a file that others than its owner can access.
#[cfg(unix)]
pub(in crate::config) fn must_be_private(path: &Path) -> Result<(), ConfigError> {
    use std::os::unix::fs::PermissionsExt;
    let Ok(facts) = fs::metadata(path) else { return Ok(()) };
    let others = facts.permissions().mode() & 0o077;
    if others == 0 {
        return Ok(());
    }
    let message = format!("{} contains keys and other users of this machine can read it", path.display());
    Err(ConfigError::new(message).hint(format!("chmod 600 {}", path.display())))
}

/// On other systems access is governed by lists, which the user's own directory gets right by default.
#[cfg(not(unix))]
pub(in crate::config) fn must_be_private(_path: &Path) -> Result<(), ConfigError> {
    Ok(())
}

/// Atomically replaces a file by one with this text that is private to its owner: readers see the old file or the new
/// one, never a part of one, whatever happens. A symbolic link stays one; its target is replaced.
pub(in crate::config) fn replace_private(path: &Path, text: &str) -> Result<(), ConfigError> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = target.parent().unwrap_or(Path::new("."));
    let unwritable = |error: io::Error| unwritable(&target, &error);
    private::create_dir_all(directory).map_err(unwritable)?;
    let draft = draft_beside(&target);
    let written = private::create_new(&draft)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&draft, &target))
        .and_then(|()| sync_dir(directory));
    written.map_err(|error| {
        // Best effort: a leftover draft is of no use to anyone.
        let _ = fs::remove_file(&draft);
        unwritable(error)
    })
}

/// Creates a file that must not exist yet, private to its owner.
pub(in crate::config) fn create_new(path: &Path, text: &str) -> io::Result<()> {
    private::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    let mut file = private::create_new(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The error for a file that cannot be written.
pub(in crate::config) fn unwritable(path: &Path, error: &io::Error) -> ConfigError {
    ConfigError::new(format!("cannot write {}: {}", path.display(), os_error::message(error)))
}

fn draft_beside(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}.{}.new", uuid::Uuid::now_v7().simple()))
}

/// Makes a rename durable. Only Unix allows a directory to be opened for this.
fn sync_dir(path: &Path) -> io::Result<()> {
    if cfg!(unix) && !path.as_os_str().is_empty() { File::open(path)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_text_and_returns_nothing_for_a_missing_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.toml");
        assert_eq!(read(&path).unwrap(), None);
        fs::write(&path, "x = 1").unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some("x = 1"));
    }

    #[test]
    fn names_what_is_wrong_with_a_file() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap_err().message.ends_with("is a directory, not a file"));
        let path = dir.path().join("a.toml");
        fs::write(&path, b"x = 1\ny = \"\xff\"\n").unwrap();
        assert!(read(&path).unwrap_err().message.ends_with("a.toml line 2 is not UTF-8 text"));
        fs::write(&path, vec![b'#'; 1024 * 1024 + 1]).unwrap();
        assert!(read(&path).unwrap_err().message.contains("larger than 1 MiB"));
    }

    #[cfg(unix)]
    #[test]
    fn written_files_are_private_and_leave_no_draft() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/deep/credentials.toml");
        replace_private(&path, "one").unwrap();
        replace_private(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        must_be_private(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = must_be_private(&path).unwrap_err();
        assert_eq!(error.hints, [format!("chmod 600 {}", path.display())]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_the_file_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        replace_private(&link, "new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
    }
}
