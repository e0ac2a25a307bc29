//! How many calls of callers are under way at each target of the pools that choose the least busy one.
//!
//! Only those targets are counted, so that all other calls cost nothing. A call counts from before it waits for a place
//! among its provider's calls until its answer has ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Balance, Pool};

/// The counts, by the full identifiers of models.
#[derive(Clone, Default)]
pub(in crate::inference) struct Loads(BTreeMap<String, Arc<AtomicUsize>>);

/// A call that is under way, until it is dropped.
pub(in crate::inference) struct Load(Arc<AtomicUsize>);

impl Loads {
    /// Counts for these pools; those that are kept go on counting.
    pub(in crate::inference) fn replacing<'a>(&self, pools: impl Iterator<Item = &'a Pool>) -> Self {
        let counted = pools.filter(|pool| pool.balance == Balance::LeastBusy).flat_map(|pool| &pool.targets);
        let count = |id: &String| self.0.get(id).cloned().unwrap_or_default();
        Self(counted.map(|id| (id.clone(), count(id))).collect())
    }

    /// Counts a call of this model from now on, if its calls are counted.
    pub(in crate::inference) fn begin(&self, id: &str) -> Option<Load> {
        let count = self.0.get(id)?.clone();
        count.fetch_add(1, Ordering::Relaxed);
        Some(Load(count))
    }

    /// How many calls of this model are under way.
    pub(super) fn of(&self, id: &str) -> usize {
        self.0.get(id).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_count_until_they_are_dropped_also_beyond_a_change_of_settings() {
        let pool = |id: &str, balance| Pool { targets: vec![id.to_owned()], balance, ..Pool::default() };
        let pools = [pool("a/m", Balance::LeastBusy), pool("b/m", Balance::Weighted)];
        let loads = Loads::default().replacing(pools.iter());
        assert!(loads.begin("b/m").is_none());
        let calls = [loads.begin("a/m").unwrap(), loads.begin("a/m").unwrap()];
        let next = loads.replacing(pools.iter());
        assert_eq!((next.of("a/m"), next.of("b/m")), (2, 0));
        drop(calls);
        assert_eq!(next.of("a/m"), 0);
    }
}
