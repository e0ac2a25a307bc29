//! Which models can be asked for.

use std::collections::BTreeSet;

use super::Gateway;
use crate::clock::Time;
use crate::providers::{catalog, sandbox};

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
            ids.extend(catalog::of_provider(name).filter(is_current).map(str::to_owned));
            for (model, settings) in provider.models() {
                ids.insert(format!("{name}/{model}"));
                ids.extend(settings.fallbacks.iter().cloned());
            }
        }
        let settings = self.settings();
        ids.extend(settings.named.iter().chain(settings.fallbacks.keys()).cloned());
        ids.extend(settings.fallbacks.values().flatten().cloned());
        ids.retain(|id| self.target(id).is_some());
        ids.into_iter().collect()
    }

    /// The names of the configured providers, sorted.
    pub fn provider_names(&self) -> Vec<&str> {
        self.providers().map(crate::providers::Provider::name).collect()
    }
}
