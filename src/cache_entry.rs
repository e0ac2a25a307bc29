//! What caches in the store have in common: a key is SHA-256 over all that an entry depends on, and an entry is JSON
//! behind its checksum.
//!
//! The store is as foreign as a provider: a bit may have flipped, and a backup may come from anywhere. The checksum
//! covers the key, so that no entry passes for another. What is wrong anywhere is no entry.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// SHA-256 of all that an entry depends on.
pub type CacheKey = [u8; 32];

/// The bytes of a checksum.
const CHECKSUM_BYTES: usize = 32;

/// A key in the making: a hash of parts, each with its length before it, so that no two lists of parts are the same
/// bytes.
#[derive(Clone)]
pub struct KeyParts(Sha256);

impl KeyParts {
    /// Parts of entries of this form: changed when the entries change, or what their keys mean.
    pub fn of(form: &str) -> Self {
        let mut parts = Self(Sha256::new());
        parts.text(form);
        parts
    }

    /// Adds a number.
    pub fn number(&mut self, number: u64) -> &mut Self {
        self.0.update(number.to_be_bytes());
        self
    }

    /// Adds a text, or any bytes.
    pub fn text(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        let bytes = text.as_ref();
        self.number(bytes.len() as u64);
        self.0.update(bytes);
        self
    }

    /// Adds a text that may be missing.
    pub fn optional(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            None => self.number(0),
            Some(text) => self.number(1).text(text),
        }
    }

    /// The key of all parts.
    pub fn key(self) -> CacheKey {
        self.0.finalize().into()
    }
}

/// An entry as it is kept; `None` if it cannot be written.
pub fn sealed(key: &CacheKey, entry: &impl Serialize) -> Option<Vec<u8>> {
    let json = serde_json::to_vec(entry).ok()?;
    Some([&checksum(key, &json), &*json].concat())
}

/// What was kept under this key, if it is whole.
pub fn unsealed<T: for<'de> Deserialize<'de>>(key: &CacheKey, content: &[u8]) -> Option<T> {
    let (seal, json) = content.split_at_checked(CHECKSUM_BYTES)?;
    if seal != checksum(key, json) {
        return None;
    }
    serde_json::from_slice(json).ok()
}

fn checksum(key: &CacheKey, json: &[u8]) -> [u8; CHECKSUM_BYTES] {
    Sha256::new_with_prefix(key).chain_update(json).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        let key = |parts: &[&str]| {
            let mut all = KeyParts::of("test");
            for part in parts {
                all.text(part);
            }
            all.key()
        };
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["ab", ""]), key(&["ab"]));
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
    }

    #[test]
    fn a_damaged_entry_is_none_and_one_of_another_key_too() {
        let kept = sealed(&[1; 32], &"text").unwrap();
        assert_eq!(unsealed::<String>(&[1; 32], &kept).as_deref(), Some("text"));
        assert_eq!(unsealed::<String>(&[2; 32], &kept), None);
        for at in 0..kept.len() {
            let mut damaged = kept.clone();
            damaged[at] ^= 4;
            assert_eq!(unsealed::<String>(&[1; 32], &damaged), None, "{at}");
            assert_eq!(unsealed::<String>(&[1; 32], &kept[..at]), None, "{at}");
        }
    }
}
