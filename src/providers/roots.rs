//! The root certificates that providers are held to: the system's and Mozilla's list, read once for the process, as that
//! takes some 20 ms.
//!
//! What must hold: what could not be read because this process, or the machine, had no descriptor left for it is read
//! again by the next connection; otherwise a private authority would be missing until the next start. Any other file
//! that cannot be read is told and done without, as it will be no better for the next connection.

use std::sync::{Arc, Mutex, PoisonError};

use rustls_native_certs::{CertificateResult, Error};
use tokio_rustls::rustls::RootCertStore;

use super::connecting;

/// The certificates, once they have been read.
#[derive(Debug)]
struct Roots(Mutex<Option<Arc<RootCertStore>>>);

/// The certificates of this process. Blocking.
///
/// # Errors
/// If there was no descriptor to read them with.
pub(super) fn roots() -> Result<Arc<RootCertStore>, Error> {
    static ROOTS: Roots = Roots::new();
    ROOTS.get(rustls_native_certs::load_native_certs)
}

impl Roots {
    const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// What has been read, or is now. Whoever comes meanwhile waits for it.
    fn get(&self, read: impl FnOnce() -> CertificateResult) -> Result<Arc<RootCertStore>, Error> {
        // Also after a panic elsewhere: they are kept whole or not at all.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(roots) = &*kept {
            return Ok(roots.clone());
        }
        let mut system = read();
        if let Some(at) = system.errors.iter().position(|cause| connecting::told_shortage(cause).is_some()) {
            return Err(system.errors.swap_remove(at));
        }
        for cause in &system.errors {
            tracing::warn!(%cause, "a root certificate of the system cannot be read");
        }
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        roots.add_parsable_certificates(system.certs);
        Ok(kept.insert(Arc::new(roots)).clone())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io;

    use rustix::io::Errno;
    use rustls_native_certs::ErrorKind;

    use super::*;

    /// What is read where one file could not be, for this reason.
    fn read_without_one(errno: Errno) -> CertificateResult {
        let inner = io::Error::from_raw_os_error(errno.raw_os_error());
        let kind = ErrorKind::Io { inner, path: "/etc/ssl/certs/own.pem".into() };
        let mut read = CertificateResult::default();
        read.errors.push(Error { context: "failed to read PEM from file", kind });
        read
    }

    #[test]
    fn what_a_shortage_of_descriptors_hid_is_read_again_and_nothing_else_is() {
        let roots = Roots::new();
        for shortage in [Errno::MFILE, Errno::NFILE] {
            assert!(roots.get(|| read_without_one(shortage)).is_err(), "{shortage}");
        }
        let read = roots.get(|| read_without_one(Errno::ACCESS)).unwrap();
        let again = roots.get(|| panic!("it is read for every connection")).unwrap();
        assert!(Arc::ptr_eq(&read, &again));
        assert!(!read.is_empty());
    }
}
