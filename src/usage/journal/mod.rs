//! Calls under way, so that what they have used is not lost if the server is killed.
//!
//! Every call registers here for as long as it runs, and tells what it has used so far. A flush of the ledger writes
//! down those that have run for [`MIN_AGE`], again whenever they have used more; short calls never get that far. The
//! entries of a server that died become attempts later, through whatever server finds them.
//!
//! Requests pay for two locks of a list that hardly anybody else uses, and an event of a stream for four stores.
//!
//! What must hold: a call leaves the list before its row is queued, and a flush looks at the list after it has taken
//! the queue. So an entry is written before the row that ends it; and a call that is written down as the first of its
//! request is so for every row written until then. Call and request are numbered under the lock of the list, so that
//! the row of a call that has an entry names it. A request is numbered before anybody looks whether the call is its
//! first, and a row is numbered after it was counted: of two calls, at least one knows of the other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use slab::Slab;

use super::request::{End, Request};
use super::totals::Used;
use crate::id;
use crate::lock::Lock;
use crate::money::{Price, Tokens, Usage};
use crate::net::workers::PerWorker;
use crate::storage::{AttemptRow, INTERRUPTED};
use crate::traces::Span;

/// The age from which on a call is written down, and the least time between two writes of it. With the time between two
/// flushes, it is what a killed server loses of a call.
const MIN_AGE: Duration = Duration::from_millis(300);

/// How often the server shows that it lives as long as there are calls to write down; others take it for dead after
/// five times as long.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// The calls under way of a server, and its name in the journal.
pub(super) struct Journal {
    server: Arc<str>,
    /// The calls that each worker has begun.
    lists: PerWorker<Mutex<Slab<Arc<OpenCall>>>>,
    /// The number of the last call that was written down.
    last_number: AtomicU64,
    /// When something was last written.
    written_at: Mutex<Option<Instant>>,
}

/// A call under way.
pub(super) struct OpenCall {
    pub(super) request: Arc<Request>,
    pub(super) model: Arc<str>,
    /// The price of its tokens. Without it, the total of this model and purpose has no cost.
    pub(super) price: Option<Price>,
    pub(super) begun: Instant,
    used: SharedTokens,
    /// Its number in the journal; 0 as long as it has none.
    number: AtomicU64,
    /// What was last written of it. Only used by flushes, one at a time, like the next.
    written: SharedTokens,
    /// When that was, in milliseconds after it began; 0 as long as nothing was.
    written_at: AtomicU64,
    /// Its part of the request's trace, until it is booked. Here, as whoever waits for a call holds nothing larger than
    /// a pointer to it.
    pub(super) span: Mutex<Span>,
}

/// Tokens that one thread sets and others read: they may see some of the numbers alone, and the others the next time.
#[derive(Default)]
struct SharedTokens {
    prompt: AtomicU64,
    completion: AtomicU64,
    cached: AtomicU64,
    cache_written: AtomicU64,
}

/// The place of a call in the lists. Small, as every call holds one while it waits.
pub(super) struct Registration {
    call: Arc<OpenCall>,
    list: u32,
    index: u32,
}

/// Calls that a flush is to write down, with what they have used.
pub(super) type Due = Vec<(Arc<OpenCall>, Tokens)>;

impl Default for Journal {
    fn default() -> Self {
        Self {
            server: id::new("srv").into(),
            lists: PerWorker::default(),
            last_number: AtomicU64::new(0),
            written_at: Mutex::default(),
        }
    }
}

impl Journal {
    /// This server's name there.
    pub(super) const fn server(&self) -> &Arc<str> {
        &self.server
    }

    /// Registers a call that begins.
    #[expect(clippy::cast_possible_truncation, reason = "neither cores nor calls under way are billions")]
    pub(super) fn begin(&self, call: OpenCall) -> Registration {
        let (call, list) = (Arc::new(call), self.lists.place());
        let index = self.lists.of(list).locked().insert(call.clone());
        Registration { call, list: list as u32, index: index as u32 }
    }

    /// Takes a call off its list. To be called before its row is queued.
    pub(super) fn end(&self, Registration { list, index, .. }: &Registration) {
        // Dropped after the lock is released.
        let _call = self.lists.of(*list as usize).locked().try_remove(*index as usize);
    }

    /// What is to be written down now. To be called by one flush at a time, after it has taken the queued rows.
    pub(super) fn due(&self, now: Instant) -> Due {
        let mut long = Vec::new();
        for list in self.lists.all() {
            // Nothing else is done under the lock, for which requests wait.
            let calls = list.locked();
            let of_list = calls.iter().map(|(_, call)| call);
            long.extend(of_list.filter(|call| call.is_long(now)).inspect(|call| self.number(call)).cloned());
        }
        let is_silent = self
            .written_at
            .locked()
            .is_none_or(|written| now.saturating_duration_since(written) >= SIGN_OF_LIFE);
        let mut due: Due = long.iter().filter_map(|call| call.due(now)).collect();
        if due.is_empty() && is_silent {
            due.extend(long.first().map(|call| (call.clone(), call.used())));
        }
        due
    }

    /// The rows that calls would be booked as if they ended now.
    pub(super) fn rows(&self, due: &[(Arc<OpenCall>, Tokens)]) -> Vec<AttemptRow> {
        due.iter().map(|(call, used)| call.under_way(*used, &self.server)).collect()
    }

    /// What was due is written down.
    pub(super) fn written(&self, due: Due, now: Instant) {
        if due.is_empty() {
            return;
        }
        *self.written_at.locked() = Some(now);
        for (call, used) in due {
            call.written.set(used);
            let at = u64::try_from(call.age(now).as_millis()).unwrap_or(u64::MAX);
            call.written_at.store(at.max(1), Ordering::Relaxed);
        }
    }

    /// Gives a call and its request a number, under the lock of the call's list: whoever takes it from there sees both,
    /// so that the row of a call that ends while it is written down ends its entry too.
    fn number(&self, call: &OpenCall) {
        if call.number.load(Ordering::Relaxed) == 0 {
            let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
            call.number.store(number, Ordering::Relaxed);
            call.request.number(number);
        }
    }
}

impl OpenCall {
    /// A call that has used nothing yet.
    pub(super) fn new(
        request: Arc<Request>,
        model: Arc<str>,
        price: Option<Price>,
        begun: Instant,
        span: Span,
    ) -> Self {
        Self {
            request,
            model,
            price,
            begun,
            used: SharedTokens::default(),
            number: AtomicU64::new(0),
            written: SharedTokens::default(),
            written_at: AtomicU64::new(0),
            span: Mutex::new(span),
        }
    }

    /// Sets what it has used so far.
    pub(super) fn set_used(&self, tokens: Tokens) {
        self.used.set(tokens);
    }

    /// What it has used so far.
    pub(super) fn used(&self) -> Tokens {
        self.used.get()
    }

    /// The row of it that says how it ended.
    pub(super) fn row(&self, end: &End, server: &Arc<str>) -> AttemptRow {
        let number = Some(self.number.load(Ordering::Relaxed)).filter(|number| *number > 0);
        self.request.row(&self.model, end, server, number)
    }

    /// What it would be booked as if its server died now.
    fn under_way(&self, tokens: Tokens, server: &Arc<str>) -> AttemptRow {
        let used = Used { usage: Usage::estimated(tokens), cost: self.price.map(|price| price.of(tokens)) };
        let position = self.request.next_position(&self.model);
        self.row(&End { outcome: INTERRUPTED, used, took: self.begun.elapsed(), position }, server)
    }

    fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.begun)
    }

    fn is_long(&self, now: Instant) -> bool {
        self.age(now) >= MIN_AGE
    }

    /// What is to be written of it, if anything.
    fn due(self: &Arc<Self>, now: Instant) -> Option<(Arc<Self>, Tokens)> {
        let used = self.used();
        let is_due = match self.written_at.load(Ordering::Relaxed) {
            0 => true,
            at => self.written.get() != used && self.age(now) >= Duration::from_millis(at) + MIN_AGE,
        };
        is_due.then(|| (self.clone(), used))
    }
}

impl SharedTokens {
    fn set(&self, tokens: Tokens) {
        self.prompt.store(tokens.prompt, Ordering::Relaxed);
        self.completion.store(tokens.completion, Ordering::Relaxed);
        self.cached.store(tokens.cached, Ordering::Relaxed);
        self.cache_written.store(tokens.cache_written, Ordering::Relaxed);
    }

    fn get(&self) -> Tokens {
        Tokens {
            prompt: self.prompt.load(Ordering::Relaxed),
            completion: self.completion.load(Ordering::Relaxed),
            cached: self.cached.load(Ordering::Relaxed),
            cache_written: self.cache_written.load(Ordering::Relaxed),
        }
    }
}

impl Registration {
    /// The call.
    pub(super) fn call(&self) -> &Arc<OpenCall> {
        &self.call
    }
}

#[cfg(test)]
mod tests;
