//! Which key goes with a request: from flags' files, variables, or the credentials stored for the server.
//!
//! A file that cannot be read or is empty is told to whoever asks for a key that would come from there, and to nobody else:
//! a command that needs no key works, and so does the one that makes the key which a file is to hold. What is no key in
//! `MK_API_KEY` or its file is warned of and passed over; the file that a flag names must hold one.

use std::path::Path;

use super::credentials::{self, Credentials};
use super::origin::Origin;
use super::{ConfigError, Env, paths};
use crate::api::Service;
use crate::os_error;
use crate::secret::{self, ExposeSecret, SecretString};

/// A key and where it comes from.
#[derive(Clone, Debug)]
struct Bearer {
    key: SecretString,
    origin: Origin,
}

/// A place of which it cannot be told what it holds, and why.
#[derive(Clone, Debug)]
struct Closed {
    origin: Origin,
    error: ConfigError,
}

/// What was found in a place: a key, or that none is there.
type Held = Result<Option<Bearer>, Closed>;

/// The keys at hand, one a service at most.
#[derive(Clone, Debug, Default)]
pub(super) struct Bearers {
    held: Vec<(Service, Held)>,
    /// The servers, by origin, that a key is stored for.
    stored_for: Vec<(Service, String)>,
}

/// The variables of a service's own key: the key itself, and a file that holds it.
const fn variables(service: Service) -> (&'static str, &'static str) {
    match service {
        Service::Verify => ("MK_VERIFY_KEY", "MK_VERIFY_KEY_FILE"),
        Service::Inference => ("MK_INFERENCE_KEY", "MK_INFERENCE_KEY_FILE"),
        Service::Console => ("MK_CONSOLE_KEY", "MK_CONSOLE_KEY_FILE"),
    }
}

const ANY: &str = "MK_API_KEY";
const ANY_FILE: &str = "MK_API_KEY_FILE";
const FLAG: &str = "--api-key-file";

/// The places that may hold a key of any service.
struct Shared {
    variable: Held,
    file: Held,
    stored: Result<Credentials, Closed>,
}

impl Bearers {
    /// Looks in all places, strongest first. A file that a flag names is the only place: whoever names it does not mean
    /// another key. Complains into `warnings` about what is set elsewhere and is no key.
    pub(super) fn find(
        flag_file: Option<&Path>,
        env: &Env,
        server_origin: &str,
        warnings: &mut Vec<String>,
    ) -> Self {
        if let Some(path) = flag_file {
            let by_flag = from_flag(path);
            let held = Service::ALL.map(|service| (service, fitting(&by_flag, service))).into();
            return Self { held, stored_for: Vec::new() };
        }
        let shared = Shared {
            variable: from_variable(env, ANY),
            file: from_file_variable(env, ANY_FILE),
            stored: all_stored(env),
        };
        let of_any_service =
            [&shared.variable, &shared.file].into_iter().filter_map(|held| held.as_ref().ok()?.as_ref());
        warnings.extend(of_any_service.filter(|bearer| service_of(&bearer.key).is_none()).map(|bearer| {
            format!("what {} gives is not a key (mk_<service>_…) and is not used", bearer.origin)
        }));
        let held =
            Service::ALL.map(|service| (service, strongest(&shared, env, server_origin, service))).into();
        let stored_for = shared.stored.iter().flat_map(|stored| {
            let servers = |service| stored.servers(service).map(move |server| (service, server.to_owned()));
            Service::ALL.into_iter().flat_map(servers)
        });
        Self { held, stored_for: stored_for.collect() }
    }

    /// The servers, by origin, that a key for this service is stored for.
    pub(super) fn stored_for(&self, service: Service) -> impl Iterator<Item = &str> {
        let servers = self.stored_for.iter().filter(move |(candidate, _)| *candidate == service);
        servers.map(|(_, server)| server.as_str())
    }

    /// The key for a service.
    ///
    /// # Errors
    /// If the place that it would come from cannot be read.
    pub(super) fn key(&self, service: Service) -> Result<Option<&SecretString>, ConfigError> {
        match self.held(service) {
            Some(Ok(bearer)) => Ok(bearer.as_ref().map(|bearer| &bearer.key)),
            Some(Err(closed)) => Err(closed.error.clone()),
            None => Ok(None),
        }
    }

    /// Where that key comes from, or would if it could be read; the default where there is none.
    pub(super) fn origin(&self, service: Service) -> Origin {
        match self.held(service) {
            Some(Ok(bearer)) => bearer.as_ref().map(|bearer| bearer.origin.clone()).unwrap_or_default(),
            Some(Err(closed)) => closed.origin.clone(),
            None => Origin::Default,
        }
    }

    fn held(&self, service: Service) -> Option<&Held> {
        self.held.iter().find(|(candidate, _)| *candidate == service).map(|(_, held)| held)
    }
}

/// What the strongest place holds for a service that has something to say of it; a file is only looked for where its key
/// would be used.
fn strongest(shared: &Shared, env: &Env, server_origin: &str, service: Service) -> Held {
    let (own, own_file) = variables(service);
    let places: [&dyn Fn() -> Held; 5] = [
        &|| from_variable(env, own),
        &|| fitting(&shared.variable, service),
        &|| from_file_variable(env, own_file),
        &|| fitting(&shared.file, service),
        &|| stored(&shared.stored, server_origin, service),
    ];
    places.iter().map(|look| look()).find(|held| !matches!(held, Ok(None))).unwrap_or(Ok(None))
}

/// What a place of keys for any service holds for this one.
fn fitting(held: &Held, service: Service) -> Held {
    let bearer = held.as_ref().map_err(Closed::clone)?;
    Ok(bearer.clone().filter(|bearer| service_of(&bearer.key) == Some(service)))
}

/// The keys of all servers.
fn all_stored(env: &Env) -> Result<Credentials, Closed> {
    let Some(path) = paths::credentials_file(env) else { return Ok(Credentials::default()) };
    // It is as a whole that it cannot be read.
    credentials::read(&path).map_err(|error| Closed { origin: Origin::File { path, line: 1 }, error })
}

fn stored(credentials: &Result<Credentials, Closed>, server_origin: &str, service: Service) -> Held {
    let credentials = credentials.as_ref().map_err(Closed::clone)?;
    let stored = credentials.key(server_origin, service);
    Ok(stored.map(|stored| Bearer { key: stored.key.clone(), origin: stored.origin.clone() }))
}

/// The service that a key's prefix names.
fn service_of(key: &SecretString) -> Option<Service> {
    let rest = key.expose_secret().strip_prefix("mk_")?;
    Service::ALL.into_iter().find(|service| {
        rest.strip_prefix(service.as_str()).is_some_and(|random| random.len() > 1 && random.starts_with('_'))
    })
}

/// What a flag names has to be a key, as no other place is looked in.
fn from_flag(path: &Path) -> Held {
    let bearer = from_file(path, Origin::Flag(FLAG))?;
    if service_of(&bearer.key).is_none() {
        let path = path.display();
        let error = ConfigError::new(format!("{FLAG} names {path}, which holds no key (mk_<service>_…)"));
        return Err(Closed { origin: bearer.origin, error });
    }
    Ok(Some(bearer))
}

fn from_variable(env: &Env, name: &'static str) -> Held {
    let origin = Origin::Variable(name);
    match env.text(name) {
        Ok(key) => Ok(key.map(|key| Bearer { key: SecretString::from(key), origin })),
        Err(error) => Err(Closed { origin, error }),
    }
}

fn from_file_variable(env: &Env, name: &'static str) -> Held {
    env.path(name).map(|path| from_file(&path, Origin::Variable(name))).transpose()
}

fn from_file(path: &Path, origin: Origin) -> Result<Bearer, Closed> {
    match secret::from_file(path) {
        Ok(key) => Ok(Bearer { key, origin }),
        Err(error) => {
            let message = format!(
                "{origin} names {}, which cannot be read: {}",
                path.display(),
                os_error::message(&error)
            );
            Err(Closed { origin, error: ConfigError::new(message) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Time;
    use std::fs;

    const SERVER: &str = "https://mk.example.org";

    fn find(variables: &[(&str, &str)], flag: Option<&Path>) -> (Bearers, Vec<String>) {
        let env = Env::bare(variables.iter().copied(), Time::from_unix_ms(0));
        let mut warnings = Vec::new();
        (Bearers::find(flag, &env, SERVER, &mut warnings), warnings)
    }

    fn verify_key(bearers: &Bearers) -> Option<&str> {
        bearers.key(Service::Verify).unwrap().map(ExposeSecret::expose_secret)
    }

    #[test]
    fn the_strongest_place_wins() {
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
    fn the_prefix_tells_for_which_service_a_key_is() {
        let (bearers, warnings) =
            find(&[("MK_API_KEY", "mk_console_abc"), ("MK_VERIFY_KEY", "mk_verify_abc")], None);
        assert!(bearers.key(Service::Console).unwrap().is_some());
        assert_eq!(verify_key(&bearers), Some("mk_verify_abc"));
        assert!(bearers.key(Service::Inference).unwrap().is_none());
        assert_eq!(bearers.origin(Service::Console), Origin::Variable("MK_API_KEY"));
        assert!(warnings.is_empty());
    }

    #[test]
    fn what_is_no_key_is_not_sent_and_not_shown() {
        for text in ["sk-openai-key", "mk_verify_", "mk_verify", "mk_other_abc"] {
            let (bearers, warnings) = find(&[("MK_API_KEY", text)], None);
            assert!(Service::ALL.iter().all(|service| bearers.key(*service).unwrap().is_none()));
            assert_eq!(warnings, ["what MK_API_KEY gives is not a key (mk_<service>_…) and is not used"]);
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_told_to_those_who_need_its_key() {
        let missing = ("MK_VERIFY_KEY_FILE", "/no/such/file");
        let (bearers, _) = find(&[missing], None);
        let error = bearers.key(Service::Verify).unwrap_err();
        let expected = "MK_VERIFY_KEY_FILE names /no/such/file, which cannot be read: no such file";
        assert!(error.message.starts_with(expected), "{error}");
        assert_eq!(bearers.origin(Service::Verify), Origin::Variable("MK_VERIFY_KEY_FILE"));
        assert!(bearers.key(Service::Inference).unwrap().is_none());
        let (bearers, _) = find(&[("MK_VERIFY_KEY", "mk_verify_abc"), missing], None);
        assert_eq!(verify_key(&bearers), Some("mk_verify_abc"));
        let (bearers, _) =
            find(&[("MK_VERIFY_KEY", "mk_verify_abc"), ("MK_API_KEY_FILE", "/no/such/file")], None);
        assert_eq!(verify_key(&bearers), Some("mk_verify_abc"));
        bearers.key(Service::Inference).unwrap_err();
    }

    #[test]
    fn a_file_that_a_flag_names_is_the_only_place() {
        let dir = tempfile::tempdir().unwrap();
        let (file, others) = (dir.path().join("key"), [("MK_INFERENCE_KEY", "mk_inference_abc")]);
        fs::write(&file, "mk_verify_abc").unwrap();
        let (bearers, warnings) = find(&others, Some(&file));
        assert_eq!(verify_key(&bearers), Some("mk_verify_abc"));
        assert!(bearers.key(Service::Inference).unwrap().is_none() && warnings.is_empty());
        fs::write(&file, "sk-openai-secret").unwrap();
        let error = find(&others, Some(&file)).0.key(Service::Inference).unwrap_err();
        assert!(error.message.contains("holds no key") && !error.message.contains("secret"), "{error}");
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
        let bearers = Bearers::find(None, &env, SERVER, &mut Vec::new());
        assert!(bearers.key(Service::Verify).unwrap().is_none());
    }
}
