//! Callers' chat completions through the Messages API.

use super::response::ParsedResponse;
use super::{Anthropic, stream, translate};
use crate::providers::completion::{
    CompletionDialect, CompletionRequest, CompletionResponse, ResponseMeta, StreamDecoder,
};
use crate::providers::{FailedCall, Failure, Model, ProviderRequest, ProviderResponse};

impl CompletionDialect for Anthropic {
    fn chat_request(
        &self,
        request: &CompletionRequest<'_>,
        model: &Model,
    ) -> Result<ProviderRequest, Failure> {
        translate::translate(request, model)
    }

    fn chat_response(
        &self,
        response: &ProviderResponse,
        request: &CompletionRequest<'_>,
        meta: &ResponseMeta,
    ) -> Result<CompletionResponse, FailedCall> {
        ParsedResponse::parse(response)?.completion(request, meta)
    }

    fn stream_decoder(&self, _request: &CompletionRequest<'_>) -> Box<dyn StreamDecoder> {
        Box::new(stream::Decoder::default())
    }
}
