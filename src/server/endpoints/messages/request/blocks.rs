//! The blocks of a user's message, and of a tool's result, as parts of a message of a chat completion.

use serde_json::{Map, Value, json};

use super::left_out::LeftOut;
use crate::server::reply::ApiError;
use crate::server::request::params::{invalid, missing, wrong_type};

/// How the text begins that Claude Code sends to account for a request: it is nothing for a model, and as it differs
/// from request to request, no prompt behind it could be read from a cache.
pub(super) const BILLING_HEADER: &str = "x-anthropic-billing-header";

/// What a PDF is called that has no title.
const DOCUMENT_NAME: &str = "document.pdf";

/// A string of a block, which must be there.
pub(super) fn take_text(block: &mut Map<String, Value>, name: &str, path: &str) -> Result<String, ApiError> {
    let path = || format!("{path}.{name}");
    match block.shift_remove(name) {
        Some(Value::String(text)) => Ok(text),
        None | Some(Value::Null) => Err(missing(&path())),
        Some(other) => Err(wrong_type(&path(), "a string", &other)),
    }
}

/// Appends the parts of a block to `parts`.
pub(super) fn parts(
    mut block: Map<String, Value>,
    path: &str,
    left_out: &mut LeftOut,
    parts: &mut Vec<Value>,
) -> Result<(), ApiError> {
    let kind = take_text(&mut block, "type", path)?;
    if kind != "text" {
        refuse_citations(&block, path, left_out)?;
    }
    match kind.as_str() {
        "text" => {
            let text = take_text(&mut block, "text", path)?;
            if !text.is_empty() {
                parts.push(text_part(&text));
            }
        }
        "image" => parts.extend(image(&mut block, path, left_out)?),
        "document" => document(&mut block, path, left_out, parts)?,
        "search_result" => parts.push(text_part(&search_result(&mut block, path)?)),
        "tool_reference" => {
            let name = take_text(&mut block, "tool_name", path)?;
            parts.push(text_part(&format!("The tool {name} can be used.")));
        }
        "container_upload" => {
            let why = "files in a container are available only to Anthropic's own models";
            left_out.refuse(&format!("{path}.type"), "container_upload", why)?;
        }
        _ => {
            let allowed = "text, image, document, search_result or tool_result";
            return Err(invalid(&format!("{path}.type"), format!("`{path}.type` must be {allowed}")));
        }
    }
    Ok(())
}

/// Citations of what a request brings along exist only there.
fn refuse_citations(block: &Map<String, Value>, path: &str, left_out: &mut LeftOut) -> Result<(), ApiError> {
    if block.get("citations").is_some_and(|citations| citations["enabled"] == true) {
        let why = "only Anthropic's own models support citations; leave it out";
        left_out.refuse(&format!("{path}.citations"), "citations", why)?;
    }
    Ok(())
}

fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The source of a block: its type and its fields.
fn source(block: &mut Map<String, Value>, path: &str) -> Result<(String, Map<String, Value>), ApiError> {
    match block.shift_remove("source") {
        Some(Value::Object(mut source)) => {
            Ok((take_text(&mut source, "type", &format!("{path}.source"))?, source))
        }
        None => Err(missing(&format!("{path}.source"))),
        Some(other) => Err(wrong_type(&format!("{path}.source"), "an object", &other)),
    }
}

fn image(
    block: &mut Map<String, Value>,
    path: &str,
    left_out: &mut LeftOut,
) -> Result<Option<Value>, ApiError> {
    let (kind, mut source) = source(block, path)?;
    let path = format!("{path}.source");
    let url = match kind.as_str() {
        "base64" => data_url(&mut source, &path)?,
        "url" => take_text(&mut source, "url", &path)?,
        "file" => {
            uploaded(&path, left_out)?;
            return Ok(None);
        }
        _ => return Err(unknown_source(&path, "base64 or url")),
    };
    Ok(Some(json!({"type": "image_url", "image_url": {"url": url}})))
}

fn document(
    block: &mut Map<String, Value>,
    path: &str,
    left_out: &mut LeftOut,
    parts: &mut Vec<Value>,
) -> Result<(), ApiError> {
    let (kind, mut source) = source(block, path)?;
    let path = format!("{path}.source");
    let mut take = |name| match block.shift_remove(name) {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    };
    let (title, context) = (take("title"), take("context"));
    let is_file = kind == "base64";
    let heading: Vec<&str> =
        [title.as_deref().filter(|_| !is_file), context.as_deref()].into_iter().flatten().collect();
    if !heading.is_empty() {
        parts.push(text_part(&heading.join("\n")));
    }
    match kind.as_str() {
        "base64" => {
            let file = json!({
                "filename": title.unwrap_or_else(|| DOCUMENT_NAME.to_owned()),
                "file_data": data_url(&mut source, &path)?,
            });
            parts.push(json!({"type": "file", "file": file}));
        }
        "text" => parts.push(text_part(&take_text(&mut source, "data", &path)?)),
        "content" => match source.shift_remove("content").unwrap_or_default() {
            Value::String(text) => parts.push(text_part(&text)),
            Value::Array(blocks) => {
                for (index, inner) in blocks.into_iter().enumerate() {
                    let path = format!("{path}.content[{index}]");
                    let Value::Object(inner) = inner else {
                        return Err(wrong_type(&path, "an object", &inner));
                    };
                    if !matches!(inner.get("type").and_then(Value::as_str), Some("text" | "image")) {
                        let message = format!("`{path}.type` must be text or image");
                        return Err(invalid(&format!("{path}.type"), message));
                    }
                    self::parts(inner, &path, left_out, parts)?;
                }
            }
            other => return Err(wrong_type(&format!("{path}.content"), "a string or an array", &other)),
        },
        "url" => {
            let why = "other models do not accept documents by URL; send it as base64";
            left_out.refuse(&format!("{path}.type"), "document", why)?;
        }
        "file" => uploaded(&path, left_out)?,
        _ => return Err(unknown_source(&path, "base64, text or content")),
    }
    Ok(())
}

/// A result of a search of the caller's own, as text.
fn search_result(block: &mut Map<String, Value>, path: &str) -> Result<String, ApiError> {
    let mut lines = vec![take_text(block, "title", path)?, take_text(block, "source", path)?, String::new()];
    let content = match block.shift_remove("content").unwrap_or_default() {
        Value::Array(content) => content,
        other => return Err(wrong_type(&format!("{path}.content"), "an array of text blocks", &other)),
    };
    for (index, inner) in content.into_iter().enumerate() {
        let path = format!("{path}.content[{index}]");
        let Value::Object(mut inner) = inner else { return Err(wrong_type(&path, "an object", &inner)) };
        lines.push(take_text(&mut inner, "text", &path)?);
    }
    Ok(lines.join("\n"))
}

fn data_url(source: &mut Map<String, Value>, path: &str) -> Result<String, ApiError> {
    let (kind, data) = (take_text(source, "media_type", path)?, take_text(source, "data", path)?);
    Ok(["data:", &kind, ";base64,", &data].concat())
}

/// Refuses a file that was uploaded to Anthropic.
fn uploaded(path: &str, left_out: &mut LeftOut) -> Result<(), ApiError> {
    let why = "files uploaded to Anthropic are available only to its own models; send it as base64";
    left_out.refuse(&format!("{path}.type"), "file", why)
}

fn unknown_source(path: &str, allowed: &str) -> ApiError {
    invalid(&format!("{path}.type"), format!("`{path}.type` must be {allowed}"))
}
