//! TLS for the listener, by rustls: certificate and key from PEM files, HTTP/2 by ALPN.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{self, ServerConfig};

use crate::config::TlsFiles;

/// Why a certificate cannot be used.
#[derive(Debug)]
pub struct TlsError {
    file: PathBuf,
    cause: String,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot use {} for TLS: {}", self.file.display(), self.cause)
    }
}

impl std::error::Error for TlsError {}

/// An acceptor that presents the certificate in `files`.
pub fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let chain = rustls_pemfile::certs(&mut open(&files.cert)?)
        .collect::<io::Result<Vec<_>>>()
        .map_err(|cause| refuse(&files.cert, cause))?;
    if chain.is_empty() {
        return Err(refuse(&files.cert, "it holds no certificate"));
    }
    let key = rustls_pemfile::private_key(&mut open(&files.key)?)
        .map_err(|cause| refuse(&files.key, cause))?
        .ok_or_else(|| refuse(&files.key, "it holds no private key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|cause| match cause {
            rustls::Error::InconsistentKeys(_) => refuse(&files.key, "it does not belong to the certificate"),
            cause => refuse(&files.cert, cause),
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn open(path: &Path) -> Result<BufReader<File>, TlsError> {
    File::open(path).map(BufReader::new).map_err(|cause| refuse(path, cause))
}

fn refuse(path: &Path, cause: impl fmt::Display) -> TlsError {
    TlsError { file: path.to_owned(), cause: cause.to_string() }
}
