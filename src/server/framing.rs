//! Heads that a proxy in front could read differently from us, so that what is one request to it is two to us.
//!
//! What is plainly wrong never gets here: hyper refuses doubtful lengths, folded lines and stray bytes, and ends a
//! connection on which a length and chunks come together. It lets pass what the standard leaves open.

use http::{HeaderMap, Version, header};

/// Whether a request is to be refused: for a transfer coding other than one `chunked`, of which somebody on the way may
/// have taken off another part than we would, or for two names of the server.
pub(super) fn is_doubtful(version: Version, headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let is_plain = match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    };
    let has_two_names = headers.get_all(header::HOST).iter().nth(1).is_some();
    (version <= Version::HTTP_11 && !is_plain) || has_two_names
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn doubtful(headers: &[(&str, &str)]) -> bool {
        let request =
            headers.iter().fold(Request::post("/"), |request, (name, value)| request.header(*name, *value));
        is_doubtful(Version::HTTP_11, request.body(()).unwrap().headers())
    }

    #[test]
    fn one_coding_and_one_name_are_beyond_doubt() {
        assert!(!doubtful(&[]));
        assert!(!doubtful(&[("transfer-encoding", "Chunked"), ("host", "a")]));
        for coding in ["gzip, chunked", "chunked, chunked", "identity", "", "chunked;q=1"] {
            assert!(doubtful(&[("transfer-encoding", coding)]), "{coding}");
        }
        assert!(doubtful(&[("transfer-encoding", "gzip"), ("transfer-encoding", "chunked")]));
        assert!(doubtful(&[("host", "a"), ("host", "a")]));
    }
}
