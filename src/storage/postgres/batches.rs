//! Attempts that are written once, although it may never be told whether they were.
//!
//! Where a connection breaks between a commit and its answer, nobody knows whether it was kept, and whoever has
//! presented the rows presents them again, with others behind them. So each server's last batch has its number in the
//! database, written with its rows, and a doubtful one is looked up before more is written: behind it in the lane, and
//! therefore when it has come to its end.

use std::sync::PoisonError;

use super::session::first;
use super::{Database, Lane, Session};
use crate::storage::Error;

/// So many are written in one transaction: what has gathered while the database was gone is not to be too much for the
/// time that a write may take, and other servers wait for its end.
const MOST_ROWS: usize = 4096;

/// What is known of the batches of this server.
pub(super) struct Batches {
    /// This server's name among all, for as long as it runs.
    writer: String,
    /// How many were begun.
    begun: i64,
    /// How many rows at the beginning of what is presented again were written.
    written: usize,
    /// A batch that may have been written: its number, and how many rows were written with it.
    doubtful: Option<(i64, usize)>,
}

impl Default for Batches {
    fn default() -> Self {
        Self { writer: crate::id::new("wri"), begun: 0, written: 0, doubtful: None }
    }
}

impl Database {
    /// Has `write` write `rows`, which are presented until this succeeds, each time from the same beginning; those are
    /// left out that were written before. Blocking.
    pub(in crate::storage) fn write_once<T>(
        &self,
        rows: &[T],
        write: impl Fn(&Session<'_>, &[T]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            self.write_some(&mut batches, rows, &write)?;
            if batches.written >= rows.len() {
                batches.written = 0;
                return Ok(());
            }
        }
    }

    /// The same of as many as one transaction is good for, in which others wait.
    fn write_some<T>(
        &self,
        batches: &mut Batches,
        rows: &[T],
        write: impl Fn(&Session<'_>, &[T]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        batches.begun += 1;
        let number = batches.begun;
        let (mut may_commit, mut end) = (false, 0);
        let outcome = self.write(Lane::Ledger, |session| {
            if let Some((number, written)) = batches.doubtful {
                if last_of(session, &batches.writer)? == Some(number) {
                    batches.written = written;
                }
                batches.doubtful = None;
            }
            end = batches.written.saturating_add(MOST_ROWS).min(rows.len());
            write(session, rows.get(batches.written..end).unwrap_or_default())?;
            note(session, &batches.writer, number)?;
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

/// The number of the last batch that was written.
fn last_of(session: &Session<'_>, writer: &str) -> Result<Option<i64>, Error> {
    let rows = session.query("SELECT number FROM batches WHERE writer = ?1", &[&writer])?;
    first(&rows)
}

fn note(session: &Session<'_>, writer: &str, number: i64) -> Result<(), Error> {
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

    /// As if nobody had heard of the last commit.
    fn doubt(database: &Database, rows: usize) {
        let mut batches = database.batches.lock().unwrap();
        batches.doubtful = Some((batches.begun, rows));
    }

    #[test]
    #[ignore = "needs PostgreSQL, which `cargo test` may not ask for, named by MK_TEST_DATABASE_URL; runs in .ci/run"]
    fn what_has_gathered_is_written_bit_by_bit_and_what_was_stays_written() {
        let database = testing::database().expect("MK_TEST_DATABASE_URL");
        let mut rows: Vec<i64> = (0..i64::try_from(2 * MOST_ROWS + 100).unwrap()).collect();
        rows[MOST_ROWS + 7] = 0;
        present(&database, &rows).unwrap_err();
        assert_eq!(kept(&database).len(), MOST_ROWS);
        rows[MOST_ROWS + 7] = -1;
        present(&database, &rows).unwrap();
        rows.sort_unstable();
        assert_eq!(kept(&database), rows);
        present(&database, &[-2]).unwrap();
        assert_eq!(kept(&database)[0], -2);
    }

    #[test]
    #[ignore = "needs PostgreSQL, which `cargo test` may not ask for, named by MK_TEST_DATABASE_URL; runs in .ci/run"]
    fn rows_whose_commit_nobody_heard_of_are_written_once() {
        let database = testing::database().expect("MK_TEST_DATABASE_URL");
        present(&database, &[1, 2]).unwrap();
        doubt(&database, 2);
        // A row that is there already: neither is anything of this kept, nor is what was found out forgotten.
        present(&database, &[1, 2, 3, 3]).unwrap_err();
        assert_eq!(kept(&database), [1, 2]);
        present(&database, &[1, 2, 3, 4]).unwrap();
        assert_eq!(kept(&database), [1, 2, 3, 4]);
        // One that was not kept.
        database.batches.lock().unwrap().begun += 1;
        doubt(&database, 1);
        present(&database, &[5]).unwrap();
        present(&database, &[6]).unwrap();
        assert_eq!(kept(&database), [1, 2, 3, 4, 5, 6]);
    }
}
