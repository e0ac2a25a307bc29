//! The limits that the system sets to this process: open files, and the size of files.
//!
//! What must hold: running into one is an error like any other, of the write or the connection that met it, and never
//! the end of the process; and callers alone cannot use up the descriptors that the databases and providers need.

use crate::server::Options;

/// What is kept from callers for databases, sockets to providers that answer several callers, and the log.
#[cfg(unix)]
const OWN_FILES: u64 = 128;
/// What a caller may need: the own connection, and one to a provider.
#[cfg(unix)]
const FILES_PER_CALLER: u64 = 2;

/// Makes a write beyond the limit of file sizes (`ulimit -f`) fail. By default it ends the process.
#[cfg(unix)]
pub(crate) fn survive_file_size_limit() {
    let ignored = std::sync::Arc::default();
    // Where it cannot be listened to, it acts as for any other program.
    let _ = signal_hook::flag::register(rustix::process::Signal::XFSZ.as_raw(), ignored);
}

/// Elsewhere there is no such limit.
#[cfg(not(unix))]
pub(crate) fn survive_file_size_limit() {}

/// Takes as many descriptors as the system allows, and no more connections than they suffice for.
#[cfg(unix)]
pub(crate) fn fit(options: Options) -> Options {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // The lower limit is one for programs that cannot handle more; without the higher one it stays as it is.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let Some(files) = getrlimit(Resource::Nofile).current else { return options };
    let room = connections(files);
    if room < FEW {
        tracing::warn!(
            connections = room,
            open_files = files,
            "few connections at once, as few files may be open (ulimit -n, LimitNOFILE)"
        );
    }
    Options { max_connections: room.min(options.max_connections), ..options }
}

/// Elsewhere descriptors are not counted.
#[cfg(not(unix))]
pub(crate) fn fit(options: Options) -> Options {
    options
}

/// Less than this an operator wants to know of.
#[cfg(unix)]
const FEW: usize = 1_000;

/// For how many connections so many open files suffice.
#[cfg(unix)]
fn connections(files: u64) -> usize {
    // Where there are few, the databases and the runtime need more of them than callers.
    let own = OWN_FILES.min(files / 4 * 3);
    usize::try_from((files - own) / FILES_PER_CALLER).unwrap_or(usize::MAX).max(1)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_needed_is_left_for_callers_and_their_requests() {
        assert_eq!(connections(1024), 448);
        assert_eq!((connections(64), connections(0)), (8, 1));
        assert!(connections(32_768) >= Options::default().max_connections);
    }
}
