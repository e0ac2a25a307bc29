//! Where a provider's keys come from: one of `api_key_env`, `api_key_file`, `api_keys_env` and `api_keys_file`. Never
//! from the configuration file itself.

use std::path::PathBuf;

use crate::config::sources::origin::Origins;
use crate::config::sources::reader::{Located, Location, Section};
use crate::config::{ConfigError, Env};
use crate::os_error;
use crate::providers::MAX_KEYS;
use crate::secret::{self, ExposeSecret, SecretString};

/// The places that a provider's table names for its keys.
pub(in crate::config) struct KeyPlaces {
    variable: Option<Located<String>>,
    file: Option<Located<PathBuf>>,
    variables: Option<Located<Vec<String>>>,
    list: Option<Located<PathBuf>>,
}

impl KeyPlaces {
    pub(in crate::config) fn read(section: &mut Section<'_>) -> Result<Self, ConfigError> {
        section.forbid(
            "api_key",
            "is not allowed in this file",
            "set `api_key_env` to a variable, or `api_key_file` to a file",
        )?;
        Ok(Self {
            variable: section.text("api_key_env")?,
            file: section.path("api_key_file")?,
            variables: section.texts("api_keys_env")?,
            list: section.path("api_keys_file")?,
        })
    }

    /// The names of those that are set, and where.
    fn set(&self) -> impl Iterator<Item = (&'static str, &Location)> {
        let places = [
            ("api_key_env", self.variable.as_ref().map(|found| &found.place)),
            ("api_key_file", self.file.as_ref().map(|found| &found.place)),
            ("api_keys_env", self.variables.as_ref().map(|found| &found.place)),
            ("api_keys_file", self.list.as_ref().map(|found| &found.place)),
        ];
        places.into_iter().filter_map(|(name, place)| Some((name, place?)))
    }

    /// The keys of the provider, in the order in which they are preferred; none if no place is set. Records under `key`
    /// where they come from.
    pub(in crate::config) fn keys(
        &self,
        provider: &str,
        env: &Env,
        key: &str,
        origins: &mut Origins,
    ) -> Result<Vec<SecretString>, ConfigError> {
        let mut set = self.set();
        let Some((first, place)) = set.next() else { return Ok(Vec::new()) };
        if let Some((_, second)) = set.next() {
            return Err(second.error(&format!("and `{first}` are both set")).hint("use only one of them"));
        }
        origins.set(key.to_owned(), place.origin());
        let from_variable = |name: &String| from_variable(name, place, provider, env);
        let keys: Vec<SecretString> = match self {
            Self { variable: Some(name), .. } => vec![from_variable(&name.value)?],
            Self { variables: Some(names), .. } => {
                names.value.iter().map(from_variable).collect::<Result<_, _>>()?
            }
            Self { file: Some(file), .. } => vec![from_file(file)?],
            Self { list: Some(file), .. } => {
                let text = from_file(file)?;
                let lines = text.expose_secret().lines().map(str::trim).filter(|line| !line.is_empty());
                lines.map(SecretString::from).collect()
            }
            Self { .. } => Vec::new(),
        };
        if keys.is_empty() || keys.len() > MAX_KEYS {
            let count = keys.len();
            return Err(place.error(&format!("names {count} keys; a provider has 1 to {MAX_KEYS}")));
        }
        let is_repeated = |(at, key): (usize, &SecretString)| {
            keys[..at].iter().any(|other| other.expose_secret() == key.expose_secret())
        };
        if keys.iter().enumerate().any(is_repeated) {
            return Err(place.error("names the same key twice"));
        }
        Ok(keys)
    }
}

fn from_variable(
    name: &str,
    place: &Location,
    provider: &str,
    env: &Env,
) -> Result<SecretString, ConfigError> {
    if is_likely_a_key(name) {
        let complaint =
            "must be the name of an environment variable, such as \"OPENAI_API_KEY\", not the key itself";
        return Err(place.error(complaint));
    }
    if let Some(key) = env.secret(name)? {
        return Ok(key);
    }
    let complaint = format!("names the environment variable {name}, which is not set");
    let hint = format!("set {name}, use `api_key_file`, or remove [providers.{provider}]");
    Err(place.error(&complaint).hint(hint))
}

/// Whether a text that should name a variable is more likely a secret. By convention names are in capitals, and keys
/// are not; an error message that repeated a key would put it into a log.
fn is_likely_a_key(name: &str) -> bool {
    let in_a_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    name.is_empty()
        || name.len() > 64
        || name.starts_with(|c: char| c.is_ascii_digit())
        || !name.chars().all(in_a_name)
}

fn from_file(file: &Located<PathBuf>) -> Result<SecretString, ConfigError> {
    secret::from_file(&file.value).map_err(|error| {
        let complaint =
            format!("names {}, which cannot be read: {}", file.value.display(), os_error::message(&error));
        file.place.error(&complaint)
    })
}
