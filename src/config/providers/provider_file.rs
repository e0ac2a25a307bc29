//! Parses `[providers.NAME]`, and turns it into provider settings.

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderName;

use super::key_places::KeyPlaces;
use super::resilience_file::{ModelPolicy, ProviderPolicy};
use crate::config::sources::origin::Origins;
use crate::config::sources::reader::{Located, Section};
use crate::config::sources::table::{Table, settings_table};
use crate::config::sources::values;
use crate::config::{ConfigError, Env};
use crate::model_id;
use crate::money::{NanoUsd, Price};
use crate::providers::catalog::{self, KnownProvider};
use crate::providers::{Kind, ModelSettings, Settings};

/// The name of the simulated provider, and of its kind.
pub(in crate::config) const SANDBOX: &str = "sandbox";

/// What `api_key_header` expects.
const KEY_HEADER: &str = "the name of the header for the key, such as \"api-key\"";

/// One `[providers.NAME]`.
pub(in crate::config) struct ProviderFile {
    pub(in crate::config) name: Located<String>,
    kind: Option<Located<String>>,
    base_url: Option<Located<String>>,
    keys: KeyPlaces,
    calls: ProviderTable,
    policy: ProviderPolicy,
    models: Vec<ModelFile>,
}

settings_table! {
    /// What all models of a provider have together.
    struct ProviderTable for Settings {
        /// concurrent calls
        max_concurrent: usize = number(1..=10_000);
        /// until connected
        connect_timeout: Duration = duration();
        /// Whether the provider has the Responses API; by default, a 404 shows that it does not. For kind openai.
        responses: bool = flag(), such as "true";
        /// Header for the key, if it is not the usual one of the format.
        api_key_header: HeaderName = parsed_unseen(KEY_HEADER, Settings::parse_key_header), such as "\"api-key\"";
    }
}

/// One `[providers.NAME.models."MODEL"]`.
struct ModelFile {
    name: Located<String>,
    input_usd_per_mtok: Option<Located<NanoUsd>>,
    output_usd_per_mtok: Option<Located<NanoUsd>>,
    cached_input_usd_per_mtok: Option<Located<NanoUsd>>,
    cache_write_usd_per_mtok: Option<Located<NanoUsd>>,
    fallbacks: Option<Located<Vec<String>>>,
    policy: ModelPolicy,
}

/// Reads `[providers]`.
pub(in crate::config) fn read_all(section: &Section<'_>) -> Result<Vec<ProviderFile>, ConfigError> {
    section.named_sections()?.into_iter().map(|(name, section)| provider(name, section)).collect()
}

fn provider(name: Located<String>, mut section: Section<'_>) -> Result<ProviderFile, ConfigError> {
    if !model_id::is_provider_name(&name.value) {
        return Err(name.place.error("is not a valid provider name: use only a-z, 0-9, - and _"));
    }
    let url = |text: &str| values::provider_url(text).map(|url| values::url_text(&url));
    let file = ProviderFile {
        name,
        kind: section.text("kind")?,
        base_url: section.parsed_unseen("base_url", values::PROVIDER_URL, url)?,
        keys: KeyPlaces::read(&mut section)?,
        calls: ProviderTable::read(&mut section)?,
        policy: ProviderPolicy::read(&mut section)?,
        models: match section.section("models")? {
            Some(models) => models
                .named_sections()?
                .into_iter()
                .map(|(name, section)| model(name, section))
                .collect::<Result<_, _>>()?,
            None => Vec::new(),
        },
    };
    section.finish()?;
    Ok(file)
}

fn model(name: Located<String>, mut section: Section<'_>) -> Result<ModelFile, ConfigError> {
    if !model_id::is_model_name(&name.value) {
        let max = model_id::MAX_NAME_BYTES;
        return Err(name.place.error(&format!("must be a model's name: one word of at most {max} bytes")));
    }
    let expected = "an amount in US dollars, not negative";
    let input = section.decimal("input_usd_per_mtok", expected, NanoUsd::from_usd)?;
    let output = section.decimal("output_usd_per_mtok", expected, NanoUsd::from_usd)?;
    if input.is_some() != output.is_some() {
        let complaint = "needs both `input_usd_per_mtok` and `output_usd_per_mtok`, or neither";
        return Err(name.place.error(complaint));
    }
    for key in ["connect_timeout", "max_concurrent"] {
        section.forbid(
            key,
            "applies to all models of a provider together",
            "set it in the provider's table",
        )?;
    }
    let cached = section.decimal("cached_input_usd_per_mtok", expected, NanoUsd::from_usd)?;
    let written = section.decimal("cache_write_usd_per_mtok", expected, NanoUsd::from_usd)?;
    if input.is_none() && (cached.is_some() || written.is_some()) {
        let complaint =
            "has a price for cached tokens, so it also needs `input_usd_per_mtok` and `output_usd_per_mtok`";
        return Err(name.place.error(complaint));
    }
    let fallbacks = section.texts("fallbacks")?;
    let policy = ModelPolicy::read(&mut section)?;
    let file = ModelFile {
        name,
        input_usd_per_mtok: input,
        output_usd_per_mtok: output,
        cached_input_usd_per_mtok: cached,
        cache_write_usd_per_mtok: written,
        fallbacks,
        policy,
    };
    section.finish()?;
    Ok(file)
}

impl ModelFile {
    fn price(&self) -> Option<Price> {
        let (input, output) = (self.input_usd_per_mtok.as_ref()?, self.output_usd_per_mtok.as_ref()?);
        Some(Price {
            cached_input_per_mtok: self.cached_input_usd_per_mtok.as_ref().map(|price| price.value),
            cache_write_per_mtok: self.cache_write_usd_per_mtok.as_ref().map(|price| price.value),
            ..Price::new(input.value, output.value)
        })
    }
}

impl ProviderFile {
    /// Its name.
    pub(in crate::config) fn name(&self) -> &str {
        &self.name.value
    }

    /// The models in this provider's table, in the order of the file.
    pub(in crate::config) fn model_names(&self) -> impl Iterator<Item = &str> {
        self.models.iter().map(|model| model.name.value.as_str())
    }

    /// The fallbacks of its models, with the models' identifiers and the locations.
    pub(in crate::config) fn fallbacks(&self) -> impl Iterator<Item = (String, &Located<Vec<String>>)> {
        let id = |model: &ModelFile| format!("{}/{}", self.name.value, model.name.value);
        self.models.iter().filter_map(move |model| Some((id(model), model.fallbacks.as_ref()?)))
    }

    /// The settings, including the key, which is read from where the file says.
    pub(in crate::config) fn settings(
        &self,
        env: &Env,
        origins: &mut Origins,
        warnings: &mut Vec<String>,
    ) -> Result<Settings, ConfigError> {
        let name = self.name.value.as_str();
        let kind = self.kind()?;
        let mut settings = Settings::new(name, kind, &self.address(kind)?);
        settings.responses =
            known_at_address(&settings.base_url).and_then(|known| known.settings().responses);
        let key = |field: &str| format!("providers.{name}.{field}");
        origins.record(key("kind"), self.kind.as_ref());
        origins.record(key("base_url"), self.base_url.as_ref());
        let mut keys = self.keys.keys(name, env, &key("api_key"), origins)?.into_iter();
        settings.api_key = keys.next();
        settings.further_api_keys = keys.collect();
        if let Some(found) = self.calls.api_key_header.as_ref().filter(|_| settings.api_key.is_none()) {
            return Err(found.place.error("needs a key").hint("set `api_key_env` or `api_key_file` too"));
        }
        if let Some(found) = self.calls.responses.as_ref().filter(|_| kind != Kind::OpenAi) {
            return Err(found.place.error("has a meaning for kind = \"openai\" only"));
        }
        let table = format!("providers.{name}");
        self.calls.apply(&table, &mut settings, origins);
        self.policy.apply(&table, &mut settings.call_policy, origins);
        settings.models = self.model_settings(origins);
        warnings.extend(self.key_warning(&settings));
        warnings.extend(self.format_warning(kind));
        Ok(settings)
    }

    fn kind(&self) -> Result<Kind, ConfigError> {
        let reserved = self.name.value == SANDBOX;
        let Some(kind) = &self.kind else {
            return Ok(if reserved { Kind::Sandbox } else { self.default_kind() });
        };
        match kind.value.as_str() {
            SANDBOX if reserved => Ok(Kind::Sandbox),
            SANDBOX => {
                Err(kind.place.error("is for simulated models").hint("name the table [providers.sandbox]"))
            }
            _ if reserved => Err(kind.place.error("must be \"sandbox\" for a provider of this name")),
            word => Kind::OF_APIS.into_iter().find(|known| known.name() == word).ok_or_else(|| {
                let words = Kind::OF_APIS.map(|known| format!("\"{}\"", known.name())).join(", ");
                kind.place.error(&format!("must be {words} or \"{SANDBOX}\""))
            }),
        }
    }

    /// The format if none is set: that of the provider known by this address, or by this name if no address is given
    /// either. An unknown address gets chat completions, as most providers speak that.
    fn default_kind(&self) -> Kind {
        let known = match &self.base_url {
            Some(found) => known_at_address(&found.value),
            None => catalog::known(&self.name.value),
        };
        known.map_or(Kind::OpenAi, |known| known.kind)
    }

    fn address(&self, kind: Kind) -> Result<String, ConfigError> {
        if kind == Kind::Sandbox {
            return match &self.base_url {
                Some(found) => {
                    Err(found.place.error("has no meaning for simulated models, which run in-process"))
                }
                None => Ok(String::new()),
            };
        }
        if let Some(found) = &self.base_url {
            return Ok(found.value.clone());
        }
        let known = catalog::known(kind.sole_provider().unwrap_or(&self.name.value));
        match known {
            Some(known) if known.kind == kind => Ok(known.base_url.to_owned()),
            Some(known) => {
                let complaint = format!("needs a `base_url` for kind = {:?}", kind.name());
                let remedy = format!("leave `kind` out to use its own format at {}", known.base_url);
                Err(self.name.place.error(&complaint).hint(remedy))
            }
            None => Err(self
                .name
                .place
                .error("needs a `base_url`, such as base_url = \"http://127.0.0.1:8000/v1\"")),
        }
    }

    fn model_settings(&self, origins: &mut Origins) -> BTreeMap<String, ModelSettings> {
        let mut settings = |model: &ModelFile| {
            let table = model_table(&self.name.value, &model.name.value);
            origins.record(format!("{table}.input_usd_per_mtok"), model.input_usd_per_mtok.as_ref());
            origins.record(format!("{table}.output_usd_per_mtok"), model.output_usd_per_mtok.as_ref());
            origins.record(
                format!("{table}.cached_input_usd_per_mtok"),
                model.cached_input_usd_per_mtok.as_ref(),
            );
            origins
                .record(format!("{table}.cache_write_usd_per_mtok"), model.cache_write_usd_per_mtok.as_ref());
            origins.record(format!("{table}.fallbacks"), model.fallbacks.as_ref());
            let mut settings = ModelSettings {
                price: model.price(),
                fallbacks: model.fallbacks.as_ref().map(|found| found.value.clone()).unwrap_or_default(),
                ..ModelSettings::default()
            };
            model.policy.apply(&table, &mut settings.call_policy, origins);
            settings
        };
        self.models.iter().map(|model| (model.name.value.clone(), settings(model))).collect()
    }

    /// A warning on a provider known to have its own format, at an address that is not its own: a proxy may expect
    /// either.
    fn format_warning(&self, kind: Kind) -> Option<String> {
        let name = &self.name.value;
        let usual = catalog::known(name).filter(|known| known.kind != kind && self.kind.is_none())?;
        Some(format!(
            "provider {name} is called in the format \"{}\", because its `base_url` is not the usual one; set \
             `kind` in [providers.{name}], to \"{}\" if the address uses that format",
            kind.name(),
            usual.kind.name()
        ))
    }

    /// A warning on what is allowed but probably not intended.
    fn key_warning(&self, settings: &Settings) -> Option<String> {
        let name = &self.name.value;
        if settings.api_key.is_some() {
            let url = values::provider_url(&settings.base_url)?;
            return values::is_unencrypted_remote(&url)
                .then(|| format!("the key of provider {name} is sent unencrypted to {}", settings.base_url));
        }
        let usual = known_at_address(&settings.base_url)?.key_env?;
        Some(format!(
            "provider {name} is called without a key; set api_key_env = \"{usual}\" in [providers.{name}]"
        ))
    }
}

/// The table of a model, as listings name it.
pub(in crate::config) fn model_table(provider: &str, model: &str) -> String {
    format!("providers.{provider}.models.{}", values::quoted(model))
}

/// The provider known to have this address.
pub(in crate::config) fn known_at_address(base_url: &str) -> Option<&'static KnownProvider> {
    catalog::KNOWN.iter().find(|known| known.base_url == base_url)
}
