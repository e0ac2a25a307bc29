//! The building blocks of metrics: relaxed atomics, so that a request pays for a few additions and never waits. The
//! library's own histogram locks, and its families hash their labels at every observation; these do neither.
//!
//! Each worker counts for itself ([`Merge`]): a cache line that two processors add to moves between them each time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts that several workers keep, each for itself.
pub(super) trait Merge: Default {
    /// Adds the counts of another one.
    fn merge(&self, other: &Self);

    /// The sum of all.
    fn merged<'a>(all: impl Iterator<Item = &'a Self>) -> Self
    where
        Self: 'a,
    {
        let sum = Self::default();
        all.for_each(|one| sum.merge(one));
        sum
    }
}

/// A counter.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Merge for Count {
    fn merge(&self, other: &Self) {
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

/// A count for each of a fixed list of names; the last one stands for all unknown names.
#[derive(Debug)]
pub(super) struct CountsByName<const N: usize> {
    names: &'static [&'static str; N],
    counts: [Count; N],
}

impl<const N: usize> CountsByName<N> {
    pub(super) fn new(names: &'static [&'static str; N]) -> Self {
        Self { names, counts: std::array::from_fn(|_| Count::default()) }
    }

    /// Adds the counts of another one with the same names.
    pub(super) fn merge(&self, other: &Self) {
        self.counts.iter().zip(&other.counts).for_each(|(count, more)| count.merge(more));
    }

    pub(super) fn add(&self, name: &str) {
        let place = self.names.iter().position(|known| *known == name).unwrap_or(self.names.len() - 1);
        if let Some(count) = self.counts.get(place) {
            count.add(1);
        }
    }

    /// All names with their counts; the last one only if it is not zero.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let last = self.names.last();
        self.each().filter(move |(name, count)| *count > 0 || Some(name) != last)
    }

    /// The names with a count above zero.
    pub(super) fn seen(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.each().filter(|(_, count)| *count > 0)
    }

    fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.names.iter().copied().zip(self.counts.iter().map(Count::get))
    }
}

/// The current number of something.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

/// One unit of a gauge, subtracted on drop.
#[derive(Debug)]
#[must_use = "it is gone when dropped"]
pub struct GaugeGuard(Arc<Gauge>);

impl Gauge {
    /// Adds one for as long as the guard lives.
    pub fn add_one(self: &Arc<Self>) -> GaugeGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        GaugeGuard(self.clone())
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The upper bounds of the histogram buckets in milliseconds: from the server's own share of a request to the longest
/// completions.
const BOUNDS_MS: [u32; 17] =
    [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000];

/// The distribution of durations.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    /// The last one is for durations beyond all bounds.
    buckets: [Count; BOUNDS_MS.len() + 1],
    sum_micros: Count,
}

/// A snapshot of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    /// The sum of all durations in seconds.
    pub(super) sum: f64,
    /// The number of durations.
    pub(super) count: u64,
    /// The upper bound of each bucket in seconds, and the number of durations in this bucket alone.
    pub(super) buckets: Vec<(f64, u64)>,
}

impl Merge for Histogram {
    fn merge(&self, other: &Self) {
        self.buckets.iter().zip(&other.buckets).for_each(|(bucket, more)| bucket.merge(more));
        self.sum_micros.merge(&other.sum_micros);
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
        let named = CountsByName::new(&["a", "b", "other"]);
        assert_eq!(named.all().collect::<Vec<_>>(), [("a", 0), ("b", 0)]);
        for name in ["b", "c", "", "other"] {
            named.add(name);
        }
        assert_eq!(named.seen().collect::<Vec<_>>(), [("b", 1), ("other", 3)]);
    }

    #[test]
    fn a_dropped_guard_is_subtracted() {
        let gauge = Arc::new(Gauge::default());
        let (first, second) = (gauge.add_one(), gauge.add_one());
        assert_eq!(gauge.get(), 2);
        drop(first);
        assert_eq!(gauge.get(), 1);
        drop(second);
        assert_eq!(gauge.get(), 0);
    }
}
