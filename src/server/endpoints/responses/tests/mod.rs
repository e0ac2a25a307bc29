//! Requests of all kinds as chat completions, and answers as responses and events.

mod answers;
mod requests;

use serde_json::Value;

use super::request::{self, Translated};
use crate::inference::{Effort, Takes};
use crate::server::endpoints::chat;
use crate::server::reply::ApiError;

const OPENAI: Takes = Takes {
    cache_marks: false,
    least_effort: Some(Effort::None),
    highest_efforts: false,
    thinks_with_tools: false,
    own_format: true,
    max_output_tokens: None,
};

fn translate(
    body: &[u8],
    drop_unsupported: bool,
    takes: impl FnOnce(&str) -> Takes,
) -> Result<Translated, ApiError> {
    request::of(&chat::object(body)?, drop_unsupported, takes)
}

fn translated(body: &Value) -> Result<Translated, ApiError> {
    translate(body.to_string().as_bytes(), false, |_| OPENAI)
}
