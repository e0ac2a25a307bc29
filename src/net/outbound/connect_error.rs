//! Classifies failures to connect: the provider's fault, or a shortage of file descriptors of our own.
//!
//! A process that may open no more files cannot connect to anybody. That is logged once, as the operator has to act on
//! it, and is not blamed on any provider.

use std::error::Error;
use std::io;

use tokio::net::TcpSocket;

use super::SendError;
use crate::log_throttle::LogThrottle;

/// One for all providers, as they share the descriptors of the process.
static SHORTAGE: LogThrottle = LogThrottle::new();

/// The failure behind an error while connecting.
pub(crate) fn failure(error: &(dyn Error + 'static)) -> SendError {
    match shortage(error) {
        Some(cause) => {
            if let Some(suppressed) = SHORTAGE.failed(&cause) {
                tracing::error!(%cause, suppressed, "no file descriptor is left to call a provider");
            }
            SendError::NoDescriptors
        }
        None => SendError::Unreachable,
    }
}

/// Notes that a connection was established, so the shortage, if there was one, is over.
pub(crate) fn connected() {
    if SHORTAGE.succeeded() {
        tracing::info!("file descriptors to call providers are available again");
    }
}

/// The shortage of descriptors behind an error. When a name lookup fails for lack of a descriptor, the system reports
/// something else, so this tries to open a socket; if the provider refused the connection, its socket is free again.
fn shortage(error: &(dyn Error + 'static)) -> Option<io::Error> {
    descriptor_shortage(error).or_else(|| TcpSocket::new_v4().err().filter(is_shortage))
}

/// The shortage of descriptors that an error or one of its causes reports.
pub(super) fn descriptor_shortage(error: &(dyn Error + 'static)) -> Option<io::Error> {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    let numbers = causes.filter_map(|cause| cause.downcast_ref::<io::Error>()?.raw_os_error());
    numbers.map(io::Error::from_raw_os_error).find(is_shortage)
}

/// Whether this process, or the whole machine, is out of descriptors.
#[cfg(unix)]
fn is_shortage(cause: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(cause), Some(Errno::MFILE | Errno::NFILE))
}

/// Other systems have no such low limit.
#[cfg(not(unix))]
const fn is_shortage(_: &io::Error) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use rustix::io::Errno;

    use super::*;

    /// An error that wraps another one.
    #[derive(Debug)]
    struct Wrapper(io::Error);

    impl std::fmt::Display for Wrapper {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("connect error")
        }
    }

    impl Error for Wrapper {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn only_a_shortage_of_our_own_exonerates_the_provider() {
        for (errno, expected) in [
            (Errno::MFILE, SendError::NoDescriptors),
            (Errno::NFILE, SendError::NoDescriptors),
            (Errno::CONNREFUSED, SendError::Unreachable),
            (Errno::NETUNREACH, SendError::Unreachable),
        ] {
            let error = io::Error::from_raw_os_error(errno.raw_os_error());
            assert_eq!(failure(&error), expected, "{errno}");
            assert_eq!(failure(&Wrapper(error)), expected, "{errno}");
        }
        let nameless = io::Error::other("failed to lookup address information");
        assert_eq!(failure(&Wrapper(nameless)), SendError::Unreachable);
    }
}
