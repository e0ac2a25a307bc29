//! The environment as a value that can be passed in, and the one table of every variable that `mk` reads.
//!
//! Nothing else in this room reads the process's environment, so that tests can pass in their own. An empty variable
//! counts as unset, as shells make it hard to tell the two apart.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::clock::{Clock, Time};
use crate::config::providers::ollama;
use crate::config::{ConfigError, suggest};
use crate::providers::catalog;
use crate::secret::{self, SecretString};

/// A variable and its purpose.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its purpose, in one line.
    pub purpose: &'static str,
}

const fn var(name: &'static str, purpose: &'static str) -> Variable {
    Variable { name, purpose }
}

/// Our own variables.
pub const VARIABLES: [Variable; 36] = [
    var("MK_LISTEN", "address and port that `mk serve` listens on"),
    var("MK_DATA_DIR", "directory that holds the database, mk.db"),
    var("MK_CONFIG", "the server's configuration file"),
    var(
        "MK_DATABASE_URL",
        "where apps, keys and usage are stored: sqlite, or the address of a PostgreSQL database",
    ),
    var("MK_LIMITS_URL", "where rate limits are counted: memory, or the address of a Redis or Valkey server"),
    var("MK_OTLP_ENDPOINT", "trace collector that accepts OTLP over HTTP, such as http://127.0.0.1:4318"),
    var("MK_LOG", "what the server logs, such as `info` or `mk=debug`"),
    var("MK_SERVER", "base address of the server that client commands call"),
    var("MK_API_KEY", "key for that server; its prefix says for which service"),
    var("MK_API_KEY_FILE", "file that contains this key"),
    var("MK_VERIFY_KEY", "key for the verify service, when several are needed at once"),
    var("MK_VERIFY_KEY_FILE", "file that contains this key"),
    var("MK_INFERENCE_KEY", "key for the inference service"),
    var("MK_INFERENCE_KEY_FILE", "file that contains this key"),
    var("MK_CONSOLE_KEY", "key for the console service"),
    var("MK_CONSOLE_KEY_FILE", "file that contains this key"),
    var("MK_PROFILE", "profile of config.toml to use"),
    var("MK_MODEL", "default model of `mk chat`"),
    var("MK_CONFIG_DIR", "directory of config.toml, credentials.toml and server.toml"),
    var("MK_COLOR", "colour: auto, always or never"),
    var("MK_PROGRESS", "progress on stderr: auto, bars, lines or none"),
    var("MK_TIMEOUT", "time limit of a client command, such as 90s"),
    var("MK_CACERT", "PEM file of additional certificate authorities to trust"),
    var("MK_ASCII", "1 = ASCII symbols only"),
    var("NO_COLOR", "non-empty: no colour"),
    var("CLICOLOR_FORCE", "1 = colour even if the output is not a terminal"),
    var("PAGER", "program that shows long pages of `mk help` on a terminal; default: less, if installed"),
    var("HTTPS_PROXY", "proxy for calls to providers and servers; also HTTP_PROXY, ALL_PROXY, NO_PROXY"),
    var(
        "CREDENTIALS_DIRECTORY",
        "set by systemd: directory of credentials, used for provider keys whose variable is not set",
    ),
    var("SSL_CERT_FILE", "PEM file of certificate authorities to trust instead of the system's"),
    var(
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "trace collector, if neither MK_OTLP_ENDPOINT nor server.toml names one; also \
         OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    ),
    var(
        "OTEL_EXPORTER_OTLP_HEADERS",
        "headers for the collector, such as authorization=Basic%20…; also OTEL_EXPORTER_OTLP_TRACES_HEADERS; \
         may be a systemd credential",
    ),
    var(
        "OTEL_EXPORTER_OTLP_TIMEOUT",
        "timeout of a call to the collector, in milliseconds; also OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
    ),
    var("OTEL_SERVICE_NAME", "name of this server in traces; OTEL_RESOURCE_ATTRIBUTES adds attributes"),
    var(
        "OTEL_TRACES_SAMPLER",
        "which requests are traced, as defined by OpenTelemetry; also OTEL_TRACES_SAMPLER_ARG; \
         OTEL_SDK_DISABLED=true turns tracing off",
    ),
    var("OLLAMA_HOST", "address of a local Ollama, in Ollama's own format"),
];

/// All variables: ours, and those in which the keys of known providers are looked for.
pub fn variables() -> Vec<Variable> {
    let keys = catalog::KNOWN.iter().filter_map(|provider| provider.key_env);
    VARIABLES
        .into_iter()
        .chain(keys.map(|name| var(name, "key of that provider; used without further configuration")))
        .collect()
}

/// Everything that configuration depends on besides flags and files. Its `Debug` only shows the names of variables, as
/// values may be keys.
#[derive(Clone)]
pub struct Env {
    variables: BTreeMap<OsString, OsString>,
    /// The working directory, from which a project file is searched for upwards.
    pub working_dir: Option<PathBuf>,
    /// The platform's directory for our configuration; `None` without a home.
    pub config_home: Option<PathBuf>,
    /// The platform's directory for our data; `None` without a home.
    pub data_home: Option<PathBuf>,
    /// Where a local Ollama would be listening.
    pub ollama: SocketAddr,
    /// The current time, for models that are being retired.
    pub now: Time,
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env").field("variables", &self.variables.keys()).finish_non_exhaustive()
    }
}

impl Env {
    /// The environment of this process.
    pub fn system() -> Self {
        let dirs = directories::ProjectDirs::from("", "", "mk");
        let variables: BTreeMap<_, _> = std::env::vars_os().collect();
        let ollama = variables.get(OsStr::new("OLLAMA_HOST")).map(|value| value.to_string_lossy());
        Self {
            ollama: ollama::address(ollama.as_deref().unwrap_or_default()),
            variables,
            working_dir: std::env::current_dir().ok(),
            config_home: dirs.as_ref().map(|dirs| dirs.config_dir().to_owned()),
            data_home: dirs.as_ref().map(|dirs| dirs.data_dir().to_owned()),
            now: Clock::system().now(),
        }
    }

    /// An environment with only these variables at time `now`: no home, no working directory, no Ollama.
    pub fn bare<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>, now: Time) -> Self {
        Self {
            variables: variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            working_dir: None,
            config_home: None,
            data_home: None,
            ollama: ollama::NOWHERE,
            now,
        }
    }

    /// The trimmed text of a variable.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub fn text(&self, name: &str) -> Result<Option<&str>, ConfigError> {
        let Some(value) = self.variables.get(&OsString::from(name)).filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        let not_text = || ConfigError::new(format!("the environment variable {name} is not UTF-8 text"));
        let text = value.to_str().ok_or_else(not_text)?.trim();
        Ok((!text.is_empty()).then_some(text))
    }

    /// The secret in a variable, or else in a file of that name among the credentials that a supervisor passes
    /// (systemd's `LoadCredential=`, in `CREDENTIALS_DIRECTORY`).
    ///
    /// # Errors
    /// If the variable is not UTF-8, or such a file exists and cannot be read.
    pub fn secret(&self, name: &str) -> Result<Option<SecretString>, ConfigError> {
        if let Some(text) = self.text(name)? {
            return Ok(Some(SecretString::from(text)));
        }
        let is_a_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let Some(directory) = self.path("CREDENTIALS_DIRECTORY").filter(|_| is_a_name(name)) else {
            return Ok(None);
        };
        match secret::from_file(&directory.join(name)) {
            Ok(secret) => Ok(Some(secret)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                let reason = crate::os_error::message(&error);
                Err(ConfigError::new(format!(
                    "the credential {name} of this service cannot be read: {reason}"
                )))
            }
        }
    }

    /// The value of a variable that names a file or directory.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.variables.get(&OsString::from(name)).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// Whether a variable is set and not empty.
    pub fn has(&self, name: &str) -> bool {
        self.path(name).is_some()
    }

    /// Warnings on variables that look like misspelt ones of ours. Others that begin with `MK_` may belong to somebody
    /// else, and are none of our business.
    pub(in crate::config) fn misspelt_warnings(&self) -> Vec<String> {
        let ours = || VARIABLES.iter().map(|variable| variable.name);
        let names = self.variables.keys().filter_map(|name| name.to_str());
        names
            .filter(|name| name.starts_with("MK_") && ours().all(|known| known != *name))
            .filter_map(|name| suggest::closest(name, ours()).map(|meant| (name, meant)))
            .filter(|(name, meant)| strsim::damerau_levenshtein(name, meant) <= 2)
            .map(|(name, meant)| format!("unknown environment variable {name}; did you mean {meant}?"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::ExposeSecret;

    const NOW: Time = Time::from_unix_ms(0);

    #[test]
    fn empty_counts_as_unset() {
        let env = Env::bare([("MK_SERVER", ""), ("MK_PROFILE", "work")], NOW);
        assert_eq!(env.text("MK_SERVER"), Ok(None));
        assert_eq!(env.text("MK_PROFILE"), Ok(Some("work")));
        assert!(!env.has("MK_SERVER"));
        assert_eq!(Env::bare([("MK_SERVER", " \n")], NOW).text("MK_SERVER"), Ok(None));
    }

    #[test]
    fn debug_shows_no_values() {
        let shown = format!("{:?}", Env::bare([("OPENAI_API_KEY", "sk-secret")], NOW));
        assert!(shown.contains("OPENAI_API_KEY") && !shown.contains("secret"), "{shown}");
    }

    #[cfg(unix)]
    #[test]
    fn values_that_are_not_text_are_named_not_shown() {
        use std::os::unix::ffi::OsStringExt;
        let mut env = Env::bare([], NOW);
        env.variables.insert("MK_SERVER".into(), OsString::from_vec(vec![0xff]));
        let error = env.text("MK_SERVER").unwrap_err();
        assert_eq!(error.message, "the environment variable MK_SERVER is not UTF-8 text");
        assert!(env.path("MK_SERVER").is_some());
    }

    #[test]
    fn a_credential_stands_in_for_a_variable_that_is_not_set() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("A_KEY"), "from-file\n").unwrap();
        std::fs::write(dir.path().join("B_KEY"), "from-file\n").unwrap();
        std::fs::write(dir.path().join("EMPTY_KEY"), "").unwrap();
        let directory = dir.path().join("..").join(dir.path().file_name().unwrap());
        let variables = [("CREDENTIALS_DIRECTORY", directory.to_str().unwrap()), ("B_KEY", "from-variable")];
        let env = Env::bare(variables, NOW);
        let found = |name: &str| env.secret(name).unwrap().map(|key| key.expose_secret().to_owned());
        assert_eq!(found("A_KEY").as_deref(), Some("from-file"));
        assert_eq!(found("B_KEY").as_deref(), Some("from-variable"));
        assert_eq!(found("C_KEY"), None);
        assert_eq!(found("../A_KEY"), None);
        assert!(env.secret("EMPTY_KEY").unwrap_err().message.contains("EMPTY_KEY"));
    }

    #[test]
    fn misspelt_variables_are_noticed_and_foreign_ones_left_alone() {
        let env = Env::bare([("MK_LISTN", "x"), ("MK_SOMETHING_ELSE", "y"), ("MK_LISTEN", "z")], NOW);
        assert_eq!(
            env.misspelt_warnings(),
            ["unknown environment variable MK_LISTN; did you mean MK_LISTEN?"]
        );
    }

    #[test]
    fn the_table_names_each_variable_once() {
        let all = variables();
        assert!(all.iter().any(|variable| variable.name == "GEMINI_API_KEY"));
        for (index, variable) in all.iter().enumerate() {
            assert!(!variable.purpose.is_empty());
            assert!(all[..index].iter().all(|other| other.name != variable.name), "{}", variable.name);
        }
    }
}
