//! The client's configuration. Precedence: flags, variables, the project's file, the user's file, defaults.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use reqwest::Url;

use super::sources::origin::{Origin, Origins};
use super::sources::reader::Located;
use super::sources::{paths, values};
use super::{ColorMode, ConfigError, Env, FailOn, ProgressMode, View, suggest};
use crate::api::Service;
use crate::api::verify::Domain;
use crate::model_id;
use crate::secret::SecretString;
use api_keys::ApiKeys;
use client_file::ClientFile;

/// Where `mk serve` listens by default.
pub const DEFAULT_SERVER: &str = "http://127.0.0.1:8080";

/// How many statements are verified at a time by default.
pub const DEFAULT_JOBS: usize = 4;

/// The values of flags; `None` for those that are not given.
#[derive(Clone, Debug, Default)]
pub struct ClientArgs {
    /// `--server`.
    pub server: Option<String>,
    /// `--profile`.
    pub profile: Option<String>,
    /// `--api-key-file`.
    pub api_key_file: Option<PathBuf>,
    /// `--timeout`.
    pub timeout: Option<String>,
    /// `--ca-cert`.
    pub ca_cert: Option<PathBuf>,
    /// `--color`.
    pub color: Option<ColorMode>,
    /// `--progress`.
    pub progress: Option<ProgressMode>,
    /// `--view`.
    pub view: Option<View>,
}

/// The key of [`ClientConfig::chat_model`].
const CHAT_MODEL: &str = "chat.model";

/// A client's complete, validated configuration.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The server's base address, without a trailing slash.
    pub server: String,
    /// Where the server was set; see [`Origin::is_set`].
    pub server_origin: Origin,
    /// The profile in use, if one is.
    pub profile: Option<String>,
    /// Time limit for a whole command, if set.
    pub timeout: Option<Duration>,
    /// Further certificate authorities to trust, a PEM file.
    pub ca_cert: Option<PathBuf>,
    /// When to colour.
    pub color: ColorMode,
    /// How to show progress.
    pub progress: ProgressMode,
    /// How to lay out results.
    pub view: View,
    /// Defaults for the flags of `mk verify`.
    pub verify: VerifyDefaults,
    /// The model for `mk chat` if no flag names one.
    pub chat_model: Option<String>,
    /// Warnings: what is allowed, but probably not intended.
    pub warnings: Vec<String>,
    api_keys: ApiKeys,
    pub(super) origins: Origins,
}

/// Settings for `mk verify` in files; `None` where they have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyDefaults {
    /// The kind of statement.
    pub domain: Option<Domain>,
    /// 2 or 3.
    pub min_required: Option<u32>,
    /// 2 to 9.
    pub total_models: Option<u32>,
    /// How many statements are verified concurrently.
    pub jobs: Option<usize>,
    /// Verdicts that make the command fail.
    pub fail_on: Option<Vec<FailOn>>,
}

impl ClientConfig {
    /// The key for a service of the configured server, if there is one.
    ///
    /// # Errors
    /// If it cannot be determined because the file that it would come from cannot be read: a failure for whoever needs
    /// this very key, and for nobody else.
    pub fn key_for(&self, service: Service) -> Result<Option<SecretString>, ConfigError> {
        Ok(self.api_keys.key(service)?.cloned())
    }

    /// Where that key comes from, or would come from if it could be read; [`Origin::Default`] if there is none.
    pub fn key_origin(&self, service: Service) -> Origin {
        self.api_keys.origin(service)
    }

    /// The servers, by origin, for which a key for this service is stored.
    pub fn servers_with_key(&self, service: Service) -> impl Iterator<Item = &str> {
        self.api_keys.servers_with_key(service)
    }

    /// Where a value comes from, by its key in `mk config list`.
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key)
    }

    /// Where [`ClientConfig::chat_model`] comes from.
    pub fn chat_model_origin(&self) -> Origin {
        self.origins.get(CHAT_MODEL)
    }
}

/// Loads the client's configuration.
///
/// # Errors
/// The first error found.
pub fn load_client(args: &ClientArgs, env: &Env) -> Result<ClientConfig, ConfigError> {
    let user = paths::client_file(env).map(|path| client_file::read_user(&path)).transpose()?.flatten();
    let user = user.unwrap_or_default();
    let project =
        paths::project_file(env).map(|path| client_file::read_project(&path)).transpose()?.flatten();
    let project = project.unwrap_or_default();
    let mut origins = Origins::default();
    let mut warnings = env.misspelt_warnings();

    let server = server(args, env, &user)?;
    origins.set("server", server.origin.clone());
    if let Some((_, origin)) = &server.profile {
        origins.set("profile", origin.clone());
    }
    if values::is_unencrypted_remote(&server.url) {
        let address = values::url_text(&server.url);
        warnings.push(format!("{address} is plain http: keys and texts can be read on the way; use https"));
    }
    let api_keys =
        ApiKeys::resolve(args.api_key_file.as_deref(), env, &credentials::origin(&server.url), &mut warnings);
    for service in Service::ALL {
        origins.set(format!("keys.{service}"), api_keys.origin(service));
    }
    Ok(ClientConfig {
        server: values::url_text(&server.url),
        server_origin: server.origin,
        profile: server.profile.map(|(name, _)| name),
        timeout: timeout(args, env, user.timeout.as_ref(), &mut origins)?,
        ca_cert: ca_cert(args, env, user.ca_cert.as_ref(), &mut origins),
        color: choice(
            ChoiceSources { key: "output.color", flag: ("--color", args.color), variable: Some("MK_COLOR") },
            env,
            project.output.color.as_ref().or(user.output.color.as_ref()),
            &mut origins,
        )?,
        progress: choice(
            ChoiceSources {
                key: "output.progress",
                flag: ("--progress", args.progress),
                variable: Some("MK_PROGRESS"),
            },
            env,
            project.output.progress.as_ref().or(user.output.progress.as_ref()),
            &mut origins,
        )?,
        view: choice(
            ChoiceSources { key: "output.view", flag: ("--view", args.view), variable: None },
            env,
            project.output.view.as_ref().or(user.output.view.as_ref()),
            &mut origins,
        )?,
        verify: verify(&project, &user, &mut origins),
        chat_model: chat_model(env, user.chat_model.as_ref(), &mut origins)?,
        warnings,
        api_keys,
        origins,
    })
}

/// The server, and where it was set.
struct Server {
    url: Url,
    origin: Origin,
    /// The profile that names it, and where that was set.
    profile: Option<(String, Origin)>,
}

/// Selects the server. A flag that names a profile outranks a variable that names a server, as flags outrank variables.
fn server(args: &ClientArgs, env: &Env, user: &ClientFile) -> Result<Server, ConfigError> {
    if let Some(text) = &args.server {
        return named_server(text, Origin::Flag("--server"));
    }
    if let Some(name) = &args.profile {
        return profile(name, &Origin::Flag("--profile"), user);
    }
    if let Some(text) = env.text("MK_SERVER")? {
        return named_server(text, Origin::Variable("MK_SERVER"));
    }
    if let Some(name) = env.text("MK_PROFILE")? {
        return profile(name, &Origin::Variable("MK_PROFILE"), user);
    }
    match &user.profile {
        Some(found) => profile(&found.value, &found.place.origin(), user),
        None => named_server(DEFAULT_SERVER, Origin::Default),
    }
}

fn named_server(text: &str, origin: Origin) -> Result<Server, ConfigError> {
    let Some(url) = values::base_url(text) else {
        let error = ConfigError::new(format!("{origin} must be {}", values::BASE_URL));
        return Err(match values::base_url_meant(text) {
            Some(meant) => error.hint(format!("did you mean {meant}?")),
            None => error,
        });
    };
    Ok(Server { url, origin, profile: None })
}

fn profile(name: &str, origin: &Origin, user: &ClientFile) -> Result<Server, ConfigError> {
    let names = || user.profiles.iter().map(|(found, _)| found.value.as_str());
    let Some((_, server)) = user.profiles.iter().find(|(found, _)| found.value == name) else {
        let question = suggest::did_you_mean(name, names());
        let shown = name.escape_debug();
        let error =
            ConfigError::new(format!("there is no profile `{shown}` ({origin})")).hint_if_any(question);
        let known = names().collect::<Vec<_>>().join(", ");
        return Err(if known.is_empty() {
            error.hint("profiles stand in config.toml, as [profiles.NAME] with server = \"…\"")
        } else {
            error.hint(format!("profiles in config.toml: {known}"))
        });
    };
    let profile = Some((name.to_owned(), origin.clone()));
    Ok(Server { url: server.value.clone(), origin: server.place.origin(), profile })
}

fn timeout(
    args: &ClientArgs,
    env: &Env,
    found: Option<&Located<Duration>>,
    origins: &mut Origins,
) -> Result<Option<Duration>, ConfigError> {
    let from_variable = env.text("MK_TIMEOUT")?.map(|text| (text, Origin::Variable("MK_TIMEOUT")));
    let from_flag_or_variable =
        args.timeout.as_deref().map(|text| (text, Origin::Flag("--timeout"))).or(from_variable);
    let Some((text, origin)) = from_flag_or_variable else {
        origins.record("network.timeout", found);
        return Ok(found.map(|found| found.value));
    };
    let wrong = || {
        let meant = format!("{text}s");
        let is_number = values::duration(&meant).is_some();
        let error = ConfigError::new(format!("{origin} must be {}", values::DURATION));
        error.hint_if_any(is_number.then(|| format!("did you mean `{meant}`?")))
    };
    let span = values::duration(text).ok_or_else(wrong)?;
    origins.set("network.timeout", origin);
    Ok(Some(span))
}

fn ca_cert(
    args: &ClientArgs,
    env: &Env,
    found: Option<&Located<String>>,
    origins: &mut Origins,
) -> Option<PathBuf> {
    if let Some(path) = &args.ca_cert {
        origins.set("network.ca_cert", Origin::Flag("--ca-cert"));
        return Some(path.clone());
    }
    if let Some(path) = env.path("MK_CACERT") {
        origins.set("network.ca_cert", Origin::Variable("MK_CACERT"));
        return Some(path);
    }
    origins.record("network.ca_cert", found);
    found.map(|found| found.place.resolve(&found.value))
}

/// The sources of a setting with a fixed set of words.
struct ChoiceSources<T> {
    key: &'static str,
    flag: (&'static str, Option<T>),
    variable: Option<&'static str>,
}

fn choice<T: ValueEnum + Default>(
    sources: ChoiceSources<T>,
    env: &Env,
    found: Option<&Located<T>>,
    origins: &mut Origins,
) -> Result<T, ConfigError> {
    if let (name, Some(value)) = sources.flag {
        origins.set(sources.key, Origin::Flag(name));
        return Ok(value);
    }
    if let Some(name) = sources.variable
        && let Some(text) = env.text(name)?
    {
        origins.set(sources.key, Origin::Variable(name));
        let wrong = || ConfigError::new(format!("{name} must be {}", choices::words::<T>()));
        return choices::parse(text).ok_or_else(wrong);
    }
    Ok(origins.value_or(sources.key, found, T::default()))
}

fn chat_model(
    env: &Env,
    found: Option<&Located<String>>,
    origins: &mut Origins,
) -> Result<Option<String>, ConfigError> {
    if let Some(text) = env.text("MK_MODEL")? {
        if model_id::parse(text).is_none() {
            return Err(ConfigError::new(format!("MK_MODEL must be {}", values::MODEL)));
        }
        origins.set(CHAT_MODEL, Origin::Variable("MK_MODEL"));
        return Ok(Some(text.to_owned()));
    }
    origins.record(CHAT_MODEL, found);
    Ok(found.map(|found| found.value.clone()))
}

fn verify(project: &ClientFile, user: &ClientFile, origins: &mut Origins) -> VerifyDefaults {
    let (project, user) = (&project.verify, &user.verify);
    VerifyDefaults {
        domain: project_or_user("verify.domain", project.domain.as_ref(), user.domain.as_ref(), origins),
        min_required: project_or_user(
            "verify.min_required",
            project.min_required.as_ref(),
            user.min_required.as_ref(),
            origins,
        ),
        total_models: project_or_user(
            "verify.total_models",
            project.total_models.as_ref(),
            user.total_models.as_ref(),
            origins,
        ),
        jobs: project_or_user("verify.jobs", project.jobs.as_ref(), user.jobs.as_ref(), origins),
        fail_on: project_or_user("verify.fail_on", project.fail_on.as_ref(), user.fail_on.as_ref(), origins),
    }
}

fn project_or_user<T: Clone>(
    key: &str,
    project: Option<&Located<T>>,
    user: Option<&Located<T>>,
    origins: &mut Origins,
) -> Option<T> {
    let found = project.or(user);
    origins.record(key, found);
    found.map(|found| found.value.clone())
}

pub(super) mod api_keys;
pub(super) mod choices;
pub(super) mod client_file;
pub mod credentials;
pub(super) mod profiles;
#[cfg(test)]
mod tests;
