//! The queue between requests and the disk.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::metrics::Metrics;
use crate::storage::{AttemptRow, Error, Store};

/// Rows that may wait while the store is down: about 40 MB.
const MAX_QUEUED: usize = 100_000;

/// Where attempts are booked; clones share one queue.
#[derive(Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
    metrics: Arc<Metrics>,
}

struct Shared {
    store: Store,
    queue: Mutex<Vec<AttemptRow>>,
    lost: AtomicU64,
}

impl Ledger {
    /// A ledger kept in `store`.
    pub fn new(store: Store) -> Self {
        let shared = Shared { store, queue: Mutex::new(Vec::new()), lost: AtomicU64::new(0) };
        Self { shared: Arc::new(shared), metrics: Arc::default() }
    }

    /// The ledger, with attempts counted in these metrics too.
    #[must_use]
    pub fn counted_in(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics, ..self }
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Queues a row; never blocks. Rows beyond a bound (a store that has been down for long) are dropped and counted.
    pub fn book(&self, row: AttemptRow) {
        let mut queue = self.queue();
        if queue.len() < MAX_QUEUED {
            queue.push(row);
        } else {
            self.add_lost(1);
        }
    }

    /// Writes what is queued. Blocking. Rows that cannot be written stay queued.
    pub fn flush(&self) -> Result<(), Error> {
        let rows = std::mem::take(&mut *self.queue());
        let outcome = self.shared.store.add_attempts(&rows);
        if outcome.is_err() {
            self.put_back(rows);
        }
        outcome
    }

    /// How many rows wait to be written.
    pub fn queued(&self) -> usize {
        self.queue().len()
    }

    /// How many rows have been dropped because the store was down for too long.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Puts rows that were not written before those booked since; the newest beyond the bound are lost.
    fn put_back(&self, mut rows: Vec<AttemptRow>) {
        let mut queue = self.queue();
        rows.append(&mut queue);
        let too_many = rows.len().saturating_sub(MAX_QUEUED);
        rows.truncate(MAX_QUEUED);
        *queue = rows;
        self.add_lost(too_many);
    }

    fn add_lost(&self, rows: usize) {
        self.shared.lost.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Also after a panic elsewhere: a queue is whole after every step.
    fn queue(&self) -> MutexGuard<'_, Vec<AttemptRow>> {
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Service;
    use crate::clock::Time;

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);

    fn row(request_id: &str) -> AttemptRow {
        AttemptRow {
            at: NOW,
            request_id: request_id.to_owned(),
            app_id: String::new(),
            key_id: String::new(),
            service: Service::Verify,
            model: "sandbox/alpha".to_owned(),
            outcome: "ok".to_owned(),
            prompt_tokens: 1,
            completion_tokens: 1,
            cost: None,
            latency_ms: 1,
        }
    }

    #[test]
    fn rows_are_written_once_and_in_order() {
        let store = Store::in_memory(NOW).unwrap();
        let ledger = Ledger::new(store.clone());
        let rows: Vec<AttemptRow> =
            (1..=3).map(|latency_ms| AttemptRow { latency_ms, ..row("req_1") }).collect();
        for row in &rows {
            ledger.clone().book(row.clone());
        }
        assert_eq!(store.attempts_of("req_1").unwrap(), []);
        ledger.flush().unwrap();
        ledger.flush().unwrap();
        assert_eq!(store.attempts_of("req_1").unwrap(), rows);
    }

    #[test]
    fn a_store_that_is_down_loses_nothing_within_the_bound() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), NOW).unwrap();
        let ledger = Ledger::new(store.clone());
        let breaker = rusqlite::Connection::open(dir.path().join("ledger.db")).unwrap();
        breaker.execute_batch("ALTER TABLE attempts RENAME TO hidden").unwrap();

        ledger.book(row("req_1"));
        assert!(ledger.flush().is_err());
        for _ in 0..MAX_QUEUED {
            ledger.book(row("req_2"));
        }
        assert_eq!(ledger.lost(), 1);
        assert!(ledger.flush().is_err());

        breaker.execute_batch("ALTER TABLE hidden RENAME TO attempts").unwrap();
        ledger.flush().unwrap();
        assert_eq!(store.attempts_of("req_1").unwrap(), [row("req_1")]);
        assert_eq!(store.attempts_of("req_2").unwrap().len(), MAX_QUEUED - 1);
        assert_eq!(ledger.lost(), 1);
    }

    #[test]
    fn of_rows_that_come_back_the_newest_beyond_the_bound_are_lost() {
        let ledger = Ledger::new(Store::in_memory(NOW).unwrap());
        ledger.book(row("req_new"));
        ledger.put_back(vec![row("req_old"); MAX_QUEUED]);
        assert_eq!(ledger.lost(), 1);
        assert!(ledger.queue().iter().all(|row| row.request_id == "req_old"));
    }
}
