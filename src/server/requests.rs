//! What callers' bytes are read as, without a server around them: by the very functions that its routes use, for whoever
//! throws bytes at these (`tests/fuzz`). Nothing is asked, stored or counted here.
//!
//! Every refusal is the body that the caller would get, without the request's id.

use super::console::query::Query;
use super::console::{apps, keys, usage};
use super::params::Params;
use super::reply::ApiError;
use super::{chat, verify};
use crate::api::Service;
use crate::api::console::KeyState;
use crate::api::error::ErrorBody;
use crate::api::verify::Domain;
use crate::clock::Time;
use crate::inference::CompletionRequest;
use crate::keys::NewKey;
use crate::money::NanoUsd;
use crate::storage::{AppChange, KeyChange, Span};
use crate::usage::ReportRequest;
use crate::verify::{Job, Settings};

type Read<T> = Result<T, Box<ErrorBody>>;

/// The body of `POST /inference/v1/chat/completions`: the model, and what is asked of it.
pub fn completion(body: &[u8]) -> Read<(String, CompletionRequest<'_>)> {
    chat::read(body).map_err(refusal)
}

/// The body of `POST /verify/v1/stream`, for a server with these panels at this time.
pub fn verification(body: &[u8], settings: &Settings, now: Time) -> Read<Job> {
    let of_domain = |domain| match domain {
        Domain::General => &settings.general,
        Domain::Legal => &settings.legal,
    };
    verify::read_job(body, of_domain, now, false).map_err(refusal)
}

/// The body of `POST /v1/apps`: name and budget.
pub fn new_app(body: &[u8]) -> Read<(String, Option<NanoUsd>)> {
    Params::parse(body).and_then(apps::read_new).map_err(refusal)
}

/// The body of `PATCH /v1/apps/{id}`.
pub fn app_change(body: &[u8]) -> Read<AppChange> {
    Params::parse(body).and_then(apps::read_change).map_err(refusal)
}

/// The body of `POST /v1/apps/{id}/keys`, for the app of this name or id.
pub fn new_key(body: &[u8], app: &str) -> Read<NewKey> {
    Params::parse(body).and_then(|params| keys::read_new(params, app)).map_err(refusal)
}

/// The body of `PATCH /v1/apps/{id}/keys/{key_id}`.
pub fn key_change(body: &[u8]) -> Read<KeyChange> {
    Params::parse(body).and_then(keys::read_change).map_err(refusal)
}

/// The body of `POST /v1/apps/{id}/keys/{key_id}/rotate`: for how many seconds the old key lives on.
pub fn rotation(body: &[u8]) -> Read<u32> {
    Params::parse(body).and_then(keys::read_grace).map_err(refusal)
}

/// The query of `GET /v1/apps/{id}/keys`: which part of the keys for a service, in a state.
pub fn key_list(query: &str) -> Read<(Span, Option<Service>, Option<KeyState>)> {
    Query::parse(query).and_then(keys::read_list).map_err(refusal)
}

/// The query of `GET /v1/usage`, at this time.
pub fn usage_report(query: &str, now: Time) -> Read<ReportRequest> {
    Query::parse(query).and_then(|query| usage::read(query, now)).map_err(refusal)
}

fn refusal(error: ApiError) -> Box<ErrorBody> {
    Box::new(error.into_body(""))
}
