//! Do providers have the configured models? Judged by a provider's list of models, if it returns all of it.
//!
//! A list need not contain every valid name: makers have undated names for the latest of a family, routers have
//! suffixes that choose a route. So only a name that resembles nothing in the list is doubted, and a doubt is never a
//! failure.

use std::collections::{BTreeMap, BTreeSet};

use super::check::Check;
use crate::config::{ServerConfig, closest};
use crate::model_id;

/// The configured models by provider: the provider's own name of each, and the settings that name it.
#[derive(Debug, Default)]
pub(super) struct ConfiguredModels(BTreeMap<String, BTreeMap<String, BTreeSet<&'static str>>>);

impl ConfiguredModels {
    /// The models that a server's configuration names.
    pub(super) fn from_config(config: &ServerConfig) -> Self {
        let mut configured = Self::default();
        for domain in [&config.verify.general, &config.verify.legal] {
            configured.add("extractor", [&domain.extractor]);
            configured.add("extractor_fallbacks", &domain.extractor_fallbacks);
            configured.add("auditor", &domain.auditor);
            configured.add("panel", &domain.panel);
            configured.add("standby", &domain.standby);
        }
        configured.add("fallbacks", config.inference.fallbacks.values().flatten());
        for pool in config.inference.pools.values() {
            configured.add("targets", &pool.targets);
            configured.add("fallbacks", &pool.fallbacks);
        }
        let models = config.providers.iter().flat_map(|settings| settings.models.values());
        configured.add("fallbacks", models.flat_map(|model| &model.fallbacks));
        configured
    }

    fn add<'a>(&mut self, setting: &'static str, ids: impl IntoIterator<Item = &'a String>) {
        for (provider, model) in ids.into_iter().filter_map(|id| model_id::split(id)) {
            let of_provider = self.0.entry(provider.to_owned()).or_default();
            of_provider.entry(model.to_owned()).or_default().insert(setting);
        }
    }

    /// A warning for each model that is missing from a provider's list; `name` is that of the provider's checks.
    pub(super) fn doubts(&self, provider: &str, name: &str, listed: &[String]) -> Vec<Check> {
        let configured = self.0.get(provider).into_iter().flatten();
        let missing = configured.filter(|(model, _)| !is_listed(model, listed));
        let doubt = |(model, settings): (&String, &BTreeSet<&str>)| {
            let settings: Vec<_> = settings.iter().map(|setting| format!("`{setting}`")).collect();
            let message = format!("does not list {model}, which is set in {}", settings.join(", "));
            let hint = match closest(model, listed.iter().map(String::as_str)) {
                Some(meant) => format!("did you mean {meant}?"),
                None => {
                    "`mk models` lists the models of a running server; a provider may also have models that \
                    it does not list"
                        .to_owned()
                }
            };
            Check::warning(name, message).hint(hint)
        };
        missing.map(doubt).collect()
    }
}

/// Whether a name is listed, or is a variant of a listed one.
fn is_listed(model: &str, listed: &[String]) -> bool {
    // Suffixes such as `:free` choose a route to a model, `-latest` chooses among its dates.
    let base = model.split(':').next().unwrap_or(model).trim_end_matches("-latest");
    let is_date = |rest: &str| {
        rest.strip_prefix(['-', '@']).is_some_and(|date| date.starts_with(|c: char| c.is_ascii_digit()))
    };
    let is_variant = |rest: &str| rest.is_empty() || rest.starts_with(':') || is_date(rest);
    listed.iter().any(|name| name == model || name.strip_prefix(base).is_some_and(is_variant))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn names_unlike_anything_on_the_list_are_doubted() {
        let listed = listed(&[
            "gpt-5.4-mini",
            "claude-opus-4-5-20251101",
            "llama3:latest",
            "a/b",
            "mistral-large-2512",
        ]);
        for known in ["gpt-5.4-mini", "claude-opus-4-5", "llama3", "a/b:free", "mistral-large-latest"] {
            assert!(is_listed(known, &listed), "{known}");
        }
        for unknown in ["gpt-5.4-mimi", "gpt-5", "claude-opus-4-6", "llama", "a", "mistral"] {
            assert!(!is_listed(unknown, &listed), "{unknown}");
        }
    }

    #[test]
    fn a_doubt_names_the_settings_and_a_suggestion() {
        let mut configured = ConfiguredModels::default();
        let ids = ["x/gpt-5.4-mimi".to_owned(), "x/gpt-5.4-mini".to_owned(), "y/other".to_owned()];
        configured.add("panel", &ids);
        configured.add("standby", &ids[..1]);
        let doubts = configured.doubts("x", "provider x", &listed(&["gpt-5.4-mini"]));
        let message = "does not list gpt-5.4-mimi, which is set in `panel`, `standby`";
        assert_eq!(doubts, [Check::warning("provider x", message).hint("did you mean gpt-5.4-mini?")]);
        assert!(configured.doubts("z", "provider z", &listed(&[])).is_empty());
    }
}
