//! A conversation for a model, and its answer.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::Effort;
use crate::money::Tokens;

/// A conversation to be completed, independent of any provider's format.
#[derive(Clone, Debug)]
pub struct Chat {
    /// Never empty.
    pub messages: Vec<Message>,
    /// From 0 to 2; `None` for the provider's default. Dropped for models that refuse it.
    pub temperature: Option<f64>,
    /// The maximum number of tokens in the answer.
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
    /// The meaning of a finish reason of the chat-completion format; `None` for tool calls, as no [`Chat`] offers
    /// tools.
    pub(super) fn from_reason(reason: &str) -> Option<Self> {
        match reason {
            "stop" => Some(Self::Stop),
            "length" => Some(Self::Length),
            "content_filter" => Some(Self::ContentFilter),
            _ => None,
        }
    }
}
