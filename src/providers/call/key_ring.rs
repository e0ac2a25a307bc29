//! The keys of one provider, of which those that were refused or limited are set aside for a while.
//!
//! The first key that is not set aside is used, rather than each in turn: providers keep their prompt caches by
//! account, and most of a conversation's calls then go with the same key. What a provider says of a key it may say for
//! one model alone (so does a breaker, see `crate::inference`), so that keys are set aside for single models. When all
//! are, the one that is free again soonest is used, as if it were the only one.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::call_policy::{CallPolicy, MAX_BREAKER_PAUSE};
use crate::lock::Lock;
use crate::providers::Failure;

/// The most keys that a provider may have.
pub const MAX_KEYS: usize = 32;
/// For how many keys and models a refusal is remembered: model names come from callers.
const MAX_ASIDE: usize = 1000;
/// How long a key is set aside whose limit ends at an unknown time.
const SHORT_PAUSE: Duration = Duration::from_secs(1);

/// Which keys are set aside.
#[derive(Debug, Default)]
pub(in crate::providers) struct KeyRing {
    /// How many keys there are.
    count: usize,
    /// Whether any was set aside since all worked. While none was, nobody needs the lock.
    is_any_aside: AtomicBool,
    aside: Mutex<HashMap<(usize, String), Aside>>,
}

/// A key that is not used for a model for now.
#[derive(Clone, Copy, Debug)]
struct Aside {
    until: Instant,
    pause: Duration,
}

/// The key that a call uses, and the one that it used first: the keys between them, in a circle, have been tried. Small,
/// as every waiting call holds one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::providers) struct CallKey {
    index: u8,
    first: u8,
}

impl CallKey {
    /// The first key of a call.
    fn first(index: usize) -> Self {
        let index = u8::try_from(index).unwrap_or_default();
        Self { index, first: index }
    }

    /// Its place in the configuration.
    pub(in crate::providers) fn index(self) -> usize {
        usize::from(self.index)
    }

    /// The keys of `count` that were not tried yet, in the order in which they are.
    fn others(self, count: usize) -> impl Iterator<Item = usize> {
        let first = usize::from(self.first);
        let tried = (self.index() + count - first) % count;
        (tried + 1..count).map(move |step| (first + step) % count)
    }
}

impl KeyRing {
    /// A ring of so many keys, none or at most [`MAX_KEYS`].
    pub(in crate::providers) fn new(count: usize) -> Self {
        Self { count, ..Self::default() }
    }

    /// The key for a call of `model`.
    pub(in crate::providers) fn first(&self, model: &str, now: Instant) -> CallKey {
        if self.count < 2 || !self.is_any_aside.load(Ordering::Relaxed) {
            return CallKey::first(0);
        }
        let aside = self.aside.locked();
        let free_at =
            |index: usize| aside.get(&(index, model.to_owned())).map_or(now, |aside| aside.until.max(now));
        let index = (0..self.count).min_by_key(|index| free_at(*index)).unwrap_or_default();
        CallKey::first(index)
    }

    /// Notes that the call of `model` has failed with `key`, and returns another key to make it with, if it may succeed
    /// with that.
    pub(in crate::providers) fn next(
        &self,
        key: CallKey,
        model: &str,
        failure: &Failure,
        policy: &CallPolicy,
        now: Instant,
    ) -> Option<CallKey> {
        if self.count < 2 {
            return None;
        }
        let mut aside = self.aside.locked();
        let place = (key.index(), model.to_owned());
        let before = aside.get(&place).map(|aside| aside.pause);
        let pause = pause(failure, before, policy)?;
        if aside.len() >= MAX_ASIDE {
            aside.retain(|_, aside| aside.until > now);
        }
        if aside.len() < MAX_ASIDE || before.is_some() {
            aside.insert(place, Aside { until: now + pause, pause });
            self.is_any_aside.store(true, Ordering::Relaxed);
        }
        let is_free =
            |index: &usize| aside.get(&(*index, model.to_owned())).is_none_or(|aside| aside.until <= now);
        let next = key.others(self.count).find(is_free)?;
        Some(CallKey { index: u8::try_from(next).ok()?, ..key })
    }

    /// Notes that a call of `model` was answered with `key`.
    pub(in crate::providers) fn worked(&self, key: CallKey, model: &str) {
        if !self.is_any_aside.load(Ordering::Relaxed) {
            return;
        }
        let mut aside = self.aside.locked();
        aside.remove(&(key.index(), model.to_owned()));
        if aside.is_empty() {
            self.is_any_aside.store(false, Ordering::Relaxed);
        }
    }
}

/// How long a key is set aside after this failure; `None` if that says nothing about the key. Refusals in a row double
/// the pause, as those of a model do that is paused.
fn pause(failure: &Failure, before: Option<Duration>, policy: &CallPolicy) -> Option<Duration> {
    match failure {
        Failure::RateLimited { retry_after } => {
            Some(retry_after.unwrap_or(SHORT_PAUSE).min(MAX_BREAKER_PAUSE))
        }
        Failure::Unauthorized | Failure::QuotaExhausted => {
            let longest = policy.breaker_max_pause.max(policy.breaker_pause);
            Some(before.map_or(policy.breaker_pause, |before| before.saturating_mul(2)).min(longest))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(ring: &KeyRing, key: CallKey, failure: &Failure, now: Instant) -> Option<usize> {
        ring.next(key, "m", failure, &CallPolicy::default(), now).map(CallKey::index)
    }

    #[test]
    fn a_refused_key_is_set_aside_for_the_model_and_comes_back() {
        let (ring, now) = (KeyRing::new(3), Instant::now());
        let key = ring.first("m", now);
        assert_eq!((key.index(), after(&ring, key, &Failure::Unauthorized, now)), (0, Some(1)));
        assert_eq!((ring.first("m", now).index(), ring.first("n", now).index()), (1, 0));
        // The first pause of a breaker is 10 s; the second one of the same key is longer.
        let later = now + Duration::from_secs(10);
        let again = ring.first("m", later);
        assert_eq!((again.index(), after(&ring, again, &Failure::Unauthorized, later)), (0, Some(1)));
        assert_eq!(ring.first("m", later + Duration::from_secs(10)).index(), 1);
        let last = ring.first("m", later + Duration::from_secs(20));
        assert_eq!(last.index(), 0);
        ring.worked(last, "m");
        assert_eq!(ring.first("m", now).index(), 0);
    }

    #[test]
    fn each_key_is_tried_once_and_the_one_that_is_free_soonest_comes_first() {
        let (ring, now) = (KeyRing::new(2), Instant::now());
        let limited = |seconds| Failure::RateLimited { retry_after: Some(Duration::from_secs(seconds)) };
        let first = ring.first("m", now);
        let second = ring.next(first, "m", &limited(30), &CallPolicy::default(), now).unwrap();
        assert_eq!(second.index(), 1);
        assert_eq!(after(&ring, second, &limited(5), now), None);
        assert_eq!(ring.first("m", now).index(), 1);
        assert_eq!(ring.first("m", now + Duration::from_secs(6)).index(), 1);
    }

    #[test]
    fn other_failures_and_a_single_key_change_nothing() {
        let now = Instant::now();
        let ring = KeyRing::new(2);
        for failure in [Failure::Timeout, Failure::Refused, Failure::Overloaded { retry_after: None }] {
            assert_eq!(after(&ring, ring.first("m", now), &failure, now), None);
        }
        assert_eq!(ring.first("m", now).index(), 0);
        let single = KeyRing::new(1);
        assert_eq!(after(&single, single.first("m", now), &Failure::Unauthorized, now), None);
        assert_eq!(single.first("m", now).index(), 0);
    }
}
