//! CSV responses.

use http::header::{self, HeaderValue};
use warp::reply::Response;

/// A 200 response with CSV, which browsers save under this name (letters, digits and hyphens).
pub(super) fn response(csv: String, name: &str) -> Response {
    let mut response = Response::new(csv.into());
    let content_type = HeaderValue::from_static("text/csv; charset=utf-8; header=present");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    if let Ok(disposition) = HeaderValue::try_from(format!("attachment; filename=\"{name}.csv\"")) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, disposition);
    }
    response
}
