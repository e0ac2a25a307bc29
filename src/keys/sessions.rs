//! Dashboard sessions: created with a console key, recognised by the content of their cookie, ended.
//!
//! A cookie holds 256 random bits; only their SHA-256 is stored, as with keys. What must hold: a session is worth no
//! more than its key, which is checked anew at every request (once it is revoked or expired, so are all its sessions);
//! it ends twelve hours after it was created, and after half an hour without a request. Its last use is written once a
//! minute at most, so it may end up to a minute early, never late.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::authenticate::{Denied, admit};
use super::{ManageError, mint};
use crate::api::Service;
use crate::clock::Time;
use crate::secret::{ExposeSecret, SecretString};
use crate::storage::{Error, KeyHash, KeyRow, SessionRow, Store};

/// The maximum lifetime of a session.
pub const LIFE: Duration = Duration::from_hours(12);
/// How long a session lives without a request.
pub const IDLE: Duration = Duration::from_mins(30);
/// How old the recorded last use may get before it is written again.
const TOUCH_INTERVAL: Duration = Duration::from_mins(1);
/// How far in the future a session may have been created or used. Beyond that it was created under a wrong clock and
/// would outlive its limit; smaller clock corrections end nobody's session.
const CLOCK_TOLERANCE: Duration = Duration::from_mins(5);
/// The number of base62 characters that hold 256 bits.
const TOKEN_CHARS: usize = 43;

/// A session that is valid now.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its console key.
    pub key: Arc<KeyRow>,
    /// When it ends at the latest.
    pub expires_at: Time,
    /// SHA-256 of its cookie's content.
    pub hash: KeyHash,
    /// Whether its last use is due to be recorded.
    pub needs_touch: bool,
}

/// Creates a session with a valid console key; also returns the content of its cookie.
pub fn begin(store: &Store, key: &KeyRow, now: Time) -> Result<(SecretString, Session), ManageError> {
    let (token, row) = new(&key.id, now)?;
    store.create_session(&row, IDLE)?;
    Ok((token, from_row(&row, key.clone(), now)))
}

/// A session that is not stored yet, and the content of its cookie.
pub(super) fn new(key_id: &str, now: Time) -> Result<(SecretString, SessionRow), getrandom::Error> {
    let token = mint::random_text(TOKEN_CHARS)?;
    let row = SessionRow {
        hash: mint::hash(token.expose_secret()),
        key_id: key_id.to_owned(),
        created_at: now,
        expires_at: now.plus(LIFE),
        seen_at: now,
    };
    Ok((token, row))
}

/// The session of a row and its key.
pub(super) fn from_row(row: &SessionRow, key: KeyRow, now: Time) -> Session {
    let needs_touch = now.since(row.seen_at) >= TOUCH_INTERVAL;
    Session { key: Arc::new(key), expires_at: row.expires_at, hash: row.hash, needs_touch }
}

/// The session whose cookie holds `token`, if it is valid for a request from `address`.
pub fn recognise(store: &Store, token: &str, address: IpAddr, now: Time) -> Result<Session, Denied> {
    let hash = hash_of(token).ok_or(Denied::InvalidSession)?;
    let found = store.session(&hash)?;
    let (row, key) = found.ok_or(Denied::InvalidSession)?;
    let is_from_the_future = row.created_at.max(row.seen_at) > now.plus(CLOCK_TOLERANCE);
    if row.expires_at <= now || row.seen_at.plus(IDLE) <= now || is_from_the_future {
        return Err(Denied::InvalidSession);
    }
    admit(&key, Some(Service::Console), address, now)?;
    Ok(from_row(&row, key, now))
}

impl Session {
    /// Records that it was used. A write, due once a minute: see [`Session::needs_touch`].
    pub fn record_use(&self, store: &Store, now: Time) -> Result<(), Error> {
        store.touch_session(&self.hash, now)
    }
}

/// Ends the session whose cookie holds `token`; returns whether there was one.
pub fn end(store: &Store, token: &str, now: Time) -> Result<bool, Error> {
    match hash_of(token) {
        Some(hash) => store.end_session(&hash, now),
        None => Ok(false),
    }
}

/// Whether a cookie's content has the format of a session's.
pub fn is_token(text: &str) -> bool {
    hash_of(text).is_some()
}

/// The stored hash of a cookie's content, if it has the right format.
fn hash_of(token: &str) -> Option<KeyHash> {
    mint::is_random_text(token, TOKEN_CHARS).then(|| mint::hash(token))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::keys::{NewKey, create};

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);
    const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const MINUTE: Duration = Duration::from_mins(1);

    fn key(store: &Store, change: impl FnOnce(&mut NewKey)) -> KeyRow {
        let mut new = NewKey::new(Service::Console, "default");
        change(&mut new);
        create(store, &new, NOW).unwrap().1
    }

    fn ask(store: &Store, token: &SecretString, now: Time) -> Result<Session, Denied> {
        recognise(store, token.expose_secret(), HOME, now)
    }

    #[test]
    fn half_an_hour_without_a_request_ends_it() {
        let store = Store::in_memory(NOW).unwrap();
        let (token, session) = begin(&store, &key(&store, |_| {}), NOW).unwrap();
        assert_eq!((token.expose_secret().len(), session.needs_touch), (TOKEN_CHARS, false));
        let at = |minutes: u32| NOW.plus(minutes * MINUTE);
        assert!(!ask(&store, &token, NOW.plus(Duration::from_secs(59))).unwrap().needs_touch);
        let seen = ask(&store, &token, at(29)).unwrap();
        assert!(seen.needs_touch);
        seen.record_use(&store, at(29)).unwrap();
        assert!(ask(&store, &token, at(58)).is_ok());
        assert!(matches!(ask(&store, &token, at(59)), Err(Denied::InvalidSession)));
    }

    #[test]
    fn twelve_hours_end_it_however_busy_it_is() {
        let store = Store::in_memory(NOW).unwrap();
        let (token, _) = begin(&store, &key(&store, |_| {}), NOW).unwrap();
        for minutes in (20..12 * 60).step_by(20) {
            let now = NOW.plus(minutes * MINUTE);
            ask(&store, &token, now).unwrap().record_use(&store, now).unwrap();
        }
        let end = NOW.plus(LIFE);
        assert!(ask(&store, &token, Time::from_unix_ms(end.unix_ms() - 1)).is_ok());
        assert!(matches!(ask(&store, &token, end), Err(Denied::InvalidSession)));
    }

    #[test]
    fn it_is_worth_no_more_than_its_key() {
        let store = Store::in_memory(NOW).unwrap();
        let revoked = key(&store, |_| {});
        let (token, _) = begin(&store, &revoked, NOW).unwrap();
        store.revoke_key(&revoked.id, NOW).unwrap();
        assert!(matches!(ask(&store, &token, NOW), Err(Denied::Revoked)));
        let expiring = key(&store, |new| new.expires_at = Some(NOW.plus(MINUTE)));
        let (token, _) = begin(&store, &expiring, NOW).unwrap();
        assert!(matches!(ask(&store, &token, NOW.plus(MINUTE)), Err(Denied::Expired)));
        let elsewhere = key(&store, |new| new.addresses = vec!["10.0.0.0/8".to_owned()]);
        let (token, _) = begin(&store, &elsewhere, NOW).unwrap();
        assert!(matches!(ask(&store, &token, NOW), Err(Denied::AddressNotAllowed)));
    }

    #[test]
    fn an_invalid_session_is_refused() {
        let store = Store::in_memory(NOW).unwrap();
        let (token, _) = begin(&store, &key(&store, |_| {}), NOW).unwrap();
        assert!(end(&store, token.expose_secret(), NOW).unwrap());
        assert!(!end(&store, token.expose_secret(), NOW).unwrap());
        let unknown = mint::random_text(TOKEN_CHARS).unwrap();
        for text in [token.expose_secret(), unknown.expose_secret(), "", "x", &"x".repeat(100_000)] {
            assert!(matches!(recognise(&store, text, HOME, NOW), Err(Denied::InvalidSession)));
        }
    }
}
