//! What an examination of the databases has found.

use std::path::PathBuf;

use super::error::Error;

/// The state of a data directory, found without changing anything in it.
#[derive(Debug, Default)]
pub struct Examination {
    /// Files and directories that users other than the owner can access.
    pub exposed: Vec<Exposed>,
    /// Free space for the owner in bytes; `None` if the system does not say.
    pub free_bytes: Option<u64>,
    /// The databases by file name, or why one cannot be used.
    pub databases: Vec<(&'static str, Result<Condition, Error>)>,
}

/// A file or directory that users other than the owner can access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposed {
    /// Where it is.
    pub path: PathBuf,
    /// Its mode bits.
    pub mode: u32,
    /// The mode bits it should have.
    pub proper: u32,
}

/// The condition of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The number of migrations that were applied to it, and the number that this program knows.
    pub schema: (i64, i64),
    /// A sentence for each kind of damage; empty if there is none.
    pub damage: Vec<String>,
    /// Whether the check covered all of it in the time it was given.
    pub is_complete: bool,
    /// Why it cannot be written to, if so.
    pub unwritable: Option<String>,
}
