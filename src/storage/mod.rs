//! Storage: apps, keys, sessions, the audit log, the usage ledger, day counters and the verdict cache, behind one
//! [`Store`].
//!
//! By default these are two SQLite files in the data directory. `mk.db` holds what must never be lost (apps, keys,
//! sessions): every write is on disk before its call returns. `ledger.db` is written in batches (usage, day counters,
//! last uses of keys): `kill -9` loses at most a second of it, of calls under way as well (`queries::calls`). Two files
//! keep the ledger's writes off the keys' file and make "has a key changed?" a matter of one pragma
//! ([`Store::version`]). Several processes may have the same files open: a command line beside a running server is the
//! normal case.
//!
//! Where several machines share the data, a PostgreSQL database holds all of it (`postgres`). Queries are written once
//! for both databases (`queries`).
//!
//! Calls block: on files for microseconds (reads) or a disk flush (writes), on PostgreSQL for a network round trip.
//! Async callers read through [`Store::read_async`] and write on a blocking thread.

mod backup;
mod db;
mod error;
mod examination;
mod labels;
mod postgres;
mod queries;
mod rows;
mod sqlite;
mod store;
mod usage;

pub use backup::{Packed, backup, restore, restore_to_postgres};
pub use error::Error;
pub use examination::{Condition, Examination, Exposed};
pub use labels::{EndUser, Labels, MAX_LABEL_CHARS, kept};
pub use postgres::{DatabaseUrl, PostgresAddress, PostgresError, examine_postgres, is_empty_postgres};
pub use queries::{Credential, InvalidCredential, LAST_APP, Seed};
pub use rows::{
    Actor, AppChange, AppDeletion, AppRow, AttemptRow, AuditFilter, AuditRow, DayCount, FoundVerdict,
    KeyFilter, KeyHash, KeyLife, KeyRow, NamedKey, Names, Order, PageRequest, SessionRow, SubjectMonth,
    VerdictRow,
};
pub use sqlite::{examine, names};
pub use store::{ReadPurpose, Store};
pub use usage::{
    BudgetHolder, BudgetRow, CACHED, CallId, INTERRUPTED, KeyName, PossiblyDeletedApp, UsageCounts,
    UsageQuery, UsageSum,
};
