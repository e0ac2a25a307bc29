//! Waits out the server's rate limit: jointly, visibly, and within limits.
//!
//! A 429 means that nothing was started, so sending the request again is safe; nothing else is ever sent twice. All
//! verifications of a command wait for the same moment, so that none of them runs into the limit on behalf of the
//! others.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::{self, Instant};

use crate::api::error_code::ErrorCode;
use crate::cli::process::exit::Failure;
use crate::cli::target::remote;

/// The wait that the verifications of a command share.
#[derive(Debug)]
pub(crate) struct RateLimitWait {
    max_wait: Duration,
    resume_at: Cell<Option<Instant>>,
}

/// How long one verification has waited so far.
#[derive(Debug, Default)]
pub(crate) struct TimeWaited(Duration);

impl RateLimitWait {
    /// Allows each verification to wait for `max_wait` in all.
    pub(crate) fn new(max_wait: Duration) -> Self {
        Self { max_wait, resume_at: Cell::new(None) }
    }

    /// Waits while another verification has hit the rate limit.
    pub(crate) async fn pause(&self) {
        while let Some(at) = self.resume_at.get().filter(|at| *at > Instant::now()) {
            time::sleep_until(at).await;
        }
    }

    /// Whether `failure` may be waited out; if so, announces that through `announce` and sets the time for
    /// [`RateLimitWait::pause`].
    pub(crate) fn may_retry(
        &self,
        failure: &Failure,
        waited: &mut TimeWaited,
        announce: impl FnOnce(&str),
    ) -> bool {
        let Some(wait) = failure.server_error.as_ref().and_then(|server_error| server_error.retry_after)
        else {
            return false;
        };
        let wait = wait.max(Duration::from_secs(1));
        let total = waited.0.saturating_add(wait);
        if total > self.max_wait {
            return false;
        }
        waited.0 = total;
        let at = Instant::now() + wait;
        let is_later = self.resume_at.get().is_none_or(|known| at > known + Duration::from_secs(1));
        if is_later {
            self.resume_at.set(Some(at));
            let why = failure.code().map_or("rate limit reached", ErrorCode::message);
            announce(&format!("waiting {}: {}", remote::span(wait), remote::lower_first(why)));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::process::exit::{Kind, ServerError};

    fn limited(seconds: u64) -> Failure {
        let mut failure = Failure::new(Kind::Busy, "too many requests per minute");
        let retry_after = Some(Duration::from_secs(seconds));
        let code = ErrorCode::RateLimitedMinute.as_str().to_owned();
        failure.server_error = Some(Box::new(ServerError { code, retry_after, ..ServerError::default() }));
        failure
    }

    #[test]
    fn waits_as_long_as_allowed_in_total() {
        let rate_limit_wait = RateLimitWait::new(Duration::from_secs(100));
        let mut waited = TimeWaited::default();
        assert!(rate_limit_wait.may_retry(&limited(60), &mut waited, |_| {}));
        assert!(!rate_limit_wait.may_retry(&limited(60), &mut waited, |_| {}));
        assert!(rate_limit_wait.may_retry(&limited(40), &mut waited, |_| {}));
        assert!(!rate_limit_wait.may_retry(&limited(u64::MAX), &mut waited, |_| {}));
        assert!(rate_limit_wait.may_retry(&limited(100), &mut TimeWaited::default(), |_| {}));
    }

    #[test]
    fn without_a_retry_time_nothing_is_waited_out() {
        let rate_limit_wait = RateLimitWait::new(Duration::from_secs(100));
        let failure = Failure::new(Kind::Busy, "too many requests per day");
        assert!(!rate_limit_wait.may_retry(&failure, &mut TimeWaited::default(), |_| {}));
    }

    #[test]
    fn a_wait_is_announced_once() {
        let rate_limit_wait = RateLimitWait::new(Duration::from_secs(100));
        let mut announced = Vec::new();
        for _ in 0..3 {
            rate_limit_wait
                .may_retry(&limited(42), &mut TimeWaited::default(), |text| announced.push(text.to_owned()));
        }
        assert_eq!(announced, ["waiting 42 s: too many requests per minute"]);
    }

    #[test]
    fn the_others_wait_for_the_same_moment() {
        let rate_limit_wait = RateLimitWait::new(Duration::from_secs(100));
        assert_eq!(rate_limit_wait.resume_at.get(), None);
        let before = Instant::now();
        rate_limit_wait.may_retry(&limited(42), &mut TimeWaited::default(), |_| {});
        let ahead = rate_limit_wait.resume_at.get().unwrap() - before;
        assert!(ahead >= Duration::from_secs(42) && ahead < Duration::from_secs(44), "{ahead:?}");
    }
}
