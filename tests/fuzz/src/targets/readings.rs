//! Values in texts and options: their places are whole characters in order, and what is decided of two options does not
//! depend on which comes first.

use mk::verify::options::{asks_whether_true, choose, names_claimed};
use mk::verify::values::{Choice, read};

pub(super) fn run(bytes: &[u8]) {
    let input = String::from_utf8_lossy(bytes);
    let mut end = 0;
    for found in read(&input, None) {
        assert!(input.get(found.range.clone()).is_some(), "{found:?} is not whole");
        assert!(!found.readings.is_empty() && found.range.start >= end, "{found:?}");
        end = found.range.end;
    }
    let options: Vec<Choice<'_>> = input.split('\n').take(7).map(Choice::new).collect();
    let [one, rivals @ ..] = options.as_slice() else { return };
    for other in rivals {
        assert_eq!(one.is_same(other), other.is_same(one), "{one:?} and {other:?}");
        assert_eq!(one.overlaps(other), other.overlaps(one), "{one:?} and {other:?}");
        assert_eq!(
            one.order(other),
            other.order(one).map(std::cmp::Ordering::reverse),
            "{one:?} and {other:?}"
        );
    }
    let best = rivals.len().checked_sub(1);
    let shown = choose(one, rivals, best, &mut |below| bytes.len() % below);
    assert!(shown.len() <= 3 && shown.iter().all(|at| *at < rivals.len()));
    assert!(best.is_none_or(|best| shown.contains(&best)), "what is believed right is not shown");
    let texts: Vec<&str> = rivals.iter().map(Choice::text).collect();
    let _ = (names_claimed(&input, one.text(), &texts), asks_whether_true(&input));
}
