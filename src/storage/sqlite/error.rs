//! Classification of SQLite errors, and hints that SQLite's own messages leave out.

use rusqlite::{ErrorCode, ffi};

/// A hint to append to the error's message; empty if the message says enough.
pub(in crate::storage) fn hint(cause: &rusqlite::Error) -> &'static str {
    let Some(failure) = cause.sqlite_error() else { return "" };
    // SQLite has a code for a full disk and reports everything else that stops a write as a disk I/O error.
    let is_write = matches!(
        failure.extended_code,
        ffi::SQLITE_IOERR_WRITE
            | ffi::SQLITE_IOERR_FSYNC
            | ffi::SQLITE_IOERR_DIR_FSYNC
            | ffi::SQLITE_IOERR_TRUNCATE
            | ffi::SQLITE_IOERR_SHMSIZE
            | ffi::SQLITE_IOERR_SHMOPEN
    );
    match failure.code {
        _ if is_write => " (a write failed: a disk fault, a quota, or a file size limit)",
        ErrorCode::DatabaseBusy => " (another process has been writing to it for too long)",
        ErrorCode::CannotOpen => " (its file or directory is not accessible, or too many files are open)",
        _ => "",
    }
}

/// Whether another connection was in the way for too long.
pub(in crate::storage) fn is_busy(cause: &rusqlite::Error) -> bool {
    matches!(cause.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Whether the file is corrupt or not a database.
pub(in crate::storage) fn is_corrupt(cause: &rusqlite::Error) -> bool {
    matches!(cause.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixable_errors_get_a_hint() {
        let of = |code| hint(&rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        assert!(of(ffi::SQLITE_IOERR_WRITE).contains("quota"));
        assert!(of(ffi::SQLITE_BUSY).contains("another process"));
        assert_eq!((of(ffi::SQLITE_FULL), of(ffi::SQLITE_IOERR_READ)), ("", ""));
    }
}
