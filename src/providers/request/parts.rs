//! Decodes the parts of a message's content: texts and images.

use serde_json::Value;

use super::{ContentPart, refuse_unknown_fields, unsupported};
use crate::providers::Failure;

/// An image in a message.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::providers) enum Image {
    /// In the request itself.
    Data {
        /// Such as `image/png`.
        media_type: String,
        /// The base64 data as sent by the caller.
        base64: String,
    },
    /// For the provider to fetch: `http` or `https`.
    Url(String),
}

/// The parts of a content, without empty texts, as formats refuse those. `path` is that of the content.
pub(super) fn read(content: &Value, path: &str) -> Result<Vec<ContentPart>, Failure> {
    let mut parts = Vec::new();
    match content {
        Value::String(text) => parts.push(ContentPart::Text(text.clone())),
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                parts.push(part(value, &format!("{path}[{index}]"))?);
            }
        }
        _ => {}
    }
    parts.retain(|part| !matches!(part, ContentPart::Text(text) if text.is_empty()));
    Ok(parts)
}

/// The text of a content that may contain nothing else.
pub(super) fn text(content: &Value, path: &str) -> Result<String, Failure> {
    let mut texts = Vec::new();
    for part in read(content, path)? {
        match part {
            ContentPart::Text(text) => texts.push(text),
            _ => return Err(unsupported(path, "this provider takes only text here")),
        }
    }
    Ok(texts.concat())
}

fn part(value: &Value, path: &str) -> Result<ContentPart, Failure> {
    let kind = value["type"].as_str().unwrap_or_default();
    if !matches!(kind, "text" | "refusal" | "image_url") {
        let message = "this provider is asked with parts of type `text` and `image_url` only";
        return Err(unsupported(format!("{path}.type"), message));
    }
    // Cache hints have no effect on the answer.
    refuse_unknown_fields(value, &["type", kind, "cache_control"], path)?;
    if kind == "image_url" {
        return image(&value[kind], &format!("{path}.{kind}"));
    }
    Ok(ContentPart::Text(value[kind].as_str().unwrap_or_default().to_owned()))
}

fn image(value: &Value, path: &str) -> Result<ContentPart, Failure> {
    refuse_unknown_fields(value, &["url", "detail"], path)?;
    // Both formats always process images in as much detail as they can.
    if !matches!(value["detail"].as_str(), None | Some("auto" | "high")) {
        return Err(unsupported(
            format!("{path}.detail"),
            "only `auto` and `high` can be asked of this provider",
        ));
    }
    let invalid = || {
        let message = "must be an address (https://…) or data in base64 (data:image/png;base64,…)";
        unsupported(format!("{path}.url"), message)
    };
    let url = value["url"].as_str().ok_or_else(invalid)?;
    let (scheme, rest) = url.split_once(':').ok_or_else(invalid)?;
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => Ok(ContentPart::Image(Image::Url(url.to_owned()))),
        "data" => {
            let (head, base64) = rest.split_once(',').ok_or_else(invalid)?;
            let media_type =
                head.strip_suffix(";base64").filter(|kind| kind.contains('/')).ok_or_else(invalid)?;
            Ok(ContentPart::Image(Image::Data {
                media_type: media_type.to_owned(),
                base64: base64.to_owned(),
            }))
        }
        _ => Err(invalid()),
    }
}
