//! The one shape of every error body, and the `error` frame of a verification stream.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::guard::AnswerVerification;

/// An error body. `error` and `message` are the documented fields; the others are additions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// The error's type, such as `Unauthorized`.
    pub error: String,
    /// What happened and, where there is something to do, what to do next.
    pub message: String,
    /// The error's kind for programs, in `snake_case`.
    #[serde(default)]
    pub code: String,
    /// The request's identifier, as in `X-Request-Id`.
    #[serde(default)]
    pub request_id: String,
    /// The offending parameter's JSON path, for validation errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// The provider at fault, by its configured name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What the model wrote and its provider could not use, such as a call of a tool that does not fit its schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_generation: Option<String>,
    /// What was found about an answer that is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mk_verification: Option<Box<AnswerVerification>>,
}

/// The data of a verification stream's `error` frame, its terminal frame on failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorEvent {
    /// The error's type, such as `Bad Gateway`.
    pub error: String,
    /// What happened and, where there is something to do, what to do next.
    pub message: String,
    /// The error's kind for programs, in `snake_case`.
    pub code: String,
    /// The verification's identifier.
    #[serde(rename = "requestId")]
    pub request_id: String,
}
