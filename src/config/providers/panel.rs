//! Chooses a panel: different providers first, and among the models of one provider different makers first.
//!
//! Models of one maker were trained on much the same text and err alike, so their agreement means less. By default a
//! verification asks a panel of three; further models stand by in case some fail.

use std::collections::BTreeSet;

use super::provider_file::{self, ProviderFile, SANDBOX};
use crate::providers::{Kind, Settings, catalog};

/// The size of a chosen panel: how many models are asked by default.
const PANEL_SIZE: usize = 3;
/// The number of standby models. More would only be asked after as many failures.
const STANDBY_SIZE: usize = 3;

/// A provider's models to choose from, best first.
#[derive(Clone, Debug)]
pub(in crate::config) struct Offer {
    pub(in crate::config) provider: String,
    pub(in crate::config) models: Vec<OfferedModel>,
}

/// A model, and who made it.
#[derive(Clone, Debug)]
pub(in crate::config) struct OfferedModel {
    pub(in crate::config) name: String,
    pub(in crate::config) maker: String,
}

/// What is used where the operator leaves it open. All empty if there is nothing to choose from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::config) struct Chosen {
    pub(in crate::config) panel: Vec<String>,
    pub(in crate::config) standby: Vec<String>,
    /// How many makers the models of the panel come from.
    pub(in crate::config) makers: usize,
    /// A model dedicated to extraction; if `None`, the first of the panel does it.
    pub(in crate::config) extractor: Option<String>,
    /// A model dedicated to audits; if `None`, one of the panel or of those that stand by does it.
    pub(in crate::config) auditor: Option<String>,
}

impl Offer {
    /// The recommended models of a provider that is known by its name or address.
    pub(in crate::config) fn known(settings: &Settings) -> Option<Self> {
        let by_address = provider_file::known_at_address(&settings.base_url);
        let known = by_address.or_else(|| catalog::known(&settings.name))?;
        let offered = |choice: &catalog::StarterModel| OfferedModel {
            name: choice.model.to_owned(),
            maker: choice.maker.to_owned(),
        };
        let models: Vec<_> = known.starter_models.iter().map(offered).collect();
        (!models.is_empty()).then(|| Self { provider: settings.name.clone(), models })
    }

    /// Models of which only the names are known. The model family, taken from the start of the name, stands for the
    /// maker.
    pub(in crate::config) fn named<'a>(provider: &str, names: impl Iterator<Item = &'a str>) -> Self {
        let family = |name: &str| name.chars().take_while(|c| c.is_alphabetic()).collect();
        let models = names.map(|name| OfferedModel { name: name.to_owned(), maker: family(name) }).collect();
        Self { provider: provider.to_owned(), models }
    }
}

/// The models of the configured providers: for known providers the recommended ones, for others those that the file
/// names. In the order of the catalogue, then of the file.
pub(in crate::config) fn offers(providers: &[Settings], files: &[ProviderFile]) -> Vec<Offer> {
    let rank = |settings: &Settings| {
        catalog::KNOWN.iter().position(|known| known.name == settings.name).unwrap_or(catalog::KNOWN.len())
    };
    let mut ordered: Vec<_> =
        providers.iter().zip(files).filter(|(settings, _)| settings.kind != Kind::Sandbox).collect();
    ordered.sort_by_key(|(settings, _)| rank(settings));
    let offer = |(settings, file): (&Settings, &ProviderFile)| {
        Offer::known(settings).unwrap_or_else(|| Offer::named(&settings.name, file.model_names()))
    };
    ordered.into_iter().map(offer).collect()
}

/// Chooses panel and standby models.
pub(in crate::config) fn choose(offers: &[Offer]) -> Chosen {
    let mut order = in_rounds(offers).into_iter();
    let (panel, makers): (Vec<String>, BTreeSet<String>) = order.by_ref().take(PANEL_SIZE).unzip();
    Chosen {
        panel,
        standby: order.take(STANDBY_SIZE).map(|(model, _)| model).collect(),
        makers: makers.len(),
        extractor: None,
        auditor: None,
    }
}

/// All models with their makers, taking one from each provider per round, by a maker that is not in yet if possible.
fn in_rounds(offers: &[Offer]) -> Vec<(String, String)> {
    let mut remaining: Vec<Offer> = offers.to_vec();
    let mut makers: Vec<String> = Vec::new();
    let mut order = Vec::new();
    while remaining.iter().any(|offer| !offer.models.is_empty()) {
        for offer in remaining.iter_mut().filter(|offer| !offer.models.is_empty()) {
            let fresh = offer.models.iter().position(|model| !makers.contains(&model.maker));
            let model = offer.models.remove(fresh.unwrap_or(0));
            makers.push(model.maker.clone());
            order.push((format!("{}/{}", offer.provider, model.name), model.maker));
        }
    }
    order
}

/// The simulated panel.
pub(in crate::config) fn sandbox() -> Chosen {
    let id = |name: &str| format!("{SANDBOX}/{name}");
    let panel = ["alpha", "beta", "gamma"].map(id).to_vec();
    Chosen {
        panel,
        standby: vec![id("delta")],
        makers: 1,
        extractor: Some(id("extractor")),
        auditor: Some(id("auditor")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(names: &[&str]) -> Vec<Offer> {
        names.iter().map(|name| Offer::known(&catalog::known(name).unwrap().settings()).unwrap()).collect()
    }

    #[test]
    fn one_provider_fills_the_panel_alone() {
        let chosen = choose(&known(&["openai"]));
        assert_eq!(chosen.panel, ["openai/gpt-5.4-mini", "openai/gpt-5.6-luna", "openai/gpt-4.1-mini"]);
        assert!(chosen.standby.is_empty());
    }

    #[test]
    fn different_providers_come_first() {
        let chosen = choose(&known(&["openai", "anthropic"]));
        assert_eq!(
            chosen.panel,
            ["openai/gpt-5.4-mini", "anthropic/claude-haiku-4-5", "openai/gpt-5.6-luna"]
        );
        let chosen = choose(&known(&["openai", "anthropic", "google", "mistral"]));
        assert_eq!(
            chosen.panel,
            ["openai/gpt-5.4-mini", "anthropic/claude-haiku-4-5", "google/gemini-3.5-flash"]
        );
        assert_eq!(chosen.standby[0], "mistral/mistral-small-latest");
        assert_eq!(chosen.standby.len(), 3);
    }

    #[test]
    fn different_makers_come_first_within_a_provider() {
        let chosen = choose(&known(&["openrouter"]));
        assert_eq!(
            chosen.panel,
            [
                "openrouter/openai/gpt-5.4-mini",
                "openrouter/anthropic/claude-haiku-4.5",
                "openrouter/google/gemini-2.5-flash"
            ]
        );
        let chosen = choose(&known(&["openai", "anthropic", "openrouter"]));
        assert_eq!(chosen.panel[2], "openrouter/google/gemini-2.5-flash");
        let chosen = choose(&known(&["openai", "groq"]));
        assert_eq!(chosen.panel[1], "groq/qwen/qwen3.8-27b");
    }

    #[test]
    fn installed_models_of_different_families_come_first() {
        let names = ["llama3.1:8b", "llama3.2:3b", "qwen2.5:7b", "mistral:7b"];
        let chosen = choose(&[Offer::named("ollama", names.into_iter())]);
        assert_eq!(chosen.panel, ["ollama/llama3.1:8b", "ollama/qwen2.5:7b", "ollama/mistral:7b"]);
        assert_eq!(chosen.standby, ["ollama/llama3.2:3b"]);
    }

    #[test]
    fn without_models_the_panel_is_empty() {
        assert_eq!(choose(&[]), Chosen::default());
        assert_eq!(choose(&[Offer::named("x", std::iter::empty())]), Chosen::default());
    }
}
