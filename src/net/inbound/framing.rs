//! Detects request heads that a proxy in front could parse differently from us (request smuggling), so that one request
//! to it is two to us.
//!
//! What is plainly invalid never gets here: hyper rejects ambiguous lengths, folded lines and stray bytes, and closes a
//! connection after a request with both a length and chunks. It lets pass what the standard leaves open.

use http::{HeaderMap, Version, header};

/// Whether a request must be rejected: because of a transfer coding other than a single `chunked`, of which a proxy may
/// have undone another part than we would, or because of several `Host` headers, or none.
pub(crate) fn is_ambiguous(version: Version, headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let is_plain = match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    };
    // RFC 9112, section 3.2; HTTP/2 has a pseudo-header instead, and HTTP/1.0 may have none.
    let hosts = headers.get_all(header::HOST).iter().count();
    let has_one_host = if version == Version::HTTP_11 { hosts == 1 } else { hosts <= 1 };
    (version <= Version::HTTP_11 && !is_plain) || !has_one_host
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn ambiguous_as(version: Version, headers: &[(&str, &str)]) -> bool {
        let request =
            headers.iter().fold(Request::post("/"), |request, (name, value)| request.header(*name, *value));
        is_ambiguous(version, request.body(()).unwrap().headers())
    }

    fn ambiguous(headers: &[(&str, &str)]) -> bool {
        ambiguous_as(Version::HTTP_11, &[headers, &[("host", "a")]].concat())
    }

    #[test]
    fn one_coding_and_one_host_are_unambiguous() {
        assert!(!ambiguous(&[]));
        assert!(!ambiguous(&[("transfer-encoding", "Chunked")]));
        for coding in ["gzip, chunked", "chunked, chunked", "identity", "", "chunked;q=1"] {
            assert!(ambiguous(&[("transfer-encoding", coding)]), "{coding}");
        }
        assert!(ambiguous(&[("transfer-encoding", "gzip"), ("transfer-encoding", "chunked")]));
        assert!(ambiguous(&[("host", "a")]), "two");
        assert!(ambiguous_as(Version::HTTP_11, &[]), "none");
        assert!(!ambiguous_as(Version::HTTP_10, &[]) && !ambiguous_as(Version::HTTP_2, &[]));
    }
}
