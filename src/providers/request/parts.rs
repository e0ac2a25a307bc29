//! Decodes the parts of a message's content: texts, images, files and sounds.

use serde_json::Value;

use super::{ContentPart, Part, refuse_unknown_fields, unsupported};
use crate::providers::Failure;

/// The kinds of parts. A field of the same name holds the content.
const KINDS: [&str; 5] = ["text", "refusal", "image_url", "file", "input_audio"];

/// An image in a message.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::providers) enum Image {
    /// In the request itself.
    Data(Data),
    /// For the provider to fetch: `http` or `https`.
    Url(String),
}

/// What is in the request itself.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::providers) struct Data {
    /// Such as `image/png`.
    pub(in crate::providers) media_type: String,
    /// The base64 data as sent by the caller.
    pub(in crate::providers) base64: String,
}

/// The parts of a content, without empty texts, as formats refuse those. `path` is that of the content.
pub(super) fn read(content: &Value, path: &str) -> Result<Vec<Part>, Failure> {
    let mut parts = Vec::new();
    match content {
        Value::String(text) => {
            let content = ContentPart::Text(text.clone());
            parts.push(Part { content, cache_control: None, path: path.to_owned() });
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                parts.push(part(value, format!("{path}[{index}]"))?);
            }
        }
        _ => {}
    }
    parts.retain(|part| part.as_text() != Some(""));
    Ok(parts)
}

/// The parts of a content that may contain nothing but texts.
pub(super) fn read_texts(content: &Value, path: &str) -> Result<Vec<Part>, Failure> {
    let parts = read(content, path)?;
    if parts.iter().any(|part| part.as_text().is_none()) {
        return Err(unsupported(path, "this provider accepts only text here"));
    }
    Ok(parts)
}

/// A hint about caching, if there is one. It has no effect on the answer, so formats without such hints ignore it.
pub(super) fn cache_control(value: &Value) -> Option<Value> {
    value.get("cache_control").filter(|hint| hint.is_object()).cloned()
}

fn part(value: &Value, path: String) -> Result<Part, Failure> {
    let kind = value["type"].as_str().unwrap_or_default();
    if !KINDS.contains(&kind) {
        let message =
            "this provider accepts only parts of type `text`, `image_url`, `file` and `input_audio`";
        return Err(unsupported(format!("{path}.type"), message));
    }
    refuse_unknown_fields(value, &["type", kind, "cache_control"], &path)?;
    let (held, held_path) = (&value[kind], format!("{path}.{kind}"));
    let content = match kind {
        "image_url" => image(held, &held_path)?,
        "file" => file(held, &held_path)?,
        "input_audio" => audio(held, &held_path)?,
        _ => ContentPart::Text(held.as_str().unwrap_or_default().to_owned()),
    };
    Ok(Part { content, cache_control: cache_control(value), path })
}

fn image(value: &Value, path: &str) -> Result<ContentPart, Failure> {
    refuse_unknown_fields(value, &["url", "detail"], path)?;
    // Both formats always process images in as much detail as they can.
    if !matches!(value["detail"].as_str(), None | Some("auto" | "high")) {
        return Err(unsupported(format!("{path}.detail"), "this provider supports only `auto` and `high`"));
    }
    let url = value["url"].as_str().unwrap_or_default();
    let is_remote = url
        .split_once(':')
        .is_some_and(|(scheme, _)| ["http", "https"].iter().any(|name| scheme.eq_ignore_ascii_case(name)));
    if is_remote {
        return Ok(ContentPart::Image(Image::Url(url.to_owned())));
    }
    let data = data(url).ok_or_else(|| {
        let message = "must be a URL (https://…) or base64 data (data:image/png;base64,…)";
        unsupported(format!("{path}.url"), message)
    })?;
    Ok(ContentPart::Image(Image::Data(data)))
}

/// A file in the request. One that was uploaded before (`file_id`) is known only to the company it was uploaded to.
fn file(value: &Value, path: &str) -> Result<ContentPart, Failure> {
    refuse_unknown_fields(value, &["file_data", "filename"], path)?;
    let data = data(value["file_data"].as_str().unwrap_or_default()).ok_or_else(|| {
        let message = "must be base64 data (data:application/pdf;base64,…)";
        unsupported(format!("{path}.file_data"), message)
    })?;
    let name = value["filename"].as_str().filter(|name| !name.is_empty()).map(str::to_owned);
    Ok(ContentPart::File { data, name })
}

fn audio(value: &Value, path: &str) -> Result<ContentPart, Failure> {
    refuse_unknown_fields(value, &["data", "format"], path)?;
    let media_type = match value["format"].as_str() {
        Some("wav") => "audio/wav",
        Some("mp3") => "audio/mp3",
        _ => return Err(unsupported(format!("{path}.format"), "must be `wav` or `mp3`")),
    };
    let base64 = value["data"].as_str().filter(|base64| !base64.is_empty());
    let base64 = base64.ok_or_else(|| unsupported(format!("{path}.data"), "must be base64 data"))?;
    Ok(ContentPart::Audio(Data { media_type: media_type.to_owned(), base64: base64.to_owned() }))
}

/// The data of a `data:` URL in base64.
fn data(url: &str) -> Option<Data> {
    let (scheme, rest) = url.split_once(':')?;
    let (head, base64) = rest.split_once(',').filter(|_| scheme.eq_ignore_ascii_case("data"))?;
    let media_type = head.strip_suffix(";base64").filter(|kind| kind.contains('/'))?;
    Some(Data { media_type: media_type.to_owned(), base64: base64.to_owned() })
}
