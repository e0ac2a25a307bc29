//! The root certificates for connections to providers: the system's and Mozilla's, loaded once per process, as that
//! takes some 20 ms.
//!
//! What must hold: if a file could not be read because this process, or the machine, was out of descriptors, the next
//! connection loads them again; otherwise a private certificate authority would be missing until the next start. Any
//! other unreadable file is logged and skipped, as retrying would not help.

use std::sync::{Arc, Mutex};

use crate::lock::Lock;

use rustls_native_certs::{CertificateResult, Error};
use tokio_rustls::rustls::RootCertStore;

use super::connect_error;

/// The certificates, once they have been loaded.
#[derive(Debug)]
struct Roots(Mutex<Option<Arc<RootCertStore>>>);

/// The certificates of this process. Blocking.
///
/// # Errors
/// If there was no descriptor to read them with.
pub(crate) fn roots() -> Result<Arc<RootCertStore>, Error> {
    static ROOTS: Roots = Roots::new();
    ROOTS.get(rustls_native_certs::load_native_certs)
}

impl Roots {
    const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// The cached certificates; loads them first if necessary, while concurrent callers wait.
    fn get(&self, read: impl FnOnce() -> CertificateResult) -> Result<Arc<RootCertStore>, Error> {
        // Poisoning is ignored: the value is set whole or not at all.
        let mut cached = self.0.locked();
        if let Some(roots) = &*cached {
            return Ok(roots.clone());
        }
        let mut system = read();
        if let Some(at) =
            system.errors.iter().position(|cause| connect_error::descriptor_shortage(cause).is_some())
        {
            return Err(system.errors.swap_remove(at));
        }
        for cause in &system.errors {
            tracing::warn!(%cause, "a system root certificate cannot be read");
        }
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        roots.add_parsable_certificates(system.certs);
        Ok(cached.insert(Arc::new(roots)).clone())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io;

    use rustix::io::Errno;
    use rustls_native_certs::ErrorKind;

    use super::*;

    /// The result of loading when one file could not be read for this reason.
    fn load_with_error(errno: Errno) -> CertificateResult {
        let inner = io::Error::from_raw_os_error(errno.raw_os_error());
        let kind = ErrorKind::Io { inner, path: "/etc/ssl/certs/own.pem".into() };
        let mut read = CertificateResult::default();
        read.errors.push(Error { context: "failed to read PEM from file", kind });
        read
    }

    #[test]
    fn only_a_shortage_of_descriptors_makes_the_next_connection_load_them_again() {
        let roots = Roots::new();
        for shortage in [Errno::MFILE, Errno::NFILE] {
            assert!(roots.get(|| load_with_error(shortage)).is_err(), "{shortage}");
        }
        let read = roots.get(|| load_with_error(Errno::ACCESS)).unwrap();
        let again = roots.get(|| panic!("it is read for every connection")).unwrap();
        assert!(Arc::ptr_eq(&read, &again));
        assert!(!read.is_empty());
    }
}
