//! Conversions between columns and our types: databases know signed 64-bit integers, text and bytes.

use std::error::Error as StdError;
use std::io;
use std::str::FromStr;

use rusqlite::ffi;
use rusqlite::types::Type;

use crate::api::Service;
use crate::api::console::OwnEndUserLimits;
use crate::api::guard::Guard;
use crate::clock::Time;
use crate::money::NanoUsd;
use crate::storage::Error;
use crate::storage::db::Row;

/// Sums saturate at this value; adding another one of this size still fits a column.
pub(super) const MAX_SUM: i64 = i64::MAX / 2;

/// A count for a column; nothing we count comes near the end of the signed range.
pub(super) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A count from a column.
pub(super) fn read_count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<i64>(column)?).unwrap_or(0))
}

/// The change of a sum in which `after` takes the place of `before`: at most [`MAX_SUM`], up or down.
pub(super) fn change(before: u64, after: u64) -> i64 {
    count(after).min(MAX_SUM) - count(before).min(MAX_SUM)
}

/// The SQL of a sum after a [`change`], which is a parameter. So no sum need be read to be corrected. It neither leaves
/// the range nor falls below zero, and nothing overflows on the way.
pub(super) fn changed(sum: &str, parameter: usize) -> String {
    format!(
        "CASE WHEN {sum} >= {MAX_SUM} - ?{parameter} THEN {MAX_SUM}
             WHEN {sum} + ?{parameter} > 0 THEN {sum} + ?{parameter} ELSE 0 END"
    )
}

/// Money for a column.
pub(super) fn money(amount: Option<NanoUsd>) -> Option<i64> {
    amount.map(|NanoUsd(nano)| count(nano))
}

/// Money from a column.
pub(super) fn read_money(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<NanoUsd>> {
    let stored: Option<i64> = row.get(column)?;
    Ok(stored.map(|nano| NanoUsd(u64::try_from(nano).unwrap_or(0))))
}

/// A time from a column.
pub(super) fn read_time(row: &Row<'_>, column: usize) -> rusqlite::Result<Time> {
    row.get(column).map(Time::from_unix_ms)
}

/// A time from a column that may be null.
pub(super) fn read_optional_time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Time>> {
    let stored: Option<i64> = row.get(column)?;
    Ok(stored.map(Time::from_unix_ms))
}

/// A service from a column.
pub(super) fn read_service(row: &Row<'_>, column: usize) -> rusqlite::Result<Service> {
    Service::from_str(row.get_ref(column)?.as_str()?).map_err(|cause| unreadable(column, cause))
}

/// What is done with verdicts on answers, from a column. One of a later version is taken for the strictest.
pub(super) fn read_guard(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Guard>> {
    let stored: Option<String> = row.get(column)?;
    Ok(stored.map(|name| Guard::named(&name).unwrap_or(Guard::Block)))
}

/// A key's limits for end users, from a column. What cannot be read must not lift a limit, so it is an error.
pub(super) fn read_end_users(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<OwnEndUserLimits>> {
    let stored: Option<String> = row.get(column)?;
    let read = |text: String| {
        let unknown = || io::Error::new(io::ErrorKind::InvalidData, "no limits that this version knows");
        OwnEndUserLimits::parse(&text).ok_or_else(|| unreadable(column, unknown()))
    };
    stored.map(read).transpose()
}

/// A list for a column: a JSON array.
pub(super) fn list(entries: &[String]) -> String {
    serde_json::Value::from(entries).to_string()
}

/// A list from a column. An empty one, the usual case in the look-up of every request, costs nothing.
pub(super) fn read_list(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<String>> {
    match row.get_ref(column)?.as_str()? {
        "[]" => Ok(Vec::new()),
        text => serde_json::from_str(text).map_err(|cause| unreadable(column, cause)),
    }
}

/// A JSON document from a column.
pub(super) fn read_json(row: &Row<'_>, column: usize) -> rusqlite::Result<serde_json::Value> {
    serde_json::from_str(row.get_ref(column)?.as_str()?).map_err(|cause| unreadable(column, cause))
}

/// The error for a column with an unexpected value.
pub(super) fn unreadable(column: usize, cause: impl StdError + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(cause))
}

/// Turns a violated unique constraint into [`Error::Conflict`] with this text.
pub(super) fn conflict_or(cause: Error, conflict: &'static str) -> Error {
    let is_taken = match &cause {
        Error::Sqlite(cause) => matches!(
            cause.sqlite_error().map(|error| error.extended_code),
            Some(ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY)
        ),
        Error::Postgres(cause) => cause.is_unique_violation(),
        _ => false,
    };
    if is_taken { Error::Conflict(conflict) } else { cause }
}
