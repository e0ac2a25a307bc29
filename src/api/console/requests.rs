//! Requests that create and change apps, and rotate keys. In a change, an omitted field stays as it is, and null removes
//! what the app has of its own.

use serde::Serialize;

/// `POST /v1/apps`.
#[derive(Clone, Debug, Serialize)]
pub struct CreateApp {
    /// The name, which no other app has.
    pub name: String,
    /// Monthly budget in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
}

/// `PATCH /v1/apps/{id}`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AppPatch {
    /// A new name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Another monthly budget in US dollars, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Option<f64>>,
}

/// `POST /v1/apps/{id}/keys/{key_id}/rotate`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rotation {
    /// How long the old key keeps working.
    pub grace_seconds: u64,
}
