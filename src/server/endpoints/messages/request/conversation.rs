//! The conversation: system texts and turns as messages of a chat completion.
//!
//! A turn may become several messages: each result of a tool is one of its own and comes first, as what a model asked
//! for has to follow at once. What a result shows besides text comes with the user's own words, because in many
//! formats the message of a tool holds nothing but text.

use serde_json::{Map, Value, json};

use super::blocks::{self, BILLING_HEADER};
use super::left_out::LeftOut;
use crate::server::reply::ApiError;
use crate::server::request::params::{invalid, missing, wrong_type};

/// What a content may be.
const CONTENT: &str = "a string or an array of content blocks";

/// Blocks of an answer with what ran at the provider. Only the models there can read them; what came of it stands in
/// the texts beside them.
const RAN_THERE: [&str; 11] = [
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "advisor_tool_result",
    "compaction",
];

/// Collects the messages.
pub(super) struct Conversation<'a> {
    messages: Vec<Value>,
    /// For each message, the path of what it was made of.
    origins: Vec<String>,
    /// Whether marks for caches are kept.
    marks: bool,
    left_out: &'a mut LeftOut,
}

impl<'a> Conversation<'a> {
    pub(super) const fn new(marks: bool, left_out: &'a mut LeftOut) -> Self {
        Self { messages: Vec::new(), origins: Vec::new(), marks, left_out }
    }

    /// The messages, and for each the path of what it was made of.
    pub(super) fn finish(self) -> (Vec<Value>, Vec<String>) {
        (self.messages, self.origins)
    }

    fn push(&mut self, role: &str, content: &Value, origin: &str) {
        self.messages.push(json!({"role": role, "content": content}));
        self.origins.push(origin.to_owned());
    }

    /// Adds system text, a string or blocks of text.
    pub(super) fn system(&mut self, content: Value, path: &str) -> Result<(), ApiError> {
        let mut texts = Vec::new();
        for (path, mut block) in blocks_of(content, path)? {
            if block.get("type").is_some_and(|kind| kind != "text") {
                return Err(invalid(&format!("{path}.type"), format!("`{path}.type` must be text")));
            }
            let text = blocks::take_text(&mut block, "text", &path)?;
            if text.starts_with(BILLING_HEADER) {
                self.left_out.note(BILLING_HEADER);
            } else if !text.is_empty() {
                texts.push(self.text_part(&text, &mut block));
            }
        }
        if !texts.is_empty() {
            self.push("system", &joined(texts, "\n\n"), path);
        }
        Ok(())
    }

    /// Adds the turns.
    pub(super) fn turns(&mut self, turns: Vec<Value>) -> Result<(), ApiError> {
        for (index, turn) in turns.into_iter().enumerate() {
            let path = format!("messages[{index}]");
            let Value::Object(mut turn) = turn else { return Err(wrong_type(&path, "an object", &turn)) };
            let role = turn.shift_remove("role").ok_or_else(|| missing(&format!("{path}.role")))?;
            let content = turn.shift_remove("content").ok_or_else(|| missing(&format!("{path}.content")))?;
            match role.as_str() {
                Some("user") => self.user(content, &path)?,
                Some("assistant") => self.assistant(content, &path)?,
                Some("system") => self.system(content, &path)?,
                _ => {
                    let allowed = format!("`{path}.role` must be user, assistant or system");
                    return Err(invalid(&format!("{path}.role"), allowed));
                }
            }
        }
        Ok(())
    }

    fn user(&mut self, content: Value, origin: &str) -> Result<(), ApiError> {
        let content = match content {
            Value::String(text) => {
                self.push("user", &text.into(), origin);
                return Ok(());
            }
            other => blocks_of(other, origin)?,
        };
        let (mut shown, mut parts, mut has_results) = (Vec::new(), Vec::new(), false);
        for (path, mut block) in content {
            if block.get("type").is_some_and(|kind| kind == "tool_result") {
                has_results = true;
                self.tool_result(block, &path, &mut shown)?;
                continue;
            }
            let mark = self.mark(&mut block);
            let first = parts.len();
            blocks::parts(block, &path, self.left_out, &mut parts)?;
            if let (Some(mark), Some(last)) = (mark, parts[first..].last_mut()) {
                last["cache_control"] = mark;
            }
        }
        shown.append(&mut parts);
        if !shown.is_empty() || !has_results {
            self.push("user", &alone_as_string(shown), origin);
        }
        Ok(())
    }

    /// Adds the result of a tool. What it has besides text goes to `shown`.
    fn tool_result(
        &mut self,
        mut block: Map<String, Value>,
        path: &str,
        shown: &mut Vec<Value>,
    ) -> Result<(), ApiError> {
        let id = blocks::take_text(&mut block, "tool_use_id", path)?;
        let is_error = block.get("is_error") == Some(&Value::Bool(true));
        let mark = self.mark(&mut block);
        let mut parts = Vec::new();
        for (path, block) in blocks_of(block.shift_remove("content").unwrap_or_default(), path)? {
            blocks::parts(block, &path, self.left_out, &mut parts)?;
        }
        let (texts, others): (Vec<Value>, Vec<Value>) =
            parts.into_iter().partition(|part| part["type"] == "text");
        let mut text: String =
            texts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n\n");
        if is_error && !says_error(&text) {
            text.insert_str(0, if text.is_empty() { "Error" } else { "Error: " });
        }
        if !others.is_empty() {
            let note = format!("What the tool returned for the call {id} besides text:");
            shown.push(json!({"type": "text", "text": note}));
            shown.extend(others);
        }
        let content = match mark {
            Some(mark) => json!([{"type": "text", "text": text, "cache_control": mark}]),
            None => text.into(),
        };
        self.messages.push(json!({"role": "tool", "tool_call_id": id, "content": content}));
        self.origins.push(path.to_owned());
        Ok(())
    }

    fn assistant(&mut self, content: Value, origin: &str) -> Result<(), ApiError> {
        let (mut texts, mut calls) = (Vec::new(), Vec::new());
        for (path, mut block) in blocks_of(content, origin)? {
            let kind = blocks::take_text(&mut block, "type", &path)?;
            match kind.as_str() {
                "text" => {
                    let text = blocks::take_text(&mut block, "text", &path)?;
                    if !text.is_empty() {
                        texts.push(self.text_part(&text, &mut block));
                    }
                }
                "tool_use" => calls.push(self.tool_use(block, &path)?),
                // The thoughts of a model are signed for that model.
                "thinking" | "redacted_thinking" => self.left_out.note(&kind),
                kind if RAN_THERE.contains(&kind) => self.left_out.note(kind),
                _ => {
                    let allowed = "text, tool_use, thinking or redacted_thinking";
                    let message = format!("`{path}.type` must be {allowed}");
                    return Err(invalid(&format!("{path}.type"), message));
                }
            }
        }
        let content = if texts.is_empty() && !calls.is_empty() { Value::Null } else { joined(texts, "") };
        self.push("assistant", &content, origin);
        if let Some(message) = self.messages.last_mut().filter(|_| !calls.is_empty()) {
            message["tool_calls"] = calls.into();
        }
        Ok(())
    }

    fn tool_use(&mut self, mut block: Map<String, Value>, path: &str) -> Result<Value, ApiError> {
        let id = blocks::take_text(&mut block, "id", path)?;
        let name = blocks::take_text(&mut block, "name", path)?;
        // A call has no place for a mark.
        if block.contains_key("cache_control") {
            self.left_out.note("cache_control");
        }
        let input = block.shift_remove("input").unwrap_or_default();
        let arguments = match input {
            Value::Object(_) => input.to_string(),
            Value::Null => "{}".to_owned(),
            other => return Err(wrong_type(&format!("{path}.input"), "an object", &other)),
        };
        Ok(json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}))
    }

    fn text_part(&mut self, text: &str, block: &mut Map<String, Value>) -> Value {
        let mut part = json!({"type": "text", "text": text});
        if let Some(mark) = self.mark(block) {
            part["cache_control"] = mark;
        }
        part
    }

    /// The mark of a block, if it has one and marks are kept.
    fn mark(&mut self, block: &mut Map<String, Value>) -> Option<Value> {
        let mark = block.shift_remove("cache_control").filter(|mark| !mark.is_null())?;
        if !self.marks {
            self.left_out.note("cache_control");
        }
        self.marks.then_some(mark)
    }
}

/// A block, after its path.
type Block = (String, Map<String, Value>);

/// The blocks of a content, each with its path; a string is one of text.
fn blocks_of(content: Value, path: &str) -> Result<Vec<Block>, ApiError> {
    // That of `system` itself.
    let path = if path == "system" { path.to_owned() } else { format!("{path}.content") };
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => {
            let block = Map::from_iter([
                ("type".to_owned(), "text".into()),
                ("text".to_owned(), Value::String(text)),
            ]);
            Ok(vec![(path, block)])
        }
        Value::Array(blocks) => {
            let block = |(index, block)| {
                let path = format!("{path}[{index}]");
                match block {
                    Value::Object(block) => Ok((path, block)),
                    Value::String(text) => {
                        let block = json!({"type": "text", "text": text});
                        Ok((path, block.as_object().cloned().unwrap_or_default()))
                    }
                    other => Err(wrong_type(&path, "an object", &other)),
                }
            };
            blocks.into_iter().enumerate().map(block).collect()
        }
        other => Err(wrong_type(&path, CONTENT, &other)),
    }
}

/// Texts as one string, or as parts where one of them is marked.
fn joined(texts: Vec<Value>, between: &str) -> Value {
    if texts.iter().any(|part| part.get("cache_control").is_some()) {
        return texts.into();
    }
    texts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join(between).into()
}

/// A single text as a string, which every provider takes; none as an empty one.
fn alone_as_string(mut parts: Vec<Value>) -> Value {
    match parts.as_mut_slice() {
        [] => "".into(),
        [part] if part["type"] == "text" && part.get("cache_control").is_none() => part["text"].take(),
        _ => parts.into(),
    }
}

/// Whether a text says by itself that something went wrong.
fn says_error(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(24).collect();
    start.to_ascii_lowercase().contains("error")
}
