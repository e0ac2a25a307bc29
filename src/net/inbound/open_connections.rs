//! The open connections. When there are as many as allowed, those that have been idle longest make room for new ones.
//!
//! Without it, anybody could shut everybody out, without a key: by holding as many idle connections as the server
//! takes. Only connections without a request under way are closed, which callers have to expect of any connection they
//! keep.

use std::sync::Mutex;
use std::time::Duration;

use crate::lock::Lock;

use slab::Slab;
use tokio::time::Instant;

use super::activity::Activity;

/// The share of the connections that make room at once: looking for them takes a while if there are thousands.
const SHARE: usize = 100;

/// All open connections.
#[derive(Default)]
pub(crate) struct OpenConnections(Mutex<Slab<Activity>>);

/// An open connection, until it is dropped.
pub(crate) struct OpenConnection<'a> {
    all: &'a OpenConnections,
    index: usize,
}

impl OpenConnections {
    /// Adds a connection, which must heed [`Activity::evicted`].
    pub(crate) fn add(&self, activity: Activity) -> OpenConnection<'_> {
        OpenConnection { all: self, index: self.0.locked().insert(activity) }
    }

    /// Asks the connections that have been idle longest to close: a hundredth of all, of those that have been idle for
    /// `limit`.
    pub(crate) fn evict_idle(&self, limit: Duration) {
        let now = Instant::now();
        let list = self.0.locked();
        let idle = list.iter().filter_map(|(index, activity)| Some((activity.idle_since()?, index)));
        let mut idle: Vec<_> = idle.filter(|(since, _)| now.duration_since(*since) >= limit).collect();
        let count = (list.len() / SHARE).max(1).min(idle.len());
        if let Some(last) = count.checked_sub(1) {
            idle.select_nth_unstable(last);
        }
        let longest = idle.iter().take(count).filter_map(|(_, index)| list.get(*index));
        longest.for_each(Activity::evict);
    }
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.all.0.locked().try_remove(self.index);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;
    use tokio::time::advance;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(2);

    fn is_evicted(activity: &Activity) -> bool {
        pin!(activity.evicted()).now_or_never().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_connections_make_room_and_busy_ones_never_do() {
        let all = OpenConnections::default();
        let (busy, older, newer) = (Activity::new(), Activity::new(), Activity::new());
        let guard = busy.busy();
        let _open = [busy.clone(), older.clone(), newer.clone()].map(|activity| all.add(activity));
        advance(LIMIT / 2).await;
        drop(newer.busy());
        all.evict_idle(LIMIT);
        assert!(!is_evicted(&older), "it has not been idle for long");
        advance(LIMIT).await;
        all.evict_idle(LIMIT);
        assert!(is_evicted(&older) && !is_evicted(&newer) && !is_evicted(&busy));
        drop(guard);
        all.evict_idle(LIMIT);
        assert!(!is_evicted(&busy), "it has only just become idle");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_became_busy_meanwhile_stays() {
        let all = OpenConnections::default();
        let activity = Activity::new();
        let _open = all.add(activity.clone());
        advance(LIMIT).await;
        all.evict_idle(LIMIT);
        let guard = activity.busy();
        assert!(!is_evicted(&activity));
        drop(guard);
        assert!(!is_evicted(&activity), "it was asked while it was busy");
    }

    #[tokio::test(start_paused = true)]
    async fn a_hundredth_of_many_connections_is_evicted_at_once() {
        let all = OpenConnections::default();
        let activities: Vec<_> = (0..1000).map(|_| Activity::new()).collect();
        let open: Vec<_> = activities.iter().map(|activity| all.add(activity.clone())).collect();
        advance(LIMIT).await;
        all.evict_idle(LIMIT);
        assert_eq!(activities.iter().filter(|activity| is_evicted(activity)).count(), 10);
        drop(open);
        assert!(all.0.locked().is_empty());
    }
}
