//! Values in texts and options: their places are whole characters in order, and what is decided of two options does not
//! depend on which comes first.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mk::verify::options::{asks_whether_true, choose, names_claimed};
use mk::verify::values::{order, overlap, read, same};

fuzz_target!(|bytes: &[u8]| {
    let input = String::from_utf8_lossy(bytes);
    let mut end = 0;
    for found in read(&input, None) {
        assert!(input.get(found.range.clone()).is_some(), "{found:?} is not whole");
        assert!(!found.readings.is_empty() && found.range.start >= end, "{found:?}");
        end = found.range.end;
    }
    let options: Vec<String> = input.split('\n').take(7).map(str::to_owned).collect();
    let [one, rivals @ ..] = options.as_slice() else { return };
    for other in rivals {
        assert_eq!(same(one, other), same(other, one), "{one:?} and {other:?}");
        assert_eq!(overlap(one, other), overlap(other, one), "{one:?} and {other:?}");
        assert_eq!(
            order(one, other),
            order(other, one).map(std::cmp::Ordering::reverse),
            "{one:?} and {other:?}"
        );
    }
    let best = rivals.len().checked_sub(1);
    let shown = choose(one, rivals, best, &mut |below| bytes.len() % below);
    assert!(shown.len() <= 3 && shown.iter().all(|option| rivals.contains(option)));
    assert!(best.is_none_or(|best| shown.contains(&rivals[best])), "what is believed right is not shown");
    let _ = (names_claimed(&input, one, rivals), asks_whether_true(&input));
});
