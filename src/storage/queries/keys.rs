//! Keys. When they were last used is in the ledger, which is read for listings only.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, LazyLock};

use rusqlite::params;
use serde_json::{Map, Value, json};

use super::audit::{NewAuditEntry, differences};
use super::values::{
    conflict_or, list, money, read_count, read_end_users, read_guard, read_list, read_money,
    read_optional_time, read_service, read_time,
};
use crate::api::cache_time::CacheTime;
use crate::api::console::{KeyChange, KeySettings, KeyState};
use crate::api::guard::Guard;
use crate::clock::Time;
use crate::storage::db::{Db, Row};
use crate::storage::{Error, KeyFilter, KeyHash, KeyLife, KeyRow, Order, PageRequest, Store};

/// Up to this many keys, last uses are read with one query per key; beyond, with a single one.
const MAX_SINGLE_READS: usize = 1000;

const KEY_EXISTS: &str = "this key already exists";
const REVOKED: &str = "this key is revoked for good; create a new one instead";
const ROTATED: &str = "this key was already rotated; rotate the key that replaced it, or revoke this one";
const REPLACED: &str = "this key was rotated, so its expiry cannot be extended; use the key that replaced it, \
    or create a new one";
const EXPIRED: &str = "this key has already expired; create a new one instead";

/// The columns, in the order that [`key_row`] reads them.
const SELECT: &str = "
    SELECT k.id, k.app_id, a.name, k.service, k.last4, k.created_at, k.revoked_at, a.budget_nano_usd,
           k.name, k.expires_at, k.per_minute, k.per_day, k.models, k.addresses, k.budget_nano_usd,
           k.cache_seconds, k.verify, k.end_users
    FROM keys k JOIN apps a ON a.id = k.app_id";

/// The query behind the look-up of every request, formatted once.
pub(in crate::storage) static BY_HASH: LazyLock<String> =
    LazyLock::new(|| format!("{SELECT} WHERE k.hash = ?1"));

/// Finds the key with this id unless it is revoked.
pub(in crate::storage) const LIVE: &str = "SELECT expires_at FROM keys WHERE id = ?1 AND revoked_at IS NULL";

impl Store {
    /// Stores a new key. [`Error::NotFound`] if its app no longer exists.
    pub fn create_key(&self, key: &KeyRow, hash: &KeyHash) -> Result<(), Error> {
        self.change(|db| {
            insert(db, key, hash)?;
            self.note_key(db, "key.created", key.created_at, key, described(key)?)
        })
    }

    /// The key with this hash, including revoked and expired ones: an indexed read of about 4 µs in SQLite, on a
    /// connection of its own.
    pub fn key_by_hash(&self, hash: &KeyHash) -> Result<Option<KeyRow>, Error> {
        self.main().read(|db| by_hash(db, hash))
    }

    /// The key with this id, without its last use: does not read the ledger, so that a key can be revoked while the
    /// ledger is unreadable.
    pub fn key_alone(&self, id: &str) -> Result<KeyRow, Error> {
        self.main().read(|db| key_by_id(db, id))
    }

    /// The key with this id, last use included.
    pub fn key(&self, id: &str) -> Result<KeyRow, Error> {
        let mut row = self.key_alone(id)?;
        self.fill_for_listing(std::slice::from_mut(&mut row))?;
        Ok(row)
    }

    /// How long each of these keys is valid. One read, however many keys.
    pub fn key_lives(&self, ids: &[&str]) -> Result<Vec<KeyLife>, Error> {
        let until = |row: &Row<'_>| read_optional_time(row, 0).map(KeyLife::Until);
        let found = self.main().read(|db| db.query_each(LIVE, ids, |id, run| run(params![id]), until))?;
        Ok(found.into_iter().map(|life| life.unwrap_or(KeyLife::Ended)).collect())
    }

    /// The number of an app's keys that are usable at `now`.
    pub fn active_keys(&self, app_id: &str, now: Time) -> Result<u64, Error> {
        self.main().read(|db| {
            let found = db.query_row(
                "SELECT count(*) FROM keys
                 WHERE app_id = ?1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?2)",
                params![app_id, now.unix_ms()],
                |row| read_count(row, 0),
            )?;
            Ok(found.unwrap_or(0))
        })
    }

    /// Keys, oldest first, last use included.
    pub fn keys(&self, filter: &KeyFilter) -> Result<Vec<KeyRow>, Error> {
        let mut rows = self.main().read(|db| list_keys(db, filter))?;
        self.fill_for_listing(&mut rows)?;
        Ok(rows)
    }

    /// A page of the keys that are in this state at `now` (`None` for any) in the order of ids, hence of their making,
    /// last use included. `filter.revoked_too` is ignored.
    pub fn keys_page(
        &self,
        filter: &KeyFilter,
        state: Option<KeyState>,
        now: Time,
        span: &PageRequest,
        order: Order,
    ) -> Result<Vec<KeyRow>, Error> {
        let service = filter.service.map(crate::api::Service::as_str);
        let mut rows = self.main().read(|db| {
            let of_app = app_condition(filter);
            let (beyond, sorted) = order.after("k.id", "?5");
            let sql = format!(
                "{SELECT} WHERE {of_app} AND (CAST(?2 AS TEXT) IS NULL OR k.service = ?2)
                     AND (CAST(?3 AS TEXT) IS NULL OR ?3 = CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked'
                                                  WHEN k.expires_at <= ?4 THEN 'expired' ELSE 'active' END)
                     AND {beyond}
                 ORDER BY {sorted} LIMIT ?6"
            );
            let state = state.map(KeyState::as_str);
            let bound = params![filter.app_id, service, state, now.unix_ms(), span.after, span.limit];
            db.query(&sql, bound, key_row)
        })?;
        self.fill_for_listing(&mut rows)?;
        Ok(rows)
    }

    /// Revokes a key for good; committed when this returns. Idempotent: returns the time of the first revocation.
    pub fn revoke_key(&self, id: &str, now: Time) -> Result<Time, Error> {
        let at = self.change(|db| {
            let key = key_by_id(db, id)?;
            if let Some(at) = key.revoked_at {
                return Ok(at);
            }
            db.execute("UPDATE keys SET revoked_at = ?2 WHERE id = ?1", params![id, now.unix_ms()])?;
            self.note_key(db, "key.revoked", now, &key, json!({}))?;
            Ok(now)
        })?;
        self.ensure_ended(&[id])?;
        Ok(at)
    }

    /// Fails if one of these keys, which were just revoked, is still valid. Nobody may be told so of a database that
    /// drops the write, by a trigger or a rule.
    pub(super) fn ensure_ended(&self, ids: &[&str]) -> Result<(), Error> {
        if self.key_lives(ids)?.iter().all(|life| *life == KeyLife::Ended) {
            return Ok(());
        }
        let message =
            "the database did not store the revocation, and the key is still valid; `mk doctor` may show why";
        Err(io::Error::new(io::ErrorKind::InvalidData, message).into())
    }

    /// Changes a key. [`Error::Conflict`] if it is revoked, or if it was rotated and would live longer: beside its
    /// replacement there would be two of it again.
    pub fn update_key(&self, id: &str, change: &KeyChange, now: Time) -> Result<KeyRow, Error> {
        let mut row = self.change(|db| {
            let old = key_by_id(db, id)?;
            if old.revoked_at.is_some() {
                return Err(Error::Conflict(REVOKED));
            }
            let new = KeyRow { settings: change.clone().applied_to(&old.settings), ..old.clone() };
            if ends_later(&old, &new) && is_replaced(db, id)? {
                return Err(Error::Conflict(REPLACED));
            }
            db.execute(
                "UPDATE keys SET name = ?2, expires_at = ?3, per_minute = ?4, per_day = ?5, models = ?6,
                     addresses = ?7, budget_nano_usd = ?8, cache_seconds = ?9, verify = ?10,
                     end_users = ?11
                 WHERE id = ?1",
                params![
                    id,
                    new.name,
                    new.expires_at.map(Time::unix_ms),
                    new.per_minute,
                    new.per_day,
                    list(&new.models),
                    list(&new.addresses),
                    money(new.budget),
                    new.cache.map(CacheTime::seconds),
                    new.verify.map(Guard::as_str),
                    new.end_users.map(|limits| limits.to_string()),
                ],
            )?;
            let (before, after) = (shown(&old.settings)?, shown(&new.settings)?);
            let fields = before.into_iter().zip(after);
            let details = differences(fields.map(|((name, before), (_, after))| (name, before, after)));
            if !details.is_empty() {
                self.note_key(db, "key.updated", now, &new, Value::Object(details))?;
            }
            Ok(new)
        })?;
        self.fill_for_listing(std::slice::from_mut(&mut row))?;
        Ok(row)
    }

    /// Stores the key that `renew` makes of the key `old` as it is now, and ends the old one at `old_ends` (or at its
    /// own expiry, if that is earlier), in one transaction. [`Error::Conflict`] if `old` is revoked, was replaced
    /// before, or had expired when the new one was created.
    pub fn rotate_key(
        &self,
        old: &str,
        old_ends: Time,
        hash: &KeyHash,
        renew: impl FnOnce(&KeyRow) -> KeyRow,
    ) -> Result<KeyRow, Error> {
        self.change(|db| {
            let replaced = key_by_id(db, old)?;
            if replaced.revoked_at.is_some() {
                return Err(Error::Conflict(REVOKED));
            }
            let new = renew(&replaced);
            insert(db, &new, hash)?;
            let end = replaced.expires_at.map_or(old_ends, |at| at.min(old_ends));
            let is_first = db.execute(
                "UPDATE keys SET expires_at = ?2, replaced_by = ?3 WHERE id = ?1 AND replaced_by IS NULL",
                params![old, end.unix_ms(), new.id],
            )?;
            if is_first == 0 {
                return Err(Error::Conflict(ROTATED));
            }
            if replaced.expires_at.is_some_and(|at| at <= new.created_at) {
                return Err(Error::Conflict(EXPIRED));
            }
            let details = json!({ "replaced_by": &*new.id, "ends_at": end.rfc3339() });
            self.note_key(db, "key.rotated", new.created_at, &replaced, details)?;
            Ok(new)
        })
    }

    /// Records in the audit log what was done to a key.
    pub(super) fn note_key(
        &self,
        db: &Db<'_>,
        action: &'static str,
        at: Time,
        key: &KeyRow,
        details: Value,
    ) -> Result<(), Error> {
        let object_name = key.name.as_deref();
        self.audit_entry(db, &NewAuditEntry { at, action, object: &key.id, object_name, details })
    }

    /// Fills in what look-ups for authentication leave out.
    fn fill_for_listing(&self, keys: &mut [KeyRow]) -> Result<(), Error> {
        let sql = "SELECT replaced_by FROM keys WHERE id = ?1 AND replaced_by IS NOT NULL";
        // A rotation always gives the old key an end.
        let mut ending: Vec<&mut KeyRow> = keys.iter_mut().filter(|key| key.expires_at.is_some()).collect();
        let found = self.main().read(|db| {
            db.query_each(sql, &ending, |key, run| run(params![key.id]), |row| row.get::<Arc<str>>(0))
        })?;
        for (key, replaced_by) in ending.iter_mut().zip(found) {
            key.replaced_by = replaced_by;
        }
        self.fill_last_uses(keys)
    }

    fn fill_last_uses(&self, keys: &mut [KeyRow]) -> Result<(), Error> {
        if keys.len() > MAX_SINGLE_READS {
            return self.fill_last_uses_of_many(keys);
        }
        let sql = "SELECT at FROM key_last_used WHERE key_id = ?1";
        let last_uses = self.ledger().read(|db| {
            db.query_each(sql, &*keys, |key, run| run(params![key.id]), |row| read_time(row, 0))
        })?;
        for (key, last_use) in keys.iter_mut().zip(last_uses) {
            key.last_used_at = last_use;
        }
        Ok(())
    }

    /// Like [`Self::fill_last_uses`], with a single query, which may return other keys' last uses too.
    fn fill_last_uses_of_many(&self, keys: &mut [KeyRow]) -> Result<(), Error> {
        let ids = || keys.iter().map(|key| &*key.id);
        let (first, last) = (ids().min(), ids().max());
        let sql = "SELECT key_id, at FROM key_last_used WHERE key_id BETWEEN ?1 AND ?2";
        let read = |row: &Row<'_>| Ok((row.get::<String>(0)?, read_time(row, 1)?));
        let found = self.ledger().read(|db| db.query(sql, params![first, last], read))?;
        let found: HashMap<String, Time> = found.into_iter().collect();
        for key in keys {
            key.last_used_at = found.get(&*key.id).copied();
        }
        Ok(())
    }
}

/// Keys, oldest first, without their last use.
pub(super) fn list_keys(db: &Db<'_>, filter: &KeyFilter) -> Result<Vec<KeyRow>, Error> {
    let service = filter.service.map(crate::api::Service::as_str);
    let of_app = app_condition(filter);
    let sql = format!(
        "{SELECT} WHERE {of_app} AND (CAST(?2 AS TEXT) IS NULL OR k.service = ?2) AND (?3 OR k.revoked_at IS NULL)
         ORDER BY k.created_at, k.id"
    );
    db.query(&sql, params![filter.app_id, service, filter.revoked_too], key_row)
}

/// The app filter, as a condition that the query planner can use.
const fn app_condition(filter: &KeyFilter) -> &'static str {
    if filter.app_id.is_some() { "k.app_id = ?1" } else { "CAST(?1 AS TEXT) IS NULL" }
}

pub(in crate::storage) fn by_hash(db: &Db<'_>, hash: &KeyHash) -> Result<Option<KeyRow>, Error> {
    db.query_row(&BY_HASH, params![hash], key_row)
}

/// The key with this id, if there is one, without its last use.
pub(super) fn by_id(db: &Db<'_>, id: &str) -> Result<Option<KeyRow>, Error> {
    db.query_row(&format!("{SELECT} WHERE k.id = ?1"), params![id], key_row)
}

fn key_by_id(db: &Db<'_>, id: &str) -> Result<KeyRow, Error> {
    by_id(db, id)?.ok_or(Error::NotFound)
}

fn is_replaced(db: &Db<'_>, id: &str) -> Result<bool, Error> {
    let sql = "SELECT replaced_by IS NOT NULL FROM keys WHERE id = ?1";
    Ok(db.query_row(sql, params![id], |row| row.get(0))?.unwrap_or(false))
}

/// Whether a key would live longer after a change.
fn ends_later(old: &KeyRow, new: &KeyRow) -> bool {
    let end = |key: &KeyRow| key.expires_at.map_or(i64::MAX, Time::unix_ms);
    end(new) > end(old)
}

/// The settings of a key, as the audit log shows them.
fn shown(settings: &KeySettings) -> Result<Map<String, Value>, Error> {
    match serde_json::to_value(settings) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Ok(Map::new()),
        Err(cause) => Err(io::Error::from(cause).into()),
    }
}

/// The audit details of a new key: its app and service, and whichever other fields are set.
fn described(key: &KeyRow) -> Result<Value, Error> {
    let mut details = json!({ "app_id": &*key.app_id, "service": key.service });
    let is_set = |value: &Value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty());
    for (name, value) in
        shown(&key.settings)?.into_iter().filter(|(name, value)| name != "name" && is_set(value))
    {
        details[name] = value;
    }
    Ok(details)
}

/// Stores a new key. [`Error::NotFound`] if its app no longer exists.
pub(super) fn insert(db: &Db<'_>, key: &KeyRow, hash: &KeyHash) -> Result<(), Error> {
    let inserted = db.execute(
        "INSERT INTO keys (id, hash, app_id, service, name, last4, created_at, expires_at, revoked_at,
             per_minute, per_day, models, addresses, budget_nano_usd, cache_seconds, verify,
             end_users)
         SELECT ?1, ?2, id, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17
         FROM apps WHERE id = ?3 AND deleted_at IS NULL",
        params![
            key.id,
            hash,
            key.app_id,
            key.service.as_str(),
            key.name,
            key.last4,
            key.created_at.unix_ms(),
            key.expires_at.map(Time::unix_ms),
            key.revoked_at.map(Time::unix_ms),
            key.per_minute,
            key.per_day,
            list(&key.models),
            list(&key.addresses),
            money(key.budget),
            key.cache.map(CacheTime::seconds),
            key.verify.map(Guard::as_str),
            key.end_users.map(|limits| limits.to_string()),
        ],
    );
    match inserted.map_err(|cause| conflict_or(cause, KEY_EXISTS))? {
        0 => Err(Error::NotFound),
        _ => Ok(()),
    }
}

/// Reads a row of [`SELECT`].
pub(in crate::storage) fn key_row(row: &Row<'_>) -> rusqlite::Result<KeyRow> {
    Ok(KeyRow {
        id: row.get(0)?,
        app_id: row.get(1)?,
        app_name: row.get(2)?,
        service: read_service(row, 3)?,
        last4: row.get(4)?,
        created_at: read_time(row, 5)?,
        last_used_at: None,
        revoked_at: read_optional_time(row, 6)?,
        replaced_by: None,
        app_budget: read_money(row, 7)?,
        settings: KeySettings {
            name: row.get(8)?,
            expires_at: read_optional_time(row, 9)?,
            per_minute: row.get(10)?,
            per_day: row.get(11)?,
            models: read_list(row, 12)?,
            addresses: read_list(row, 13)?,
            budget: read_money(row, 14)?,
            cache: row.get::<Option<u32>>(15)?.and_then(CacheTime::of_seconds),
            verify: read_guard(row, 16)?,
            end_users: read_end_users(row, 17)?,
        },
    })
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn the_look_up_of_every_request_is_compiled_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Time::from_unix_ms(0)).unwrap();
        for number in 0..10 {
            assert_eq!(store.key_by_hash(&[number; 32]).unwrap(), None);
        }
        let compiled_again = |db: &Db<'_>| {
            let cached = db.file().prepare_cached(&BY_HASH)?;
            let runs = cached.get_status(StatementStatus::Run);
            Ok((runs, cached.get_status(StatementStatus::RePrepare)))
        };
        assert_eq!(store.main().read(compiled_again).unwrap(), (10, 0));
    }

    #[tokio::test]
    async fn ended_keys_are_found_among_many() {
        let now = Time::from_unix_ms(1_795_176_000_000);
        let store = Store::in_memory(now).unwrap();
        let keep = |number| {
            let (key, hash) = crate::storage::sqlite::tests::a_key(&store, number);
            store.create_key(&key, &hash).unwrap();
            key
        };
        let made: Vec<KeyRow> = (0..3).map(keep).collect();
        store.revoke_key(&made[1].id, now).unwrap();
        let ids = [&*made[0].id, "key_none", &made[1].id, &made[2].id];
        let live = KeyLife::Until(made[0].expires_at);
        assert_eq!(store.key_lives(&ids).unwrap(), [live, KeyLife::Ended, KeyLife::Ended, live]);
        assert!(store.key_lives(&[]).unwrap().is_empty());
        for (id, is_live) in ids.into_iter().zip([true, false, false, true]) {
            assert_eq!(store.is_key_live(id).await.unwrap(), is_live, "{id}");
        }
    }

    #[test]
    fn each_of_many_keys_gets_its_own_last_use() {
        let now = Time::from_unix_ms(1_795_176_000_000);
        let store = Store::in_memory(now).unwrap();
        let (key, _) = crate::storage::sqlite::tests::a_key(&store, 0);
        let ids: Vec<_> = (0..=MAX_SINGLE_READS).map(|number| format!("key_{number:04}")).collect();
        let made = store.main().write(|db| {
            ids.iter().enumerate().try_for_each(|(number, id)| {
                let mut hash = [0; 32];
                hash[..8].copy_from_slice(&number.to_be_bytes());
                insert(db, &KeyRow { id: id.as_str().into(), ..key.clone() }, &hash)
            })
        });
        made.unwrap();
        let used: Vec<_> =
            (0_i64..).zip(&ids).step_by(3).map(|(at, id)| (id.clone(), Time::from_unix_ms(at))).collect();
        let strangers = ["key_", "key_0000x", "key_z"].map(|id| (id.to_owned(), now));
        store.keep_counts(&[], &[&used[..], &strangers].concat()).unwrap();
        let found = store.keys(&KeyFilter::default()).unwrap();
        let found = found.into_iter().filter_map(|key| Some((key.id.to_string(), key.last_used_at?)));
        assert_eq!(found.collect::<Vec<_>>(), used);
    }
}
