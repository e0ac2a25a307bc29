//! `/v1/apps`.

use http::StatusCode;
use warp::reply::Response;

use super::{ConsoleRequest, created, page};
use crate::api::console::DeletedApp;
use crate::clock::Time;
use crate::keys::{ManageError, apps};
use crate::money::NanoUsd;
use crate::server::reply::{self, ApiError};
use crate::server::request::params::Params;
use crate::storage::{AppChange, AppRow, PageRequest, Store};

const FIELDS: [&str; 2] = ["name", "budget_usd"];

/// `GET /v1/apps`
pub(super) async fn list(call: ConsoleRequest) -> Result<Response, ApiError> {
    let mut query = call.query()?;
    let span = query.page("app")?;
    let order = query.order()?;
    query.finish(&["order", "limit", "cursor"])?;
    let limit = span.limit;
    let more = PageRequest { limit: limit + 1, ..span };
    let records = call.read(move |store, now| apps::page(store, &more, order, now)).await?;
    Ok(reply::json(StatusCode::OK, &page(records, limit, |app| &app.id)))
}

/// `POST /v1/apps`
pub(super) async fn create(call: ConsoleRequest) -> Result<Response, ApiError> {
    let (name, budget) = read_new(call.params()?)?;
    let create = move |store: &Store, now| {
        let row = apps::create(store, &name, budget, now)?;
        Ok::<_, ManageError>(apps::record_of_new(&row))
    };
    let app = call.write(create).await?;
    Ok(created(&format!("apps/{}", app.id), &app))
}

/// `GET /v1/apps/{id}`
pub(super) async fn show(call: ConsoleRequest, id: String) -> Result<Response, ApiError> {
    call.query()?.finish(&[])?;
    call.read(move |store, now| response(store, &store.app_by_id(&id)?, now)).await
}

/// `PATCH /v1/apps/{id}`
pub(super) async fn update(call: ConsoleRequest, id: String) -> Result<Response, ApiError> {
    let change = read_change(call.params()?)?;
    call.write(move |store, now| {
        let row = apps::update(store, &id, &change, now)?;
        response(store, &row, now)
    })
    .await
}

/// `DELETE /v1/apps/{id}`
pub(super) async fn delete(call: ConsoleRequest, id: String) -> Result<Response, ApiError> {
    call.query()?.finish(&[])?;
    call.write(move |store, now| {
        let deleted = store.delete_app(&id, now)?;
        let record = DeletedApp { id, deleted_at: deleted.at.rfc3339(), revoked_keys: deleted.revoked_keys };
        Ok::<_, ApiError>(reply::json(StatusCode::OK, &record))
    })
    .await
}

/// The name and the budget of a new app.
pub(in crate::server) fn read_new(mut params: Params) -> Result<(String, Option<NanoUsd>), ApiError> {
    let name = params.required_text("name")?;
    let budget = params.dollars("budget_usd")?;
    params.finish(&FIELDS)?;
    Ok((name, budget))
}

/// The changes of an app.
pub(in crate::server) fn read_change(mut params: Params) -> Result<AppChange, ApiError> {
    let name = params.changed_text("name")?;
    let budget = params.change("budget_usd", Params::dollars)?;
    params.finish(&FIELDS)?;
    Ok(AppChange { name, budget })
}

fn response(store: &Store, row: &AppRow, now: Time) -> Result<Response, ApiError> {
    Ok(reply::json(StatusCode::OK, &apps::record(store, row, now)?))
}
