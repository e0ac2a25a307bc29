//! A conversation of our own with a model, and its answer.
//!
//! It becomes a chat completion when it is sent ([`Prompt`](super::Prompt)).

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{CompletionResponse, Effort, FailedCall, Failure, Kind, Model, Structure};
use crate::json::fields::Fields;
use crate::json::reader::Json;
use crate::json::write::write_string;
use crate::money::Tokens;

/// A conversation to be completed, independent of any provider's format.
#[derive(Clone, Debug)]
pub struct Chat {
    /// Never empty.
    pub messages: Vec<Message>,
    /// From 0 to 1; `None` for the provider's default. Dropped for models that refuse it.
    pub temperature: Option<f64>,
    /// The maximum number of tokens in the answer. Dropped for models that refuse it.
    pub max_tokens: Option<u32>,
    /// The JSON schema that the answer must conform to.
    pub schema: Option<Schema>,
    /// How long a model that reasons may think; others are not told.
    pub effort: Effort,
}

/// One message of a conversation.
#[derive(Clone, Debug)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The text; constant instructions are borrowed.
    pub content: Cow<'static, str>,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The operator.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// A JSON schema that an answer must conform to.
#[derive(Clone, Debug)]
pub struct Schema {
    /// Its name, `[a-z_]+`; tells the sandbox which task it is given.
    pub name: &'static str,
    /// Shared, as all calls of a kind use the same one.
    definition: Arc<Definition>,
}

#[derive(Debug)]
struct Definition {
    value: Value,
    /// As most calls send it.
    json: Box<RawValue>,
}

impl Schema {
    /// A schema, whose objects are closed and require all properties, so that strict modes accept it.
    pub fn new(name: &'static str, value: Value) -> Self {
        // A value can always be written.
        let json = to_raw_value(&value).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self { name, definition: Arc::new(Definition { value, json }) }
    }

    /// The schema itself.
    pub fn value(&self) -> &Value {
        &self.definition.value
    }

    /// The same as JSON.
    pub fn json(&self) -> &RawValue {
        &self.definition.json
    }
}

impl Chat {
    /// The fields of the chat completion that asks `model` for this, as JSON, without what it is known to refuse.
    pub(super) fn fields(&self, model: &Model) -> Vec<(&'static str, String)> {
        let effort = model.effort(self.effort);
        // Claude takes no temperature if it thinks.
        let is_free = model.kind != Kind::Anthropic || effort.is_none();
        let temperature = self.temperature.filter(|_| model.temperature && is_free);
        let limit = self.max_tokens.filter(|_| model.answer_limit);
        let format = self.schema.as_ref().and_then(|schema| schema.format(model));
        let fields = [
            ("messages", Some(self.messages())),
            ("temperature", temperature.map(|temperature| Value::from(temperature).to_string())),
            ("max_tokens", limit.map(|limit| limit.to_string())),
            ("reasoning_effort", effort.map(|effort| ["\"", effort.as_str(), "\""].concat())),
            ("response_format", format),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    fn messages(&self) -> String {
        let length: usize = self.messages.iter().map(|message| message.content.len()).sum();
        let mut out = Vec::with_capacity(length + length / 8 + 128);
        out.push(b'[');
        for (at, message) in self.messages.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            for part in [comma, r#"{"role":""#, message.role.as_str(), r#"","content":"#] {
                out.extend_from_slice(part.as_bytes());
            }
            write_string(&mut out, &message.content);
            out.push(b'}');
        }
        out.push(b']');
        String::from_utf8(out).unwrap_or_default()
    }
}

impl Schema {
    /// The strictest format that `model` takes, as JSON.
    fn format(&self, model: &Model) -> Option<String> {
        match model.structure {
            Structure::Schema => {
                let (name, schema) = (self.name, self.json().get());
                Some(format!(
                    r#"{{"type":"json_schema","json_schema":{{"name":"{name}","strict":true,"schema":{schema}}}}}"#
                ))
            }
            // Anthropic has no such mode; the prompt asks for JSON anyway.
            Structure::JsonMode if model.kind != Kind::Anthropic => {
                Some(r#"{"type":"json_object"}"#.to_owned())
            }
            _ => None,
        }
    }
}

/// A model's complete answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// Why it ended.
    pub finish: Finish,
    /// The token usage, if the provider reports it. Boxed, as thousands of votes wait with room for an answer.
    pub usage: Option<Box<Tokens>>,
    /// The model that the provider says has answered, if it says so.
    pub model: Option<Box<str>>,
}

impl Answer {
    /// The text of the first choice of a completion; a [`Chat`] asks for one.
    ///
    /// # Errors
    /// If the model declined or wrote no text.
    pub(super) fn of(completed: &CompletionResponse) -> Result<Self, FailedCall> {
        let usage = completed.usage.tokens;
        let failed =
            |failure| FailedCall { failure, usage: (!completed.usage.is_estimated).then_some(usage) };
        let body = std::str::from_utf8(&completed.body).ok().and_then(|text| Fields::parse(text).ok());
        let body = body.ok_or_else(|| failed(Failure::Malformed))?;
        let choice = body.get("choices").and_then(|choices| choices.items()?.into_iter().next());
        let [message, reason] =
            choice.and_then(|choice| choice.fields(["message", "finish_reason"])).unwrap_or_default();
        let [content, refusal] =
            message.and_then(|message| message.fields(["content", "refusal"])).unwrap_or_default();
        let text = |value: Option<Json<'_>>| value.and_then(Json::string).unwrap_or_default().into_owned();
        if !text(refusal).is_empty() {
            return Err(failed(Failure::Refused));
        }
        let (finish, text) = (Finish::from_reason(&text(reason)), text(content));
        // A content filter, or a token limit used up by reasoning, leaves no text; the finish reason says so.
        if text.is_empty() && finish == Finish::Stop {
            return Err(failed(Failure::NoAnswer));
        }
        let usage = (!completed.usage.is_estimated).then(|| Box::new(usage));
        let model = body.get("model").and_then(Json::string);
        Ok(Self { text, finish, usage, model: model.and_then(|name| Self::reported_model(&name)) })
    }

    /// The name of a model as a provider reports it, at most [`MAX_MODEL_NAME_BYTES`] of it.
    pub(super) fn reported_model(name: &str) -> Option<Box<str>> {
        let name = &name[..name.floor_char_boundary(MAX_MODEL_NAME_BYTES)];
        (!name.is_empty()).then(|| name.into())
    }
}

/// The longest reported name of a model, in bytes; longer ones are cut.
const MAX_MODEL_NAME_BYTES: usize = 200;

/// Why an answer ended, the most severe last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finish {
    /// The model was done.
    Stop,
    /// It hit a token limit: the text is truncated.
    Length,
    /// The provider withheld the answer or part of it.
    ContentFilter,
}

impl Finish {
    /// The meaning of a finish reason of the chat-completion format. The one for tool calls means nothing more than a
    /// stop, as no [`Chat`] offers tools.
    fn from_reason(reason: &str) -> Self {
        match reason {
            "length" => Self::Length,
            "content_filter" => Self::ContentFilter,
            _ => Self::Stop,
        }
    }
}
