//! Storage: apps, keys, sessions, the usage ledger and day counters, behind one [`Store`].
//!
//! By itself two files in the data directory: `mk.db` holds what must never be lost (apps, keys, sessions; every write is
//! on disk before its call returns), `ledger.db` what is written in batches (usage, day counters, last use; at most a
//! second of it is lost to `kill -9`). Keeping them apart keeps the ledger's writes off the keys' file, and makes
//! "has a key changed?" a question of one pragma ([`Store::version`]). Several processes may hold the same files: a
//! command line beside a running server is the normal case.
//!
//! Where several machines share it, a PostgreSQL database holds all of it (`postgres`). What is asked is written once
//! for both (`queries`).
//!
//! Calls block: of files for microseconds (reads) or a disk flush (writes), of PostgreSQL for a way over the network. Async
//! callers read by [`Store::ask`], and write on a blocking thread.

mod archive;
mod backup;
mod carry;
mod db;
mod explain;
mod postgres;
mod queries;
mod sqlite;
mod store;
mod usage;

pub use backup::{Packed, backup, restore, restore_to_postgres};
pub use postgres::{
    DatabaseUrl, Failure as PostgresFailure, PostgresAddress, examine_postgres, is_empty_postgres,
};
pub use queries::{LAST_APP, Lapsed, Warrant};
pub use sqlite::examine;
pub use store::Store;
pub use usage::{AppOnceMade, BudgetHolder, BudgetRow, KeyName, UsageCounts, UsageQuery, UsageSum};

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::api::Service;
use crate::api::console::Channel;
use crate::clock::Time;
use crate::money::NanoUsd;

/// SHA-256 of a key's full text.
pub type KeyHash = [u8; 32];

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
    /// Given at creation.
    pub name: Option<String>,
    /// The key's last four characters.
    pub last4: String,
    /// When it was made.
    pub created_at: Time,
    /// From when on it is refused.
    pub expires_at: Option<Time>,
    /// At most a minute late. Only filled by listings, not by look-ups for authentication.
    pub last_used_at: Option<Time>,
    /// Since when it is refused for ever.
    pub revoked_at: Option<Time>,
    /// Own limit in any 60 seconds; 0 is unlimited, `None` the server's.
    pub per_minute: Option<u32>,
    /// Own limit in a UTC day; 0 is unlimited, `None` the server's.
    pub per_day: Option<u32>,
    /// Patterns of models it may use; empty for all.
    pub models: Vec<String>,
    /// Networks (CIDR) it may be used from; empty for all.
    pub addresses: Vec<String>,
    /// What it may spend in a calendar month (UTC).
    pub budget: Option<NanoUsd>,
    /// Its app's, which all keys of the app share.
    pub app_budget: Option<NanoUsd>,
}

/// A session of the dashboard: everything but what its cookie holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// SHA-256 of what the cookie holds.
    pub hash: KeyHash,
    /// The console key that it was made from.
    pub key_id: String,
    /// When it was made.
    pub created_at: Time,
    /// It ends then, whatever happens.
    pub expires_at: Time,
    /// When it was last used, a minute late at most.
    pub seen_at: Time,
}

/// In whose name something is written: what the audit says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The console key's id; `None` for the command line and the server itself.
    pub id: Option<String>,
    /// The key's name, or the machine's user at the command line.
    pub name: Option<String>,
    /// The way by which it acts.
    pub channel: Channel,
    /// Where from.
    pub address: Option<IpAddr>,
    /// In which request.
    pub request_id: Option<String>,
}

impl Default for Actor {
    fn default() -> Self {
        Self { id: None, name: None, channel: Channel::Server, address: None, request_id: None }
    }
}

/// What a changed app gets; `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppChange {
    /// A new name.
    pub name: Option<String>,
    /// A new budget, or none.
    pub budget: Option<Option<NanoUsd>>,
}

/// An app that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// Since when.
    pub at: Time,
    /// How many keys were revoked by this deletion.
    pub revoked_keys: u64,
}

/// Which part of a list: by id, as ids sort by time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Behind the record with this id; empty for the beginning.
    pub after: String,
    /// At most so many.
    pub limit: u32,
}

/// What a changed key gets; `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyChange {
    /// A new name, or none.
    pub name: Option<Option<String>>,
    /// Another expiry, or none.
    pub expires_at: Option<Option<Time>>,
    /// Another limit in any 60 seconds, or the server's.
    pub per_minute: Option<Option<u32>>,
    /// Another limit in a UTC day, or the server's.
    pub per_day: Option<Option<u32>>,
    /// Other patterns of models; empty for all.
    pub models: Option<Vec<String>>,
    /// Other networks; empty for all.
    pub addresses: Option<Vec<String>>,
    /// Another budget, or none.
    pub budget: Option<Option<NanoUsd>>,
}

/// Which entries of the audit are shown; `None` for all.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// About this app or key.
    pub object: Option<String>,
    /// By this console key.
    pub actor: Option<String>,
    /// Of this kind.
    pub action: Option<String>,
}

/// An entry of the audit.
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
    /// By which way.
    pub channel: Channel,
    /// Such as `key.created`.
    pub action: String,
    /// To what.
    pub object: String,
    /// Its name at that time.
    pub object_name: Option<String>,
    /// What was set.
    pub details: serde_json::Value,
    /// Where from.
    pub address: Option<String>,
    /// In which request.
    pub request_id: Option<String>,
}

/// Which keys a listing shows.
#[derive(Clone, Debug, Default)]
pub struct KeyFilter {
    /// Only of this app.
    pub app_id: Option<String>,
    /// Only for this service.
    pub service: Option<Service>,
    /// Also those that are revoked.
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
    /// `ok`, `cancelled` or a failure's code.
    pub outcome: Cow<'static, str>,
    /// Of the prompt; estimated if the provider did not say.
    pub prompt_tokens: u64,
    /// Of the completion.
    pub completion_tokens: u64,
    /// `None` where the price is unknown.
    pub cost: Option<NanoUsd>,
    /// From request to end.
    pub latency_ms: u64,
    /// Whether no other attempt of its request was booked before.
    pub is_first: bool,
    /// Whether no other attempt of its request at this model was booked before.
    pub is_first_of_model: bool,
}

/// One calendar month of a key or an app: what spending is summed by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MonthOf {
    /// A key's or an app's id.
    pub subject: String,
    /// As [`Time::utc_month`] counts.
    pub month: i64,
}

/// How many requests a subject has made on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayCount {
    /// A key's id.
    pub key_id: String,
    /// Days since the epoch, UTC.
    pub day: i64,
    /// Admitted requests.
    pub used: u32,
}

/// What was found of a data directory, without changing anything in it.
#[derive(Debug, Default)]
pub struct Examination {
    /// What others than the owner have access to, by its path.
    pub exposed: Vec<Exposed>,
    /// What is left for the owner to write, in bytes; `None` where the system does not tell.
    pub free_bytes: Option<u64>,
    /// The databases by their files' names, or why one cannot be used.
    pub databases: Vec<(&'static str, Result<Condition, Error>)>,
}

/// A file or directory that others have access to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposed {
    /// Where it is.
    pub path: PathBuf,
    /// The bits of its mode.
    pub mode: u32,
    /// Those that it should have.
    pub proper: u32,
}

/// The condition of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// How many steps its tables have taken, and how many this program knows.
    pub schema: (i64, i64),
    /// What is damaged, a sentence each; empty if nothing is.
    pub damage: Vec<String>,
    /// Whether all of it was looked at in the time that was given.
    pub is_complete: bool,
    /// Why nothing can be written to it, if so.
    pub unwritable: Option<String>,
}

/// Why storage did not do what it was asked.
#[derive(Debug)]
pub enum Error {
    /// No such app or key.
    NotFound,
    /// What is there already forbids it: a name that is taken, a key that has ended, the last of its kind. Says which.
    Conflict(&'static str),
    /// What the writer has come with has ended meanwhile.
    Lapsed(Lapsed),
    /// SQLite refused or could not do it.
    Unavailable(rusqlite::Error),
    /// PostgreSQL refused or could not do it, or cannot be reached.
    Remote(PostgresFailure),
    /// The files cannot be made or opened; with the file's name where it is not the directory itself.
    Io(std::io::Error),
    /// Written by a later version of this program.
    TooNew {
        /// The file's version.
        found: i64,
        /// The latest that this program knows.
        known: i64,
    },
}

impl Error {
    /// Whether another process was in the way, which may be over soon.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::Unavailable(cause) => explain::is_busy(cause),
            Self::Remote(cause) => cause.is_busy(),
            _ => false,
        }
    }

    /// Why, without saying that it is a database which cannot be used: to stand behind which one that is.
    pub fn reason(&self) -> String {
        match self {
            Self::Unavailable(cause) => format!("{cause}{}", explain::more(cause)),
            Self::Remote(cause) => cause.to_string(),
            other => other.to_string(),
        }
    }

    /// Whether a database over the network could not be reached, or not in time.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Remote(cause) if cause.is_away())
    }

    /// Whether a database over the network may do the same a little later.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Remote(cause) if cause.may_pass())
    }

    /// Whether a database is no database any more, or only a part of one.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Unavailable(cause) => explain::is_damage(cause),
            Self::Io(cause) => cause.kind() == std::io::ErrorKind::InvalidData,
            _ => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("not found"),
            Self::Conflict(what) => f.write_str(what),
            Self::Lapsed(how) => how.fmt(f),
            Self::Unavailable(_) | Self::Remote(_) => {
                write!(f, "the database cannot be used: {}", self.reason())
            }
            Self::Io(cause) => cause.fmt(f),
            Self::TooNew { found, known } => write!(
                f,
                "the database was written by a later version (schema {found}; this version knows {known}); update mk"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unavailable(cause) => Some(cause),
            Self::Remote(cause) => Some(cause),
            Self::Io(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(cause: rusqlite::Error) -> Self {
        Self::Unavailable(cause)
    }
}

impl From<std::io::Error> for Error {
    fn from(cause: std::io::Error) -> Self {
        Self::Io(cause)
    }
}
