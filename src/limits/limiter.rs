//! The interface to rate limits, wherever they are counted.
//!
//! A remote database may be slow. Its count of a key's day is waited for only where the shared store has none or cannot
//! be reached. It is read in any case: a shared store that was restored to an earlier state has too low a count, and
//! gets the right one with the key's next request.

use std::sync::Arc;

use futures_util::FutureExt;

use super::memory::{EntryGuard, Memory, without_day};
use super::shared::{Answer, LimitsStore, Query, SharedStore};
use super::{Decision, LimitState, Quota, Subject};
use crate::clock::Time;
use crate::storage::{Error, Store};

/// The limits of this server, or of all servers that share a limits store.
pub struct Limiter {
    memory: Arc<Memory>,
    shared: Option<Arc<SharedStore>>,
}

/// The state of the shared limits store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreReading {
    /// Whether limits are currently shared.
    pub is_up: bool,
    /// Requests since the start that this server has decided alone because the store was unreachable.
    pub decided_alone: u64,
}

impl Limiter {
    /// Limits that are counted in `counted` and continue the day counters in `store`.
    pub fn new(store: Store, counted: LimitsStore) -> Self {
        let shared = match counted {
            LimitsStore::Memory => None,
            LimitsStore::Shared(address) => Some(SharedStore::new(address)),
        };
        Self { memory: Arc::new(Memory::new(store)), shared }
    }

    /// Connects to the shared limits store, if there is one, so that the log reports early if that fails.
    pub async fn connect(&self) {
        if let Some(shared) = &self.shared {
            shared.connect_early().await;
        }
    }

    /// Counts a request, or refuses it. The quota may differ from call to call. For a key this records its last use,
    /// even if the request is refused.
    pub async fn take(&self, subject: &Subject, quota: Quota, now: Time) -> Decision {
        match &self.shared {
            None => self.take_alone(subject, quota, now).await,
            // Boxed, so that a server without a shared store does not pay for the size of this future.
            Some(shared) => self.take_shared(shared, subject, quota, now).boxed().await,
        }
    }

    /// Decides by this server's own counts.
    async fn take_alone(&self, subject: &Subject, quota: Quota, now: Time) -> Decision {
        let _guard = self.load_day(subject, now).await;
        self.memory.take(subject, quota, now)
    }

    /// Loads a key's count of the day if the database is remote: that must not be waited for under a lock. The guard is
    /// to be held until the request is counted.
    async fn load_day<'a>(&'a self, subject: &'a Subject, now: Time) -> Option<EntryGuard<'a>> {
        match subject.counted_id() {
            Some(id) if self.memory.is_remote() => Some(self.memory.load_day(id, now).boxed().await),
            _ => None,
        }
    }

    async fn take_shared(
        &self,
        shared: &Arc<SharedStore>,
        subject: &Subject,
        quota: Quota,
        now: Time,
    ) -> Decision {
        let quota = quota_of(subject, quota);
        if let Some(id) = subject.counted_id()
            && self.memory.is_remote()
        {
            self.memory.load_day_aside(id, now);
        }
        let (state, known) = self.memory.state_and_day(subject, quota, now);
        // What this server alone has admitted already reaches the limit: there is no need to query the store, and one
        // that has lost its counts must not be believed. Nor is the state read again: a moment later there may be room,
        // which only the store may grant.
        if let Some(window) = state.used_up() {
            if let Subject::Key(id) = subject {
                self.memory.record_use(id, now);
            }
            return Decision::Refused(state, window);
        }
        let query = Query { subject, quota, is_counted: true, known, is_day_verified: false };
        let Some((decision, day)) = self.query_shared(shared, query, now).await else {
            return self.take_alone(subject, quota, now).await;
        };
        let is_admitted = matches!(decision, Decision::Admitted(_));
        self.memory.record(subject, quota, now, is_admitted, day);
        decision
    }

    /// The store's decision, and the day that it counts with its count; `None` while it is unreachable.
    async fn query_shared(
        &self,
        shared: &Arc<SharedStore>,
        query: Query<'_>,
        now: Time,
    ) -> Option<(Decision, (i64, u32))> {
        let mut query = query;
        let mut answer = shared.query(&query).await?;
        if let (Answer::DayUnknown, Some(id)) = (&answer, query.subject.counted_id()) {
            query.known = self.memory.refreshed_day(id, query.known, now).await;
            query.is_day_verified = true;
            // With a deadline of its own: how long the database took is no fault of this store.
            answer = shared.query(&query).await?;
        }
        match answer {
            Answer::Decided { decision, day } => Some((decision, day)),
            Answer::DayUnknown => None,
        }
    }

    /// The state without counting.
    pub async fn peek(&self, subject: &Subject, quota: Quota, now: Time) -> LimitState {
        if let Some(shared) = &self.shared {
            let quota = quota_of(subject, quota);
            let (_, known) = self.memory.state_and_day(subject, quota, now);
            let query = Query { subject, quota, is_counted: false, known, is_day_verified: false };
            if let Some((decision, _)) = self.query_shared(shared, query, now).boxed().await {
                return *decision.state();
            }
        }
        let _guard = self.load_day(subject, now).await;
        self.peek_local(subject, quota, now)
    }

    /// The state by this server's own counts, without counting.
    pub fn peek_local(&self, subject: &Subject, quota: Quota, now: Time) -> LimitState {
        self.memory.peek(subject, quota, now)
    }

    /// Records the use of a key by a request that does not count.
    pub fn record_use(&self, key_id: &str, now: Time) {
        self.memory.record_use(key_id, now);
    }

    /// Writes changed day counters and last uses to the database and drops idle entries. Blocking; called every half
    /// second. What could not be written is written next time.
    pub fn flush(&self, now: Time) -> Result<(), Error> {
        self.memory.flush(now)
    }

    /// The state of the shared limits store; `None` if limits are counted here.
    pub fn store(&self) -> Option<StoreReading> {
        let shared = self.shared.as_ref()?;
        Some(StoreReading { is_up: shared.is_up(), decided_alone: shared.decided_alone() })
    }
}

/// The quota that applies to a kind of subject.
fn quota_of(subject: &Subject, quota: Quota) -> Quota {
    if subject.counted_id().is_some() { quota } else { without_day(quota) }
}
