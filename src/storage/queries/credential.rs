//! Checks the credential behind a write in the transaction of that write.
//!
//! The gate checks a key when a request begins. Before the request writes anything, its body has to arrive, which may
//! take a while, and other writes have to be waited for; in the meantime the key may have been revoked. Writes to apps,
//! keys and sessions are serialised across all processes: what one sees of a key holds until it is committed, and it
//! sees every revocation that has returned.

use std::sync::Arc;

use rusqlite::params;

use super::values::{read_optional_time, read_time};
use crate::clock::Clock;
use crate::storage::db::Db;
use crate::storage::{Error, KeyHash, Store};

/// What authenticated a writer, which must still be valid when it writes.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The key.
    pub key_id: Arc<str>,
    /// The session created with that key, if the writer came with one.
    pub session: Option<KeyHash>,
    /// The clock by which both expire.
    pub clock: Clock,
}

/// Why the credential behind a write is no longer valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCredential {
    /// The key was revoked.
    #[error("the key that authorised this change was revoked")]
    Revoked,
    /// The key has expired.
    #[error("the key that authorised this change has expired")]
    Expired,
    /// The session is over.
    #[error("the session that authorised this change has ended")]
    SessionEnded,
}

impl Store {
    /// Writes to apps, keys or sessions in one transaction, like [`Part::write`](crate::storage::store::Part::write),
    /// if the store's credential is still valid.
    pub(super) fn change<T>(&self, change: impl FnOnce(&Db<'_>) -> Result<T, Error>) -> Result<T, Error> {
        self.main().write(|db| {
            if let Some(credential) = &self.credential {
                credential.check(db)?;
            }
            change(db)
        })
    }
}

impl Credential {
    fn check(&self, db: &Db<'_>) -> Result<(), Error> {
        let now = self.clock.now();
        if let Some(hash) = &self.session {
            let ends =
                db.query_row("SELECT expires_at FROM sessions WHERE hash = ?1", params![hash], |row| {
                    read_time(row, 0)
                })?;
            if ends.is_none_or(|ends| ends <= now) {
                return Err(Error::InvalidCredential(InvalidCredential::SessionEnded));
            }
        }
        let found = db.query_row(
            "SELECT revoked_at, expires_at FROM keys WHERE id = ?1",
            params![self.key_id],
            |row| Ok((read_optional_time(row, 0)?, read_optional_time(row, 1)?)),
        )?;
        match found {
            Some((None, None)) => Ok(()),
            Some((None, Some(ends))) if ends > now => Ok(()),
            Some((None, Some(_))) => Err(Error::InvalidCredential(InvalidCredential::Expired)),
            Some((Some(_), _)) | None => Err(Error::InvalidCredential(InvalidCredential::Revoked)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::api::Service;
    use crate::api::console::{KeyChange, KeySettings};
    use crate::clock::Time;
    use crate::keys::{NewKey, create};
    use crate::storage::{Actor, AppChange, AppRow, KeyRow, SessionRow};

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);
    const HOUR: Duration = Duration::from_hours(1);

    fn rejection<T>(outcome: Result<T, Error>) -> Option<InvalidCredential> {
        match outcome {
            Ok(_) => None,
            Err(Error::InvalidCredential(how)) => Some(how),
            Err(other) => panic!("{other:?}"),
        }
    }

    /// The same store, writing with this key's credential.
    fn with(store: &Store, key: &KeyRow, session: Option<KeyHash>, clock: &Clock) -> Store {
        let credential = Credential { key_id: key.id.clone(), session, clock: clock.clone() };
        store.acting_as(Actor::default()).with_credential(credential)
    }

    #[test]
    fn nothing_is_written_with_a_key_that_was_revoked() {
        let (store, clock) = (Store::in_memory(NOW).unwrap(), Clock::manual(NOW));
        let new = NewKey::new(Service::Console, "default");
        let ((_, key), (_, other)) = (create(&store, &new, NOW).unwrap(), create(&store, &new, NOW).unwrap());
        let app = AppRow { id: "app_2".to_owned(), name: "news".to_owned(), budget: None, created_at: NOW };
        let theirs = with(&store, &key, None, &clock);
        theirs.revoke_key(&key.id, NOW).unwrap();

        let row = KeyRow { id: "key_2".into(), ..other.clone() };
        let outcomes = [
            rejection(theirs.create_app(&app)),
            rejection(theirs.update_app(&other.app_id, &AppChange::default(), NOW)),
            rejection(theirs.delete_app(&other.app_id, NOW)),
            rejection(theirs.create_key(&row, &[7; 32])),
            rejection(theirs.update_key(&other.id, &KeyChange::default(), NOW)),
            rejection(theirs.rotate_key(&other.id, NOW, &[7; 32], |_| row.clone())),
            rejection(theirs.revoke_key(&other.id, NOW)),
        ];
        assert_eq!(outcomes, [Some(InvalidCredential::Revoked); 7]);
        assert_eq!(rejection(with(&store, &other, None, &clock).create_app(&app)), None);
        let nobody = KeyRow { id: "key_none".into(), ..other };
        assert_eq!(
            rejection(with(&store, &nobody, None, &clock).create_app(&app)),
            Some(InvalidCredential::Revoked)
        );
    }

    #[test]
    fn keys_and_sessions_that_have_ended_write_nothing() {
        let (store, clock) = (Store::in_memory(NOW).unwrap(), Clock::manual(NOW));
        let settings = KeySettings { expires_at: Some(NOW.plus(2 * HOUR)), ..KeySettings::default() };
        let new = NewKey { settings, ..NewKey::new(Service::Console, "default") };
        let (_, key) = create(&store, &new, NOW).unwrap();
        let session = |number| SessionRow {
            hash: [number; 32],
            key_id: key.id.to_string(),
            created_at: NOW,
            expires_at: NOW.plus(HOUR),
            seen_at: NOW,
        };
        store.create_session(&session(1), HOUR).unwrap();
        store.create_session(&session(2), HOUR).unwrap();
        let write = |session: Option<u8>| {
            let theirs = with(&store, &key, session.map(|number| [number; 32]), &clock);
            rejection(theirs.update_app(&key.app_id, &AppChange::default(), NOW))
        };
        store.end_session(&[2; 32], NOW).unwrap();
        assert_eq!(
            [write(None), write(Some(1)), write(Some(2))],
            [None, None, Some(InvalidCredential::SessionEnded)]
        );
        clock.advance(HOUR);
        assert_eq!([write(None), write(Some(1))], [None, Some(InvalidCredential::SessionEnded)]);
        clock.advance(HOUR);
        assert_eq!(write(None), Some(InvalidCredential::Expired));
    }
}
