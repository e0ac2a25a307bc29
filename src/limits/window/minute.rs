//! The requests of the last minute, by the millisecond in which they were admitted.

use std::collections::VecDeque;

pub(super) const MINUTE_MS: u32 = 60_000;

/// The times at which requests were admitted, oldest first. Only the low 32 bits of Unix milliseconds are kept, which
/// is exact because nothing older than a minute stays; requests within one millisecond share an entry. So a request
/// takes at most eight bytes, and a minute at most half a megabyte, however many requests it holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Minute {
    entries: VecDeque<Entry>,
    /// Requests in all entries.
    count: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u32,
    count: u32,
}

impl Minute {
    /// Adds a request admitted at `at`, which is not before the newest one.
    pub(super) fn add(&mut self, at: u32) {
        self.count = self.count.saturating_add(1);
        match self.entries.back_mut() {
            Some(newest) if newest.at == at => newest.count = newest.count.saturating_add(1),
            _ => self.entries.push_back(Entry { at, count: 1 }),
        }
    }

    /// Drops what is a minute old or older at `present`.
    pub(super) fn forget(&mut self, present: u32) {
        while let Some(oldest) = self.entries.front()
            && present.wrapping_sub(oldest.at) >= MINUTE_MS
        {
            self.count = self.count.saturating_sub(oldest.count);
            self.entries.pop_front();
        }
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.count = 0;
    }

    /// Moves all times back by `shift`.
    pub(super) fn shift_back(&mut self, shift: u32) {
        for entry in &mut self.entries {
            entry.at = entry.at.wrapping_sub(shift);
        }
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn newest(&self) -> Option<u32> {
        self.entries.back().map(|entry| entry.at)
    }

    /// The time of the request that has `earlier` others before it. Fast near both ends.
    pub(super) fn nth(&self, earlier: u32) -> Option<u32> {
        let later = self.count.checked_sub(earlier)?.checked_sub(1)?;
        if earlier <= later {
            behind(self.entries.iter(), earlier)
        } else {
            behind(self.entries.iter().rev(), later)
        }
    }
}

/// The time of the request that comes after `others` of these.
fn behind<'a>(mut entries: impl Iterator<Item = &'a Entry>, mut others: u32) -> Option<u32> {
    let found = entries.find(|entry| {
        let is_it = others < entry.count;
        others = others.saturating_sub(entry.count);
        is_it
    });
    found.map(|entry| entry.at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_within_a_millisecond_share_an_entry() {
        let mut minute = Minute::default();
        for at in [u32::MAX, 0, 1] {
            (0..1000).for_each(|_| minute.add(at));
        }
        assert_eq!((minute.count(), minute.entries.len()), (3000, 3));
        assert_eq!(
            [0, 999, 1000, 1999, 2000, 2999, 3000].map(|earlier| minute.nth(earlier)),
            [Some(u32::MAX), Some(u32::MAX), Some(0), Some(0), Some(1), Some(1), None]
        );
        minute.forget(MINUTE_MS - 1);
        assert_eq!((minute.count(), minute.nth(0)), (2000, Some(0)));
        minute.shift_back(1);
        assert_eq!((minute.nth(0), minute.newest()), (Some(u32::MAX), Some(0)));
        minute.forget(MINUTE_MS);
        assert_eq!((minute.count(), minute.is_empty(), minute.newest()), (0, true, None));
    }
}
