//! Error bodies behind the doors of other protocols: what their clients show to people and match on. What these
//! protocols have no place for stands beside it, under the documented names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::guard::AnswerVerification;

/// An error body behind `/openai/v1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenAiErrorBody {
    /// What went wrong.
    pub error: OpenAiError,
    /// The request's identifier, as in `X-Request-Id`.
    pub request_id: String,
}

/// What went wrong, behind `/openai/v1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenAiError {
    /// What happened and, where there is something to do, what to do next. About a prompt that is too long it says
    /// "maximum context length".
    pub message: String,
    /// The error's type, such as `invalid_request_error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The offending parameter's JSON path, for validation errors.
    pub param: Option<String>,
    /// The error's kind for programs, in `snake_case`.
    pub code: String,
    /// The provider at fault, by its configured name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What the model wrote and its provider could not use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_generation: Option<String>,
    /// What was found about an answer that is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mk_verification: Option<Box<AnswerVerification>>,
}

/// An error body behind `/anthropic`, and the data of a stream's `error` event there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnthropicErrorBody {
    /// Always `error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What went wrong.
    pub error: AnthropicError,
    /// The request's identifier, as in `X-Request-Id`.
    pub request_id: String,
}

/// What went wrong, behind `/anthropic`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnthropicError {
    /// The error's type, such as `invalid_request_error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What happened and, where there is something to do, what to do next. About a prompt that is too long it says
    /// "prompt is too long".
    pub message: String,
    /// The error's kind for programs, in `snake_case`.
    pub code: String,
    /// The offending parameter's JSON path, for validation errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// The provider at fault, by its configured name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What the model wrote and its provider could not use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_generation: Option<String>,
    /// What was found about an answer that is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mk_verification: Option<Box<AnswerVerification>>,
}
