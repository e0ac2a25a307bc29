//! The API keys for requests: from a flag's file, from variables, or from the credentials stored for the server.
//!
//! A file that is unreadable or empty is only reported to whoever asks for a key that would come from there: a command
//! that needs no key works, and so does the one that creates the key for that file. If `MK_API_KEY` or its file
//! contains no key, that is warned of and ignored; the file that a flag names must contain one.

use std::path::Path;

use super::credentials::{self, Credentials};
use crate::api::Service;
use crate::config::sources::origin::Origin;
use crate::config::sources::paths;
use crate::config::{ConfigError, Env};
use crate::os_error;
use crate::secret::{self, ExposeSecret, SecretString};

/// A key, and where it comes from.
#[derive(Clone, Debug)]
struct SourcedKey {
    key: SecretString,
    origin: Origin,
}

/// A source that could not be read, and why.
#[derive(Clone, Debug)]
struct Unreadable {
    origin: Origin,
    error: ConfigError,
}

/// The result of looking in one source: a key, or `None` if there is none.
type Lookup = Result<Option<SourcedKey>, Unreadable>;

/// The keys that are available, at most one per service.
#[derive(Clone, Debug, Default)]
pub(in crate::config) struct ApiKeys {
    lookups: Vec<(Service, Lookup)>,
    /// The servers, by origin, for which a key is stored.
    servers_with_key: Vec<(Service, String)>,
}

/// The variables for a service's own key: the key itself, and a file that contains it.
const fn variables(service: Service) -> (&'static str, &'static str) {
    match service {
        Service::Verify => ("MK_VERIFY_KEY", "MK_VERIFY_KEY_FILE"),
        Service::Inference => ("MK_INFERENCE_KEY", "MK_INFERENCE_KEY_FILE"),
        Service::Console => ("MK_CONSOLE_KEY", "MK_CONSOLE_KEY_FILE"),
    }
}

const ANY_SERVICE: &str = "MK_API_KEY";
const ANY_SERVICE_FILE: &str = "MK_API_KEY_FILE";
const FLAG: &str = "--api-key-file";

/// The sources that may contain a key for any service.
struct SharedSources {
    variable: Lookup,
    file: Lookup,
    stored: Result<Credentials, Unreadable>,
}

impl ApiKeys {
    /// Looks in all sources, in order of precedence. A file that a flag names is the only source: whoever names it does
    /// not mean another key. Adds warnings for other sources that are set but contain no key.
    pub(in crate::config) fn resolve(
        flag_file: Option<&Path>,
        env: &Env,
        server_origin: &str,
        warnings: &mut Vec<String>,
    ) -> Self {
        if let Some(path) = flag_file {
            let by_flag = from_flag(path);
            let lookups = Service::ALL.map(|service| (service, for_service(&by_flag, service))).into();
            return Self { lookups, servers_with_key: Vec::new() };
        }
        let shared = SharedSources {
            variable: from_variable(env, ANY_SERVICE),
            file: from_file_variable(env, ANY_SERVICE_FILE),
            stored: all_stored(env),
        };
        let of_any_service =
            [&shared.variable, &shared.file].into_iter().filter_map(|lookup| lookup.as_ref().ok()?.as_ref());
        warnings.extend(of_any_service.filter(|sourced| service_of(&sourced.key).is_none()).map(|sourced| {
            format!("the value of {} is not a key (mk_<service>_…) and is ignored", sourced.origin)
        }));
        let lookups =
            Service::ALL.map(|service| (service, first_found(&shared, env, server_origin, service))).into();
        let servers_with_key = shared.stored.iter().flat_map(|stored| {
            let servers = |service| stored.servers(service).map(move |server| (service, server.to_owned()));
            Service::ALL.into_iter().flat_map(servers)
        });
        Self { lookups, servers_with_key: servers_with_key.collect() }
    }

    /// The servers, by origin, for which a key for this service is stored.
    pub(in crate::config) fn servers_with_key(&self, service: Service) -> impl Iterator<Item = &str> {
        let servers = self.servers_with_key.iter().filter(move |(candidate, _)| *candidate == service);
        servers.map(|(_, server)| server.as_str())
    }

    /// The key for a service.
    ///
    /// # Errors
    /// If the source that it would come from cannot be read.
    pub(in crate::config) fn key(&self, service: Service) -> Result<Option<&SecretString>, ConfigError> {
        match self.lookup(service) {
            Some(Ok(sourced)) => Ok(sourced.as_ref().map(|sourced| &sourced.key)),
            Some(Err(unreadable)) => Err(unreadable.error.clone()),
            None => Ok(None),
        }
    }

    /// Where that key comes from, or would come from if it could be read; the default if there is none.
    pub(in crate::config) fn origin(&self, service: Service) -> Origin {
        match self.lookup(service) {
            Some(Ok(sourced)) => sourced.as_ref().map(|sourced| sourced.origin.clone()).unwrap_or_default(),
            Some(Err(unreadable)) => unreadable.origin.clone(),
            None => Origin::Default,
        }
    }

    fn lookup(&self, service: Service) -> Option<&Lookup> {
        self.lookups.iter().find(|(candidate, _)| *candidate == service).map(|(_, lookup)| lookup)
    }
}

/// The result of the first source in order of precedence that is not empty for a service; a file is only read if its
/// key would be used.
fn first_found(shared: &SharedSources, env: &Env, server_origin: &str, service: Service) -> Lookup {
    let (own, own_file) = variables(service);
    let places: [&dyn Fn() -> Lookup; 5] = [
        &|| from_variable(env, own),
        &|| for_service(&shared.variable, service),
        &|| from_file_variable(env, own_file),
        &|| for_service(&shared.file, service),
        &|| stored(&shared.stored, server_origin, service),
    ];
    places.iter().map(|look| look()).find(|lookup| !matches!(lookup, Ok(None))).unwrap_or(Ok(None))
}

/// The key in a source for any service, if it is for this service.
fn for_service(lookup: &Lookup, service: Service) -> Lookup {
    let sourced = lookup.as_ref().map_err(Unreadable::clone)?;
    Ok(sourced.clone().filter(|sourced| service_of(&sourced.key) == Some(service)))
}

/// The stored keys of all servers.
fn all_stored(env: &Env) -> Result<Credentials, Unreadable> {
    let Some(path) = paths::credentials_file(env) else { return Ok(Credentials::default()) };
    // The file as a whole cannot be read, so the line is arbitrary.
    credentials::read(&path).map_err(|error| Unreadable { origin: Origin::File { path, line: 1 }, error })
}

fn stored(credentials: &Result<Credentials, Unreadable>, server_origin: &str, service: Service) -> Lookup {
    let credentials = credentials.as_ref().map_err(Unreadable::clone)?;
    let stored = credentials.key(server_origin, service);
    Ok(stored.map(|stored| SourcedKey { key: stored.key.clone(), origin: stored.origin.clone() }))
}

/// The service in a key's prefix.
fn service_of(key: &SecretString) -> Option<Service> {
    let rest = key.expose_secret().strip_prefix("mk_")?;
    Service::ALL.into_iter().find(|service| {
        rest.strip_prefix(service.as_str()).is_some_and(|random| random.len() > 1 && random.starts_with('_'))
    })
}

/// The file that a flag names must contain a key, as no other source is consulted.
fn from_flag(path: &Path) -> Lookup {
    let sourced = from_file(path, Origin::Flag(FLAG))?;
    if service_of(&sourced.key).is_none() {
        let path = path.display();
        let error = ConfigError::new(format!("{FLAG} names {path}, which contains no key (mk_<service>_…)"));
        return Err(Unreadable { origin: sourced.origin, error });
    }
    Ok(Some(sourced))
}

fn from_variable(env: &Env, name: &'static str) -> Lookup {
    let origin = Origin::Variable(name);
    match env.text(name) {
        Ok(key) => Ok(key.map(|key| SourcedKey { key: SecretString::from(key), origin })),
        Err(error) => Err(Unreadable { origin, error }),
    }
}

fn from_file_variable(env: &Env, name: &'static str) -> Lookup {
    env.path(name).map(|path| from_file(&path, Origin::Variable(name))).transpose()
}

fn from_file(path: &Path, origin: Origin) -> Result<SourcedKey, Unreadable> {
    match secret::from_file(path) {
        Ok(key) => Ok(SourcedKey { key, origin }),
        Err(error) => {
            let message = format!(
                "{origin} names {}, which cannot be read: {}",
                path.display(),
                os_error::message(&error)
            );
            Err(Unreadable { origin, error: ConfigError::new(message) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Time;
    use std::fs;

    const SERVER: &str = "https://mk.example.org";

    fn find(variables: &[(&str, &str)], flag: Option<&Path>) -> (ApiKeys, Vec<String>) {
        let env = Env::bare(variables.iter().copied(), Time::from_unix_ms(0));
        let mut warnings = Vec::new();
        (ApiKeys::resolve(flag, &env, SERVER, &mut warnings), warnings)
    }

    fn verify_key(api_keys: &ApiKeys) -> Option<&str> {
        api_keys.key(Service::Verify).unwrap().map(ExposeSecret::expose_secret)
    }

    #[test]
    fn the_first_source_in_order_wins() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, key: &str| {
            fs::write(dir.path().join(name), format!("{key}\n")).unwrap();
            dir.path().join(name)
        };
        let (flag, own, any) =
            (file("f", "mk_verify_flag"), file("o", "mk_verify_ownfile"), file("a", "mk_verify_anyfile"));
        let config = dir.path().to_str().unwrap();
        let env = Env::bare([("MK_CONFIG_DIR", config)], Time::from_unix_ms(0));
        credentials::store(&env, SERVER, Service::Verify, &SecretString::from("mk_verify_stored")).unwrap();

        let mut variables = vec![
            ("MK_VERIFY_KEY", "mk_verify_own"),
            ("MK_API_KEY", "mk_verify_any"),
            ("MK_VERIFY_KEY_FILE", own.to_str().unwrap()),
            ("MK_API_KEY_FILE", any.to_str().unwrap()),
            ("MK_CONFIG_DIR", config),
        ];
        assert_eq!(verify_key(&find(&variables, Some(&flag)).0), Some("mk_verify_flag"));
        let weaker = ["own", "any", "ownfile", "anyfile", "stored"];
        for expected in weaker {
            assert_eq!(verify_key(&find(&variables, None).0), Some(format!("mk_verify_{expected}").as_str()));
            variables.remove(0);
        }
    }

    #[test]
    fn the_prefix_tells_which_service_a_key_is_for() {
        let (api_keys, warnings) =
            find(&[("MK_API_KEY", "mk_console_abc"), ("MK_VERIFY_KEY", "mk_verify_abc")], None);
        assert!(api_keys.key(Service::Console).unwrap().is_some());
        assert_eq!(verify_key(&api_keys), Some("mk_verify_abc"));
        assert!(api_keys.key(Service::Inference).unwrap().is_none());
        assert_eq!(api_keys.origin(Service::Console), Origin::Variable("MK_API_KEY"));
        assert!(warnings.is_empty());
    }

    #[test]
    fn what_is_not_a_key_is_neither_sent_nor_shown() {
        for text in ["sk-openai-key", "mk_verify_", "mk_verify", "mk_other_abc"] {
            let (api_keys, warnings) = find(&[("MK_API_KEY", text)], None);
            assert!(Service::ALL.iter().all(|service| api_keys.key(*service).unwrap().is_none()));
            assert_eq!(warnings, ["the value of MK_API_KEY is not a key (mk_<service>_…) and is ignored"]);
        }
    }

    #[test]
    fn an_unreadable_file_is_reported_to_those_who_need_its_key() {
        let missing = ("MK_VERIFY_KEY_FILE", "/no/such/file");
        let (api_keys, _) = find(&[missing], None);
        let error = api_keys.key(Service::Verify).unwrap_err();
        let expected = "MK_VERIFY_KEY_FILE names /no/such/file, which cannot be read: no such file";
        assert!(error.message.starts_with(expected), "{error}");
        assert_eq!(api_keys.origin(Service::Verify), Origin::Variable("MK_VERIFY_KEY_FILE"));
        assert!(api_keys.key(Service::Inference).unwrap().is_none());
        let (api_keys, _) = find(&[("MK_VERIFY_KEY", "mk_verify_abc"), missing], None);
        assert_eq!(verify_key(&api_keys), Some("mk_verify_abc"));
        let (api_keys, _) =
            find(&[("MK_VERIFY_KEY", "mk_verify_abc"), ("MK_API_KEY_FILE", "/no/such/file")], None);
        assert_eq!(verify_key(&api_keys), Some("mk_verify_abc"));
        api_keys.key(Service::Inference).unwrap_err();
    }

    #[test]
    fn a_file_named_by_a_flag_is_the_only_source() {
        let dir = tempfile::tempdir().unwrap();
        let (file, others) = (dir.path().join("key"), [("MK_INFERENCE_KEY", "mk_inference_abc")]);
        fs::write(&file, "mk_verify_abc").unwrap();
        let (api_keys, warnings) = find(&others, Some(&file));
        assert_eq!(verify_key(&api_keys), Some("mk_verify_abc"));
        assert!(api_keys.key(Service::Inference).unwrap().is_none() && warnings.is_empty());
        fs::write(&file, "sk-openai-secret").unwrap();
        let error = find(&others, Some(&file)).0.key(Service::Inference).unwrap_err();
        assert!(error.message.contains("contains no key") && !error.message.contains("secret"), "{error}");
    }

    #[test]
    fn stored_keys_are_for_their_server_only() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::bare([("MK_CONFIG_DIR", dir.path().to_str().unwrap())], Time::from_unix_ms(0));
        credentials::store(
            &env,
            "https://other.example",
            Service::Verify,
            &SecretString::from("mk_verify_x"),
        )
        .unwrap();
        let api_keys = ApiKeys::resolve(None, &env, SERVER, &mut Vec::new());
        assert!(api_keys.key(Service::Verify).unwrap().is_none());
    }
}
