//! The catalogue of providers and models: the environment variable and address of each provider, the models to start
//! with, and the prices and capabilities of models.
//!
//! Supporting another provider of a known format takes one entry in [`KNOWN`]. The facts about models come from the
//! embedded `catalogue.json` (list prices and capabilities as published by the providers, November 2026), one model per
//! line. It is parsed on first use, so that commands that need no model facts do not pay for it. What the catalogue
//! does not say stays unknown: a missing model has no price, rather than a price of zero.

pub(super) mod effort;
pub mod estimate;
pub(super) mod model;
pub(super) mod settings;
pub(super) mod takes;

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Kind, Settings};
use crate::money::{NanoUsd, Price};

/// A provider that is recognised by its name, its usual environment variable or its port.
#[derive(Debug)]
pub struct KnownProvider {
    /// The name under which it is configured, which is also the prefix of its models' identifiers.
    pub name: &'static str,
    /// The environment variable that usually holds the key; `None` for a local server that needs none.
    pub key_env: Option<&'static str>,
    /// Its address for the format of `kind`.
    pub base_url: &'static str,
    /// The format used with it.
    pub kind: Kind,
    /// Whether its documentation has the Responses API. The others are found out.
    pub has_responses: bool,
    /// The models to start with, best first: cheap ones that extract and answer well.
    pub starter_models: &'static [StarterModel],
}

/// A model to start with.
#[derive(Debug)]
pub struct StarterModel {
    /// The provider's own name for it.
    pub model: &'static str,
    /// The company that trained it. Models of one maker tend to make the same errors, whoever serves them.
    pub maker: &'static str,
}

impl KnownProvider {
    /// The provider with default settings and no key.
    pub fn settings(&self) -> Settings {
        Settings {
            responses: self.has_responses.then_some(true),
            ..Settings::new(self.name, self.kind, self.base_url)
        }
    }
}

const fn starter(model: &'static str, maker: &'static str) -> StarterModel {
    StarterModel { model, maker }
}

/// The address of a local Ollama, recognised by its port.
pub const OLLAMA: KnownProvider = KnownProvider {
    name: "ollama",
    key_env: None,
    base_url: "http://127.0.0.1:11434/v1",
    kind: Kind::OpenAi,
    has_responses: false,
    starter_models: &[],
};

/// The providers known by name, in the order in which panels are filled from them. Anthropic and Google are called in
/// their own formats. `openrouter` comes last, as it serves the models of the others.
pub const KNOWN: [KnownProvider; 8] = [
    KnownProvider {
        name: "openai",
        key_env: Some("OPENAI_API_KEY"),
        base_url: "https://api.openai.com/v1",
        kind: Kind::OpenAi,
        has_responses: true,
        starter_models: &[
            starter("gpt-5.4-mini", "openai"),
            starter("gpt-5.6-luna", "openai"),
            starter("gpt-4.1-mini", "openai"),
        ],
    },
    KnownProvider {
        name: "anthropic",
        key_env: Some("ANTHROPIC_API_KEY"),
        base_url: "https://api.anthropic.com/v1",
        kind: Kind::Anthropic,
        has_responses: false,
        starter_models: &[
            starter("claude-haiku-4-5", "anthropic"),
            starter("claude-sonnet-5", "anthropic"),
            starter("claude-haiku-5-5", "anthropic"),
        ],
    },
    KnownProvider {
        name: "google",
        key_env: Some("GEMINI_API_KEY"),
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        kind: Kind::Google,
        has_responses: false,
        starter_models: &[
            starter("gemini-3.5-flash", "google"),
            starter("gemini-3.8-flash", "google"),
            starter("gemini-2.5-flash", "google"),
        ],
    },
    KnownProvider {
        name: "mistral",
        key_env: Some("MISTRAL_API_KEY"),
        base_url: "https://api.mistral.ai/v1",
        kind: Kind::OpenAi,
        has_responses: false,
        starter_models: &[
            starter("mistral-small-latest", "mistral"),
            starter("mistral-large-latest", "mistral"),
            starter("mistral-medium-latest", "mistral"),
        ],
    },
    KnownProvider {
        name: "groq",
        key_env: Some("GROQ_API_KEY"),
        base_url: "https://api.groq.com/openai/v1",
        kind: Kind::OpenAi,
        has_responses: false,
        starter_models: &[
            starter("openai/gpt-oss-120b", "openai"),
            starter("qwen/qwen3.8-27b", "qwen"),
            starter("openai/gpt-oss-20b", "openai"),
        ],
    },
    KnownProvider {
        name: "xai",
        key_env: Some("XAI_API_KEY"),
        base_url: "https://api.x.ai/v1",
        kind: Kind::OpenAi,
        has_responses: true,
        starter_models: &[
            starter("grok-4.3", "xai"),
            starter("grok-4.5", "xai"),
            starter("grok-4.20-non-reasoning", "xai"),
        ],
    },
    KnownProvider {
        name: "deepseek",
        key_env: Some("DEEPSEEK_API_KEY"),
        base_url: "https://api.deepseek.com/v1",
        kind: Kind::OpenAi,
        has_responses: false,
        starter_models: &[
            starter("deepseek-v4-flash", "deepseek"),
            starter("deepseek-v4-pro", "deepseek"),
            starter("deepseek-v3.2", "deepseek"),
        ],
    },
    KnownProvider {
        name: "openrouter",
        key_env: Some("OPENROUTER_API_KEY"),
        base_url: "https://openrouter.ai/api/v1",
        kind: Kind::OpenAi,
        has_responses: false,
        starter_models: &[
            starter("openai/gpt-5.4-mini", "openai"),
            starter("anthropic/claude-haiku-4.5", "anthropic"),
            starter("google/gemini-2.5-flash", "google"),
            starter("deepseek/deepseek-v3.2", "deepseek"),
            starter("x-ai/grok-4.20", "xai"),
        ],
    },
];

/// The known provider with this name.
pub fn known(name: &str) -> Option<&'static KnownProvider> {
    KNOWN.iter().find(|provider| provider.name == name).or_else(|| (name == OLLAMA.name).then_some(&OLLAMA))
}

/// What is known about a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelFacts {
    /// The list price; `None` if none is published, and for models listed as free.
    pub price: Option<Price>,
    /// The maximum number of tokens in a prompt.
    pub max_input_tokens: Option<u64>,
    /// The maximum number of tokens in an answer.
    pub max_output_tokens: Option<u64>,
    /// Whether it accepts a JSON schema in the provider's own format.
    pub json_schema: bool,
    /// Whether it can call tools.
    pub tools: bool,
    /// Whether it reasons before it answers.
    pub reasoning: bool,
    /// The date on which its provider retires it, `YYYY-MM-DD`.
    pub deprecation: Option<&'static str>,
}

/// The facts about the model with this identifier, `<provider>/<model_name>`.
pub fn model(id: &str) -> Option<ModelFacts> {
    MODELS.get(id).copied()
}

/// The identifiers of all models of a provider in the catalogue.
pub fn models_of(name: &str) -> impl Iterator<Item = &'static str> {
    let is_of = move |id: &str| id.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
    MODELS.keys().copied().filter(move |id| is_of(id))
}

static CATALOGUE: &str = include_str!("catalogue.json");

static MODELS: LazyLock<HashMap<&'static str, ModelFacts>> = LazyLock::new(|| {
    let entries: HashMap<&'static str, Entry> = serde_json::from_str(CATALOGUE).unwrap_or_default();
    entries.into_iter().map(|(id, entry)| (id, entry.facts())).collect()
});

#[derive(Deserialize)]
struct Entry {
    #[serde(borrow)]
    input_nanousd_per_token: Option<&'static RawValue>,
    #[serde(borrow)]
    output_nanousd_per_token: Option<&'static RawValue>,
    #[serde(borrow)]
    cached_input_nanousd_per_token: Option<&'static RawValue>,
    max_input_tokens: Option<u64>,
    max_output_tokens: Option<u64>,
    #[serde(default)]
    json_schema: bool,
    #[serde(default)]
    tools: bool,
    #[serde(default)]
    reasoning: bool,
    deprecation_date: Option<&'static str>,
}

impl Entry {
    fn facts(&self) -> ModelFacts {
        ModelFacts {
            price: self.price(),
            max_input_tokens: self.max_input_tokens,
            max_output_tokens: self.max_output_tokens,
            json_schema: self.json_schema,
            tools: self.tools,
            reasoning: self.reasoning,
            deprecation: self.deprecation_date,
        }
    }

    fn price(&self) -> Option<Price> {
        let price = Price {
            input_per_mtok: per_mtok(self.input_nanousd_per_token?.get())?,
            output_per_mtok: per_mtok(self.output_nanousd_per_token?.get())?,
            cached_input_per_mtok: self
                .cached_input_nanousd_per_token
                .and_then(|price| per_mtok(price.get())),
            // No provider's list says it in a way that the catalogue could.
            cache_write_per_mtok: None,
        };
        let is_listed_as_free = price.input_per_mtok.0 == 0 && price.output_per_mtok.0 == 0;
        (!is_listed_as_free).then_some(price)
    }
}

/// Converts a decimal number of nano-dollars per token to nano-dollars per million tokens, digit by digit: `37.5`
/// becomes exactly 37,500,000. More than six decimals would be less than a nano-dollar per million and are refused.
fn per_mtok(decimal: &str) -> Option<NanoUsd> {
    const DECIMALS: usize = 6;
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    if whole.is_empty() || fraction.len() > DECIMALS {
        return None;
    }
    format!("{whole}{fraction:0<DECIMALS$}").parse().ok().map(NanoUsd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entire_catalogue_parses() {
        let lines = CATALOGUE.lines().filter(|line| line.contains("nanousd")).count();
        assert_eq!(MODELS.len(), lines);
        assert!(lines > 200);
        for (id, facts) in MODELS.iter() {
            let is_listed_as_free = CATALOGUE
                .contains(&format!("{id:?}:{{\"input_nanousd_per_token\":0,\"output_nanousd_per_token\":0,"));
            assert_eq!(facts.price.is_none(), is_listed_as_free, "{id}");
        }
    }

    #[test]
    fn models_to_start_with_are_in_the_catalogue_and_not_being_retired() {
        for provider in &KNOWN {
            assert!(provider.starter_models.len() >= 3, "{} can fill a panel alone", provider.name);
            if provider.name == "openrouter" {
                continue;
            }
            for StarterModel { model: name, .. } in provider.starter_models {
                let id = format!("{}/{name}", provider.name);
                let facts = model(&id).unwrap_or_else(|| panic!("{id} is not in the catalogue"));
                assert!(facts.price.is_some(), "{id}");
                assert!(
                    facts.deprecation.is_none_or(|date| date > "2027-03-01"),
                    "{id} {:?}",
                    facts.deprecation
                );
            }
        }
    }

    #[test]
    fn facts_are_read_from_the_catalogue() {
        let facts = model("openai/gpt-5.4-mini").unwrap();
        let price = Price {
            cached_input_per_mtok: Some(NanoUsd(75_000_000)),
            ..Price::new(NanoUsd(750_000_000), NanoUsd(4_500_000_000))
        };
        assert_eq!(facts.price, Some(price));
        assert_eq!(facts.max_output_tokens, Some(128_000));
        assert!(facts.json_schema && facts.reasoning && facts.tools);
        assert_eq!(model("openai/gpt-4").unwrap().deprecation, Some("2026-10-23"));
        assert_eq!(model("openai/no-such-model"), None);
    }

    #[test]
    fn prices_are_exact_to_the_last_digit() {
        assert_eq!(per_mtok("37.5"), Some(NanoUsd(37_500_000)));
        assert_eq!(per_mtok("750"), Some(NanoUsd(750_000_000)));
        assert_eq!(per_mtok("0.000001"), Some(NanoUsd(1)));
        for wrong in ["0.0000001", "-1", "1e3", "", "\"3\"", "1.2.3"] {
            assert_eq!(per_mtok(wrong), None, "{wrong}");
        }
        let cohere = model("cohere/command-r7b-12-2024").unwrap().price.unwrap();
        assert_eq!(cohere.input_per_mtok, NanoUsd(37_500_000));
    }

    #[test]
    fn names_and_variables_are_unique() {
        for (index, provider) in KNOWN.iter().enumerate() {
            assert!(KNOWN[..index].iter().all(|other| other.name != provider.name
                && other.key_env != provider.key_env
                && other.base_url != provider.base_url));
            assert_eq!(known(provider.name).map(|found| found.name), Some(provider.name));
            if let Some(sole) = provider.kind.sole_provider() {
                assert_eq!(sole, provider.name, "a format of one maker is spoken by that maker");
            }
        }
        assert_eq!(known("ollama").map(|found| found.base_url), Some("http://127.0.0.1:11434/v1"));
        assert!(known("nobody").is_none());
    }
}
