//! Requests of all kinds as chat completions, and answers as responses and events.

mod answers;
mod requests;

use serde_json::Value;

use super::request::{Translated, translate};
use crate::server::reply::ApiError;

fn translated(body: &Value) -> Result<Translated, ApiError> {
    translate(body.to_string().as_bytes())
}
