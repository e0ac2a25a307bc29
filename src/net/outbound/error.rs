//! Why a request has no response, as far as the connection can tell.

/// What went wrong with a connection or with a request on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendError {
    /// No connection could be made: name lookup, address or TLS.
    Unreachable,
    /// No connection could be made because this process may open no more files; not the other side's fault.
    NoDescriptors,
    /// The connection ended before the response did.
    Cut,
}
