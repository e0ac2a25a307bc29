//! The chat-completion format, as `OpenAI` defined it and many providers and local servers speak it.
//!
//! Providers agree on the format less than they say, so requests hold only what is asked for (some refuse a field
//! they do not know), and answers are read leniently where leniency cannot change their meaning. What must hold:
//! an answer that is incomplete or withheld never looks like a finished one.

mod calls;
mod complaint;
mod completion;
mod delta;
mod finish;
mod mould;
mod order;
mod parts;
mod stream;
#[cfg(test)]
mod stream_scenarios;
mod usage;
mod whole;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use serde::Serialize;
use serde_json::Value;

use super::completion::Completions;
use super::{
    Answer, Chat, Dialect, Failed, Fields, Incoming, KeyHeader, Message, Model, Outgoing, Role, Schema,
    Structure,
};
use whole::Whole;

/// More choices than the list in any answer, or in any chunk of one, holds; it may name one choice more than once.
const MOST_LISTED: usize = 1024;

/// The dialect; it has no state.
#[derive(Debug)]
pub(super) struct OpenAi;

impl Dialect for OpenAi {
    fn key_header(&self) -> KeyHeader {
        KeyHeader { name: AUTHORIZATION, prefix: "Bearer " }
    }

    fn request(&self, chat: &Chat, model: &Model) -> Outgoing {
        let (max_tokens, max_completion_tokens) =
            if model.max_completion_tokens { (None, chat.max_tokens) } else { (chat.max_tokens, None) };
        let body = Body {
            model: &model.name,
            messages: chat.messages.iter().map(turn).collect(),
            temperature: chat.temperature.filter(|_| model.temperature),
            max_tokens,
            max_completion_tokens,
            response_format: chat.schema.as_ref().and_then(|schema| response_format(schema, model.structure)),
        };
        let length: usize = chat.messages.iter().map(|message| message.content.len()).sum();
        let mut bytes = Vec::with_capacity(length + length / 8 + 512);
        // Strings, numbers and a schema that came from JSON always serialize, and memory takes every write.
        let _ = serde_json::to_writer(&mut bytes, &body);
        Outgoing { path: "/chat/completions".into(), headers: Vec::new(), body: Bytes::from(bytes) }
    }

    fn answer(&self, incoming: &Incoming) -> Result<Answer, Failed> {
        Whole::of(incoming)?.answer()
    }

    fn completions(&self) -> &dyn Completions {
        self
    }
}

/// The request's body. Serialized from what is there: a verification makes many, and each holds a long prompt.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Format<'a>>,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonSchema { json_schema: NamedSchema<'a> },
    JsonObject,
}

#[derive(Serialize)]
struct NamedSchema<'a> {
    name: &'a str,
    strict: bool,
    schema: &'a Value,
}

fn turn(message: &Message) -> Turn<'_> {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    Turn { role, content: &message.content }
}

fn response_format(schema: &Schema, structure: Structure) -> Option<Format<'_>> {
    match structure {
        Structure::Schema => Some(Format::JsonSchema {
            json_schema: NamedSchema { name: schema.name, strict: true, schema: &schema.schema },
        }),
        Structure::JsonMode => Some(Format::JsonObject),
        Structure::Plain => None,
    }
}

/// What a provider adds to an answer or a chunk of one. The usage of a stream comes at its end, if it is asked for.
fn further<'f>(fields: &'f Fields<'_>) -> impl Iterator<Item = (&'f str, &'f str)> {
    fields
        .iter()
        .filter(|(name, _)| !matches!(*name, "id" | "object" | "created" | "model" | "choices" | "usage"))
        .map(|(name, value)| (name, value.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::{Kind, chat_scenarios, scenarios};

    #[test]
    fn every_scenario_goes_as_written() {
        assert!(scenarios::play(&OpenAi, Kind::OpenAi) >= 55);
    }

    #[test]
    fn every_chat_goes_as_written() {
        assert!(chat_scenarios::play(&OpenAi, Kind::OpenAi) >= 30);
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(32))]

        #[test]
        fn however_a_stream_is_cut_into_pieces_it_says_the_same(cuts: Vec<proptest::sample::Index>) {
            for stream in chat_scenarios::streams(Kind::OpenAi) {
                let whole = chat_scenarios::told(&OpenAi, &[&stream]);
                let pieces = chat_scenarios::pieces(&stream, &cuts);
                proptest::prop_assert_eq!(chat_scenarios::told(&OpenAi, &pieces), whole);
            }
        }

        #[test]
        fn a_stream_that_breaks_is_not_told_as_a_whole_one(
            place: proptest::sample::Index,
            damage in "[\\x00-\\x7f]{0,8}",
        ) {
            for stream in chat_scenarios::streams(Kind::OpenAi) {
                chat_scenarios::survives(&OpenAi, &stream, place.index(stream.len()), damage.as_bytes());
            }
        }
    }
}
