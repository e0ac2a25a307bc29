//! `GET /v1/billing` and `GET /v1/apps/{id}/statement`: what a month costs.

use http::StatusCode;
use warp::reply::Response;

use super::days::Query;
use super::usage::{kept_by_nobody, read};
use super::{Call, csv};
use crate::api::console;
use crate::server::incoming::wants_csv;
use crate::server::reply::{self, ApiError};
use crate::usage;

/// The month so far, with budgets and forecast.
pub(super) async fn billing(call: Call) -> Result<Response, ApiError> {
    Query::parse(&call.query, &[])?;
    let (store, now) = (call.store(), call.context.app.clock.now());
    let billing = read(move || Ok(usage::billing(&store, now)?)).await?;
    Ok(kept_by_nobody(reply::json(StatusCode::OK, &billing)))
}

/// An app's statement of a month, as JSON or CSV. Also of an app that was deleted: its usage stays.
pub(super) async fn statement(call: Call, app_id: &str) -> Result<Response, ApiError> {
    let query = Query::parse(&call.query, &["month"])?;
    let (store, now, app_id) = (call.store(), call.context.app.clock.now(), app_id.to_owned());
    let month = query.month(now)?;
    let statement = read(move || usage::statement(&store, &app_id, month, now)).await?;
    Ok(kept_by_nobody(if wants_csv(&call.headers) {
        csv::answer(
            console::csv::statement(&statement),
            &format!("statement-{}-{}", statement.app_id, statement.month),
        )
    } else {
        reply::json(StatusCode::OK, &statement)
    }))
}
