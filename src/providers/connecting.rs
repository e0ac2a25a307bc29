//! What a connection that does not stand says: of its provider, or of this process alone.
//!
//! A process that may open no more files connects to nobody. That is told once, as whoever runs the server has to see to
//! it, and held against no provider.

use std::error::Error;
use std::io;

use tokio::net::TcpSocket;

use super::Failure;
use crate::log_throttle::LogThrottle;

/// All providers share the descriptors of the process.
static SHORTAGE: LogThrottle = LogThrottle::new();

/// The failure that this error of connecting is.
pub(super) fn failure(error: &(dyn Error + 'static)) -> Failure {
    match shortage(error) {
        Some(cause) => {
            if let Some(untold) = SHORTAGE.failed(&cause) {
                tracing::error!(%cause, untold, "there is no descriptor left to call a provider with");
            }
            Failure::NoDescriptors
        }
        None => Failure::Unreachable,
    }
}

/// A connection stands.
pub(super) fn stands() {
    if SHORTAGE.succeeded() {
        tracing::info!("there are descriptors again to call providers with");
    }
}

/// The shortage behind an error. Of a name that could not be looked up for want of a descriptor, the system tells other
/// things. So a socket is asked for then; where one was refused by the provider, its own is free again.
fn shortage(error: &(dyn Error + 'static)) -> Option<io::Error> {
    told_shortage(error).or_else(|| TcpSocket::new_v4().err().filter(is_shortage))
}

/// The shortage that an error itself tells of.
pub(super) fn told_shortage(error: &(dyn Error + 'static)) -> Option<io::Error> {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    let numbers = causes.filter_map(|cause| cause.downcast_ref::<io::Error>()?.raw_os_error());
    numbers.map(io::Error::from_raw_os_error).find(is_shortage)
}

/// Of descriptors of this process, or of the whole machine.
#[cfg(unix)]
fn is_shortage(cause: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(cause), Some(Errno::MFILE | Errno::NFILE))
}

/// Elsewhere a process is not held to so few.
#[cfg(not(unix))]
const fn is_shortage(_: &io::Error) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use rustix::io::Errno;

    use super::*;

    /// An error around another one.
    #[derive(Debug)]
    struct Around(io::Error);

    impl std::fmt::Display for Around {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("connect error")
        }
    }

    impl Error for Around {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn only_a_shortage_of_our_own_speaks_for_the_provider() {
        for (errno, expected) in [
            (Errno::MFILE, Failure::NoDescriptors),
            (Errno::NFILE, Failure::NoDescriptors),
            (Errno::CONNREFUSED, Failure::Unreachable),
            (Errno::NETUNREACH, Failure::Unreachable),
        ] {
            let error = io::Error::from_raw_os_error(errno.raw_os_error());
            assert_eq!(failure(&error), expected, "{errno}");
            assert_eq!(failure(&Around(error)), expected, "{errno}");
        }
        let nameless = io::Error::other("failed to lookup address information");
        assert_eq!(failure(&Around(nameless)), Failure::Unreachable);
    }
}
