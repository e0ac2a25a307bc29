//! The list of models, in the format of the chat completion API, with what is known about each after the API's own
//! fields.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer of `GET /inference/v1/models`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ModelList {
    /// Always `list`.
    #[serde(default)]
    pub object: String,
    /// The models, sorted by identifier.
    pub data: Vec<Model>,
}

/// What a model does, as far as its name tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    /// It answers chat completions.
    #[default]
    Chat,
    /// It turns texts into vectors.
    Embeddings,
    /// Something else, such as speech or pictures.
    #[serde(other)]
    Other,
}

/// A model that can be asked for. What is unknown is absent, never zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Model {
    /// `<provider>/<model_name>`, or a name of the operator's own, which has no slash.
    pub id: String,
    /// Always `model`.
    #[serde(default)]
    pub object: String,
    /// Unix seconds. Nobody here knows when a model was made: the time at which it is listed.
    #[serde(default)]
    pub created: i64,
    /// The configured name of its provider; `pool` for a name of the operator's own.
    #[serde(default)]
    pub owned_by: String,
    /// What it does.
    #[serde(default)]
    pub kind: ModelKind,
    /// The models behind a name of the operator's own. What is said about it holds for each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// The most tokens of a prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// The most tokens of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// US dollars for a million tokens of prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_usd_per_mtok: Option<f64>,
    /// US dollars for a million tokens of completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_usd_per_mtok: Option<f64>,
    /// US dollars for a million tokens of prompt that the provider reads from its cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_usd_per_mtok: Option<f64>,
    /// US dollars for a million tokens of prompt that the provider writes to its cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_usd_per_mtok: Option<f64>,
    /// The date (`2026-10-23`) from which its provider no longer answers for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecation_date: Option<String>,
}
