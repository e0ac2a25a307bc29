//! `GET /v1/billing` and `GET /v1/apps/{id}/statement`: the costs of a month.

use http::StatusCode;
use warp::reply::Response;

use super::usage::vary_on_accept;
use super::{ConsoleRequest, csv};
use crate::api::console;
use crate::server::reply::{self, ApiError};
use crate::server::request::incoming::wants_csv;
use crate::usage::{self, ReportError};

/// The month so far, with budgets and forecast.
pub(super) async fn billing(call: ConsoleRequest) -> Result<Response, ApiError> {
    call.query()?.finish(&[])?;
    call.report(|store, now| usage::billing(store, now).map(|billing| reply::json(StatusCode::OK, &billing)))
        .await
}

/// An app's statement for a month, as JSON or CSV, also for a deleted app, whose usage is kept.
pub(super) async fn statement(call: ConsoleRequest, app_id: String) -> Result<Response, ApiError> {
    let mut query = call.query()?;
    let month = query.month(call.context.app.clock.now())?;
    query.finish(&["month"])?;
    let wants_csv = wants_csv(&call.incoming.headers);
    call.report(move |store, now| {
        let statement = usage::statement(store, &app_id, month, now)?;
        Ok::<_, ReportError>(vary_on_accept(if wants_csv {
            csv::response(
                console::csv::statement(&statement),
                &format!("statement-{}-{}", statement.app_id, statement.month),
            )
        } else {
            reply::json(StatusCode::OK, &statement)
        }))
    })
    .await
}
