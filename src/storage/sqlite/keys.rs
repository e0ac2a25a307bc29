//! Keys in `mk.db`. When they were last used stands in `ledger.db` and is joined here, for listings only.

use std::sync::{Arc, LazyLock};

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Store;
use super::values::{
    conflict_or, list, money, read_list, read_money, read_optional_time, read_service, read_time,
};
use crate::clock::Time;
use crate::storage::{Error, KeyFilter, KeyHash, KeyRow};

const KEY_EXISTS: &str = "this key exists already";
const REVOKED: &str = "this key is revoked, for ever; create a new one instead";
const EXPIRED: &str = "this key has expired already; create a new one instead";

/// The columns in the order of [`key_row`].
const SELECT: &str = "
    SELECT k.id, k.app_id, a.name, k.service, k.name, k.last4, k.created_at, k.expires_at, k.revoked_at,
           k.per_minute, k.per_day, k.models, k.addresses, k.budget_nano_usd, a.budget_nano_usd
    FROM keys k JOIN apps a ON a.id = k.app_id";

/// The read behind the look-up of every request, put together once.
static BY_HASH: LazyLock<String> = LazyLock::new(|| format!("{SELECT} WHERE k.hash = ?1"));

impl Store {
    /// Keeps a new key. [`Error::NotFound`] if its app is not there any more.
    pub fn create_key(&self, key: &KeyRow, hash: &KeyHash) -> Result<(), Error> {
        self.main().write(|db| insert(db, key, hash))
    }

    /// The key with this hash, as [`Store::key_by_hash`] would give it; the look-up of every request. Usually about
    /// 1 µs: of a key that was looked up before, only that nothing was written since.
    pub fn look_up_key(&self, hash: &KeyHash) -> Result<Option<Arc<KeyRow>>, Error> {
        let Some(recent) = &self.databases.recent_keys else {
            return Ok(self.key_by_hash(hash)?.map(Arc::new));
        };
        self.main().check_place()?;
        let stamp = recent.stamp();
        if let Some(row) = stamp.and_then(|stamp| recent.get(hash, stamp)) {
            return Ok(Some(row));
        }
        let stamp = stamp.filter(|stamp| recent.may_keep(*stamp, || self.main().is_at_rest()));
        let found = self.key_by_hash(hash)?.map(Arc::new);
        if let (Some(row), Some(stamp)) = (&found, stamp) {
            recent.keep(hash, row, stamp);
        }
        Ok(found)
    }

    /// The key with this hash, revoked and expired ones too: an indexed read on a connection of its own, about 4 µs.
    pub fn key_by_hash(&self, hash: &KeyHash) -> Result<Option<KeyRow>, Error> {
        self.main().read(|db| Ok(db.prepare_cached(&BY_HASH)?.query_row([hash], key_row).optional()?))
    }

    /// The key with this id, last use included.
    pub fn key(&self, id: &str) -> Result<KeyRow, Error> {
        let mut row = self.main().read(|db| {
            let mut query = db.prepare_cached(&format!("{SELECT} WHERE k.id = ?1"))?;
            query.query_row([id], key_row).optional()?.ok_or(Error::NotFound)
        })?;
        self.fill_last_uses(std::slice::from_mut(&mut row))?;
        Ok(row)
    }

    /// Whether a key may still be used: it is there and not revoked. Reads `mk.db` alone.
    pub fn is_key_live(&self, id: &str) -> Result<bool, Error> {
        self.main().read(|db| {
            let mut query =
                db.prepare_cached("SELECT EXISTS (SELECT 1 FROM keys WHERE id = ?1 AND revoked_at IS NULL)")?;
            Ok(query.query_row([id], |row| row.get(0))?)
        })
    }

    /// Keys, oldest first, last use included.
    pub fn keys(&self, filter: &KeyFilter) -> Result<Vec<KeyRow>, Error> {
        let service = filter.service.map(crate::api::Service::as_str);
        let mut rows = self.main().read(|db| {
            let mut query = db.prepare_cached(&format!(
                "{SELECT} WHERE (?1 IS NULL OR k.app_id = ?1) AND (?2 IS NULL OR k.service = ?2)
                     AND (?3 OR k.revoked_at IS NULL)
                 ORDER BY k.created_at, k.id"
            ))?;
            let found = query.query_map(params![filter.app_id, service, filter.revoked_too], key_row)?;
            Ok(found.collect::<Result<Vec<_>, _>>()?)
        })?;
        self.fill_last_uses(&mut rows)?;
        Ok(rows)
    }

    /// Revokes a key for ever; on disk when this returns. Repeatable: returns the time of the first revocation.
    pub fn revoke_key(&self, id: &str, now: Time) -> Result<Time, Error> {
        self.main().write(|db| {
            let mut update = db.prepare_cached(
                "UPDATE keys SET revoked_at = coalesce(revoked_at, ?2) WHERE id = ?1 RETURNING revoked_at",
            )?;
            let revoked = update.query_row(params![id, now.unix_ms()], |row| read_time(row, 0)).optional()?;
            revoked.ok_or(Error::NotFound)
        })
    }

    /// Keeps `new` and lets the key `old` end at `old_ends` (or at its own expiry, if that is earlier), in one
    /// transaction. [`Error::Conflict`] if `old` is revoked, or expired when `new` was made.
    pub fn rotate_key(&self, old: &str, old_ends: Time, new: &KeyRow, hash: &KeyHash) -> Result<(), Error> {
        self.main().write(|db| {
            let ends = db
                .prepare_cached("SELECT expires_at, revoked_at FROM keys WHERE id = ?1")?
                .query_row([old], |row| Ok((read_optional_time(row, 0)?, read_optional_time(row, 1)?)))
                .optional()?;
            let (expires, revoked) = ends.ok_or(Error::NotFound)?;
            if revoked.is_some() {
                return Err(Error::Conflict(REVOKED));
            }
            if expires.is_some_and(|at| at <= new.created_at) {
                return Err(Error::Conflict(EXPIRED));
            }
            let end = expires.map_or(old_ends, |at| at.min(old_ends));
            db.prepare_cached("UPDATE keys SET expires_at = ?2 WHERE id = ?1")?
                .execute(params![old, end.unix_ms()])?;
            insert(db, new, hash)
        })
    }

    fn fill_last_uses(&self, keys: &mut [KeyRow]) -> Result<(), Error> {
        self.ledger().read(|db| {
            let mut query = db.prepare_cached("SELECT at FROM key_last_used WHERE key_id = ?1")?;
            for key in keys {
                key.last_used_at = query.query_row([&key.id], |row| read_time(row, 0)).optional()?;
            }
            Ok(())
        })
    }
}

fn insert(db: &Connection, key: &KeyRow, hash: &KeyHash) -> Result<(), Error> {
    let mut statement = db.prepare_cached(
        "INSERT INTO keys (id, hash, app_id, service, name, last4, created_at, expires_at, revoked_at,
             per_minute, per_day, models, addresses, budget_nano_usd)
         SELECT ?1, ?2, id, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14
         FROM apps WHERE id = ?3 AND deleted_at IS NULL",
    )?;
    let inserted = statement
        .execute(params![
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
        ])
        .map_err(|cause| conflict_or(cause, KEY_EXISTS))?;
    if inserted == 0 { Err(Error::NotFound) } else { Ok(()) }
}

fn key_row(row: &Row<'_>) -> rusqlite::Result<KeyRow> {
    Ok(KeyRow {
        id: row.get(0)?,
        app_id: row.get(1)?,
        app_name: row.get(2)?,
        service: read_service(row, 3)?,
        name: row.get(4)?,
        last4: row.get(5)?,
        created_at: read_time(row, 6)?,
        expires_at: read_optional_time(row, 7)?,
        last_used_at: None,
        revoked_at: read_optional_time(row, 8)?,
        per_minute: row.get(9)?,
        per_day: row.get(10)?,
        models: read_list(row, 11)?,
        addresses: read_list(row, 12)?,
        budget: read_money(row, 13)?,
        app_budget: read_money(row, 14)?,
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
        let compiled_again = |db: &Connection| {
            let cached = db.prepare_cached(&BY_HASH)?;
            let runs = cached.get_status(StatementStatus::Run);
            Ok((runs, cached.get_status(StatementStatus::RePrepare)))
        };
        assert_eq!(store.main().read(compiled_again).unwrap(), (10, 0));
    }
}
