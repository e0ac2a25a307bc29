//! What SQLite leaves unsaid about a failure that an operator can do something about.

use rusqlite::{ErrorCode, ffi};

/// Words to follow the text of a failure; empty where that says enough.
pub(super) fn more(cause: &rusqlite::Error) -> &'static str {
    let Some(failure) = cause.sqlite_error() else { return "" };
    // SQLite tells a full disk apart, and calls everything else that stops a write an error of the disk.
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
        _ if is_write => " (a write failed: a fault of the disk, a quota, or a limit of file sizes)",
        ErrorCode::DatabaseBusy => " (another process has been writing to it for too long)",
        ErrorCode::CannotOpen => " (its file or directory may not be used, or too many files are open)",
        _ => "",
    }
}

/// Whether another connection was in the way for too long.
pub(super) fn is_busy(cause: &rusqlite::Error) -> bool {
    matches!(cause.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Whether the file does not hold what SQLite wrote.
pub(super) fn is_damage(cause: &rusqlite::Error) -> bool {
    matches!(cause.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_mended_is_explained() {
        let of = |code| more(&rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        assert!(of(ffi::SQLITE_IOERR_WRITE).contains("quota"));
        assert!(of(ffi::SQLITE_BUSY).contains("another process"));
        assert_eq!((of(ffi::SQLITE_FULL), of(ffi::SQLITE_IOERR_READ)), ("", ""));
    }
}
