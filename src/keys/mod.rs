//! Keys and the apps they belong to: making keys, recognising them, deciding whether one may pass; sessions of the
//! dashboard, which are made from keys, and the token by which the first console key is made.
//!
//! A key is `mk_<service>_<32 characters>`: 26 base62 characters from the operating system's generator (155 bits)
//! and 6 that are the CRC-32 of everything before them, so that a typo is refused without a look-up and leaked
//! keys can be recognised offline. Only its SHA-256 is stored; the full text exists once, in what [`mint()`] returns.
//! A plain hash is right here: 155 random bits cannot be guessed, however fast the hash.

mod addresses;
pub mod apps;
mod authenticate;
pub mod expiry;
mod find;
mod manage;
mod mint;
mod models;
pub mod sessions;
pub mod setup;
mod validate;

pub use authenticate::{Denied, authenticate, identify};
pub use find::{FindError, by_itself, find};
pub use manage::{ManageError, NewKey, create, record, records, rotate, spent, update};
pub use mint::{Minted, mint, service_of};
pub use models::may_use;
pub use validate::{MAX_APP_NAME_CHARS, MAX_KEY_NAME_CHARS, MAX_LIST_ENTRIES, MAX_PATTERN_CHARS};

use crate::api::console::KeyState;
use crate::clock::Time;
use crate::storage::KeyRow;

/// Where in its life a key is. One that is revoked and expired counts as revoked.
pub fn state_of(key: &KeyRow, now: Time) -> KeyState {
    if key.revoked_at.is_some() {
        return KeyState::Revoked;
    }
    let expired = key.expires_at.is_some_and(|at| at <= now);
    if expired { KeyState::Expired } else { KeyState::Active }
}
