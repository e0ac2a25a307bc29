//! What the server asks about limits, wherever they are counted.

use std::sync::Arc;

use futures_util::FutureExt;

use super::memory::{Held, Memory, without_day};
use super::shared::{Answer, LimitsStore, Question, Shared};
use super::{Decision, Quota, State, Subject};
use crate::clock::Time;
use crate::storage::{Error, Store};

/// The limits of this server, or of all that share a store for them.
pub struct Limiter {
    memory: Memory,
    shared: Option<Arc<Shared>>,
}

/// How the store of shared limits stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreReading {
    /// Whether limits are shared at this moment.
    pub is_up: bool,
    /// Requests that this server has decided alone since its start, as the store was gone.
    pub decided_alone: u64,
}

impl Limiter {
    /// Limits that are counted at `counted`, and take up the day counters that `store` has kept.
    pub fn new(store: Store, counted: LimitsStore) -> Self {
        let shared = match counted {
            LimitsStore::Memory => None,
            LimitsStore::Shared(address) => Some(Shared::new(address)),
        };
        Self { memory: Memory::new(store), shared }
    }

    /// Connects to the store of shared limits, if there is one, so that the log tells early if that cannot be done.
    pub async fn greet(&self) {
        if let Some(shared) = &self.shared {
            shared.greet().await;
        }
    }

    /// Counts a request, or refuses it. The quota may differ from call to call. For a key this marks its last use,
    /// also when the request is refused.
    pub async fn take(&self, subject: &Subject, quota: Quota, now: Time) -> Decision {
        let _held = self.load_day(subject, now).await;
        match &self.shared {
            None => self.memory.take(subject, quota, now),
            // In a box: a server without a store makes no room for it.
            Some(shared) => self.take_shared(shared, subject, quota, now).boxed().await,
        }
    }

    /// Loads the count of a key's day where the store is over the network: nobody is to wait for that under a lock. To
    /// be held until the request is counted.
    async fn load_day<'a>(&'a self, subject: &'a Subject, now: Time) -> Option<Held<'a>> {
        match subject {
            Subject::Key(id) if self.memory.is_remote() => Some(self.memory.load_day(id, now).boxed().await),
            _ => None,
        }
    }

    async fn take_shared(
        &self,
        shared: &Arc<Shared>,
        subject: &Subject,
        quota: Quota,
        now: Time,
    ) -> Decision {
        let quota = quota_of(subject, quota);
        let (state, known) = self.memory.standing(subject, quota, now);
        // What was admitted here alone is too much already: nobody need be asked, and a store that has forgotten it must
        // not be believed. Nor is it looked at again: a moment later it may have room, which only the store may give.
        if let Some(window) = state.used_up() {
            if let Subject::Key(id) = subject {
                self.memory.note_use(id, now);
            }
            return Decision::Refused(state, window);
        }
        let question = Question { subject, quota, takes: true, known, is_sure: false };
        let Some((decision, day)) = self.ask(shared, question).await else {
            return self.memory.take(subject, quota, now);
        };
        let is_admitted = matches!(decision, Decision::Admitted(_));
        self.memory.follow(subject, quota, now, is_admitted, day);
        decision
    }

    /// What the store decides, and the day that it counts with its count; `None` while it is gone.
    async fn ask(&self, shared: &Arc<Shared>, question: Question<'_>) -> Option<(Decision, (i64, u32))> {
        let mut question = question;
        let mut answer = shared.ask(&question).await?;
        if let (Answer::Unsure, Subject::Key(id)) = (&answer, question.subject) {
            question.known = self.memory.day_looked_up(id, question.known).await;
            question.is_sure = true;
            // With time of its own: how long the database took is no fault of this store.
            answer = shared.ask(&question).await?;
        }
        match answer {
            Answer::Decided { decision, day } => Some((decision, day)),
            Answer::Unsure => None,
        }
    }

    /// The state without counting.
    pub async fn peek(&self, subject: &Subject, quota: Quota, now: Time) -> State {
        let _held = self.load_day(subject, now).await;
        if let Some(shared) = &self.shared {
            let quota = quota_of(subject, quota);
            let (_, known) = self.memory.standing(subject, quota, now);
            let question = Question { subject, quota, takes: false, known, is_sure: false };
            if let Some((decision, _)) = self.ask(shared, question).boxed().await {
                return *decision.state();
            }
        }
        self.peek_here(subject, quota, now)
    }

    /// The state by what this server has counted, without counting.
    pub fn peek_here(&self, subject: &Subject, quota: Quota, now: Time) -> State {
        self.memory.peek(subject, quota, now)
    }

    /// Marks that a key is used by a request that does not count.
    pub fn note_use(&self, key_id: &str, now: Time) {
        self.memory.note_use(key_id, now);
    }

    /// Writes changed day counters and last uses to the store and drops idle entries. Blocking; called every half
    /// second. What could not be written is written next time.
    pub fn flush(&self, now: Time) -> Result<(), Error> {
        self.memory.flush(now)
    }

    /// How the store of shared limits stands; `None` if limits are counted here.
    pub fn store(&self) -> Option<StoreReading> {
        let shared = self.shared.as_ref()?;
        Some(StoreReading { is_up: shared.is_up(), decided_alone: shared.decided_alone() })
    }
}

/// The quota that holds for a subject.
fn quota_of(subject: &Subject, quota: Quota) -> Quota {
    if matches!(subject, Subject::Key(_)) { quota } else { without_day(quota) }
}
