//! Reads usage sums, and deletes old attempts.

use rusqlite::params;

use super::rollup::{TAG, USER};
use super::values::count;
use crate::api::Service;
use crate::api::console::Dimension;
use crate::clock::Time;
use crate::money::NanoUsd;
use crate::storage::db::Row;
use crate::storage::{Error, Store, UsageCounts, UsageQuery, UsageSum};

const DAY: &str = "day";

const LABEL: &str = "label";

/// The dimensions with their columns. The last two are in a table of their own, in one column.
const DIMENSIONS: [(Dimension, &str); 7] = [
    (Dimension::Day, DAY),
    (Dimension::App, "app_id"),
    (Dimension::Key, "key_id"),
    (Dimension::Service, "service"),
    (Dimension::Model, "model"),
    (Dimension::User, LABEL),
    (Dimension::Tag, LABEL),
];

/// What a sum has a column for.
const COLUMNS: [&str; 6] = [DAY, "app_id", "key_id", "service", "model", LABEL];

/// Figures that may take half a column's range in a single row are summed in two parts.
const PART: u64 = 1_000_000_000;

/// The sums, in the order that [`counts`] reads them.
const SUMS: [&str; 17] = [
    "requests",
    "model_requests",
    "attempts",
    "errors",
    "priced_attempts",
    "unpriced_attempts",
    "prompt_tokens / 1000000000",
    "prompt_tokens % 1000000000",
    "completion_tokens / 1000000000",
    "completion_tokens % 1000000000",
    "cost_nano_usd / 1000000000",
    "cost_nano_usd % 1000000000",
    "cached_tokens / 1000000000",
    "cached_tokens % 1000000000",
    "cache_write_tokens / 1000000000",
    "cache_write_tokens % 1000000000",
    "estimated_attempts",
];

impl Store {
    /// Sums the attempts of some days, in unspecified order. One pass over the daily sums, of which there are about as
    /// many as active keys times models.
    pub fn usage(&self, query: &UsageQuery) -> Result<Vec<UsageSum>, Error> {
        let grouped_by = DIMENSIONS.iter().filter(|(dimension, _)| query.by.contains(dimension));
        let grouped: Vec<_> = grouped_by.map(|(_, name)| *name).collect();
        let columns = COLUMNS.map(|name| match () {
            () if grouped.contains(&name) => name,
            () if name == DAY => "CAST(NULL AS BIGINT)",
            () => "CAST(NULL AS TEXT)",
        });
        let sums = SUMS.map(|of| format!("CAST(sum({of}) AS BIGINT)"));
        let group_by =
            if grouped.is_empty() { String::new() } else { format!("GROUP BY {}", grouped.join(", ")) };
        let (table, kind) = match query.by.iter().find_map(|dimension| kind(*dimension)) {
            None => ("usage_days", String::new()),
            Some(kind) => ("usage_labels", format!("kind = '{kind}' AND")),
        };
        // No caller-supplied text is in the statement.
        let sql = format!(
            "SELECT {}, {} FROM {table}
             WHERE {kind} day BETWEEN ?1 AND ?2
                 AND (CAST(?3 AS TEXT) IS NULL OR app_id = ?3) AND (CAST(?4 AS TEXT) IS NULL OR key_id = ?4)
                 AND (CAST(?5 AS TEXT) IS NULL OR service = ?5) AND (CAST(?6 AS TEXT) IS NULL OR model = ?6)
             {group_by} LIMIT ?7",
            columns.join(", "),
            sums.join(", ")
        );
        self.ledger().read(|db| {
            let mut sums = db.query(
                &sql,
                params![
                    query.first_day,
                    query.last_day,
                    query.app_id,
                    query.key_id,
                    query.service.map(Service::as_str),
                    query.model,
                    count(query.max_rows as u64),
                ],
                usage_sum,
            )?;
            // Without grouping, SQL returns a row even if there is nothing to sum.
            sums.retain(|sum| sum.counts != UsageCounts::default());
            Ok(sums)
        })
    }

    /// The first UTC day, since the epoch, that has attempts.
    pub fn first_usage_day(&self) -> Result<Option<i64>, Error> {
        let first = |row: &Row<'_>| row.get(0);
        self.ledger().read(|db| Ok(db.query_row("SELECT min(day) FROM usage_days", &[], first)?.flatten()))
    }

    /// Deletes attempts older than this, the oldest first and up to `most` at once; returns how many. Their sums stay.
    /// If there are none, nothing is written.
    pub fn forget_attempts(&self, before: Time, most: usize) -> Result<usize, Error> {
        let are_some = self.ledger().read(|db| {
            let sql = "SELECT EXISTS (SELECT 1 FROM attempts WHERE at < ?1)";
            db.query_row(sql, params![before.unix_ms()], |row| row.get(0))
        })?;
        if are_some != Some(true) {
            return Ok(0);
        }
        self.ledger().write(|db| {
            db.execute(
                "DELETE FROM attempts
                 WHERE id IN (SELECT id FROM attempts WHERE at < ?1 ORDER BY at LIMIT ?2)",
                params![before.unix_ms(), count(most as u64)],
            )
        })
    }
}

/// The kind of label that a dimension is.
const fn kind(dimension: Dimension) -> Option<&'static str> {
    match dimension {
        Dimension::User => Some(USER),
        Dimension::Tag => Some(TAG),
        _ => None,
    }
}

fn usage_sum(row: &Row<'_>) -> rusqlite::Result<UsageSum> {
    Ok(UsageSum {
        day: row.get(0)?,
        app_id: row.get(1)?,
        key_id: row.get(2)?,
        service: row.get(3)?,
        model: row.get(4)?,
        label: row.get(5)?,
        counts: counts(row, COLUMNS.len())?,
    })
}

/// Reads the sums from this column on.
fn counts(row: &Row<'_>, first: usize) -> rusqlite::Result<UsageCounts> {
    let number = |at: usize| -> rusqlite::Result<u64> {
        Ok(row.get::<Option<i64>>(first + at)?.map_or(0, i64::unsigned_abs))
    };
    let in_parts = |at: usize| -> rusqlite::Result<u64> {
        let (whole, rest) = (number(at)?, number(at + 1)?);
        Ok(whole.saturating_mul(PART).saturating_add(rest))
    };
    Ok(UsageCounts {
        requests: number(0)?,
        model_requests: number(1)?,
        attempts: number(2)?,
        errors: number(3)?,
        priced_attempts: number(4)?,
        unpriced_attempts: number(5)?,
        prompt_tokens: in_parts(6)?,
        completion_tokens: in_parts(8)?,
        cost: NanoUsd(in_parts(10)?),
        cached_tokens: in_parts(12)?,
        cache_write_tokens: in_parts(14)?,
        estimated_attempts: number(16)?,
    })
}
