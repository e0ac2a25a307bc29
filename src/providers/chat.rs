//! A conversation of our own with a model, and its answer.
//!
//! It is kept as what it is made of, most of it borrowed, as thousands of calls may wait; it becomes a chat completion
//! when it is sent.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::catalog::estimate;
use super::{CompletionRequest, CompletionResponse, Effort, FailedCall, Failure, Kind, Model, Structure};
use crate::json::fields::Fields;
use crate::json::reader::Json;
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
#[derive(Clone, Debug, Serialize)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The text; constant instructions are borrowed.
    pub content: Cow<'static, str>,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The operator.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
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

/// The body of a chat completion, without the model.
#[derive(Serialize)]
struct Body<'a> {
    messages: &'a [Message],
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Format<'a>>,
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

impl Chat {
    /// The body of the chat completion that asks `model` for this, without what it is known to refuse.
    pub(super) fn body(&self, model: &Model) -> String {
        let effort = model.effort(self.effort);
        // Claude takes no temperature if it thinks.
        let is_free = model.kind != Kind::Anthropic || effort.is_none();
        let body = Body {
            messages: &self.messages,
            temperature: self.temperature.filter(|_| model.temperature && is_free),
            max_tokens: self.max_tokens.filter(|_| model.answer_limit),
            reasoning_effort: effort.map(Effort::as_str),
            response_format: self.schema.as_ref().and_then(|schema| schema.format(model)),
        };
        let length: usize = self.messages.iter().map(|message| message.content.len()).sum();
        let mut bytes = Vec::with_capacity(length + length / 8 + 512);
        // Strings, numbers and a schema that was JSON always serialize, and writes to memory do not fail.
        let _ = serde_json::to_writer(&mut bytes, &body);
        String::from_utf8(bytes).unwrap_or_default()
    }

    /// The request for a chat completion with these fields.
    pub(super) fn request<'a>(&self, fields: Fields<'a>) -> CompletionRequest<'a> {
        let prompt_tokens = estimate::prompt_tokens(self);
        CompletionRequest {
            fields,
            stream: false,
            include_usage: false,
            choices: 1,
            prompt_tokens,
            native: None,
        }
    }
}

impl Schema {
    /// The strictest format that `model` takes.
    fn format(&self, model: &Model) -> Option<Format<'_>> {
        match model.structure {
            Structure::Schema => Some(Format::JsonSchema {
                json_schema: NamedSchema { name: self.name, strict: true, schema: self.json() },
            }),
            // Anthropic has no such mode; the prompt asks for JSON anyway.
            Structure::JsonMode if model.kind != Kind::Anthropic => Some(Format::JsonObject),
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
