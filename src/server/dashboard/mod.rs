//! The dashboard: `/` and the files under `/assets`, all of them embedded, so that the page works without a network
//! and is always of the server's own version.
//!
//! What must hold: a path is looked up in a table and never on a disk; every answer forbids the page whatever it does
//! not need (no script, style, picture or request from elsewhere, no frame around it, no text turned into markup).
//! The page uses relative addresses only, so that it also lives under a path prefix.
//!
//! ```text
//! assets/index.html    the page; app.js is its entry, theme.js what must run before the first paint
//! assets/lib/          what pages share: view library, API, router, parts (ui.js), formats, dialogs
//! assets/pages/        a file for each page, by its place in the navigation
//! assets/vendor/       others' work as published, with licences; SHA256SUMS is checked by a test
//! ```

mod files;

use std::sync::Arc;

use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::path::Tail;
use warp::reply::Response;

use super::incoming::Incoming;
use super::reply::ApiError;
use super::{Context, gate, rated, routes};
use files::File;

/// What the page may do: talk to its own server, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// On every answer of the dashboard, errors included, and on the one to an address that does not exist.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// For the page, and files by their plain names: a browser asks each time whether what it has is still right.
const ASK_AGAIN: &str = "no-cache";
/// For files below the version.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// The routes of the page and its files.
pub(crate) fn route(context: &Arc<Context>) -> BoxedFilter<(Response,)> {
    let at_root = warp::path::end().map(|| None);
    let below = warp::path("assets").and(warp::path::tail()).map(Some);
    at_root
        .or(below)
        .unify()
        .and(routes::with_context(context))
        .and(warp::method())
        .then(|tail: Option<Tail>, context: Arc<Context>, incoming: Incoming, method| async move {
            let found = match &tail {
                None => Some((page(incoming.configured.is_sandbox), false)),
                Some(tail) => files::find(tail.as_str()),
            };
            let outcome = gate::open(&context.app, &incoming).await.and_then(|rate| {
                answer(found, &method, &incoming.headers)
                    .map(|response| rated(response, rate))
                    .map_err(|error| error.with_rate(rate))
            });
            guarded(outcome.unwrap_or_else(|error| error.into_response(&incoming.request_id)))
        })
        .boxed()
}

/// An answer that a browser may show, under the policy that holds for the page.
pub(crate) fn guarded(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn page(is_sandbox: bool) -> &'static File {
    if is_sandbox { files::sandbox_page() } else { files::page() }
}

fn answer(found: Option<(&File, bool)>, method: &Method, headers: &HeaderMap) -> Result<Response, ApiError> {
    let Some((file, is_for_ever)) = found else { return Err(ApiError::unknown_route()) };
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Err(ApiError::method_not_allowed("GET, HEAD"));
    }
    let mut response = if has_it(headers, file.etag.as_bytes()) {
        let mut unchanged = Response::default();
        *unchanged.status_mut() = StatusCode::NOT_MODIFIED;
        unchanged
    } else {
        let mut whole = Response::new(file.bytes.clone().into());
        whole.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(file.content_type));
        whole
    };
    let caching = if is_for_ever { FOR_EVER } else { ASK_AGAIN };
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    response.headers_mut().insert(header::ETAG, file.etag.clone());
    Ok(response)
}

/// Whether the caller has a file already: `If-None-Match` lists its tag, strong or weak (a proxy that compresses makes
/// it weak).
fn has_it(headers: &HeaderMap, etag: &[u8]) -> bool {
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
            has_it(&headers, b"\"abc\"")
        };
        assert!(has("\"abc\"") && has("\"x\", W/\"abc\"") && has("*"));
        assert!(!has("\"abcd\"") && !has("abc") && !has(""));
        assert!(!has_it(&HeaderMap::new(), b"\"abc\""));
    }
}
