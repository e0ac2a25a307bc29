//! Translates a request of the Messages API into one for a chat completion. Pure. Texts, schemas and arguments stay the
//! bytes they are, and are written straight into it.
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
mod path;
mod tools;

use std::collections::HashSet;

use bytes::Bytes;
use serde_json::Value;

use crate::inference::{Fields, Json, Takes};
use crate::json::fields::{write_field, write_number_field, write_string_field};
use crate::server::endpoints::chat::MAX_TOKENS;
use crate::server::endpoints::chat::compose::write_given;
use crate::server::reply::ApiError;
use crate::storage;
use conversation::Conversation;
use left_out::LeftOut;
pub(super) use names::Names;
use path::Path;

/// The fields that are read.
const READ: [&str; 15] = [
    "model",
    "system",
    "messages",
    "max_tokens",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "output_format",
    "metadata",
];

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
pub(crate) enum Purpose {
    /// An answer, for which the most tokens have to be said.
    Answer,
    /// The number of its tokens.
    Count,
}

/// Translates a request with these fields, in which no name appears twice, at any depth, and every string can be decoded.
/// `takes` tells what the models take that may answer for one of this name.
///
/// # Errors
/// 400 with the name of the parameter at fault.
pub(super) fn of(
    fields: &Fields<'_>,
    purpose: Purpose,
    drop_unsupported: bool,
    takes: impl FnOnce(&str) -> Takes,
) -> Result<Translated, ApiError> {
    let model = Path::Parameter("model").string(fields.get("model"))?;
    let takes = takes(&model.string().unwrap_or_default());
    let mut left_out = LeftOut::new(drop_unsupported);
    let mut out = Vec::with_capacity(fields.length() + fields.length() / 8 + 256);
    out.push(b'{');
    write_field(&mut out, "model", model.get());
    let origins = messages(fields, takes, &mut left_out, &mut out)?;
    match max_tokens(fields)? {
        Some(limit) => {
            let most = takes.max_output_tokens.unwrap_or(u64::MAX);
            write_number_field(&mut out, "max_tokens", limit.min(most));
        }
        None if purpose == Purpose::Answer => return Err(Path::Parameter("max_tokens").missing()),
        None => {}
    }
    if fields.get("stream").is_some_and(|stream| stream.get() == "true") {
        write_field(&mut out, "stream_options", "{\"include_usage\":true}");
    }
    for name in ["stream", "temperature", "top_p", "top_k"] {
        write_given(&mut out, name, fields.non_null(name));
    }
    let stop_sequences = stop_sequences(fields)?;
    if !stop_sequences.is_empty() {
        write_given(&mut out, "stop", fields.get("stop_sequences"));
    }
    let tools = tools::translate(fields, takes.cache_marks, &mut left_out, &mut out)?;
    let asked = effort::read(fields, &mut left_out)?;
    asked.write_format(&mut out);
    if let Some(effort) = asked.effort.told(takes, !tools.is_empty(), &mut left_out) {
        write_string_field(&mut out, "reasoning_effort", effort);
    }
    user(fields, &mut left_out, &mut out)?;
    rest(fields, &mut left_out)?;
    out.push(b'}');

    let names = Names { origins, tools, effort: asked.effort.parameter() };
    Ok(Translated {
        body: out.into(),
        names,
        left_out: left_out.finish(),
        shows_thinking: asked.shows_thinking,
        stop_sequences,
    })
}

/// Writes the messages. Returns for each the path of what it was made of.
fn messages(
    fields: &Fields<'_>,
    takes: Takes,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<Vec<String>, ApiError> {
    let mut conversation = Conversation::begin(out, takes.cache_marks, left_out);
    if let Some(system) = fields.non_null("system") {
        let path = Path::Parameter("system");
        conversation.system(system, &path, &path)?;
    }
    let path = Path::Parameter("messages");
    let turns = fields.non_null("messages").ok_or_else(|| path.missing())?;
    if !turns.is_array() || is_empty(turns) {
        return Err(path.wrong_type("a non-empty array of messages", Some(turns)));
    }
    conversation.turns(turns)?;
    Ok(conversation.end())
}

/// The fields that are not read: what only tunes is left out.
fn rest(fields: &Fields<'_>, left_out: &mut LeftOut) -> Result<(), ApiError> {
    for (name, value) in fields.iter().filter(|(name, value)| !READ.contains(name) && !value.is_null()) {
        if TUNING.contains(&name) {
            left_out.note(name);
        } else if !is_empty(value) {
            let why = "only Anthropic's own models support it; leave it out";
            left_out.refuse(&Path::Parameter(name), name, why)?;
        }
    }
    Ok(())
}

/// Whether a value is an empty array or object.
fn is_empty(value: Json<'_>) -> bool {
    let inside = value.get().strip_prefix(['[', '{']).and_then(|rest| rest.strip_suffix([']', '}']));
    inside.is_some_and(|inside| inside.trim_ascii().is_empty())
}

fn max_tokens(fields: &Fields<'_>) -> Result<Option<u64>, ApiError> {
    let Some(value) = fields.non_null("max_tokens") else { return Ok(None) };
    let number = value.read::<u64>().filter(|number| (1..=MAX_TOKENS).contains(number));
    let must_be = || Path::Parameter("max_tokens").must_be(&format!("a whole number from 1 to {MAX_TOKENS}"));
    number.map(Some).ok_or_else(must_be)
}

fn stop_sequences(fields: &Fields<'_>) -> Result<Vec<String>, ApiError> {
    let Some(value) = fields.non_null("stop_sequences") else { return Ok(Vec::new()) };
    value.read().ok_or_else(|| Path::Parameter("stop_sequences").must_be("an array of strings"))
}

/// Writes the user's identifier. One that is too long for other APIs, as that of Claude Code, is replaced with the hash
/// that the ledger has for it.
fn user(fields: &Fields<'_>, left_out: &mut LeftOut, out: &mut Vec<u8>) -> Result<(), ApiError> {
    let path = Path::Parameter("metadata");
    let Some(metadata) = fields.non_null("metadata") else { return Ok(()) };
    let metadata = path.object(metadata)?;
    if metadata.iter().any(|(name, _)| name != "user_id") {
        left_out.note("metadata");
    }
    if metadata.non_null("user_id").is_none() {
        return Ok(());
    }
    let user = path.word_of(&metadata, "user_id")?;
    let is_long = user.chars().count() > storage::MAX_LABEL_CHARS;
    write_string_field(out, "user", &if is_long { storage::kept(&user).into() } else { user });
    Ok(())
}

/// Whether every object of a schema is closed and requires all its properties, as strict modes demand.
fn is_strict(schema: Json<'_>) -> bool {
    schema.read::<Value>().is_some_and(|schema| is_closed(&schema))
}

fn is_closed(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let properties = fields.get("properties").and_then(Value::as_object);
            let required: HashSet<&str> = fields
                .get("required")
                .and_then(Value::as_array)
                .map(|names| names.iter().filter_map(Value::as_str).collect())
                .unwrap_or_default();
            let is_object = |kind: &Value| kind == "object";
            let has_fields = properties.is_some()
                || fields.get("type").is_some_and(|kind| {
                    is_object(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(is_object))
                });
            let is_closed_here = !has_fields
                || fields.get("additionalProperties") == Some(&Value::Bool(false))
                    && properties.is_none_or(|all| all.keys().all(|name| required.contains(name.as_str())));
            is_closed_here && fields.values().all(is_closed)
        }
        Value::Array(items) => items.iter().all(is_closed),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
