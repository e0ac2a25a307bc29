//! What the dashboard can try out on the account of an app.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::models::Model;
use crate::api::verify::Domain;

/// `GET /v1/apps/{id}/try`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TryOffer {
    /// The domains of a verification.
    pub domains: Vec<DomainOffer>,
    /// The models to chat with, sorted by identifier: without those that are known to do something else, such as guards
    /// and embeddings.
    pub models: Vec<ModelOffer>,
    /// The default model: one that the operator chose for verifications, if there is one; null without models.
    pub default_model: Option<String>,
}

/// A model to chat with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelOffer {
    /// What is known about it.
    #[serde(flatten)]
    pub model: Model,
    /// Whether its answers are simulated.
    pub is_simulated: bool,
}

/// The panel of a domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DomainOffer {
    /// The domain.
    pub domain: Domain,
    /// How many models its panel has.
    pub panel: u32,
    /// Whether simulated models take part.
    pub is_simulated: bool,
}
