//! Secrets: a string whose `Debug` is redacted, and the ways one may come in.
//!
//! A secret arrives from a file, standard input, the environment or the credentials file; never from a flag's
//! value, which every process on the machine could read.

use std::io::{self, Read};
use std::path::Path;

pub use secrecy::{ExposeSecret, SecretString};

/// The longest secret anyone has reason to store; a larger file is a mistake.
const MAX_BYTES: u64 = 16 * 1024;

/// Reads a secret from a file, without the line end that editors leave.
pub fn from_file(path: &Path) -> io::Result<SecretString> {
    read(std::fs::File::open(path)?)
}

/// Reads a secret from a stream such as standard input.
pub fn read(source: impl Read) -> io::Result<SecretString> {
    let mut text = String::new();
    source.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is larger than 16 KiB; is this the right file?",
        ));
    }
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is empty"));
    }
    Ok(SecretString::from(trimmed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_end_goes_and_debug_shows_nothing() {
        let secret = read(&b"sk-something\r\n"[..]).unwrap();
        assert_eq!(secret.expose_secret(), "sk-something");
        assert!(!format!("{secret:?}").contains("something"));
    }

    #[test]
    fn empty_and_huge_are_refused() {
        assert!(read(&b" \n"[..]).is_err());
        assert!(read(io::repeat(b'x')).is_err());
    }
}
