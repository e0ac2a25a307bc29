//! The chat-completion format, as `OpenAI` defined it and many providers and local servers speak it.
//!
//! Providers agree on the format less than they say, so requests hold only what is asked for (some refuse a field
//! they do not know), and answers are read leniently where leniency cannot change their meaning. What must hold:
//! an answer that is incomplete or withheld never looks like a finished one.

mod complaint;
mod reply;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use serde_json::{Map, Value, json};

use super::{Answer, Chat, Dialect, Failed, Incoming, KeyHeader, Model, Outgoing, Role, Schema, Structure};

/// The dialect; it has no state.
#[derive(Debug)]
pub(super) struct OpenAi;

impl Dialect for OpenAi {
    fn key_header(&self) -> KeyHeader {
        KeyHeader { name: AUTHORIZATION, prefix: "Bearer " }
    }

    fn request(&self, chat: &Chat, model: &Model) -> Outgoing {
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(model.name));
        body.insert("messages".to_owned(), messages(chat));
        if let Some(temperature) = chat.temperature.filter(|_| model.temperature) {
            body.insert("temperature".to_owned(), json!(temperature));
        }
        if let Some(limit) = chat.max_tokens {
            let name = if model.max_completion_tokens { "max_completion_tokens" } else { "max_tokens" };
            body.insert(name.to_owned(), json!(limit));
        }
        if let Some(format) = chat.schema.as_ref().and_then(|schema| response_format(schema, model.structure))
        {
            body.insert("response_format".to_owned(), format);
        }
        Outgoing {
            path: "/chat/completions".to_owned(),
            headers: Vec::new(),
            body: Bytes::from(Value::Object(body).to_string()),
        }
    }

    fn answer(&self, incoming: &Incoming) -> Result<Answer, Failed> {
        match incoming.status {
            200..=299 => reply::read(incoming),
            // The transport follows no redirect: the key would go to an address nobody configured.
            100..=399 => Err(super::Failure::Malformed.into()),
            _ => Err(complaint::read(incoming).into()),
        }
    }
}

fn messages(chat: &Chat) -> Value {
    let role = |role| match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    chat.messages
        .iter()
        .map(|message| json!({"role": role(message.role), "content": message.content}))
        .collect()
}

fn response_format(schema: &Schema, structure: Structure) -> Option<Value> {
    match structure {
        Structure::Schema => Some(json!({
            "type": "json_schema",
            "json_schema": {"name": schema.name, "strict": true, "schema": schema.schema},
        })),
        Structure::JsonMode => Some(json!({"type": "json_object"})),
        Structure::Plain => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::{Kind, scenarios};

    #[test]
    fn every_scenario_goes_as_written() {
        assert!(scenarios::play(&OpenAi, Kind::OpenAi) >= 50);
    }
}
