//! `ledger.db`: attempts at models, day counters, last uses. Written in batches.

use rusqlite::{OptionalExtension, Row, params};

use super::Store;
use super::values::{count, money, read_count, read_money, read_service, read_time};
use crate::clock::Time;
use crate::storage::{AttemptRow, DayCount, Error};

impl Store {
    /// Adds attempts to the ledger, in one transaction.
    pub fn add_attempts(&self, rows: &[AttemptRow]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        self.ledger().write(|db| {
            let mut insert = db.prepare_cached(
                "INSERT INTO attempts (at, request_id, app_id, key_id, service, model, outcome,
                     prompt_tokens, completion_tokens, cost_nano_usd, latency_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?;
            for row in rows {
                insert.execute(params![
                    row.at.unix_ms(),
                    row.request_id,
                    row.app_id,
                    row.key_id,
                    row.service.as_str(),
                    row.model,
                    row.outcome,
                    count(row.prompt_tokens),
                    count(row.completion_tokens),
                    money(row.cost),
                    count(row.latency_ms),
                ])?;
            }
            Ok(())
        })
    }

    /// The attempts of one request, oldest first.
    pub fn attempts_of(&self, request_id: &str) -> Result<Vec<AttemptRow>, Error> {
        self.ledger().read(|db| {
            let mut query = db.prepare_cached(
                "SELECT at, request_id, app_id, key_id, service, model, outcome, prompt_tokens,
                     completion_tokens, cost_nano_usd, latency_ms
                 FROM attempts WHERE request_id = ?1 ORDER BY id",
            )?;
            let rows = query.query_map([request_id], attempt_row)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// The day counters of a day.
    pub fn day_counts(&self, day: i64) -> Result<Vec<DayCount>, Error> {
        self.ledger().read(|db| {
            let mut query =
                db.prepare_cached("SELECT key_id, day, used FROM day_counts WHERE day = ?1 ORDER BY key_id")?;
            let rows = query.query_map([day], |row| {
                Ok(DayCount { key_id: row.get(0)?, day: row.get(1)?, used: row.get(2)? })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// One key's counter of a day; 0 if there is none.
    pub fn day_count(&self, key_id: &str, day: i64) -> Result<u32, Error> {
        self.ledger().read(|db| {
            let mut query =
                db.prepare_cached("SELECT used FROM day_counts WHERE key_id = ?1 AND day = ?2")?;
            Ok(query.query_row(params![key_id, day], |row| row.get(0)).optional()?.unwrap_or(0))
        })
    }

    /// Keeps day counters and last uses (key id, when); counters of earlier days are dropped. Neither ever goes
    /// back: a lower count or an earlier use than the one that is kept changes nothing.
    pub fn keep_counts(&self, counts: &[DayCount], last_uses: &[(String, Time)]) -> Result<(), Error> {
        if counts.is_empty() && last_uses.is_empty() {
            return Ok(());
        }
        self.ledger().write(|db| {
            let mut keep_count = db.prepare_cached(
                "INSERT INTO day_counts (key_id, day, used) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET used = max(used, excluded.used)",
            )?;
            for kept in counts {
                keep_count.execute(params![kept.key_id, kept.day, kept.used])?;
            }
            if let Some(today) = counts.iter().map(|kept| kept.day).max() {
                db.prepare_cached("DELETE FROM day_counts WHERE day < ?1")?.execute([today])?;
            }
            let mut keep_use = db.prepare_cached(
                "INSERT INTO key_last_used (key_id, at) VALUES (?1, ?2)
                 ON CONFLICT DO UPDATE SET at = max(at, excluded.at)",
            )?;
            for (key_id, at) in last_uses {
                keep_use.execute(params![key_id, at.unix_ms()])?;
            }
            Ok(())
        })
    }
}

fn attempt_row(row: &Row<'_>) -> rusqlite::Result<AttemptRow> {
    Ok(AttemptRow {
        at: read_time(row, 0)?,
        request_id: row.get(1)?,
        app_id: row.get(2)?,
        key_id: row.get(3)?,
        service: read_service(row, 4)?,
        model: row.get(5)?,
        outcome: row.get(6)?,
        prompt_tokens: read_count(row, 7)?,
        completion_tokens: read_count(row, 8)?,
        cost: read_money(row, 9)?,
        latency_ms: read_count(row, 10)?,
    })
}
