//! The Gemini API, `v1beta`: `POST /models/MODEL:generateContent`, one answer at once, or
//! `:streamGenerateContent`.
//!
//! The model stands in the path, so its name is encoded: it comes from configuration or a caller, and must not lead to
//! another method. The system text stands apart, the model speaks as `model`, and everything about the answer goes
//! into `generationConfig`. A JSON schema goes in as it is (`responseJsonSchema`, which models since 2.5 take; the
//! older `responseSchema` wants another dialect of schemas), beside the MIME type that it requires.
//!
//! What must hold: an answer that is incomplete or withheld never looks like a finished one, and thoughts are no part
//! of it.

mod complaint;
mod completion;
mod stream;
mod thinking;
mod translate;
mod whole;

use bytes::Bytes;
use http::HeaderName;
use serde_json::{Map, Value, json};

use super::completion::Completions;
use super::turns::Turns;
use super::{Answer, Chat, Dialect, Failed, Incoming, KeyHeader, Model, Outgoing, Role, Structure};
use whole::Whole;

/// The dialect; it has no state.
#[derive(Debug)]
pub(super) struct Google;

impl Dialect for Google {
    fn key_header(&self) -> KeyHeader {
        KeyHeader { name: HeaderName::from_static("x-goog-api-key"), prefix: "" }
    }

    fn listing(&self) -> Outgoing {
        // As many as a page holds; by default it is fifty.
        Outgoing { path: "/models?pageSize=1000".into(), headers: Vec::new(), body: Bytes::new() }
    }

    fn request(&self, chat: &Chat, model: &Model) -> Outgoing {
        let Turns { system, turns } = Turns::of(chat);
        let mut body = Map::new();
        if let Some(system) = system {
            body.insert("systemInstruction".to_owned(), json!({"parts": [{"text": system}]}));
        }
        body.insert("contents".to_owned(), turns.iter().map(content).collect());
        let generation = generation_config(chat, model);
        if !generation.is_empty() {
            body.insert("generationConfig".to_owned(), Value::Object(generation));
        }
        Outgoing {
            path: format!("/models/{}:generateContent", encoded(&model.name)).into(),
            headers: Vec::new(),
            body: Bytes::from(Value::Object(body).to_string()),
        }
    }

    fn answer(&self, incoming: &Incoming) -> Result<Answer, Failed> {
        Whole::of(incoming)?.answer()
    }

    fn completions(&self) -> &dyn Completions {
        self
    }
}

fn generation_config(chat: &Chat, model: &Model) -> Map<String, Value> {
    let mut config = Map::new();
    if let Some(temperature) = chat.temperature.filter(|_| model.temperature) {
        config.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(limit) = chat.max_tokens {
        config.insert("maxOutputTokens".to_owned(), json!(limit));
    }
    let Some(schema) = chat.schema.as_ref().filter(|_| model.structure != Structure::Plain) else {
        return config;
    };
    config.insert("responseMimeType".to_owned(), json!("application/json"));
    if model.structure == Structure::Schema {
        config.insert("responseJsonSchema".to_owned(), Value::clone(&schema.schema));
    }
    config
}

fn content((role, text): &(Role, String)) -> Value {
    let role = if *role == Role::Assistant { "model" } else { "user" };
    json!({"role": role, "parts": [{"text": text}]})
}

/// A model's name as one segment of a path: everything but the unreserved characters of RFC 3986 is encoded.
fn encoded(name: &str) -> String {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes()
        .map(|byte| if is_unreserved(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::{Kind, chat_scenarios, scenarios};

    #[test]
    fn every_scenario_goes_as_written() {
        assert!(scenarios::play(&Google, Kind::Google) >= 30);
    }

    #[test]
    fn every_chat_goes_as_written() {
        assert!(chat_scenarios::play(&Google, Kind::Google) >= 20);
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(32))]

        #[test]
        fn however_a_stream_is_cut_into_pieces_it_says_the_same(cuts: Vec<proptest::sample::Index>) {
            for stream in chat_scenarios::streams(Kind::Google) {
                let whole = chat_scenarios::told(&Google, &[&stream]);
                let pieces = chat_scenarios::pieces(&stream, &cuts);
                proptest::prop_assert_eq!(chat_scenarios::told(&Google, &pieces), whole);
            }
        }

        #[test]
        fn a_stream_that_breaks_is_not_told_as_a_whole_one(
            place: proptest::sample::Index,
            damage in "[\\x00-\\x7f]{0,8}",
        ) {
            for stream in chat_scenarios::streams(Kind::Google) {
                chat_scenarios::survives(&Google, &stream, place.index(stream.len()), damage.as_bytes());
            }
        }
    }
}
