//! Which models a request may be answered by: what it asks for, and what its key may use and pay for.

use std::sync::Arc;

use crate::inference::{Conversation, Gateway};
use crate::server::gate::Caller;
use crate::server::reply::{ApiError, ErrorCode};
use crate::{keys, model_id};

/// The models to try for a request.
pub(super) struct AskedModels {
    /// What was asked for: a model, or a pool.
    pub(super) requested: Arc<str>,
    /// The models to call, in order; at least one.
    pub(super) chain: Vec<Arc<str>>,
}

impl AskedModels {
    /// The requested model, or the targets of the requested pool, and those of their fallbacks that the key may use and
    /// pay for, if there is a budget. A key that may use a pool may use all that the pool names through it.
    /// `conversation` is only asked where it matters.
    pub(super) fn of(
        gateway: &Gateway,
        caller: &Caller,
        has_budget: bool,
        model: &str,
        conversation: impl FnOnce() -> Option<Conversation>,
    ) -> Result<Self, ApiError> {
        let pool = gateway.pool(model);
        if pool.is_none() && (model_id::parse(model).is_none() || !gateway.knows(model)) {
            return Err(ApiError::parameter(
                ErrorCode::ModelNotFound,
                "model",
                unknown_model(gateway, model),
            ));
        }
        let may_use = keys::may_use(&caller.key, model);
        let through_pool = pool.filter(|_| may_use);
        let mut chain = gateway.chain(model, pool.filter(|pool| pool.affinity).and_then(|_| conversation()));
        chain.retain(|id| keys::may_use(&caller.key, id) || through_pool.is_some_and(|pool| pool.names(id)));
        if chain.is_empty() || (pool.is_none() && !may_use) {
            return Err(ApiError::model_not_allowed(model, &caller.key.models));
        }
        if has_budget {
            retain_priced(&mut chain, gateway, pool.is_some());
        }
        let requested = if pool.is_some() { model.into() } else { chain[0].clone() };
        Ok(Self { requested, chain })
    }
}

/// Leaves out the models without a known price. The only one that was asked for stays: whether its price is known is
/// for the gateway to decide, so that its error is reported.
fn retain_priced(chain: &mut Vec<Arc<str>>, gateway: &Gateway, is_pool: bool) {
    let first = chain[0].clone();
    chain.retain(|id| gateway.model_info(id).price.is_some() || (!is_pool && *id == first));
    if chain.is_empty() {
        chain.push(first);
    }
}

fn unknown_model(gateway: &Gateway, model: &str) -> String {
    let configured = gateway.provider_names().join(", ");
    let reason = match model_id::split(model) {
        Some((provider, _)) if gateway.provider_names().contains(&provider) => {
            "`model` names a model that its provider does not have".to_owned()
        }
        Some(_) => "`model` names a provider that is not configured".to_owned(),
        None if gateway.has_pools() => {
            "`model` is neither <provider>/<model_name> nor the name of a pool".to_owned()
        }
        None => "`model` must be <provider>/<model_name>".to_owned(),
    };
    format!("{reason}; configured providers: {configured}. GET /inference/v1/models lists their models")
}
