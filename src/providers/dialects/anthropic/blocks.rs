//! The blocks of texts, media and tool calls that system text and messages consist of.

use std::borrow::Cow;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::hex::hex;
use crate::providers::Failure;
use crate::providers::request::{ContentPart, Data, Image, Part, Speaker, Turn};

/// The only kind of file that a block can hold in base64.
const PDF: &str = "application/pdf";

/// Asks for JSON, as the format has no other way of asking for it without a schema. Callers of a chat completion in
/// JSON mode have to say so in a message, too, so this is nothing that they did not ask for.
const JSON_INSTRUCTION: &str = "Your answer must be a single JSON object and nothing else: no text before or after it, \
                                and no code fence around it.";

/// The system text; `None` if there is none. A plain string if that can express it.
pub(super) fn system(texts: &[Part], wants_json: bool) -> Result<Option<Value>, Failure> {
    let mut blocks: Vec<Value> =
        texts.iter().filter(|part| !is_blank(part)).map(block).collect::<Result<_, _>>()?;
    if wants_json {
        blocks.push(json!({"type": "text", "text": JSON_INSTRUCTION}));
    }
    Ok((!blocks.is_empty()).then(|| string_or_blocks(blocks)))
}

/// The messages. White space at the end of an answer that the model is to continue is left out, as the API refuses it.
pub(super) fn messages(turns: &[Turn]) -> Result<Value, Failure> {
    let mut messages: Vec<Value> = turns.iter().map(message).collect::<Result<_, _>>()?;
    let is_continued = turns.last().is_some_and(|turn| turn.speaker == Speaker::Model);
    let is_alone = messages.len() == 1;
    let last = messages.last_mut().filter(|_| is_continued);
    let blocks = last.and_then(|message| message["content"].as_array_mut());
    if let Some(text) = blocks.and_then(|blocks| blocks.last_mut()?.get_mut("text")) {
        let trimmed = text.as_str().unwrap_or_default().trim_end().to_owned();
        if !trimmed.is_empty() {
            *text = Value::from(trimmed);
        } else if !is_alone {
            // There is nothing to continue.
            messages.pop();
        }
    }
    Ok(Value::from(messages))
}

/// Blank texts are left out, as the API refuses them; other models write such texts before tool calls.
fn message(turn: &Turn) -> Result<Value, Failure> {
    let role = match turn.speaker {
        Speaker::User => "user",
        Speaker::Model => "assistant",
    };
    let mut images = turn.parts.iter().filter(|part| matches!(part.content, ContentPart::Image(_)));
    if let Some(image) = images.next().filter(|_| turn.speaker == Speaker::Model) {
        return Err(image.unsupported("Anthropic accepts images only in user messages"));
    }
    let has_content = !turn.parts.iter().all(is_blank);
    let parts = turn.parts.iter().filter(|part| !has_content || !is_blank(part));
    let blocks: Vec<Value> = parts.map(block).collect::<Result<_, _>>()?;
    Ok(json!({"role": role, "content": blocks}))
}

fn is_blank(part: &Part) -> bool {
    part.as_text().is_some_and(|text| text.trim().is_empty())
}

fn block(part: &Part) -> Result<Value, Failure> {
    let mut cache_control = part.cache_control.as_ref();
    let mut block = match &part.content {
        ContentPart::Text(text) => json!({"type": "text", "text": text}),
        ContentPart::Image(Image::Data(data)) => json!({"type": "image", "source": source(data)}),
        ContentPart::Image(Image::Url(url)) => {
            json!({"type": "image", "source": {"type": "url", "url": url}})
        }
        ContentPart::File { data, name } if data.media_type == PDF => {
            let mut block = json!({"type": "document", "source": source(data)});
            if let Some(name) = name {
                block["title"] = json!(name);
            }
            block
        }
        ContentPart::File { .. } => {
            return Err(part.unsupported("Anthropic accepts only files of type `application/pdf`"));
        }
        ContentPart::Audio(_) => return Err(part.unsupported("Anthropic does not accept audio")),
        ContentPart::SignedThought(block) => block.clone(),
        ContentPart::ToolCall { id, name, arguments, .. } => {
            json!({"type": "tool_use", "id": call_id(id), "name": name, "input": arguments})
        }
        ContentPart::ToolResult { id, parts, .. } => {
            // A hint inside of the result would be one for the result itself.
            cache_control = parts.iter().rev().find_map(|part| part.cache_control.as_ref());
            json!({"type": "tool_result", "tool_use_id": call_id(id), "content": tool_result(parts)?})
        }
    };
    if let Some(cache_control) = cache_control {
        block["cache_control"] = cache_control.clone();
    }
    Ok(block)
}

/// The content of a tool's result.
fn tool_result(parts: &[Part]) -> Result<Value, Failure> {
    if let [part] = parts
        && let Some(text) = part.as_text()
    {
        return Ok(json!(text));
    }
    let parts = parts.iter().filter(|part| !is_blank(part));
    let mut blocks: Vec<Value> = parts.map(block).collect::<Result<_, _>>()?;
    for block in &mut blocks {
        block.as_object_mut().map(|block| block.remove("cache_control"));
    }
    Ok(string_or_blocks(blocks))
}

/// A single text as a plain string, and anything else as blocks.
fn string_or_blocks(blocks: Vec<Value>) -> Value {
    match blocks.as_slice() {
        [] => json!(""),
        [block] if block["type"] == "text" && block.get("cache_control").is_none() => block["text"].clone(),
        _ => Value::from(blocks),
    }
}

fn source(Data { media_type, base64 }: &Data) -> Value {
    json!({"type": "base64", "media_type": media_type, "data": base64})
}

/// The identifier of a tool call in the form that the API accepts, the same for the call and its result. Those of other
/// providers may contain dots and colons (`functions.get:0`).
fn call_id(id: &str) -> Cow<'_, str> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !id.is_empty() && id.bytes().all(is_allowed) {
        return id.into();
    }
    format!("call_{}", hex(&Sha256::digest(id)[..12])).into()
}
