//! The Gemini API, `v1beta`: `POST /models/MODEL:generateContent` for complete responses, or `:streamGenerateContent`.
//!
//! The model is part of the path, so its name is percent-encoded: it comes from the configuration or a caller, and must
//! not lead to another method. The system text is separate, the model's role is `model`, and all options go into
//! `generationConfig`. A JSON schema is passed as it is (`responseJsonSchema`, which models since 2.5 accept; the older
//! `responseSchema` requires another dialect of schemas), together with the MIME type that it requires.
//!
//! What must hold: an answer that is incomplete or withheld never looks like a finished one, and thoughts are not part
//! of its text.

mod citations;
mod embeddings;
mod error_body;
mod response;
mod stream;
mod thinking;
mod translate;

use bytes::Bytes;
use http::HeaderName;

use crate::providers::{
    CompletionRequest, CompletionResponse, Dialect, FailedCall, Failure, KeyHeader, Model, ProviderRequest,
    ProviderResponse, ResponseMeta, StreamDecoder,
};
use response::ParsedResponse;
pub(in crate::providers) use thinking::least_effort;

/// The dialect, which is stateless.
#[derive(Debug)]
pub(in crate::providers) struct Google;

impl Dialect for Google {
    fn key_header(&self) -> KeyHeader {
        KeyHeader { name: HeaderName::from_static("x-goog-api-key"), prefix: "" }
    }

    fn listing(&self) -> ProviderRequest {
        // The maximum page size; the default is fifty.
        ProviderRequest { path: "/models?pageSize=1000".into(), headers: Vec::new(), body: Bytes::new() }
    }

    fn request(&self, request: &CompletionRequest<'_>, model: &Model) -> Result<ProviderRequest, Failure> {
        if request.is_for_embeddings() {
            return embeddings::encode(request, model);
        }
        translate::translate(request, model)
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

    fn stream_decoder(&self, request: &CompletionRequest<'_>) -> Box<dyn StreamDecoder> {
        Box::new(stream::Decoder::new(request.max_tool_calls()))
    }
}

/// Percent-encodes a model's name as one path segment: everything but the unreserved characters of RFC 3986.
fn encoded(name: &str) -> String {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes()
        .map(|byte| if is_unreserved(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::providers::Kind;
    use crate::providers::dialects::{chat_scenarios, scenarios};

    #[test]
    fn every_scenario_plays_as_expected() {
        assert!(scenarios::play(&Google, Kind::Google) >= 30);
    }

    #[test]
    fn every_chat_scenario_plays_as_expected() {
        assert!(chat_scenarios::play(&Google, Kind::Google) >= 20);
    }

    #[test]
    fn whoever_wants_one_call_gets_the_first_one_and_all_of_the_usage() {
        let folder = |name: &str| Path::new(scenarios::FOLDER).join("google").join(name);
        let asked = |is_parallel: bool| json!({"messages": [], "parallel_tool_calls": is_parallel});
        let whole = |is_parallel| {
            chat_scenarios::answer_for(&asked(is_parallel), &Google, &folder("chat-answer-tools"))
        };
        let (one, all) = (whole(false), whole(true));
        let calls =
            |answer: &Value| answer["choices"][0]["message"]["tool_calls"].as_array().unwrap().clone();
        assert!(calls(&all).len() > 1, "{all}");
        assert_eq!(calls(&one), calls(&all)[..1]);
        assert_eq!(one["choices"][0]["finish_reason"], "tool_calls");
        assert_eq!(one["usage"], all["usage"]);

        let stream = std::fs::read(folder("chat-stream-parallel-tools").join("stream.txt")).unwrap();
        let streamed = |is_parallel| {
            let lines = chat_scenarios::decoded_for(&asked(is_parallel), &Google, &[&stream]);
            lines.as_array().unwrap().clone()
        };
        let is_later_call = |line: &Value| {
            line["choices"][0]["delta"]["tool_calls"][0]["index"].as_u64().is_some_and(|index| index > 0)
        };
        let mut expected = streamed(true);
        let before = expected.len();
        expected.retain(|line| !is_later_call(line));
        assert!(expected.len() < before);
        assert_eq!(streamed(false), expected);
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(32))]

        #[test]
        fn the_boundaries_of_pieces_do_not_matter(cuts: Vec<proptest::sample::Index>) {
            for stream in chat_scenarios::streams(Kind::Google) {
                let whole = chat_scenarios::decoded(&Google, &[&stream]);
                let pieces = chat_scenarios::pieces(&stream, &cuts);
                proptest::prop_assert_eq!(chat_scenarios::decoded(&Google, &pieces), whole);
            }
        }

        #[test]
        fn a_broken_stream_never_looks_like_a_complete_one(
            place: proptest::sample::Index,
            damage in "[\\x00-\\x7f]{0,8}",
        ) {
            for stream in chat_scenarios::streams(Kind::Google) {
                chat_scenarios::survives(&Google, &stream, place.index(stream.len()), damage.as_bytes());
            }
        }
    }
}
