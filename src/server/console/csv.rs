//! CSV as an answer.

use http::header::{self, HeaderValue};
use warp::reply::Response;

/// An answer of 200 with CSV, to be saved under this name (letters, digits and hyphens) where a browser saves it.
pub(super) fn answer(csv: String, name: &str) -> Response {
    let mut response = Response::new(csv.into());
    let kind = HeaderValue::from_static("text/csv; charset=utf-8; header=present");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    if let Ok(disposition) = HeaderValue::try_from(format!("attachment; filename=\"{name}.csv\"")) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, disposition);
    }
    response
}
