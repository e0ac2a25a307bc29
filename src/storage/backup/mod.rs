//! Backups: both databases in one file, created beside a running server and restored where there is no database; also
//! restored into a PostgreSQL database, which is how to move from files to several servers.
//!
//! What must hold: a backup that exists under its name is complete (it is written under another name, checked, and only
//! then renamed); it never replaces another file unless that was asked for, not even one created in the meantime; only
//! its owner can read it, as it holds all that the databases hold. Nothing is restored over an existing database:
//! SQLite would replay a leftover log into the restored one.

mod archive;
mod to_postgres;

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::postgres::{self, PostgresAddress};
use super::{Error, sqlite};
use crate::clock::Time;
use crate::private;

/// A database in a backup: its file's name and its size in bytes.
pub type Packed = (&'static str, u64);

/// Backs up the databases in `dir` to `file`; `None` if `go_on` returned false. An existing file is replaced if
/// `replace` is set. Meanwhile it takes twice the size of the databases beside `file`. Blocking.
pub fn backup(
    dir: &Path,
    file: &Path,
    replace: bool,
    now: Time,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Vec<Packed>>, Error> {
    if file.is_dir() {
        return Err(io::Error::new(ErrorKind::AlreadyExists, "it is a directory").into());
    }
    // An early check that saves the work; the one that counts comes when the name is taken.
    if !replace && file.try_exists()? {
        return Err(private::name_taken().into());
    }
    sqlite::refuse_half_restored(dir)?;
    let draft = Draft::beside(file)?;
    for (name, steps) in sqlite::DATABASES {
        let (from, to) = (dir.join(name), draft.path.join(name));
        let named = |cause: Error| with_file_name(name, cause);
        fs::metadata(&from).map_err(|cause| named(cause.into()))?;
        private::create_new(&to)?;
        if !sqlite::copy(&from, &to, go_on).map_err(named)? {
            return Ok(None);
        }
        sqlite::ensure_intact(&to, steps).map_err(named)?;
    }
    let made = draft.path.join("archive");
    let written = private::create_new(&made)?;
    let names = sqlite::DATABASES.map(|(name, _)| name);
    let packed = archive::pack(&draft.path, &names, &written, now)?;
    // Verified by reading it as a restore would.
    archive::unpack(&File::open(&made)?, &names, |_| Ok(io::sink()))?;
    if replace {
        fs::rename(&made, file)?;
    } else {
        private::claim_name(&made, file)?;
    }
    sync_dir(parent(file))?;
    Ok(Some(packed))
}

/// Restores a backup into `dir`, which is created if it is missing and must not hold a database. Blocking.
pub fn restore(file: &Path, dir: &Path) -> Result<(), Error> {
    let source = File::open(file)?;
    let made = CreatedDirs::create_all(dir)?;
    ensure_no_database(dir)?;
    let draft = Draft::beside(&dir.join("restored"))?;
    unpack(&source, &draft.path)?;
    place_databases(&draft.path, dir)?;
    sync_dir(dir)?;
    made.keep();
    Ok(())
}

fn ensure_no_database(dir: &Path) -> io::Result<()> {
    sqlite::refuse_half_restored(dir).map_err(|cause| match cause.kind() {
        ErrorKind::InvalidData => io::Error::new(ErrorKind::AlreadyExists, cause),
        _ => cause,
    })?;
    for (name, _) in sqlite::DATABASES {
        for ending in ["", "-wal", "-journal"] {
            if dir.join(format!("{name}{ending}")).try_exists()? {
                return Err(file_exists_error(&format!("{name}{ending}")));
            }
        }
    }
    Ok(())
}

/// Links the databases of `draft` into `dir`, all or none: a server may have started there in the meantime.
fn place_databases(draft: &Path, dir: &Path) -> io::Result<()> {
    ensure_no_database(dir)?;
    // A flush may take its time, so it comes before the first file is in place.
    for (name, _) in sqlite::DATABASES {
        File::open(draft.join(name))?.sync_all()?;
    }
    let mut placed = Vec::new();
    // The keys come last: if the process is killed in between, it leaves usage without keys, which no server starts
    // with.
    for (database, _) in sqlite::DATABASES {
        let (made, file) = (draft.join(database), dir.join(database));
        if let Err(cause) = private::claim_name(&made, &file) {
            for file in placed {
                // Best effort, as above.
                let _ = fs::remove_file(file);
            }
            let is_taken = cause.kind() == ErrorKind::AlreadyExists;
            return Err(if is_taken { file_exists_error(database) } else { cause });
        }
        placed.push(file);
    }
    Ok(())
}

fn file_exists_error(name: &str) -> io::Error {
    io::Error::new(ErrorKind::AlreadyExists, format!("{name} already exists"))
}

/// Restores a backup into a PostgreSQL database that nothing was stored in yet. Returns the number of rows per table,
/// or `None` if `go_on` returned false. Meanwhile it takes the size of the databases beside `file`. Blocking.
pub fn restore_to_postgres(
    file: &Path,
    address: &PostgresAddress,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Vec<(&'static str, u64)>>, Error> {
    let source = File::open(file)?;
    let database = postgres::Database::open(address)?;
    // An early check that saves the work; the one that counts is made when the rows are copied.
    if database.is_in_use()? {
        return Err(in_use_error().into());
    }
    let draft = Draft::beside(file)?;
    unpack(&source, &draft.path)?;
    let files = sqlite::Databases::open(&draft.path)?;
    let may_go_on = || if go_on() { Ok(()) } else { Err(Error::Io(io::Error::from(ErrorKind::Interrupted))) };
    match to_postgres::copy_to_postgres(&files, &database, &may_go_on) {
        Ok(Some(copied)) => Ok(Some(copied)),
        Ok(None) => Err(in_use_error().into()),
        Err(Error::Io(cause)) if cause.kind() == ErrorKind::Interrupted => Ok(None),
        Err(cause) => Err(cause),
    }
}

fn in_use_error() -> io::Error {
    io::Error::new(ErrorKind::AlreadyExists, "it already contains apps and keys")
}

/// Extracts the databases of a backup into a private directory and checks their integrity.
fn unpack(source: &File, into: &Path) -> Result<(), Error> {
    let names = sqlite::DATABASES.map(|(name, _)| name);
    archive::unpack(source, &names, |name| private::create_new(&into.join(name)))?;
    for (name, steps) in sqlite::DATABASES {
        sqlite::ensure_intact(&into.join(name), steps).map_err(|cause| with_file_name(name, cause))?;
    }
    Ok(())
}

/// Directories that were created for a restore, the deepest first. They are removed on drop, unless something is in
/// them.
struct CreatedDirs(Vec<PathBuf>);

impl CreatedDirs {
    fn create_all(dir: &Path) -> io::Result<Self> {
        let is_missing = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
        let missing = dir.ancestors().take_while(is_missing).map(Path::to_owned).collect();
        let made = Self(missing);
        private::create_dir_all(dir)?;
        Ok(made)
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for CreatedDirs {
    fn drop(&mut self) {
        for dir in &self.0 {
            // Best effort; one that is no longer empty belongs to somebody.
            let _ = fs::remove_dir(dir);
        }
    }
}

/// A directory for unfinished work, removed with everything in it on drop.
struct Draft {
    path: PathBuf,
}

impl Draft {
    fn beside(file: &Path) -> io::Result<Self> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let path = parent(file).join(format!(".{name}.{}.new", uuid::Uuid::now_v7().simple()));
        private::create_dir(&path)?;
        Ok(Self { path })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Best effort: whatever is left of it is of no use to anyone.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn parent(file: &Path) -> &Path {
    file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn with_file_name(name: &str, cause: Error) -> Error {
    let kind = match &cause {
        Error::Io(cause) => cause.kind(),
        Error::TooNew { .. } => return cause,
        _ => ErrorKind::Other,
    };
    Error::Io(io::Error::new(kind, format!("{name}: {cause}")))
}

/// A file's name is on disk once its directory is.
#[cfg(unix)]
fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// On other systems, directories cannot be opened as files.
#[cfg(not(unix))]
fn sync_dir(_dir: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Store;

    const NOW: Time = Time::from_unix_ms(1_795_176_000_000);

    fn store(dir: &Path) -> Store {
        Store::open(dir, NOW).unwrap()
    }

    fn kind(outcome: Result<impl std::fmt::Debug, Error>) -> ErrorKind {
        match outcome {
            Err(Error::Io(cause)) => cause.kind(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_interrupted_or_refused_backup_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (data, file) = (dir.path().join("data"), dir.path().join("out/backup"));
        fs::create_dir(dir.path().join("out")).unwrap();
        assert_eq!(kind(backup(&data, &file, false, NOW, &|| true)), ErrorKind::NotFound);
        let _in_use = store(&data);
        assert!(backup(&data, &file, false, NOW, &|| false).unwrap().is_none());
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 0);
        assert!(backup(&data, &file, false, NOW, &|| true).unwrap().is_some());
        assert_eq!(kind(backup(&data, &file, false, NOW, &|| true)), ErrorKind::AlreadyExists);
        assert!(backup(&data, &file, true, NOW, &|| true).unwrap().is_some());
        assert_eq!(kind(backup(&data, dir.path(), true, NOW, &|| true)), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_created_meanwhile_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (data, file) = (dir.path().join("data"), dir.path().join("backup"));
        let _in_use = store(&data);
        let get_there_first = || fs::write(&file, "theirs").is_ok();
        assert_eq!(kind(backup(&data, &file, false, NOW, &get_there_first)), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
        assert!(backup(&data, &file, true, NOW, &get_there_first).unwrap().is_some());
        restore(&file, &dir.path().join("new")).unwrap();
    }

    #[test]
    fn a_database_created_meanwhile_is_kept_and_nothing_is_restored_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let (draft, data) = (dir.path().join("draft"), dir.path().join("data"));
        drop(store(&draft));
        for theirs in ["mk.db", "mk.db-wal", "ledger.db"] {
            fs::create_dir_all(&data).unwrap();
            fs::write(data.join(theirs), "theirs").unwrap();
            assert_eq!(place_databases(&draft, &data).unwrap_err().kind(), ErrorKind::AlreadyExists);
            assert_eq!(fs::read_to_string(data.join(theirs)).unwrap(), "theirs");
            assert_eq!(fs::read_dir(&data).unwrap().count(), 1, "{theirs}");
            fs::remove_dir_all(&data).unwrap();
        }
        // A failure at the second file removes the first.
        fs::create_dir_all(&data).unwrap();
        fs::remove_file(draft.join("mk.db")).unwrap();
        assert_eq!(place_databases(&draft, &data).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(fs::read_dir(&data).unwrap().count(), 0);
    }

    #[test]
    fn an_interrupted_restore_leaves_nothing_that_a_server_starts_with() {
        let dir = tempfile::tempdir().unwrap();
        let (data, file, new) = (dir.path().join("data"), dir.path().join("backup"), dir.path().join("new"));
        let apps = store(&data).apps().unwrap();
        backup(&data, &file, false, NOW, &|| true).unwrap();
        fs::create_dir(&new).unwrap();
        fs::copy(data.join("ledger.db"), new.join("ledger.db")).unwrap();
        let must_be_refused = |how: &str| {
            let restored = restore(&file, &new);
            let told = [Store::open(&new, NOW).err().unwrap().to_string(), format!("{restored:?}")];
            assert_eq!(kind(restored), ErrorKind::AlreadyExists);
            let other = dir.path().join("other");
            assert!(backup(&new, &other, false, NOW, &|| true).is_err() && !other.exists());
            for told in told {
                assert!(told.contains(how) && told.contains("away and restore again"), "{told}");
            }
        };
        must_be_refused("there is ledger.db without mk.db");
        assert_eq!(fs::read_dir(&new).unwrap().count(), 1, "nothing was begun");
        // Without hard links, the name is claimed before there is anything in it.
        fs::write(new.join("mk.db"), "").unwrap();
        must_be_refused("there is ledger.db beside an empty mk.db");
        assert_eq!(fs::metadata(new.join("mk.db")).unwrap().len(), 0, "nothing was begun");
        fs::remove_file(new.join("mk.db")).unwrap();
        fs::remove_file(new.join("ledger.db")).unwrap();
        restore(&file, &new).unwrap();
        assert_eq!(store(&new).apps().unwrap(), apps);
        // A first start that was killed half way: there was nothing to lose yet.
        let begun = dir.path().join("begun");
        fs::create_dir(&begun).unwrap();
        fs::write(begun.join("mk.db"), "").unwrap();
        store(&begun);
    }

    #[test]
    fn only_an_intact_backup_is_restored_and_only_where_there_is_no_database() {
        let dir = tempfile::tempdir().unwrap();
        let (data, file, new) = (dir.path().join("data"), dir.path().join("backup"), dir.path().join("new"));
        let _in_use = store(&data);
        backup(&data, &file, false, NOW, &|| true).unwrap();
        assert_eq!(kind(restore(&file, &data)), ErrorKind::AlreadyExists);

        let whole = fs::read(&file).unwrap();
        let damaged = dir.path().join("damaged");
        let mut flipped = whole.clone();
        for byte in &mut flipped[5000..6000] {
            *byte ^= 0x55;
        }
        for bytes in [&whole[..whole.len() / 2], &b"no archive"[..], &[][..], &flipped] {
            fs::write(&damaged, bytes).unwrap();
            assert!(restore(&damaged, &new).is_err());
            assert!(!new.exists(), "{} bytes", bytes.len());
        }
        restore(&file, &new).unwrap();
        assert_eq!(store(&new).apps().unwrap(), store(&data).apps().unwrap());
    }

    #[test]
    fn an_archive_extracts_to_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["../mk.db", "/tmp/mk.db", "mk.db-wal", "dir/mk.db"] {
            let file = dir.path().join("foreign");
            let mut builder = tar::Builder::new(File::create(&file).unwrap());
            let mut header = tar::Header::new_gnu();
            header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(0);
            header.set_cksum();
            builder.append(&header, io::empty()).unwrap();
            builder.finish().unwrap();
            let new = dir.path().join("new");
            assert_eq!(kind(restore(&file, &new)), ErrorKind::InvalidData, "{name}");
            assert!(!new.exists(), "{name}");
        }
    }

    #[test]
    fn long_names_in_an_archive_are_not_read_into_memory() {
        let dir = tempfile::tempdir().unwrap();
        let (data, file) = (dir.path().join("data"), dir.path().join("backup"));
        let _in_use = store(&data);
        backup(&data, &file, false, NOW, &|| true).unwrap();
        let name = [&b"mk.db\0"[..], &[0; 10_000]].concat();
        for entry_type in [tar::EntryType::GNULongName, tar::EntryType::XHeader] {
            let mut builder = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(entry_type);
            header.set_size(name.len() as u64);
            header.set_cksum();
            builder.append(&header, &*name).unwrap();
            let mut prefixed = builder.get_ref().clone();
            prefixed.extend(fs::read(&file).unwrap());
            let foreign = dir.path().join("foreign");
            fs::write(&foreign, prefixed).unwrap();
            let new = dir.path().join("new");
            assert_eq!(kind(restore(&foreign, &new)), ErrorKind::InvalidData);
        }
    }
}
