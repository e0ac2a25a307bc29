//! Requests that create and change apps and keys. In a change, an omitted field stays as it is, and null removes what
//! the key or app has of its own.

use serde::Serialize;

use super::KeyLimits;
use crate::api::Service;

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

/// `POST /v1/apps/{id}/keys`.
#[derive(Clone, Debug, Serialize)]
pub struct CreateKey {
    /// What it is for.
    pub service: Service,
    /// A name to remember it by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Own limits; null fields follow the server's.
    pub limits: KeyLimits,
    /// Patterns of the models it may use; empty for all.
    pub models: Vec<String>,
    /// Networks (CIDR) it may be used from; empty for all.
    pub addresses: Vec<String>,
    /// Monthly budget in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
}

/// `PATCH /v1/apps/{id}/keys/{key_id}`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KeyPatch {
    /// A new name, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Option<String>>,
    /// Another expiry (RFC 3339), or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Option<String>>,
    /// Other limits.
    pub limits: LimitsPatch,
    /// Other patterns of models; empty for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    /// Other networks; empty for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<String>>,
    /// Another monthly budget in US dollars, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Option<f64>>,
}

/// Changes to a key's own limits.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct LimitsPatch {
    /// Requests in any 60 seconds; 0 is unlimited, null the server's limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<Option<u32>>,
    /// Requests in a UTC day; 0 is unlimited, null the server's limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_day: Option<Option<u32>>,
}

/// `POST /v1/apps/{id}/keys/{key_id}/rotate`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rotation {
    /// How long the old key keeps working.
    pub grace_seconds: u64,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn omitted_and_removed_fields_differ() {
        let nothing = serde_json::to_value(KeyPatch::default()).unwrap();
        assert_eq!(nothing, json!({ "limits": {} }));
        let patch = KeyPatch {
            name: Some(None),
            limits: LimitsPatch { per_minute: Some(None), per_day: Some(Some(0)) },
            budget_usd: Some(Some(2.5)),
            ..KeyPatch::default()
        };
        assert_eq!(
            serde_json::to_value(patch).unwrap(),
            json!({ "name": null, "limits": { "per_minute": null, "per_day": 0 }, "budget_usd": 2.5 })
        );
    }
}
