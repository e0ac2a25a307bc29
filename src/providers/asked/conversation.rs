//! A caller's messages as the formats want them that keep the operator's words apart and let two speakers alternate.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{only, parts, refusal};
use crate::providers::Failure;

/// What stands between texts of the operator.
const SEAM: &str = "\n\n";

/// Records of an earlier answer that come back with it. They were never part of the conversation, so an answer does
/// not depend on them.
const RECORDS: [&str; 4] = ["annotations", "reasoning", "reasoning_content", "reasoning_details"];

/// Who speaks in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::providers) enum Speaker {
    /// The person, and the tools that answer for it.
    Person,
    /// The model.
    Model,
}

/// What one speaker says before the other one does.
#[derive(Debug, PartialEq)]
pub(in crate::providers) struct Turn {
    pub(in crate::providers) speaker: Speaker,
    /// In the order of the messages.
    pub(in crate::providers) pieces: Vec<Piece>,
}

/// A part of a turn.
#[derive(Debug, PartialEq)]
pub(in crate::providers) enum Piece {
    /// Never empty.
    Text(String),
    /// An image.
    Image(parts::Image),
    /// The model calls a tool.
    Call {
        /// What the result refers to.
        id: String,
        /// The tool's name.
        name: String,
        /// What it is called with.
        arguments: Map<String, Value>,
        /// Gemini's signature of the thought behind the call, as it was given to the caller.
        signature: Option<String>,
    },
    /// A tool has answered.
    Result {
        /// The call's.
        id: String,
        /// The tool's name, as in the call.
        name: String,
        /// What it said.
        text: String,
    },
}

/// The operator's text, and the turns.
pub(super) fn read(messages: &[Value]) -> Result<(Option<String>, Vec<Turn>), Failure> {
    let mut system: Vec<String> = Vec::new();
    let mut turns: Vec<Turn> = Vec::new();
    let mut names: HashMap<String, String> = HashMap::new();
    for (index, message) in messages.iter().enumerate() {
        let path = format!("messages[{index}]");
        let role = message["role"].as_str().unwrap_or_default();
        only(message, &known(role), &path)?;
        let content = format!("{path}.content");
        let (speaker, pieces) = match role {
            "system" | "developer" => {
                system.push(parts::text(&message["content"], &content)?);
                continue;
            }
            "assistant" => (Speaker::Model, said(message, &path, &mut names)?),
            "tool" => (Speaker::Person, vec![result(message, &path, &names)?]),
            _ => (Speaker::Person, parts::read(&message["content"], &content)?),
        };
        match turns.last_mut() {
            Some(last) if last.speaker == speaker => last.pieces.extend(pieces),
            _ if pieces.is_empty() => {}
            _ => turns.push(Turn { speaker, pieces }),
        }
    }
    if turns.is_empty() {
        return Err(refusal(
            "messages",
            "this provider needs at least one message of the user that is not empty",
        ));
    }
    system.retain(|text| !text.is_empty());
    Ok(((!system.is_empty()).then(|| system.join(SEAM)), turns))
}

/// The fields of a message that are read, or were never part of the conversation.
fn known(role: &str) -> Vec<&'static str> {
    let mut known = vec!["role", "content"];
    match role {
        "assistant" => {
            known.extend(["tool_calls", "refusal"]);
            known.extend(RECORDS);
        }
        // A tool's name is known from its call.
        "tool" => known.extend(["tool_call_id", "name"]),
        _ => {}
    }
    known
}

/// What the model said before: texts, and calls of tools.
fn said(message: &Value, path: &str, names: &mut HashMap<String, String>) -> Result<Vec<Piece>, Failure> {
    let mut pieces = parts::read(&message["content"], &format!("{path}.content"))?;
    if pieces.iter().any(|piece| matches!(piece, Piece::Image(_))) {
        return Err(refusal(format!("{path}.content"), "only a message of the user can hold an image"));
    }
    if let Some(refused) = message["refusal"].as_str().filter(|text| !text.is_empty()) {
        pieces.push(Piece::Text(refused.to_owned()));
    }
    for (index, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}.tool_calls[{index}]");
        let text = |value: &Value, field: &str| {
            let text = value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
            text.ok_or_else(|| refusal(format!("{path}.{field}"), "must be a string that is not empty"))
        };
        if !matches!(call["type"].as_str(), None | Some("function")) {
            return Err(refusal(format!("{path}.type"), "this provider knows only tools of type `function`"));
        }
        only(call, &["id", "type", "function", "index", "extra_content"], &path)?;
        only(&call["function"], &["name", "arguments"], &format!("{path}.function"))?;
        let id = text(&call["id"], "id")?;
        let name = text(&call["function"]["name"], "function.name")?;
        let arguments = arguments(&call["function"]["arguments"], &path)?;
        let signature = call["extra_content"]["google"]["thought_signature"].as_str().map(str::to_owned);
        names.insert(id.clone(), name.clone());
        pieces.push(Piece::Call { id, name, arguments, signature });
    }
    Ok(pieces)
}

/// A call's arguments are JSON inside a text; nothing stands for none.
fn arguments(value: &Value, path: &str) -> Result<Map<String, Value>, Failure> {
    let text = value.as_str().unwrap_or_default();
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(text).map_err(|_| {
        refusal(format!("{path}.function.arguments"), "must be a JSON object, written as a string")
    })
}

fn result(message: &Value, path: &str, names: &HashMap<String, String>) -> Result<Piece, Failure> {
    let id = message["tool_call_id"].as_str().unwrap_or_default();
    let Some(name) = names.get(id) else {
        let message = "must be the `id` of a call in an assistant's message before";
        return Err(refusal(format!("{path}.tool_call_id"), message));
    };
    let text = parts::text(&message["content"], &format!("{path}.content"))?;
    Ok(Piece::Result { id: id.to_owned(), name: name.clone(), text })
}
