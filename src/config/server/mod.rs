//! The server's configuration. Precedence: flags, variables, `server.toml`, defaults.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::providers::{discovery, models};
use super::sources::origin::{Origin, Origins};
use super::sources::paths;
use super::sources::reader::Located;
use super::sources::table::Table;
use super::{ConfigError, Env};
use crate::limits::LimitsStore;
use crate::net::inbound::tls::TlsFiles;
use crate::providers::Settings;
use crate::secret::ExposeSecret;
use crate::storage::{DatabaseUrl, PostgresAddress};
use crate::{model_id, os_error};
use server_file::ServerFile;

const DATABASE_URL: &str = "MK_DATABASE_URL";
const LIMITS_URL: &str = "MK_LIMITS_URL";

/// A server's complete, validated configuration.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The directory of `mk.db`, if that is used. It may not exist yet.
    pub data_dir: PathBuf,
    /// Where apps, keys and usage are stored.
    pub database: DatabaseUrl,
    /// Peers whose `X-Forwarded-For` header is trusted.
    pub trusted_proxies: Vec<ipnet::IpNet>,
    /// Certificate chain and private key.
    pub tls: Option<TlsFiles>,
    /// The largest request body, in bytes.
    pub max_body_bytes: usize,
    /// The largest body of a request to a model, in bytes.
    pub inference_max_body_bytes: usize,
    /// Rate limits.
    pub limits: crate::limits::Settings,
    /// Where rate limits are counted.
    pub limits_store: LimitsStore,
    /// Providers; names are unique.
    pub providers: Vec<Settings>,
    /// Panels.
    pub verify: crate::verify::Settings,
    /// Chat completions.
    pub inference: crate::inference::Settings,
    /// How long single attempts stay in the ledger; `None` for ever. Their totals always stay.
    pub usage_retention: Option<Duration>,
    /// Where traces are sent.
    pub traces: crate::traces::Settings,
    /// The file that was read, if there is one.
    pub file: Option<PathBuf>,
    /// What was found and chosen at start, and why, to be shown.
    pub notes: Vec<String>,
    /// Warnings: what is allowed, but probably not intended.
    pub warnings: Vec<String>,
    pub(super) origins: Origins,
}

/// What holds without any file, flag or variable; there are no providers, and no directory yet.
impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            data_dir: PathBuf::new(),
            database: DatabaseUrl::Sqlite,
            trusted_proxies: Vec::new(),
            tls: None,
            max_body_bytes: 1024 * 1024,
            inference_max_body_bytes: 32 * 1024 * 1024,
            limits: crate::limits::Settings::default(),
            limits_store: LimitsStore::Memory,
            providers: Vec::new(),
            verify: crate::verify::Settings::default(),
            inference: crate::inference::Settings::default(),
            usage_retention: None,
            traces: crate::traces::Settings::default(),
            file: None,
            notes: Vec::new(),
            warnings: Vec::new(),
            origins: Origins::default(),
        }
    }
}

/// The values of flags; `None` for those that are not given.
#[derive(Clone, Debug, Default)]
pub struct ServerArgs {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--listen`.
    pub listen: Option<String>,
    /// `--data-dir`.
    pub data_dir: Option<PathBuf>,
    /// `--sandbox`: simulated models in place of all providers.
    pub sandbox: bool,
}

/// Loads the server's configuration.
///
/// Reads the configuration file, key files and variables; if no provider is configured, also probes the port of a local
/// Ollama.
///
/// # Errors
/// The first thing that is wrong or missing.
pub fn load_server(args: &ServerArgs, env: &Env) -> Result<ServerConfig, ConfigError> {
    load(args, env, Some("mk serve --sandbox"))
}

/// The same for another command than `mk serve`, of which `trial` is the one that needs no provider.
///
/// # Errors
/// The first thing that is wrong or missing.
pub fn load_server_for(args: &ServerArgs, env: &Env, trial: &str) -> Result<ServerConfig, ConfigError> {
    load(args, env, Some(trial))
}

/// Loads the configuration even without a provider, although a server cannot start then: for whoever wants to see the
/// rest.
///
/// # Errors
/// The first error found.
pub fn load_server_values(args: &ServerArgs, env: &Env) -> Result<ServerConfig, ConfigError> {
    load(args, env, None)
}

/// Loads it. If there is no provider, it is an error where `trial` names a command that needs none.
fn load(args: &ServerArgs, env: &Env, trial: Option<&str>) -> Result<ServerConfig, ConfigError> {
    let (path, file) = open(args, env)?;
    let mut origins = Origins::default();
    // Before a provider is looked for: a mistake on the command line is told before what it lacks.
    let listen = listen(args, env, file.listen.as_ref(), &mut origins)?;
    let mut found = discovery::providers(args.sandbox, env, &file, &mut origins)?;
    if let Some(trial) = trial.filter(|_| found.providers.is_empty()) {
        return Err(discovery::no_providers(path.as_deref(), trial));
    }
    found.warnings.extend(env.misspelt_warnings());

    let providers = models::Providers(&found.providers);
    let (verify, inference) = if args.sandbox {
        (models::sandbox(&file.verify, &mut origins)?, crate::inference::Settings::default())
    } else {
        providers.check_fallbacks(&file.providers)?;
        let verify = providers.verify(&file.verify, &found.chosen, &mut origins)?;
        (verify, providers.inference(&file, &mut origins)?)
    };
    found.notes.extend(panel_notes(&verify.general, &origins.get("verify.panel"), found.chosen.makers));
    if args.sandbox {
        found.notes.extend(ignored_by_sandbox(path.as_deref(), &file));
    }
    found.notes.extend(models::unpriced(&verify, &found.providers));
    found.warnings.extend(models::retirements(&verify, &inference, &found.providers, env.now));
    found.warnings.extend(panel_doubts(&verify, &origins));
    found.warnings.extend(models::unverifiable(&verify, &inference));

    let traces = traces::traces(file.otlp_endpoint.as_ref(), env, &mut origins, &mut found.warnings)?;
    let mut config = ServerConfig {
        listen,
        traces,
        data_dir: data_dir(args, env, file.data_dir.as_ref(), &mut origins)?,
        database: database(file.database_url.as_ref(), env, &mut origins)?,
        tls: tls(&file, &mut origins)?,
        limits_store: limits_store(file.limits_url.as_ref(), env, &mut origins)?,
        providers: found.providers,
        verify,
        inference,
        file: path,
        notes: found.notes,
        warnings: found.warnings,
        ..ServerConfig::default()
    };
    file.general.apply("", &mut config, &mut origins);
    file.limits.apply("limits", &mut config.limits, &mut origins);
    file.end_users.apply("limits.end_users", &mut config.limits, &mut origins);
    file.usage.apply("usage", &mut config, &mut origins);
    Ok(ServerConfig { origins, ..config })
}

/// Where the database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorePlace {
    /// Files in this directory.
    Directory(PathBuf),
    /// A PostgreSQL server.
    Postgres(PostgresAddress),
}

/// Without user and password.
impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(dir) => dir.display().fmt(f),
            Self::Postgres(address) => address.fmt(f),
        }
    }
}

impl ServerConfig {
    /// Where the database is.
    pub fn store_place(&self) -> StorePlace {
        match &self.database {
            DatabaseUrl::Sqlite => StorePlace::Directory(self.data_dir.clone()),
            DatabaseUrl::Postgres(address) => StorePlace::Postgres(address.clone()),
        }
    }
}

/// Where the database is, for commands that work on it beside a server; a directory that a flag names outranks all
/// else. The file is validated, but no provider is needed.
///
/// # Errors
/// If the file or the variable is wrong, or there is no home directory to default to.
pub fn load_database(args: &ServerArgs, env: &Env) -> Result<StorePlace, ConfigError> {
    let (_, file) = open(args, env)?;
    let origins = &mut Origins::default();
    if args.data_dir.is_none()
        && let DatabaseUrl::Postgres(address) = database(file.database_url.as_ref(), env, origins)?
    {
        return Ok(StorePlace::Postgres(address));
    }
    data_dir(args, env, file.data_dir.as_ref(), origins).map(StorePlace::Directory)
}

/// Where rate limits are counted, for checking on that store. The file is validated, but no provider is needed.
///
/// # Errors
/// If the file or the variable is wrong.
pub fn load_limits_store(args: &ServerArgs, env: &Env) -> Result<LimitsStore, ConfigError> {
    let (_, file) = open(args, env)?;
    limits_store(file.limits_url.as_ref(), env, &mut Origins::default())
}

/// Where a server would listen, and whether with TLS, for looking for it there although something else in its file is
/// wrong. `None` if that cannot be read.
pub fn load_listen(args: &ServerArgs, env: &Env) -> Option<(SocketAddr, bool)> {
    let file = server_path(args, env).filter(|path| path.exists());
    let (found, has_tls) = match file {
        Some(path) => server_file::read_listen(&path)?,
        None => (None, false),
    };
    let address = listen(args, env, found.as_ref(), &mut Origins::default()).ok()?;
    Some((address, has_tls))
}

/// A provider's configured name, with its settings or what is wrong with them.
pub type NamedProvider = (String, Result<Settings, ConfigError>);

/// Each provider separately, with any error in its settings: for whoever wants to see all of them where [`load_server`]
/// fails. Empty if none is configured and none is recognised.
///
/// # Errors
/// If the whole file is wrong.
pub fn load_providers(args: &ServerArgs, env: &Env) -> Result<Vec<NamedProvider>, ConfigError> {
    let (_, file) = open(args, env)?;
    Ok(discovery::each_provider(env, &file))
}

/// The path of the configuration file: `--config`, `MK_CONFIG` or the default, whether or not it exists.
pub fn server_path(args: &ServerArgs, env: &Env) -> Option<PathBuf> {
    named_file(args, env).or_else(|| paths::server_file(env))
}

fn named_file(args: &ServerArgs, env: &Env) -> Option<PathBuf> {
    args.config.clone().or_else(|| env.path("MK_CONFIG"))
}

/// Reads the configuration file: one that is named must exist, the default one need not.
fn open(args: &ServerArgs, env: &Env) -> Result<(Option<PathBuf>, ServerFile), ConfigError> {
    let named = named_file(args, env);
    let Some(path) = server_path(args, env) else {
        return Ok((None, ServerFile::default()));
    };
    match server_file::read(&path)? {
        Some(file) => Ok((Some(path), file)),
        None if named.is_none() => Ok((None, ServerFile::default())),
        None => {
            let source = if args.config.is_some() { "--config" } else { "MK_CONFIG" };
            let message = format!("the configuration file {} ({source}) does not exist", path.display());
            Err(ConfigError::new(message).hint("`mk config init` writes one with all settings explained"))
        }
    }
}

fn panel_notes(settings: &crate::verify::PanelSettings, origin: &Origin, makers: usize) -> Vec<String> {
    if settings.panel.is_empty() {
        return match origin {
            Origin::Chosen => Vec::new(),
            set => vec![format!("no panel: chat only, as set in {set}")],
        };
    }
    let how = match origin {
        Origin::Chosen if settings.panel.iter().all(|id| id.starts_with("sandbox/")) => {
            "simulated".to_owned()
        }
        Origin::Chosen => match (only_provider(&settings.panel), makers) {
            (Some(provider), 1) => {
                format!(
                    "all from one provider ({provider}); add another, because models of one maker make \
                    similar mistakes"
                )
            }
            (Some(provider), _) => format!("chosen from one provider ({provider}), different makers first"),
            (None, _) => "chosen across providers, different ones first".to_owned(),
        },
        set => format!("set in {set}"),
    };
    let count = settings.panel.len();
    vec![format!("panel of {count} {}: {how}", if count == 1 { "model" } else { "models" })]
}

/// What `--sandbox` leaves unused of the file, and therefore unchecked.
fn ignored_by_sandbox(path: Option<&Path>, file: &ServerFile) -> Option<String> {
    let verify = &file.verify;
    let names_models =
        [&verify.base, &verify.general, &verify.legal].into_iter().any(server_file::PanelTable::names_models);
    let parts = [
        (!file.providers.is_empty(), "[providers]"),
        (names_models, "the models of [verify]"),
        (!file.pools.is_empty(), "[models]"),
        (!file.fallbacks.is_empty(), "[inference.fallbacks]"),
    ];
    let parts: Vec<&str> = parts.into_iter().filter(|(is_set, _)| *is_set).map(|(_, part)| part).collect();
    let path = path.filter(|_| !parts.is_empty())?;
    Some(format!("--sandbox ignores {} of {}", parts.join(", "), path.display()))
}

/// The provider of all models of the panel, if they have the same one.
fn only_provider(panel: &[String]) -> Option<&str> {
    let mut providers = panel.iter().filter_map(|id| model_id::parse(id)).map(|(provider, _)| provider);
    let first = providers.next()?;
    providers.all(|provider| provider == first).then_some(first)
}

/// What is doubtful about panels; these doubts are among [`ServerConfig::warnings`].
pub fn panel_warnings(config: &ServerConfig) -> Vec<String> {
    panel_doubts(&config.verify, &config.origins)
}

/// A panel that was set to nobody is no doubt: the server is for chat only.
fn panel_doubts(settings: &crate::verify::Settings, origins: &Origins) -> Vec<String> {
    let mut warnings = Vec::new();
    for (domain, table) in [(&settings.general, "verify"), (&settings.legal, models::LEGAL)] {
        let size = domain.panel.len();
        if size == 0 && origins.get(&format!("{table}.panel")) != Origin::Chosen {
            continue;
        }
        if size < 2 && (warnings.is_empty() || domain.panel != settings.general.panel) {
            let count = if size == 0 { "no model".to_owned() } else { "one model only".to_owned() };
            warnings.push(format!(
                "the panel has {count}, but verification needs two; set `panel` in [{table}]; until then, \
                 verification answers 503"
            ));
        }
    }
    warnings
}

fn listen(
    args: &ServerArgs,
    env: &Env,
    found: Option<&Located<SocketAddr>>,
    origins: &mut Origins,
) -> Result<SocketAddr, ConfigError> {
    let from_variable = env.text("MK_LISTEN")?.map(|text| (text, Origin::Variable("MK_LISTEN")));
    let from_flag_or_variable =
        args.listen.as_deref().map(|text| (text, Origin::Flag("--listen"))).or(from_variable);
    let Some((text, origin)) = from_flag_or_variable else {
        return Ok(origins.value_or("listen", found, ServerConfig::default().listen));
    };
    let wrong = || {
        let meant = server_file::listen_address(&format!("127.0.0.1:{}", text.trim_start_matches(':')));
        let error = ConfigError::new(format!("{origin} must be {}", server_file::LISTEN));
        error.hint_if_any(meant.map(|address| format!("did you mean `{address}`?")))
    };
    let address = server_file::listen_address(text).ok_or_else(wrong)?;
    origins.set("listen", origin);
    Ok(address)
}

fn data_dir(
    args: &ServerArgs,
    env: &Env,
    found: Option<&Located<PathBuf>>,
    origins: &mut Origins,
) -> Result<PathBuf, ConfigError> {
    if let Some(path) = &args.data_dir {
        origins.set("data_dir", Origin::Flag("--data-dir"));
        return Ok(path.clone());
    }
    if let Some(path) = env.path("MK_DATA_DIR") {
        origins.set("data_dir", Origin::Variable("MK_DATA_DIR"));
        return Ok(path);
    }
    if let Some(found) = found {
        origins.record("data_dir", Some(found));
        return Ok(found.value.clone());
    }
    env.data_home.clone().ok_or_else(|| {
        ConfigError::new("there is no home directory for data")
            .hint("set MK_DATA_DIR to a directory, or `data_dir` in server.toml")
    })
}

/// Where the database is. The variable may also be a credential, as an address may contain a password.
fn database(
    found: Option<&Located<DatabaseUrl>>,
    env: &Env,
    origins: &mut Origins,
) -> Result<DatabaseUrl, ConfigError> {
    if let Some(text) = env.secret(DATABASE_URL)? {
        origins.set("database_url", Origin::Variable(DATABASE_URL));
        let parsed = DatabaseUrl::parse(text.expose_secret());
        return parsed.map_err(|why| ConfigError::new(format!("{DATABASE_URL} {why}")));
    }
    Ok(origins.value_or("database_url", found, DatabaseUrl::Sqlite))
}

/// Where limits are counted; the variable may be a credential, as in [`database`].
fn limits_store(
    found: Option<&Located<LimitsStore>>,
    env: &Env,
    origins: &mut Origins,
) -> Result<LimitsStore, ConfigError> {
    if let Some(text) = env.secret(LIMITS_URL)? {
        origins.set("limits_url", Origin::Variable(LIMITS_URL));
        let wrong = || ConfigError::new(format!("{LIMITS_URL} must be {}", server_file::LIMITS));
        return LimitsStore::parse(text.expose_secret()).ok_or_else(wrong);
    }
    Ok(origins.value_or("limits_url", found, LimitsStore::Memory))
}

fn tls(file: &ServerFile, origins: &mut Origins) -> Result<Option<TlsFiles>, ConfigError> {
    origins.record("tls_cert", file.tls_cert.as_ref());
    origins.record("tls_key", file.tls_key.as_ref());
    match (&file.tls_cert, &file.tls_key) {
        (None, None) => Ok(None),
        (Some(cert), Some(key)) => Ok(Some(TlsFiles { cert: readable(cert)?, key: readable(key)? })),
        (Some(alone), None) => Err(alone.place.error("also needs `tls_key`")),
        (None, Some(alone)) => Err(alone.place.error("also needs `tls_cert`")),
    }
}

fn readable(found: &Located<PathBuf>) -> Result<PathBuf, ConfigError> {
    let path = found.value.clone();
    let complain = |reason: &str| {
        Err(found.place.error(&format!("names {}, which cannot be read: {reason}", path.display())))
    };
    match std::fs::File::open(&path) {
        Ok(_) if Path::is_dir(&path) => complain("it is a directory"),
        Ok(_) => Ok(path),
        Err(error) => complain(&os_error::message(&error)),
    }
}

pub(super) mod changes;
pub(super) mod init;
pub(super) mod server_file;
#[cfg(test)]
mod tests;
mod traces;
