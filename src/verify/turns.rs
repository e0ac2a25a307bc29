//! Whose call is next: as many may be open as the verifications may have in all, and of each provider as many as it takes
//! at once.
//!
//! A call waits for its provider first, in a queue of the verifications' own, and then for one of all. So calls to a
//! provider that takes few at once cannot hold what others could use, nor its places while they wait for the rest, which
//! callers of chat completions want as well. However many a provider takes, half of an even share of all calls stays for
//! each of the others: one that hangs holds up nobody else.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model_id;
use crate::semaphore::{Permit, Semaphore};

/// The queues of a verifier.
pub(super) struct Turns {
    all: Queue,
    /// By the configured name of the provider.
    by_provider: BTreeMap<String, Queue>,
}

/// Calls that may be open at once, and those that wait.
struct Queue {
    semaphore: Arc<Semaphore>,
    limit: usize,
}

/// A call's turn; over when it is dropped.
pub(super) struct Turn {
    _of_all: Permit,
    _of_provider: Option<Permit>,
}

impl Turns {
    /// So many calls in all, and at each provider no more than it takes at once, given by its name.
    pub(super) fn new(limit: usize, providers: impl IntoIterator<Item = (String, usize)>) -> Self {
        let providers: BTreeMap<String, usize> = providers.into_iter().collect();
        let half_a_share = limit.div_ceil(2 * providers.len().max(1));
        let others = providers.len().saturating_sub(1);
        let most = limit.saturating_sub(others.saturating_mul(half_a_share));
        let by_provider =
            providers.into_iter().map(|(provider, takes)| (provider, Queue::new(takes.min(most))));
        Self { by_provider: by_provider.collect(), all: Queue::new(limit) }
    }

    /// Waits for the turn of a call to `model`.
    pub(super) async fn next(&self, model: &str) -> Turn {
        let provider = model_id::split(model).and_then(|(provider, _)| self.by_provider.get(provider));
        let of_provider = match provider {
            Some(queue) => Some(queue.semaphore.acquire().await),
            None => None,
        };
        Turn { _of_all: self.all.semaphore.acquire().await, _of_provider: of_provider }
    }

    /// These in the place of `before`, whose calls under way count; limits change with [`Turns::take_effect`].
    #[must_use]
    pub(super) fn in_place_of(self, before: &Self) -> Self {
        let by_provider = self.by_provider.into_iter().map(|(provider, queue)| {
            let queue = match before.by_provider.get(&provider) {
                Some(before) => queue.in_place_of(before),
                None => queue,
            };
            (provider, queue)
        });
        Self { by_provider: by_provider.collect(), all: self.all.in_place_of(&before.all) }
    }

    /// Holds calls to these limits, where they took the place of others.
    pub(super) fn take_effect(&self) {
        for queue in self.by_provider.values().chain([&self.all]) {
            queue.semaphore.resize(queue.limit);
        }
    }
}

impl Queue {
    fn new(limit: usize) -> Self {
        let limit = limit.max(1);
        Self { semaphore: Arc::new(Semaphore::new(limit)), limit }
    }

    fn in_place_of(self, before: &Self) -> Self {
        Self { semaphore: before.semaphore.clone(), ..self }
    }
}
