//! The chat-completion format, defined by `OpenAI` and implemented by many providers and local servers.
//!
//! Implementations differ more than they claim, so requests contain only what is needed (some providers refuse unknown
//! fields), and responses are read leniently where that cannot change their meaning. What must hold: an answer that is
//! incomplete or withheld never looks like a finished one.

mod chunk_template;
mod completion;
mod delta;
mod error_body;
mod finish_reason;
mod order;
mod parts;
mod response;
mod stream;
#[cfg(test)]
mod stream_scenarios;
mod tool_calls;
mod usage;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::json::fields::Fields;
use crate::providers::completion::CompletionDialect;
use crate::providers::{
    Answer, Chat, Dialect, Effort, FailedCall, KeyHeader, Message, Model, ProviderRequest, ProviderResponse,
    Role, Schema, Structure,
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

    fn request(&self, chat: &Chat, model: &Model) -> ProviderRequest {
        let (max_tokens, max_completion_tokens) =
            if model.max_completion_tokens { (None, chat.max_tokens) } else { (chat.max_tokens, None) };
        let body = Body {
            model: &model.name,
            messages: chat.messages.iter().map(request_message).collect(),
            temperature: chat.temperature.filter(|_| model.temperature),
            max_tokens,
            max_completion_tokens,
            reasoning_effort: model.effort(chat.effort).map(Effort::as_str),
            response_format: chat.schema.as_ref().and_then(|schema| response_format(schema, model.structure)),
        };
        let length: usize = chat.messages.iter().map(|message| message.content.len()).sum();
        let mut bytes = Vec::with_capacity(length + length / 8 + 512);
        // Strings, numbers and a schema that was JSON always serialize, and writes to memory do not fail.
        let _ = serde_json::to_writer(&mut bytes, &body);
        ProviderRequest { path: "/chat/completions".into(), headers: Vec::new(), body: Bytes::from(bytes) }
    }

    fn answer(&self, response: &ProviderResponse) -> Result<Answer, FailedCall> {
        ParsedResponse::parse(response)?.answer()
    }

    fn completions(&self) -> &dyn CompletionDialect {
        self
    }
}

/// The body of a request. It borrows its content, as a verification makes many requests with long prompts.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<RequestMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Format<'a>>,
}

#[derive(Serialize)]
struct RequestMessage<'a> {
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
    schema: &'a RawValue,
}

fn request_message(message: &Message) -> RequestMessage<'_> {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    RequestMessage { role, content: &message.content }
}

fn response_format(schema: &Schema, structure: Structure) -> Option<Format<'_>> {
    match structure {
        Structure::Schema => Some(Format::JsonSchema {
            json_schema: NamedSchema { name: schema.name, strict: true, schema: schema.json() },
        }),
        Structure::JsonMode => Some(Format::JsonObject),
        Structure::Plain => None,
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
