//! Determines the providers: configured, recognised by their usual variables or port, or simulated.

use std::path::Path;

use super::ollama;
use super::panel::{self, Chosen, Offer};
use super::provider_file::SANDBOX;
use crate::config::server::NamedProvider;
use crate::config::server::server_file::ServerFile;
use crate::config::sources::origin::{Origin, Origins};
use crate::config::{ConfigError, Env};
use crate::providers::{Kind, Settings, catalog};

/// The providers of `--sandbox`.
pub fn sandbox_providers() -> Vec<Settings> {
    vec![Settings::new(SANDBOX, Kind::Sandbox, "")]
}

/// The providers, and what is chosen from them where the file leaves it open.
pub(in crate::config) struct FoundProviders {
    pub(in crate::config) providers: Vec<Settings>,
    pub(in crate::config) chosen: Chosen,
    pub(in crate::config) notes: Vec<String>,
    pub(in crate::config) warnings: Vec<String>,
}

/// The providers: simulated ones if requested, otherwise those of the file, otherwise those that can be recognised,
/// which may be none.
pub(in crate::config) fn providers(
    sandbox: bool,
    env: &Env,
    file: &ServerFile,
    origins: &mut Origins,
) -> Result<FoundProviders, ConfigError> {
    if sandbox {
        origins.set("providers.sandbox.kind", Origin::Flag("--sandbox"));
        return Ok(FoundProviders {
            providers: sandbox_providers(),
            chosen: panel::sandbox(),
            notes: Vec::new(),
            warnings: Vec::new(),
        });
    }
    if file.providers.is_empty() {
        return recognised_by_environment(env, origins);
    }
    let mut warnings = Vec::new();
    let providers = file
        .providers
        .iter()
        .map(|provider| provider.settings(env, origins, &mut warnings))
        .collect::<Result<Vec<_>, _>>()?;
    let only_simulated = providers.iter().all(|settings| settings.kind == Kind::Sandbox);
    let chosen = if only_simulated {
        panel::sandbox()
    } else {
        panel::choose(&panel::offers(&providers, &file.providers))
    };
    let names: Vec<&str> = providers.iter().map(|settings| settings.name.as_str()).collect();
    let notes = vec![format!("providers configured: {}", names.join(", "))];
    Ok(FoundProviders { providers, chosen, notes, warnings })
}

/// Each provider separately, so that a wrong one does not hide the others: those of the file, otherwise those that can
/// be recognised, which may be none.
pub(in crate::config) fn each_provider(env: &Env, file: &ServerFile) -> Vec<NamedProvider> {
    let (mut origins, mut warnings) = (Origins::default(), Vec::new());
    if file.providers.is_empty() {
        let found =
            recognised_by_environment(env, &mut origins).map(|found| found.providers).unwrap_or_default();
        return found.into_iter().map(|settings| (settings.name.clone(), Ok(settings))).collect();
    }
    let providers = file.providers.iter();
    providers
        .map(|provider| (provider.name().to_owned(), provider.settings(env, &mut origins, &mut warnings)))
        .collect()
}

/// Providers recognised by their usual variables, and a local Ollama recognised by its port; may be none.
fn recognised_by_environment(env: &Env, origins: &mut Origins) -> Result<FoundProviders, ConfigError> {
    let mut providers = Vec::new();
    let mut offers = Vec::new();
    let mut reasons = Vec::new();
    for known in &catalog::KNOWN {
        let Some(variable) = known.key_env else { continue };
        let Some(key) = env.secret(variable)? else { continue };
        let mut settings = known.settings();
        settings.api_key = Some(key);
        origins.set(format!("providers.{}.api_key", known.name), Origin::Variable(variable));
        origins.set(format!("providers.{}.kind", known.name), Origin::Chosen);
        origins.set(format!("providers.{}.base_url", known.name), Origin::Chosen);
        reasons.push(format!("{} ({variable})", known.name));
        offers.extend(Offer::known(&settings));
        providers.push(settings);
    }
    if let Some(models) = ollama::installed_models(env.ollama).filter(|models| !models.is_empty()) {
        let name = catalog::OLLAMA.name;
        reasons.push(format!("{name} ({}, {} models)", env.ollama, models.len()));
        offers.push(Offer::named(name, models.iter().map(String::as_str)));
        origins.set(format!("providers.{name}.base_url"), Origin::Chosen);
        providers.push(Settings::new(name, Kind::OpenAi, &format!("http://{}/v1", env.ollama)));
    }
    let notes = vec![format!("providers found: {}", reasons.join(", "))];
    Ok(FoundProviders { providers, chosen: panel::choose(&offers), notes, warnings: Vec::new() })
}

/// The error if there is no provider, and `path` has no table for any; `trial` is a command that needs none.
pub(in crate::config) fn no_providers(path: Option<&Path>, trial: &str) -> ConfigError {
    let variables: Vec<_> = catalog::KNOWN.iter().filter_map(|known| known.key_env).collect();
    ConfigError::new("no model provider is configured, and none was found")
        .hint(format!("set the key of at least one provider: {}", variables.join(", ")))
        .hint(match path {
            Some(path) => {
                format!("or configure them in {}, in a table [providers.NAME] for each", path.display())
            }
            None => {
                "or configure providers in a file: `mk config init` writes a commented server.toml".to_owned()
            }
        })
        .hint(format!("or start with simulated models: `{trial}`"))
}
