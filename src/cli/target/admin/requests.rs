//! Request bodies for what commands ask for.

use crate::api::console::{AppPatch, CreateKey, KeyLimits, KeyPatch, LimitsPatch};
use crate::clock::Time;
use crate::keys::NewKey;
use crate::money::NanoUsd;
use crate::storage::{AppChange, KeyChange};

pub(super) fn create_key(new: &NewKey) -> CreateKey {
    CreateKey {
        service: new.service,
        name: new.name.clone(),
        expires_at: new.expires_at.map(Time::rfc3339),
        limits: KeyLimits { per_minute: new.per_minute, per_day: new.per_day },
        models: new.models.clone(),
        addresses: new.addresses.clone(),
        budget_usd: new.budget.map(NanoUsd::usd),
    }
}

pub(super) fn app_patch(change: &AppChange) -> AppPatch {
    AppPatch { name: change.name.clone(), budget_usd: change.budget.map(|budget| budget.map(NanoUsd::usd)) }
}

pub(super) fn key_patch(change: &KeyChange) -> KeyPatch {
    KeyPatch {
        name: change.name.clone(),
        expires_at: change.expires_at.map(|at| at.map(Time::rfc3339)),
        limits: LimitsPatch { per_minute: change.per_minute, per_day: change.per_day },
        models: change.models.clone(),
        addresses: change.addresses.clone(),
        budget_usd: change.budget.map(|budget| budget.map(NanoUsd::usd)),
    }
}
