//! Identifiers: a prefix for the kind of thing and a `UUIDv7`, so that they sort by creation time.
//!
//! They are unique and sort in the order in which they are made, but must not be used as secrets.

use uuid::Uuid;

/// The number of hexadecimal digits after the prefix.
const DIGITS: usize = 32;

/// A new identifier such as `app_0193…` (prefix, underscore, 32 lowercase hexadecimal digits).
pub fn new(prefix: &str) -> String {
    format!("{prefix}_{}", Uuid::now_v7().simple())
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
}
