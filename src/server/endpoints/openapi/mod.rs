//! `GET /openapi.json`: the whole API in `OpenAPI` 3.1, for people, for client generators and for tests.
//!
//! Responses are described by the wire types themselves ([`schemas`]), so that a field added there is described at
//! once; requests that are read field by field are described by the same constants that they are checked against. What
//! no type says, paths and statuses, is written by hand in a module per area. Tests compare all of it with the server:
//! every path in both directions, every example, and real responses.
//!
//! The description has the ranges that this server is configured for, so it is made once per configuration, when it is
//! first requested: a server that is embedded for one command never makes it.

mod console;
mod example;
mod headers;
mod inference;
mod info;
mod operation;
mod pages;
mod parameters;
mod responses;
mod schemas;
#[cfg(test)]
mod tests;
mod verify;

pub(crate) use responses::by_status as error_codes;

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use warp::reply::Response;

use super::verify::panel_size;
use crate::api::verify::{Domain, MIN_REQUIRED};
use crate::app::Configured;
use crate::hex::hex;
use crate::server::request::incoming::Incoming;
use crate::server::{ServerState, gate, reply, with_rate};
use schemas::Schemas;

/// The description as it is served.
pub(in crate::server) struct Document {
    body: Bytes,
    etag: HeaderValue,
}

/// The document that was made last, with its bounds.
#[derive(Default)]
pub(in crate::server) struct Cache(ArcSwapOption<(Bounds, Document)>);

impl Cache {
    /// The document for these bounds. Concurrent requests for a new one each make it.
    fn get(&self, bounds: Bounds) -> Arc<(Bounds, Document)> {
        if let Some(cached) = self.0.load_full().filter(|cached| cached.0 == bounds) {
            return cached;
        }
        let made = Arc::new((bounds, Document::new(&describe(bounds))));
        self.0.store(Some(made.clone()));
        made
    }
}

/// The limits that depend on the configuration: the widest of all domains.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bounds {
    fact_chars: usize,
    panel: u32,
}

impl Bounds {
    fn new(configured: &Configured) -> Self {
        let domains = [Domain::General, Domain::Legal].map(|domain| configured.verifier.settings(domain));
        Self {
            fact_chars: domains.iter().map(|settings| settings.max_fact_chars).fold(0, usize::max),
            panel: domains.into_iter().map(panel_size).fold(*MIN_REQUIRED.start(), u32::max),
        }
    }
}

/// Answers a request for the description.
pub(crate) async fn show(context: &ServerState, incoming: &Incoming) -> Response {
    match gate::open_page(&context.app, incoming).await {
        Ok(rate) => with_rate(answer(context, incoming), rate),
        Err(limited) => limited.into_response(incoming),
    }
}

fn answer(context: &ServerState, incoming: &Incoming) -> Response {
    let cached = context.openapi.get(Bounds::new(&incoming.configured));
    let document = &cached.1;
    let mut response = if has_current_copy(&incoming.headers, &document.etag) {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        reply::json_bytes(document.body.clone())
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, document.etag.clone());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// Whether the caller has a copy with this tag.
fn has_current_copy(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value
            .split(',')
            .map(str::trim)
            .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == *etag)
    })
}

impl Document {
    fn new(description: &Value) -> Self {
        // A value always serializes.
        let body = serde_json::to_vec(description).unwrap_or_default();
        let tag = hex(&Sha256::digest(&body)[..8]);
        let etag = HeaderValue::try_from(format!("\"{tag}\"")).unwrap_or(HeaderValue::from_static("\"\""));
        Self { body: body.into(), etag }
    }
}

/// The whole description.
fn describe(bounds: Bounds) -> Value {
    let mut schemas = Schemas::new();
    let areas = [
        verify::paths(&mut schemas, bounds),
        inference::paths(&mut schemas),
        console::paths(&mut schemas),
        pages::paths(),
    ];
    let paths: Map<String, Value> = areas.into_iter().flatten().collect();
    let mut description = info::head();
    description["paths"] = Value::Object(paths);
    let code = responses::code(&mut schemas);
    let mut schemas = schemas.finish();
    for name in ["ErrorBody", "ErrorEvent", "ChatFault", "OpenAiError", "AnthropicError"] {
        schemas[name]["properties"]["code"] = code.clone();
    }
    description["components"] = json!({
        "schemas": schemas,
        "responses": responses::errors(),
        "parameters": parameters::all(),
        "headers": headers::all(),
        "securitySchemes": info::security(),
    });
    description
}
