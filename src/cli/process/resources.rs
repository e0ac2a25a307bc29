//! The limits that the system sets for this process: open files, and the size of files.
//!
//! Reaching one must be an ordinary error of the write or connection that met it, and never end the process; and
//! callers alone must not use up the descriptors that the databases and providers need.

use crate::server::Options;

/// Descriptors reserved for databases, shared connections to providers, and the log.
#[cfg(unix)]
const RESERVED_FILES: u64 = 128;
/// Descriptors that a caller may need: its connection, and one to a provider.
#[cfg(unix)]
const FILES_PER_CALLER: u64 = 2;

/// Makes a write beyond the file size limit (`ulimit -f`) fail with an error. By default it kills the process.
#[cfg(unix)]
pub(crate) fn survive_file_size_limit() {
    let ignored = std::sync::Arc::default();
    // If the signal cannot be caught, it acts as for any other program.
    let _ = signal_hook::flag::register(rustix::process::Signal::XFSZ.as_raw(), ignored);
}

/// Other systems have no such limit.
#[cfg(not(unix))]
pub(crate) fn survive_file_size_limit() {}

/// Raises the limit of open files as far as allowed, and caps the number of connections to what it suffices for.
#[cfg(unix)]
pub(crate) fn limit_connections(options: Options) -> Options {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // The soft limit is meant for programs that cannot handle more; if it cannot be raised, it stays as it is.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let Some(files) = getrlimit(Resource::Nofile).current else { return options };
    let capacity = connections(files);
    if capacity < FEW_CONNECTIONS {
        tracing::warn!(
            connections = capacity,
            open_files = files,
            "few connections are possible, because the limit of open files is low (ulimit -n, LimitNOFILE)"
        );
    }
    Options { max_connections: capacity.min(options.max_connections), ..options }
}

/// Other systems do not count descriptors.
#[cfg(not(unix))]
pub(crate) fn limit_connections(options: Options) -> Options {
    options
}

/// An operator is warned of fewer connections than this.
#[cfg(unix)]
const FEW_CONNECTIONS: usize = 1_000;

/// The number of connections for which so many open files suffice.
#[cfg(unix)]
fn connections(files: u64) -> usize {
    // If there are few, the databases and the runtime need more of them than callers do.
    let reserved = RESERVED_FILES.min(files / 4 * 3);
    usize::try_from((files - reserved) / FILES_PER_CALLER).unwrap_or(usize::MAX).max(1)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_reserved_is_left_for_callers_and_their_requests() {
        assert_eq!(connections(1024), 448);
        assert_eq!((connections(64), connections(0)), (8, 1));
        assert!(connections(32_768) >= Options::default().max_connections);
    }
}
