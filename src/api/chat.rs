//! Chat completions, as far as this program's own client sends and reads them. The server passes requests on without
//! decoding them, so these types leave out what only other clients use.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A request.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ChatRequest {
    /// `<provider>/<model_name>`.
    pub model: String,
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// 0 to 2; `None` leaves it to the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The most tokens of the completion; `None` leaves it to the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Whether the completion is streamed.
    pub stream: bool,
    /// Only with `stream`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_options: Option<StreamOptions>,
}

/// Options of a stream.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StreamOptions {
    /// Whether the last chunk reports token usage.
    pub include_usage: bool,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChatMessage {
    /// `system`, `user` or `assistant`.
    pub role: &'static str,
    /// Its text.
    pub content: String,
}

impl ChatMessage {
    /// A message.
    pub fn new(role: &'static str, content: impl Into<String>) -> Self {
        Self { role, content: content.into() }
    }
}

/// The token usage of a completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatUsage {
    /// Tokens of the prompt.
    #[serde(default)]
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    #[serde(default)]
    pub completion_tokens: u64,
    /// Both.
    #[serde(default)]
    pub total_tokens: u64,
    /// Whether the server estimated the numbers, as the provider did not report them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// A completion, or a chunk of a streamed one, which has `delta` in place of `message`.
#[derive(Debug, Deserialize)]
pub struct ChatCompletion {
    /// The model that answers.
    #[serde(default)]
    pub model: String,
    /// `sandbox` for simulated answers.
    #[serde(default)]
    pub system_fingerprint: Option<String>,
    /// The choices, of which one was requested; none in a chunk that only reports usage.
    #[serde(default)]
    pub choices: Vec<ChatChoice>,
    /// The token usage.
    #[serde(default)]
    pub usage: Option<ChatUsage>,
    /// Why the completion is incomplete.
    #[serde(default)]
    pub error: Option<ChatError>,
    /// What was found about the answer ([`super::guard::AnswerVerification`]), if it was verified.
    #[serde(default)]
    pub mk_verification: Option<Value>,
}

/// One choice, or a piece of one.
#[derive(Debug, Deserialize)]
pub struct ChatChoice {
    /// Its index among the choices.
    #[serde(default)]
    pub index: u64,
    /// The message or delta.
    #[serde(default, alias = "delta")]
    pub message: Option<ChatContent>,
    /// Why the choice has ended; `None` while it has not.
    #[serde(default)]
    pub finish_reason: Option<String>,
}

/// The content of a message or delta.
#[derive(Debug, Default, Deserialize)]
pub struct ChatContent {
    /// The text.
    #[serde(default)]
    pub content: Option<String>,
    /// The text of a model that declines.
    #[serde(default)]
    pub refusal: Option<String>,
}

/// Why a stream broke off, in its last chunk.
#[derive(Debug, Default, Deserialize)]
pub struct ChatError {
    /// What happened.
    #[serde(default)]
    pub message: String,
    /// The error's type, such as `Bad Gateway`.
    #[serde(default, rename = "type")]
    pub kind: String,
    /// The error's kind for programs.
    #[serde(default)]
    pub code: String,
}
