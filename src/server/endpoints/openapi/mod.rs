//! `GET /openapi.json`: the whole API in `OpenAPI` 3.1, for people, for client generators and for tests.
//!
//! Responses are described by the wire types themselves ([`schemas`]), so that a field added there is described at
//! once. What no type says is written down in `data`: operations, parameters, headers, the schemas of what is read field
//! by field or passed on, and examples. There, `"$name"` stands for a value of `values.json` or a constant of the
//! program, so that a range is described by what it is checked against; and `"$": "$name"` in an object for the fields of
//! such a value, which later fields replace. Tests compare all of it with the server: every path in both directions,
//! every example, and real responses.
//!
//! The description has the ranges that this server is configured for, so it is made once per configuration, when it is
//! first requested: a server that is embedded for one command never makes it.

mod operation;
mod responses;
mod schemas;
#[cfg(test)]
mod tests;

pub(crate) use responses::by_status as error_codes;

use std::mem;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use warp::reply::Response;

use super::chat::{MAX_TOKENS, ROLES, TEMPERATURE};
use super::console::{DEFAULT_PAGE_SIZE, MAX_GRACE_SECONDS, MAX_PAGE_SIZE};
use super::dashboard::{self, File};
use super::embeddings::{ENCODINGS, MAX_DIMENSIONS, MAX_INPUTS};
use super::verify::panel_size;
use crate::api::guard::Guard;
use crate::api::verify::{Domain, MIN_REQUIRED};
use crate::app::Configured;
use crate::inference::MAX_CHOICES;
use crate::keys::{MAX_APP_NAME_CHARS, MAX_KEY_NAME_CHARS, MAX_LIST_ENTRIES, MAX_PATTERN_CHARS};
use crate::money::NanoUsd;
use crate::server::reply::{self, ApiError};
use crate::server::request::incoming::Incoming;
use crate::server::{ServerState, gate};
use operation::Operation;

/// The description that was made last, as it is served, with its bounds.
#[derive(Default)]
pub(in crate::server) struct Cache(ArcSwapOption<(Bounds, File)>);

impl Cache {
    /// The description for these bounds. Concurrent requests for a new one each make it.
    fn get(&self, bounds: Bounds) -> Arc<(Bounds, File)> {
        if let Some(cached) = self.0.load_full().filter(|cached| cached.0 == bounds) {
            return cached;
        }
        // Tests hold that it can be made.
        let text = describe(bounds).map(|description| description.to_string()).unwrap_or_default();
        let made = Arc::new((bounds, File::new("openapi.json", text.into())));
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
pub(crate) async fn show(context: &ServerState, incoming: &Incoming) -> Result<Response, ApiError> {
    let rate = gate::open_page(&context.app, incoming).await?;
    let cached = context.openapi.get(Bounds::new(&incoming.configured));
    reply::within(rate, dashboard::answer(Some((&cached.1, false)), &incoming.headers))
}

/// The whole description.
///
/// # Errors
/// If a part of it cannot be read.
fn describe(bounds: Bounds) -> serde_json::Result<Value> {
    let mut named = constants();
    named.extend(serde_json::from_str::<Map<_, _>>(include_str!("data/values.json"))?);
    let operations: Vec<Operation> = read(include_str!("data/operations.json"), &named)?;
    let by_hand = read(include_str!("data/schemas.json"), &named)?;
    let mut components: Map<String, Value> = read(include_str!("data/components.json"), &named)?;
    components.insert("schemas".to_owned(), schemas::all(bounds, by_hand).into());
    components.insert("responses".to_owned(), responses::errors().into());
    let mut description: Value = read(include_str!("data/head.json"), &named)?;
    description["paths"] = operation::paths(&operations).into();
    description["components"] = components.into();
    Ok(description)
}

/// Reads a part of the description, and puts values in place of their names.
fn read<T: DeserializeOwned>(text: &str, named: &Map<String, Value>) -> serde_json::Result<T> {
    let mut value = serde_json::from_str(text)?;
    fill(&mut value, named);
    serde_json::from_value(value)
}

fn fill(value: &mut Value, named: &Map<String, Value>) {
    match value {
        Value::String(text) => {
            if let Some(meant) = text.strip_prefix('$').and_then(|name| named.get(name)) {
                *value = meant.clone();
                fill(value, named);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, named)),
        Value::Object(map) => {
            for (name, mut field) in mem::take(map) {
                fill(&mut field, named);
                match field {
                    Value::Object(fields) if name == "$" => map.extend(fields),
                    field => map.extend([(name, field)]),
                }
            }
        }
        _ => {}
    }
}

/// What the data name in capitals.
fn constants() -> Map<String, Value> {
    let or_null =
        |names: &[&str]| names.iter().copied().map(Value::from).chain([Value::Null]).collect::<Value>();
    let constants = json!({
        "ABOUT": include_str!("data/about.md").trim_end(),
        "DEFAULT_PAGE_SIZE": DEFAULT_PAGE_SIZE,
        "ENCODINGS": or_null(&ENCODINGS),
        "GUARDS": or_null(&Guard::ALL.map(Guard::as_str)),
        "MAX_APP_NAME_CHARS": MAX_APP_NAME_CHARS,
        "MAX_CHOICES": MAX_CHOICES,
        "MAX_DIMENSIONS": MAX_DIMENSIONS,
        "MAX_GRACE_SECONDS": MAX_GRACE_SECONDS,
        "MAX_INPUTS": MAX_INPUTS,
        "MAX_KEY_NAME_CHARS": MAX_KEY_NAME_CHARS,
        "MAX_LIST_ENTRIES": MAX_LIST_ENTRIES,
        "MAX_PAGE_SIZE": MAX_PAGE_SIZE,
        "MAX_PATTERN_CHARS": MAX_PATTERN_CHARS,
        "MAX_TEMPERATURE": TEMPERATURE.end(),
        "MAX_TOKENS": MAX_TOKENS,
        "MAX_USD": NanoUsd::MAX_USD,
        "MIN_TEMPERATURE": TEMPERATURE.start(),
        "ROLES": ROLES,
        "VERSION": env!("CARGO_PKG_VERSION"),
    });
    constants.as_object().cloned().unwrap_or_default()
}

/// A reference to a component of this kind.
fn reference(kind: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{kind}/{name}")})
}
