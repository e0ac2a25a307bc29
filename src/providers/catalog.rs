//! Providers and models as data: who is known by which variable and address, which models to start with, and
//! what single models cost and can do.
//!
//! A provider that speaks a format we have is one entry of [`KNOWN`]. The facts about models come from
//! the embedded `catalogue.json` (list prices and capabilities as published by the providers, November 2026), one
//! model a line. It is parsed on first use, so that commands which need no model facts do not pay for it. What
//! the catalogue does not say stays unknown: an absent model has no price, never a price of zero.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Kind, Settings};
use crate::money::{NanoUsd, Price};

/// A provider that is recognised by its name, its usual variable or its port.
#[derive(Debug)]
pub struct Known {
    /// The name under which it is configured, the prefix of its models' identifiers.
    pub name: &'static str,
    /// The variable in which its users usually keep their key; `None` for a local server that wants none.
    pub key_env: Option<&'static str>,
    /// Its address for the format of `kind`.
    pub base_url: &'static str,
    /// The format it is spoken to in.
    pub kind: Kind,
    /// Models to start with, best first: cheap ones that extract and answer well.
    pub choices: &'static [Choice],
}

/// A model to start with.
#[derive(Debug)]
pub struct Choice {
    /// The provider's own name for it.
    pub model: &'static str,
    /// Who trained it. Models of one maker tend to err alike, whoever serves them.
    pub maker: &'static str,
}

impl Known {
    /// The provider with default settings and no key.
    pub fn settings(&self) -> Settings {
        Settings::new(self.name, self.kind, self.base_url)
    }
}

const fn choice(model: &'static str, maker: &'static str) -> Choice {
    Choice { model, maker }
}

/// The address of a local Ollama, recognised by its port.
pub const OLLAMA: Known = Known {
    name: "ollama",
    key_env: None,
    base_url: "http://127.0.0.1:11434/v1",
    kind: Kind::OpenAi,
    choices: &[],
};

/// The providers known by name, in the order in which panels are filled from them. Anthropic and Google are
/// spoken to in their own formats. `openrouter` stands last, as it serves the models of the others.
pub const KNOWN: [Known; 8] = [
    Known {
        name: "openai",
        key_env: Some("OPENAI_API_KEY"),
        base_url: "https://api.openai.com/v1",
        kind: Kind::OpenAi,
        choices: &[
            choice("gpt-5.4-mini", "openai"),
            choice("gpt-5.6-luna", "openai"),
            choice("gpt-4.1-mini", "openai"),
        ],
    },
    Known {
        name: "anthropic",
        key_env: Some("ANTHROPIC_API_KEY"),
        base_url: "https://api.anthropic.com/v1",
        kind: Kind::Anthropic,
        choices: &[
            choice("claude-haiku-4-5", "anthropic"),
            choice("claude-sonnet-5", "anthropic"),
            choice("claude-haiku-5-5", "anthropic"),
        ],
    },
    Known {
        name: "google",
        key_env: Some("GEMINI_API_KEY"),
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        kind: Kind::Google,
        choices: &[
            choice("gemini-3.5-flash", "google"),
            choice("gemini-3.8-flash", "google"),
            choice("gemini-2.5-flash", "google"),
        ],
    },
    Known {
        name: "mistral",
        key_env: Some("MISTRAL_API_KEY"),
        base_url: "https://api.mistral.ai/v1",
        kind: Kind::OpenAi,
        choices: &[
            choice("mistral-small-latest", "mistral"),
            choice("mistral-large-latest", "mistral"),
            choice("mistral-medium-latest", "mistral"),
        ],
    },
    Known {
        name: "groq",
        key_env: Some("GROQ_API_KEY"),
        base_url: "https://api.groq.com/openai/v1",
        kind: Kind::OpenAi,
        choices: &[
            choice("openai/gpt-oss-120b", "openai"),
            choice("qwen/qwen3.8-27b", "qwen"),
            choice("openai/gpt-oss-20b", "openai"),
        ],
    },
    Known {
        name: "xai",
        key_env: Some("XAI_API_KEY"),
        base_url: "https://api.x.ai/v1",
        kind: Kind::OpenAi,
        choices: &[
            choice("grok-4.3", "xai"),
            choice("grok-4.5", "xai"),
            choice("grok-4.20-non-reasoning", "xai"),
        ],
    },
    Known {
        name: "deepseek",
        key_env: Some("DEEPSEEK_API_KEY"),
        base_url: "https://api.deepseek.com/v1",
        kind: Kind::OpenAi,
        choices: &[
            choice("deepseek-v4-flash", "deepseek"),
            choice("deepseek-v4-pro", "deepseek"),
            choice("deepseek-v3.2", "deepseek"),
        ],
    },
    Known {
        name: "openrouter",
        key_env: Some("OPENROUTER_API_KEY"),
        base_url: "https://openrouter.ai/api/v1",
        kind: Kind::OpenAi,
        choices: &[
            choice("openai/gpt-5.4-mini", "openai"),
            choice("anthropic/claude-haiku-4.5", "anthropic"),
            choice("google/gemini-2.5-flash", "google"),
            choice("deepseek/deepseek-v3.2", "deepseek"),
            choice("x-ai/grok-4.20", "xai"),
        ],
    },
];

/// The provider with this name.
pub fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|provider| provider.name == name).or_else(|| (name == OLLAMA.name).then_some(&OLLAMA))
}

/// What is known of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelFacts {
    /// The list price; `None` where none is published, and for models listed at nothing at all.
    pub price: Option<Price>,
    /// The most tokens of a prompt.
    pub max_input_tokens: Option<u64>,
    /// The most tokens of an answer.
    pub max_output_tokens: Option<u64>,
    /// Whether it takes a JSON schema in the provider's own format.
    pub json_schema: bool,
    /// Whether it calls tools.
    pub tools: bool,
    /// Whether it reasons first.
    pub reasoning: bool,
    /// The date its provider retires it, `YYYY-MM-DD`.
    pub deprecation: Option<&'static str>,
}

/// What is known of the model with this identifier, `<provider>/<model_name>`.
pub fn model(id: &str) -> Option<ModelFacts> {
    MODELS.get(id).copied()
}

/// The identifiers of all models that the catalogue holds of a provider.
pub fn of_provider(name: &str) -> impl Iterator<Item = &'static str> {
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
        };
        let listed_at_nothing = price.input_per_mtok.0 == 0 && price.output_per_mtok.0 == 0;
        (!listed_at_nothing).then_some(price)
    }
}

/// Nano-dollars per million tokens from a decimal of nano-dollars per token, digit by digit: `37.5` is exactly
/// 37,500,000. More than six decimals would be less than a nano-dollar a million and are refused.
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
    fn the_whole_catalogue_parses() {
        let lines = CATALOGUE.lines().filter(|line| line.contains("nanousd")).count();
        assert_eq!(MODELS.len(), lines);
        assert!(lines > 200);
        for (id, facts) in MODELS.iter() {
            let listed_at_nothing = CATALOGUE
                .contains(&format!("{id:?}:{{\"input_nanousd_per_token\":0,\"output_nanousd_per_token\":0,"));
            assert_eq!(facts.price.is_none(), listed_at_nothing, "{id}");
        }
    }

    #[test]
    fn models_to_start_with_are_in_the_catalogue_and_not_being_retired() {
        for provider in &KNOWN {
            assert!(provider.choices.len() >= 3, "{} can fill a panel alone", provider.name);
            if provider.name == "openrouter" {
                continue;
            }
            for Choice { model: name, .. } in provider.choices {
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
    fn facts_are_those_of_the_catalogue() {
        let facts = model("openai/gpt-5.4-mini").unwrap();
        let price = Price { input_per_mtok: NanoUsd(750_000_000), output_per_mtok: NanoUsd(4_500_000_000) };
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
            if let Some(home) = provider.kind.home() {
                assert_eq!(home, provider.name, "a format of one maker is spoken by that maker");
            }
        }
        assert_eq!(known("ollama").map(|found| found.base_url), Some("http://127.0.0.1:11434/v1"));
        assert!(known("nobody").is_none());
    }
}
