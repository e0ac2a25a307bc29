//! Which servers are trusted at the other end of an encrypted connection to a database.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{
    self, CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore, SignatureScheme, WantsVerifier,
};

use crate::os_error;

/// Who is trusted to be the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Any server: this protects against eavesdropping, but not against a man in the middle.
    Anybody,
    /// Servers whose certificate for the host's name is signed by one of the system's authorities.
    System,
    /// Servers whose certificate for the host's name is signed by an authority in this file.
    File(PathBuf),
}

impl Trust {
    /// `None` for a relative path, which would depend on the working directory.
    pub(super) fn if_absolute(self) -> Option<Self> {
        match &self {
            Self::File(path) if !path.is_absolute() => None,
            _ => Some(self),
        }
    }

    /// The TLS configuration of the client. Blocking: reads certificates.
    ///
    /// # Errors
    /// With the reason, if they cannot be read.
    pub(super) fn client(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(crypto::ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let builder = builder(provider)?;
        let builder = match self {
            Self::Anybody => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(algorithms)))
            }
            Self::System => builder.with_root_certificates(system_roots()?),
            Self::File(path) => builder.with_root_certificates(roots_from_file(path)?),
        };
        Ok(builder.with_no_client_auth())
    }
}

fn builder(provider: Arc<CryptoProvider>) -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, String> {
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    builder.map_err(|cause| cause.to_string())
}

/// The system's authorities, which `SSL_CERT_FILE` may override.
fn system_roots() -> Result<RootCertStore, String> {
    let mut found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if !roots.is_empty() {
        return Ok(roots);
    }
    let why = found.errors.pop().map_or_else(String::new, |cause| format!(" ({cause})"));
    let why = os_error::without_numbers(why);
    Err(format!("this system has no certificate authorities{why}; name yours with sslrootcert=/PATH"))
}

fn roots_from_file(path: &Path) -> Result<RootCertStore, String> {
    let shown = path.display();
    let file = File::open(path).and_then(|file| rustls_pemfile::certs(&mut BufReader::new(file)).collect());
    let certificates: Vec<CertificateDer<'_>> =
        file.map_err(|cause| format!("cannot read sslrootcert {shown}: {}", os_error::message(&cause)))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate).map_err(|cause| format!("cannot use sslrootcert {shown}: {cause}"))?;
    }
    if roots.is_empty() {
        return Err(format!("sslrootcert {shown} has no certificate in PEM format"));
    }
    Ok(roots)
}

/// Accepts any certificate, but still verifies that the server has its private key.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use tokio::io::duplex;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use super::*;

    /// A self-signed certificate for `db.example`, as PEM and as a server's configuration.
    fn certificate() -> (String, ServerConfig) {
        let made = rcgen::generate_simple_self_signed(["db.example".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let config = ServerConfig::builder().with_no_client_auth();
        let config = config.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        (made.cert.pem(), config)
    }

    async fn shake_hands(trust: &Trust, name: &'static str, server: &ServerConfig) -> io::Result<()> {
        let (ours, theirs) = duplex(16 * 1024);
        let acceptor = TlsAcceptor::from(Arc::new(server.clone()));
        let connector = TlsConnector::from(Arc::new(trust.client().unwrap()));
        let name = ServerName::try_from(name).unwrap();
        let (_, shaken) = tokio::join!(acceptor.accept(theirs), connector.connect(name, ours));
        shaken.map(drop)
    }

    #[tokio::test]
    async fn a_verified_server_needs_a_trusted_certificate_for_its_name() {
        let (pem, server) = certificate();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.pem");
        std::fs::write(&path, pem).unwrap();
        let known = Trust::File(path);
        shake_hands(&known, "db.example", &server).await.unwrap();
        shake_hands(&known, "other.example", &server).await.unwrap_err();
        let (_, stranger) = certificate();
        shake_hands(&known, "db.example", &stranger).await.unwrap_err();
        shake_hands(&Trust::Anybody, "10.0.0.1", &stranger).await.unwrap();
    }

    #[test]
    fn unreadable_authorities_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let told = |name: &str| Trust::File(dir.path().join(name)).client().unwrap_err();
        assert!(
            told("missing.pem").ends_with("missing.pem: no such file or directory"),
            "{}",
            told("missing.pem")
        );
        std::fs::write(dir.path().join("empty.pem"), "nothing").unwrap();
        assert!(
            told("empty.pem").ends_with("empty.pem has no certificate in PEM format"),
            "{}",
            told("empty.pem")
        );
    }
}
