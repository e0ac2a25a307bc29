//! What is wrong with a server's certificate, in plain words, and what to do about it.

use std::sync::Arc;

use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{CertificateError, Error, RootCertStore};

/// A flaw of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateFlaw {
    /// It is signed by no authority that is trusted here.
    Untrusted,
    /// It is for other server names.
    Misnamed,
    /// It has expired, or is not valid yet.
    Untimely,
    /// It is a certificate authority's own, as ad hoc certificates often are.
    Authority,
    /// Anything else.
    Other,
}

impl CertificateFlaw {
    /// The flaw for which every client refuses a server that presents this chain, whomever it trusts and whatever name
    /// it calls the server by.
    pub fn of_chain(chain: &[CertificateDer<'_>]) -> Option<Self> {
        let (server, others) = chain.split_first()?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(chain.iter().map(|one| one.clone().into_owned()));
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().ok()?;
        let name = ServerName::try_from("localhost").ok()?;
        let refused = verifier.verify_server_cert(server, others, &name, &[], UnixTime::now()).err()?;
        Self::from_tls_error(&refused).filter(|flaw| !matches!(flaw, Self::Untrusted | Self::Misnamed))
    }

    /// The flaw for which a handshake failed; `None` if it failed for another reason.
    pub(super) fn from_tls_error(cause: &Error) -> Option<Self> {
        let Error::InvalidCertificate(cause) = cause else { return None };
        Some(match cause {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::Untrusted,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::Misnamed
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Self::Untimely,
            // There is no variant for it.
            CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
                Self::Authority
            }
            _ => Self::Other,
        })
    }

    /// Why the server cannot be reached: `its certificate …`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "its certificate is not signed by a trusted authority",
            Self::Misnamed => "its certificate is for another name",
            Self::Untimely => "its certificate has expired, or is not valid yet",
            Self::Authority => "its certificate is that of an authority, not of a server",
            Self::Other => "its certificate is not valid",
        }
    }

    /// What a person can do about it.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Untrusted => {
                "to trust its authority, name the authority's PEM file with --ca-cert or MK_CACERT"
            }
            Self::Misnamed => "use the name in the server's certificate",
            Self::Untimely => {
                "check this machine's clock; if it is right, the server needs a new certificate"
            }
            Self::Authority => {
                "the server needs a certificate with basicConstraints=CA:FALSE (openssl: -addext \
                 basicConstraints=critical,CA:FALSE)"
            }
            Self::Other => "the server needs another certificate; -v shows what is wrong with this one",
        }
    }
}
