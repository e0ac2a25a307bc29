//! The ledger: a queue of rows between requests and the disk.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::Account;
use super::budgets::{BudgetError, Budgets, Reservation};
use crate::clock::Time;
use crate::metrics::Metrics;
use crate::money::NanoUsd;
use crate::storage::{AttemptRow, Error, Store};

/// The capacity of the queue while the store is down: about 40 MB.
pub(super) const MAX_QUEUED: usize = 100_000;

/// The number of rows that trigger a write: it keeps the queue small under any load, some 250 KB, and in the
/// processor's cache.
const WRITE_BATCH: usize = 1024;

/// The maximum number of rows per transaction: a backlog from an outage is written in parts, and what was written stays
/// written, whatever becomes of the rest.
const MAX_PER_TRANSACTION: usize = 4096;

/// Records attempts; clones share one queue.
#[derive(Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
    metrics: Arc<Metrics>,
}

struct Shared {
    store: Store,
    budgets: Budgets,
    queue: Mutex<Queue>,
    batch_ready: Notify,
    /// Held during a write, so that nobody takes rows that are being written for written. It is the buffer of the last
    /// write, to be reused for the next rows.
    spare: Mutex<Vec<AttemptRow>>,
    lost: AtomicU64,
    /// The number of rows being written.
    writing: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    rows: Vec<AttemptRow>,
    /// The reservations of some of the rows, held until the store has them, by the index of the row, in order.
    reservations: Vec<(usize, Reservation)>,
}

impl Queue {
    /// Drops this many rows from the beginning, and releases their reservations.
    fn forget(&mut self, written: usize) {
        self.rows.drain(..written);
        self.reservations.drain(..self.reservations.partition_point(|(place, _)| *place < written));
        self.reservations.iter_mut().for_each(|(place, _)| *place -= written);
    }
}

impl Ledger {
    /// A ledger that writes to `store`.
    pub fn new(store: Store) -> Self {
        let budgets = Budgets::new(store.clone());
        let shared = Shared {
            store,
            budgets,
            queue: Mutex::default(),
            batch_ready: Notify::new(),
            spare: Mutex::default(),
            lost: AtomicU64::new(0),
            writing: AtomicUsize::new(0),
        };
        Self { shared: Arc::new(shared), metrics: Arc::default() }
    }

    /// The same ledger, which also counts attempts in these metrics.
    #[must_use]
    pub fn with_metrics(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics, ..self }
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Queues a row with its reservation; never blocks. Rows beyond the capacity (when the store was down for long) are
    /// dropped and counted; their costs still count against budgets.
    pub(super) fn book(&self, row: AttemptRow, reservation: Option<Reservation>) {
        let mut queue = self.queue();
        let place = queue.rows.len();
        if place.saturating_add(self.shared.writing.load(Ordering::Relaxed)) < MAX_QUEUED {
            queue.rows.push(row);
            queue.reservations.extend(reservation.map(|reservation| (place, reservation)));
            drop(queue);
            // Notified once: while the store is down, the next regular flush is soon enough.
            if place + 1 == WRITE_BATCH {
                self.shared.batch_ready.notify_one();
            }
            return;
        }
        drop(queue);
        self.lose([row], reservation.map(|reservation| (0, reservation)));
    }

    /// Reserves the most that a call may cost (`None` if unknown) for an account with a budget.
    pub(super) fn reserve(
        &self,
        of: &Account,
        max_cost: Option<NanoUsd>,
        now: Time,
    ) -> Result<Reservation, BudgetError> {
        self.shared.budgets.reserve(of, max_cost, now)
    }

    /// See [`Budgets::freed`].
    pub(super) fn freed(&self) -> OwnedNotified {
        self.shared.budgets.freed()
    }

    /// See [`Budgets::load_spending`].
    pub(super) async fn load_spending(&self, of: &Account, now: Time) {
        self.shared.budgets.load_spending(of, now).await;
    }

    /// See [`Budgets::check`].
    pub(super) fn check(
        &self,
        of: &Account,
        max_cost: Option<NanoUsd>,
        now: Time,
    ) -> Result<(), BudgetError> {
        self.shared.budgets.check(of, max_cost, now)
    }

    /// Waits until enough rows are queued to be written without waiting for the regular flush.
    pub async fn batch_ready(&self) {
        self.shared.batch_ready.notified().await;
    }

    /// Writes what is queued and updates the budgets, after any write under way. Blocking. Rows that cannot be written
    /// stay queued.
    pub fn flush(&self) -> Result<(), Error> {
        let mut spare = lock(&self.shared.spare);
        let rows = std::mem::take(&mut *spare);
        let mut queue = std::mem::replace(&mut *self.queue(), Queue { rows, reservations: Vec::new() });
        let (written, outcome) = self.write(&queue.rows);
        self.shared.writing.store(0, Ordering::Relaxed);
        match outcome {
            Ok(()) => {
                queue.rows.clear();
                queue.rows.shrink_to(2 * WRITE_BATCH);
                *spare = queue.rows;
                self.shared
                    .budgets
                    .refresh(queue.reservations.into_iter().map(|(_, reservation)| reservation))
            }
            Err(cause) => {
                // In this order: what is read from the ledger next includes the costs of rows that were written.
                self.shared.budgets.invalidate();
                queue.forget(written);
                self.put_back(queue);
                Err(cause)
            }
        }
    }

    /// Writes rows in their order; returns how many were written, and the error that stopped it.
    fn write(&self, rows: &[AttemptRow]) -> (usize, Result<(), Error>) {
        let mut written = 0;
        for batch in rows.chunks(MAX_PER_TRANSACTION) {
            self.shared.writing.store(rows.len() - written, Ordering::Relaxed);
            if let Err(cause) = self.shared.store.add_attempts(batch) {
                return (written, Err(cause));
            }
            written += batch.len();
        }
        (written, Ok(()))
    }

    /// The number of rows yet to be written.
    pub fn queued_rows(&self) -> usize {
        self.queue().rows.len().saturating_add(self.shared.writing.load(Ordering::Relaxed))
    }

    /// The number of rows dropped because the store was down for too long.
    pub fn lost_rows(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Puts rows that could not be written back in front of newer ones; the newest beyond the capacity are lost.
    fn put_back(&self, unwritten: Queue) {
        let Queue { mut rows, mut reservations } = unwritten;
        let mut queue = self.queue();
        let before = rows.len();
        rows.append(&mut queue.rows);
        reservations
            .extend(queue.reservations.drain(..).map(|(place, reservation)| (before + place, reservation)));
        let lost_rows = rows.split_off(rows.len().min(MAX_QUEUED));
        let lost_holds =
            reservations.split_off(reservations.partition_point(|(place, _)| *place < MAX_QUEUED));
        *queue = Queue { rows, reservations };
        drop(queue);
        self.lose(
            lost_rows,
            lost_holds.into_iter().map(|(place, reservation)| (place - MAX_QUEUED, reservation)),
        );
    }

    /// Counts rows that will never be written, and has the budgets remember the costs of their reservations, by index.
    fn lose(
        &self,
        rows: impl AsRef<[AttemptRow]>,
        reservations: impl IntoIterator<Item = (usize, Reservation)>,
    ) {
        let rows = rows.as_ref();
        self.shared.lost.fetch_add(rows.len() as u64, Ordering::Relaxed);
        for (place, reservation) in reservations {
            if let Some(row) = rows.get(place) {
                reservation.lose(row.at);
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.shared.queue)
    }
}

/// Ignores poisoning: the queue is consistent after every step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::api::Service;
    use crate::clock::Time;
    use crate::usage::Budget;

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);

    fn row(request_id: &str) -> AttemptRow {
        AttemptRow {
            at: NOW,
            request_id: request_id.into(),
            app_id: "".into(),
            key_id: "".into(),
            service: Service::Verify,
            model: "sandbox/alpha".into(),
            outcome: "ok".into(),
            prompt_tokens: 1,
            completion_tokens: 1,
            cost: None,
            latency_ms: 1,
            is_first: true,
            is_first_of_model: true,
        }
    }

    fn account(budget: NanoUsd) -> Account {
        Account {
            request_id: "req_1".into(),
            app_id: "app_1".into(),
            key_id: "key_1".into(),
            service: Service::Verify,
            budget: Budget { key: Some(budget), app: None },
        }
    }

    #[test]
    fn rows_are_written_once_and_in_order() {
        let store = Store::in_memory(NOW).unwrap();
        let ledger = Ledger::new(store.clone());
        let rows: Vec<AttemptRow> =
            (1..=3).map(|latency_ms| AttemptRow { latency_ms, ..row("req_1") }).collect();
        for row in &rows {
            ledger.clone().book(row.clone(), None);
        }
        assert_eq!(store.attempts_of("req_1").unwrap(), []);
        ledger.flush().unwrap();
        ledger.flush().unwrap();
        assert_eq!(store.attempts_of("req_1").unwrap(), rows);
    }

    #[test]
    fn a_flush_waits_for_a_write_under_way() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), NOW).unwrap();
        let ledger = Ledger::new(store.clone());
        let other = rusqlite::Connection::open(dir.path().join("ledger.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        ledger.book(row("req_1"), None);
        let (sender, seen) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| ledger.flush().unwrap());
            while !ledger.queue().rows.is_empty() {
                std::thread::yield_now();
            }
            scope.spawn(|| {
                ledger.flush().unwrap();
                sender.send(store.attempts_of("req_1").unwrap().len()).unwrap();
            });
            let early = seen.recv_timeout(std::time::Duration::from_millis(200));
            other.execute_batch("COMMIT").unwrap();
            assert!(early.is_err(), "it did not wait, and saw {early:?} rows");
            assert_eq!(seen.recv(), Ok(1));
        });
    }

    #[tokio::test]
    async fn a_full_batch_does_not_wait_for_the_regular_flush() {
        let ledger = Ledger::new(Store::in_memory(NOW).unwrap());
        let is_ready = || ledger.batch_ready().now_or_never().is_some();
        for _ in 0..2 {
            (1..WRITE_BATCH).for_each(|_| ledger.book(row("req_1"), None));
            assert!(!is_ready());
            (0..WRITE_BATCH).for_each(|_| ledger.book(row("req_1"), None));
            assert!(is_ready() && !is_ready(), "once");
            ledger.flush().unwrap();
        }
    }

    #[test]
    fn a_store_that_is_down_loses_nothing_within_the_capacity() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), NOW).unwrap();
        let ledger = Ledger::new(store.clone());
        let breaker = rusqlite::Connection::open(dir.path().join("ledger.db")).unwrap();
        breaker.execute_batch("ALTER TABLE attempts RENAME TO hidden").unwrap();

        ledger.book(row("req_1"), None);
        assert!(ledger.flush().is_err());
        for _ in 0..MAX_QUEUED {
            ledger.book(row("req_2"), None);
        }
        assert_eq!(ledger.lost_rows(), 1);
        assert!(ledger.flush().is_err());

        breaker.execute_batch("ALTER TABLE hidden RENAME TO attempts").unwrap();
        ledger.flush().unwrap();
        assert_eq!(store.attempts_of("req_1").unwrap(), [row("req_1")]);
        assert_eq!(store.attempts_of("req_2").unwrap().len(), MAX_QUEUED - 1);
        assert_eq!(ledger.lost_rows(), 1);
    }

    #[test]
    fn the_cost_of_rows_lost_when_put_back_stays_spent() {
        let ledger = Ledger::new(Store::in_memory(NOW).unwrap());
        let account = account(NanoUsd(100));
        let load = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(ledger.load_spending(&account, NOW));
        };
        let book = |cost| {
            load();
            let mut reservation = ledger.reserve(&account, Some(cost), NOW).unwrap();
            reservation.settle(cost);
            let of_key = AttemptRow { key_id: "key_1".into(), cost: Some(cost), ..row("req_1") };
            ledger.book(of_key, Some(reservation));
        };
        book(NanoUsd(10));
        let mut unwritten = std::mem::take(&mut *ledger.queue());
        unwritten.rows.splice(0..0, vec![row("req_old"); MAX_QUEUED - 2]);
        unwritten.reservations.iter_mut().for_each(|(at, _)| *at += MAX_QUEUED - 2);
        book(NanoUsd(20));
        book(NanoUsd(40));
        ledger.put_back(unwritten);
        assert_eq!(ledger.lost_rows(), 1);
        ledger.flush().unwrap();
        load();
        let spent = |left| ledger.check(&account, Some(NanoUsd(left)), NOW).is_ok();
        assert_eq!((spent(30), spent(31)), (true, false));
    }

    #[test]
    fn written_parts_of_a_backlog_count_once_against_a_budget() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(Store::open(dir.path(), NOW).unwrap());
        let breaker = rusqlite::Connection::open(dir.path().join("ledger.db")).unwrap();
        let refuse = "CREATE TRIGGER refused BEFORE INSERT ON attempts WHEN NEW.request_id = 'req_bad'
                      BEGIN SELECT RAISE(FAIL, 'no'); END";
        breaker.execute_batch(refuse).unwrap();
        let account = account(NanoUsd(10_000));
        let book = |request_id: &str| {
            let mut reservation = ledger.reserve(&account, Some(NanoUsd(1)), NOW).unwrap();
            reservation.settle(NanoUsd(1));
            let of_key = AttemptRow { key_id: "key_1".into(), cost: Some(NanoUsd(1)), ..row(request_id) };
            ledger.book(of_key, Some(reservation));
        };
        (0..MAX_PER_TRANSACTION + 5).for_each(|_| book("req_1"));
        book("req_bad");
        assert!(ledger.flush().is_err());
        assert_eq!(ledger.queued_rows(), 6, "what was written is not written again");
        let has_left = |left| ledger.check(&account, Some(NanoUsd(left)), NOW).is_ok();
        let left = 10_000 - (MAX_PER_TRANSACTION as u64 + 6);
        assert_eq!((has_left(left), has_left(left + 1)), (true, false));

        breaker.execute_batch("DROP TRIGGER refused").unwrap();
        ledger.flush().unwrap();
        assert_eq!((has_left(left), has_left(left + 1)), (true, false));
        assert_eq!((ledger.queued_rows(), ledger.lost_rows()), (0, 0));
    }

    #[test]
    fn when_rows_are_put_back_the_newest_beyond_the_capacity_are_lost() {
        let ledger = Ledger::new(Store::in_memory(NOW).unwrap());
        ledger.book(row("req_new"), None);
        ledger.put_back(Queue { rows: vec![row("req_old"); MAX_QUEUED], reservations: Vec::new() });
        assert_eq!(ledger.lost_rows(), 1);
        assert!(ledger.queue().rows.iter().all(|row| &*row.request_id == "req_old"));
    }
}
