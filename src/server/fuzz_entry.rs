//! Parsing of requests without a server, by the very functions that its routes use, for fuzzing (`tests/fuzz`). No
//! model is called, and nothing is stored or counted.
//!
//! Every error is the body that the caller would get, without the request's id.

use super::endpoints::console::query::Query;
use super::endpoints::console::{apps, keys, usage};
use super::endpoints::{chat, verify};
use super::reply::ApiError;
use super::request::params::Params;
use crate::api::Service;
use crate::api::console::{KeyChange, KeyState};
use crate::api::error::ErrorBody;
use crate::api::verify::Domain;
use crate::clock::Time;
use crate::inference::CompletionRequest;
use crate::keys::NewKey;
use crate::money::NanoUsd;
use crate::storage::{AppChange, Order, PageRequest};
use crate::usage::ReportRequest;
use crate::verify::{Job, Settings};

type Parsed<T> = Result<T, Box<ErrorBody>>;

/// The body of `POST /inference/v1/chat/completions`: the model, and the completion it is asked for.
pub fn completion(body: &[u8]) -> Parsed<(String, CompletionRequest<'_>)> {
    chat::read(body).map_err(error_body)
}

/// The body of `POST /verify/v1/stream` and of `POST /verify/v1/extract`, for a server with these panels at this time.
pub fn verification(body: &[u8], settings: &Settings, now: Time) -> Parsed<Job> {
    let settings_of = |domain| match domain {
        Domain::General => &settings.general,
        Domain::Legal => &settings.legal,
    };
    verify::read_job(body, settings_of, now, false).map(|(job, _)| job).map_err(error_body)
}

/// The body of `POST /v1/apps`: name and budget.
pub fn new_app(body: &[u8]) -> Parsed<(String, Option<NanoUsd>)> {
    Params::parse(body).and_then(apps::read_new).map_err(error_body)
}

/// The body of `PATCH /v1/apps/{id}`.
pub fn app_change(body: &[u8]) -> Parsed<AppChange> {
    Params::parse(body).and_then(apps::read_change).map_err(error_body)
}

/// The body of `POST /v1/apps/{id}/keys`, for the app of this name or id.
pub fn new_key(body: &[u8], app: &str) -> Parsed<NewKey> {
    Params::parse(body).and_then(|params| keys::read_new(params, app)).map_err(error_body)
}

/// The body of `PATCH /v1/apps/{id}/keys/{key_id}`.
pub fn key_change(body: &[u8]) -> Parsed<KeyChange> {
    Params::parse(body).and_then(keys::read_change).map_err(error_body)
}

/// The body of `POST /v1/apps/{id}/keys/{key_id}/rotate`: for how many seconds the old key stays valid.
pub fn rotation(body: &[u8]) -> Parsed<u32> {
    Params::parse(body).and_then(keys::read_grace).map_err(error_body)
}

/// The query of `GET /v1/apps/{id}/keys`: the page, its order, and the filters by service and state.
pub fn key_list(query: &str) -> Parsed<(PageRequest, Order, Option<Service>, Option<KeyState>)> {
    Query::parse(query).and_then(keys::read_list).map_err(error_body)
}

/// The query of `GET /v1/usage`, at this time.
pub fn usage_report(query: &str, now: Time) -> Parsed<ReportRequest> {
    Query::parse(query).and_then(|query| usage::read(query, now)).map_err(error_body)
}

fn error_body(error: ApiError) -> Box<ErrorBody> {
    Box::new(error.into_body(""))
}
