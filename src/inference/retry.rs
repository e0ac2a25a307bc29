//! When to retry a failed call: pure functions, with the random number as an argument. Also logs failed attempts.

use std::time::Duration;

use crate::providers::Failure;

/// The upper bound of the first pause.
const BASE_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause, unless the provider asks for a longer one.
const MAX_PAUSE: Duration = Duration::from_secs(8);
/// If a provider asks for a longer wait than this, there is no retry.
pub(super) const MAX_RETRY_AFTER: Duration = Duration::from_mins(1);
/// Spreads out calls that were all asked to wait for the same time.
const RETRY_AFTER_JITTER: Duration = Duration::from_millis(250);

/// How long to pause before the next retry; `None` if there should be none.
///
/// `retries` have been made so far; `jitter` is drawn uniformly from `0.0..1.0`. A wait that the provider asks for is
/// respected; otherwise half of an exponentially growing bound is waited in any case, as what fails for a moment still
/// fails after a few milliseconds, and a random part of the other half, so that callers that failed together do not
/// return together.
pub(super) fn pause(failure: &Failure, retries: u32, jitter: f64) -> Option<Duration> {
    if !failure.is_transient() {
        return None;
    }
    let jitter = jitter.clamp(0.0, 1.0);
    if let Some(wait) = failure.retry_after() {
        return (wait <= MAX_RETRY_AFTER).then(|| wait + RETRY_AFTER_JITTER.mul_f64(jitter));
    }
    let bound = BASE_PAUSE.saturating_mul(2_u32.saturating_pow(retries)).min(MAX_PAUSE);
    Some(bound.mul_f64(jitter.mul_add(0.5, 0.5)))
}

/// Logs that an attempt to call this model has failed, and the pause before the next one, if any: one line per attempt,
/// as each is a call that a provider has seen and may charge for. [`Failure::NoDescriptors`] is left out: no call was
/// made, and it is logged where it is detected.
pub(super) fn log_failed_attempt(model: &str, failure: &Failure, pause: Option<Duration>) {
    if *failure == Failure::NoDescriptors {
        return;
    }
    tracing::warn!(
        model,
        outcome = failure.code(),
        detail = failure.detail(),
        retry_in_ms = pause.map(as_millis),
        "a model call failed"
    );
}

fn as_millis(pause: Duration) -> u64 {
    u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)
}

/// A number drawn uniformly from `0.0..1.0`.
pub fn jitter() -> f64 {
    // The system's generator practically never fails; if it does, retries are merely less spread out.
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
    fn pauses_double_up_to_the_cap_and_half_of_each_is_left_to_chance() {
        let pauses = |jitter| (0..7).filter_map(move |retries| pause(&Failure::Cut, retries, jitter));
        let milliseconds = |jitter| pauses(jitter).map(|pause| pause.as_millis()).collect::<Vec<_>>();
        assert_eq!(milliseconds(1.0), [500, 1000, 2000, 4000, 8000, 8000, 8000]);
        assert_eq!(milliseconds(0.0), [250, 500, 1000, 2000, 4000, 4000, 4000]);
        assert_eq!(pause(&Failure::Cut, u32::MAX, 0.0), Some(MAX_PAUSE / 2));
    }

    #[test]
    fn failures_that_waiting_does_not_fix_are_not_retried() {
        for failure in [Failure::Refused, Failure::Unauthorized, Failure::Timeout, Failure::Malformed] {
            assert_eq!(pause(&failure, 0, 0.5), None, "{failure:?}");
        }
    }

    #[test]
    fn there_is_no_retry_after_a_wait_of_more_than_a_minute() {
        assert!(pause(&overloaded(Some(60)), 0, 0.9).is_some());
        assert_eq!(pause(&overloaded(Some(61)), 0, 0.0), None);
    }

    proptest! {
        #[test]
        fn never_earlier_than_the_provider_asks(wait in 0_u64..=60, retries: u32, jitter in 0.0..1.0) {
            let asked = Duration::from_secs(wait);
            let pause = pause(&overloaded(Some(wait)), retries, jitter).unwrap();
            prop_assert!(pause >= asked && pause <= asked + RETRY_AFTER_JITTER);
        }

        #[test]
        fn never_longer_than_the_cap(retries: u32, jitter in 0.0..1.0) {
            prop_assert!(pause(&overloaded(None), retries, jitter).unwrap() <= MAX_PAUSE);
        }
    }
}
