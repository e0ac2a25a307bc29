//! Embeddings, which are in this format already: the request gets the provider's own model name, the response the full
//! identifier and a usage, if it has none. The vectors pass through as they are.

use bytes::Bytes;

use super::error_body;
use crate::json::fields::{self, Fields};
use crate::json::reader::{Json, Reader};
use crate::money::{Tokens, Usage};
use crate::providers::dialects::{embeddings, status, token_count};
use crate::providers::{
    CompletionRequest, CompletionResponse, FailedCall, Failure, Model, ProviderRequest, ProviderResponse,
    ResponseMeta,
};

/// The request that asks `model` for these embeddings.
pub(super) fn encode(request: &CompletionRequest<'_>, model: &Model) -> ProviderRequest {
    let mut body = vec![b'{'];
    fields::write_string_field(&mut body, "model", &model.name);
    for (name, value) in request.fields.iter().filter(|(name, _)| *name != "model") {
        fields::write_field_escaped(&mut body, name, value.get());
    }
    body.push(b'}');
    ProviderRequest { path: "/embeddings".into(), headers: Vec::new(), body: Bytes::from(body) }
}

/// The response for the caller.
///
/// # Errors
/// With the failure that status and body describe, or if there is not one vector for each input.
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
    let mut vectors = None;
    let fields = Fields::parse_with(text, |name, reader| match name {
        "data" => reader.try_read(count).map(|read| vectors = read),
        _ => reader.skip_value(),
    });
    let fields = fields.map_err(|_| Failure::Malformed)?;
    if vectors != Some(embeddings::count(request)) {
        return Err(Failure::Malformed);
    }
    let reported = fields.non_null("usage");
    let tokens = reported.and_then(prompt_tokens).map(Tokens::of_prompt);
    let mut body = Vec::with_capacity(text.len() + 128);
    body.push(b'{');
    fields::write_string_field(&mut body, "object", "list");
    fields::write_string_field(&mut body, "model", &meta.model);
    for (name, value) in fields.iter() {
        let is_ours = matches!(name, "object" | "model") || (name == "usage" && tokens.is_none());
        if !is_ours {
            fields::write_field_escaped(&mut body, name, value.get());
        }
    }
    let usage =
        tokens.map_or_else(|| Usage::estimated(Tokens::of_prompt(request.prompt_tokens)), Usage::reported);
    if tokens.is_none() {
        fields::write_field(&mut body, "usage", &embeddings::usage_json(usage).to_string());
    }
    body.push(b'}');
    Ok(CompletionResponse { body: Bytes::from(body), usage, is_native: false })
}

/// The number of vectors in a list; `None` if something in it is none.
fn count(reader: &mut Reader<'_>) -> Option<usize> {
    let mut count = 0;
    reader.array(|reader| {
        let [vector] = reader.fields(["embedding"])?;
        count += 1;
        vector.filter(|vector| vector.is_array() || vector.is_string()).map(drop)
    })?;
    Some(count)
}

fn prompt_tokens(usage: Json<'_>) -> Option<u64> {
    let [prompt, total] = usage.fields(["prompt_tokens", "total_tokens"])?;
    let plausible = |figure: Json<'_>| token_count::count_from_text(figure.get());
    prompt.and_then(plausible).or_else(|| total.and_then(plausible)).filter(|count| *count > 0)
}
