//! The models that callers can request, and what is known about them.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Gateway, is_pattern};
use crate::api::guard::{BlockOn, Guard};
use crate::api::models::ModelKind;
use crate::clock::Time;
use crate::money::Price;
use crate::providers::{Takes, catalog, sandbox};

/// A word in a model's own name that says that it turns texts into vectors.
const FOR_EMBEDDINGS: &str = "embed";

/// Words in a model's own name that say that it does something other than to answer people: it judges texts, makes
/// speech, music, pictures or films of them, or drives a machine.
const NOT_FOR_CHAT: [&str; 18] = [
    "guard",
    "moderation",
    "rerank",
    "whisper",
    "transcri",
    "tts",
    "speech",
    "audio",
    "realtime",
    "lyria",
    "image",
    "dall-e",
    "sora",
    "veo",
    "ocr",
    "-fim",
    "computer-use",
    "robotics",
];

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
    /// `now`, and those that the configuration names, pools included. Other models of a configured provider can be requested as well,
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
        let pools = &settings.pools;
        ids.extend(pools.values().flat_map(|pool| pool.targets.iter().chain(&pool.fallbacks)).cloned());
        ids.retain(|id| !is_pattern(id) && self.target(id).is_some());
        ids.extend(pools.keys().cloned());
        ids.into_iter().collect()
    }

    /// What a model does, or all targets of a pool do, as far as names tell.
    pub fn kind(&self, id: &str) -> ModelKind {
        let Some(pool) = self.pool(id) else { return kind_of(id) };
        let mut kinds = pool.targets.iter().map(|target| kind_of(target));
        let first = kinds.next().unwrap_or_default();
        if kinds.all(|kind| kind == first) { first } else { ModelKind::Other }
    }

    /// The one of these identifiers to begin with: the first that the operator `chose`, else one that its provider is
    /// known for, else any.
    pub fn first_choice<'c>(&self, chosen: impl Iterator<Item = &'c str>, ids: &[String]) -> Option<String> {
        let starters = catalog::KNOWN.iter().flat_map(|provider| {
            provider.starter_models.iter().map(|starter| format!("{}/{}", provider.name, starter.model))
        });
        let is_offered = |id: &String| ids.contains(id);
        chosen.map(str::to_owned).chain(starters).find(is_offered).or_else(|| ids.first().cloned())
    }

    /// What is known about a model, or holds for each target of a pool.
    pub fn model_info(&self, id: &str) -> ModelInfo {
        match self.pool(id) {
            Some(pool) => in_common(pool.targets.iter().map(|target| self.about(target))),
            None => self.about(id),
        }
    }

    /// Whether the answers of a model, or of all targets of a pool, are simulated.
    pub fn is_simulated(&self, id: &str) -> bool {
        let is_sandbox = |id: &str| self.target(id).is_some_and(|target| target.sandbox);
        match self.pool(id) {
            Some(pool) => pool.targets.iter().all(|target| is_sandbox(target)),
            None => is_sandbox(id),
        }
    }

    fn about(&self, id: &str) -> ModelInfo {
        let Some((provider, model)) = self.find(id) else { return ModelInfo::default() };
        let facts = catalog::model(id);
        ModelInfo {
            price: provider.price(id, model),
            context_window: facts.and_then(|facts| facts.max_input_tokens),
            max_output_tokens: facts.and_then(|facts| facts.max_output_tokens),
            deprecation: facts.and_then(|facts| facts.deprecation),
        }
    }

    /// What all models that may answer a request for `id` take of what tunes an answer.
    pub fn takes(&self, id: &str) -> Takes {
        let chain = self.chain(id, None);
        let each = chain.iter().filter_map(|id| self.find(id).map(|(provider, model)| provider.takes(model)));
        each.reduce(Takes::both).unwrap_or_default()
    }

    /// Whether what a model's format does not have is left out of a request, instead of the request being refused.
    pub const fn drops_unsupported(&self) -> bool {
        self.settings().drop_unsupported
    }

    /// What is done with the verdicts on the answers to requests for a model or a pool; `None` if they are not verified.
    pub fn guard(&self, id: &str) -> Option<Guard> {
        self.settings().verify.max(self.pool(id).and_then(|pool| pool.verify))
    }

    /// What blocks an answer.
    pub fn block_on(&self) -> &[BlockOn] {
        &self.settings().block_on
    }

    /// The longest that answers may be kept for callers; `None` if they are not.
    pub const fn max_cache(&self) -> Option<Duration> {
        self.settings().max_cache
    }

    /// The names of the configured providers, sorted.
    pub fn provider_names(&self) -> Vec<&str> {
        self.providers().map(crate::providers::Provider::name).collect()
    }
}

/// What can be relied on whichever of these models answers: the smallest sizes, and the price that all have.
fn in_common(mut models: impl Iterator<Item = ModelInfo>) -> ModelInfo {
    let first = models.next().unwrap_or_default();
    models.fold(first, |all, one| ModelInfo {
        price: all.price.filter(|price| one.price == Some(*price)),
        context_window: all.context_window.zip(one.context_window).map(|(all, one)| all.min(one)),
        max_output_tokens: all.max_output_tokens.zip(one.max_output_tokens).map(|(all, one)| all.min(one)),
        deprecation: all.deprecation.filter(|date| one.deprecation == Some(*date)),
    })
}

fn kind_of(id: &str) -> ModelKind {
    let name = id.split_once('/').map_or(id, |(_, name)| name).to_ascii_lowercase();
    if name.contains(FOR_EMBEDDINGS) {
        ModelKind::Embeddings
    } else if NOT_FOR_CHAT.iter().any(|word| name.contains(word)) {
        ModelKind::Other
    } else {
        ModelKind::Chat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_that_do_something_else_are_not_for_chat() {
        for id in [
            "groq/llama-guard-3-8b",
            "groq/meta-llama/llama-prompt-guard-2-22m",
            "groq/openai/gpt-oss-safeguard-20b",
            "openai/omni-moderation-latest",
            "mistral/mistral-code-fim-latest",
            "google/lyria-3.5",
        ] {
            assert_eq!(kind_of(id), ModelKind::Other, "{id}");
        }
        for id in ["openai/text-embedding-3-small", "ollama/Nomic-Embed-Text"] {
            assert_eq!(kind_of(id), ModelKind::Embeddings, "{id}");
        }
        let known = catalog::KNOWN.iter().flat_map(|provider| {
            provider.starter_models.iter().map(|starter| format!("{}/{}", provider.name, starter.model))
        });
        for id in known.chain(["guardian/chat-1".to_owned(), "sandbox/alpha".to_owned()]) {
            assert_eq!(kind_of(&id), ModelKind::Chat, "{id}");
        }
    }
}
