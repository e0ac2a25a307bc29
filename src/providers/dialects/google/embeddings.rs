//! Embeddings: `POST /models/MODEL:batchEmbedContents`, with a request for each text
//! (<https://ai.google.dev/api/embeddings>). The response has the vectors in the same order; newer models also report
//! a usage.

use bytes::Bytes;
use serde_json::json;

use super::{encoded, error_body};
use crate::json::fields::Fields;
use crate::json::reader::Json;
use crate::money::{Tokens, Usage};
use crate::providers::dialects::{embeddings, status, token_count};
use crate::providers::{
    CompletionRequest, CompletionResponse, FailedCall, Failure, Model, ProviderRequest, ProviderResponse,
    ResponseMeta,
};

/// The request that asks `model` for these embeddings.
///
/// # Errors
/// As [`embeddings::texts`].
pub(super) fn encode(request: &CompletionRequest<'_>, model: &Model) -> Result<ProviderRequest, Failure> {
    let (texts, dimensions) = embeddings::texts(request)?;
    let requests: Vec<_> = texts
        .into_iter()
        .map(|text| {
            let mut one = json!({
                "model": format!("models/{}", model.name),
                "content": {"parts": [{"text": text}]},
            });
            if let Some(dimensions) = dimensions {
                one["outputDimensionality"] = json!(dimensions);
            }
            one
        })
        .collect();
    let path = format!("/models/{}:batchEmbedContents", encoded(&model.name));
    let body = Bytes::from(json!({ "requests": requests }).to_string());
    Ok(ProviderRequest { path: path.into(), headers: Vec::new(), body })
}

/// The response for the caller.
///
/// # Errors
/// With the failure that status and body describe, or if there is not one vector for each text.
pub(super) fn decode(
    response: &ProviderResponse,
    request: &CompletionRequest<'_>,
    meta: &ResponseMeta,
) -> Result<CompletionResponse, FailedCall> {
    status::parse(response, |response| Ok(read(response, request, meta)?), error_body::failure)
}

fn read(
    response: &ProviderResponse,
    request: &CompletionRequest<'_>,
    meta: &ResponseMeta,
) -> Result<CompletionResponse, Failure> {
    let text = std::str::from_utf8(&response.body).map_err(|_| Failure::Malformed)?;
    let fields = Fields::parse(text).map_err(|_| Failure::Malformed)?;
    let items = fields.get("embeddings").and_then(Json::items).ok_or(Failure::Malformed)?;
    let vectors: Option<Vec<Json<'_>>> =
        items.into_iter().map(|item| item.fields(["values"]).and_then(|[values]| values)).collect();
    let vectors = vectors.filter(|vectors| vectors.len() == embeddings::count(request));
    let tokens = fields.get("usageMetadata").and_then(|usage| {
        let [count] = usage.fields(["promptTokenCount"])?;
        token_count::count_from_text(count?.get()).filter(|count| *count > 0)
    });
    let usage = tokens.map_or_else(
        || Usage::estimated(Tokens::of_prompt(request.prompt_tokens)),
        |count| Usage::reported(Tokens::of_prompt(count)),
    );
    embeddings::response(request, meta, vectors.ok_or(Failure::Malformed)?.into_iter(), usage, &[])
}
