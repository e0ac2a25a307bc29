//! The models that callers can request, and what is known about them.

use std::collections::BTreeSet;

use super::{Gateway, gateway};
use crate::clock::Time;
use crate::money::Price;
use crate::providers::{catalog, sandbox};

/// What is known about a model besides its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelInfo {
    /// The configured price, otherwise that of the catalogue.
    pub price: Option<Price>,
    /// The most tokens that a prompt may have.
    pub context_window: Option<u64>,
    /// The most tokens that an answer may have.
    pub max_output_tokens: Option<u64>,
    /// The date (`2026-10-23`) from which its provider no longer serves it.
    pub deprecation: Option<&'static str>,
}

impl Gateway {
    /// The identifiers of all known models, sorted: those in the catalogue for configured providers, unless retired by
    /// `now`, and those that the configuration names. Other models of a configured provider can be requested as well,
    /// as providers add models faster than lists follow.
    pub fn models(&self, now: Time) -> Vec<String> {
        let today = now.utc_date();
        let is_current = |id: &&str| {
            let deprecation = catalog::model(id).and_then(|facts| facts.deprecation);
            deprecation.is_none_or(|date| date > today.as_str())
        };
        let mut ids = BTreeSet::new();
        for provider in self.providers() {
            let name = provider.name();
            if provider.is_sandbox() {
                ids.extend(sandbox::MODELS.iter().map(|model| format!("{name}/{model}")));
                continue;
            }
            ids.extend(catalog::models_of(name).filter(is_current).map(str::to_owned));
            for (model, settings) in provider.models() {
                ids.insert(format!("{name}/{model}"));
                ids.extend(settings.fallbacks.iter().cloned());
            }
        }
        let settings = self.settings();
        ids.extend(self.extra_models().iter().chain(settings.fallbacks.keys()).cloned());
        ids.extend(settings.fallbacks.values().flatten().cloned());
        ids.retain(|id| self.target(id).is_some());
        ids.into_iter().collect()
    }

    /// What is known about a model.
    pub fn model_info(&self, id: &str) -> ModelInfo {
        let Some((provider, model)) = self.find(id) else { return ModelInfo::default() };
        let facts = catalog::model(id);
        ModelInfo {
            price: gateway::price(id, provider, model),
            context_window: facts.and_then(|facts| facts.max_input_tokens),
            max_output_tokens: facts.and_then(|facts| facts.max_output_tokens),
            deprecation: facts.and_then(|facts| facts.deprecation),
        }
    }

    /// The names of the configured providers, sorted.
    pub fn provider_names(&self) -> Vec<&str> {
        self.providers().map(crate::providers::Provider::name).collect()
    }
}
