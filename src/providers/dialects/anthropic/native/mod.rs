//! Messages that are passed on as they are, and their answers.
//!
//! What must hold: an answer is complete only with its stop reason and, in a stream, with all that its calls of tools
//! have; what cannot be read is a failure, never a gap in what is passed on.

mod count;
mod stream;

use serde_json::Value;

pub use count::TokenCount;

use super::response::TokenCounts;
use super::{error_body, version};
use crate::json::fields::Fields;
use crate::json::reader::Json;
use crate::money::{Tokens, Usage};
use crate::providers::catalog::estimate;
use crate::providers::dialects::status;
use crate::providers::native::{NativeRequest, Passage, with_model};
use crate::providers::{
    CompletionRequest, CompletionResponse, FailedCall, Failure, Model, ProviderRequest, ProviderResponse,
    ResponseMeta, StreamDecoder,
};

/// The passage of Messages.
#[derive(Debug)]
pub(super) struct Messages;

impl Passage for Messages {
    fn request(&self, request: &NativeRequest, model: &Model) -> ProviderRequest {
        request.for_model(model, "/messages", [version()])
    }

    fn response(
        &self,
        response: &ProviderResponse,
        request: &CompletionRequest<'_>,
        meta: &ResponseMeta,
    ) -> Result<CompletionResponse, FailedCall> {
        status::parse(response, |response| message(response, request, meta), error_body::failure)
    }

    fn stream_decoder(&self, meta: &ResponseMeta) -> Box<dyn StreamDecoder> {
        Box::new(stream::Decoder::new(meta.clone()))
    }
}

/// A whole message.
fn message(
    response: &ProviderResponse,
    request: &CompletionRequest<'_>,
    meta: &ResponseMeta,
) -> Result<CompletionResponse, FailedCall> {
    let text = std::str::from_utf8(&response.body).map_err(|_| Failure::Malformed)?;
    let fields = Fields::parse(text).map_err(|_| Failure::Malformed)?;
    let tokens = fields.non_null("usage").and_then(tokens);
    let failed = |failure| FailedCall { failure, usage: tokens };
    if is_error(&fields) {
        let body = serde_json::from_str(text).unwrap_or(Value::Null);
        return Err(failed(error_body::failure_in_success(&body, response)));
    }
    let content = fields.get("content").filter(|content| content.is_array());
    let content = content.ok_or_else(|| failed(Failure::Malformed))?;
    // A complete message always has a stop reason.
    if !fields.get("stop_reason").is_some_and(Json::is_string) {
        return Err(failed(Failure::Malformed));
    }
    let written = || content.read::<Value>().map_or(0, |content| estimate::written_characters(&content));
    let estimated = || Tokens::new(request.prompt_tokens, estimate::length_tokens(written()));
    let usage = tokens.map_or_else(|| Usage::estimated(estimated()), Usage::reported);
    let body = with_model(text, fields.get("model"), meta).into_owned().into();
    Ok(CompletionResponse { body, usage, is_native: true })
}

/// Whether a body, or an event, reports a failure; gateways in between have error formats of their own.
fn is_error(fields: &Fields<'_>) -> bool {
    fields.get("type").map(Json::get) == Some("\"error\"") || fields.non_null("error").is_some()
}

fn tokens(usage: Json<'_>) -> Option<Tokens> {
    let mut counts = TokenCounts::default();
    counts.update(&usage.read()?);
    Some(counts.usage()?.tokens)
}
