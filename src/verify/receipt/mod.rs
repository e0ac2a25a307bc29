//! Receipts: all that is needed to recount a verification, and to say later who answered what.
//!
//! ```text
//! run ─ Recorder ─ Payload ─ seal (the server's key) ─ one line of text ─ open ─ recount
//! ```
//!
//! A receipt is a JSON Web Signature in its compact form (RFC 7515, Ed25519 by RFC 8037): what is signed are the very
//! bytes that are carried, so that nothing has to be put into a canonical form first, and any library for such
//! signatures can check it. What must hold: each byte of a receipt counts, and there is one way to write it; verdicts
//! are recounted by the code that counted them; what models wrote is kept as it came, or said to be shortened; a
//! verification without a receipt records nothing.

mod keys;
mod payload;
mod recorder;
mod recount;
mod seal;

pub use keys::{KeyError, PublicKey, SigningKey};
pub use payload::{Asked, ClaimRecord, Fingerprint, Payload, Prompts, Raw, SCHEMA, VoteRecord};
pub use recount::Uncounted;
pub use seal::{MAX_BYTES, OpenError, Receipt, open};

pub(super) use payload::{Task, sha256};
pub(super) use recorder::Recorder;
pub(super) use seal::seal;
