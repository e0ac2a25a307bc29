//! A caller's request, decoded for the formats that differ from it.
//!
//! Formats of their own share what is the same for all of them: reading the chat-completion fields, finding the
//! conversation in them, and naming what nobody but a speaker of the format itself can take. What is left for a
//! dialect is to write what was read, and to refuse what it alone has no word for. What must hold: every field is
//! read, known to be without effect on the answer, or refused by name; none is dropped silently.

mod conversation;
mod parts;
mod tools;

pub(super) use conversation::{Piece, Speaker, Turn};
pub(super) use parts::Image;
pub(super) use tools::{Choice, Tools};

use serde_json::Value;

use super::completion::Completion;
use super::{Failure, Fields, Json};
use crate::unsafe_chars::name_in_message;

/// Fields that are read, here or by the server before.
const READ: [&str; 19] = [
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

/// Fields that no answer depends on: who asks (`user`, `safety_identifier`), what the provider is to keep (`store`,
/// `metadata`), and hints to its cache. They stay here, as they were meant for another company.
const WITHOUT_EFFECT: [&str; 6] =
    ["user", "safety_identifier", "store", "metadata", "prompt_cache_key", "prompt_cache_retention"];

/// What was asked.
#[derive(Debug)]
pub(super) struct Asked {
    /// All texts of system and developer, in order.
    pub(super) system: Option<String>,
    /// No two neighbours are of one speaker; none is empty; there is at least one.
    pub(super) turns: Vec<Turn>,
    pub(super) tools: Tools,
    pub(super) format: Format,
    /// The most tokens of the answer.
    pub(super) limit: Option<u64>,
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

/// The form of the answer.
#[derive(Debug, PartialEq)]
pub(super) enum Format {
    /// Any.
    Text,
    /// JSON of any shape.
    Json,
    /// JSON that meets this schema.
    Schema(Value),
}

impl Asked {
    /// Reads a request.
    ///
    /// # Errors
    /// [`Failure::Unsupported`], with the path of the field that no format but the caller's own has.
    pub(super) fn read(asked: &Completion<'_>) -> Result<Self, Failure> {
        let fields = &asked.fields;
        for (name, value) in fields.iter() {
            let is_known = READ.contains(&name) || WITHOUT_EFFECT.contains(&name);
            if !is_known && !is_neutral(name, value) {
                return Err(unknown(name));
            }
        }
        let messages: Vec<Value> = typed(fields, "messages", "an array of messages")?.unwrap_or_default();
        let (system, turns) = conversation::read(&messages)?;
        Ok(Self {
            system,
            turns,
            tools: Tools::read(fields)?,
            format: format(fields)?,
            limit: limit(fields)?,
            temperature: number(fields, "temperature")?,
            top_p: share(fields, "top_p")?,
            top_k: typed(fields, "top_k", "a whole number")?,
            frequency_penalty: number(fields, "frequency_penalty")?.filter(|penalty| *penalty != 0.0),
            presence_penalty: number(fields, "presence_penalty")?.filter(|penalty| *penalty != 0.0),
            seed: typed(fields, "seed", "a whole number")?,
            stop: stop(fields)?,
            effort: typed(fields, "reasoning_effort", "a string such as `low`")?,
        })
    }
}

/// A refusal of one field. `message` says what is wrong and what to do.
pub(super) fn refusal(param: impl Into<String>, message: impl Into<String>) -> Failure {
    Failure::Unsupported { param: param.into(), message: message.into() }
}

/// Refuses what an object holds beyond `known`, unless it is empty. `path` is the object's own.
fn only(value: &Value, known: &[&str], path: &str) -> Result<(), Failure> {
    for (name, value) in value.as_object().into_iter().flatten() {
        if !known.contains(&name.as_str()) && !is_empty(&value.to_string()) {
            let name = name_in_message(name);
            let message = format!("this provider has nothing like `{name}` here; leave it out");
            return Err(refusal(format!("{path}.{name}"), message));
        }
    }
    Ok(())
}

/// Whether a field asks for nothing: its value is null, empty, or what holds without it.
pub(super) fn is_neutral(name: &str, value: Json<'_>) -> bool {
    let is_default = match name {
        // Empty options ask for a search as others do.
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

/// Whether JSON is null, or an object or array without content.
fn is_empty(json: &str) -> bool {
    let compact: String = json.chars().filter(|c| !c.is_ascii_whitespace()).take(5).collect();
    matches!(compact.as_str(), "null" | "[]" | "{}")
}

fn unknown(name: &str) -> Failure {
    let name = name_in_message(name);
    let message = match name.as_str() {
        "functions" | "function_call" => {
            "this provider takes functions only as `tools` and `tool_choice`".to_owned()
        }
        _ => format!(
            "this provider has nothing like `{name}`; leave it out, or ask a model of another provider"
        ),
    };
    refusal(name, message)
}

/// A field's value, if it is given.
fn typed<'a, T: serde::Deserialize<'a>>(
    fields: &Fields<'a>,
    name: &str,
    allowed: &str,
) -> Result<Option<T>, Failure> {
    if fields.given(name).is_none() {
        return Ok(None);
    }
    fields.read(name).map(Some).ok_or_else(|| refusal(name, format!("`{name}` must be {allowed}")))
}

fn number(fields: &Fields<'_>, name: &str) -> Result<Option<f64>, Failure> {
    typed(fields, name, "a number")
}

fn share(fields: &Fields<'_>, name: &str) -> Result<Option<f64>, Failure> {
    match number(fields, name)? {
        Some(value) if !(0.0..=1.0).contains(&value) => {
            Err(refusal(name, format!("`{name}` must be a number from 0 to 1")))
        }
        value => Ok(value),
    }
}

/// Of the two names for one thing, the smaller holds.
fn limit(fields: &Fields<'_>) -> Result<Option<u64>, Failure> {
    let allowed = "a whole number from 1";
    let old: Option<u64> = typed(fields, "max_tokens", allowed)?;
    let new: Option<u64> = typed(fields, "max_completion_tokens", allowed)?;
    Ok(old.into_iter().chain(new).min())
}

fn stop(fields: &Fields<'_>) -> Result<Vec<String>, Failure> {
    let Some(value) = fields.given("stop") else { return Ok(Vec::new()) };
    if value.is_text() {
        return Ok(fields.read("stop").into_iter().collect());
    }
    Ok(typed(fields, "stop", "a string or an array of strings")?.unwrap_or_default())
}

fn format(fields: &Fields<'_>) -> Result<Format, Failure> {
    let Some(value) = typed::<Value>(fields, "response_format", "an object")? else {
        return Ok(Format::Text);
    };
    only(&value, &["type", "json_schema"], "response_format")?;
    let named = ["name", "description", "schema", "strict"];
    only(&value["json_schema"], &named, "response_format.json_schema")?;
    match value["type"].as_str() {
        Some("text") => Ok(Format::Text),
        Some("json_object") => Ok(Format::Json),
        Some("json_schema") => match &value["json_schema"]["schema"] {
            Value::Object(schema) => Ok(Format::Schema(Value::Object(schema.clone()))),
            _ => {
                Err(refusal("response_format.json_schema.schema", "a JSON schema must stand here, an object"))
            }
        },
        _ => Err(refusal("response_format.type", "must be `text`, `json_object` or `json_schema`")),
    }
}

#[cfg(test)]
mod tests;
