//! What counts: relaxed atomics, so that a request pays for some additions and waits for nobody. The library's own
//! histogram locks, and its families hash their labels at every observation; these do neither.
//!
//! Each worker counts for itself ([`Sum`]): what two processors add to is carried from one to the other each time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What several workers have counted, each for itself.
pub(super) trait Sum: Default {
    /// Adds what another one has counted.
    fn take_in(&self, other: &Self);

    /// All of it.
    fn of<'a>(all: impl Iterator<Item = &'a Self>) -> Self
    where
        Self: 'a,
    {
        let sum = Self::default();
        all.for_each(|one| sum.take_in(one));
        sum
    }
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Sum for Count {
    fn take_in(&self, other: &Self) {
        self.add(other.get());
    }
}

impl Count {
    pub(super) fn add(&self, more: u64) {
        if more > 0 {
            self.0.fetch_add(more, Ordering::Relaxed);
        }
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A count for each of some names, which are known beforehand; the last one stands for all that are not.
#[derive(Debug)]
pub(super) struct Named<const N: usize> {
    names: &'static [&'static str; N],
    counts: [Count; N],
}

impl<const N: usize> Named<N> {
    pub(super) fn new(names: &'static [&'static str; N]) -> Self {
        Self { names, counts: std::array::from_fn(|_| Count::default()) }
    }

    /// Adds what another one of the same names has counted.
    pub(super) fn take_in(&self, other: &Self) {
        self.counts.iter().zip(&other.counts).for_each(|(count, more)| count.take_in(more));
    }

    pub(super) fn add(&self, name: &str) {
        let place = self.names.iter().position(|known| *known == name).unwrap_or(self.names.len() - 1);
        if let Some(count) = self.counts.get(place) {
            count.add(1);
        }
    }

    /// All names with their counts; the last one only if it was counted.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let last = self.names.last();
        self.each().filter(move |(name, count)| *count > 0 || Some(name) != last)
    }

    /// Those that were counted.
    pub(super) fn seen(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.each().filter(|(_, count)| *count > 0)
    }

    fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.names.iter().copied().zip(self.counts.iter().map(Count::get))
    }
}

/// How many of something there are now.
#[derive(Debug, Default)]
pub struct Level(AtomicU64);

/// One of them; gone when dropped.
#[derive(Debug)]
#[must_use = "it is gone when dropped"]
pub struct Held(Arc<Level>);

impl Level {
    /// One more, while the answer lives.
    pub fn hold(self: &Arc<Self>) -> Held {
        self.0.fetch_add(1, Ordering::Relaxed);
        Held(self.clone())
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The upper bounds of a histogram's buckets, in milliseconds: from what the server itself takes to the longest
/// completions.
const BOUNDS_MS: [u32; 17] =
    [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000];

/// Durations by size.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    /// The last one is for what is beyond all bounds.
    buckets: [Count; BOUNDS_MS.len() + 1],
    sum_micros: Count,
}

/// A histogram as it stood at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    /// Of all durations, in seconds.
    pub(super) sum: f64,
    /// How many durations there were.
    pub(super) count: u64,
    /// The upper bound of each bucket in seconds, and how many fell into it alone.
    pub(super) buckets: Vec<(f64, u64)>,
}

impl Sum for Histogram {
    fn take_in(&self, other: &Self) {
        self.buckets.iter().zip(&other.buckets).for_each(|(bucket, more)| bucket.take_in(more));
        self.sum_micros.take_in(&other.sum_micros);
    }
}

impl Histogram {
    pub(super) fn observe(&self, span: Duration) {
        let place = BOUNDS_MS.partition_point(|bound| Duration::from_millis(u64::from(*bound)) < span);
        if let Some(bucket) = self.buckets.get(place) {
            bucket.add(1);
        }
        self.sum_micros.add(u64::try_from(span.as_micros()).unwrap_or(u64::MAX));
    }

    pub(super) fn read(&self) -> Reading {
        let bounds = BOUNDS_MS.iter().map(|bound| f64::from(*bound) / 1e3).chain([f64::INFINITY]);
        let buckets: Vec<_> = bounds.zip(self.buckets.iter().map(Count::get)).collect();
        let sum = Duration::from_micros(self.sum_micros.get()).as_secs_f64();
        Reading { sum, count: buckets.iter().map(|(_, count)| count).sum(), buckets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_holds_it() {
        let histogram = Histogram::default();
        for ms in [0, 1, 2, 600_000, 600_001] {
            histogram.observe(Duration::from_millis(ms));
        }
        let Reading { sum, count, buckets } = histogram.read();
        assert_eq!((buckets[0], buckets[1]), ((0.001, 2), (0.005, 1)));
        assert_eq!((buckets[16], buckets[17]), ((600.0, 1), (f64::INFINITY, 1)));
        assert_eq!(count, 5);
        assert!((sum - 1200.004).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn unknown_names_are_counted_together() {
        let named = Named::new(&["a", "b", "other"]);
        assert_eq!(named.all().collect::<Vec<_>>(), [("a", 0), ("b", 0)]);
        for name in ["b", "c", "", "other"] {
            named.add(name);
        }
        assert_eq!(named.seen().collect::<Vec<_>>(), [("b", 1), ("other", 3)]);
    }

    #[test]
    fn what_is_dropped_is_gone() {
        let level = Arc::new(Level::default());
        let (first, second) = (level.hold(), level.hold());
        assert_eq!(level.get(), 2);
        drop(first);
        assert_eq!(level.get(), 1);
        drop(second);
        assert_eq!(level.get(), 0);
    }
}
