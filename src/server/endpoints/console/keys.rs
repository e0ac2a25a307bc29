//! `/v1/apps/{id}/keys`. A key is only found under the app that it belongs to.

use std::time::Duration;

use http::StatusCode;
use warp::reply::Response;

use super::query::Query;
use super::{ConsoleRequest, created, page};
use crate::api::Service;
use crate::api::cache_time::CacheTime;
use crate::api::console::{
    CreatedKey, KeyChange, KeySettings, KeyState, LimitsChange, OwnEndUserLimits, RevokedKey,
};
use crate::api::guard::Guard;
use crate::clock::Time;
use crate::keys::{self, NewKey};
use crate::money::NanoUsd;
use crate::secret::{ExposeSecret, SecretString};
use crate::server::reply::{self, ApiError};
use crate::server::request::params::{Params, invalid};
use crate::storage::{KeyFilter, KeyRow, Order, PageRequest, Store};

const FIELDS: [&str; 10] = [
    "service",
    "name",
    "expires_at",
    "limits",
    "models",
    "addresses",
    "budget_usd",
    "cache",
    "verify",
    "end_users",
];
const SERVICES: &str = "verify, inference or console";
/// How long a rotated key may stay valid at most: a year.
pub(in crate::server) const MAX_GRACE_SECONDS: u32 = 366 * 86_400;

/// `GET /v1/apps/{id}/keys`
pub(super) async fn list(call: ConsoleRequest, app: String) -> Result<Response, ApiError> {
    let (span, order, service, state) = read_list(call.query()?)?;
    let limit = span.limit;
    let more = PageRequest { limit: limit + 1, ..span };
    let records = call
        .read(move |store, now| {
            let filter = KeyFilter { app_id: Some(store.app_by_id(&app)?.id), service, revoked_too: true };
            let rows = store.keys_page(&filter, state, now, &more, order)?;
            Ok::<_, ApiError>(keys::records(store, &rows, now)?)
        })
        .await?;
    Ok(reply::json(StatusCode::OK, &page(records, limit, |key| &key.id)))
}

/// `POST /v1/apps/{id}/keys`
pub(super) async fn create(call: ConsoleRequest, app: String) -> Result<Response, ApiError> {
    let new = read_new(call.params()?, &app)?;
    call.write(move |store, now| {
        // Only by its id, as names are for people.
        store.app_by_id(&app)?;
        let (key, row) = keys::create(store, &new, now)?;
        Ok::<_, ApiError>(with_key(&key, &row, "keys", now))
    })
    .await
}

/// `GET /v1/apps/{id}/keys/{key_id}`
pub(super) async fn show(call: ConsoleRequest, app: String, key: String) -> Result<Response, ApiError> {
    call.query()?.finish(&[])?;
    call.read(move |store, now| {
        require_key_of_app(store, &app, &key)?;
        let row = store.key(&key)?;
        Ok::<_, ApiError>(reply::json(StatusCode::OK, &record(store, &row, now)?))
    })
    .await
}

/// `PATCH /v1/apps/{id}/keys/{key_id}`
pub(super) async fn update(call: ConsoleRequest, app: String, key: String) -> Result<Response, ApiError> {
    let change = read_change(call.params()?)?;
    call.write(move |store, now| {
        require_key_of_app(store, &app, &key)?;
        let row = keys::update(store, &key, &change, now)?;
        Ok::<_, ApiError>(reply::json(StatusCode::OK, &record(store, &row, now)?))
    })
    .await
}

/// `DELETE /v1/apps/{id}/keys/{key_id}`: revokes, for ever.
pub(super) async fn revoke(call: ConsoleRequest, app: String, key: String) -> Result<Response, ApiError> {
    call.query()?.finish(&[])?;
    call.write(move |store, now| {
        require_key_of_app(store, &app, &key)?;
        let at = store.revoke_key(&key, now)?;
        let record = RevokedKey { id: key, revoked_at: at.rfc3339() };
        Ok::<_, ApiError>(reply::json(StatusCode::OK, &record))
    })
    .await
}

/// `POST /v1/apps/{id}/keys/{key_id}/rotate`
pub(super) async fn rotate(call: ConsoleRequest, app: String, key: String) -> Result<Response, ApiError> {
    let grace = if call.body.is_empty() {
        call.query()?.finish(&[])?;
        0
    } else {
        read_grace(call.params()?)?
    };
    call.write(move |store, now| {
        require_key_of_app(store, &app, &key)?;
        let (key, row) = keys::rotate(store, &key, Duration::from_secs(grace.into()), now)?;
        Ok::<_, ApiError>(with_key(&key, &row, "..", now))
    })
    .await
}

/// The page of a list, its order, and its filters by service and state.
pub(in crate::server) fn read_list(
    mut query: Query,
) -> Result<(PageRequest, Order, Option<Service>, Option<KeyState>), ApiError> {
    let span = query.page("key")?;
    let order = query.order()?;
    let service = query.keyword("service", SERVICES, |text| text.parse::<Service>().ok())?;
    let state = query.keyword("state", "active, expired or revoked", KeyState::named)?;
    query.finish(&["service", "state", "order", "limit", "cursor"])?;
    Ok((span, order, service, state))
}

/// The properties of a new key in `app`.
pub(in crate::server) fn read_new(mut params: Params, app: &str) -> Result<NewKey, ApiError> {
    let service = params.required_text("service")?;
    let service: Service =
        service.parse().map_err(|_| invalid("service", format!("`service` must be {SERVICES}")))?;
    let change = read_settings(&mut params)?;
    params.finish(&FIELDS)?;
    Ok(NewKey { settings: change.applied_to(&KeySettings::default()), ..NewKey::new(service, app) })
}

/// The changes of a key.
pub(in crate::server) fn read_change(mut params: Params) -> Result<KeyChange, ApiError> {
    let change = read_settings(&mut params)?;
    params.finish(&FIELDS[1..])?;
    Ok(change)
}

fn read_settings(params: &mut Params) -> Result<KeyChange, ApiError> {
    Ok(KeyChange {
        name: params.change("name", Params::text)?,
        expires_at: params.change("expires_at", time)?,
        limits: limits(params)?,
        models: params.change("models", Params::texts)?.map(Option::unwrap_or_default),
        addresses: params.change("addresses", Params::texts)?.map(Option::unwrap_or_default),
        budget: params.change("budget_usd", Params::dollars)?,
        cache: params
            .change("cache", |params, name| params.parsed(name, CacheTime::FORM, CacheTime::parse))?,
        verify: params.change("verify", |params, name| params.parsed(name, Guard::FORM, Guard::named))?,
        end_users: params.change("end_users", end_users)?,
    })
}

/// For how many seconds a rotated key stays valid.
pub(in crate::server) fn read_grace(mut params: Params) -> Result<u32, ApiError> {
    let grace = params.whole_number("grace_seconds", 0..=MAX_GRACE_SECONDS)?;
    params.finish(&["grace_seconds"])?;
    Ok(grace.unwrap_or_default())
}

/// Fails as not found unless the key with this id belongs to this app and the app is not deleted. Does not read the
/// ledger, so that keys can be revoked without it.
fn require_key_of_app(store: &Store, app: &str, key: &str) -> Result<(), ApiError> {
    if *store.key_alone(key)?.app_id != *store.app_by_id(app)?.id {
        return Err(crate::storage::Error::NotFound.into());
    }
    Ok(())
}

fn record(store: &Store, row: &KeyRow, now: Time) -> Result<crate::api::console::Key, ApiError> {
    Ok(keys::record(row, keys::spending(store, &row.id, now)?, now))
}

/// The one response that holds the key itself; `list` is the path of the list of keys, relative to the requested one.
fn with_key(key: &SecretString, row: &KeyRow, list: &str, now: Time) -> Response {
    // It has not been used yet.
    let record = keys::record(row, NanoUsd::default(), now);
    let location = format!("{list}/{}", row.id);
    created(&location, &CreatedKey { key: key.expose_secret().to_owned(), record })
}

fn time(params: &mut Params, name: &'static str) -> Result<Option<Time>, ApiError> {
    let Some(text) = params.text(name)? else { return Ok(None) };
    let error = || invalid(name, format!("`{name}` must be a time such as 2027-01-31T12:00:00Z, or a date"));
    Time::parse(&text).map(Some).ok_or_else(error)
}

/// The limits for each end user; null stands for the server's.
fn end_users(params: &mut Params, name: &'static str) -> Result<Option<OwnEndUserLimits>, ApiError> {
    let Some(mut limits) = params.object(name)? else { return Ok(None) };
    let read = OwnEndUserLimits {
        per_minute: limits.whole_number("per_minute", 0..=u32::MAX)?,
        per_day: limits.whole_number("per_day", 0..=u32::MAX)?,
        budget_per_day: limits.dollars("budget_usd_per_day")?,
        budget_per_month: limits.dollars("budget_usd_per_month")?,
    };
    limits.finish(&OwnEndUserLimits::NAMES)?;
    Ok(read.non_empty())
}

/// The limits per minute and per day in `limits`; null stands for the server's defaults.
fn limits(params: &mut Params) -> Result<LimitsChange, ApiError> {
    let Some(limits) = params.change("limits", Params::object)? else { return Ok(LimitsChange::default()) };
    let Some(mut limits) = limits else {
        return Ok(LimitsChange { per_minute: Some(None), per_day: Some(None) });
    };
    let any = |limits: &mut Params, name| limits.whole_number(name, 0..=u32::MAX);
    let change = LimitsChange {
        per_minute: limits.change("per_minute", any)?,
        per_day: limits.change("per_day", any)?,
    };
    limits.finish(&["per_minute", "per_day"])?;
    Ok(change)
}
