//! The chat-completion format, defined by `OpenAI` and implemented by many providers and local servers.
//!
//! Implementations differ more than they claim, so requests contain only what is needed (some providers refuse unknown
//! fields), and responses are read leniently where that cannot change their meaning. What must hold: an answer that is
//! incomplete or withheld never looks like a finished one.

mod chunk_template;
mod delta;
mod embeddings;
mod error_body;
mod finish_reason;
mod order;
mod parts;
mod request;
mod response;
mod responses;
mod stream;
#[cfg(test)]
mod stream_scenarios;
mod tool_calls;
mod usage;

use http::header::AUTHORIZATION;

use crate::json::fields::Fields;
use crate::providers::native::{Passage, Protocol};
use crate::providers::{
    CompletionRequest, CompletionResponse, Dialect, FailedCall, Failure, KeyHeader, Model, ProviderRequest,
    ProviderResponse, ResponseMeta, StreamDecoder,
};
use response::ParsedResponse;

/// The maximum number of choices in a response or a chunk, more than any contains; a chunk may list a choice
/// repeatedly.
const MAX_LISTED_CHOICES: usize = 1024;

/// The dialect, which is stateless.
#[derive(Debug)]
pub(in crate::providers) struct OpenAi;

impl Dialect for OpenAi {
    fn key_header(&self) -> KeyHeader {
        KeyHeader { name: AUTHORIZATION, prefix: "Bearer " }
    }

    fn request(&self, request: &CompletionRequest<'_>, model: &Model) -> Result<ProviderRequest, Failure> {
        let encode = if request.is_for_embeddings() { embeddings::encode } else { request::encode };
        Ok(encode(request, model))
    }

    fn expresses_everything(&self) -> bool {
        true
    }

    fn passage(&self, protocol: Protocol, model: &Model) -> Option<&'static dyn Passage> {
        (protocol == Protocol::Responses && model.responses != Some(false)).then_some(&responses::Responses)
    }

    fn response(
        &self,
        response: &ProviderResponse,
        request: &CompletionRequest<'_>,
        meta: &ResponseMeta,
    ) -> Result<CompletionResponse, FailedCall> {
        if request.is_for_embeddings() {
            return embeddings::decode(response, request, meta);
        }
        ParsedResponse::parse(response)?.completion(request, meta)
    }

    fn stream_decoder(&self, _request: &CompletionRequest<'_>) -> Box<dyn StreamDecoder> {
        Box::new(stream::Decoder::default())
    }
}

/// The fields of a response or a chunk that are the provider's additions. The usage of a stream is written at its end,
/// if it was asked for.
fn extra_fields<'f>(fields: &'f Fields<'_>) -> impl Iterator<Item = (&'f str, &'f str)> {
    fields
        .iter()
        .filter(|(name, _)| !matches!(*name, "id" | "object" | "created" | "model" | "choices" | "usage"))
        .map(|(name, value)| (name, value.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::Kind;
    use crate::providers::dialects::{chat_scenarios, scenarios};

    #[test]
    fn every_scenario_plays_as_expected() {
        assert!(scenarios::play(&OpenAi, Kind::OpenAi) >= 55);
    }

    #[test]
    fn every_chat_scenario_plays_as_expected() {
        assert!(chat_scenarios::play(&OpenAi, Kind::OpenAi) >= 30);
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(32))]

        #[test]
        fn the_boundaries_of_pieces_do_not_matter(cuts: Vec<proptest::sample::Index>) {
            for stream in chat_scenarios::streams(Kind::OpenAi) {
                let whole = chat_scenarios::decoded(&OpenAi, &[&stream]);
                let pieces = chat_scenarios::pieces(&stream, &cuts);
                proptest::prop_assert_eq!(chat_scenarios::decoded(&OpenAi, &pieces), whole);
            }
        }

        #[test]
        fn a_broken_stream_never_looks_like_a_complete_one(
            place: proptest::sample::Index,
            damage in "[\\x00-\\x7f]{0,8}",
        ) {
            for stream in chat_scenarios::streams(Kind::OpenAi) {
                chat_scenarios::survives(&OpenAi, &stream, place.index(stream.len()), damage.as_bytes());
            }
        }
    }
}
