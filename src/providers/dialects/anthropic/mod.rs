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
mod completion;
mod error_body;
mod response;
mod schema;
mod stream;
mod translate;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

use super::alternating_turns::AlternatingTurns;
use crate::providers::completion::CompletionDialect;
use crate::providers::{
    Answer, Chat, Dialect, Effort, FailedCall, KeyHeader, Model, ProviderRequest, ProviderResponse, Role,
    Structure,
};
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

    fn request(&self, chat: &Chat, model: &Model) -> ProviderRequest {
        let AlternatingTurns { system, turns } = AlternatingTurns::from_chat(chat);
        let limit = chat.max_tokens.map(u64::from).or(model.max_output_tokens).unwrap_or(DEFAULT_MAX_TOKENS);
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(model.name));
        body.insert("max_tokens".to_owned(), json!(limit));
        if let Some(system) = system {
            body.insert("system".to_owned(), json!(system));
        }
        body.insert("messages".to_owned(), turns.iter().map(message).collect());
        // Without a word about it, it does not think. One that thinks takes no temperature.
        let effort = model.effort(chat.effort).filter(|effort| *effort > Effort::None);
        if let Some(temperature) = chat.temperature.filter(|_| model.temperature && effort.is_none()) {
            body.insert("temperature".to_owned(), json!(temperature.min(MAX_TEMPERATURE)));
        }
        let mut config = Map::new();
        if let Some(schema) = chat.schema.as_ref().filter(|_| model.structure == Structure::Schema) {
            config.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema.value()}));
        }
        if let Some(effort) = effort {
            body.insert("thinking".to_owned(), json!({"type": "adaptive"}));
            config.insert("effort".to_owned(), json!(effort.max(Effort::Low).as_str()));
        }
        if !config.is_empty() {
            body.insert("output_config".to_owned(), Value::Object(config));
        }
        ProviderRequest {
            path: "/messages".into(),
            headers: vec![version()],
            body: Bytes::from(Value::Object(body).to_string()),
        }
    }

    fn answer(&self, response: &ProviderResponse) -> Result<Answer, FailedCall> {
        ParsedResponse::parse(response)?.answer()
    }

    fn listing(&self) -> ProviderRequest {
        // The maximum page size; the default is twenty.
        ProviderRequest { path: "/models?limit=1000".into(), headers: vec![version()], body: Bytes::new() }
    }

    fn completions(&self) -> &dyn CompletionDialect {
        self
    }
}

/// The API version, which every request must specify.
fn version() -> (HeaderName, HeaderValue) {
    (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"))
}

fn message((role, text): &(Role, String)) -> Value {
    let role = if *role == Role::Assistant { "assistant" } else { "user" };
    json!({"role": role, "content": text})
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
