//! Creates files and directories that only their owner can access, from the moment they exist: what holds keys is never
//! readable by others, not even until its mode is set.
//!
//! Modes exist on Unix only. Other systems have access control lists, which are right by default in the user's own
//! directory.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a file (0600) that must not exist yet; an existing one is not even opened.
///
/// # Errors
/// Of kind [`io::ErrorKind::AlreadyExists`] if something has that name; otherwise what the system reports.
pub fn create_new(path: &Path) -> io::Result<File> {
    options().create_new(true).open(path)
}

/// Opens a file as it is, or creates it (0600) if it is missing.
///
/// # Errors
/// What the system reports.
pub fn open_or_create(path: &Path) -> io::Result<File> {
    options().create(true).truncate(false).open(path)
}

/// Creates a directory (0700) that must not exist yet, in an existing one.
///
/// # Errors
/// Of kind [`io::ErrorKind::AlreadyExists`] if something has that name; otherwise what the system reports.
pub fn create_dir(path: &Path) -> io::Result<()> {
    builder().create(path)
}

/// Creates a directory and its missing ancestors (0700 each).
///
/// # Errors
/// What the system reports.
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    builder().recursive(true).create(path)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg_attr(not(unix), expect(unused_mut, reason = "its mode is set on Unix alone"))]
fn builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn existing_files_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "there").unwrap();
        assert_eq!(create_new(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        drop(open_or_create(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "there");
        assert_eq!(create_dir(dir.path()).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        create_dir_all(dir.path()).unwrap();
        // The parent of a file name without a directory.
        create_dir_all(Path::new("")).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_has_access() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o777;
        create_new(&at("new")).unwrap();
        open_or_create(&at("made")).unwrap();
        create_dir(&at("one")).unwrap();
        create_dir_all(&at("two/three")).unwrap();
        assert_eq!(["new", "made"].map(mode), [0o600; 2]);
        assert_eq!(["one", "two", "two/three"].map(mode), [0o700; 3]);
    }
}
