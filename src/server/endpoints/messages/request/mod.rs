//! Translates a request of the Messages API into one for a chat completion. Pure.
//!
//! What must hold: every field is translated, left out and named, or refused by name. Left out is what only tunes an
//! answer and the models that may be asked take nothing like ([`Takes`]), such as marks for a cache or a budget of
//! thoughts: agents send these by default, whatever model they talk to. Refused is what would change the answer, unless
//! the operator wants that left out as well (`drop_unsupported`).

mod blocks;
mod conversation;
mod effort;
mod left_out;
mod names;
mod tools;

use std::collections::HashSet;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::inference::Takes;
use crate::json::write::written;
use crate::server::endpoints::chat::MAX_TOKENS;
use crate::server::reply::ApiError;
use crate::server::request::params::{Params, invalid, missing, wrong_type};
use crate::storage;
use conversation::Conversation;
use left_out::LeftOut;
pub(super) use names::Names;

/// The fields that only tune an answer, for which no other protocol has anything.
const TUNING: [&str; 7] = [
    "cache_control",
    "context_management",
    "service_tier",
    "speed",
    "diagnostics",
    "user_profile_id",
    "task_budget",
];

/// A request as one for a chat completion.
#[derive(Debug)]
pub(super) struct Translated {
    pub(super) body: Bytes,
    /// What its parts are called in the request that it was made of.
    pub(super) names: Names,
    /// The names of what was left out.
    pub(super) left_out: Vec<String>,
    /// Whether the caller wants to see the model's thoughts.
    pub(super) shows_thinking: bool,
    /// The texts at which the answer is to end.
    pub(super) stop_sequences: Vec<String>,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// An answer, for which the most tokens have to be said.
    Answer,
    /// The number of its tokens.
    Count,
}

/// Translates a request. `takes` tells what the models take that may answer for one of this name.
///
/// # Errors
/// 400 with the name of the parameter at fault.
pub(super) fn translate(
    body: &[u8],
    purpose: Purpose,
    drop_unsupported: bool,
    takes: impl FnOnce(&str) -> Takes,
) -> Result<Translated, ApiError> {
    let mut fields = Params::parse(body)?.into_fields();
    let model = text(&mut fields, "model")?.ok_or_else(|| missing("model"))?;
    let takes = takes(&model);
    let mut left_out = LeftOut::new(drop_unsupported);

    let mut conversation = Conversation::new(takes.cache_marks, &mut left_out);
    if let Some(system) = take(&mut fields, "system") {
        conversation.system(system, "system")?;
    }
    match take(&mut fields, "messages") {
        None => return Err(missing("messages")),
        Some(Value::Array(turns)) if !turns.is_empty() => conversation.turns(turns)?,
        Some(other) => return Err(wrong_type("messages", "a non-empty array of messages", &other)),
    }
    let (messages, origins) = conversation.finish();

    let mut chat = Map::new();
    chat.insert("model".to_owned(), model.into());
    chat.insert("messages".to_owned(), messages.into());
    match whole(&mut fields, "max_tokens")? {
        Some(limit) => {
            let most = takes.max_output_tokens.unwrap_or(u64::MAX);
            chat.insert("max_tokens".to_owned(), limit.min(most).into());
        }
        None if purpose == Purpose::Answer => return Err(missing("max_tokens")),
        None => {}
    }
    if let Some(stream) = take(&mut fields, "stream") {
        if stream == true {
            chat.insert("stream_options".to_owned(), json!({"include_usage": true}));
        }
        chat.insert("stream".to_owned(), stream);
    }
    for name in ["temperature", "top_p", "top_k"] {
        if let Some(value) = take(&mut fields, name) {
            chat.insert(name.to_owned(), value);
        }
    }
    let stop_sequences = stop_sequences(&mut fields)?;
    if !stop_sequences.is_empty() {
        chat.insert("stop".to_owned(), json!(stop_sequences));
    }
    let tools = tools::translate(&mut fields, takes.cache_marks, &mut left_out)?;
    let has_tools = !tools.is_empty();
    let tools = tools.write(&mut chat);
    let asked = effort::read(&mut fields, &mut left_out)?;
    if let Some(format) = asked.format {
        chat.insert("response_format".to_owned(), format);
    }
    if let Some(effort) = asked.effort.told(takes, has_tools, &mut left_out) {
        chat.insert("reasoning_effort".to_owned(), effort.into());
    }
    if let Some(user) = user(&mut fields, &mut left_out)? {
        chat.insert("user".to_owned(), user.into());
    }
    rest(fields, &mut left_out)?;

    let names = Names { origins, tools, effort: asked.effort.parameter() };
    Ok(Translated {
        body: written(&chat),
        names,
        left_out: left_out.finish(),
        shows_thinking: asked.shows_thinking,
        stop_sequences,
    })
}

/// The fields that are not read: what only tunes is left out.
fn rest(fields: Map<String, Value>, left_out: &mut LeftOut) -> Result<(), ApiError> {
    for (name, value) in fields {
        let is_empty = match &value {
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        if TUNING.contains(&name.as_str()) {
            left_out.note(&name);
        } else if !is_empty {
            left_out.refuse(&name, &name, "only Anthropic's own models support it; leave it out")?;
        }
    }
    Ok(())
}

fn take(fields: &mut Map<String, Value>, name: &str) -> Option<Value> {
    fields.shift_remove(name)
}

fn text(fields: &mut Map<String, Value>, name: &str) -> Result<Option<String>, ApiError> {
    match take(fields, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong_type(name, "a string", &other)),
    }
}

fn whole(fields: &mut Map<String, Value>, name: &str) -> Result<Option<u64>, ApiError> {
    let Some(value) = take(fields, name) else { return Ok(None) };
    let number = value.as_u64().filter(|number| (1..=MAX_TOKENS).contains(number));
    number
        .map(Some)
        .ok_or_else(|| invalid(name, format!("`{name}` must be a whole number from 1 to {MAX_TOKENS}")))
}

fn stop_sequences(fields: &mut Map<String, Value>) -> Result<Vec<String>, ApiError> {
    const NAME: &str = "stop_sequences";
    let Some(value) = take(fields, NAME) else { return Ok(Vec::new()) };
    serde_json::from_value(value).map_err(|_| invalid(NAME, "`stop_sequences` must be an array of strings"))
}

/// The user's identifier. One that is too long for other APIs, as that of Claude Code, is replaced with the hash that the
/// ledger has for it.
fn user(fields: &mut Map<String, Value>, left_out: &mut LeftOut) -> Result<Option<String>, ApiError> {
    let mut metadata = match take(fields, "metadata") {
        None => return Ok(None),
        Some(Value::Object(metadata)) => metadata,
        Some(other) => return Err(wrong_type("metadata", "an object", &other)),
    };
    let user = metadata.shift_remove("user_id").filter(|user| !user.is_null());
    if !metadata.is_empty() {
        left_out.note("metadata");
    }
    match user {
        None => Ok(None),
        Some(Value::String(user)) if user.chars().count() > storage::MAX_LABEL_CHARS => {
            Ok(Some(storage::kept(&user)))
        }
        Some(Value::String(user)) => Ok(Some(user)),
        Some(other) => Err(wrong_type("metadata.user_id", "a string", &other)),
    }
}

/// Whether every object of a schema is closed and requires all its properties, as strict modes demand.
fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let properties = fields.get("properties").and_then(Value::as_object);
            let required: HashSet<&str> = fields
                .get("required")
                .and_then(Value::as_array)
                .map(|names| names.iter().filter_map(Value::as_str).collect())
                .unwrap_or_default();
            let is_closed = properties.is_none_or(|properties| {
                fields.get("additionalProperties") == Some(&Value::Bool(false))
                    && properties.keys().all(|name| required.contains(name.as_str()))
            });
            is_closed && fields.values().all(is_strict)
        }
        Value::Array(items) => items.iter().all(is_strict),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
