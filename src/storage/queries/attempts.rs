//! The rows of attempts: how they are inserted and read.

use std::sync::Arc;

use rusqlite::{Statement, params};

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

pub(super) fn insert(db: &Db<'_>, rows: &[AttemptRow]) -> Result<(), Error> {
    let Db::Sqlite(file) = db else {
        return db.execute_each(INSERT, rows, run_insert);
    };
    let mut insert = file.prepare_cached(INSERT)?;
    let mut last = None;
    for row in rows {
        bind(&mut insert, row, last)?;
        insert.raw_execute()?;
        last = Some(row);
    }
    Ok(())
}

/// Binds a row to the values of an insert statement. Text that it shares with the `last` row is already bound: it is
/// neither compared nor copied again, nor fetched from another processor's cache. By [`run_insert`], a completion would
/// take 2 % more instructions (28 November 2026).
fn bind(insert: &mut Statement<'_>, row: &AttemptRow, last: Option<&AttemptRow>) -> rusqlite::Result<()> {
    let is_new = |of: fn(&AttemptRow) -> &Arc<str>| last.is_none_or(|last| !Arc::ptr_eq(of(last), of(row)));
    insert.raw_bind_parameter(1, row.at.unix_ms())?;
    insert.raw_bind_parameter(2, &row.request_id)?;
    if is_new(|row| &row.app_id) {
        insert.raw_bind_parameter(3, &row.app_id)?;
    }
    if is_new(|row| &row.key_id) {
        insert.raw_bind_parameter(4, &row.key_id)?;
    }
    if last.is_none_or(|last| last.service != row.service) {
        insert.raw_bind_parameter(5, row.service.as_str())?;
    }
    if is_new(|row| &row.model) {
        insert.raw_bind_parameter(6, &row.model)?;
    }
    if last.is_none_or(|last| last.outcome != row.outcome) {
        insert.raw_bind_parameter(7, &row.outcome)?;
    }
    insert.raw_bind_parameter(8, count(row.prompt_tokens))?;
    insert.raw_bind_parameter(9, count(row.completion_tokens))?;
    insert.raw_bind_parameter(10, money(row.cost))?;
    insert.raw_bind_parameter(11, count(row.latency_ms))?;
    insert.raw_bind_parameter(12, row.is_first)?;
    insert.raw_bind_parameter(13, row.is_first_of_model)?;
    insert.raw_bind_parameter(14, count(row.cached_tokens))?;
    insert.raw_bind_parameter(15, count(row.cache_write_tokens))?;
    insert.raw_bind_parameter(16, row.is_estimated)
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
