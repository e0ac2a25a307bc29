//! A caller's chat-completion request, decoded for dialects of other formats.
//!
//! This is the part that those dialects share: reading the fields, extracting the conversation, and refusing what only
//! the chat-completion format itself supports. The dialects encode the result and refuse what they in particular cannot
//! express. What must hold: every field is read, known to have no effect on the answer, or refused by name; none is
//! dropped silently.

mod conversation;
mod left_out;
mod names;
mod parts;
mod tools;

pub(super) use conversation::{ContentPart, Part, Speaker, Turn};
pub use left_out::ReducedRequest;
pub(super) use left_out::ignored;
pub(super) use parts::{Data, Image};
pub(super) use tools::{Tool, ToolChoice, Tools};

use serde_json::Value;

use super::Failure;
use super::completion::CompletionRequest;
use crate::json::fields::Fields;
use crate::json::reader::Json;
use crate::unsafe_chars::name_in_message;

/// The fields that are read, here or earlier by the server.
const KNOWN_FIELDS: [&str; 19] = [
    "model",
    "messages",
    "stream",
    "stream_options",
    "n",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "top_k",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "stop",
    "reasoning_effort",
    "response_format",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
];

/// The fields that have no effect on the answer: who asks (`user`, `safety_identifier`), what the provider should store
/// (`store`, `metadata`), and cache hints. They are not passed on, as they were meant for another company.
pub(super) const IGNORED_FIELDS: [&str; 6] =
    ["user", "safety_identifier", "store", "metadata", "prompt_cache_key", "prompt_cache_retention"];

/// A decoded request.
#[derive(Debug)]
pub(super) struct DecodedRequest {
    /// All texts of the system and developer roles, in order; nothing but texts.
    pub(super) system: Vec<Part>,
    /// At least one; none is empty, and no two consecutive turns have the same speaker.
    pub(super) turns: Vec<Turn>,
    pub(super) tools: Tools,
    pub(super) format: Format,
    /// The maximum number of tokens in the answer.
    pub(super) max_tokens: Option<u64>,
    pub(super) temperature: Option<f64>,
    /// From 0 to 1.
    pub(super) top_p: Option<f64>,
    pub(super) top_k: Option<u64>,
    /// `None` also for 0, which is the default.
    pub(super) frequency_penalty: Option<f64>,
    /// As `frequency_penalty`.
    pub(super) presence_penalty: Option<f64>,
    pub(super) seed: Option<i64>,
    pub(super) stop: Vec<String>,
    /// Such as `low`; any text.
    pub(super) effort: Option<String>,
}

/// The output format.
#[derive(Debug, PartialEq)]
pub(super) enum Format {
    /// Any.
    Text,
    /// JSON of any shape.
    Json,
    /// JSON that conforms to this schema.
    Schema(Value),
}

impl DecodedRequest {
    /// Decodes a request.
    ///
    /// # Errors
    /// [`Failure::Unsupported`], with the path of the field that is specific to the caller's format.
    pub(super) fn decode(request: &CompletionRequest<'_>) -> Result<Self, Failure> {
        let fields = &request.fields;
        for (name, value) in fields.iter() {
            let is_known = KNOWN_FIELDS.contains(&name) || IGNORED_FIELDS.contains(&name);
            if !is_known && !is_neutral(name, value) {
                return Err(unknown_field(name));
            }
        }
        let messages: Vec<Value> =
            read_field(fields, "messages", "an array of messages")?.unwrap_or_default();
        let (system, turns) = conversation::read(&messages)?;
        Ok(Self {
            system,
            turns,
            tools: Tools::read(fields)?,
            format: format(fields)?,
            max_tokens: max_tokens(fields)?,
            temperature: number(fields, "temperature")?,
            top_p: fraction(fields, "top_p")?,
            top_k: read_field(fields, "top_k", "a whole number")?,
            frequency_penalty: number(fields, "frequency_penalty")?.filter(|penalty| *penalty != 0.0),
            presence_penalty: number(fields, "presence_penalty")?.filter(|penalty| *penalty != 0.0),
            seed: read_field(fields, "seed", "a whole number")?,
            stop: stop(fields)?,
            effort: read_field(fields, "reasoning_effort", "a string such as `low`")?,
        })
    }
}

/// Refuses a field. `message` says what is wrong and what to do about it.
pub(super) fn unsupported(param: impl Into<String>, message: impl Into<String>) -> Failure {
    Failure::Unsupported { param: param.into(), message: message.into() }
}

/// Refuses fields of an object that are not in `known`, unless they are empty. `path` is that of the object.
fn refuse_unknown_fields(value: &Value, known: &[&str], path: &str) -> Result<(), Failure> {
    for (name, value) in value.as_object().into_iter().flatten() {
        if !known.contains(&name.as_str()) && !is_empty(&value.to_string()) {
            let name = name_in_message(name);
            let message = format!("this provider does not support `{name}` here; leave it out");
            return Err(unsupported(format!("{path}.{name}"), message));
        }
    }
    Ok(())
}

/// Whether a field has no effect: its value is null, empty or the default.
pub(super) fn is_neutral(name: &str, value: Json<'_>) -> bool {
    let is_default = match name {
        // Even empty options request a search.
        "web_search_options" => return value.is_null(),
        "logprobs" => value.get() == "false",
        "top_logprobs" => value.get() == "0",
        "verbosity" => value.get() == "\"medium\"",
        "service_tier" => matches!(value.get(), "\"auto\"" | "\"default\""),
        "modalities" => value.read::<Vec<String>>().is_some_and(|kinds| kinds == ["text"]),
        _ => false,
    };
    is_default || is_empty(value.get())
}

/// Whether a JSON value is null, or an empty object or array.
fn is_empty(json: &str) -> bool {
    let compact: String = json.chars().filter(|c| !c.is_ascii_whitespace()).take(5).collect();
    matches!(compact.as_str(), "null" | "[]" | "{}")
}

fn unknown_field(name: &str) -> Failure {
    let name = name_in_message(name);
    let message = match name.as_str() {
        "functions" | "function_call" => {
            "this provider accepts functions only as `tools` and `tool_choice`".to_owned()
        }
        _ => format!(
            "this provider does not support `{name}`; leave it out, or choose a model of another provider"
        ),
    };
    unsupported(name, message)
}

/// A field's value, if present; `allowed` describes the allowed values.
fn read_field<'a, T: serde::Deserialize<'a>>(
    fields: &Fields<'a>,
    name: &str,
    allowed: &str,
) -> Result<Option<T>, Failure> {
    if fields.non_null(name).is_none() {
        return Ok(None);
    }
    fields.read(name).map(Some).ok_or_else(|| unsupported(name, format!("`{name}` must be {allowed}")))
}

fn number(fields: &Fields<'_>, name: &str) -> Result<Option<f64>, Failure> {
    read_field(fields, name, "a number")
}

fn fraction(fields: &Fields<'_>, name: &str) -> Result<Option<f64>, Failure> {
    match number(fields, name)? {
        Some(value) if !(0.0..=1.0).contains(&value) => {
            Err(unsupported(name, format!("`{name}` must be a number from 0 to 1")))
        }
        value => Ok(value),
    }
}

/// The limit has two names; if both are given, the smaller one counts.
fn max_tokens(fields: &Fields<'_>) -> Result<Option<u64>, Failure> {
    let allowed = "a whole number from 1";
    let old: Option<u64> = read_field(fields, "max_tokens", allowed)?;
    let new: Option<u64> = read_field(fields, "max_completion_tokens", allowed)?;
    Ok(old.into_iter().chain(new).min())
}

fn stop(fields: &Fields<'_>) -> Result<Vec<String>, Failure> {
    let Some(value) = fields.non_null("stop") else { return Ok(Vec::new()) };
    if value.is_string() {
        return Ok(fields.read("stop").into_iter().collect());
    }
    Ok(read_field(fields, "stop", "a string or an array of strings")?.unwrap_or_default())
}

fn format(fields: &Fields<'_>) -> Result<Format, Failure> {
    let Some(value) = read_field::<Value>(fields, "response_format", "an object")? else {
        return Ok(Format::Text);
    };
    refuse_unknown_fields(&value, &["type", "json_schema"], "response_format")?;
    let named = ["name", "description", "schema", "strict"];
    refuse_unknown_fields(&value["json_schema"], &named, "response_format.json_schema")?;
    match value["type"].as_str() {
        Some("text") => Ok(Format::Text),
        Some("json_object") => Ok(Format::Json),
        Some("json_schema") => match &value["json_schema"]["schema"] {
            Value::Object(schema) => Ok(Format::Schema(Value::Object(schema.clone()))),
            _ => Err(unsupported(
                "response_format.json_schema.schema",
                "a JSON schema must stand here, an object",
            )),
        },
        _ => Err(unsupported("response_format.type", "must be `text`, `json_object` or `json_schema`")),
    }
}

#[cfg(test)]
mod tests;
