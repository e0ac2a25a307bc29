//! Files and directories for their owner alone, from the moment they are there: what holds keys is never readable by
//! others, not even until its mode is set.
//!
//! Modes are Unix's. Elsewhere access is by lists, which the user's own directory gets right by default.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Makes a file, 0600, that must not be there yet; one that is there is not even opened.
///
/// # Errors
/// Of kind [`io::ErrorKind::AlreadyExists`] if something has that name; as the system says otherwise.
pub fn create_new(path: &Path) -> io::Result<File> {
    options().create_new(true).open(path)
}

/// Opens a file as it is, and makes it, 0600, if it is not there.
///
/// # Errors
/// As the system says.
pub fn open_or_create(path: &Path) -> io::Result<File> {
    options().create(true).truncate(false).open(path)
}

/// Makes a directory, 0700, that must not be there yet, in one that is there.
///
/// # Errors
/// Of kind [`io::ErrorKind::AlreadyExists`] if something has that name; as the system says otherwise.
pub fn create_dir(path: &Path) -> io::Result<()> {
    builder().create(path)
}

/// Makes a directory and those above it, 0700 each, where they are not there yet.
///
/// # Errors
/// As the system says.
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
    fn what_is_there_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "there").unwrap();
        assert_eq!(create_new(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        drop(open_or_create(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "there");
        assert_eq!(create_dir(dir.path()).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        create_dir_all(dir.path()).unwrap();
        // Beside a file that is named without a directory.
        create_dir_all(Path::new("")).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_look() {
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
