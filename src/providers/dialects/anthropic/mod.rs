//! Anthropic's Messages API, version 2023-06-01: `POST /messages`, with complete or streamed responses.
//!
//! It differs from chat completions in essentials: the system text is separate, speakers alternate, a token limit is
//! mandatory, and a response is a list of blocks of which only the texts are the answer. A JSON schema goes into
//! `output_config.format`, which every model since 4.5 accepts without a beta header. Older models refuse it and are
//! then asked without it: the only weaker alternative in this format is the prompt itself.
//!
//! What must hold: an answer that is incomplete or withheld never looks like a finished one, and only text blocks are
//! shown as the answer.

mod blocks;
mod error_body;
mod native;
mod response;
mod schema;
mod stream;
mod translate;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use crate::providers::dialects::embeddings;
use crate::providers::native::{Passage, Protocol};
use crate::providers::{
    CompletionRequest, CompletionResponse, Dialect, FailedCall, Failure, KeyHeader, Model, ProviderRequest,
    ProviderResponse, ResponseMeta, StreamDecoder,
};
pub use native::TokenCount;
use response::ParsedResponse;
pub(in crate::providers) use translate::FIRST_ADAPTIVE;

/// The token limit for models without a known maximum: the smallest maximum of all models since Claude 4 (that of Opus
/// 4).
const DEFAULT_MAX_TOKENS: u64 = 32_000;

/// The maximum temperature in this format; in others it is 2.
const MAX_TEMPERATURE: f64 = 1.0;

/// The dialect, which is stateless.
#[derive(Debug)]
pub(in crate::providers) struct Anthropic;

impl Dialect for Anthropic {
    fn key_header(&self) -> KeyHeader {
        KeyHeader { name: HeaderName::from_static("x-api-key"), prefix: "" }
    }

    fn request(&self, request: &CompletionRequest<'_>, model: &Model) -> Result<ProviderRequest, Failure> {
        if request.is_for_embeddings() {
            return Err(embeddings::none_here());
        }
        translate::translate(request, model)
    }

    fn passage(&self, protocol: Protocol, _model: &Model) -> Option<&'static dyn Passage> {
        (protocol == Protocol::Messages).then_some(&native::Messages)
    }

    fn response(
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

    fn listing(&self) -> ProviderRequest {
        // The maximum page size; the default is twenty.
        ProviderRequest { path: "/models?limit=1000".into(), headers: vec![version()], body: Bytes::new() }
    }
}

/// The API version, which every request must specify.
fn version() -> (HeaderName, HeaderValue) {
    (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::Kind;
    use crate::providers::dialects::{chat_scenarios, scenarios};

    #[test]
    fn every_scenario_plays_as_expected() {
        assert!(scenarios::play(&Anthropic, Kind::Anthropic) >= 30);
    }

    #[test]
    fn every_chat_scenario_plays_as_expected() {
        assert!(chat_scenarios::play(&Anthropic, Kind::Anthropic) >= 20);
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(32))]

        #[test]
        fn the_boundaries_of_pieces_do_not_matter(cuts: Vec<proptest::sample::Index>) {
            for stream in chat_scenarios::streams(Kind::Anthropic) {
                let whole = chat_scenarios::decoded(&Anthropic, &[&stream]);
                let pieces = chat_scenarios::pieces(&stream, &cuts);
                proptest::prop_assert_eq!(chat_scenarios::decoded(&Anthropic, &pieces), whole);
            }
        }

        #[test]
        fn a_broken_stream_never_looks_like_a_complete_one(
            place: proptest::sample::Index,
            damage in "[\\x00-\\x7f]{0,8}",
        ) {
            for stream in chat_scenarios::streams(Kind::Anthropic) {
                chat_scenarios::survives(&Anthropic, &stream, place.index(stream.len()), damage.as_bytes());
            }
        }
    }
}
