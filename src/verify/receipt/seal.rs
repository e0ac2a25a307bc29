//! The form of a receipt: `HEADER.PAYLOAD.SIGNATURE`, each in base64url without padding (RFC 7515).
//!
//! There is one way to write a receipt, and every other is refused: the header is exactly what [`header`] makes for the
//! key that it names, base64 has no spare bits, and nothing but a line end may follow.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::keys::{PublicKey, SigningKey};
use super::payload::{Payload, SCHEMA};

/// The longest receipt that is read, in bytes. No server writes one that is half as long.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;

/// What a header is made of, around the id of the key.
const HEADER: (&str, &str) = (r#"{"alg":"EdDSA","typ":"mk.receipt/1","kid":""#, r#""}"#);

/// A receipt in one piece. `None` only if the payload cannot be written as JSON, which all can.
pub(in crate::verify) fn seal(payload: &Payload, key: &SigningKey) -> Option<String> {
    let payload = serde_json::to_vec(payload).ok()?;
    let mut receipt = URL_SAFE_NO_PAD.encode(header(&key.public().id()));
    receipt.reserve_exact(payload.len() * 4 / 3 + 100);
    receipt.push('.');
    URL_SAFE_NO_PAD.encode_string(payload, &mut receipt);
    let signature = key.sign(receipt.as_bytes());
    receipt.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut receipt);
    Some(receipt)
}

fn header(key_id: &str) -> String {
    [HEADER.0, key_id, HEADER.1].concat()
}

/// A receipt that is well formed. Whether it is genuine says [`Receipt::is_signed_by`] alone.
#[derive(Debug)]
pub struct Receipt<'a> {
    /// The key that it says it is signed by: 16 hexadecimal digits.
    pub key_id: String,
    /// What it says.
    pub payload: Payload,
    signed: &'a str,
    signature: Vec<u8>,
}

impl Receipt<'_> {
    /// Whether this key has signed it.
    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        key.id() == self.key_id && key.has_signed(self.signed.as_bytes(), &self.signature)
    }
}

/// Why a text is no receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It is longer than [`MAX_BYTES`].
    #[error("it is too long for a receipt")]
    TooLong,
    /// It is not of a receipt's form.
    #[error("it is not an mk receipt")]
    NotAReceipt,
    /// It has the form, and some of it was changed or lost.
    #[error("it was changed or cut off")]
    Damaged,
    /// It is of a later form than this version knows.
    #[error("it was written by a newer version of mk")]
    Unknown,
}

/// Reads a receipt; one line end may follow it.
///
/// # Errors
/// If it is not exactly what some server may have written.
pub fn open(text: &str) -> Result<Receipt<'_>, OpenError> {
    if text.len() > MAX_BYTES {
        return Err(OpenError::TooLong);
    }
    let text = text.strip_suffix('\n').unwrap_or(text);
    let (signed, signature) = text.rsplit_once('.').ok_or(OpenError::NotAReceipt)?;
    let (head, payload) = signed.split_once('.').ok_or(OpenError::NotAReceipt)?;
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| OpenError::Damaged);
    let head = decode(head).map_err(|_| OpenError::NotAReceipt)?;
    let head = std::str::from_utf8(&head).map_err(|_| OpenError::NotAReceipt)?;
    let key_id = head.strip_prefix(HEADER.0).and_then(|rest| rest.strip_suffix(HEADER.1));
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let key_id = key_id.filter(|id| id.len() == 16 && id.as_bytes().iter().all(is_hex));
    let key_id = key_id.ok_or(OpenError::NotAReceipt)?.to_owned();
    let (payload, signature) = (decode(payload)?, decode(signature)?);
    let payload: Payload = serde_json::from_slice(&payload).map_err(|_| OpenError::Damaged)?;
    if payload.schema != SCHEMA {
        return Err(OpenError::Unknown);
    }
    Ok(Receipt { key_id, payload, signed, signature })
}
