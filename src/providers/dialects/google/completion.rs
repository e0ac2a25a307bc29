//! Callers' chat completions through the Gemini API.

use super::response::ParsedResponse;
use super::{Google, stream, translate};
use crate::providers::completion::{
    CompletionDialect, CompletionRequest, CompletionResponse, ResponseMeta, StreamDecoder,
};
use crate::providers::{FailedCall, Failure, Model, ProviderRequest, ProviderResponse};

impl CompletionDialect for Google {
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

    fn stream_decoder(&self, request: &CompletionRequest<'_>) -> Box<dyn StreamDecoder> {
        Box::new(stream::Decoder::new(request.max_tool_calls()))
    }
}
