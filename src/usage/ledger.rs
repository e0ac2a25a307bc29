//! The queue between requests and the disk.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::Account;
use super::budgets::{Budgets, Hold, Unpaid};
use crate::clock::Time;
use crate::metrics::Metrics;
use crate::money::NanoUsd;
use crate::storage::{AttemptRow, Error, Store};

/// Rows that may wait while the store is down: about 40 MB.
pub(super) const MAX_QUEUED: usize = 100_000;

/// Rows that are worth a write at once: what waits stays small however many requests come, some 250 KB, and in the
/// processor's cache.
const FULL: usize = 1024;

/// So many are written in one transaction: what has gathered while the store was down is written bit by bit, and what
/// was written stays so, whatever becomes of the rest.
const MOST_AT_ONCE: usize = 4096;

/// Where attempts are booked; clones share one queue.
#[derive(Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
    metrics: Arc<Metrics>,
}

struct Shared {
    store: Store,
    budgets: Budgets,
    queue: Mutex<Queue>,
    filled: Notify,
    /// Held by whoever writes, so that nobody takes what is being written for written: room for the next rows, that those
    /// had which were written last.
    spare: Mutex<Vec<AttemptRow>>,
    lost: AtomicU64,
    /// How many rows are being written.
    writing: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    rows: Vec<AttemptRow>,
    /// What some of the rows hold of budgets until the store has them, by the row's place, in order.
    holds: Vec<(usize, Hold)>,
}

impl Queue {
    /// Drops as many rows from the beginning, and gives back what they hold.
    fn forget(&mut self, written: usize) {
        self.rows.drain(..written);
        self.holds.drain(..self.holds.partition_point(|(place, _)| *place < written));
        self.holds.iter_mut().for_each(|(place, _)| *place -= written);
    }
}

impl Ledger {
    /// A ledger kept in `store`.
    pub fn new(store: Store) -> Self {
        let budgets = Budgets::new(store.clone());
        let shared = Shared {
            store,
            budgets,
            queue: Mutex::default(),
            filled: Notify::new(),
            spare: Mutex::default(),
            lost: AtomicU64::new(0),
            writing: AtomicUsize::new(0),
        };
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

    /// Queues a row, with what it holds of budgets; never blocks. Rows beyond a bound (a store that has been down for
    /// long) are dropped and counted; their budgets go on counting what they have cost.
    pub(super) fn book(&self, row: AttemptRow, hold: Option<Hold>) {
        let mut queue = self.queue();
        let place = queue.rows.len();
        if place.saturating_add(self.shared.writing.load(Ordering::Relaxed)) < MAX_QUEUED {
            queue.rows.push(row);
            queue.holds.extend(hold.map(|hold| (place, hold)));
            drop(queue);
            // Once: with a store that is down, the next turn is soon enough.
            if place + 1 == FULL {
                self.shared.filled.notify_one();
            }
            return;
        }
        drop(queue);
        self.lose([row], hold.map(|hold| (0, hold)));
    }

    /// Reserves the most that a call may cost (`None` if it cannot be told) for an account that has a budget.
    pub(super) fn reserve(&self, of: &Account, most: Option<NanoUsd>, now: Time) -> Result<Hold, Unpaid> {
        self.shared.budgets.reserve(of, most, now)
    }

    /// As [`Budgets::freed`].
    pub(super) fn freed(&self) -> OwnedNotified {
        self.shared.budgets.freed()
    }

    /// As [`Budgets::load_spending`].
    pub(super) async fn load_spending(&self, of: &Account, now: Time) {
        self.shared.budgets.load_spending(of, now).await;
    }

    /// Whether that much could be reserved.
    pub(super) fn check(&self, of: &Account, most: Option<NanoUsd>, now: Time) -> Result<(), Unpaid> {
        self.shared.budgets.check(of, most, now)
    }

    /// Waits until so many rows are queued that they should be written without waiting for a turn.
    pub async fn filled(&self) {
        self.shared.filled.notified().await;
    }

    /// Writes what is queued, and brings the budgets up to date; what another call is writing is waited for. Blocking.
    /// Rows that cannot be written stay queued.
    pub fn flush(&self) -> Result<(), Error> {
        let mut spare = lock(&self.shared.spare);
        let rows = std::mem::take(&mut *spare);
        let mut queue = std::mem::replace(&mut *self.queue(), Queue { rows, holds: Vec::new() });
        let (written, outcome) = self.write(&queue.rows);
        self.shared.writing.store(0, Ordering::Relaxed);
        match outcome {
            Ok(()) => {
                queue.rows.clear();
                queue.rows.shrink_to(2 * FULL);
                *spare = queue.rows;
                self.shared.budgets.refresh(queue.holds.into_iter().map(|(_, hold)| hold))
            }
            Err(cause) => {
                // In this order: what those hold that were written is in what the ledger is asked for next.
                self.shared.budgets.invalidate();
                queue.forget(written);
                self.put_back(queue);
                Err(cause)
            }
        }
    }

    /// Writes rows in their order; how many were written, and what kept the others from it.
    fn write(&self, rows: &[AttemptRow]) -> (usize, Result<(), Error>) {
        let mut written = 0;
        for batch in rows.chunks(MOST_AT_ONCE) {
            self.shared.writing.store(rows.len() - written, Ordering::Relaxed);
            if let Err(cause) = self.shared.store.add_attempts(batch) {
                return (written, Err(cause));
            }
            written += batch.len();
        }
        (written, Ok(()))
    }

    /// How many rows are yet to be written.
    pub fn queued(&self) -> usize {
        self.queue().rows.len().saturating_add(self.shared.writing.load(Ordering::Relaxed))
    }

    /// How many rows have been dropped because the store was down for too long.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Puts rows that were not written before those booked since; the newest beyond the bound are lost.
    fn put_back(&self, unwritten: Queue) {
        let Queue { mut rows, mut holds } = unwritten;
        let mut queue = self.queue();
        let before = rows.len();
        rows.append(&mut queue.rows);
        holds.extend(queue.holds.drain(..).map(|(place, hold)| (before + place, hold)));
        let lost_rows = rows.split_off(rows.len().min(MAX_QUEUED));
        let lost_holds = holds.split_off(holds.partition_point(|(place, _)| *place < MAX_QUEUED));
        *queue = Queue { rows, holds };
        drop(queue);
        self.lose(lost_rows, lost_holds.into_iter().map(|(place, hold)| (place - MAX_QUEUED, hold)));
    }

    /// Counts rows that will never be written, and has budgets remember what those cost that hold of them, by place.
    fn lose(&self, rows: impl AsRef<[AttemptRow]>, holds: impl IntoIterator<Item = (usize, Hold)>) {
        let rows = rows.as_ref();
        self.shared.lost.fetch_add(rows.len() as u64, Ordering::Relaxed);
        for (place, hold) in holds {
            if let Some(row) = rows.get(place) {
                hold.lose(row.at);
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.shared.queue)
    }
}

/// Also after a panic elsewhere: a queue is whole after every step.
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
    fn whoever_flushes_waits_for_what_another_is_writing() {
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
    async fn many_rows_do_not_wait_for_their_turn() {
        let ledger = Ledger::new(Store::in_memory(NOW).unwrap());
        let is_filled = || ledger.filled().now_or_never().is_some();
        for _ in 0..2 {
            (1..FULL).for_each(|_| ledger.book(row("req_1"), None));
            assert!(!is_filled());
            (0..FULL).for_each(|_| ledger.book(row("req_1"), None));
            assert!(is_filled() && !is_filled(), "once");
            ledger.flush().unwrap();
        }
    }

    #[test]
    fn a_store_that_is_down_loses_nothing_within_the_bound() {
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
        assert_eq!(ledger.lost(), 1);
        assert!(ledger.flush().is_err());

        breaker.execute_batch("ALTER TABLE hidden RENAME TO attempts").unwrap();
        ledger.flush().unwrap();
        assert_eq!(store.attempts_of("req_1").unwrap(), [row("req_1")]);
        assert_eq!(store.attempts_of("req_2").unwrap().len(), MAX_QUEUED - 1);
        assert_eq!(ledger.lost(), 1);
    }

    #[test]
    fn what_rows_cost_that_are_lost_on_their_way_back_stays_spent() {
        let ledger = Ledger::new(Store::in_memory(NOW).unwrap());
        let account = account(NanoUsd(100));
        let load = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(ledger.load_spending(&account, NOW));
        };
        let book = |cost| {
            load();
            let mut hold = ledger.reserve(&account, Some(cost), NOW).unwrap();
            hold.settle(cost);
            let of_key = AttemptRow { key_id: "key_1".into(), cost: Some(cost), ..row("req_1") };
            ledger.book(of_key, Some(hold));
        };
        book(NanoUsd(10));
        let mut unwritten = std::mem::take(&mut *ledger.queue());
        unwritten.rows.splice(0..0, vec![row("req_old"); MAX_QUEUED - 2]);
        unwritten.holds.iter_mut().for_each(|(at, _)| *at += MAX_QUEUED - 2);
        book(NanoUsd(20));
        book(NanoUsd(40));
        ledger.put_back(unwritten);
        assert_eq!(ledger.lost(), 1);
        ledger.flush().unwrap();
        load();
        let spent = |left| ledger.check(&account, Some(NanoUsd(left)), NOW).is_ok();
        assert_eq!((spent(30), spent(31)), (true, false));
    }

    #[test]
    fn what_was_written_of_a_backlog_counts_once_against_a_budget() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(Store::open(dir.path(), NOW).unwrap());
        let breaker = rusqlite::Connection::open(dir.path().join("ledger.db")).unwrap();
        let refuse = "CREATE TRIGGER refused BEFORE INSERT ON attempts WHEN NEW.request_id = 'req_bad'
                      BEGIN SELECT RAISE(FAIL, 'no'); END";
        breaker.execute_batch(refuse).unwrap();
        let account = account(NanoUsd(10_000));
        let book = |request_id: &str| {
            let mut hold = ledger.reserve(&account, Some(NanoUsd(1)), NOW).unwrap();
            hold.settle(NanoUsd(1));
            let of_key = AttemptRow { key_id: "key_1".into(), cost: Some(NanoUsd(1)), ..row(request_id) };
            ledger.book(of_key, Some(hold));
        };
        (0..MOST_AT_ONCE + 5).for_each(|_| book("req_1"));
        book("req_bad");
        assert!(ledger.flush().is_err());
        assert_eq!(ledger.queued(), 6, "what was written is not written again");
        let has_left = |left| ledger.check(&account, Some(NanoUsd(left)), NOW).is_ok();
        let left = 10_000 - (MOST_AT_ONCE as u64 + 6);
        assert_eq!((has_left(left), has_left(left + 1)), (true, false));

        breaker.execute_batch("DROP TRIGGER refused").unwrap();
        ledger.flush().unwrap();
        assert_eq!((has_left(left), has_left(left + 1)), (true, false));
        assert_eq!((ledger.queued(), ledger.lost()), (0, 0));
    }

    #[test]
    fn of_rows_that_come_back_the_newest_beyond_the_bound_are_lost() {
        let ledger = Ledger::new(Store::in_memory(NOW).unwrap());
        ledger.book(row("req_new"), None);
        ledger.put_back(Queue { rows: vec![row("req_old"); MAX_QUEUED], holds: Vec::new() });
        assert_eq!(ledger.lost(), 1);
        assert!(ledger.queue().rows.iter().all(|row| &*row.request_id == "req_old"));
    }
}
