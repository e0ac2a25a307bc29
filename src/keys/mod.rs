//! Keys and the apps they belong to: creating keys, recognising them, deciding whether one is admitted; dashboard
//! sessions, which are created with a console key; and the token that creates the first console key.
//!
//! A key is `mk_<service>_<32 characters>`: 26 base62 characters from the operating system's generator (155 bits) and 6
//! that are the CRC-32 of everything before them, so that a typo is refused without a look-up and leaked keys can be
//! recognised offline. Only its SHA-256 is stored; the full text exists once, in what [`mint()`] returns. A plain hash
//! is enough: 155 random bits cannot be guessed, however fast the hash.

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
pub use find::{FindError, by_full_text, find};
pub use manage::{ManageError, NewKey, Spent, create, record, records, rotate, spending, spent, update};
pub use mint::{Minted, contains_key, mint, service_of};
pub use models::{is_limited_to_models, may_use};
pub use validate::{MAX_APP_NAME_CHARS, MAX_KEY_NAME_CHARS, MAX_LIST_ENTRIES, MAX_PATTERN_CHARS};

use crate::api::console::KeyState;
use crate::clock::Time;
use crate::storage::KeyRow;

/// The state of a key at `now`. One that is both revoked and expired counts as revoked.
pub fn state_of(key: &KeyRow, now: Time) -> KeyState {
    if key.revoked_at.is_some() {
        return KeyState::Revoked;
    }
    let expired = key.expires_at.is_some_and(|at| at <= now);
    if expired { KeyState::Expired } else { KeyState::Active }
}
