//! `credentials.toml`: the client's keys, each bound to the server it is for.
//!
//! ```toml
//! [servers."https://mk.example.org"]
//! verify = "mk_verify_…"
//! ```
//!
//! No key is taken from the file unless it is private to its owner; changing it makes it private again. It is replaced
//! atomically, so that a crash never loses keys, and whoever changes it holds a lock from reading to writing, so that
//! concurrent changes do not lose any either. A key is only ever used for the origin (scheme, host and port) that it
//! was stored for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reqwest::Url;
use serde::Serialize;

use crate::api::Service;
use crate::config::sources::lock::Lock;
use crate::config::sources::origin::Origin;
use crate::config::sources::reader::{Document, Section};
use crate::config::sources::{files, paths, values};
use crate::config::{ConfigError, Env};
use crate::secret::{ExposeSecret, SecretString};

/// Keys by origin and service.
#[derive(Default)]
pub(in crate::config) struct Credentials(BTreeMap<String, Keys>);

type Keys = BTreeMap<&'static str, Stored>;

/// A key, and the line it is on.
pub(in crate::config) struct Stored {
    pub(in crate::config) key: SecretString,
    pub(in crate::config) origin: Origin,
}

/// The structure of the file, for writing.
#[derive(Serialize)]
struct File<'a> {
    servers: BTreeMap<&'a str, BTreeMap<&'static str, String>>,
}

const HEADER: &str = "# Keys of the command line, written by `mk login`. Keep this file to yourself.\n\n";

/// The origin of a server's address (scheme, host and port), to which its keys are bound.
///
/// # Errors
/// If it is not an `http://` or `https://` address.
pub fn server_origin(address: &str) -> Result<String, ConfigError> {
    let wrong = || ConfigError::new(format!("the server's address must be {}", values::BASE_URL));
    values::base_url(address).map(|url| origin(&url)).ok_or_else(wrong)
}

pub(in crate::config) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Stores a key for a server and service, replacing any other; returns the path of the file.
///
/// # Errors
/// If the address is invalid, or the file cannot be read or written.
pub fn store(env: &Env, server: &str, service: Service, key: &SecretString) -> Result<PathBuf, ConfigError> {
    let origin = server_origin(server)?;
    let path = file(env)?;
    let _lock = Lock::acquire(&path)?;
    let mut credentials = parse(&path)?;
    credentials
        .0
        .entry(origin)
        .or_default()
        .insert(service.as_str(), Stored { key: key.clone(), origin: Origin::Default });
    write(&path, &credentials)?;
    Ok(path)
}

/// Removes the keys for a server, for one service or for all. Returns the services for which there was a key.
///
/// # Errors
/// If the address is invalid, or the file cannot be read or written.
pub fn remove(env: &Env, server: &str, service: Option<Service>) -> Result<Vec<Service>, ConfigError> {
    let origin = server_origin(server)?;
    let path = file(env)?;
    if !path.exists() {
        return Ok(Vec::new());
    }
    let _lock = Lock::acquire(&path)?;
    let mut credentials = parse(&path)?;
    let Some(keys) = credentials.0.get_mut(&origin) else { return Ok(Vec::new()) };
    let is_selected = |candidate: &Service| service.is_none_or(|one| one == *candidate);
    let removed: Vec<Service> = Service::ALL
        .into_iter()
        .filter(is_selected)
        .filter(|service| keys.remove(service.as_str()).is_some())
        .collect();
    if keys.is_empty() {
        credentials.0.remove(&origin);
    }
    if !removed.is_empty() {
        write(&path, &credentials)?;
    }
    Ok(removed)
}

impl Credentials {
    /// The key for a service of the server at this origin.
    pub(in crate::config) fn key(&self, origin: &str, service: Service) -> Option<&Stored> {
        self.0.get(origin)?.get(service.as_str())
    }

    /// The origins of the servers for which a key for this service is stored.
    pub(in crate::config) fn servers(&self, service: Service) -> impl Iterator<Item = &str> {
        let has_one = move |keys: &&Keys| keys.contains_key(service.as_str());
        self.0.iter().filter(move |(_, keys)| has_one(keys)).map(|(origin, _)| origin.as_str())
    }
}

/// Checks that nobody but its owner can read the file. That is no condition for changing it.
///
/// # Errors
/// If others can.
pub fn must_be_private(env: &Env) -> Result<(), ConfigError> {
    paths::credentials_file(env).map_or(Ok(()), |path| files::must_be_private(&path))
}

/// Reads the file, which must be private; if there is none, there are no keys.
pub(in crate::config) fn read(path: &Path) -> Result<Credentials, ConfigError> {
    files::must_be_private(path)?;
    parse(path)
}

fn parse(path: &Path) -> Result<Credentials, ConfigError> {
    let Some(document) = Document::open(path)? else { return Ok(Credentials::default()) };
    let table = document.parse()?;
    let mut root = Section::root(&document, &table);
    let mut credentials = Credentials::default();
    if let Some(servers) = root.section("servers")? {
        for (name, section) in servers.named_sections()? {
            let url = values::base_url(&name.value)
                .ok_or_else(|| name.place.error(&format!("must be named by {}", values::BASE_URL)))?;
            credentials.0.entry(origin(&url)).or_default().extend(keys(section)?);
        }
    }
    root.finish()?;
    Ok(credentials)
}

fn keys(mut section: Section<'_>) -> Result<Keys, ConfigError> {
    let mut keys = Keys::new();
    for service in Service::ALL {
        if let Some(found) = section.text(service.as_str())? {
            let origin = found.place.origin();
            keys.insert(service.as_str(), Stored { key: SecretString::from(found.value), origin });
        }
    }
    section.finish()?;
    Ok(keys)
}

fn write(path: &Path, credentials: &Credentials) -> Result<(), ConfigError> {
    let exposed = |keys: &Keys| {
        keys.iter().map(|(service, stored)| (*service, stored.key.expose_secret().to_owned())).collect()
    };
    let servers = credentials.0.iter().map(|(origin, keys)| (origin.as_str(), exposed(keys))).collect();
    let text = toml::to_string(&File { servers })
        .map_err(|_| ConfigError::new(format!("cannot write {}: a key is not text", path.display())))?;
    files::replace_private(path, &format!("{HEADER}{text}"))
}

fn file(env: &Env) -> Result<PathBuf, ConfigError> {
    paths::credentials_file(env).ok_or_else(|| {
        ConfigError::new("there is no home directory for credentials.toml")
            .hint("set MK_CONFIG_DIR to a directory")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Time;
    use std::fs;

    fn env(dir: &tempfile::TempDir) -> Env {
        Env::bare([("MK_CONFIG_DIR", dir.path().to_str().unwrap())], Time::from_unix_ms(0))
    }

    fn stored(env: &Env, server: &str, service: Service) -> Option<String> {
        let credentials = read(&file(env).unwrap()).unwrap();
        let stored = credentials.key(&server_origin(server).unwrap(), service)?;
        Some(stored.key.expose_secret().to_owned())
    }

    #[test]
    fn a_stored_key_is_only_returned_for_its_origin() {
        let dir = tempfile::tempdir().unwrap();
        let env = env(&dir);
        let key = |text: &str| SecretString::from(text);
        store(&env, "https://mk.example.org/base/", Service::Verify, &key("mk_verify_a")).unwrap();
        store(&env, "https://MK.example.org:443", Service::Console, &key("mk_console_b")).unwrap();
        store(&env, "http://127.0.0.1:8080", Service::Verify, &key("mk_verify_c")).unwrap();
        assert_eq!(stored(&env, "https://mk.example.org", Service::Verify).as_deref(), Some("mk_verify_a"));
        assert_eq!(stored(&env, "https://mk.example.org", Service::Console).as_deref(), Some("mk_console_b"));
        assert_eq!(stored(&env, "http://mk.example.org", Service::Verify), None);
        assert_eq!(stored(&env, "https://mk.example.org:444", Service::Verify), None);
        must_hold_text(&env, "[servers.\"https://mk.example.org\"]");

        assert_eq!(remove(&env, "https://mk.example.org", Some(Service::Verify)).unwrap(), [Service::Verify]);
        assert_eq!(remove(&env, "https://mk.example.org", None).unwrap(), [Service::Console]);
        assert_eq!(remove(&env, "https://mk.example.org", None).unwrap(), []);
        assert_eq!(stored(&env, "http://127.0.0.1:8080", Service::Verify).as_deref(), Some("mk_verify_c"));
    }

    fn must_hold_text(env: &Env, text: &str) {
        assert!(fs::read_to_string(file(env).unwrap()).unwrap().contains(text));
    }

    #[cfg(unix)]
    #[test]
    fn no_key_is_taken_from_a_file_that_others_can_read_until_it_is_changed() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let env = env(&dir);
        let path = file(&env).unwrap();
        fs::write(&path, "[servers.\"https://a\"]\nverify = \"mk_verify_secret\"\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = read(&path).err().unwrap();
        assert!(error.message.contains("other users of this machine can read it"), "{error}");
        assert!(error.hints[0].starts_with("chmod 600 "));
        assert_eq!(must_be_private(&env), Err(error));
        store(&env, "https://a", Service::Console, &SecretString::from("x")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(stored(&env, "https://a", Service::Verify).as_deref(), Some("mk_verify_secret"));
    }

    #[test]
    fn an_invalid_file_is_left_alone_and_not_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let env = env(&dir);
        let path = file(&env).unwrap();
        let broken = "[servers.\"https://a\"]\nverify = mk_verify_secret\n";
        files::replace_private(&path, broken).unwrap();
        let error = store(&env, "https://a", Service::Verify, &SecretString::from("x")).unwrap_err();
        assert!(
            error.message.contains("line 2 is not valid TOML") && !error.message.contains("secret"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), broken);
    }

    #[test]
    fn without_a_home_directory_there_is_a_hint() {
        let error = store(
            &Env::bare([], Time::from_unix_ms(0)),
            "https://a",
            Service::Verify,
            &SecretString::from("x"),
        );
        assert_eq!(error.unwrap_err().hints, ["set MK_CONFIG_DIR to a directory"]);
        assert!(server_origin("mk.example.org").is_err());
    }
}
