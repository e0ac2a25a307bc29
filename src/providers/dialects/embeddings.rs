//! What the formats have in common about embeddings: the inputs of a request, and a response of our own making.
//!
//! A request has `input` (a text, or a list of texts; tokens only where the provider takes this format), `dimensions`
//! and `encoding_format` (`float` or `base64`: little-endian 32-bit numbers, which SDKs ask for by themselves).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::json::fields;
use crate::json::reader::Json;
use crate::money::Usage;
use crate::providers::request::IGNORED_FIELDS;
use crate::providers::{CompletionRequest, CompletionResponse, Failure, ResponseMeta};
use crate::unsafe_chars::name_in_message;

/// The fields that every format can express.
const EXPRESSED: [&str; 4] = ["model", "input", "dimensions", "encoding_format"];

/// How many vectors a request asks for.
pub(in crate::providers) fn count(request: &CompletionRequest<'_>) -> usize {
    let items = request.fields.get("input").and_then(Json::items).unwrap_or_default();
    // A list of numbers is one text.
    let is_one = items.first().is_none_or(|first| !first.is_string() && !first.is_array());
    if is_one { 1 } else { items.len() }
}

/// The texts and the dimensions of a request to a provider of another format.
///
/// # Errors
/// [`Failure::Unsupported`] for tokens, and for fields that only this format has.
pub(in crate::providers) fn texts(
    request: &CompletionRequest<'_>,
) -> Result<(Vec<String>, Option<u64>), Failure> {
    let unsupported =
        |param: &str, message: String| Failure::Unsupported { param: param.to_owned(), message };
    let is_known = |name: &str| EXPRESSED.contains(&name) || IGNORED_FIELDS.contains(&name);
    let unknown = |(name, value): &(&str, Json<'_>)| !is_known(name) && !value.is_null();
    if let Some((name, _)) = request.fields.iter().find(unknown) {
        let message = format!("this model's provider does not support `{}`", name_in_message(name));
        return Err(unsupported(name, message));
    }
    let input = request.fields.get("input");
    let texts = match input.and_then(Json::string) {
        Some(text) => Some(vec![text.into_owned()]),
        None => input.and_then(Json::read::<Vec<String>>),
    };
    let texts = texts.ok_or_else(|| {
        unsupported("input", "this model's provider accepts texts, not tokens; send strings".to_owned())
    })?;
    Ok((texts, request.fields.read("dimensions")))
}

/// The failure of a request to a provider that makes no vectors.
pub(in crate::providers) fn none_here() -> Failure {
    let message = "this model's provider has no embeddings; choose a model of another provider".to_owned();
    Failure::Unsupported { param: "model".to_owned(), message }
}

/// The usage object of a response.
pub(in crate::providers) fn usage_json(usage: Usage) -> Value {
    let tokens = usage.tokens.prompt;
    let mut json = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    if usage.is_estimated {
        json["estimated"] = json!(true);
    }
    json
}

/// A response with these vectors, which are raw JSON arrays of numbers, and `more` fields.
///
/// # Errors
/// [`Failure::Malformed`] if one of them is no vector.
pub(in crate::providers) fn response<'v>(
    request: &CompletionRequest<'_>,
    meta: &ResponseMeta,
    vectors: impl Iterator<Item = Json<'v>>,
    usage: Usage,
    more: &[(&'static str, &str)],
) -> Result<CompletionResponse, Failure> {
    let is_base64 =
        request.fields.get("encoding_format").and_then(Json::string).is_some_and(|format| format == "base64");
    let mut body = b"{\"object\":\"list\",\"data\":[".to_vec();
    for (index, vector) in vectors.enumerate() {
        let numbers = vector.read::<Vec<f32>>().filter(|numbers| !numbers.is_empty());
        let numbers = numbers.ok_or(Failure::Malformed)?;
        body.extend_from_slice(if index == 0 { b"{" } else { b",{" });
        fields::write_string_field(&mut body, "object", "embedding");
        fields::write_field(&mut body, "index", itoa::Buffer::new().format(index));
        if is_base64 {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            fields::write_string_field(&mut body, "embedding", &STANDARD.encode(bytes));
        } else {
            fields::write_field(&mut body, "embedding", vector.get());
        }
        body.push(b'}');
    }
    body.push(b']');
    fields::write_string_field(&mut body, "model", &meta.model);
    for (name, value) in more {
        fields::write_field(&mut body, name, value);
    }
    fields::write_field(&mut body, "usage", &usage_json(usage).to_string());
    body.push(b'}');
    Ok(CompletionResponse { body: Bytes::from(body), usage, is_native: false })
}
