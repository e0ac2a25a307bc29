//! The ledger: a queue of rows between requests and the disk.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::Account;
use super::budgets::{BudgetError, Budgets, Reservation};
use super::journal::{Due, Journal};
use super::late::LateCalls;
use crate::clock::Time;
use crate::lock::Lock;
use crate::metrics::{self, Metrics};
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

/// The maximum number of calls under way that are written per transaction.
const CALLS_PER_TRANSACTION: usize = 512;

/// When more calls under way than this are written at once, and fewer end, the pages on which they were written are not
/// kept in memory: those of whole answers are not touched before the models have answered, and those of streams, which
/// are written again as they grow, stay in the system's cache.
const FEW_CALLS: usize = 64;

/// Records attempts; clones share one queue.
#[derive(Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
    metrics: Arc<Metrics>,
}

struct Shared {
    store: Store,
    budgets: Budgets,
    journal: Journal,
    late: LateCalls,
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
            journal: Journal::default(),
            late: LateCalls::default(),
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

    /// The calls under way.
    pub(super) fn journal(&self) -> &Journal {
        &self.shared.journal
    }

    /// The calls that go on without their callers.
    pub(super) fn late(&self) -> &LateCalls {
        &self.shared.late
    }

    /// Ends the calls that go on without their callers, and books them. To be called once no more requests begin.
    pub async fn end_late_calls(&self) {
        self.shared.late.end().await;
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
    pub(super) async fn load_spending(&self, of: &Account, now: Time) -> Result<(), BudgetError> {
        self.shared.budgets.load_spending(of, now).await
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

    /// Books the calls of servers on this database that died; returns how many. Blocking.
    pub fn adopt(&self, now: Time) -> Result<usize, Error> {
        let booked = self.shared.store.adopt_calls(self.shared.journal.server(), now)?;
        for row in &booked {
            self.metrics.attempts.count(&metrics::Attempt {
                model: &row.model,
                outcome: &row.outcome,
                took: Duration::from_millis(row.latency_ms),
                first_token: None,
                prompt_tokens: row.prompt_tokens,
                completion_tokens: row.completion_tokens,
                cached_tokens: row.cached_tokens,
                cache_write_tokens: row.cache_write_tokens,
                cost: row.cost,
            });
        }
        Ok(booked.len())
    }

    /// Writes what is queued, and what long calls under way have used, and updates the budgets, after any write under
    /// way. Blocking. Rows that cannot be written stay queued.
    pub fn flush(&self) -> Result<(), Error> {
        self.flush_at(Instant::now())
    }

    /// [`Ledger::flush`] at this time, from which the ages of calls under way are told.
    pub(super) fn flush_at(&self, now: Instant) -> Result<(), Error> {
        let mut spare = self.shared.spare.locked();
        let rows = std::mem::take(&mut *spare);
        let mut queue = std::mem::replace(&mut *self.queue(), Queue { rows, reservations: Vec::new() });
        let due = self.shared.journal.due(now);
        let (written, outcome) = self.write(&queue.rows, &due);
        self.shared.writing.store(0, Ordering::Relaxed);
        match outcome {
            Ok(()) => {
                if due.len() > queue.rows.len().max(FEW_CALLS) {
                    // If it fails, they merely stay.
                    let _ = self.shared.store.shrink_ledger_cache();
                }
                self.shared.journal.written(due, now);
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

    /// Writes rows in their order, and after them the calls under way; returns how many rows were written, and the
    /// error that stopped it.
    fn write(&self, rows: &[AttemptRow], due: &Due) -> (usize, Result<(), Error>) {
        let mut written = 0;
        // Rows of calls are made as they are written: with thousands of calls under way, all of them take megabytes.
        let mut calls = due.chunks(CALLS_PER_TRANSACTION);
        loop {
            let left = &rows[written..];
            self.shared.writing.store(left.len(), Ordering::Relaxed);
            let batch = &left[..left.len().min(MAX_PER_TRANSACTION)];
            let some_calls = if batch.len() == left.len() { calls.next() } else { None };
            let under_way = some_calls.map(|calls| self.shared.journal.rows(calls)).unwrap_or_default();
            if let Err(cause) = self.shared.store.add_usage(batch, &under_way) {
                return (written, Err(cause));
            }
            written += batch.len();
            if written == rows.len() && calls.len() == 0 {
                return (written, Ok(()));
            }
        }
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
        self.shared.queue.locked()
    }
}

#[cfg(test)]
mod tests;
