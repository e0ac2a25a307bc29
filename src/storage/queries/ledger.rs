//! The ledger: attempts at models, what they add up to by day and by month, day counters, last uses of keys. Written in
//! batches.

use rusqlite::params;

use super::attempts::{self, ATTEMPT_COLUMNS, attempt_row};
use super::values::read_count;
use super::{calls, end_users, spending};
use crate::clock::Time;
use crate::money::NanoUsd;
use crate::storage::{AttemptRow, DayCount, Error, Store, SubjectMonth};

impl Store {
    /// Adds attempts to the ledger, to the sums of their days, and their costs to the spending of their keys, apps and end
    /// in one transaction. Rows that could not be written must be passed again, before all others.
    pub fn add_attempts(&self, rows: &[AttemptRow]) -> Result<(), Error> {
        self.add_usage(rows, &[])
    }

    /// The same, and in the same transaction writes down what calls under way have used so far: each of `under_way` has
    /// a place in the journal ([`AttemptRow::call`]), and is not in `ended`.
    pub fn add_usage(&self, ended: &[AttemptRow], under_way: &[AttemptRow]) -> Result<(), Error> {
        if ended.is_empty() && under_way.is_empty() {
            return Ok(());
        }
        self.ledger().write_once(ended, |db, rows| {
            let rows = calls::end(db, rows)?;
            attempts::insert(db, &rows)?;
            spending::sum(db, &rows)?;
            calls::keep(db, under_way)
        })
    }

    /// Gives back the memory of what writes to the ledger keep cached, for after one that was unusually large.
    pub fn shrink_ledger_cache(&self) -> Result<(), Error> {
        self.ledger().shrink_writer_cache()
    }

    /// What each of these has spent, in their order; zero where the ledger has no record.
    pub fn spent(&self, months: &[SubjectMonth]) -> Result<Vec<NanoUsd>, Error> {
        if months.is_empty() {
            return Ok(Vec::new());
        }
        self.ledger().read(|db| {
            let spent = db.query_each(
                "SELECT nano_usd FROM spend WHERE subject = ?1 AND month = ?2",
                months,
                |of, run| run(params![of.subject, of.month]),
                |row| read_count(row, 0),
            )?;
            Ok(spent.into_iter().map(|nano| NanoUsd(nano.unwrap_or(0))).collect())
        })
    }

    /// The attempts of one request, oldest first. There is no index for this: it scans the whole ledger.
    pub fn attempts_of(&self, request_id: &str) -> Result<Vec<AttemptRow>, Error> {
        self.ledger().read(|db| {
            let sql = format!("SELECT {ATTEMPT_COLUMNS} FROM attempts WHERE request_id = ?1 ORDER BY id");
            db.query(&sql, params![request_id], attempt_row)
        })
    }

    /// The day counters of a day.
    pub fn day_counts(&self, day: i64) -> Result<Vec<DayCount>, Error> {
        self.ledger().read(|db| {
            let sql = "SELECT key_id, day, used FROM day_counts WHERE day = ?1 ORDER BY key_id";
            db.query(sql, params![day], |row| {
                Ok(DayCount { key_id: row.get(0)?, day: row.get(1)?, used: row.get(2)? })
            })
        })
    }

    /// A key's counter of a day; 0 if there is none.
    pub fn day_count(&self, key_id: &str, day: i64) -> Result<u32, Error> {
        self.ledger().read(|db| {
            let sql = "SELECT used FROM day_counts WHERE key_id = ?1 AND day = ?2";
            Ok(db.query_row(sql, params![key_id, day], |row| row.get(0))?.unwrap_or(0))
        })
    }

    /// Stores day counters and last uses (key id, time). Neither ever goes back: a lower count or an earlier use than
    /// the stored one changes nothing.
    pub fn keep_counts(&self, counts: &[DayCount], last_uses: &[(String, Time)]) -> Result<(), Error> {
        if counts.is_empty() && last_uses.is_empty() {
            return Ok(());
        }
        self.ledger().write(|db| {
            db.upsert_each(
                "UPDATE day_counts SET used = ?3 WHERE key_id = ?1 AND day = ?2 AND used < ?3",
                "INSERT INTO day_counts (key_id, day, used) VALUES (?1, ?2, ?3)
                 ON CONFLICT (key_id, day) DO UPDATE SET used = excluded.used
                     WHERE excluded.used > day_counts.used",
                counts,
                |kept, run| run(params![kept.key_id, kept.day, kept.used]),
            )?;
            db.upsert_each(
                "UPDATE key_last_used SET at = ?2 WHERE key_id = ?1 AND at < ?2",
                "INSERT INTO key_last_used (key_id, at) VALUES (?1, ?2)
                 ON CONFLICT (key_id) DO UPDATE SET at = excluded.at WHERE excluded.at > key_last_used.at",
                last_uses,
                |(key_id, at), run| run(params![key_id, at.unix_ms()]),
            )
        })
    }

    /// Deletes what is counted by day of the days before this one, and what end users have spent in earlier months.
    pub fn forget_counts(&self, before_day: i64) -> Result<(), Error> {
        self.ledger().write(|db| {
            db.execute("DELETE FROM day_counts WHERE day < ?1", params![before_day])?;
            end_users::forget_spending(db, before_day)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Service;
    use crate::storage::sqlite::tests::older_ledger;

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);

    fn attempt(cost: Option<NanoUsd>) -> AttemptRow {
        AttemptRow {
            at: NOW,
            request_id: "req_1".into(),
            app_id: "app_1".into(),
            key_id: "key_1".into(),
            service: Service::Verify,
            model: "a/b".into(),
            outcome: "ok".into(),
            prompt_tokens: 1,
            completion_tokens: 1,
            cached_tokens: 0,
            cache_write_tokens: 0,
            is_estimated: false,
            cost,
            latency_ms: 1,
            is_first: true,
            is_first_of_model: true,
            labels: None,
            call: None,
        }
    }

    #[test]
    fn spending_is_summed_by_key_app_and_month_even_if_an_older_version_wrote_it() {
        let dir = tempfile::tempdir().unwrap();
        let older = older_ledger(dir.path(), 1);
        let last_month = Time::parse("2026-10-31T23:59:59.999Z").unwrap();
        for (at, cost) in [(NOW, Some(5)), (NOW, Some(i64::MAX)), (NOW, None), (last_month, Some(40))] {
            let insert = "
                INSERT INTO attempts (at, request_id, app_id, key_id, service, model, outcome, prompt_tokens,
                    completion_tokens, cost_nano_usd, latency_ms)
                VALUES (?1, '', 'app_1', '', 'verify', '', '', 0, 0, ?2, 0)";
            older.execute(insert, rusqlite::params![at.unix_ms(), cost]).unwrap();
        }
        drop(older);

        let store = Store::open(dir.path(), NOW).unwrap();
        let of =
            |subject: &str, at: Time| SubjectMonth { subject: subject.to_owned(), month: at.utc_month() };
        let asked = [of("app_1", NOW), of("app_1", last_month), of("key_1", NOW), of("", NOW)];
        let senseless = 1_000_000_000_000_000;
        assert_eq!(
            store.spent(&asked).unwrap(),
            [NanoUsd(senseless + 5), NanoUsd(40), NanoUsd(0), NanoUsd(0)]
        );

        let of_key = attempt(Some(NanoUsd(7)));
        store.add_attempts(&[of_key.clone(), of_key.clone(), attempt(None)]).unwrap();
        let spent = store.spent(&asked).unwrap();
        assert_eq!((spent[0], spent[2]), (NanoUsd(senseless + 19), NanoUsd(14)));
        let absurd = AttemptRow { cost: Some(NanoUsd(u64::MAX)), ..of_key };
        for _ in 0..3 {
            store.add_attempts(std::slice::from_ref(&absurd)).unwrap();
        }
        assert!(
            store.spent(&asked).unwrap()[2] > NanoUsd(1_000_000_000_000_000_000),
            "no sum leaves the range"
        );
    }

    #[test]
    fn each_row_keeps_its_own_text_whatever_the_previous_one_held() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), NOW).unwrap();
        let (first, second) = (attempt(None), attempt(None));
        let rows = [
            first.clone(),
            first.clone(),
            AttemptRow { app_id: "app_2".into(), ..first.clone() },
            AttemptRow { key_id: "key_2".into(), model: "a/c".into(), ..first.clone() },
            AttemptRow { service: Service::Inference, outcome: "timeout".into(), ..first.clone() },
            AttemptRow { outcome: String::from("ok").into(), ..first },
            second,
        ];
        store.add_attempts(&rows).unwrap();
        store.add_attempts(&rows[2..]).unwrap();
        assert_eq!(store.attempts_of("req_1").unwrap(), [&rows[..], &rows[2..]].concat());

        // As many as one statement inserts, and more or fewer; in each of its places one text after another.
        let mut all = store.attempts_of("req_1").unwrap();
        for length in [1, 15, 16, 17, 32, 50] {
            let mixed = (0..length).map(|number| AttemptRow {
                latency_ms: number,
                prompt_tokens: length,
                ..rows[usize::try_from(number * number % 7 + number / 16).unwrap() % rows.len()].clone()
            });
            let mixed: Vec<AttemptRow> = mixed.collect();
            store.add_attempts(&mixed).unwrap();
            all.extend(mixed);
            assert!(store.attempts_of("req_1").unwrap() == all, "{length} rows");
        }
    }
}
