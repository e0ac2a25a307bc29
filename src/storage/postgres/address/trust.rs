//! Who may be at the other end of an encrypted connection to a database.

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

use crate::reason;

/// Who is trusted to be the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Whoever answers: what is sent is hidden from those who listen, and not from those who stand between.
    Anybody,
    /// Whom the system's authorities know by the host's name.
    System,
    /// Whom the authorities in this file know by it.
    File(PathBuf),
}

impl Trust {
    /// A path that means the same wherever a command is called.
    pub(super) fn when_absolute(self) -> Option<Self> {
        match &self {
            Self::File(path) if !path.is_absolute() => None,
            _ => Some(self),
        }
    }

    /// What connects. Blocking: reads certificates.
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
            Self::System => builder.with_root_certificates(of_system()?),
            Self::File(path) => builder.with_root_certificates(of_file(path)?),
        };
        Ok(builder.with_no_client_auth())
    }
}

fn builder(provider: Arc<CryptoProvider>) -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, String> {
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    builder.map_err(|cause| cause.to_string())
}

/// `SSL_CERT_FILE` may name others.
fn of_system() -> Result<RootCertStore, String> {
    let mut found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if !roots.is_empty() {
        return Ok(roots);
    }
    let why = found.errors.pop().map_or_else(String::new, |cause| format!(" ({cause})"));
    let why = reason::without_numbers(why);
    Err(format!("there are no certificate authorities on this system{why}; name yours by sslrootcert=/PATH"))
}

fn of_file(path: &Path) -> Result<RootCertStore, String> {
    let shown = path.display();
    let file = File::open(path).and_then(|file| rustls_pemfile::certs(&mut BufReader::new(file)).collect());
    let certificates: Vec<CertificateDer<'_>> =
        file.map_err(|cause| format!("cannot read sslrootcert {shown}: {}", reason::of(&cause)))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate).map_err(|cause| format!("cannot use sslrootcert {shown}: {cause}"))?;
    }
    if roots.is_empty() {
        return Err(format!("sslrootcert {shown} holds no certificate in PEM"));
    }
    Ok(roots)
}

/// Takes any certificate, and holds the server to it: who answers must have its key.
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

    /// A certificate of its own authority for `db.example`: in PEM, and as a server shows it.
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
    async fn who_is_checked_must_be_known_by_name() {
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
    fn authorities_that_cannot_be_read_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let told = |name: &str| Trust::File(dir.path().join(name)).client().unwrap_err();
        assert!(
            told("missing.pem").ends_with("missing.pem: no such file or directory"),
            "{}",
            told("missing.pem")
        );
        std::fs::write(dir.path().join("empty.pem"), "nothing").unwrap();
        assert!(
            told("empty.pem").ends_with("empty.pem holds no certificate in PEM"),
            "{}",
            told("empty.pem")
        );
    }
}
