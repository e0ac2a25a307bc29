//! Errors of PostgreSQL, classified, and in words for an operator.

use std::error::Error as StdError;
use std::fmt;
use std::io::{self, ErrorKind};

use deadpool_postgres::{HookError, PoolError};
use tokio_postgres::error::SqlState;

use crate::os_error;

/// How much of a server's message is shown.
const MAX_CHARS: usize = 500;

/// Errors after which a pooled connection must be closed: its prepared statements are stale, or it leads to a read-only
/// server.
const INVALIDATING: [&SqlState; 4] = [
    &SqlState::FEATURE_NOT_SUPPORTED,
    &SqlState::INVALID_SQL_STATEMENT_NAME,
    &SqlState::DUPLICATE_PSTATEMENT,
    &SqlState::READ_ONLY_SQL_TRANSACTION,
];

/// Errors of a server that is currently unavailable.
const UNAVAILABLE: [&SqlState; 4] = [
    &SqlState::ADMIN_SHUTDOWN,
    &SqlState::CRASH_SHUTDOWN,
    &SqlState::CANNOT_CONNECT_NOW,
    &SqlState::TOO_MANY_CONNECTIONS,
];

/// Error classes that describe the server's state rather than the statement: its connections, being read-only (as
/// during a failover), conflicting transactions, resources, intervention by an administrator, the system below it.
const TRANSIENT_CLASSES: [&str; 7] = ["08", "25", "40", "53", "55", "57", "58"];

/// Explanations, by a part of the library's message.
const EXPLANATIONS: [(&str, &str); 5] = [
    (
        "does not allow writes",
        "it is read-only: it is a standby of another server, or configured as read-only",
    ),
    (
        "UnknownIssuer",
        "its certificate is not signed by a trusted authority; name the authority with sslrootcert=/PATH",
    ),
    ("NotValidForName", "its certificate is for another name"),
    (
        "CaUsedAsEndEntity",
        "its certificate is that of an authority, not of a server; it needs one with basicConstraints=CA:FALSE",
    ),
    ("certificate expired", "its certificate has expired; or is this machine's clock wrong?"),
];

/// Why a call to PostgreSQL failed.
#[derive(Debug)]
pub enum PostgresError {
    /// The server refused, cannot be reached, or sent something that is not understood.
    Client(tokio_postgres::Error),
    /// The server has not responded in time.
    Timeout,
    /// The database cannot be used at all.
    Unusable(String),
}

impl PostgresError {
    /// Whether another transaction was in the way, or the server is overloaded.
    pub(in crate::storage) fn is_busy(&self) -> bool {
        match self {
            Self::Client(cause) => {
                matches!(cause.code(), Some(&(SqlState::LOCK_NOT_AVAILABLE | SqlState::QUERY_CANCELED)))
            }
            Self::Timeout => true,
            Self::Unusable(_) => false,
        }
    }

    /// Whether no server was reached that could have done it.
    pub(in crate::storage) fn is_unreachable(&self) -> bool {
        match self {
            Self::Client(cause) => match cause.code() {
                Some(code) => UNAVAILABLE.contains(&code),
                None => cause.is_closed() || is_transport_failure(cause),
            },
            Self::Timeout => true,
            Self::Unusable(_) => false,
        }
    }

    /// Whether a retry a little later may succeed.
    pub(in crate::storage) fn is_transient(&self) -> bool {
        match self {
            Self::Client(cause) => match cause.code() {
                Some(code) => code.code().get(..2).is_some_and(|class| TRANSIENT_CLASSES.contains(&class)),
                None => {
                    cause.is_closed()
                        || io_error_kind(cause).is_some_and(|kind| kind != ErrorKind::InvalidData)
                }
            },
            Self::Timeout => true,
            Self::Unusable(_) => false,
        }
    }

    /// Whether the connection must not be reused: a late response may arrive that another call would take for its own,
    /// or its prepared statements no longer fit.
    pub(super) fn invalidates_connection(&self) -> bool {
        match self {
            Self::Client(cause) => cause.code().is_none_or(|code| INVALIDATING.contains(&code)),
            Self::Timeout | Self::Unusable(_) => true,
        }
    }

    /// Whether a unique constraint was violated.
    pub(in crate::storage) fn is_unique_violation(&self) -> bool {
        matches!(self, Self::Client(cause) if cause.code() == Some(&SqlState::UNIQUE_VIOLATION))
    }
}

impl fmt::Display for PostgresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(cause) => {
                let message = cause
                    .as_db_error()
                    .map_or_else(|| with_root_cause(cause), |db_error| db_error.message().to_owned());
                if let Some((_, words)) = EXPLANATIONS.iter().find(|(name, _)| message.contains(name)) {
                    return f.write_str(words);
                }
                // Untrusted text goes to logs and terminals.
                let plain = |c: char| if c.is_control() { ' ' } else { c };
                let message: String =
                    os_error::without_numbers(message).chars().map(plain).take(MAX_CHARS).collect();
                f.write_str(&message)
            }
            Self::Timeout => f.write_str("it has not answered in time"),
            Self::Unusable(why) => f.write_str(why),
        }
    }
}

impl StdError for PostgresError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Client(cause) => Some(cause),
            _ => None,
        }
    }
}

/// Whether the transport failed, rather than the server at its other end.
fn is_transport_failure(error: &dyn StdError) -> bool {
    // These come from TLS and from a standby server.
    io_error_kind(error)
        .is_some_and(|kind| !matches!(kind, ErrorKind::InvalidData | ErrorKind::PermissionDenied))
}

/// The kind of I/O error below this one, if there is one: of the transport, or of the server it led to.
fn io_error_kind(error: &dyn StdError) -> Option<ErrorKind> {
    let mut below = error.source();
    while let Some(cause) = below {
        if let Some(carried) = cause.downcast_ref::<io::Error>() {
            return Some(carried.kind());
        }
        below = cause.source();
    }
    None
}

/// The error with its root cause.
fn with_root_cause(error: &dyn StdError) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let (message, cause) = (error.to_string(), cause.to_string());
    if message == cause { message } else { format!("{message}: {cause}") }
}

impl From<PoolError> for PostgresError {
    fn from(cause: PoolError) -> Self {
        match cause {
            PoolError::Backend(cause) | PoolError::PostCreateHook(HookError::Backend(cause)) => {
                Self::Client(cause)
            }
            PoolError::Timeout(_) => Self::Timeout,
            other => Self::Unusable(other.to_string()),
        }
    }
}
