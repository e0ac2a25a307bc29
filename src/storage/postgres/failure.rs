//! Why a PostgreSQL database did not do what it was asked, in words for an operator.

use std::error::Error as StdError;
use std::fmt;
use std::io::{self, ErrorKind};

use deadpool_postgres::{HookError, PoolError};
use tokio_postgres::error::SqlState;

use crate::reason;

/// So much is told of what a server says.
const MOST_CHARS: usize = 500;

/// Errors after which a pooled connection has to be closed: its compiled statements are stale, or it leads to a server
/// that is only read.
const SPOILING_CONNECTION: [&SqlState; 4] = [
    &SqlState::FEATURE_NOT_SUPPORTED,
    &SqlState::INVALID_SQL_STATEMENT_NAME,
    &SqlState::DUPLICATE_PSTATEMENT,
    &SqlState::READ_ONLY_SQL_TRANSACTION,
];

/// What a server says that cannot be used now.
const AWAY: [&SqlState; 4] = [
    &SqlState::ADMIN_SHUTDOWN,
    &SqlState::CRASH_SHUTDOWN,
    &SqlState::CANNOT_CONNECT_NOW,
    &SqlState::TOO_MANY_CONNECTIONS,
];

/// Classes of errors that are of the server's condition, and not of what it was asked: its connections, that it can
/// only be read (as while another one takes its place), transactions that were in each other's way, room, what it is
/// told by those who look after it, the system below it.
const PASSING: [&str; 7] = ["08", "25", "40", "53", "55", "57", "58"];

/// What is wrong, by what the libraries call it.
const IN_WORDS: [(&str, &str); 5] = [
    (
        "does not allow writes",
        "it can only be read: it stands by for another one, or is told to be read-only",
    ),
    (
        "UnknownIssuer",
        "its certificate is signed by nobody who is trusted here; sslrootcert=/PATH names an authority to trust",
    ),
    ("NotValidForName", "its certificate is for another name"),
    (
        "CaUsedAsEndEntity",
        "its certificate is one of an authority, not of a server; it needs one that is made with basicConstraints=CA:FALSE",
    ),
    ("certificate expired", "its certificate has expired; or is this machine's clock wrong?"),
];

/// Why it did not.
#[derive(Debug)]
pub enum Failure {
    /// The server refused, cannot be reached, or gave what is not understood.
    Refused(tokio_postgres::Error),
    /// It has not answered in time.
    TooLong,
    /// There is no way to ask it.
    Unusable(String),
}

impl Failure {
    /// Whether somebody was in the way, or the server has much to do.
    pub(in crate::storage) fn is_busy(&self) -> bool {
        match self {
            Self::Refused(cause) => {
                matches!(cause.code(), Some(&(SqlState::LOCK_NOT_AVAILABLE | SqlState::QUERY_CANCELED)))
            }
            Self::TooLong => true,
            Self::Unusable(_) => false,
        }
    }

    /// Whether nobody was reached who could have done it.
    pub(in crate::storage) fn is_away(&self) -> bool {
        match self {
            Self::Refused(cause) => match cause.code() {
                Some(code) => AWAY.contains(&code),
                None => cause.is_closed() || is_of_the_way(cause),
            },
            Self::TooLong => true,
            Self::Unusable(_) => false,
        }
    }

    /// Whether the same may be done a little later.
    pub(in crate::storage) fn may_pass(&self) -> bool {
        match self {
            Self::Refused(cause) => match cause.code() {
                Some(code) => code.code().get(..2).is_some_and(|class| PASSING.contains(&class)),
                None => {
                    cause.is_closed()
                        || carrier_fault(cause).is_some_and(|kind| kind != ErrorKind::InvalidData)
                }
            },
            Self::TooLong => true,
            Self::Unusable(_) => false,
        }
    }

    /// Whether the connection is not to be used again: an answer may come yet that somebody else would wait for, or what was
    /// compiled on it does not fit any more.
    pub(super) fn spoils_connection(&self) -> bool {
        match self {
            Self::Refused(cause) => cause.code().is_none_or(|code| SPOILING_CONNECTION.contains(&code)),
            Self::TooLong | Self::Unusable(_) => true,
        }
    }

    /// Whether something unique is there already.
    pub(in crate::storage) fn is_taken(&self) -> bool {
        matches!(self, Self::Refused(cause) if cause.code() == Some(&SqlState::UNIQUE_VIOLATION))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(cause) => {
                let told =
                    cause.as_db_error().map_or_else(|| innermost(cause), |said| said.message().to_owned());
                if let Some((_, words)) = IN_WORDS.iter().find(|(name, _)| told.contains(name)) {
                    return f.write_str(words);
                }
                // What a stranger says goes to logs and terminals.
                let plain = |c: char| if c.is_control() { ' ' } else { c };
                let told: String =
                    reason::without_numbers(told).chars().map(plain).take(MOST_CHARS).collect();
                f.write_str(&told)
            }
            Self::TooLong => f.write_str("it has not answered in time"),
            Self::Unusable(why) => f.write_str(why),
        }
    }
}

impl StdError for Failure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Refused(cause) => Some(cause),
            _ => None,
        }
    }
}

/// Whether what carries the connection failed, and not who answers.
fn is_of_the_way(error: &dyn StdError) -> bool {
    // What TLS found wrong, and what stands by for another one.
    carrier_fault(error)
        .is_some_and(|kind| !matches!(kind, ErrorKind::InvalidData | ErrorKind::PermissionDenied))
}

/// What is wrong with what carries the connection, or with whom it led to.
fn carrier_fault(error: &dyn StdError) -> Option<ErrorKind> {
    let mut below = error.source();
    while let Some(cause) = below {
        if let Some(carried) = cause.downcast_ref::<io::Error>() {
            return Some(carried.kind());
        }
        below = cause.source();
    }
    None
}

/// The error, and what lies at the bottom of it.
fn innermost(error: &dyn StdError) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let (told, cause) = (error.to_string(), cause.to_string());
    if told == cause { told } else { format!("{told}: {cause}") }
}

impl From<PoolError> for Failure {
    fn from(cause: PoolError) -> Self {
        match cause {
            PoolError::Backend(cause) | PoolError::PostCreateHook(HookError::Backend(cause)) => {
                Self::Refused(cause)
            }
            PoolError::Timeout(_) => Self::TooLong,
            other => Self::Unusable(other.to_string()),
        }
    }
}
