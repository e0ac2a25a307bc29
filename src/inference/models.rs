//! Which models can be asked for.

use std::collections::BTreeSet;

use super::{Gateway, gateway};
use crate::clock::Time;
use crate::money::Price;
use crate::providers::{catalog, sandbox};

/// What is known of a model besides its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// What a call costs: as an operator has set it, else by the catalogue.
    pub price: Option<Price>,
    /// The most tokens of a prompt.
    pub context_window: Option<u64>,
    /// The most tokens of an answer.
    pub max_output_tokens: Option<u64>,
    /// The date (`2026-10-23`) from which its provider no longer answers for it.
    pub deprecation: Option<&'static str>,
}

impl Gateway {
    /// The identifiers of the models that are known, sorted: those of the catalogue for configured providers unless
    /// they are retired by now, and those that the configuration names. Others of a configured provider can be asked
    /// for as well, as providers add models faster than lists follow.
    pub fn models(&self, now: Time) -> Vec<String> {
        let today = now.utc_date();
        let is_current = |id: &&str| {
            let retired = catalog::model(id).and_then(|facts| facts.deprecation);
            retired.is_none_or(|date| date > today.as_str())
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
        ids.extend(self.named().iter().chain(settings.fallbacks.keys()).cloned());
        ids.extend(settings.fallbacks.values().flatten().cloned());
        ids.retain(|id| self.target(id).is_some());
        ids.into_iter().collect()
    }

    /// What is known of a model.
    pub fn about(&self, id: &str) -> About {
        let Some((provider, model)) = self.find(id) else { return About::default() };
        let facts = catalog::model(id);
        About {
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
