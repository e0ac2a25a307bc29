//! The first console key: whoever holds the token of the one-time link may create it, once.
//!
//! The token exists only in the process that issued it, as a hash, and is lost with the process. What must hold: a
//! token is valid for half an hour and one use; whatever its bearers do concurrently, there is one first key, because
//! the store creates it only if there is none.

use std::sync::Mutex;
use std::time::Duration;

use subtle::ConstantTimeEq;

use super::sessions::{self, Session};
use super::{ManageError, mint};
use crate::api::Service;
use crate::api::console::KeySettings;
use crate::clock::Time;
use crate::lock::Lock;
use crate::secret::{ExposeSecret, SecretString};
use crate::storage::{Error, KeyHash, KeyRow, Store};

/// How long a token is valid.
pub const LIFE: Duration = Duration::from_mins(30);
/// The name of the key that it creates.
pub const FIRST_KEY: &str = "first console key";
/// As many as a key's random characters, worth 155 bits.
const TOKEN_CHARS: usize = 26;

/// The token of this process, if one was issued.
#[derive(Debug, Default)]
pub struct Setup(Mutex<Option<Issued>>);

#[derive(Debug)]
struct Issued {
    hash: KeyHash,
    expires_at: Time,
}

/// The outcome of a completed setup.
pub struct CompletedSetup {
    /// The first console key, to be shown once.
    pub key: SecretString,
    /// The content of its session's cookie.
    pub token: SecretString,
    /// That session, with the key's row.
    pub session: Session,
}

/// Why no key was created.
#[derive(Debug)]
pub enum SetupError {
    /// The token is wrong, used or expired.
    Denied,
    /// The store refused or failed, or there was no randomness. [`Error::Conflict`]: there already is a console key.
    Failed(ManageError),
}

/// Whether a text has the format of a token, valid or not.
pub fn looks_like_a_token(text: &str) -> bool {
    mint::is_random_text(text, TOKEN_CHARS)
}

impl Setup {
    /// Issues a token; an earlier one becomes invalid.
    pub fn issue(&self, now: Time) -> Result<SecretString, getrandom::Error> {
        let token = mint::random_text(TOKEN_CHARS)?;
        let hash = mint::hash(token.expose_secret());
        *self.0.locked() = Some(Issued { hash, expires_at: now.plus(LIFE) });
        Ok(token)
    }

    /// Whether there is a token that could be used at `now`.
    pub fn is_open(&self, now: Time) -> bool {
        self.0.locked().as_ref().is_some_and(|issued| now < issued.expires_at)
    }

    /// Creates the first console key and a session with it, for whoever presents the token. `store` writes in that
    /// person's name. If the store is unusable, the token stays valid; otherwise it is used up.
    pub fn complete(&self, store: &Store, presented: &str, now: Time) -> Result<CompletedSetup, SetupError> {
        if !self.is_good(presented, now) {
            return Err(SetupError::Denied);
        }
        let outcome = make(store, now);
        if matches!(outcome, Ok(_) | Err(ManageError::Storage(Error::Conflict(_)))) {
            *self.0.locked() = None;
        }
        outcome.map_err(SetupError::Failed)
    }

    fn is_good(&self, presented: &str, now: Time) -> bool {
        let hash = mint::hash(presented);
        self.0
            .locked()
            .as_ref()
            .is_some_and(|issued| bool::from(issued.hash.ct_eq(&hash)) && now < issued.expires_at)
    }
}

fn make(store: &Store, now: Time) -> Result<CompletedSetup, ManageError> {
    let minted = mint(Service::Console)?;
    let row = KeyRow {
        id: crate::id::new("key").into(),
        // The store fills in the first app.
        app_id: "".into(),
        app_name: String::new(),
        service: Service::Console,
        last4: minted.last4,
        created_at: now,
        last_used_at: None,
        revoked_at: None,
        replaced_by: None,
        settings: KeySettings { name: Some(FIRST_KEY.to_owned()), ..KeySettings::default() },
        app_budget: None,
    };
    let (token, session) = sessions::new(&row.id, now)?;
    let row = store.set_up(&row, &minted.hash, &session)?;
    Ok(CompletedSetup { key: minted.key, token, session: sessions::from_row(&session, row, now) })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::keys::{NewKey, create, service_of};
    use crate::storage::KeyFilter;

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);

    fn is_denied(outcome: &Result<CompletedSetup, SetupError>) -> bool {
        matches!(outcome, Err(SetupError::Denied))
    }

    fn is_conflict(outcome: &Result<CompletedSetup, SetupError>) -> bool {
        matches!(outcome, Err(SetupError::Failed(ManageError::Storage(Error::Conflict(_)))))
    }

    #[test]
    fn a_token_creates_one_key_and_becomes_invalid() {
        let store = Store::in_memory(NOW).unwrap();
        let setup = Setup::default();
        assert!(is_denied(&setup.complete(&store, "", NOW)) && !setup.is_open(NOW));
        let token = setup.issue(NOW).unwrap();
        let wrong = mint::random_text(TOKEN_CHARS).unwrap();
        assert!(is_denied(&setup.complete(&store, wrong.expose_secret(), NOW)));
        let made = setup.complete(&store, token.expose_secret(), NOW).unwrap();
        assert_eq!(service_of(made.key.expose_secret()), Some(Service::Console));
        assert_eq!(*made.session.key, store.key(&made.session.key.id).unwrap());
        assert_eq!(
            (made.session.key.name.as_deref(), &*made.session.key.app_name),
            (Some(FIRST_KEY), "default")
        );
        assert!(is_denied(&setup.complete(&store, token.expose_secret(), NOW)) && !setup.is_open(NOW));
    }

    #[test]
    fn a_token_expires_and_is_replaced_by_the_next_one() {
        let store = Store::in_memory(NOW).unwrap();
        let setup = Setup::default();
        let (first, second) = (setup.issue(NOW).unwrap(), setup.issue(NOW).unwrap());
        assert!(is_denied(&setup.complete(&store, first.expose_secret(), NOW)));
        assert!(is_denied(&setup.complete(&store, second.expose_secret(), NOW.plus(LIFE))));
        assert!(!setup.is_open(NOW.plus(LIFE)) && !store.has_console_key(NOW).unwrap());
    }

    #[test]
    fn only_a_usable_console_key_prevents_setup_and_invalidates_the_token() {
        let store = Store::in_memory(NOW).unwrap();
        let setup = Setup::default();
        create(&store, &NewKey::new(Service::Verify, "default"), NOW).unwrap();
        let (_, revoked) = create(&store, &NewKey::new(Service::Console, "default"), NOW).unwrap();
        store.revoke_key(&revoked.id, NOW).unwrap();
        let token = setup.issue(NOW).unwrap();
        setup.complete(&store, token.expose_secret(), NOW).unwrap();
        let token = setup.issue(NOW).unwrap();
        assert!(is_conflict(&setup.complete(&store, token.expose_secret(), NOW)));
        assert!(is_denied(&setup.complete(&store, token.expose_secret(), NOW)));
    }

    #[test]
    fn of_concurrent_setups_only_one_creates_the_key() {
        let store = Store::in_memory(NOW).unwrap();
        let setup = Setup::default();
        let token = setup.issue(NOW).unwrap();
        let (together, racers) = (Barrier::new(8), 0..8);
        let made = std::thread::scope(|scope| {
            let race = || {
                together.wait();
                setup.complete(&store, token.expose_secret(), NOW).is_ok()
            };
            let threads: Vec<_> = racers.map(|_| scope.spawn(race)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).filter(|made| *made).count()
        });
        assert_eq!(made, 1);
        let keys = store.keys(&KeyFilter { service: Some(Service::Console), ..KeyFilter::default() });
        assert_eq!(keys.unwrap().len(), 1);
    }
}
