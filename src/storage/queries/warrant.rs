//! What somebody's writes rest on, looked at in the transaction of each of them.
//!
//! A gate looks at a key when a request begins. Until something is written in its name a body has to come, which may
//! take its time, and others have to be waited for, and meanwhile the key may have been revoked. Writes of apps, keys and
//! sessions follow one another, in whatever process: what is seen of a key within one holds until that is kept, and a
//! revocation that has returned is seen.

use std::fmt;
use std::sync::Arc;

use rusqlite::params;

use super::values::{read_optional_time, read_time};
use crate::clock::Clock;
use crate::storage::db::Db;
use crate::storage::{Error, KeyHash, Store};

/// What a writer has come with, which must be good still when it writes.
#[derive(Clone, Debug)]
pub struct Warrant {
    /// A key.
    pub key_id: Arc<str>,
    /// The session that was made from it, of whoever has come with that.
    pub session: Option<KeyHash>,
    /// By which both expire.
    pub clock: Clock,
}

/// How what a writer has come with has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lapsed {
    /// The key was revoked.
    Revoked,
    /// The key has expired.
    Expired,
    /// The session is over.
    NoSession,
}

impl fmt::Display for Lapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Revoked => "the key that this was to be written with was revoked",
            Self::Expired => "the key that this was to be written with has expired",
            Self::NoSession => "the session that this was to be written with is over",
        })
    }
}

impl Store {
    /// Writes to apps, keys or sessions in one transaction, as [`Part::write`](crate::storage::store::Part::write) has
    /// it, if what this is done with is good still.
    pub(super) fn change<T>(&self, change: impl FnOnce(&Db<'_>) -> Result<T, Error>) -> Result<T, Error> {
        self.main().write(|db| {
            if let Some(warrant) = &self.warrant {
                warrant.must_be_good(db)?;
            }
            change(db)
        })
    }
}

impl Warrant {
    fn must_be_good(&self, db: &Db<'_>) -> Result<(), Error> {
        let now = self.clock.now();
        if let Some(hash) = &self.session {
            let ends =
                db.query_row("SELECT expires_at FROM sessions WHERE hash = ?1", params![hash], |row| {
                    read_time(row, 0)
                })?;
            if ends.is_none_or(|ends| ends <= now) {
                return Err(Error::Lapsed(Lapsed::NoSession));
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
            Some((None, Some(_))) => Err(Error::Lapsed(Lapsed::Expired)),
            Some((Some(_), _)) | None => Err(Error::Lapsed(Lapsed::Revoked)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::api::Service;
    use crate::clock::Time;
    use crate::keys::{NewKey, create};
    use crate::storage::{Actor, AppChange, AppRow, KeyChange, KeyRow, SessionRow};

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);
    const HOUR: Duration = Duration::from_hours(1);

    fn lapsed<T>(outcome: Result<T, Error>) -> Option<Lapsed> {
        match outcome {
            Ok(_) => None,
            Err(Error::Lapsed(how)) => Some(how),
            Err(other) => panic!("{other:?}"),
        }
    }

    /// The same store, as whoever has this key writes to it.
    fn with(store: &Store, key: &KeyRow, session: Option<KeyHash>, clock: &Clock) -> Store {
        let warrant = Warrant { key_id: key.id.clone(), session, clock: clock.clone() };
        store.acting(Actor::default()).on(warrant)
    }

    #[test]
    fn nothing_is_written_with_a_key_that_was_revoked() {
        let (store, clock) = (Store::in_memory(NOW).unwrap(), Clock::manual(NOW));
        let new = NewKey::of(Service::Console, "default");
        let ((_, key), (_, other)) = (create(&store, &new, NOW).unwrap(), create(&store, &new, NOW).unwrap());
        let app = AppRow { id: "app_2".to_owned(), name: "news".to_owned(), budget: None, created_at: NOW };
        let theirs = with(&store, &key, None, &clock);
        theirs.revoke_key(&key.id, NOW).unwrap();

        let row = KeyRow { id: "key_2".into(), ..other.clone() };
        let outcomes = [
            lapsed(theirs.create_app(&app)),
            lapsed(theirs.update_app(&other.app_id, &AppChange::default(), NOW)),
            lapsed(theirs.delete_app(&other.app_id, NOW)),
            lapsed(theirs.create_key(&row, &[7; 32])),
            lapsed(theirs.update_key(&other.id, &KeyChange::default(), NOW)),
            lapsed(theirs.rotate_key(&other.id, NOW, &[7; 32], |_| row.clone())),
            lapsed(theirs.revoke_key(&other.id, NOW)),
        ];
        assert_eq!(outcomes, [Some(Lapsed::Revoked); 7]);
        assert_eq!(lapsed(with(&store, &other, None, &clock).create_app(&app)), None);
        let nobody = KeyRow { id: "key_none".into(), ..other };
        assert_eq!(lapsed(with(&store, &nobody, None, &clock).create_app(&app)), Some(Lapsed::Revoked));
    }

    #[test]
    fn keys_and_sessions_that_have_ended_write_nothing() {
        let (store, clock) = (Store::in_memory(NOW).unwrap(), Clock::manual(NOW));
        let new = NewKey { expires_at: Some(NOW.plus(2 * HOUR)), ..NewKey::of(Service::Console, "default") };
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
            lapsed(theirs.update_app(&key.app_id, &AppChange::default(), NOW))
        };
        store.end_session(&[2; 32], NOW).unwrap();
        assert_eq!([write(None), write(Some(1)), write(Some(2))], [None, None, Some(Lapsed::NoSession)]);
        clock.advance(HOUR);
        assert_eq!([write(None), write(Some(1))], [None, Some(Lapsed::NoSession)]);
        clock.advance(HOUR);
        assert_eq!(write(None), Some(Lapsed::Expired));
    }
}
