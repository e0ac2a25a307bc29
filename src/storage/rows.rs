//! The rows of the store, and what is asked of them and changed in them.

use std::borrow::Cow;
use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::{CallId, Labels};
use crate::api::Service;
use crate::api::console::{Channel, KeySettings};
use crate::clock::Time;
use crate::money::NanoUsd;

/// SHA-256 of a key's full text.
pub type KeyHash = [u8; 32];

/// The names in a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Of apps that are not deleted.
    pub apps: Vec<String>,
    /// Of keys that are not revoked.
    pub keys: Vec<NamedKey>,
}

/// A key as people tell it apart from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedKey {
    /// `key_…`.
    pub id: String,
    /// Given at creation.
    pub name: Option<String>,
    /// The key's last four characters.
    pub last4: String,
    /// What it is for.
    pub service: String,
}

/// An app's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppRow {
    /// `app_…`.
    pub id: String,
    /// Unique among apps that are not deleted.
    pub name: String,
    /// What it may spend in a calendar month (UTC).
    pub budget: Option<NanoUsd>,
    /// When it was made.
    pub created_at: Time,
}

/// How long a key is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLife {
    /// It is revoked, or does not exist.
    Ended,
    /// Until this time, or for ever.
    Until(Option<Time>),
}

/// A key's row: everything but the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// `key_…`.
    pub id: Arc<str>,
    /// Its app.
    pub app_id: Arc<str>,
    /// Its app's name.
    pub app_name: String,
    /// What it is for.
    pub service: Service,
    /// The key's last four characters.
    pub last4: String,
    /// When it was made.
    pub created_at: Time,
    /// Up to a minute behind. Only filled in by listings, not by look-ups for authentication.
    pub last_used_at: Option<Time>,
    /// It is refused from then on, for good.
    pub revoked_at: Option<Time>,
    /// The key that took its place when it was rotated. Only filled in by listings, like its last use.
    pub replaced_by: Option<Arc<str>>,
    /// What was set; the row can be asked for it directly.
    pub settings: KeySettings,
    /// The app's budget, which all keys of the app share.
    pub app_budget: Option<NanoUsd>,
}

impl Deref for KeyRow {
    type Target = KeySettings;

    fn deref(&self) -> &KeySettings {
        &self.settings
    }
}

impl DerefMut for KeyRow {
    fn deref_mut(&mut self) -> &mut KeySettings {
        &mut self.settings
    }
}

/// A dashboard session: everything but the content of its cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// SHA-256 of the cookie's content.
    pub hash: KeyHash,
    /// The console key that it was created with.
    pub key_id: String,
    /// When it was made.
    pub created_at: Time,
    /// It ends then at the latest.
    pub expires_at: Time,
    /// When it was last used; up to a minute behind.
    pub seen_at: Time,
}

/// Who makes a write, as the audit log records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The console key's id; `None` for the command line and the server itself.
    pub id: Option<String>,
    /// The key's name, or the machine's user at the command line.
    pub name: Option<String>,
    /// Through what it acts.
    pub channel: Channel,
    /// The address it acts from.
    pub address: Option<IpAddr>,
    /// The request it acts in.
    pub request_id: Option<String>,
}

impl Default for Actor {
    fn default() -> Self {
        Self { id: None, name: None, channel: Channel::Server, address: None, request_id: None }
    }
}

/// Changes to an app; `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppChange {
    /// A new name.
    pub name: Option<String>,
    /// A new budget, or none.
    pub budget: Option<Option<NanoUsd>>,
}

/// The deletion of an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppDeletion {
    /// When it was deleted.
    pub at: Time,
    /// How many keys were revoked by this deletion.
    pub revoked_keys: u64,
}

/// A page of a list in the order of ids, which sort by time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// The page begins after the record with this id; empty for the first page.
    pub after: String,
    /// The maximum number of records.
    pub limit: u32,
}

/// The order of a list's pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As records were made.
    #[default]
    OldestFirst,
    /// The reverse.
    NewestFirst,
}

/// Which entries of the audit log are shown; `None` for all.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Only those about this app or key.
    pub object: Option<String>,
    /// Only those about something whose name at that time has this in it, in any letter case.
    pub object_name: Option<String>,
    /// Only those about this app and its keys.
    pub app: Option<String>,
    /// Only those of this console key.
    pub actor: Option<String>,
    /// Only those of a key or a user whose name has this in it, in any letter case.
    pub actor_name: Option<String>,
    /// Only those of this kind.
    pub action: Option<String>,
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditRow {
    /// `aud_…`.
    pub id: String,
    /// When it was done.
    pub at: Time,
    /// The console key that did it.
    pub actor: Option<String>,
    /// Its name, or the user at the command line.
    pub actor_name: Option<String>,
    /// Through what it was done.
    pub channel: Channel,
    /// Such as `key.created`.
    pub action: String,
    /// The id of what it was done to.
    pub object: String,
    /// Its name at that time.
    pub object_name: Option<String>,
    /// What was set.
    pub details: serde_json::Value,
    /// The address that it was done from.
    pub address: Option<String>,
    /// The request that it was done in.
    pub request_id: Option<String>,
}

/// Which keys a listing shows.
#[derive(Clone, Debug, Default)]
pub struct KeyFilter {
    /// Only of this app.
    pub app_id: Option<String>,
    /// Only for this service.
    pub service: Option<Service>,
    /// Revoked keys as well.
    pub revoked_too: bool,
}

/// One attempt at a model, as the ledger keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptRow {
    /// When it ended.
    pub at: Time,
    /// The caller's request.
    pub request_id: Arc<str>,
    /// The caller's app; empty for none.
    pub app_id: Arc<str>,
    /// The caller's key; empty for none.
    pub key_id: Arc<str>,
    /// The area it was made for.
    pub service: Service,
    /// By its configured identifier, provider first.
    pub model: Arc<str>,
    /// `ok`, `cancelled`, [`INTERRUPTED`](super::INTERRUPTED), [`CACHED`](super::CACHED) or a failure's code.
    pub outcome: Cow<'static, str>,
    /// Tokens of the prompt; estimated if the provider did not report them.
    pub prompt_tokens: u64,
    /// Tokens of the completion.
    pub completion_tokens: u64,
    /// The part of the prompt that was read from the provider's cache.
    pub cached_tokens: u64,
    /// The part of the prompt that was written to the provider's cache.
    pub cache_write_tokens: u64,
    /// `None` where the price is unknown.
    pub cost: Option<NanoUsd>,
    /// Whether tokens and cost are not what the provider has reported.
    pub is_estimated: bool,
    /// Time from the request to the end of the response.
    pub latency_ms: u64,
    /// Whether it is the first attempt of its request to be booked.
    pub is_first: bool,
    /// Whether it is the first attempt of its request at this model to be booked.
    pub is_first_of_model: bool,
    /// Whom it was for and what it was marked with; only summed, so none in what is read back.
    pub labels: Option<Arc<Labels>>,
    /// Its place in the journal of calls under way; `None` if its request has none there, and for what is read back.
    pub call: Option<Box<CallId>>,
}

/// A calendar month of a key, an app or an end user, or a day of an end user: the unit in which spending is summed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubjectMonth {
    /// A key's or an app's id, or what an end user's spending is kept under.
    pub subject: String,
    /// As [`Time::utc_month`] counts; for a day, as [`Time::utc_day`].
    pub month: i64,
}

/// How many requests a key has made on one day, or have been made for an end user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayCount {
    /// A key's id, or an end user's.
    pub key_id: String,
    /// Days since the epoch, UTC.
    pub day: i64,
    /// Admitted requests.
    pub used: u32,
}

/// An entry of the verdict cache. What it says is for those who wrote it to judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerdictRow {
    /// The app for whose requests it may be used.
    pub app_id: Arc<str>,
    /// SHA-256 of all that the content depends on.
    pub key: KeyHash,
    /// The domain of the verification, as its settings say how long entries are kept.
    pub domain: &'static str,
    /// When it was made.
    pub at: Time,
    /// What was found.
    pub content: Vec<u8>,
}

/// An entry of the verdict cache as it is found: when it was made, and its content.
pub type FoundVerdict = (Time, Vec<u8>);
