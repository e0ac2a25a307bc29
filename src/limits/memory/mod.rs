//! The limits of one server, in memory.
//!
//! Subjects are spread over shards, so that requests of different keys seldom contend for a lock. Day counters are
//! loaded from the database when a key is first seen (or seen again after its idle entry was dropped), once for all
//! requests that wait for it, and [`Memory::flush`] writes them back, so that a restart continues them.
//!
//! If limits are shared by several servers ([`super::shared`]), this records what is decided there, so that it can take
//! over at any time, and so that the database has the day's counts.

mod key_entry;

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures_util::FutureExt;

use self::key_entry::{Batch, DayCountFuture, DayRead, KeyEntry};
use super::addresses::{Addresses, client_of};
use super::window::Windows;
use super::{Decision, LimitState, Quota, Subject};
use crate::clock::Time;
use crate::lock::Lock;
use crate::storage::{Error, ReadPurpose, Store};

const SHARDS: usize = 64;
/// Counters of earlier days are kept until a day has lasted this long: if a wrong clock is set back within this time,
/// it finds them where they were.
const DAY_SETTLE_TIME: Duration = Duration::from_hours(1);

/// The limits of one server, in memory.
pub(super) struct Memory {
    store: Store,
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
    today: Mutex<Option<Today>>,
}

/// The current day as the last flush saw it.
struct Today {
    day: i64,
    since: Instant,
    is_swept: bool,
}

/// Each kind of subject has its own buckets and its own bound.
#[derive(Default)]
struct Shard {
    /// Bounded by the number of keys, as only valid ones are counted, and by what these may ask in a minute for however
    /// many end users.
    keys: HashMap<Arc<str>, KeyEntry>,
    open_pages: Addresses,
    failed_auth: Addresses,
    logins: Addresses,
    /// Bounded by the number of keys as well.
    sessions: HashMap<Arc<str>, Windows>,
}

/// Keeps a key's entry while a request is about to be counted in it: if it were dropped in between, so would be what
/// was loaded, and the key would be counted from zero.
pub(super) struct EntryGuard<'a> {
    memory: &'a Memory,
    key_id: &'a Arc<str>,
}

impl Drop for EntryGuard<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.memory.shard_of(&**self.key_id).keys.get_mut(self.key_id) {
            entry.holders = entry.holders.saturating_sub(1);
        }
    }
}

impl Memory {
    /// Limits that continue the day counters in `store`.
    pub(super) fn new(store: Store) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { store, shards, hasher: RandomState::default(), today: Mutex::new(None) }
    }

    /// Counts a request, or refuses it. The quota may differ from call to call. For a key this records its last use,
    /// even if the request is refused.
    pub(super) fn take(&self, subject: &Subject, quota: Quota, now: Time) -> Decision {
        match subject {
            Subject::Key(id) | Subject::EndUser(id) => {
                let mut shard = self.shard_of(&**id);
                if let Some(entry) = shard.keys.get_mut(id) {
                    return entry.take(&self.store, subject, id, quota, now);
                }
                let entry = shard.keys.entry(id.clone()).or_insert_with(|| KeyEntry::new(now));
                entry.take(&self.store, subject, id, quota, now)
            }
            Subject::Session(key_id) => {
                let mut shard = self.shard_of(&**key_id);
                let windows = shard.sessions.entry(key_id.clone()).or_insert_with(|| Windows::new(now));
                windows.take(without_day(quota), now)
            }
            Subject::OpenPage(address) | Subject::FailedAuth(address) | Subject::Login(address) => {
                let client = client_of(*address);
                self.shard_of(client).addresses(subject).take(client, without_day(quota), now)
            }
        }
    }

    /// Records the use of a key by a request that does not count.
    pub(super) fn record_use(&self, key_id: &str, now: Time) {
        let mut shard = self.shard_of(key_id);
        let entry = shard.keys.entry(key_id.into()).or_insert_with(|| KeyEntry::new(now));
        entry.last_use = entry.last_use.max(Some(now));
    }

    /// The state without counting.
    pub(super) fn peek(&self, subject: &Subject, quota: Quota, now: Time) -> LimitState {
        match subject {
            Subject::Key(id) | Subject::EndUser(id) => {
                let mut shard = self.shard_of(&**id);
                if let Some(entry) = shard.keys.get_mut(id) {
                    return entry.peek(&self.store, id, quota, now);
                }
                KeyEntry::new(now).peek(&self.store, id, quota, now)
            }
            Subject::Session(key_id) => {
                let mut shard = self.shard_of(&**key_id);
                match shard.sessions.get_mut(key_id) {
                    Some(windows) => windows.peek(without_day(quota), now),
                    None => Windows::new(now).peek(without_day(quota), now),
                }
            }
            Subject::OpenPage(address) | Subject::FailedAuth(address) | Subject::Login(address) => {
                let client = client_of(*address);
                self.shard_of(client).addresses(subject).peek(client, without_day(quota), now)
            }
        }
    }

    /// The state of a subject by this server's own counts, and the UTC day with its count, where days are counted.
    pub(super) fn state_and_day(
        &self,
        subject: &Subject,
        quota: Quota,
        now: Time,
    ) -> (LimitState, (i64, u32)) {
        let Some(id) = subject.counted_id() else { return (self.peek(subject, quota, now), (0, 0)) };
        let mut shard = self.shard_of(&**id);
        let entry = shard.keys.entry(id.clone()).or_insert_with(|| KeyEntry::new(now));
        let state = entry.peek(&self.store, id, quota, now);
        (state, entry.windows.day_count())
    }

    /// The count of a key's day, or the database's if that is higher: other servers write theirs there too.
    pub(super) async fn refreshed_day(
        &self,
        key_id: &Arc<str>,
        (day, known): (i64, u32),
        now: Time,
    ) -> (i64, u32) {
        let read = {
            let mut shard = self.shard_of(&**key_id);
            let entry = shard.keys.entry(key_id.clone()).or_insert_with(|| KeyEntry::new(now));
            entry.day_read(day, |day| self.stored_day(key_id, day))
        };
        (day, read.await.map_or(known, |stored| stored.max(known)))
    }

    /// Reads the database's count of a key's day.
    fn stored_day(&self, key_id: &Arc<str>, day: i64) -> DayCountFuture {
        let (store, key_id) = (self.store.clone(), key_id.clone());
        let read = move |store: &Store| store.day_count(&key_id, day);
        async move { store.read_async(ReadPurpose::DayCount, read).await.ok() }.boxed()
    }

    /// Whether the database's count must be loaded before a request is counted, as it must not be waited for under a
    /// lock.
    pub(super) fn is_remote(&self) -> bool {
        !self.store.is_local()
    }

    /// Loads the database's count of a key's day, unless it is known. It stays known for as long as the guard lives.
    pub(super) async fn load_day<'a>(&'a self, key_id: &'a Arc<str>, now: Time) -> EntryGuard<'a> {
        self.load_day_with(key_id, now, |day| self.stored_day(key_id, day)).await
    }

    /// Like [`Memory::load_day`], reading the count of a day with `read`.
    async fn load_day_with<'a>(
        &'a self,
        key_id: &'a Arc<str>,
        now: Time,
        read: impl FnOnce(i64) -> DayCountFuture,
    ) -> EntryGuard<'a> {
        let unknown = {
            let mut shard = self.shard_of(&**key_id);
            let entry = shard.keys.entry(key_id.clone()).or_insert_with(|| KeyEntry::new(now));
            entry.holders += 1;
            entry.advance(now);
            entry.unknown_day(read)
        };
        let guard = EntryGuard { memory: self, key_id };
        if let Some((day, read)) = unknown {
            self.add_stored_day(key_id, day, read).await;
        }
        guard
    }

    /// Begins to load the database's count of a key's day, unless it is known; nobody waits for it.
    pub(super) fn load_day_aside(self: &Arc<Self>, key_id: &Arc<str>, now: Time) {
        let unknown = {
            let mut shard = self.shard_of(&**key_id);
            let entry = shard.keys.entry(key_id.clone()).or_insert_with(|| KeyEntry::new(now));
            entry.advance(now);
            entry.unknown_day(|day| self.stored_day(key_id, day))
        };
        if let Some((day, read)) = unknown {
            let (memory, key_id) = (self.clone(), key_id.clone());
            tokio::spawn(async move { memory.add_stored_day(&key_id, day, read).await });
        }
    }

    /// Adds the database's count of a day once it is read. One that cannot be read now is read with the next request.
    async fn add_stored_day(&self, key_id: &Arc<str>, day: i64, read: DayRead) {
        if let Some(used) = read.await
            && let Some(entry) = self.shard_of(&**key_id).keys.get_mut(key_id)
        {
            entry.add_stored_day((day, used));
        }
    }

    /// Records a decision of the shared store, with its count of the `day`.
    pub(super) fn record(
        &self,
        subject: &Subject,
        quota: Quota,
        now: Time,
        is_admitted: bool,
        day: (i64, u32),
    ) {
        match subject {
            Subject::Key(id) | Subject::EndUser(id) => {
                let mut shard = self.shard_of(&**id);
                let entry = shard.keys.entry(id.clone()).or_insert_with(|| KeyEntry::new(now));
                entry.advance(now);
                entry.note_use(subject, now);
                entry.windows.record(quota, now, is_admitted, day);
                // The shared count includes what the database has of this day.
                entry.is_day_loaded |= entry.windows.day_count().0 == day.0;
            }
            Subject::Session(key_id) => {
                let mut shard = self.shard_of(&**key_id);
                let windows = shard.sessions.entry(key_id.clone()).or_insert_with(|| Windows::new(now));
                windows.record(without_day(quota), now, is_admitted, day);
            }
            Subject::OpenPage(address) | Subject::FailedAuth(address) | Subject::Login(address) => {
                let client = client_of(*address);
                let mut shard = self.shard_of(client);
                let addresses = shard.addresses(subject);
                addresses.record(client, without_day(quota), now, is_admitted, day);
            }
        }
    }

    /// Writes changed day counters and last uses to the database and drops idle entries. Blocking; called every half
    /// second. What could not be written is written next time.
    pub(super) fn flush(&self, now: Time) -> Result<(), Error> {
        let mut batch = Batch::default();
        for shard in &self.shards {
            shard.locked().sweep(&mut batch, now);
        }
        // In the order of the tables, so that each page is touched only once, one after the other.
        batch.counts.sort_unstable_by(|one, other| one.key_id.cmp(&other.key_id));
        batch.uses.sort_unstable();
        self.store.keep_counts(&batch.counts, &batch.uses)?;
        self.mark_stored(&batch);
        self.forget_earlier_days(now.utc_day(), Instant::now())
    }

    /// Deletes the counters of earlier days, once the day has lasted long enough.
    fn forget_earlier_days(&self, day: i64, now: Instant) -> Result<(), Error> {
        let mut today = self.today.locked();
        match &mut *today {
            Some(today) if today.day == day => {
                if !today.is_swept && now.duration_since(today.since) >= DAY_SETTLE_TIME {
                    self.store.forget_counts(day)?;
                    today.is_swept = true;
                }
            }
            _ => *today = Some(Today { day, since: now, is_swept: false }),
        }
        Ok(())
    }

    fn mark_stored(&self, batch: &Batch) {
        for count in &batch.counts {
            if let Some(entry) = self.shard_of(count.key_id.as_str()).keys.get_mut(&*count.key_id) {
                entry.has_stored((count.day, count.used));
            }
        }
        for (key_id, at) in &batch.uses {
            if let Some(entry) = self.shard_of(&**key_id).keys.get_mut(&**key_id) {
                entry.stored_use = Some(*at);
            }
        }
    }

    fn shard_of(&self, subject: impl Hash) -> MutexGuard<'_, Shard> {
        // Any few of the 64 hash bits will do to choose among 64 shards.
        let index = usize::try_from(self.hasher.hash_one(subject) % SHARDS as u64).unwrap_or(0);
        self.shards[index].locked()
    }
}

impl Shard {
    /// Adds to `batch` what the database does not have yet, and drops idle entries that need no writing.
    fn sweep(&mut self, batch: &mut Batch, now: Time) {
        self.keys.retain(|id, entry| {
            let is_idle = entry.is_idle(now);
            let is_stored = !entry.add_to(batch, id);
            !(is_idle && is_stored) || entry.holders > 0
        });
        for addresses in [&mut self.open_pages, &mut self.failed_auth, &mut self.logins] {
            addresses.drop_idle(now);
        }
        self.sessions.retain(|_, windows| !windows.is_idle(now));
    }

    /// The addresses of this kind of subject.
    fn addresses(&mut self, subject: &Subject) -> &mut Addresses {
        match subject {
            Subject::FailedAuth(_) => &mut self.failed_auth,
            Subject::Login(_) => &mut self.logins,
            _ => &mut self.open_pages,
        }
    }
}

/// Addresses and sessions have no day window.
pub(super) fn without_day(quota: Quota) -> Quota {
    Quota { per_day: 0, ..quota }
}

#[cfg(test)]
mod tests;
