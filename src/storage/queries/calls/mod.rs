//! The journal of calls under way: what a call has used so far, so that it is not lost with its server.
//!
//! A server writes its calls down with its attempts, every 0.4 s (`keep`), and a call that has ended leaves the
//! journal in the transaction that books it (`end`). A server that says nothing for [`SILENCE`] is taken for dead:
//! another one books its calls as they were last seen ([`Store::adopt_calls`]).
//!
//! What must hold: a call is booked once, and its request is counted once, even if a server only seemed to be dead (its
//! database was out of reach, its process was stopped, a clock was set). So an entry that was booked stays, with the id
//! of its attempt, and refuses further changes, except that it still tells when its server was last seen; and when its
//! server comes to book the call, that attempt is replaced, and the sums change by the difference. Until then, the
//! journal and the first attempt of a request that is booked tell each other: only one of them counts the request.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::params;

use super::attempts::{self, ATTEMPT_COLUMNS, attempt_row, run_insert};
use super::values::{count, money, read_count, read_money, read_service, read_time, unreadable};
use super::{rollup, spending};
use crate::clock::Time;
use crate::storage::db::{Db, Row};
use crate::storage::{AttemptRow, Error, INTERRUPTED, Labels, Store};

/// How long a server that has calls under way may say nothing before it is taken for dead. It writes every second at
/// least.
pub(super) const SILENCE: Duration = Duration::from_secs(5);

/// How long booked entries are kept for a server that may come back.
const KEPT: Duration = Duration::from_hours(7 * 24);

/// An entry of the journal.
struct Entry {
    request: u64,
    number: i64,
    /// What the call would be booked as had it ended when it was last written.
    row: AttemptRow,
    /// The attempt that it was booked as while its server seemed to be dead.
    attempt_id: Option<i64>,
}

impl Store {
    /// Books the calls of servers that died, and returns what was booked. `own` is the server that asks, which lives.
    /// Any number of servers may do so at once. If nobody died, nothing is written.
    pub fn adopt_calls(&self, own: &str, now: Time) -> Result<Vec<AttemptRow>, Error> {
        let ledger = self.ledger();
        if ledger.read(|db| dead_servers(db, own, now))?.is_empty() {
            return Ok(Vec::new());
        }
        ledger.write(|db| {
            let mut booked = Vec::new();
            // Asked again, as another server may have been quicker.
            for server in dead_servers(db, own, now)? {
                booked.extend(adopt(db, &server)?);
            }
            spending::sum(db, &booked)?;
            let too_old = db.now(now)?.minus(KEPT);
            let forget = "DELETE FROM calls_under_way WHERE attempt_id IS NOT NULL AND seen_at < ?1";
            db.execute(forget, params![too_old.unix_ms()])?;
            Ok(booked)
        })
    }
}

#[cfg(test)]
impl Store {
    /// As if all servers had said nothing for longer than a living one does, by whatever clock.
    pub(crate) fn let_servers_fall_silent(&self) {
        let age = i64::try_from(2 * SILENCE.as_millis()).unwrap_or(i64::MAX);
        let sql = "UPDATE calls_under_way SET seen_at = seen_at - ?1";
        self.ledger().write(|db| db.execute(sql, params![age])).unwrap();
    }
}

/// The servers with calls that nobody has booked, and of which no entry was written in the time for which a living one
/// may say nothing. Booked entries count as well: what a server writes to show that it lives may be one. A time far in
/// the future, which was written before a clock was set back, tells nothing.
fn dead_servers(db: &Db<'_>, own: &str, now: Time) -> Result<Vec<String>, Error> {
    let now = db.now(now)?;
    db.query(
        "SELECT server FROM calls_under_way WHERE server <> ?1
         GROUP BY server
         HAVING count(*) > count(attempt_id) AND count(*) FILTER (WHERE seen_at BETWEEN ?2 AND ?3) = 0",
        params![own, now.minus(SILENCE).unix_ms(), now.plus(SILENCE).unix_ms()],
        |row| row.get(0),
    )
}

/// Adds the calls of a dead server to the attempts, and remembers as what. Returns those that the sums lack.
fn adopt(db: &Db<'_>, server: &str) -> Result<Vec<AttemptRow>, Error> {
    let (booked, open): (Vec<Entry>, Vec<Entry>) =
        entries(db, server)?.into_iter().partition(|entry| entry.attempt_id.is_some());
    // Entries that do not change are not written each time: their server lived at least as long as its latest one.
    let last_seen = open.iter().map(|entry| entry.row.at).max();
    let (mut requests, mut models) = (HashSet::new(), HashSet::new());
    for entry in &booked {
        if entry.row.is_first {
            requests.insert(entry.request);
        }
        if entry.row.is_first_of_model {
            models.insert((entry.request, entry.row.model.clone()));
        }
    }
    let (mut keys, mut rows) = (Vec::new(), Vec::new());
    for Entry { request, number, mut row, .. } in open {
        let ended = last_seen.unwrap_or(row.at);
        let more = u64::try_from(ended.since(row.at).as_millis()).unwrap_or(u64::MAX);
        row.latency_ms = row.latency_ms.saturating_add(more);
        row.at = ended;
        row.is_first = row.is_first && requests.insert(request);
        row.is_first_of_model = row.is_first_of_model && models.insert((request, row.model.clone()));
        keys.push((request, number));
        rows.push(row);
    }
    let insert = format!("{} RETURNING id", attempts::INSERT);
    let ids = db.query_each(&insert, &rows, run_insert, |row| row.get::<i64>(0))?;
    db.execute_each(
        "UPDATE calls_under_way SET attempt_id = ?4, is_first = ?5, is_first_of_model = ?6, labels = ''
         WHERE server = ?1 AND request = ?2 AND number = ?3",
        keys.into_iter().zip(&rows).zip(ids),
        |(((request, number), row), id), run| {
            run(params![server, count(request), number, id, row.is_first, row.is_first_of_model])
        },
    )?;
    Ok(rows)
}

fn entries(db: &Db<'_>, server: &str) -> Result<Vec<Entry>, Error> {
    db.query(
        "SELECT request, number, at, request_id, app_id, key_id, service, model, prompt_tokens, completion_tokens,
             cost_nano_usd, latency_ms, is_first, is_first_of_model, attempt_id, cached_tokens, cache_write_tokens,
             labels
         FROM calls_under_way WHERE server = ?1 ORDER BY request, number",
        params![server],
        entry,
    )
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let (prompt_tokens, completion_tokens) = (read_count(row, 8)?, read_count(row, 9)?);
    Ok(Entry {
        request: read_count(row, 0)?,
        number: row.get(1)?,
        row: AttemptRow {
            at: read_time(row, 2)?,
            request_id: row.get(3)?,
            app_id: row.get(4)?,
            key_id: row.get(5)?,
            service: read_service(row, 6)?,
            model: row.get(7)?,
            outcome: Cow::Borrowed(INTERRUPTED),
            prompt_tokens,
            completion_tokens,
            cached_tokens: read_count(row, 15)?,
            cache_write_tokens: read_count(row, 16)?,
            cost: read_money(row, 10)?,
            is_estimated: prompt_tokens > 0 || completion_tokens > 0,
            latency_ms: read_count(row, 11)?,
            is_first: row.get(12)?,
            is_first_of_model: row.get(13)?,
            labels: read_labels(row, 17)?,
            call: None,
        },
        attempt_id: row.get(14)?,
    })
}

/// Writes down what calls under way have used so far; each has a place in the journal.
pub(super) fn keep(db: &Db<'_>, calls: &[AttemptRow]) -> Result<(), Error> {
    let Some(first) = calls.first() else { return Ok(()) };
    let seen_at = db.now(first.at)?.unix_ms();
    let placed =
        calls.iter().filter_map(|row| row.call.as_deref().and_then(|call| Some((row, call, call.number?))));
    db.upsert_each(UPDATE, INSERT, placed, |(row, call, number), run| {
        run(params![
            call.server,
            count(call.request),
            count(number),
            row.request_id,
            row.app_id,
            row.key_id,
            row.service.as_str(),
            row.model,
            seen_at,
            row.at.unix_ms(),
            count(row.prompt_tokens),
            count(row.completion_tokens),
            money(row.cost),
            count(row.latency_ms),
            row.is_first,
            row.is_first_of_model,
            count(row.cached_tokens),
            count(row.cache_write_tokens),
            written_labels(row),
        ])
    })
}

/// The labels of a row for a column; empty for none.
fn written_labels(row: &AttemptRow) -> String {
    let written = row.labels.as_deref().and_then(|labels| serde_json::to_string(labels).ok());
    written.unwrap_or_default()
}

fn read_labels(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Arc<Labels>>> {
    match row.get_ref(column)?.as_str()? {
        "" => Ok(None),
        text => {
            let labels = serde_json::from_str(text).map_err(|cause| unreadable(column, cause))?;
            Ok(Some(Arc::new(labels)))
        }
    }
}

/// Changes an entry. One that was booked only tells that its server lives.
const UPDATE: &str = "
    UPDATE calls_under_way SET
        seen_at = ?9,
        at = CASE WHEN attempt_id IS NULL THEN ?10 ELSE at END,
        prompt_tokens = CASE WHEN attempt_id IS NULL THEN ?11 ELSE prompt_tokens END,
        completion_tokens = CASE WHEN attempt_id IS NULL THEN ?12 ELSE completion_tokens END,
        cost_nano_usd = CASE WHEN attempt_id IS NULL THEN ?13 ELSE cost_nano_usd END,
        latency_ms = CASE WHEN attempt_id IS NULL THEN ?14 ELSE latency_ms END,
        is_first = CASE WHEN attempt_id IS NULL THEN ?15 ELSE is_first END,
        is_first_of_model = CASE WHEN attempt_id IS NULL THEN ?16 ELSE is_first_of_model END,
        cached_tokens = CASE WHEN attempt_id IS NULL THEN ?17 ELSE cached_tokens END,
        cache_write_tokens = CASE WHEN attempt_id IS NULL THEN ?18 ELSE cache_write_tokens END,
        labels = CASE WHEN attempt_id IS NULL THEN ?19 ELSE labels END
    WHERE server = ?1 AND request = ?2 AND number = ?3";

/// Adds an entry, or changes one as [`UPDATE`] does.
const INSERT: &str = "
    INSERT INTO calls_under_way AS entry (server, request, number, request_id, app_id, key_id, service, model, seen_at,
        at, prompt_tokens, completion_tokens, cost_nano_usd, latency_ms, is_first, is_first_of_model, cached_tokens,
        cache_write_tokens, labels)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
    ON CONFLICT (server, request, number) DO UPDATE SET
        seen_at = excluded.seen_at,
        at = CASE WHEN entry.attempt_id IS NULL THEN excluded.at ELSE entry.at END,
        prompt_tokens = CASE WHEN entry.attempt_id IS NULL THEN excluded.prompt_tokens ELSE entry.prompt_tokens END,
        completion_tokens = CASE WHEN entry.attempt_id IS NULL
            THEN excluded.completion_tokens ELSE entry.completion_tokens END,
        cost_nano_usd = CASE WHEN entry.attempt_id IS NULL THEN excluded.cost_nano_usd ELSE entry.cost_nano_usd END,
        latency_ms = CASE WHEN entry.attempt_id IS NULL THEN excluded.latency_ms ELSE entry.latency_ms END,
        is_first = CASE WHEN entry.attempt_id IS NULL THEN excluded.is_first ELSE entry.is_first END,
        is_first_of_model = CASE WHEN entry.attempt_id IS NULL
            THEN excluded.is_first_of_model ELSE entry.is_first_of_model END,
        cached_tokens = CASE WHEN entry.attempt_id IS NULL THEN excluded.cached_tokens ELSE entry.cached_tokens END,
        cache_write_tokens = CASE WHEN entry.attempt_id IS NULL
            THEN excluded.cache_write_tokens ELSE entry.cache_write_tokens END,
        labels = CASE WHEN entry.attempt_id IS NULL THEN excluded.labels ELSE entry.labels END";

/// Takes the calls of `rows` out of the journal. Returns the rows that are still to be booked: those of calls that were
/// booked already, because their server seemed to be dead, have replaced what was booked.
pub(super) fn end<'r>(db: &Db<'_>, rows: &'r [AttemptRow]) -> Result<Cow<'r, [AttemptRow]>, Error> {
    let calls = || rows.iter().filter_map(|row| Some((row, row.call.as_deref()?)));
    let servers: BTreeSet<_> = calls().map(|(_, call)| &*call.server).collect();
    if servers.is_empty() {
        return Ok(Cow::Borrowed(rows));
    }
    // By their requests.
    let mut booked: HashMap<_, Vec<Entry>> = HashMap::new();
    for server in servers {
        let sql = "SELECT count(*) FROM calls_under_way WHERE server = ?1 AND attempt_id IS NOT NULL";
        if db.query_row(sql, params![server], |row| row.get::<i64>(0))?.unwrap_or(0) > 0 {
            for entry in entries(db, server)?.into_iter().filter(|entry| entry.attempt_id.is_some()) {
                booked.entry((server, entry.request)).or_default().push(entry);
            }
        }
    }
    db.execute_each(
        "DELETE FROM calls_under_way WHERE server = ?1 AND request = ?2 AND number = ?3",
        calls().filter_map(|(_, call)| Some((call, call.number?))),
        |(call, number), run| run(params![call.server, count(call.request), count(number)]),
    )?;
    // The others of the request are no longer the first.
    db.execute_each(
        "UPDATE calls_under_way SET is_first = 0 WHERE server = ?1 AND request = ?2 AND attempt_id IS NULL",
        calls().filter(|(row, _)| row.is_first),
        |(_, call), run| run(params![call.server, count(call.request)]),
    )?;
    db.execute_each(
        "UPDATE calls_under_way SET is_first_of_model = 0
         WHERE server = ?1 AND request = ?2 AND model = ?3 AND attempt_id IS NULL",
        calls().filter(|(row, _)| row.is_first_of_model),
        |(row, call), run| run(params![call.server, count(call.request), row.model]),
    )?;
    if booked.is_empty() {
        return Ok(Cow::Borrowed(rows));
    }
    let (mut rest, mut late) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        let Some(call) = row.call.as_deref() else {
            rest.push(row.clone());
            continue;
        };
        let of_request = booked.get(&(&*call.server, call.request)).map_or(&[][..], Vec::as_slice);
        let number = call.number.map(count);
        let own = of_request.iter().find(|entry| Some(entry.number) == number);
        if let Some(Entry { attempt_id: Some(id), .. }) = own {
            late.push((*id, row));
            continue;
        }
        let is_counted = of_request.iter().any(|entry| entry.row.is_first);
        let is_counted_of_model =
            of_request.iter().any(|entry| entry.row.is_first_of_model && entry.row.model == row.model);
        rest.push(AttemptRow {
            is_first: row.is_first && !is_counted,
            is_first_of_model: row.is_first_of_model && !is_counted_of_model,
            ..row.clone()
        });
    }
    replace(db, &late)?;
    Ok(Cow::Owned(rest))
}

/// Replaces attempts, by their ids, that were booked too early, and corrects the sums of the days and months they were
/// booked in. A call is booked once, so that each id occurs once. There may be as many as fit a batch, all of which
/// other servers wait for: so nothing here waits for an answer about a single one.
fn replace(db: &Db<'_>, late: &[(i64, &AttemptRow)]) -> Result<(), Error> {
    let sql = format!("SELECT {ATTEMPT_COLUMNS} FROM attempts WHERE id = ?1");
    let early = db.query_each(&sql, late, |(id, _), run| run(params![id]), attempt_row)?;
    let (mut ids, mut replaced) = (Vec::new(), Vec::new());
    for ((id, row), old) in late.iter().zip(early) {
        // One that is too old may have been deleted; what was summed of it stays.
        let Some(old) = old else { continue };
        let new = AttemptRow {
            at: old.at,
            is_first: old.is_first,
            is_first_of_model: old.is_first_of_model,
            ..(*row).clone()
        };
        ids.push(*id);
        replaced.push((old, new));
    }
    db.execute_each(
        "UPDATE attempts SET outcome = ?2, prompt_tokens = ?3, completion_tokens = ?4, cost_nano_usd = ?5,
             latency_ms = ?6, cached_tokens = ?7, cache_write_tokens = ?8, is_estimated = ?9
         WHERE id = ?1",
        ids.into_iter().zip(&replaced),
        |(id, (_, new)), run| {
            run(params![
                id,
                new.outcome,
                count(new.prompt_tokens),
                count(new.completion_tokens),
                money(new.cost),
                count(new.latency_ms),
                count(new.cached_tokens),
                count(new.cache_write_tokens),
                new.is_estimated,
            ])
        },
    )?;
    rollup::replace(db, &replaced)?;
    spending::replace_spending(db, &replaced)
}

#[cfg(test)]
mod tests;
