//! `GET /v1/usage`: usage, aggregated as the caller asks for it; and `POST /v1/usage/forget`: an end user is forgotten.

use http::StatusCode;
use http::header::{self, HeaderValue};
use warp::reply::Response;

use super::query::Query;
use super::{ConsoleRequest, csv};
use crate::api::console::{self, ForgetUser, ForgottenUser};
use crate::clock::Time;
use crate::server::reply::{self, ApiError};
use crate::server::request::incoming::wants_csv;
use crate::server::request::params::Params;
use crate::usage::{self, ReportError, ReportRequest};

const PARAMETERS: [&str; 7] = ["from", "to", "by", "app", "key", "service", "model"];

/// The report for the query, as JSON or CSV.
pub(super) async fn report(call: ConsoleRequest) -> Result<Response, ApiError> {
    let request = read(call.query()?, call.context.app.clock.now())?;
    let wants_csv = wants_csv(&call.incoming.headers);
    call.report(move |store, _| {
        let report = usage::report(store, &request)?;
        Ok::<_, ReportError>(vary_on_accept(if wants_csv {
            csv::response(console::csv::report(&report), &format!("usage-{}-{}", report.from, report.to))
        } else {
            reply::json(StatusCode::OK, &report)
        }))
    })
    .await
}

/// The report that a query asks for.
pub(in crate::server) fn read(mut query: Query, now: Time) -> Result<ReportRequest, ApiError> {
    let request = ReportRequest {
        days: query.days(now)?,
        by: query.by()?,
        app_id: query.text("app")?,
        key_id: query.text("key")?,
        service: query.model_service()?,
        model: query.text("model")?,
    };
    query.finish(&PARAMETERS)?;
    Ok(request)
}

/// `POST /v1/usage/forget`
pub(super) async fn forget_user(call: ConsoleRequest) -> Result<Response, ApiError> {
    let ForgetUser { user, app_id } = read_forget(call.params()?)?;
    call.write(move |store, now| {
        let forgotten_sums = store.forget_end_user(&user, app_id.as_deref(), now)?;
        let record = ForgottenUser { forgotten_sums, forgotten_at: now.rfc3339() };
        Ok::<_, ApiError>(reply::json(StatusCode::OK, &record))
    })
    .await
}

/// Who is to be forgotten.
fn read_forget(mut params: Params) -> Result<ForgetUser, ApiError> {
    let user = params.required_text("user")?;
    let app_id = params.text("app_id")?;
    params.finish(&["user", "app_id"])?;
    Ok(ForgetUser { user, app_id })
}

/// Marks a response that depends on what the caller accepts.
pub(super) fn vary_on_accept(mut response: Response) -> Response {
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}
