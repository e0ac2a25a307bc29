//! Identifiers: a prefix for the kind of thing and a `UUIDv7`, so that they sort by creation time.
//!
//! Every request gets one, so they cost no system call: a thread asks the operating system for randomness once, and
//! derives all further bits with a keyed hash. They are unique and cannot be guessed from each other, but must not be
//! used as secrets.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use uuid::Builder;

/// The first twelve bits of a `UUIDv7` after its time count within a millisecond.
const MAX_COUNT: u16 = 1 << 12;

/// The number of hexadecimal digits after the prefix.
const DIGITS: usize = 32;

thread_local! {
    static SEQUENCE: RefCell<Sequence> = RefCell::new(Sequence::new());
}

/// A new identifier such as `app_0193…` (prefix, underscore, 32 lowercase hexadecimal digits).
pub fn new(prefix: &str) -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ms = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
    let (ms, bits) = SEQUENCE.with_borrow_mut(|sequence| sequence.draw(ms));
    let uuid = Builder::from_unix_timestamp_millis(ms, &bits).into_uuid();
    let mut text = String::with_capacity(prefix.len() + 33);
    text.push_str(prefix);
    text.push('_');
    text.push_str(uuid.simple().encode_lower(&mut [0; 32]));
    text
}

/// A new identifier that sorts after `last`, whatever the clock, another thread or another process has done.
pub fn new_after(last: &str, prefix: &str) -> String {
    let id = new(prefix);
    if id.as_str() > last {
        return id;
    }
    let digits = last.rsplit('_').next().unwrap_or_default();
    u128::from_str_radix(digits, 16)
        .map_or(id, |number| format!("{prefix}_{:0width$x}", number.saturating_add(1), width = DIGITS))
}

/// The identifiers of one thread, each sorting after its predecessor.
struct Sequence {
    random: RandomState,
    drawn: u64,
    ms: u64,
    count: u16,
}

impl Sequence {
    fn new() -> Self {
        Self { random: RandomState::new(), drawn: 0, ms: 0, count: 0 }
    }

    /// The time and the remaining bits of the next identifier. If the clock goes back, or there are too many within a
    /// millisecond, the time runs ahead of the clock.
    fn draw(&mut self, now: u64) -> (u64, [u8; 10]) {
        if now > self.ms {
            (self.ms, self.count) = (now, 0);
        } else if self.count + 1 < MAX_COUNT {
            self.count += 1;
        } else {
            (self.ms, self.count) = (self.ms + 1, 0);
        }
        self.drawn += 1;
        let mut bits = [0; 10];
        bits[..2].copy_from_slice(&self.count.to_be_bytes());
        bits[2..].copy_from_slice(&self.random.hash_one(self.drawn).to_be_bytes());
        (self.ms, bits)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn later_ids_sort_after_earlier_ones() {
        let ids: Vec<String> = (0..10_000).map(|_| new("req")).collect();
        assert!(ids.is_sorted());
        let uuid = uuid::Uuid::parse_str(ids[0].strip_prefix("req_").unwrap()).unwrap();
        assert_eq!((uuid.get_version_num(), uuid.get_variant()), (7, uuid::Variant::RFC4122));
        assert_eq!(ids[0].len(), "req_".len() + 32);
    }

    #[test]
    fn an_id_after_another_sorts_after_it_whenever_that_was_made() {
        let earlier = new("aud");
        assert!(new_after(&earlier, "aud") > earlier);
        assert!(new_after("", "aud").starts_with("aud_"));
        let of_a_clock_ahead = "aud_ff00000000007000800000000000ffff";
        assert_eq!(new_after(of_a_clock_ahead, "aud"), "aud_ff000000000070008000000000010000");
    }

    #[test]
    fn no_two_threads_generate_the_same_id() {
        let many = || (0..5_000).map(|_| new("req")).collect::<Vec<_>>();
        let lists = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(many)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(lists.iter().flatten().collect::<HashSet<_>>().len(), 20_000);
    }

    #[test]
    fn neither_a_clock_that_goes_back_nor_a_crowded_millisecond_puts_them_out_of_order() {
        let mut sequence = Sequence::new();
        let clock = [7, 7, 3, 3, 9].into_iter().flat_map(|ms| std::iter::repeat_n(ms, 3_000));
        let drawn: Vec<(u64, [u8; 2])> =
            clock.map(|ms| sequence.draw(ms)).map(|(ms, bits)| (ms, [bits[0], bits[1]])).collect();
        assert!(drawn.is_sorted_by(|one, next| one < next));
    }
}
