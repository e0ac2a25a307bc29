//! The verdict cache: what verifications found, by app. It lies beside the ledger, as losing an entry costs a call or two,
//! and nothing waits for one to be on disk.

use rusqlite::params;

use super::values::{count, read_time};
use crate::clock::Time;
use crate::storage::db::Db;
use crate::storage::{Error, FoundVerdict, KeyHash, Store, VerdictRow};

/// How many entries one statement deletes: a few milliseconds during which the ledger's writer waits.
const BATCH: usize = 500;

impl Store {
    /// The entries of an app under these keys, in their order.
    pub fn verdicts(&self, app_id: &str, keys: &[KeyHash]) -> Result<Vec<Option<FoundVerdict>>, Error> {
        let sql = "SELECT at, content FROM verdicts WHERE app_id = ?1 AND key = ?2";
        self.ledger().read(|db| {
            db.query_each(
                sql,
                keys,
                |key, run| run(params![app_id, key]),
                |row| Ok((read_time(row, 0)?, row.get(1)?)),
            )
        })
    }

    /// Adds entries; each takes the place of one under the same key.
    pub fn add_verdicts<'r>(&self, rows: impl IntoIterator<Item = &'r VerdictRow>) -> Result<(), Error> {
        let sql = "
            INSERT INTO verdicts (app_id, key, domain, at, bytes, content) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            ON CONFLICT (app_id, key) DO UPDATE SET
                domain = excluded.domain, at = excluded.at, bytes = excluded.bytes, content = excluded.content";
        let mut rows: Vec<&VerdictRow> = rows.into_iter().collect();
        // Stable: of two under one key, the later one stays.
        rows.sort_by(|one, other| (&one.app_id, one.key).cmp(&(&other.app_id, other.key)));
        self.write_beside_ledger(|db| {
            db.execute_each(sql, rows, |row, run| {
                let bytes = count(row.content.len() as u64);
                run(params![row.app_id, row.key, row.domain, row.at.unix_ms(), bytes, row.content])
            })
        })
    }

    /// Deletes the entries of an app.
    pub(super) fn forget_verdicts_of(&self, app_id: &str) -> Result<(), Error> {
        let sql = "DELETE FROM verdicts WHERE (app_id, key) IN
            (SELECT app_id, key FROM verdicts WHERE app_id = ?1 LIMIT ?2)";
        while self.write_beside_ledger(|db| db.execute(sql, params![app_id, count(BATCH as u64)]))? == BATCH {
        }
        Ok(())
    }

    /// Deletes entries of apps that are deleted or unknown: a verification may have ended after its app.
    pub fn forget_verdicts_of_nobody(&self) -> Result<(), Error> {
        let next = "SELECT app_id FROM verdicts WHERE app_id > ?1 ORDER BY app_id LIMIT 1";
        let mut after = String::new();
        loop {
            let found =
                self.ledger().read(|db| db.query_row(next, params![after], |row| row.get::<String>(0)))?;
            let Some(app_id) = found else { return Ok(()) };
            if matches!(self.app_by_id(&app_id), Err(Error::NotFound)) {
                self.forget_verdicts_of(&app_id)?;
            }
            after = app_id;
        }
    }

    /// Deletes the entries of a domain that were made before this time.
    pub fn forget_verdicts(&self, domain: &str, before: Time) -> Result<(), Error> {
        let oldest = "SELECT at FROM verdicts WHERE domain = ?1 AND at < ?2 LIMIT 1";
        let sql = "DELETE FROM verdicts WHERE (app_id, key) IN
            (SELECT app_id, key FROM verdicts WHERE domain = ?1 AND at < ?2 ORDER BY at LIMIT ?3)";
        let before = before.unix_ms();
        // Mostly there is nothing to do, for which nobody should wait for the writer.
        let is_there = |db: &Db<'_>| db.query_row(oldest, params![domain, before], |row| row.get::<i64>(0));
        if self.ledger().read(is_there)?.is_none() {
            return Ok(());
        }
        let batch = params![domain, before, count(BATCH as u64)];
        while self.write_beside_ledger(|db| db.execute(sql, batch))? == BATCH {}
        Ok(())
    }

    /// Deletes the oldest entries until there are no more than this many, with no more bytes of content than this.
    pub fn trim_verdicts(&self, entries: u64, bytes: u64) -> Result<(), Error> {
        let size = "SELECT count(*), CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM verdicts";
        let sql = "DELETE FROM verdicts WHERE (app_id, key) IN
            (SELECT app_id, key FROM verdicts ORDER BY at LIMIT ?1)";
        loop {
            let found = self
                .ledger()
                .read(|db| db.query_row(size, &[], |row| Ok((row.get::<i64>(0)?, row.get::<i64>(1)?))))?;
            let (held, weight) = found.unwrap_or_default();
            if held <= count(entries) && weight <= count(bytes) {
                return Ok(());
            }
            // Too many bytes may be those of a few large entries.
            let surplus = if weight > count(bytes) { held / 8 } else { held - count(entries) };
            let batch = surplus.clamp(1, count(BATCH as u64));
            if self.write_beside_ledger(|db| db.execute(sql, params![batch]))? == 0 {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::storage::AppRow;

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);

    fn entry(app_id: &str, key: u8, at: Time, content: &str) -> VerdictRow {
        VerdictRow { app_id: app_id.into(), key: [key; 32], domain: "general", at, content: content.into() }
    }

    fn keys_of(store: &Store, app_id: &str) -> Vec<u8> {
        let keys: Vec<KeyHash> = (0..=255).map(|key| [key; 32]).collect();
        let found = store.verdicts(app_id, &keys).unwrap();
        (0..=255).zip(found).filter_map(|(key, found)| found.map(|_| key)).collect()
    }

    #[test]
    fn an_entry_is_found_by_its_app_and_key_alone_and_replaced_by_a_later_one() {
        let store = Store::in_memory(NOW).unwrap();
        let later = NOW.plus(Duration::from_secs(1));
        store
            .add_verdicts(&[
                entry("app_1", 1, NOW, "one"),
                entry("app_1", 2, NOW, "two"),
                entry("app_2", 1, NOW, "other"),
                entry("app_1", 1, later, "new"),
            ])
            .unwrap();
        let found = store.verdicts("app_1", &[[1; 32], [3; 32], [2; 32]]).unwrap();
        assert_eq!(found, [Some((later, b"new".to_vec())), None, Some((NOW, b"two".to_vec()))]);
        assert_eq!(store.verdicts("app_3", &[[1; 32]]).unwrap(), [None]);
    }

    #[test]
    fn entries_go_with_age_by_domain_and_the_oldest_first_if_there_are_too_many() {
        let store = Store::in_memory(NOW).unwrap();
        let at = |second: u64| NOW.plus(Duration::from_secs(second));
        let mut rows: Vec<VerdictRow> =
            (0_u8..10).map(|key| entry("app_1", key, at(key.into()), "0123456789")).collect();
        rows[0].domain = "legal";
        store.add_verdicts(&rows).unwrap();
        store.forget_verdicts("general", at(3)).unwrap();
        assert_eq!(keys_of(&store, "app_1"), [0, 3, 4, 5, 6, 7, 8, 9]);
        store.trim_verdicts(7, 1_000).unwrap();
        assert_eq!(keys_of(&store, "app_1"), [3, 4, 5, 6, 7, 8, 9]);
        store.trim_verdicts(7, 70).unwrap();
        assert_eq!(keys_of(&store, "app_1").len(), 7);
        store.forget_verdicts("general", at(8)).unwrap();
        assert_eq!(keys_of(&store, "app_1"), [8, 9]);
        store.trim_verdicts(7, 19).unwrap();
        assert_eq!(keys_of(&store, "app_1"), [9]);
    }

    #[test]
    fn the_entries_of_an_app_go_with_it() {
        let store = Store::in_memory(NOW).unwrap();
        let app = AppRow { id: "app_9".to_owned(), name: "nine".to_owned(), budget: None, created_at: NOW };
        store.create_app(&app).unwrap();
        let default = store.app("default").unwrap().id;
        let many: Vec<VerdictRow> = (0..=255)
            .flat_map(|key| [entry("app_9", key, NOW, "x"), entry(&default, key, NOW, "x")])
            .collect();
        store.add_verdicts(&many).unwrap();
        store.delete_app("app_9", NOW).unwrap();
        assert_eq!(keys_of(&store, "app_9"), [0_u8; 0]);
        assert_eq!(keys_of(&store, &default).len(), 256);
        // One that ended after its app.
        store.add_verdicts(&[entry("app_9", 1, NOW, "x"), entry("app_never", 1, NOW, "x")]).unwrap();
        store.forget_verdicts_of_nobody().unwrap();
        assert_eq!((keys_of(&store, "app_9"), keys_of(&store, "app_never")), (vec![], vec![]));
        assert_eq!(keys_of(&store, &default).len(), 256);
    }
}
