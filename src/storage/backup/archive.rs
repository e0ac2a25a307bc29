//! The file format of backups: a tar archive of the databases, which every system can open. Its last entry holds their
//! checksums in the format of `sha256sum`, as a database does not notice a flipped bit by itself.
//!
//! An archive is untrusted when it is read back: only regular files with the expected names are extracted, each once,
//! and never to a path that the archive names.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use tar::{Archive, Builder, Entry, EntryType, Header};

use crate::clock::Time;
use crate::hex::hex;

/// The entry with the checksums.
const CHECKSUMS: &str = "SHA256SUMS";

/// The checksums of a handful of files take a fraction of this.
const MAX_CHECKSUMS_BYTES: u64 = 4096;

/// Writes files of `dir` into `archive` and returns their sizes in bytes.
pub(super) fn pack(
    dir: &Path,
    names: &[&'static str],
    archive: &File,
    now: Time,
) -> io::Result<Vec<(&'static str, u64)>> {
    let mut builder = Builder::new(archive);
    let (mut packed, mut checksums) = (Vec::new(), Checksums::default());
    for name in names {
        let file = File::open(dir.join(name))?;
        let size = file.metadata()?.len();
        let mut content = Hashing { inner: BufReader::new(file).take(size), hash: Sha256::new() };
        builder.append_data(&mut header(size, now), name, &mut content)?;
        checksums.add(name, content.hash);
        packed.push((*name, size));
    }
    let size = u64::try_from(checksums.0.len()).unwrap_or(u64::MAX);
    builder.append_data(&mut header(size, now), CHECKSUMS, checksums.0.as_bytes())?;
    builder.into_inner()?.sync_all()?;
    Ok(packed)
}

fn header(size: u64, now: Time) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o600);
    header.set_size(size);
    header.set_mtime(u64::try_from(now.unix_ms() / 1000).unwrap_or(0));
    header
}

/// Extracts the files of these names from `archive`, in this order, each into the writer that `create` returns for it.
///
/// # Errors
/// Of kind [`io::ErrorKind::InvalidData`] if it holds anything else, not all of them, or damaged content.
pub(super) fn unpack<W: Write>(
    archive: &File,
    names: &[&'static str],
    mut create: impl FnMut(&'static str) -> io::Result<W>,
) -> io::Result<()> {
    let mut archive = Archive::new(BufReader::new(archive));
    // Raw, as extensions of the format would be read into memory whole and may override an entry's header.
    let mut entries = archive.entries()?.raw(true);
    let mut checksums = Checksums::default();
    for name in names {
        let mut entry = expect_entry(entries.next(), name)?;
        let size = entry.size();
        let mut file = create(name)?;
        let mut content = Hashing { inner: &mut entry, hash: Sha256::new() };
        if io::copy(&mut content, &mut file)? != size {
            return Err(invalid("it ends too early"));
        }
        file.flush()?;
        checksums.add(name, content.hash);
    }
    let mut expected = String::new();
    expect_entry(entries.next(), CHECKSUMS)?
        .take(MAX_CHECKSUMS_BYTES)
        .read_to_string(&mut expected)
        .map_err(|_| not_a_backup())?;
    if entries.next().is_some() {
        return Err(not_a_backup());
    }
    if expected == checksums.0 { Ok(()) } else { Err(invalid("it is damaged: the checksums differ")) }
}

/// The next entry, which must be a file of this name.
fn expect_entry<'a, R: Read>(
    entry: Option<io::Result<Entry<'a, R>>>,
    name: &str,
) -> io::Result<Entry<'a, R>> {
    let entry = entry.ok_or_else(not_a_backup)?.map_err(|_| not_a_backup())?;
    let is_it = entry.header().entry_type() == EntryType::Regular && *entry.path_bytes() == *name.as_bytes();
    if is_it { Ok(entry) } else { Err(not_a_backup()) }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn not_a_backup() -> io::Error {
    invalid("it is not a complete mk backup")
}

/// Checksums, one line per file.
#[derive(Default)]
struct Checksums(String);

impl Checksums {
    fn add(&mut self, name: &str, hash: Sha256) {
        self.0.extend([&hex(&hash.finalize()), "  ", name, "\n"]);
    }
}

/// Hashes what passes through.
struct Hashing<R> {
    inner: R,
    hash: Sha256,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}
