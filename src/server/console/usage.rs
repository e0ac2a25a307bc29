//! `GET /v1/usage`: what was used, summed as the caller asks for it.

use http::StatusCode;
use http::header::{self, HeaderValue};
use warp::reply::Response;

use super::query::Query;
use super::{Call, csv};
use crate::api::console;
use crate::clock::Time;
use crate::server::incoming::wants_csv;
use crate::server::reply::{self, ApiError};
use crate::usage::{self, ReportError, ReportRequest};

const PARAMETERS: [&str; 7] = ["from", "to", "by", "app", "key", "service", "model"];

/// The report of the query, as JSON or CSV.
pub(super) async fn report(call: Call) -> Result<Response, ApiError> {
    let asked = read(call.query()?, call.context.app.clock.now())?;
    let wants_csv = wants_csv(&call.headers);
    call.in_report(move |store, _| {
        let report = usage::report(store, &asked)?;
        Ok::<_, ReportError>(varied(if wants_csv {
            csv::answer(console::csv::report(&report), &format!("usage-{}-{}", report.from, report.to))
        } else {
            reply::json(StatusCode::OK, &report)
        }))
    })
    .await
}

/// Which report a query asks for.
pub(in crate::server) fn read(mut query: Query, now: Time) -> Result<ReportRequest, ApiError> {
    let asked = ReportRequest {
        days: query.days(now)?,
        by: query.by()?,
        app_id: query.text("app"),
        key_id: query.text("key"),
        service: query.asking_service()?,
        model: query.text("model"),
    };
    query.finish(&PARAMETERS)?;
    Ok(asked)
}

/// An answer that depends on what the caller accepts.
pub(super) fn varied(mut response: Response) -> Response {
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}
