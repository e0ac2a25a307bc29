//! Writes attempts exactly once, although it may stay unknown whether a commit succeeded.
//!
//! If the connection breaks between a commit and its response, nobody knows whether the rows were kept, and the caller
//! passes them again, followed by others. So the number of each server's last batch is stored in the database together
//! with its rows, and a batch in doubt is looked up before more is written: behind it in the lane, hence after it has
//! been committed or rolled back.

use super::session::first;
use super::{Database, Session, WriteLock};
use crate::lock::Lock;
use crate::storage::Error;

/// The maximum number of rows per transaction: a backlog from an outage must not exceed the time that a write may take,
/// and other servers wait for the transaction.
const MAX_ROWS: usize = 4096;

/// The state of this server's batches.
pub(super) struct Batches {
    /// This server's unique name, for as long as it runs.
    writer: String,
    /// The number of batches begun.
    begun: i64,
    /// The number of rows, from the beginning of those passed again, that are already written.
    written: usize,
    /// A batch that may have been committed: its number, and the number of rows written including it.
    doubtful: Option<(i64, usize)>,
}

impl Default for Batches {
    fn default() -> Self {
        Self { writer: crate::id::new("wri"), begun: 0, written: 0, doubtful: None }
    }
}

impl Database {
    /// Has `write` write `rows`, which the caller passes until this succeeds, each time from the same beginning; rows
    /// that are already written are skipped. Blocking.
    pub(in crate::storage) fn write_once<T>(
        &self,
        rows: &[T],
        write: impl Fn(&Session<'_>, &[T]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut batches = self.batches.locked();
        loop {
            self.write_batch(&mut batches, rows, &write)?;
            if batches.written >= rows.len() {
                batches.written = 0;
                return Ok(());
            }
        }
    }

    /// Writes as many of `rows` as fit one transaction, since other servers wait for it.
    fn write_batch<T>(
        &self,
        batches: &mut Batches,
        rows: &[T],
        write: impl Fn(&Session<'_>, &[T]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        batches.begun += 1;
        let number = batches.begun;
        let (mut may_commit, mut end) = (false, 0);
        let outcome = self.write(WriteLock::Ledger, |session| {
            if let Some((number, written)) = batches.doubtful {
                if last_batch(session, &batches.writer)? == Some(number) {
                    batches.written = written;
                }
                batches.doubtful = None;
            }
            end = batches.written.saturating_add(MAX_ROWS).min(rows.len());
            write(session, rows.get(batches.written..end).unwrap_or_default())?;
            record_batch(session, &batches.writer, number)?;
            may_commit = true;
            Ok(())
        });
        match &outcome {
            Ok(()) => batches.written = end,
            Err(_) if may_commit => batches.doubtful = Some((number, end)),
            Err(_) => {}
        }
        outcome
    }
}

/// The number of the last committed batch.
fn last_batch(session: &Session<'_>, writer: &str) -> Result<Option<i64>, Error> {
    let rows = session.query("SELECT number FROM batches WHERE writer = ?1", &[&writer])?;
    first(&rows)
}

fn record_batch(session: &Session<'_>, writer: &str, number: i64) -> Result<(), Error> {
    if number == 1 {
        session.execute("DELETE FROM batches WHERE at < now() - interval '7 days'", &[])?;
    }
    session.execute(
        "INSERT INTO batches (writer, number, at) VALUES (?1, ?2, now())
         ON CONFLICT (writer) DO UPDATE SET number = excluded.number, at = excluded.at",
        &[&writer, &number],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    fn kept(database: &Database) -> Vec<i64> {
        let read = |session: &Session<'_>| session.query("SELECT day FROM day_counts ORDER BY day", &[]);
        database.read(read).unwrap().iter().map(|row| row.get(0)).collect()
    }

    fn present(database: &Database, rows: &[i64]) -> Result<(), Error> {
        database.write_once(rows, |session, new| {
            for day in new {
                session.execute("INSERT INTO day_counts VALUES ('key_1', ?1, 1)", &[day])?;
            }
            Ok(())
        })
    }

    /// As if the response to the last commit had been lost.
    fn doubt(database: &Database, rows: usize) {
        let mut batches = database.batches.lock().unwrap();
        batches.doubtful = Some((batches.begun, rows));
    }

    #[test]
    #[ignore = "needs PostgreSQL, which `cargo test` may not ask for, named by MK_TEST_DATABASE_URL; runs in .ci/run"]
    fn a_backlog_is_written_in_parts_and_written_parts_stay() {
        let database = testing::database().expect("MK_TEST_DATABASE_URL");
        let mut rows: Vec<i64> = (0..i64::try_from(2 * MAX_ROWS + 100).unwrap()).collect();
        rows[MAX_ROWS + 7] = 0;
        present(&database, &rows).unwrap_err();
        assert_eq!(kept(&database).len(), MAX_ROWS);
        rows[MAX_ROWS + 7] = -1;
        present(&database, &rows).unwrap();
        rows.sort_unstable();
        assert_eq!(kept(&database), rows);
        present(&database, &[-2]).unwrap();
        assert_eq!(kept(&database)[0], -2);
    }

    #[test]
    #[ignore = "needs PostgreSQL, which `cargo test` may not ask for, named by MK_TEST_DATABASE_URL; runs in .ci/run"]
    fn rows_whose_commit_response_was_lost_are_written_once() {
        let database = testing::database().expect("MK_TEST_DATABASE_URL");
        present(&database, &[1, 2]).unwrap();
        doubt(&database, 2);
        // A duplicate row: nothing of this batch is kept, and the outcome of the doubtful one is not forgotten.
        present(&database, &[1, 2, 3, 3]).unwrap_err();
        assert_eq!(kept(&database), [1, 2]);
        present(&database, &[1, 2, 3, 4]).unwrap();
        assert_eq!(kept(&database), [1, 2, 3, 4]);
        // A batch that was not committed.
        database.batches.lock().unwrap().begun += 1;
        doubt(&database, 1);
        present(&database, &[5]).unwrap();
        present(&database, &[6]).unwrap();
        assert_eq!(kept(&database), [1, 2, 3, 4, 5, 6]);
    }
}
