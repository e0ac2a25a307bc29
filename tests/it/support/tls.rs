//! A self-signed certificate for `localhost`.

use std::sync::Arc;

use mk::server::TlsFiles;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A certificate and its key, as files and as a trust root for clients.
pub struct Identity {
    pub files: TlsFiles,
    pub pem: String,
    roots: RootCertStore,
    _dir: TempDir,
}

impl Identity {
    pub fn new() -> Self {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let files = TlsFiles { cert: dir.path().join("cert.pem"), key: dir.path().join("key.pem") };
        std::fs::write(&files.cert, cert.pem()).unwrap();
        std::fs::write(&files.key, signing_key.serialize_pem()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        Self { files, pem: cert.pem(), roots, _dir: dir }
    }

    /// The TLS settings for a server's options.
    pub fn tls(&self) -> mk::server::Tls {
        mk::server::Tls::read(&self.files).unwrap()
    }

    /// An HTTP client that trusts only this certificate.
    pub fn client(&self) -> reqwest::ClientBuilder {
        let certificate = reqwest::Certificate::from_pem(self.pem.as_bytes()).unwrap();
        reqwest::Client::builder().no_proxy().tls_built_in_root_certs(false).add_root_certificate(certificate)
    }

    /// A TLS connection that offers these ALPN protocols.
    pub async fn connect(
        &self,
        authority: &str,
        protocols: &[&str],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let stream = TcpStream::connect(authority).await?;
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }
}
