//! The console area, `/v1`.
//!
//! [`Endpoint`](crate::api::endpoint::Endpoint) determines the paths and their methods; a test compares the two.

mod apps;
mod example;
mod keys;
mod sessions;
mod trials;
mod usage;

use serde_json::{Value, json};

use super::operation::Operation;
use super::schemas::Schemas;
use crate::money::NanoUsd;

/// The security schemes: a console key, or a session made from one.
const SECURITY: [&str; 2] = ["consoleKey", "consoleSession"];
/// The errors of reading.
const READ: [u16; 6] = [400, 401, 403, 429, 500, 503];
/// The errors of reading one object.
const READ_ONE: [u16; 7] = [400, 401, 403, 404, 429, 500, 503];
/// The errors of writing with a body.
const WRITE: [u16; 11] = [400, 401, 403, 404, 408, 409, 413, 415, 429, 500, 503];
/// The errors of deleting or revoking an object.
const DELETE: [u16; 8] = [400, 401, 403, 404, 409, 429, 500, 503];

/// The area's paths.
pub(super) fn paths(schemas: &mut Schemas) -> Vec<(String, Value)> {
    let mut all = apps::paths(schemas);
    all.extend(keys::paths(schemas));
    all.extend(trials::paths(schemas));
    all.extend(usage::paths(schemas));
    all.extend(sessions::paths(schemas));
    all
}

/// An operation of the console.
fn operation(tag: &str, id: &str, summary: &str, description: &str) -> Operation {
    Operation::new(tag, id, summary, description).secured(&SECURITY)
}

/// The schema of a name: at most `max` characters on one line, of which at least one is visible.
fn name(max: usize, description: &str) -> Value {
    const FORBIDDEN: &str = r"\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069";
    const INVISIBLE: &str = r"\s\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u2060-\u2064\u3164\ufe00-\ufe0f\ufeff\uffa0";
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": max,
        "pattern": format!("^[^{FORBIDDEN}]*[^{FORBIDDEN}{INVISIBLE}][^{FORBIDDEN}]*$"),
        "description": description,
    })
}

/// The schema of a monthly budget.
fn budget(whose: &str) -> Value {
    amount(&format!("{whose} budget for a UTC month, in US dollars; null for none."))
}

fn amount(description: &str) -> Value {
    json!({
        "type": ["number", "null"],
        "minimum": 0,
        "maximum": NanoUsd::MAX_USD,
        "description": description,
    })
}
