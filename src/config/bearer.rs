//! Which key goes with a request: from flags' files, variables, or the credentials stored for the server.

use std::path::Path;

use super::credentials::{self, Credentials};
use super::origin::Origin;
use super::{ConfigError, Env, paths};
use crate::api::Service;
use crate::reason;
use crate::secret::{self, ExposeSecret, SecretString};

/// A key and where it comes from.
#[derive(Clone, Debug)]
struct Bearer {
    key: SecretString,
    origin: Origin,
}

/// The keys at hand, one a service at most.
#[derive(Clone, Debug, Default)]
pub(super) struct Bearers(Vec<(Service, Bearer)>);

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

impl Bearers {
    /// Looks in all places, strongest first. Complains into `warnings` about what is set and is no key.
    pub(super) fn find(
        flag_file: Option<&Path>,
        env: &Env,
        server_origin: &str,
        warnings: &mut Vec<String>,
    ) -> Result<Self, ConfigError> {
        let by_flag = flag_file.map(|path| from_file(path, Origin::Flag(FLAG))).transpose()?;
        let any = from_variable(env, ANY)?;
        let any_file = from_file_variable(env, ANY_FILE)?;
        let of_any_service = [&by_flag, &any, &any_file].into_iter().flatten();
        warnings.extend(of_any_service.filter(|bearer| service_of(&bearer.key).is_none()).map(|bearer| {
            format!("what {} gives is not a key (mk_<service>_…) and is not used", bearer.origin)
        }));
        let stored = match paths::credentials_file(env) {
            Some(path) => credentials::read(&path)?,
            None => Credentials::default(),
        };
        let mut found = Vec::new();
        for service in Service::ALL {
            let fits = |bearer: &&Bearer| service_of(&bearer.key) == Some(service);
            let (own, own_file) = variables(service);
            let stored = || {
                let stored = stored.key(server_origin, service)?;
                Some(Bearer { key: stored.key.clone(), origin: stored.origin.clone() })
            };
            let mut bearer = by_flag.as_ref().filter(fits).cloned();
            if bearer.is_none() {
                bearer = from_variable(env, own)?.or_else(|| any.as_ref().filter(fits).cloned());
            }
            // A file is only looked for where its key would be used.
            if bearer.is_none() {
                bearer = from_file_variable(env, own_file)?;
            }
            let bearer = bearer.or_else(|| any_file.as_ref().filter(fits).cloned());
            found.extend(bearer.or_else(stored).map(|bearer| (service, bearer)));
        }
        Ok(Self(found))
    }

    pub(super) fn key(&self, service: Service) -> Option<&SecretString> {
        self.0.iter().find(|(candidate, _)| *candidate == service).map(|(_, bearer)| &bearer.key)
    }

    pub(super) fn origin(&self, service: Service) -> Origin {
        let found = self.0.iter().find(|(candidate, _)| *candidate == service);
        found.map(|(_, bearer)| bearer.origin.clone()).unwrap_or_default()
    }
}

/// The service that a key's prefix names.
fn service_of(key: &SecretString) -> Option<Service> {
    let rest = key.expose_secret().strip_prefix("mk_")?;
    Service::ALL.into_iter().find(|service| {
        rest.strip_prefix(service.as_str()).is_some_and(|random| random.len() > 1 && random.starts_with('_'))
    })
}

fn from_variable(env: &Env, name: &'static str) -> Result<Option<Bearer>, ConfigError> {
    let key = env.text(name)?.map(SecretString::from);
    Ok(key.map(|key| Bearer { key, origin: Origin::Variable(name) }))
}

fn from_file_variable(env: &Env, name: &'static str) -> Result<Option<Bearer>, ConfigError> {
    env.path(name).map(|path| from_file(&path, Origin::Variable(name))).transpose()
}

fn from_file(path: &Path, origin: Origin) -> Result<Bearer, ConfigError> {
    match secret::from_file(path) {
        Ok(key) => Ok(Bearer { key, origin }),
        Err(error) => {
            let message =
                format!("{origin} names {}, which cannot be read: {}", path.display(), reason::of(&error));
            Err(ConfigError::new(message))
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
        (Bearers::find(flag, &env, SERVER, &mut warnings).unwrap(), warnings)
    }

    fn verify_key(bearers: &Bearers) -> Option<&str> {
        bearers.key(Service::Verify).map(ExposeSecret::expose_secret)
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
        assert!(bearers.key(Service::Console).is_some());
        assert_eq!(verify_key(&bearers), Some("mk_verify_abc"));
        assert!(bearers.key(Service::Inference).is_none());
        assert_eq!(bearers.origin(Service::Console), Origin::Variable("MK_API_KEY"));
        assert!(warnings.is_empty());
    }

    #[test]
    fn what_is_no_key_is_not_sent_and_not_shown() {
        for text in ["sk-openai-key", "mk_verify_", "mk_verify", "mk_other_abc"] {
            let (bearers, warnings) = find(&[("MK_API_KEY", text)], None);
            assert!(Service::ALL.iter().all(|service| bearers.key(*service).is_none()));
            assert_eq!(warnings, ["what MK_API_KEY gives is not a key (mk_<service>_…) and is not used"]);
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let env = Env::bare([("MK_API_KEY_FILE", "/no/such/file")], Time::from_unix_ms(0));
        let error = Bearers::find(None, &env, SERVER, &mut Vec::new()).unwrap_err();
        assert!(
            error
                .message
                .starts_with("MK_API_KEY_FILE names /no/such/file, which cannot be read: no such file")
        );
    }

    #[test]
    fn a_file_that_is_not_needed_need_not_be_there() {
        let missing = ("MK_VERIFY_KEY_FILE", "/no/such/file");
        let (bearers, _) = find(&[("MK_VERIFY_KEY", "mk_verify_abc"), missing], None);
        assert_eq!(verify_key(&bearers), Some("mk_verify_abc"));
        let env = Env::bare([missing], Time::from_unix_ms(0));
        Bearers::find(None, &env, SERVER, &mut Vec::new()).unwrap_err();
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
        let bearers = Bearers::find(None, &env, SERVER, &mut Vec::new()).unwrap();
        assert!(bearers.key(Service::Verify).is_none());
    }
}
