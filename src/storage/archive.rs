//! One file that holds the databases: a tar archive, which every system can look into. Its last entry has their
//! checksums, in the form of `sha256sum`, as a database does not notice by itself that a bit has turned.
//!
//! An archive is foreign when it comes back: only regular files of the expected names are taken out of it, each once,
//! and never under a path that it names.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use tar::{Archive, Builder, Entry, EntryType, Header};

use crate::clock::Time;

/// The name of the checksums.
const SUMS: &str = "SHA256SUMS";

/// Those of a handful of files take a fraction of it.
const MAX_SUMS_BYTES: u64 = 4096;

/// Writes files of `dir` into `archive`, and tells their sizes in bytes.
pub(super) fn pack(
    dir: &Path,
    names: &[&'static str],
    archive: &File,
    now: Time,
) -> io::Result<Vec<(&'static str, u64)>> {
    let mut builder = Builder::new(archive);
    let (mut packed, mut sums) = (Vec::new(), Sums::default());
    for name in names {
        let file = File::open(dir.join(name))?;
        let size = file.metadata()?.len();
        let mut content = Hashing { inner: BufReader::new(file).take(size), hash: Sha256::new() };
        builder.append_data(&mut header(size, now), name, &mut content)?;
        sums.add(name, content.hash);
        packed.push((*name, size));
    }
    let size = u64::try_from(sums.0.len()).unwrap_or(u64::MAX);
    builder.append_data(&mut header(size, now), SUMS, sums.0.as_bytes())?;
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

/// Takes the files of these names out of `archive`, in this order, each into what `create` makes for it.
///
/// # Errors
/// Of kind [`io::ErrorKind::InvalidData`] if it holds something else, not all of them, or not what was put in.
pub(super) fn unpack<W: Write>(
    archive: &File,
    names: &[&'static str],
    mut create: impl FnMut(&'static str) -> io::Result<W>,
) -> io::Result<()> {
    let mut archive = Archive::new(BufReader::new(archive));
    // Raw, as extensions of the format would be read into memory whole, and may change what an entry says.
    let mut entries = archive.entries()?.raw(true);
    let mut sums = Sums::default();
    for name in names {
        let mut entry = named(entries.next(), name)?;
        let size = entry.size();
        let mut file = create(name)?;
        let mut content = Hashing { inner: &mut entry, hash: Sha256::new() };
        if io::copy(&mut content, &mut file)? != size {
            return Err(invalid("it ends too early"));
        }
        file.flush()?;
        sums.add(name, content.hash);
    }
    let mut expected = String::new();
    named(entries.next(), SUMS)?
        .take(MAX_SUMS_BYTES)
        .read_to_string(&mut expected)
        .map_err(|_| stranger())?;
    if entries.next().is_some() {
        return Err(stranger());
    }
    if expected == sums.0 { Ok(()) } else { Err(invalid("it is damaged: the checksums differ")) }
}

/// The next entry, which must be a file of this name.
fn named<'a, R: Read>(entry: Option<io::Result<Entry<'a, R>>>, name: &str) -> io::Result<Entry<'a, R>> {
    let entry = entry.ok_or_else(stranger)?.map_err(|_| stranger())?;
    let is_it = entry.header().entry_type() == EntryType::Regular && *entry.path_bytes() == *name.as_bytes();
    if is_it { Ok(entry) } else { Err(stranger()) }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn stranger() -> io::Error {
    invalid("it is no whole backup of mk")
}

/// Checksums, a line a file.
#[derive(Default)]
struct Sums(String);

impl Sums {
    fn add(&mut self, name: &str, hash: Sha256) {
        for byte in hash.finalize() {
            // Memory takes every write.
            let _ = write!(self.0, "{byte:02x}");
        }
        self.0.extend(["  ", name, "\n"]);
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
