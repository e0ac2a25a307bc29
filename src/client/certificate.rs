//! What is wrong with a server's certificate, in a person's words, and what to do about it.

use tokio_rustls::rustls::{CertificateError, Error};

/// What may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Nobody who is trusted here has signed it.
    Untrusted,
    /// It is for servers of other names.
    Misnamed,
    /// It has ended, or has not begun.
    Untimely,
    /// It is an authority's own, as many are that a program made in passing.
    Authority,
    /// Anything else.
    Other,
}

impl Flaw {
    /// The flaw that a handshake failed of; `None` if it failed of something else.
    pub(super) fn of(cause: &Error) -> Option<Self> {
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
            // It has no kind of its own.
            CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
                Self::Authority
            }
            _ => Self::Other,
        })
    }

    /// Why nobody can be reached: `its certificate …`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "its certificate is signed by nobody who is trusted here",
            Self::Misnamed => "its certificate is for another name",
            Self::Untimely => "its certificate has expired, or is not valid yet",
            Self::Authority => "its certificate is one of an authority, not of a server",
            Self::Other => "its certificate is not valid",
        }
    }

    /// What a person can do.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Untrusted => "--ca-cert or MK_CACERT names the file of an authority to trust",
            Self::Misnamed => "name the server as its certificate does",
            Self::Untimely => "is this machine's clock right? If so, the server needs a new certificate",
            Self::Authority => {
                "the server needs one that is made with basicConstraints=CA:FALSE (openssl: \
                 -addext basicConstraints=critical,CA:FALSE)"
            }
            Self::Other => "the server needs another one; -v tells what is wrong with it",
        }
    }
}
