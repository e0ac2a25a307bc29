//! Creates files and directories that only their owner can access, from the moment they exist: what holds keys is never
//! readable by others, not even until its mode is set.
//!
//! Modes exist on Unix only. Other systems have access control lists, which are right by default in the user's own
//! directory.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
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

/// Links or renames a finished file to its name, which nothing must have at that moment: readers see nothing, or all of it.
///
/// # Errors
/// Of kind [`io::ErrorKind::AlreadyExists`] if something has that name; otherwise what the system reports.
pub fn claim_name(made: &Path, file: &Path) -> io::Result<()> {
    match fs::hard_link(made, file) {
        Err(cause) if cause.kind() == ErrorKind::AlreadyExists => Err(name_taken()),
        Err(_) => claim_name_without_links(made, file),
        Ok(()) => Ok(()),
    }
}

/// Like [`claim_name`] on file systems without hard links: claims the name with an empty file, which is then replaced.
fn claim_name_without_links(made: &Path, file: &Path) -> io::Result<()> {
    create_new(file)
        .map_err(|cause| if cause.kind() == ErrorKind::AlreadyExists { name_taken() } else { cause })?;
    fs::rename(made, file).inspect_err(|_| {
        // Best effort: an empty file is nothing that a reader takes for a finished one.
        let _ = fs::remove_file(file);
    })
}

/// The error for a name that something has already.
pub fn name_taken() -> io::Error {
    io::Error::new(ErrorKind::AlreadyExists, "it already exists")
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

    #[test]
    fn without_hard_links_a_name_is_still_claimed_only_once() {
        let dir = tempfile::tempdir().unwrap();
        let (made, file) = (dir.path().join("made"), dir.path().join("file"));
        fs::write(&made, "first").unwrap();
        claim_name_without_links(&made, &file).unwrap();
        fs::write(&made, "second").unwrap();
        assert_eq!(claim_name_without_links(&made, &file).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&file).unwrap(), "first");
        let nothing = dir.path().join("nothing");
        assert!(claim_name_without_links(&nothing, &dir.path().join("other")).is_err());
        assert!(!dir.path().join("other").exists(), "no empty file is left");
    }
}
