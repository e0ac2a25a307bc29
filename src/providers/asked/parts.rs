//! The parts of a message's content: texts and images.

use serde_json::Value;

use super::{Piece, only, refusal};
use crate::providers::Failure;

/// An image in a message.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::providers) enum Image {
    /// In the request itself.
    Data {
        /// Such as `image/png`.
        media_type: String,
        /// In base64, as the caller wrote it.
        base64: String,
    },
    /// For the provider to fetch: `http` or `https`.
    Address(String),
}

/// What a content holds; empty texts are left out, as formats refuse them. `path` is the content's own.
pub(super) fn read(content: &Value, path: &str) -> Result<Vec<Piece>, Failure> {
    let mut pieces = Vec::new();
    match content {
        Value::String(text) => pieces.push(Piece::Text(text.clone())),
        Value::Array(parts) => {
            for (index, part) in parts.iter().enumerate() {
                pieces.push(piece(part, &format!("{path}[{index}]"))?);
            }
        }
        _ => {}
    }
    pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
    Ok(pieces)
}

/// The texts of a content where nothing else may stand.
pub(super) fn text(content: &Value, path: &str) -> Result<String, Failure> {
    let mut texts = Vec::new();
    for piece in read(content, path)? {
        match piece {
            Piece::Text(text) => texts.push(text),
            _ => return Err(refusal(path, "this provider takes only text here")),
        }
    }
    Ok(texts.concat())
}

fn piece(part: &Value, path: &str) -> Result<Piece, Failure> {
    let kind = part["type"].as_str().unwrap_or_default();
    if !matches!(kind, "text" | "refusal" | "image_url") {
        let message = "this provider is asked with parts of type `text` and `image_url` only";
        return Err(refusal(format!("{path}.type"), message));
    }
    // A hint to a cache changes no answer.
    only(part, &["type", kind, "cache_control"], path)?;
    if kind == "image_url" {
        return image(&part[kind], &format!("{path}.{kind}"));
    }
    Ok(Piece::Text(part[kind].as_str().unwrap_or_default().to_owned()))
}

fn image(value: &Value, path: &str) -> Result<Piece, Failure> {
    only(value, &["url", "detail"], path)?;
    // Both formats look at an image as closely as they can.
    if !matches!(value["detail"].as_str(), None | Some("auto" | "high")) {
        return Err(refusal(
            format!("{path}.detail"),
            "only `auto` and `high` can be asked of this provider",
        ));
    }
    let wrong = || {
        let message = "must be an address (https://…) or data in base64 (data:image/png;base64,…)";
        refusal(format!("{path}.url"), message)
    };
    let url = value["url"].as_str().ok_or_else(wrong)?;
    let (scheme, rest) = url.split_once(':').ok_or_else(wrong)?;
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => Ok(Piece::Image(Image::Address(url.to_owned()))),
        "data" => {
            let (head, base64) = rest.split_once(',').ok_or_else(wrong)?;
            let media_type =
                head.strip_suffix(";base64").filter(|kind| kind.contains('/')).ok_or_else(wrong)?;
            Ok(Piece::Image(Image::Data { media_type: media_type.to_owned(), base64: base64.to_owned() }))
        }
        _ => Err(wrong()),
    }
}
