//! The rows of attempts: how they are inserted and read.

use std::sync::{Arc, LazyLock};

use rusqlite::{Connection, Statement, params};

use super::values::{count, money, read_count, read_money, read_service, read_time};
use crate::storage::db::{Bind, Db, Row};
use crate::storage::{AttemptRow, Error};

/// What [`attempt_row`] reads.
pub(super) const ATTEMPT_COLUMNS: &str =
    "at, request_id, app_id, key_id, service, model, outcome, prompt_tokens,
    completion_tokens, cost_nano_usd, latency_ms, is_first, is_first_of_model, cached_tokens, cache_write_tokens,
    is_estimated";

/// Runs [`INSERT`] with a row.
pub(super) fn run_insert(row: &AttemptRow, run: &mut Bind<'_>) -> Result<(), Error> {
    run(params![
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
        row.is_first,
        row.is_first_of_model,
        count(row.cached_tokens),
        count(row.cache_write_tokens),
        row.is_estimated,
    ])
}

/// Adds an attempt.
pub(super) const INSERT: &str = "
    INSERT INTO attempts (at, request_id, app_id, key_id, service, model, outcome, prompt_tokens,
        completion_tokens, cost_nano_usd, latency_ms, is_first, is_first_of_model, cached_tokens, cache_write_tokens,
        is_estimated)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";

/// How many rows one statement inserts into a file, if there are as many. SQLite begins and ends each statement, and
/// searches the index anew for its first row, which is a third of the instructions of a statement with a single one.
const ROWS_PER_INSERT: usize = 16;

/// The number of values of a row.
const VALUES: usize = 16;

/// [`INSERT`] for [`ROWS_PER_INSERT`] rows.
static INSERT_MANY: LazyLock<String> = LazyLock::new(|| {
    let more = (1..ROWS_PER_INSERT).map(|row| {
        let values: Vec<String> = (1..=VALUES).map(|value| format!("?{}", row * VALUES + value)).collect();
        format!(", ({})", values.join(", "))
    });
    std::iter::once(INSERT.to_owned()).chain(more).collect()
});

pub(super) fn insert(db: &Db<'_>, rows: &[AttemptRow]) -> Result<(), Error> {
    let Db::Sqlite(file) = db else {
        return db.execute_each(INSERT, rows, run_insert);
    };
    let (groups, rest) = rows.as_chunks::<ROWS_PER_INSERT>();
    insert_groups(file, &INSERT_MANY, groups)?;
    insert_groups(file, INSERT, rest.as_chunks::<1>().0)
}

/// Runs a statement that inserts `N` rows with each group.
fn insert_groups<const N: usize>(
    file: &Connection,
    sql: &str,
    groups: &[[AttemptRow; N]],
) -> Result<(), Error> {
    if groups.is_empty() {
        return Ok(());
    }
    let mut insert = file.prepare_cached(sql)?;
    let mut last: Option<&[AttemptRow; N]> = None;
    for group in groups {
        for (place, row) in group.iter().enumerate() {
            bind(&mut insert, place * VALUES, row, last.map(|last| &last[place]))?;
        }
        insert.raw_execute()?;
        last = Some(group);
    }
    Ok(())
}

/// Binds a row to the values of an insert statement after the first `skipped`. Text that it shares with the `last` row
/// in this place is already bound: it is neither compared nor copied again, nor fetched from another processor's cache.
fn bind(
    insert: &mut Statement<'_>,
    skipped: usize,
    row: &AttemptRow,
    last: Option<&AttemptRow>,
) -> rusqlite::Result<()> {
    let is_new = |of: fn(&AttemptRow) -> &Arc<str>| last.is_none_or(|last| !Arc::ptr_eq(of(last), of(row)));
    insert.raw_bind_parameter(skipped + 1, row.at.unix_ms())?;
    insert.raw_bind_parameter(skipped + 2, &row.request_id)?;
    if is_new(|row| &row.app_id) {
        insert.raw_bind_parameter(skipped + 3, &row.app_id)?;
    }
    if is_new(|row| &row.key_id) {
        insert.raw_bind_parameter(skipped + 4, &row.key_id)?;
    }
    if last.is_none_or(|last| last.service != row.service) {
        insert.raw_bind_parameter(skipped + 5, row.service.as_str())?;
    }
    if is_new(|row| &row.model) {
        insert.raw_bind_parameter(skipped + 6, &row.model)?;
    }
    if last.is_none_or(|last| last.outcome != row.outcome) {
        insert.raw_bind_parameter(skipped + 7, &row.outcome)?;
    }
    insert.raw_bind_parameter(skipped + 8, count(row.prompt_tokens))?;
    insert.raw_bind_parameter(skipped + 9, count(row.completion_tokens))?;
    insert.raw_bind_parameter(skipped + 10, money(row.cost))?;
    insert.raw_bind_parameter(skipped + 11, count(row.latency_ms))?;
    insert.raw_bind_parameter(skipped + 12, row.is_first)?;
    insert.raw_bind_parameter(skipped + 13, row.is_first_of_model)?;
    insert.raw_bind_parameter(skipped + 14, count(row.cached_tokens))?;
    insert.raw_bind_parameter(skipped + 15, count(row.cache_write_tokens))?;
    insert.raw_bind_parameter(skipped + VALUES, row.is_estimated)
}

pub(super) fn attempt_row(row: &Row<'_>) -> rusqlite::Result<AttemptRow> {
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
        is_first: row.get(11)?,
        is_first_of_model: row.get(12)?,
        cached_tokens: read_count(row, 13)?,
        cache_write_tokens: read_count(row, 14)?,
        is_estimated: row.get(15)?,
        labels: None,
        call: None,
    })
}
