//! The dashboard: `/` and the files under `/assets`, all of them embedded, so that the page works without a network
//! connection and always matches the server's version.
//!
//! What must hold: a path is looked up in a table and never on disk; the headers of every response forbid the page all
//! it does not need (no script, style, image or request from another origin, no framing, no text turned into markup);
//! its files are never refused for the limit of open pages, as half a page helps nobody and they cost next to nothing.
//! The page uses relative URLs only, so that it also works below a path prefix.
//!
//! ```text
//! assets/index.html    the page; app.js is its entry point, first.js runs before the first paint
//! assets/lib/          shared by the pages: view library, API, router, components (ui.js), formatting, dialogs
//! assets/pages/        one file per page, named after its entry in the navigation
//! assets/playground/   the parts of the playground page
//! assets/vendor/       third-party code as published, with licences; SHA256SUMS is checked by a test
//! ```

mod bundle;
mod files;

use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use warp::reply::Response;

use crate::server::reply::{self, ApiError, ErrorCode};
use crate::server::request::incoming::Incoming;
use crate::server::{ServerState, gate};
pub(in crate::server) use files::File;

/// The content security policy: the page may talk to its own server, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// The headers of every response of the dashboard, errors included, and of the 404 for unknown routes.
const SECURITY_HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// For the page, and for files by their plain names: a browser revalidates its copy each time.
const REVALIDATE: &str = "no-cache";
/// For files below the version.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// Whether there is a file of this name.
pub(crate) fn has(name: &str) -> bool {
    files::find(name).is_some()
}

/// Answers a request for the page, or for a file of it.
pub(crate) async fn show(context: &ServerState, incoming: &Incoming, file: Option<&str>) -> Response {
    let found = match file {
        None => Some((files::page(), false)),
        Some(name) => files::find(name),
    };
    let outcome = match answer(found, &incoming.headers) {
        Ok(file) => {
            let rate = gate::open_page_state(&context.app, &incoming.configured, incoming.address);
            reply::within(rate, Ok(file))
        }
        Err(error) => {
            gate::open_page(&context.app, incoming).await.and_then(|rate| reply::within(rate, Err(error)))
        }
    };
    with_security_headers(outcome.unwrap_or_else(|error| error.into_response(incoming)))
}

/// Adds the security headers to a response that a browser may show.
pub(crate) fn with_security_headers(mut response: Response) -> Response {
    for (name, value) in SECURITY_HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The response with this file, and whether it is immutable at its path; an error without one.
pub(in crate::server) fn answer(
    found: Option<(&File, bool)>,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let Some((file, is_immutable)) = found else { return Err(ApiError::from(ErrorCode::UnknownRoute)) };
    let mut response = if has_current_copy(headers, file.etag.as_bytes()) {
        let mut not_modified = Response::default();
        *not_modified.status_mut() = StatusCode::NOT_MODIFIED;
        not_modified
    } else {
        let mut full = Response::new(file.bytes.clone().into());
        full.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(file.content_type));
        full
    };
    let cache_control = if is_immutable { IMMUTABLE } else { REVALIDATE };
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(cache_control));
    response.headers_mut().insert(header::ETAG, file.etag.clone());
    Ok(response)
}

/// Whether the caller has a current copy: `If-None-Match` lists the tag, strong or weak (a proxy that compresses makes
/// it weak).
fn has_current_copy(headers: &HeaderMap, etag: &[u8]) -> bool {
    headers.get_all(header::IF_NONE_MATCH).iter().any(|value| {
        value.as_bytes().split(|byte| *byte == b',').any(|tag| {
            let tag = tag.trim_ascii();
            tag == b"*" || tag.strip_prefix(b"W/").unwrap_or(tag) == etag
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_in_a_list_strong_or_weak() {
        let has = |value: &'static str| {
            let headers = HeaderMap::from_iter([(header::IF_NONE_MATCH, HeaderValue::from_static(value))]);
            has_current_copy(&headers, b"\"abc\"")
        };
        assert!(has("\"abc\"") && has("\"x\", W/\"abc\"") && has("*"));
        assert!(!has("\"abcd\"") && !has("abc") && !has(""));
        assert!(!has_current_copy(&HeaderMap::new(), b"\"abc\""));
    }
}
