//! Anthropic's Messages API, version 2023-06-01: `POST /messages`, one answer at once or streamed.
//!
//! It differs from chat completions where it matters: the system text stands apart, speakers alternate, a token limit
//! must be given, and an answer is a list of blocks of which only the texts are the answer. A JSON schema goes into
//! `output_config.format`, which every model since 4.5 takes without a beta header. Older ones refuse it and are asked
//! without it from then on: there is nothing weaker in this format than the words of the prompt.
//!
//! What must hold: an answer that is incomplete or withheld never looks like a finished one, and no block but text is
//! shown as the answer.

mod complaint;
mod completion;
mod stream;
mod translate;
mod whole;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

use super::completion::Completions;
use super::turns::Turns;
use super::{Answer, Chat, Dialect, Failed, Incoming, KeyHeader, Model, Outgoing, Role, Structure};
use whole::Whole;

/// The limit for models of unknown size: the smallest maximum of all models since Claude 4 (that of Opus 4).
const DEFAULT_MAX_TOKENS: u64 = 32_000;

/// The largest temperature of this format; that of others goes to 2.
const MAX_TEMPERATURE: f64 = 1.0;

/// The dialect; it has no state.
#[derive(Debug)]
pub(super) struct Anthropic;

impl Dialect for Anthropic {
    fn key_header(&self) -> KeyHeader {
        KeyHeader { name: HeaderName::from_static("x-api-key"), prefix: "" }
    }

    fn request(&self, chat: &Chat, model: &Model) -> Outgoing {
        let Turns { system, turns } = Turns::of(chat);
        let limit = chat.max_tokens.map(u64::from).or(model.max_output_tokens).unwrap_or(DEFAULT_MAX_TOKENS);
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(model.name));
        body.insert("max_tokens".to_owned(), json!(limit));
        if let Some(system) = system {
            body.insert("system".to_owned(), json!(system));
        }
        body.insert("messages".to_owned(), turns.iter().map(message).collect());
        if let Some(temperature) = chat.temperature.filter(|_| model.temperature) {
            body.insert("temperature".to_owned(), json!(temperature.min(MAX_TEMPERATURE)));
        }
        if let Some(schema) = chat.schema.as_ref().filter(|_| model.structure == Structure::Schema) {
            let format = json!({"type": "json_schema", "schema": *schema.schema});
            body.insert("output_config".to_owned(), json!({"format": format}));
        }
        Outgoing {
            path: "/messages".into(),
            headers: vec![version()],
            body: Bytes::from(Value::Object(body).to_string()),
        }
    }

    fn answer(&self, incoming: &Incoming) -> Result<Answer, Failed> {
        Whole::of(incoming)?.answer()
    }

    fn listing(&self) -> Outgoing {
        // As many as a page holds; by default it is twenty.
        Outgoing { path: "/models?limit=1000".into(), headers: vec![version()], body: Bytes::new() }
    }

    fn completions(&self) -> &dyn Completions {
        self
    }
}

/// The version of the API that is spoken; every request must name one.
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
    use crate::providers::{Kind, chat_scenarios, scenarios};

    #[test]
    fn every_scenario_goes_as_written() {
        assert!(scenarios::play(&Anthropic, Kind::Anthropic) >= 30);
    }

    #[test]
    fn every_chat_goes_as_written() {
        assert!(chat_scenarios::play(&Anthropic, Kind::Anthropic) >= 20);
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(32))]

        #[test]
        fn however_a_stream_is_cut_into_pieces_it_says_the_same(cuts: Vec<proptest::sample::Index>) {
            for stream in chat_scenarios::streams(Kind::Anthropic) {
                let whole = chat_scenarios::told(&Anthropic, &[&stream]);
                let pieces = chat_scenarios::pieces(&stream, &cuts);
                proptest::prop_assert_eq!(chat_scenarios::told(&Anthropic, &pieces), whole);
            }
        }

        #[test]
        fn a_stream_that_breaks_is_not_told_as_a_whole_one(
            place: proptest::sample::Index,
            damage in "[\\x00-\\x7f]{0,8}",
        ) {
            for stream in chat_scenarios::streams(Kind::Anthropic) {
                chat_scenarios::survives(&Anthropic, &stream, place.index(stream.len()), damage.as_bytes());
            }
        }
    }
}
