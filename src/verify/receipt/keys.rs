//! The keys of receipts: Ed25519, as a seed that the server keeps, and a public key as PEM.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use sha2::{Digest, Sha256};

use crate::api::verify::ReceiptKey;
use crate::hex::hex;
use crate::secret::{ExposeSecret, SecretBox};

/// What comes before the 32 bytes of a key in its DER form (RFC 8410).
const DER_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const PEM_BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const PEM_END: &str = "-----END PUBLIC KEY-----";

/// Signs receipts. Its secret half never leaves it.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    public: PublicKey,
}

impl SigningKey {
    /// The key that this seed makes; `None` only if the library refuses it.
    pub fn from_seed(seed: &SecretBox<[u8; 32]>) -> Option<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.expose_secret()).ok()?;
        let public = PublicKey(pair.public_key().as_ref().try_into().ok()?);
        Some(Self { pair, public })
    }

    /// A new seed, from the operating system's generator.
    ///
    /// # Errors
    /// If the generator fails.
    pub fn fresh_seed() -> Result<SecretBox<[u8; 32]>, getrandom::Error> {
        let mut seed = Box::new([0; 32]);
        getrandom::fill(&mut *seed)?;
        Ok(SecretBox::new(seed))
    }

    /// Its public half.
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        self.pair.sign(bytes).as_ref().to_vec()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public.id())
    }
}

/// Checks receipts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

/// Why a text is no public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It has no `BEGIN PUBLIC KEY`.
    #[error("it is not a public key in PEM format")]
    NotPem,
    /// It is a public key of another kind than Ed25519, or damaged.
    #[error("it is not an Ed25519 public key")]
    NotEd25519,
}

impl PublicKey {
    /// Reads a PEM text as [`PublicKey::to_pem`] writes it; white space does not matter.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let (_, rest) = pem.split_once(PEM_BEGIN).ok_or(KeyError::NotPem)?;
        let (body, _) = rest.split_once(PEM_END).ok_or(KeyError::NotPem)?;
        let body: String = body.split_whitespace().collect();
        let der = STANDARD.decode(body).map_err(|_| KeyError::NotEd25519)?;
        let key = der.strip_prefix(&DER_PREFIX).and_then(|key| key.try_into().ok());
        key.map(Self).ok_or(KeyError::NotEd25519)
    }

    /// The key as PEM (`SubjectPublicKeyInfo`), with a line end, as OpenSSL and others read it.
    pub fn to_pem(&self) -> String {
        let body = STANDARD.encode([&DER_PREFIX[..], &self.0].concat());
        format!("{PEM_BEGIN}\n{body}\n{PEM_END}\n")
    }

    /// What receipts name the key by: the first 16 hexadecimal digits of its SHA-256.
    pub fn id(&self) -> String {
        hex(&Sha256::digest(self.0)[..8])
    }

    /// The key as the API and the command line give it.
    pub fn document(&self) -> ReceiptKey {
        ReceiptKey { key_id: self.id(), algorithm: "Ed25519".to_owned(), public_key: self.to_pem() }
    }

    pub(super) fn has_signed(&self, bytes: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0).verify(bytes, signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_key_is_read_as_it_is_written_and_a_secret_one_is_never_shown() {
        let seed = SecretBox::new(Box::new([7; 32]));
        let key = SigningKey::from_seed(&seed).unwrap();
        let pem = key.public().to_pem();
        assert_eq!(PublicKey::from_pem(&pem).unwrap(), *key.public());
        assert_eq!(PublicKey::from_pem(&pem.replace('\n', "\r\n")).unwrap(), *key.public());
        assert_eq!(format!("{key:?}"), format!("SigningKey({})", key.public().id()));
        let signature = key.sign(b"text");
        assert!(
            key.public().has_signed(b"text", &signature) && !key.public().has_signed(b"test", &signature)
        );
    }

    #[test]
    fn other_texts_are_no_keys() {
        assert_eq!(PublicKey::from_pem(""), Err(KeyError::NotPem));
        assert_eq!(PublicKey::from_pem(PEM_BEGIN), Err(KeyError::NotPem));
        for body in ["", "AAAA", "MCowBQYDK2VwAyEA", "ü"] {
            let pem = format!("{PEM_BEGIN}\n{body}\n{PEM_END}");
            assert_eq!(PublicKey::from_pem(&pem), Err(KeyError::NotEd25519));
        }
    }

    /// The first test of RFC 8032, section 7.1.
    #[test]
    fn signatures_are_those_of_the_standard() {
        let bytes = |hex: &str| -> Vec<u8> {
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
        };
        let seed = bytes("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
        let key = SigningKey::from_seed(&SecretBox::new(Box::new(seed.try_into().unwrap()))).unwrap();
        let public = bytes("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        assert_eq!(key.public().0.to_vec(), public);
        let expected = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";
        assert_eq!(key.sign(b""), bytes(expected));
    }
}
