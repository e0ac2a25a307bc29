//! The ledger, read from the server's database file.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

/// A call as the ledger records it.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) request_id: String,
    /// The full identifier.
    pub(crate) model: String,
    pub(crate) outcome: String,
    /// Tokens of prompt and completion.
    pub(crate) tokens: (u64, u64),
    /// In nano-dollars; `None` where the price is unknown.
    pub(crate) cost: Option<u64>,
}

/// The totals of the rows with one model and outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) calls: u64,
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
    /// In nano-dollars, where prices are known.
    pub(crate) cost: u64,
}

/// All rows, in the order in which they were recorded.
///
/// # Errors
/// If the database cannot be read.
pub(crate) fn rows(data: &Path) -> anyhow::Result<Vec<Row>> {
    let database = open(data, "ledger.db")?;
    let mut query = database.prepare(
        "SELECT request_id, model, outcome, prompt_tokens, completion_tokens, cost_nano_usd
         FROM attempts ORDER BY id",
    )?;
    let rows = query.query_map([], |row| {
        Ok(Row {
            request_id: row.get(0)?,
            model: row.get(1)?,
            outcome: row.get(2)?,
            tokens: (unsigned(row.get(3)?), unsigned(row.get(4)?)),
            cost: row.get::<_, Option<i64>>(5)?.map(unsigned),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Sums by model and outcome.
pub(crate) fn totals(rows: &[Row]) -> BTreeMap<[String; 2], Total> {
    let mut totals: BTreeMap<[String; 2], Total> = BTreeMap::new();
    for row in rows {
        let total = totals.entry([row.model.clone(), row.outcome.clone()]).or_default();
        total.calls += 1;
        total.prompt_tokens += row.tokens.0;
        total.completion_tokens += row.tokens.1;
        total.cost += row.cost.unwrap_or_default();
    }
    totals
}

/// The sums that reports are computed from, over all days, apps, keys and models.
///
/// # Errors
/// If the database cannot be read.
pub(crate) fn reported(data: &Path) -> anyhow::Result<Total> {
    let database = open(data, "ledger.db")?;
    let sums = "SELECT coalesce(sum(attempts), 0), coalesce(sum(prompt_tokens), 0),
         coalesce(sum(completion_tokens), 0), coalesce(sum(cost_nano_usd), 0) FROM usage_days";
    Ok(database.query_row(sums, [], |row| {
        Ok(Total {
            calls: unsigned(row.get(0)?),
            prompt_tokens: unsigned(row.get(1)?),
            completion_tokens: unsigned(row.get(2)?),
            cost: unsigned(row.get(3)?),
        })
    })?)
}

/// The result of `SQLite`'s integrity check of both databases: `ok`, or what is wrong.
///
/// # Errors
/// If a database cannot be read.
pub(crate) fn integrity(data: &Path) -> anyhow::Result<String> {
    for file in ["mk.db", "ledger.db"] {
        let said: String = open(data, file)?.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        if said != "ok" {
            return Ok(format!("{file}: {said}"));
        }
    }
    Ok("ok".to_owned())
}

fn open(data: &Path, file: &str) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(data.join(file), OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// No column may be negative; a negative value becomes one that cannot be right.
fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}
