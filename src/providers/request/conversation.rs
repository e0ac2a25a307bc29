//! Decodes a caller's messages for formats that separate the system text and require two speakers to alternate.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::names::Names;
use super::parts::{self, Data, Image};
use super::{refuse_unknown_fields, unsupported};
use crate::providers::Failure;

/// Fields of an earlier answer that providers and SDKs add to it and that are sent back with it. They were never part
/// of the conversation, so they have no effect on the answer.
const OUTPUT_ONLY_FIELDS: [&str; 6] =
    ["annotations", "parsed", PROVIDER_FIELDS, "reasoning", "reasoning_content", "reasoning_details"];

/// Where an SDK keeps what it does not know of an answer, of a tool call and of its function.
const PROVIDER_FIELDS: &str = "provider_specific_fields";

/// The fields of a tool call; an SDK adds the last one.
const CALL_FIELDS: [&str; 6] = ["id", "type", "function", "index", "extra_content", PROVIDER_FIELDS];

/// The fields of a called function; SDKs add the last two.
const FUNCTION_FIELDS: [&str; 4] = ["name", "arguments", "parsed_arguments", PROVIDER_FIELDS];

/// The speaker of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::providers) enum Speaker {
    /// The user, and the tools whose results are sent on the user's behalf.
    User,
    /// The model.
    Model,
}

/// What one speaker says in a row.
#[derive(Debug, PartialEq)]
pub(in crate::providers) struct Turn {
    pub(in crate::providers) speaker: Speaker,
    /// In the order of the messages.
    pub(in crate::providers) parts: Vec<Part>,
}

/// A part of a turn, of the system text or of a tool's result.
#[derive(Debug, PartialEq)]
pub(in crate::providers) struct Part {
    pub(in crate::providers) content: ContentPart,
    /// Asks the provider to cache everything up to this part; an object.
    pub(in crate::providers) cache_control: Option<Value>,
    /// The path of its origin in the caller's request, to refuse it by.
    pub(in crate::providers) path: String,
}

/// The content of a part.
#[derive(Debug, PartialEq)]
pub(in crate::providers) enum ContentPart {
    /// Never empty.
    Text(String),
    /// An image.
    Image(Image),
    /// A document.
    File {
        data: Data,
        /// As the caller calls it.
        name: Option<String>,
    },
    /// A sound.
    Audio(Data),
    /// A thought that Anthropic signed, as passed to the caller: a block of its format.
    SignedThought(Value),
    /// A tool call by the model.
    ToolCall {
        /// Referenced by the result.
        id: String,
        /// The name of the tool.
        name: String,
        arguments: Map<String, Value>,
        /// Gemini's signature of the thought behind the call, as passed to the caller.
        signature: Option<String>,
    },
    /// The result of a tool call.
    ToolResult {
        /// The id of the call.
        id: String,
        /// The name of the tool, as in the call.
        name: String,
        /// No calls and no results.
        parts: Vec<Part>,
    },
}

impl Part {
    /// A text without hints.
    pub(super) const fn of_text(text: String, path: String) -> Self {
        Self { content: ContentPart::Text(text), cache_control: None, path }
    }

    /// Its text, if it is one.
    pub(in crate::providers) fn as_text(&self) -> Option<&str> {
        match &self.content {
            ContentPart::Text(text) => Some(text),
            _ => None,
        }
    }

    /// As [`Part::as_text`], to be changed.
    pub(super) const fn as_text_mut(&mut self) -> Option<&mut String> {
        match &mut self.content {
            ContentPart::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Refuses it, as the provider has no such part in this place.
    pub(in crate::providers) fn unsupported(&self, message: &str) -> Failure {
        unsupported(format!("{}.type", self.path), message)
    }
}

/// Decodes messages into the system texts and the turns.
pub(super) fn read(messages: &[Value]) -> Result<(Vec<Part>, Vec<Turn>), Failure> {
    let mut system: Vec<Part> = Vec::new();
    let mut turns: Vec<Turn> = Vec::new();
    let mut tools: HashMap<String, String> = HashMap::new();
    let names = Names::read(messages)?;
    for (index, message) in messages.iter().enumerate() {
        let path = format!("messages[{index}]");
        let role = message["role"].as_str().unwrap_or_default();
        refuse_unknown_fields(message, &known_fields(role), &path)?;
        let content = format!("{path}.content");
        let (speaker, mut parts) = match role {
            "system" | "developer" => {
                system.extend(parts::read_texts(&message["content"], &content)?);
                continue;
            }
            "assistant" => (Speaker::Model, assistant_parts(message, &path, &mut tools)?),
            "tool" => (Speaker::User, vec![tool_result(message, path, &tools)?]),
            _ => (Speaker::User, parts::read(&message["content"], &content)?),
        };
        names.show(message, &content, &mut parts);
        match turns.last_mut() {
            Some(last) if last.speaker == speaker => last.parts.extend(parts),
            _ if parts.is_empty() => {}
            _ => turns.push(Turn { speaker, parts }),
        }
    }
    if turns.is_empty() {
        return Err(unsupported("messages", "this provider needs at least one non-empty user message"));
    }
    Ok((system, turns))
}

/// The fields of a message that are read or may be ignored.
fn known_fields(role: &str) -> Vec<&'static str> {
    let mut known = vec!["role", "content", "name"];
    match role {
        "assistant" => {
            known.extend(["tool_calls", "refusal", "images", "thinking_blocks"]);
            known.extend(OUTPUT_ONLY_FIELDS);
        }
        "tool" => known.push("tool_call_id"),
        _ => {}
    }
    known
}

/// The parts of an earlier answer of the model: thoughts, texts and tool calls. Records the names of the tools by call id.
fn assistant_parts(
    message: &Value,
    path: &str,
    tools: &mut HashMap<String, String>,
) -> Result<Vec<Part>, Failure> {
    let content = format!("{path}.content");
    let mut parts = parts::read(&message["content"], &content)?;
    if parts.iter().any(|part| part.as_text().is_none()) {
        return Err(unsupported(content, "only a user message can contain an image or a file"));
    }
    match &message["images"] {
        Value::Null => {}
        Value::Array(_) => parts.extend(parts::read(&message["images"], &format!("{path}.images"))?),
        _ => return Err(unsupported(format!("{path}.images"), "must be an array of images")),
    }
    if let Some(refused) = message["refusal"].as_str().filter(|text| !text.is_empty()) {
        parts.push(Part::of_text(refused.to_owned(), format!("{path}.refusal")));
    }
    let calls = match &message["tool_calls"] {
        Value::Null => &[],
        Value::Array(calls) => calls.as_slice(),
        _ => return Err(unsupported(format!("{path}.tool_calls"), "must be an array of tool calls")),
    };
    for (index, call) in calls.iter().enumerate() {
        let path = format!("{path}.tool_calls[{index}]");
        let text = |value: &Value, field: &str| {
            let text = value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
            text.ok_or_else(|| unsupported(format!("{path}.{field}"), "must be a non-empty string"))
        };
        if !matches!(call["type"].as_str(), None | Some("function")) {
            return Err(unsupported(
                format!("{path}.type"),
                "this provider supports only tools of type `function`",
            ));
        }
        refuse_unknown_fields(call, &CALL_FIELDS, &path)?;
        refuse_unknown_fields(&call["function"], &FUNCTION_FIELDS, &format!("{path}.function"))?;
        let id = text(&call["id"], "id")?;
        let name = text(&call["function"]["name"], "function.name")?;
        let arguments = arguments(&call["function"]["arguments"], &path)?;
        let signature = call["extra_content"]["google"]["thought_signature"].as_str().map(str::to_owned);
        tools.insert(id.clone(), name.clone());
        let content = ContentPart::ToolCall { id, name, arguments, signature };
        parts.push(Part { content, cache_control: None, path });
    }
    if parts.is_empty() {
        return Ok(parts);
    }
    Ok(signed_thoughts(message, path).into_iter().chain(parts).collect())
}

/// The thoughts before an answer. Those that nobody signed, such as another provider's, are of no use to a model.
fn signed_thoughts(message: &Value, path: &str) -> Vec<Part> {
    let blocks = message["thinking_blocks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let thoughts = blocks.iter().enumerate().filter_map(|(index, block)| {
        let text = |name: &str| block[name].as_str().filter(|text| !text.is_empty());
        let block = match text("type")? {
            "thinking" => {
                let thinking = block["thinking"].as_str()?;
                json!({"type": "thinking", "thinking": thinking, "signature": text("signature")?})
            }
            "redacted_thinking" => json!({"type": "redacted_thinking", "data": text("data")?}),
            _ => return None,
        };
        let content = ContentPart::SignedThought(block);
        Some(Part { content, cache_control: None, path: format!("{path}.thinking_blocks[{index}]") })
    });
    thoughts.collect()
}

/// The arguments of a tool call, which are JSON in a string; null or an empty string means no arguments. Some clients
/// send the object itself, and what it means is certain.
fn arguments(value: &Value, path: &str) -> Result<Map<String, Value>, Failure> {
    let read = match value {
        Value::Null => Some(Map::new()),
        Value::String(text) if text.trim().is_empty() => Some(Map::new()),
        Value::String(text) => serde_json::from_str(text).ok(),
        Value::Object(arguments) => Some(arguments.clone()),
        _ => None,
    };
    read.ok_or_else(|| {
        unsupported(format!("{path}.function.arguments"), "must be a JSON object, written as a string")
    })
}

fn tool_result(message: &Value, path: String, tools: &HashMap<String, String>) -> Result<Part, Failure> {
    let id = message["tool_call_id"].as_str().unwrap_or_default();
    let Some(name) = tools.get(id) else {
        let message = "must be the `id` of a call in an earlier assistant message";
        return Err(unsupported(format!("{path}.tool_call_id"), message));
    };
    let parts = parts::read(&message["content"], &format!("{path}.content"))?;
    let content = ContentPart::ToolResult { id: id.to_owned(), name: name.clone(), parts };
    Ok(Part { content, cache_control: None, path })
}
