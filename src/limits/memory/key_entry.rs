//! What one server knows of a key or an end user: its windows, and what the database has of them.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};

use crate::clock::Time;
use crate::limits::window::{Day, Windows};
use crate::limits::{Decision, LimitState, Quota, Subject};
use crate::storage::{DayCount, Store};

/// Reads the database's count of a key's day; `None` if it cannot be read.
pub(super) type DayCountFuture = BoxFuture<'static, Option<u32>>;

/// Such a read, which all requests share that need its result at the same time.
pub(super) type DayRead = Shared<DayCountFuture>;

/// The limits of one key or end user.
pub(super) struct KeyEntry {
    pub(super) windows: Windows,
    /// Whether the day's count includes what the database had when this entry was created. While the database is
    /// unreadable it does not: the key is then counted from zero, and the rest is added as soon as it can be read.
    pub(super) is_day_loaded: bool,
    /// The day's count as the database has it.
    stored: (i64, u32),
    /// The count of a day that ended before it was written to the database: the clock may go back to that day.
    earlier: Option<(i64, u32)>,
    pub(super) last_use: Option<Time>,
    pub(super) stored_use: Option<Time>,
    /// The day whose count is being read from the database, and that read.
    day_read: Option<(i64, WeakShared<DayCountFuture>)>,
    /// The number of requests between loading the day and being counted: until then the entry stays, however idle.
    pub(super) holders: usize,
}

/// What a flush writes.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) counts: Vec<DayCount>,
    pub(super) uses: Vec<(String, Time)>,
}

impl KeyEntry {
    pub(super) fn new(now: Time) -> Self {
        let windows = Windows::new(now);
        let stored = windows.day_count();
        Self {
            windows,
            is_day_loaded: false,
            stored,
            earlier: None,
            last_use: None,
            stored_use: None,
            day_read: None,
            holders: 0,
        }
    }

    /// Counts a request of its subject, which has this id.
    pub(super) fn take(
        &mut self,
        store: &Store,
        subject: &Subject,
        id: &str,
        quota: Quota,
        now: Time,
    ) -> Decision {
        self.advance(now);
        self.load_stored_day(store, id);
        self.note_use(subject, now);
        self.windows.take(quota, now)
    }

    /// Notes when a key was used. Nobody asks that of end users.
    pub(super) fn note_use(&mut self, subject: &Subject, now: Time) {
        if matches!(subject, Subject::Key(_)) {
            self.last_use = self.last_use.max(Some(now));
        }
    }

    pub(super) fn peek(&mut self, store: &Store, id: &str, quota: Quota, now: Time) -> LimitState {
        self.advance(now);
        self.load_stored_day(store, id);
        self.windows.peek(quota, now)
    }

    /// Advances the windows to now. If they return to a day that they had left, the database's count has to be loaded
    /// anew.
    pub(super) fn advance(&mut self, now: Time) {
        let before = self.windows.day_count();
        let found = self.windows.advance(now);
        let (day, _) = self.windows.day_count();
        if day != before.0 && self.is_day_loaded && before.1 > 0 && self.stored != before {
            self.earlier = Some(before);
        }
        if found == Day::Regained {
            self.is_day_loaded = false;
        }
    }

    pub(super) fn has_stored(&mut self, count: (i64, u32)) {
        if self.earlier == Some(count) {
            self.earlier = None;
        } else {
            self.stored = count;
        }
    }

    pub(super) fn is_idle(&mut self, now: Time) -> bool {
        self.advance(now);
        self.windows.is_idle(now)
    }

    /// Adds the database's count of this day from before this entry was created.
    fn load_stored_day(&mut self, store: &Store, id: &str) {
        if self.is_day_loaded || !store.is_local() {
            return;
        }
        let (day, _) = self.windows.day_count();
        if let Ok(used) = store.day_count(id, day) {
            self.add_stored_day((day, used));
        }
    }

    /// The day, if the database's count of it is unknown, and the read of that count.
    pub(super) fn unknown_day(
        &mut self,
        begin: impl FnOnce(i64) -> DayCountFuture,
    ) -> Option<(i64, DayRead)> {
        let (day, _) = self.windows.day_count();
        (!self.is_day_loaded).then(|| (day, self.day_read(day, begin)))
    }

    /// The read of a day's count that is under way, so that any number of requests read it once, or else one that
    /// `begin` begins.
    pub(super) fn day_read(&mut self, day: i64, begin: impl FnOnce(i64) -> DayCountFuture) -> DayRead {
        let of_day = self.day_read.as_ref().filter(|(of, _)| *of == day);
        let under_way = of_day.and_then(|(_, read)| read.upgrade());
        // Whoever comes after its end begins another: it may have failed.
        if let Some(read) = under_way.filter(|read| read.peek().is_none()) {
            return read;
        }
        let read = begin(day).shared();
        self.day_read = read.downgrade().map(|read| (day, read));
        read
    }

    /// Adds the database's count of a day, once. A count of the shared store includes it already, unless that store
    /// has lost some of the day.
    pub(super) fn add_stored_day(&mut self, (day, used): (i64, u32)) {
        if self.windows.day_count().0 != day {
            return;
        }
        if self.is_day_loaded {
            self.windows.raise_day(used);
        } else {
            self.windows.add_to_day(used);
            self.stored = (day, used);
            self.is_day_loaded = true;
        }
    }

    /// Adds to `batch` what the database does not have yet; returns whether there was anything.
    pub(super) fn add_to(&self, batch: &mut Batch, id: &str) -> bool {
        let (day, used) = self.windows.day_count();
        let is_new_count = used > 0 && self.stored != (day, used);
        // A count that may lack the database's share must not replace the whole.
        if is_new_count && self.is_day_loaded {
            batch.counts.push(DayCount { key_id: id.to_owned(), day, used });
        }
        if let Some((day, used)) = self.earlier {
            batch.counts.push(DayCount { key_id: id.to_owned(), day, used });
        }
        let new_use = self.last_use.filter(|at| self.stored_use != Some(*at));
        if let Some(at) = new_use {
            batch.uses.push((id.to_owned(), at));
        }
        is_new_count || self.earlier.is_some() || new_use.is_some()
    }
}
