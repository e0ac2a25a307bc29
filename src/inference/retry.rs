//! When to try a failed call again, from numbers alone (chance comes in as one), and what the log tells of it.

use std::time::Duration;

use crate::providers::Failure;

/// The first pause is drawn from zero to this.
const BASE: Duration = Duration::from_millis(250);
/// No pause of our own choosing is longer.
const CAP: Duration = Duration::from_secs(8);
/// A provider that asks for a longer wait is not waited for.
pub(super) const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// Spreads calls that were all told the same wait.
const SPREAD: Duration = Duration::from_millis(250);

/// How long to pause before the next try, `None` if there should be none.
///
/// `retries` have been made so far; `chance` is drawn evenly from `0.0..1.0`. A wait the provider asks for is kept;
/// otherwise the pause is drawn from zero to an exponentially growing bound ("full jitter"), so that callers that
/// failed together do not return together.
pub(super) fn pause(failure: &Failure, retries: u32, chance: f64) -> Option<Duration> {
    if !failure.is_transient() {
        return None;
    }
    let chance = chance.clamp(0.0, 1.0);
    if let Some(wait) = failure.retry_after() {
        return (wait <= LONGEST_WAIT).then(|| wait + SPREAD.mul_f64(chance));
    }
    let bound = BASE.saturating_mul(2_u32.saturating_pow(retries)).min(CAP);
    Some(bound.mul_f64(chance))
}

/// Logs that an attempt at this model has failed, and after what pause the next one is made, if there is one: a line
/// each, as each is a call that a provider has seen, and may have charged. For want of descriptors nothing was called;
/// that has its one line where it is found.
pub(super) fn log_failed_attempt(model: &str, failure: &Failure, pause: Option<Duration>) {
    if *failure == Failure::NoDescriptors {
        return;
    }
    tracing::warn!(
        model,
        outcome = failure.code(),
        detail = failure.detail(),
        retry_in_ms = pause.map(whole_ms),
        "a model call failed"
    );
}

fn whole_ms(pause: Duration) -> u64 {
    u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)
}

/// A number drawn evenly from `0.0..1.0`.
pub(super) fn chance() -> f64 {
    // Without the system's generator, which is as good as never, calls return a little more together.
    let bits = getrandom::u32().unwrap_or(u32::MAX / 2);
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn overloaded(seconds: Option<u64>) -> Failure {
        Failure::Overloaded { retry_after: seconds.map(Duration::from_secs) }
    }

    #[test]
    fn the_bound_doubles_up_to_the_cap() {
        let bounds: Vec<Duration> = (0..8).filter_map(|retries| pause(&Failure::Cut, retries, 1.0)).collect();
        let milliseconds: Vec<u128> = bounds.iter().map(Duration::as_millis).collect();
        assert_eq!(milliseconds, [250, 500, 1000, 2000, 4000, 8000, 8000, 8000]);
        assert_eq!(pause(&Failure::Cut, u32::MAX, 0.0), Some(Duration::ZERO));
    }

    #[test]
    fn what_a_wait_does_not_mend_is_not_tried_again() {
        for failure in [Failure::Refused, Failure::Unauthorized, Failure::Timeout, Failure::Malformed] {
            assert_eq!(pause(&failure, 0, 0.5), None, "{failure:?}");
        }
    }

    #[test]
    fn a_wait_of_more_than_a_minute_is_none_of_ours() {
        assert!(pause(&overloaded(Some(60)), 0, 0.9).is_some());
        assert_eq!(pause(&overloaded(Some(61)), 0, 0.0), None);
    }

    proptest! {
        #[test]
        fn never_earlier_than_the_provider_asks(wait in 0_u64..=60, retries: u32, chance in 0.0..1.0) {
            let asked = Duration::from_secs(wait);
            let pause = pause(&overloaded(Some(wait)), retries, chance).unwrap();
            prop_assert!(pause >= asked && pause <= asked + SPREAD);
        }

        #[test]
        fn never_longer_than_the_cap(retries: u32, chance in 0.0..1.0) {
            prop_assert!(pause(&overloaded(None), retries, chance).unwrap() <= CAP);
        }
    }
}
