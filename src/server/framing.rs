//! Heads that a proxy in front could read differently from us, so that what is one request to it is two to us.
//!
//! What is plainly wrong never gets here: hyper refuses doubtful lengths, folded lines and stray bytes, and ends a
//! connection on which a length and chunks come together. It lets pass what the standard leaves open.

use http::{HeaderMap, Version, header};

/// Whether a request is to be refused: for a transfer coding other than one `chunked`, of which somebody on the way may
/// have taken off another part than we would, or for two names of the server, or none.
pub(super) fn is_doubtful(version: Version, headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let is_plain = match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    };
    // RFC 9112, section 3.2; HTTP/2 has a field of its own for it, and HTTP/1.0 none.
    let names = headers.get_all(header::HOST).iter().count();
    let has_one_name = if version == Version::HTTP_11 { names == 1 } else { names <= 1 };
    (version <= Version::HTTP_11 && !is_plain) || !has_one_name
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn doubtful_as(version: Version, headers: &[(&str, &str)]) -> bool {
        let request =
            headers.iter().fold(Request::post("/"), |request, (name, value)| request.header(*name, *value));
        is_doubtful(version, request.body(()).unwrap().headers())
    }

    fn doubtful(headers: &[(&str, &str)]) -> bool {
        doubtful_as(Version::HTTP_11, &[headers, &[("host", "a")]].concat())
    }

    #[test]
    fn one_coding_and_one_name_are_beyond_doubt() {
        assert!(!doubtful(&[]));
        assert!(!doubtful(&[("transfer-encoding", "Chunked")]));
        for coding in ["gzip, chunked", "chunked, chunked", "identity", "", "chunked;q=1"] {
            assert!(doubtful(&[("transfer-encoding", coding)]), "{coding}");
        }
        assert!(doubtful(&[("transfer-encoding", "gzip"), ("transfer-encoding", "chunked")]));
        assert!(doubtful(&[("host", "a")]), "two");
        assert!(doubtful_as(Version::HTTP_11, &[]), "none");
        assert!(!doubtful_as(Version::HTTP_10, &[]) && !doubtful_as(Version::HTTP_2, &[]));
    }
}
