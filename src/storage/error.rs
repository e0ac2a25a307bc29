//! Why the store could not do what was asked.

use super::{InvalidCredential, PostgresError, sqlite};

/// Why a storage operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such app or key.
    #[error("not found")]
    NotFound,
    /// It conflicts with what is stored: a name that is taken, a key that has ended, the last of its kind. Says which.
    #[error("{0}")]
    Conflict(&'static str),
    /// The credential behind the write has ended since the request began.
    #[error("{0}")]
    InvalidCredential(InvalidCredential),
    /// SQLite refused or failed.
    #[error("the database is unavailable: {}", self.reason())]
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL refused or failed, or cannot be reached.
    #[error("the database is unavailable: {}", self.reason())]
    Postgres(#[source] PostgresError),
    /// The files cannot be created or opened; names the file unless it is the directory itself.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Written by a later version of this program.
    #[error(
        "the database was written by a newer version (schema {found}; this version supports {known}); update mk"
    )]
    TooNew {
        /// The file's version.
        found: i64,
        /// The latest that this program knows.
        known: i64,
    },
}

impl Error {
    /// Whether another process was in the way, so that a retry may succeed.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::Sqlite(cause) => sqlite::error::is_busy(cause),
            Self::Postgres(cause) => cause.is_busy(),
            _ => false,
        }
    }

    /// The cause alone, without "the database cannot be used": for texts that name the database themselves.
    pub fn reason(&self) -> String {
        match self {
            Self::Sqlite(cause) => format!("{cause}{}", sqlite::error::hint(cause)),
            Self::Postgres(cause) => cause.to_string(),
            other => other.to_string(),
        }
    }

    /// Whether a remote database could not be reached, or not in time.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Postgres(cause) if cause.is_unreachable())
    }

    /// Whether a remote database may accept the same operation a little later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Postgres(cause) if cause.is_transient())
    }

    /// Whether a database file is corrupt or truncated.
    pub fn is_corrupt(&self) -> bool {
        match self {
            Self::Sqlite(cause) => sqlite::error::is_corrupt(cause),
            Self::Io(cause) => cause.kind() == std::io::ErrorKind::InvalidData,
            _ => false,
        }
    }
}
