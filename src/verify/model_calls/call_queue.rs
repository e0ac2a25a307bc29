//! The queue for model calls of all verifications: limits how many are open in total, and how many per provider.
//!
//! A call waits for a permit of its provider first, in a queue of the verifications' own, and then for one of the
//! total. So calls to a provider with a low limit do not hold permits that others could use, and while they wait for
//! the total they hold no capacity of the provider itself, which callers of chat completions want as well. Whatever a
//! provider's limit, half of an even share of the total is left to each of the others, so that a provider that hangs
//! cannot block them; and some of each limit is left to other keys than the one that holds most of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model_id;
use crate::net::semaphore::{Permit, Semaphore};

/// The queue of a verifier.
pub(in crate::verify) struct CallQueue {
    total: Limiter,
    /// By the configured name of the provider.
    by_provider: BTreeMap<String, Limiter>,
}

/// A semaphore that can be shared with a previous queue, and the limit that it is to get.
struct Limiter {
    semaphore: Arc<Semaphore>,
    limit: usize,
}

/// Permission to make a call, returned to the queue when dropped.
pub(in crate::verify) struct CallPermit {
    _total: Permit,
    _provider: Option<Permit>,
}

impl CallQueue {
    /// A queue that allows `limit` calls in total, and for each provider no more than its own limit; `providers` are
    /// names with those limits.
    pub(in crate::verify) fn new(limit: usize, providers: impl IntoIterator<Item = (String, usize)>) -> Self {
        let providers: BTreeMap<String, usize> = providers.into_iter().collect();
        let half_a_share = limit.div_ceil(2 * providers.len().max(1));
        let others = providers.len().saturating_sub(1);
        let max_per_provider = limit.saturating_sub(others.saturating_mul(half_a_share));
        let by_provider = providers
            .into_iter()
            .map(|(provider, own_limit)| (provider, Limiter::new(own_limit.min(max_per_provider))));
        Self { by_provider: by_provider.collect(), total: Limiter::new(limit) }
    }

    /// Waits for a permit to call `model` for the holder of a key.
    pub(in crate::verify) async fn acquire(&self, key_id: &Arc<str>, model: &str) -> CallPermit {
        let limiter = model_id::split(model).and_then(|(provider, _)| self.by_provider.get(provider));
        let of_provider = match limiter {
            Some(limiter) => Some(limiter.semaphore.acquire_for(key_id).await),
            None => None,
        };
        CallPermit { _total: self.total.semaphore.acquire_for(key_id).await, _provider: of_provider }
    }

    /// This queue as the replacement of `previous`, whose open calls count. The limits change with
    /// [`CallQueue::activate`].
    #[must_use]
    pub(in crate::verify) fn replacing(self, previous: &Self) -> Self {
        let by_provider = self.by_provider.into_iter().map(|(provider, limiter)| {
            let limiter = match previous.by_provider.get(&provider) {
                Some(previous) => limiter.replacing(previous),
                None => limiter,
            };
            (provider, limiter)
        });
        Self { by_provider: by_provider.collect(), total: self.total.replacing(&previous.total) }
    }

    /// Applies the limits of this queue, if it replaced another one.
    pub(in crate::verify) fn activate(&self) {
        for limiter in self.by_provider.values().chain([&self.total]) {
            limiter.semaphore.resize(limiter.limit);
        }
    }
}

impl Limiter {
    fn new(limit: usize) -> Self {
        let limit = limit.max(1);
        Self { semaphore: Arc::new(Semaphore::new(limit)), limit }
    }

    fn replacing(self, previous: &Self) -> Self {
        Self { semaphore: previous.semaphore.clone(), ..self }
    }
}
