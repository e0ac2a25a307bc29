//! Responses that are passed on as they are, and their answers.
//!
//! What must hold: an answer is complete only if it says so; one that failed is a failure.

mod stream;

use serde_json::{Value, json};

use super::error_body;
use crate::json::fields::Fields;
use crate::json::reader::Json;
use crate::money::{Tokens, Usage};
use crate::providers::catalog::estimate;
use crate::providers::dialects::{status, token_count};
use crate::providers::native::{NativeRequest, Passage, with_model};
use crate::providers::{
    CompletionRequest, CompletionResponse, FailedCall, Failure, Model, ProviderRequest, ProviderResponse,
    ResponseMeta, StreamDecoder,
};

/// The passage of Responses.
#[derive(Debug)]
pub(super) struct Responses;

impl Passage for Responses {
    fn request(&self, request: &NativeRequest, model: &Model) -> ProviderRequest {
        request.for_model(model, "/responses", [])
    }

    fn response(
        &self,
        response: &ProviderResponse,
        request: &CompletionRequest<'_>,
        meta: &ResponseMeta,
    ) -> Result<CompletionResponse, FailedCall> {
        status::parse(response, |response| whole(response, request, meta), error_body::failure)
    }

    fn stream_decoder(&self, meta: &ResponseMeta) -> Box<dyn StreamDecoder> {
        Box::new(stream::Decoder::new(meta.clone()))
    }
}

/// A whole response.
fn whole(
    response: &ProviderResponse,
    request: &CompletionRequest<'_>,
    meta: &ResponseMeta,
) -> Result<CompletionResponse, FailedCall> {
    let text = std::str::from_utf8(&response.body).map_err(|_| Failure::Malformed)?;
    let fields = Fields::parse(text).map_err(|_| Failure::Malformed)?;
    let tokens = fields.non_null("usage").and_then(tokens);
    let failed = |failure| FailedCall { failure, usage: tokens };
    let output = fields.get("output").filter(|output| output.is_array());
    let [status, error, details] =
        ["status", "error", "incomplete_details"].map(|name| fields.non_null(name));
    match Ending::of(status, details) {
        Some(Ending::Finished(_)) if error.is_none() => {}
        Some(_) => return Err(failed(failure(error))),
        None if error.is_some() => return Err(failed(failure(error))),
        None => return Err(failed(Failure::Malformed)),
    }
    let output = output.ok_or_else(|| failed(Failure::Malformed))?;
    let written = || output.read::<Value>().map_or(0, |output| estimate::written_characters(&output));
    let estimated = || Tokens::new(request.prompt_tokens, estimate::length_tokens(written()));
    let usage = tokens.map_or_else(|| Usage::estimated(estimated()), Usage::reported);
    let body = with_model(text, fields.get("model"), meta).into_owned().into();
    Ok(CompletionResponse { body, usage, is_native: true })
}

/// How a response has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// With this finish reason of the chat-completion format.
    Finished(&'static str),
    Failed,
}

impl Ending {
    /// `None` if it has not ended.
    fn of(status: Option<Json<'_>>, details: Option<Json<'_>>) -> Option<Self> {
        let reason = || details.and_then(|details| details.fields(["reason"])).and_then(|[reason]| reason);
        match status?.get() {
            "\"completed\"" => Some(Self::Finished("stop")),
            "\"incomplete\"" if reason().map(Json::get) == Some("\"content_filter\"") => {
                Some(Self::Finished("content_filter"))
            }
            "\"incomplete\"" => Some(Self::Finished("length")),
            "\"failed\"" | "\"cancelled\"" => Some(Self::Failed),
            _ => None,
        }
    }
}

/// The failure that the `error` of a response describes.
fn failure(error: Option<Json<'_>>) -> Failure {
    let error = error.and_then(Json::read).unwrap_or(Value::Null);
    error_body::failure_in_success(&json!({"error": error}), &ProviderResponse::of_stream_event())
}

/// The tokens of a usage object; `None` if it is not plausible.
fn tokens(usage: Json<'_>) -> Option<Tokens> {
    let count = |value: Option<Json<'_>>| value.and_then(|value| token_count::count_from_text(value.get()));
    let [input, output, details] = usage.fields(["input_tokens", "output_tokens", "input_tokens_details"])?;
    let [cached, written] = details
        .and_then(|details| details.fields(["cached_tokens", "cache_write_tokens"]))
        .unwrap_or_default();
    let tokens = Tokens {
        cached: count(cached).unwrap_or_default(),
        cache_written: count(written).unwrap_or_default(),
        ..Tokens::new(count(input)?, count(output)?)
    };
    (tokens.total() > 0).then_some(tokens)
}
