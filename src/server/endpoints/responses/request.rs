//! Translates the request of a response into that of a chat completion.
//!
//! - What has the same meaning under another name is renamed; texts, schemas and parameters stay the bytes they are.
//! - What needs stored answers is refused by name: nothing is stored here.
//! - What only tunes, and most servers of the other format refuse, is left out and named to the caller.
//! - What is unknown is passed on, as in a chat completion: the model's provider knows it, or it is refused by name.

use bytes::Bytes;

use super::echo::Echo;
use super::items::Messages;
use super::tools::{Choice, Names, Tools};
use crate::inference::{Effort, Fields, Json, Takes};
use crate::json::fields::{write_field, write_field_escaped, write_string_field};
use crate::server::endpoints::chat::compose::write_given;
use crate::server::endpoints::chat::request::is_same_but_for_case;
use crate::server::endpoints::chat::{self, MAX_TOKENS, Told, invalid, missing};
use crate::server::reply::{ApiError, ErrorCode};

/// Parameters that are looked at.
const READ: [&str; 21] = [
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "text",
    "reasoning",
    "include",
    "max_output_tokens",
    "top_logprobs",
    "stream",
    "stream_options",
    "user",
    "safety_identifier",
    "truncation",
    "service_tier",
    "store",
    "previous_response_id",
    "conversation",
    "background",
];

/// What only tunes, and is left out.
const TUNING: [&str; 7] = [
    "client_metadata",
    "context_management",
    "max_tool_calls",
    "metadata",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
];

/// What needs answers that were stored, or stores them.
const STATE: [&str; 4] = ["previous_response_id", "conversation", "store", "background"];

/// Parameters of a chat completion, and what they are called here; nothing, if there is none like them.
const OF_CHAT: [(&str, &str); 11] = [
    ("messages", "input"),
    ("max_tokens", "max_output_tokens"),
    ("max_completion_tokens", "max_output_tokens"),
    ("reasoning_effort", "reasoning.effort"),
    ("response_format", "text.format"),
    ("verbosity", "text.verbosity"),
    ("functions", "tools"),
    ("function_call", "tool_choice"),
    ("logprobs", "top_logprobs"),
    ("n", ""),
    ("prompt", ""),
];

/// A translated request, and what its answer needs.
#[derive(Debug)]
pub(super) struct Translated {
    /// The chat completion.
    pub(super) body: Bytes,
    /// How the model's calls are told to the caller.
    pub(super) names: Names,
    /// What the response repeats of the request.
    pub(super) echo: Echo,
    /// What the caller told of it.
    pub(super) told: Told,
    /// The names of what was left out.
    pub(super) left_out: Vec<String>,
    /// The index of the item that each message begins with; `None` for the instructions.
    pub(super) origins: Vec<Option<usize>>,
}

/// Translates a request. With `drop_unsupported`, tools that run at a provider are left out also where they are the only
/// ones, or chosen; `takes` tells what tunes the answers of a model.
pub(super) fn of(
    fields: &Fields<'_>,
    drop_unsupported: bool,
    takes: impl FnOnce(&str) -> Takes,
) -> Result<Translated, ApiError> {
    // To find that out takes a tenth of the translation.
    let is_tuned = ["reasoning", "text", "tools"].iter().any(|name| fields.non_null(name).is_some());
    let model = fields.get("model").and_then(Json::string).filter(|_| is_tuned);
    let takes = model.map(|model| takes(&model)).unwrap_or_default();
    refuse_state(fields)?;
    let mut out = Vec::with_capacity(fields.length() + fields.length() / 8 + 256);
    out.push(b'{');
    write_given(&mut out, "model", fields.get("model"));
    let mut messages = Messages::begin(&mut out);
    if let Some(instructions) = fields.non_null("instructions") {
        if !instructions.is_string() {
            return Err(invalid("instructions", "a string", instructions));
        }
        messages.text("system", instructions, None);
    }
    let input = fields.non_null("input").ok_or_else(|| missing("input"))?;
    if input.is_string() {
        messages.text("user", input, Some(0));
    } else {
        messages.items(input)?;
    }
    let written = messages.end();
    if written.origins.is_empty() {
        return Err(invalid("input", "a string or a non-empty array of items", input));
    }
    let mut left_out = Vec::new();
    if written.has_reasoning {
        left_out.push("input.reasoning".to_owned());
    }
    let tools = Tools::read(fields.non_null("tools"))?;
    let chosen = fields.non_null("tool_choice");
    let choice = match tools.choose(chosen) {
        Err(error) if drop_unsupported && error.is(ErrorCode::UnsupportedParameter) => {
            left_out.extend(chosen.map(|_| "tool_choice".to_owned()));
            Choice::default()
        }
        choice => choice?,
    };
    let has_tools = tools.write(&choice, fields.non_null("parallel_tool_calls"), &mut out);
    form(fields, takes, &mut out, &mut left_out)?;
    reasoning(fields, (takes, has_tools), &mut out, &mut left_out)?;
    probabilities(fields, &mut out, &mut left_out)?;
    if let Some(limit) = chat::whole(fields, "max_output_tokens", MAX_TOKENS)? {
        write_field(&mut out, "max_tokens", &limit.to_string());
    }
    // The newer name says that it is a hash; in the other format it has the older one's place.
    if let Some(user) = fields.non_null("user").or_else(|| fields.non_null("safety_identifier")) {
        write_field(&mut out, "user", user.get());
    }
    if chat::boolean(fields, "stream", "stream")? {
        out.extend_from_slice(b",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    }
    for (name, value) in fields.iter().filter(|(name, value)| !READ.contains(name) && !value.is_null()) {
        if TUNING.contains(&name) {
            if value.get() != "{}" {
                left_out.push(name.to_owned());
            }
        } else if let Some((_, here)) = OF_CHAT.iter().find(|(of_chat, _)| *of_chat == name) {
            return Err(foreign(name, here));
        } else {
            write_field_escaped(&mut out, name, value.get());
        }
    }
    out.push(b'}');
    let (hosted, names) = tools.into_names();
    left_out.extend(hosted);
    left_out.extend(defaults(fields));
    let (echo, told) = (Echo::of(fields), Told::by(fields));
    Ok(Translated { body: out.into(), names, echo, told, left_out, origins: written.origins })
}

/// What a parameter of the translated request is called here.
pub(super) fn name_here(param: &str, origins: &[Option<usize>]) -> Option<String> {
    if let Some((message, _)) = param.strip_prefix("messages[").and_then(|rest| rest.split_once(']')) {
        let origin = origins.get(message.parse::<usize>().ok()?)?;
        return Some(origin.map_or_else(|| "instructions".to_owned(), |index| format!("input[{index}]")));
    }
    let top = param.split(['.', '[']).next().unwrap_or_default();
    let known = OF_CHAT.iter().find(|(of_chat, here)| *of_chat == top && !here.is_empty());
    known.map(|(_, here)| (*here).to_owned())
}

/// Refuses what needs stored answers.
pub(super) fn refuse_state(fields: &Fields<'_>) -> Result<(), ApiError> {
    let refuse = |name: &str, instead: &str| {
        let message = format!("`{name}`: answers are not stored; {instead}");
        Err(ApiError::parameter(ErrorCode::UnsupportedParameter, name.to_owned(), message))
    };
    // Servers that read names in any case would read these as well.
    let is_in_other_case =
        |name: &str| STATE.iter().any(|known| name != *known && is_same_but_for_case(name, known));
    if let Some((name, _)) = fields.iter().find(|(name, _)| is_in_other_case(name)) {
        return refuse(name, "leave it out");
    }
    for name in ["previous_response_id", "conversation"] {
        if fields.non_null(name).is_some() {
            return refuse(name, "send the whole conversation in `input`");
        }
    }
    for (name, instead) in [
        ("store", "leave it out, or send false"),
        ("background", "leave it out, and stream the answer if it takes long"),
    ] {
        if chat::boolean(fields, name, name)? {
            return refuse(name, instead);
        }
    }
    Ok(())
}

fn foreign(name: &str, here: &str) -> ApiError {
    let message = match here {
        "" => format!("`{name}` is not supported for responses; leave it out"),
        here => format!("`{name}` is a parameter of chat completions; use `{here}` for responses"),
    };
    ApiError::parameter(ErrorCode::UnsupportedParameter, name.to_owned(), message)
}

/// Writes the form of the answer, which is `text`.
fn form(
    fields: &Fields<'_>,
    takes: Takes,
    out: &mut Vec<u8>,
    left_out: &mut Vec<String>,
) -> Result<(), ApiError> {
    let [format, verbosity] = object(fields, "text", ["format", "verbosity"])?;
    match verbosity {
        Some(verbosity) if takes.own_format => write_field(out, "verbosity", verbosity.get()),
        verbosity => left_out.extend(verbosity.map(|_| "text.verbosity".to_owned())),
    }
    let Some(format) = format else { return Ok(()) };
    let known = ["type", "name", "description", "schema", "strict"];
    let [kind, name, description, schema, strict] =
        format.fields(known).ok_or_else(|| invalid("text.format", "an object", format))?;
    match kind.map(Json::get) {
        Some("\"text\"") => {}
        Some("\"json_object\"") => write_field(out, "response_format", "{\"type\":\"json_object\"}"),
        Some("\"json_schema\"") => {
            write_field(out, "response_format", "{\"type\":\"json_schema\",\"json_schema\":{");
            let given =
                [("name", name), ("description", description), ("strict", strict), ("schema", schema)];
            for (name, value) in given {
                write_given(out, name, value);
            }
            out.extend_from_slice(b"}}");
        }
        _ => {
            let kind = kind.unwrap_or(format);
            return Err(invalid("text.format.type", "`text`, `json_object` or `json_schema`", kind));
        }
    }
    Ok(())
}

fn reasoning(
    fields: &Fields<'_>,
    (takes, has_tools): (Takes, bool),
    out: &mut Vec<u8>,
    left_out: &mut Vec<String>,
) -> Result<(), ApiError> {
    let [effort, summary] = object(fields, "reasoning", ["effort", "summary"])?;
    if let Some(effort) = effort {
        let wanted =
            effort.string().ok_or_else(|| invalid("reasoning.effort", "a string such as `low`", effort))?;
        let told = takes.effort(&wanted, has_tools);
        if let Some(told) = told {
            write_string_field(out, "reasoning_effort", told);
        }
        if told.is_none_or(|told| told == "none" && wanted != told) {
            left_out.push("reasoning.effort".to_owned());
        }
    } else if has_tools && takes.least_effort.is_some() && !takes.thinks_with_tools {
        // The newest of these models think unless told not to, and then refuse the tools.
        write_string_field(out, "reasoning_effort", Effort::None.as_str());
    }
    // What a model shows of its reasoning is given in any case.
    left_out.extend(summary.map(|_| "reasoning.summary".to_owned()));
    Ok(())
}

/// Asks for probabilities, which have two names.
fn probabilities(fields: &Fields<'_>, out: &mut Vec<u8>, left_out: &mut Vec<String>) -> Result<(), ApiError> {
    let top = fields.non_null("top_logprobs").filter(|top| top.get() != "0");
    let included = match fields.non_null("include") {
        None => Vec::new(),
        Some(value) => {
            value.read::<Vec<String>>().ok_or_else(|| invalid("include", "an array of strings", value))?
        }
    };
    if top.is_some() || included.iter().any(|name| name == "message.output_text.logprobs") {
        write_field(out, "logprobs", "true");
    }
    write_given(out, "top_logprobs", top);
    let is_known =
        |name: &str| matches!(name, "message.output_text.logprobs" | "reasoning.encrypted_content");
    if included.iter().any(|name| !is_known(name)) {
        left_out.push("include".to_owned());
    }
    Ok(())
}

/// The names of what is left out because nothing but its default can be had.
fn defaults<'f>(fields: &'f Fields<'_>) -> impl Iterator<Item = String> + 'f {
    let known = [("truncation", ["\"disabled\"", ""]), ("service_tier", ["\"auto\"", "\"default\""])];
    let differs = |name: &str, defaults: [&str; 2]| {
        fields.non_null(name).is_some_and(|value| !defaults.contains(&value.get()))
    };
    known
        .into_iter()
        .filter(move |(name, defaults)| differs(name, *defaults))
        .map(|(name, _)| name.to_owned())
}

/// The fields of a parameter that is an object.
fn object<'a, const N: usize>(
    fields: &Fields<'a>,
    name: &'static str,
    known: [&str; N],
) -> Result<[Option<Json<'a>>; N], ApiError> {
    let Some(value) = fields.non_null(name) else { return Ok([None; N]) };
    value.fields(known).ok_or_else(|| invalid(name, "an object", value))
}
