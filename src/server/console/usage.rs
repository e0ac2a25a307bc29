//! `GET /v1/usage`: what was used, summed as the caller asks for it.

use http::StatusCode;
use http::header::{self, HeaderValue};
use warp::reply::Response;

use super::days::Query;
use super::{Call, csv};
use crate::api::console;
use crate::server::incoming::wants_csv;
use crate::server::reply::{self, ApiError};
use crate::usage::{self, ReportError, ReportRequest};

const PARAMETERS: [&str; 7] = ["from", "to", "by", "app", "key", "service", "model"];

/// The report of the query, as JSON or CSV.
pub(super) async fn report(call: Call) -> Result<Response, ApiError> {
    let query = Query::parse(&call.query, &PARAMETERS)?;
    let asked = ReportRequest {
        days: query.days(call.context.app.clock.now())?,
        by: query.by()?,
        app_id: query.text("app"),
        key_id: query.text("key"),
        service: query.service()?,
        model: query.text("model"),
    };
    let store = call.store();
    let report = read(move || usage::report(&store, &asked)).await?;
    Ok(if wants_csv(&call.headers) {
        kept_by_nobody(csv::answer(
            console::csv::report(&report),
            &format!("usage-{}-{}", report.from, report.to),
        ))
    } else {
        kept_by_nobody(reply::json(StatusCode::OK, &report))
    })
}

/// Reads on a thread that may block.
pub(super) async fn read<T: Send + 'static>(
    query: impl FnOnce() -> Result<T, ReportError> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(query).await {
        Ok(outcome) => Ok(outcome?),
        Err(cause) => {
            tracing::error!(%cause, "a report was not made");
            Err(ApiError::internal())
        }
    }
}

/// An answer that no cache keeps, and that depends on what the caller accepts.
pub(super) fn kept_by_nobody(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}
