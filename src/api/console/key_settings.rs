//! What may be set of a key, from the wire to the row. A further setting is a field of each of the types here and a line
//! of each of the functions.

use serde::{Serialize, Serializer};

use super::OwnEndUserLimits;
use crate::api::Service;
use crate::api::cache_time::CacheTime;
use crate::api::guard::Guard;
use crate::clock::Time;
use crate::money::NanoUsd;

/// The settings of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KeySettings {
    /// A name to remember it by.
    pub name: Option<String>,
    /// It is refused from then on.
    pub expires_at: Option<Time>,
    /// Its own limit for any 60 seconds: 0 is unlimited, `None` means the server's.
    pub per_minute: Option<u32>,
    /// Its own limit for a UTC day: 0 is unlimited, `None` means the server's.
    pub per_day: Option<u32>,
    /// Patterns of the models it may use: `provider/model`, `provider/*`, a pool's name or `*`; empty for all.
    pub models: Vec<String>,
    /// Networks (CIDR, or single addresses) it may be used from; empty for all.
    pub addresses: Vec<String>,
    /// What it may spend in a calendar month (UTC).
    #[serde(rename = "budget_usd", serialize_with = "dollars")]
    pub budget: Option<NanoUsd>,
    /// For how long its answers are kept, for requests that do not say; `None` for not at all.
    pub cache: Option<CacheTime>,
    /// What is done with the verdicts on its answers; `None` if they are verified for other reasons only.
    pub verify: Option<Guard>,
    /// Its own limits for each end user; `None` for the server's.
    pub end_users: Option<OwnEndUserLimits>,
}

/// Changes to the settings of a key, and the body of `PATCH /v1/apps/{id}/keys/{key_id}`: a field that is left out stays
/// as it is, and null removes what the key has of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KeyChange {
    /// A new name, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Option<String>>,
    /// A new expiry, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Option<Time>>,
    /// New limits.
    pub limits: LimitsChange,
    /// New patterns of models; empty for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    /// New networks; empty for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<String>>,
    /// A new budget, or none.
    #[serde(rename = "budget_usd", skip_serializing_if = "Option::is_none", serialize_with = "new_dollars")]
    pub budget: Option<Option<NanoUsd>>,
    /// A new time for which answers are kept, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Option<CacheTime>>,
    /// Something else that is done with the verdicts on answers, or nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<Option<Guard>>,
    /// New limits for each end user, or the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_users: Option<Option<OwnEndUserLimits>>,
}

/// Changes to a key's own limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LimitsChange {
    /// A new limit for any 60 seconds, or the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<Option<u32>>,
    /// A new limit for a UTC day, or the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_day: Option<Option<u32>>,
}

/// The body of `POST /v1/apps/{id}/keys`.
#[derive(Clone, Debug, Serialize)]
pub struct CreateKey {
    /// What it is for.
    pub service: Service,
    /// What is set from the beginning.
    #[serde(flatten)]
    pub settings: KeyChange,
}

impl KeyChange {
    /// `settings` with these changes.
    pub fn applied_to(self, settings: &KeySettings) -> KeySettings {
        let old = settings.clone();
        KeySettings {
            name: self.name.unwrap_or(old.name),
            expires_at: self.expires_at.unwrap_or(old.expires_at),
            per_minute: self.limits.per_minute.unwrap_or(old.per_minute),
            per_day: self.limits.per_day.unwrap_or(old.per_day),
            models: self.models.unwrap_or(old.models),
            addresses: self.addresses.unwrap_or(old.addresses),
            budget: self.budget.unwrap_or(old.budget),
            cache: self.cache.unwrap_or(old.cache),
            verify: self.verify.unwrap_or(old.verify),
            end_users: self.end_users.unwrap_or(old.end_users),
        }
    }
}

impl From<KeySettings> for KeyChange {
    /// The change that makes of any settings these.
    fn from(settings: KeySettings) -> Self {
        Self {
            name: Some(settings.name),
            expires_at: Some(settings.expires_at),
            limits: LimitsChange { per_minute: Some(settings.per_minute), per_day: Some(settings.per_day) },
            models: Some(settings.models),
            addresses: Some(settings.addresses),
            budget: Some(settings.budget),
            cache: Some(settings.cache),
            verify: Some(settings.verify),
            end_users: Some(settings.end_users),
        }
    }
}

#[allow(clippy::ref_option, reason = "serde passes fields by reference")]
fn dollars<S: Serializer>(budget: &Option<NanoUsd>, serializer: S) -> Result<S::Ok, S::Error> {
    budget.map(NanoUsd::usd).serialize(serializer)
}

#[allow(clippy::ref_option, clippy::option_option, reason = "serde passes fields by reference")]
fn new_dollars<S: Serializer>(budget: &Option<Option<NanoUsd>>, serializer: S) -> Result<S::Ok, S::Error> {
    dollars(&budget.flatten(), serializer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn omitted_and_removed_fields_differ() {
        let nothing = serde_json::to_value(KeyChange::default()).unwrap();
        assert_eq!(nothing, json!({ "limits": {} }));
        let change = KeyChange {
            name: Some(None),
            expires_at: Some(Some(Time::from_unix_ms(0))),
            limits: LimitsChange { per_minute: Some(None), per_day: Some(Some(0)) },
            budget: Some(Some(NanoUsd(2_500_000_000))),
            cache: Some(CacheTime::parse("90m")),
            verify: Some(Some(Guard::Block)),
            ..KeyChange::default()
        };
        assert_eq!(
            serde_json::to_value(change).unwrap(),
            json!({
                "name": null,
                "expires_at": "1970-01-01T00:00:00.000Z",
                "limits": { "per_minute": null, "per_day": 0 },
                "budget_usd": 2.5,
                "cache": "1h30m",
                "verify": "block",
            })
        );
    }

    #[test]
    fn settings_as_a_change_replace_all_others() {
        let one = KeySettings {
            name: Some("ci".to_owned()),
            expires_at: Some(Time::from_unix_ms(0)),
            per_minute: Some(1),
            per_day: Some(2),
            models: vec!["a/*".to_owned()],
            addresses: vec!["::1/128".to_owned()],
            budget: Some(NanoUsd(3)),
            cache: CacheTime::parse("1h"),
            verify: Some(Guard::Flag),
            end_users: OwnEndUserLimits::parse("per_day=5"),
        };
        for (from, to) in [(KeySettings::default(), one.clone()), (one, KeySettings::default())] {
            assert_eq!(KeyChange::from(to.clone()).applied_to(&from), to);
            assert_eq!(KeyChange::default().applied_to(&from), from);
        }
    }
}
