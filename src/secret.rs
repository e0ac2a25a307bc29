//! Secrets: a string with a redacted `Debug`, and how to read one.
//!
//! A secret comes from a file, standard input, the environment or the credentials file; never from the value of a flag,
//! which every process on the machine could read.

use std::io::{self, Read};
use std::path::Path;

pub use secrecy::{ExposeSecret, SecretBox, SecretString};

/// Longer than any secret that makes sense to store; a larger file is a mistake.
const MAX_BYTES: u64 = 16 * 1024;

/// Reads a secret from a file, without the line ending that editors add.
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
    fn the_line_ending_is_trimmed_and_debug_is_redacted() {
        let secret = read(&b"sk-something\r\n"[..]).unwrap();
        assert_eq!(secret.expose_secret(), "sk-something");
        assert!(!format!("{secret:?}").contains("something"));
    }

    #[test]
    fn empty_and_huge_secrets_are_refused() {
        assert!(read(&b" \n"[..]).is_err());
        assert!(read(io::repeat(b'x')).is_err());
    }
}
