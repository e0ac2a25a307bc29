//! The client's configuration. Precedence: flags, variables, the project's file, the user's file, defaults.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use reqwest::Url;

use super::sources::origin::{Origin, Origins};
use super::sources::table::{self, Row, Table};
use super::sources::{paths, values};
use super::{ColorMode, ConfigError, Env, FailOn, ProgressMode, View, suggest};
use crate::api::Service;
use crate::api::verify::Domain;
use crate::secret::SecretString;
use api_keys::ApiKeys;
use client_file::{ChatTable, ClientFile, NetworkTable, OutputTable, VerifyTable};

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

/// What holds without any file, flag or variable.
impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            server: DEFAULT_SERVER.to_owned(),
            server_origin: Origin::Default,
            profile: None,
            timeout: None,
            ca_cert: None,
            color: ColorMode::default(),
            progress: ProgressMode::default(),
            view: View::default(),
            verify: VerifyDefaults::default(),
            chat_model: None,
            warnings: Vec::new(),
            api_keys: ApiKeys::default(),
            origins: Origins::default(),
        }
    }
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
        warnings
            .push(format!("{address} is plain http: others can read keys and texts on the way; use https"));
    }
    let api_keys =
        ApiKeys::resolve(args.api_key_file.as_deref(), env, &credentials::origin(&server.url), &mut warnings);
    for service in Service::ALL {
        origins.set(format!("keys.{service}"), api_keys.origin(service));
    }
    let mut config = ClientConfig {
        server: values::url_text(&server.url),
        server_origin: server.origin,
        profile: server.profile.map(|(name, _)| name),
        warnings,
        api_keys,
        ..ClientConfig::default()
    };
    project.verify.completed_by(&user.verify).apply("verify", &mut config.verify, &mut origins);
    project.output.completed_by(&user.output).apply("output", &mut config, &mut origins);
    user.network.apply("network", &mut config, &mut origins);
    user.chat.apply("chat", &mut config, &mut origins);
    config.outranked_by(args, env, &mut origins)?;
    Ok(ClientConfig { origins, ..config })
}

impl ClientConfig {
    /// Takes flags and variables in place of what files say.
    fn outranked_by(
        &mut self,
        args: &ClientArgs,
        env: &Env,
        origins: &mut Origins,
    ) -> Result<(), ConfigError> {
        choice(&mut self.color, "output.color", ("--color", args.color), Some("MK_COLOR"), env, origins)?;
        let progress = ("--progress", args.progress);
        choice(&mut self.progress, "output.progress", progress, Some("MK_PROGRESS"), env, origins)?;
        choice(&mut self.view, "output.view", ("--view", args.view), None, env, origins)?;
        if let Some((timeout, origin)) = timeout(args, env)? {
            origins.set("network.timeout", origin);
            self.timeout = Some(timeout);
        }
        let flag = args.ca_cert.clone().map(|path| (path, Origin::Flag("--ca-cert")));
        let variable = || env.path("MK_CACERT").map(|path| (path, Origin::Variable("MK_CACERT")));
        if let Some((path, origin)) = flag.or_else(variable) {
            origins.set("network.ca_cert", origin);
            self.ca_cert = Some(path);
        }
        if let Some(text) = env.text("MK_MODEL")? {
            let wrong = || ConfigError::new(format!("MK_MODEL must be {}", values::MODEL));
            self.chat_model = Some(values::model(text).ok_or_else(wrong)?);
            origins.set(CHAT_MODEL, Origin::Variable("MK_MODEL"));
        }
        Ok(())
    }
}

/// The tables of the user's file, and those that a project's file may have too, each setting with an example.
pub fn client_samples() -> [String; 2] {
    let config = ClientConfig::default();
    let table = |name: &str, rows: &[Row]| format!("[{name}]\n{}", table::sample(rows));
    let user = [table("network", &NetworkTable::rows(&config)), table("chat", &ChatTable::rows(&config))];
    let project =
        [table("verify", &VerifyTable::rows(&config.verify)), table("output", &OutputTable::rows(&config))];
    [user.join("\n"), project.join("\n")]
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
            error.hint("define profiles in config.toml, as [profiles.NAME] with server = \"…\"")
        } else {
            error.hint(format!("profiles in config.toml: {known}"))
        });
    };
    let profile = Some((name.to_owned(), origin.clone()));
    Ok(Server { url: server.value.clone(), origin: server.place.origin(), profile })
}

/// What a flag or variable says of the time limit.
fn timeout(args: &ClientArgs, env: &Env) -> Result<Option<(Duration, Origin)>, ConfigError> {
    let from_variable = env.text("MK_TIMEOUT")?.map(|text| (text, Origin::Variable("MK_TIMEOUT")));
    let from_flag = args.timeout.as_deref().map(|text| (text, Origin::Flag("--timeout")));
    let Some((text, origin)) = from_flag.or(from_variable) else { return Ok(None) };
    let wrong = || {
        let meant = Some(format!("{text}s")).filter(|meant| values::duration(meant).is_some());
        let error = ConfigError::new(format!("{origin} must be {}", values::DURATION));
        error.hint_if_any(meant.map(|meant| format!("did you mean `{meant}`?")))
    };
    let span = values::duration(text).ok_or_else(wrong)?;
    Ok(Some((span, origin)))
}

/// Takes the word of a flag or variable, if there is one.
fn choice<T: ValueEnum>(
    setting: &mut T,
    key: &'static str,
    (flag, given): (&'static str, Option<T>),
    variable: Option<&'static str>,
    env: &Env,
    origins: &mut Origins,
) -> Result<(), ConfigError> {
    if let Some(value) = given {
        origins.set(key, Origin::Flag(flag));
        *setting = value;
        return Ok(());
    }
    let Some(name) = variable else { return Ok(()) };
    if let Some(text) = env.text(name)? {
        let wrong = || ConfigError::new(format!("{name} must be {}", choices::words::<T>()));
        *setting = choices::parse(text).ok_or_else(wrong)?;
        origins.set(key, Origin::Variable(name));
    }
    Ok(())
}

pub(super) mod api_keys;
pub(super) mod choices;
pub(super) mod client_file;
pub mod credentials;
pub(super) mod profiles;
#[cfg(test)]
mod tests;
