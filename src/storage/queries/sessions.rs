//! Dashboard sessions, and the first console key, which is created together with one.
//!
//! A session is not deleted when its key is revoked or expires: a look-up returns the key with it, for the caller to
//! judge both. Creating a session deletes a bounded number of those that have ended.

use std::time::Duration;

use rusqlite::params;
use serde_json::json;

use super::audit::NewAuditEntry;
use super::keys;
use super::values::read_time;
use crate::clock::Time;
use crate::storage::db::{Db, Row};
use crate::storage::{Error, KeyHash, KeyRow, SessionRow, Store};

const HAS_CONSOLE_KEY: &str = "there is already a console key; log in with it";
/// The maximum number of ended sessions that creating one deletes.
const MAX_DELETED: u32 = 500;

impl Store {
    /// Stores a new session and deletes ended ones: those that have expired and those unused for `idle`.
    /// [`Error::NotFound`] if its key does not exist.
    pub fn create_session(&self, session: &SessionRow, idle: Duration) -> Result<(), Error> {
        self.change(|db| {
            delete_ended(db, session.created_at, idle)?;
            self.insert_session(db, session)
        })
    }

    /// The session with this hash, even if it has ended, and its key.
    pub fn session(&self, hash: &KeyHash) -> Result<Option<(SessionRow, KeyRow)>, Error> {
        self.main().read(|db| {
            let found = db.query_row(
                "SELECT hash, key_id, created_at, expires_at, seen_at FROM sessions WHERE hash = ?1",
                params![hash],
                session_row,
            )?;
            let Some(session) = found else { return Ok(None) };
            let key = keys::by_id(db, &session.key_id)?;
            Ok(key.map(|key| (session, key)))
        })
    }

    /// Records that a session was used. A deleted session stays deleted.
    pub fn touch_session(&self, hash: &KeyHash, now: Time) -> Result<(), Error> {
        self.change(|db| {
            db.execute(
                "UPDATE sessions SET seen_at = ?2 WHERE hash = ?1 AND seen_at < ?2",
                params![hash, now.unix_ms()],
            )?;
            Ok(())
        })
    }

    /// Ends a session and returns whether it existed.
    pub fn end_session(&self, hash: &KeyHash, now: Time) -> Result<bool, Error> {
        self.change(|db| {
            let ended: Option<String> = db.query_row(
                "DELETE FROM sessions WHERE hash = ?1 RETURNING key_id",
                params![hash],
                |row| row.get(0),
            )?;
            let Some(key_id) = ended else { return Ok(false) };
            self.note_session(db, "session.ended", &key_id, now)?;
            Ok(true)
        })
    }

    /// Records that a login was refused, with the code of the reason, and how many before it were not recorded.
    pub fn note_refused_login(&self, reason: &str, left_out: u64, at: Time) -> Result<(), Error> {
        let details = if left_out == 0 {
            json!({"reason": reason})
        } else {
            json!({"reason": reason, "refused_before": left_out})
        };
        let audit_entry =
            NewAuditEntry { at, action: "session.refused", object: "console", object_name: None, details };
        self.change(|db| self.audit_entry(db, &audit_entry))
    }

    /// Whether there is a console key that is usable at `now`.
    pub fn has_console_key(&self, now: Time) -> Result<bool, Error> {
        self.main().read(|db| has_console_key(db, now))
    }

    /// Stores the first console key, in the first app, and a session created with it; all or nothing. Returns the key
    /// with its app. [`Error::Conflict`] if there is a usable console key.
    pub fn set_up(&self, key: &KeyRow, hash: &KeyHash, session: &SessionRow) -> Result<KeyRow, Error> {
        self.change(|db| {
            let now = key.created_at;
            if has_console_key(db, now)? {
                return Err(Error::Conflict(HAS_CONSOLE_KEY));
            }
            let key = into_first_app(db, key)?;
            keys::insert(db, &key, hash)?;
            let object_name = key.name.as_deref();
            let audit_entry =
                |action, details| NewAuditEntry { at: now, action, object: &key.id, object_name, details };
            self.audit_entry(db, &audit_entry("console.set_up", json!({})))?;
            let details = json!({"service": key.service, "app_id": &*key.app_id});
            self.audit_entry(db, &audit_entry("key.created", details))?;
            self.insert_session(db, session)?;
            Ok(key)
        })
    }

    fn insert_session(&self, db: &Db<'_>, session: &SessionRow) -> Result<(), Error> {
        let inserted = db.execute(
            "INSERT INTO sessions (hash, key_id, created_at, expires_at, seen_at)
             SELECT ?1, id, ?3, ?4, ?5 FROM keys WHERE id = ?2",
            params![
                session.hash,
                session.key_id,
                session.created_at.unix_ms(),
                session.expires_at.unix_ms(),
                session.seen_at.unix_ms(),
            ],
        )?;
        if inserted == 0 {
            return Err(Error::NotFound);
        }
        self.note_session(db, "session.created", &session.key_id, session.created_at)
    }

    /// Records what was done to a session. A session has no public name, so its key is the audited object.
    fn note_session(&self, db: &Db<'_>, action: &'static str, key_id: &str, at: Time) -> Result<(), Error> {
        let name: Option<Option<String>> =
            db.query_row("SELECT name FROM keys WHERE id = ?1", params![key_id], |row| row.get(0))?;
        let name = name.flatten();
        let object_name = name.as_deref();
        self.audit_entry(db, &NewAuditEntry { at, action, object: key_id, object_name, details: json!({}) })
    }
}

fn delete_ended(db: &Db<'_>, now: Time, idle: Duration) -> Result<(), Error> {
    let idle_ms = i64::try_from(idle.as_millis()).unwrap_or(i64::MAX);
    db.execute(
        "DELETE FROM sessions WHERE hash IN
             (SELECT hash FROM sessions WHERE expires_at <= ?1 OR seen_at <= ?2 LIMIT ?3)",
        params![now.unix_ms(), now.unix_ms().saturating_sub(idle_ms), MAX_DELETED],
    )?;
    Ok(())
}

/// The service is a literal, as the partial index on console keys only serves queries that contain its condition.
const ANY_CONSOLE_KEY: &str =
    "SELECT EXISTS (SELECT 1 FROM keys WHERE service = 'console' AND revoked_at IS NULL
    AND (expires_at IS NULL OR expires_at > ?1))";

fn has_console_key(db: &Db<'_>, now: Time) -> Result<bool, Error> {
    let found = db.query_row(ANY_CONSOLE_KEY, params![now.unix_ms()], |row| row.get(0))?;
    Ok(found.unwrap_or(false))
}

/// The key, moved to the first app. There always is one: the last app cannot be deleted.
fn into_first_app(db: &Db<'_>, key: &KeyRow) -> Result<KeyRow, Error> {
    let app = db.query_row(
        "SELECT id, name FROM apps WHERE deleted_at IS NULL ORDER BY created_at, id LIMIT 1",
        &[],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let (app_id, app_name) = app.ok_or(Error::NotFound)?;
    Ok(KeyRow { app_id, app_name, ..key.clone() })
}

fn session_row(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    Ok(SessionRow {
        hash: row.get(0)?,
        key_id: row.get(1)?,
        created_at: read_time(row, 2)?,
        expires_at: read_time(row, 3)?,
        seen_at: read_time(row, 4)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Service;
    use crate::keys::{NewKey, create};

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);
    const IDLE: Duration = Duration::from_mins(30);

    #[test]
    fn console_keys_are_searched_by_an_index_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), NOW).unwrap();
        let plan: String = store
            .main()
            .read(|db| {
                let sql = format!("EXPLAIN QUERY PLAN {ANY_CONSOLE_KEY}");
                let steps: Vec<String> = db.query(&sql, params![0], |row| row.get(3))?;
                Ok(steps.join("; "))
            })
            .unwrap();
        assert!(plan.contains("keys_of_console"), "{plan}");
        assert!(!store.has_console_key(NOW).unwrap());
        let mut expiring = NewKey::new(Service::Console, "default");
        expiring.settings.expires_at = Some(NOW.plus(Duration::from_hours(1)));
        create(&store, &expiring, NOW).unwrap();
        create(&store, &NewKey::new(Service::Verify, "default"), NOW).unwrap();
        assert!(store.has_console_key(NOW).unwrap());
        assert!(!store.has_console_key(NOW.plus(Duration::from_hours(1))).unwrap());
    }

    fn session(number: u8, key_id: &str, at: Time) -> SessionRow {
        SessionRow {
            hash: [number; 32],
            key_id: key_id.to_owned(),
            created_at: at,
            expires_at: at.plus(Duration::from_hours(12)),
            seen_at: at,
        }
    }

    fn store_and_key() -> (Store, KeyRow) {
        let store = Store::in_memory(NOW).unwrap();
        let (_, key) = create(&store, &NewKey::new(Service::Console, "default"), NOW).unwrap();
        (store, key)
    }

    #[test]
    fn a_session_is_found_with_its_key_until_it_is_ended() {
        let (store, key) = store_and_key();
        let kept = session(1, &key.id, NOW);
        store.create_session(&kept, IDLE).unwrap();
        assert_eq!(store.session(&[1; 32]).unwrap(), Some((kept.clone(), key)));
        let later = NOW.plus(Duration::from_mins(5));
        store.touch_session(&[1; 32], later).unwrap();
        store.touch_session(&[1; 32], NOW).unwrap();
        assert_eq!(store.session(&[1; 32]).unwrap().unwrap().0, SessionRow { seen_at: later, ..kept });
        assert!(store.end_session(&[1; 32], later).unwrap());
        assert!(!store.end_session(&[1; 32], later).unwrap());
        store.touch_session(&[1; 32], later).unwrap();
        assert_eq!(store.session(&[1; 32]).unwrap(), None);
        let of_nobody = store.create_session(&session(2, "key_none", NOW), IDLE);
        assert!(matches!(of_nobody, Err(Error::NotFound)));
    }

    #[test]
    fn a_new_session_deletes_those_that_have_ended() {
        let (store, key) = store_and_key();
        for number in 1..=3 {
            store.create_session(&session(number, &key.id, NOW), IDLE).unwrap();
        }
        let later = NOW.plus(Duration::from_mins(20));
        store.touch_session(&[2; 32], later).unwrap();
        store.create_session(&session(4, &key.id, NOW.plus(IDLE)), IDLE).unwrap();
        let is_kept = |number: u8| store.session(&[number; 32]).unwrap().is_some();
        assert_eq!([1, 2, 3, 4].map(is_kept), [false, true, false, true]);
        store.touch_session(&[2; 32], NOW.plus(Duration::from_hours(12))).unwrap();
        store.create_session(&session(5, &key.id, NOW.plus(Duration::from_hours(12))), IDLE).unwrap();
        assert_eq!([2, 4, 5].map(is_kept), [false, false, true]);
    }
}
