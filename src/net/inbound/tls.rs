//! TLS for the listener, with rustls: certificate and key from PEM files, HTTP/2 via ALPN.
//!
//! The certificate can be replaced while the server runs, as certificates are renewed every few weeks: open connections
//! keep theirs, the next handshake presents the new one.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};

/// PEM files for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain, leaf first.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {} for TLS: {cause}", file.display())]
pub struct TlsError {
    file: PathBuf,
    cause: String,
}

/// A listener's TLS configuration; clones share the certificate.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    current: Arc<CurrentCertificate>,
}

/// A certificate with its matching key.
pub struct Certificate(CertifiedKey);

/// The certificate in use.
#[derive(Debug)]
struct CurrentCertificate(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl Tls {
    /// A configuration that presents the certificate in `files`.
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let current = Arc::new(CurrentCertificate(ArcSwap::from_pointee(read(files)?)));
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider()))
            .with_safe_default_protocol_versions()
            .map_err(|cause| error(&files.cert, cause))?
            .with_no_client_auth()
            .with_cert_resolver(current.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), current })
    }

    /// Presents this certificate from the next handshake on. Returns whether it differs from the previous one.
    pub fn present(&self, certificate: Certificate) -> bool {
        let before = self.current.0.swap(Arc::new(certificate.0));
        before.cert != self.current.0.load().cert
    }

    pub(crate) const fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }
}

impl Certificate {
    /// Reads certificate and key from `files`, and checks that they match.
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        read(files).map(Self)
    }

    /// The certificate, and those of the authorities that come with it.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.0.cert
    }
}

fn read(files: &TlsFiles) -> Result<CertifiedKey, TlsError> {
    let chain = rustls_pemfile::certs(&mut open(&files.cert)?)
        .collect::<io::Result<Vec<_>>>()
        .map_err(|cause| error(&files.cert, cause))?;
    if chain.is_empty() {
        return Err(error(&files.cert, "it holds no certificate"));
    }
    let key = rustls_pemfile::private_key(&mut open(&files.key)?)
        .map_err(|cause| error(&files.key, cause))?
        .ok_or_else(|| error(&files.key, "it holds no private key"))?;
    CertifiedKey::from_der(chain, key, &provider()).map_err(|cause| match cause {
        rustls::Error::InconsistentKeys(_) => error(&files.key, "it does not belong to the certificate"),
        cause => error(&files.cert, cause),
    })
}

fn provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

fn open(path: &Path) -> Result<BufReader<File>, TlsError> {
    File::open(path).map(BufReader::new).map_err(|cause| error(path, cause))
}

fn error(path: &Path, cause: impl fmt::Display) -> TlsError {
    TlsError { file: path.to_owned(), cause: cause.to_string() }
}
