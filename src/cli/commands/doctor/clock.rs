//! Is the system clock right? Key expiry, rate limits and certificates depend on it.

use std::time::Duration;

use super::check::{Check, Status};
use crate::cli::target::remote;
use crate::clock::Time;
use crate::net::loopback::is_loopback;

const NAME: &str = "clock";

/// When this was written; no correct clock shows an earlier date.
const EARLIEST: &str = "2026-11-01";
/// Nobody will run it by then.
const LATEST: &str = "2100-01-01";

/// More than any response takes, and than the whole seconds of a header hide.
const DOUBTFUL_OFFSET: Duration = Duration::from_secs(30);
/// From here on, certificates and signed requests are refused.
const WRONG_OFFSET: Duration = Duration::from_mins(5);

/// The reading of another clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClockReading {
    /// Whose clock it is.
    pub(super) who: String,
    /// The time it showed.
    pub(super) theirs: Time,
    /// The time here when its reading arrived.
    pub(super) ours: Time,
    /// Whether it was asked at an address of this machine.
    pub(super) is_on_this_machine: bool,
}

impl ClockReading {
    /// How far our clock is ahead, in milliseconds.
    const fn offset_ms(&self) -> i64 {
        self.ours.unix_ms() - self.theirs.unix_ms()
    }

    const fn offset(&self) -> Duration {
        Duration::from_millis(self.offset_ms().unsigned_abs())
    }

    /// Whether it is likely the same clock as ours.
    fn is_ours(&self) -> bool {
        self.is_on_this_machine && self.offset() < DOUBTFUL_OFFSET
    }

    /// The verdict on our clock if this one is right.
    fn verdict(&self) -> Status {
        match self.offset() {
            offset if offset >= WRONG_OFFSET => Status::Failed,
            offset if offset >= DOUBTFUL_OFFSET => Status::Warning,
            _ => Status::Ok,
        }
    }
}

/// Whether an address is on this machine.
pub(super) fn is_on_this_machine(address: &str) -> bool {
    address.parse::<http::Uri>().is_ok_and(|address| address.host().is_some_and(is_loopback))
}

/// Judges our clock by the median of the others. With an even number, the two in the middle must agree, or neither is
/// believed.
pub(super) fn judge(now: Time, mut references: Vec<ClockReading>) -> Check {
    let is_sane = Time::parse(EARLIEST).is_none_or(|earliest| now >= earliest)
        && Time::parse(LATEST).is_none_or(|latest| now < latest);
    if !is_sane {
        return Check::failed(NAME, format!("it shows {now}, which cannot be right"))
            .hint("set the clock, with a network by NTP: `timedatectl set-ntp true`");
    }
    let none = if references.is_empty() {
        "no server answered, so there is nothing to compare it with"
    } else {
        "the server runs on this machine, so there is no other clock to compare it with"
    };
    references.retain(|reference| !reference.is_ours());
    references.sort_by_key(ClockReading::offset_ms);
    let Some(believed) = references.get(references.len() / 2) else {
        return Check::ok(NAME, format!("{now}; {none}"));
    };
    let other = &references[(references.len() - 1) / 2];
    if other.verdict() != believed.verdict() {
        let apart = Duration::from_millis(believed.offset_ms().abs_diff(other.offset_ms()));
        let message = format!(
            "{now}; that of {} and that of {} are {} apart",
            believed.who,
            other.who,
            remote::span(apart)
        );
        return Check::warning(NAME, message)
            .hint("find out which of the three is right: `timedatectl` shows this machine's");
    }
    let side = if believed.offset_ms() < 0 { "behind" } else { "ahead of" };
    let message = format!("{now}, {} {side} that of {}", remote::span(believed.offset()), believed.who);
    let set = "set it by NTP: keys expire and limits reset by this clock";
    match believed.verdict() {
        Status::Failed => Check::failed(NAME, message).hint(set),
        Status::Warning => Check::warning(NAME, message).hint(set),
        _ => Check::ok(NAME, format!("{now}, as that of {}", believed.who)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Time = Time::from_unix_ms(1_795_176_000_000);

    fn reading(seconds: i64) -> ClockReading {
        let theirs = Time::from_unix_ms(NOON.unix_ms() - seconds * 1000);
        ClockReading { who: "acme".to_owned(), theirs, ours: NOON, is_on_this_machine: false }
    }

    #[test]
    fn small_differences_do_not_count() {
        assert_eq!(judge(NOON, vec![reading(2)]).state, Status::Ok);
        assert_eq!(judge(NOON, vec![]).state, Status::Ok);
        assert_eq!(judge(NOON, vec![reading(-40)]).state, Status::Warning);
        let wrong = judge(NOON, vec![reading(-4000)]);
        assert_eq!(wrong.state, Status::Failed);
        assert!(wrong.message.ends_with("66 m 40 s behind that of acme"), "{}", wrong.message);
    }

    #[test]
    fn one_wrong_clock_elsewhere_does_not_make_ours_wrong() {
        assert_eq!(judge(NOON, vec![reading(0), reading(90_000), reading(1)]).state, Status::Ok);
    }

    #[test]
    fn a_server_on_this_machine_has_the_same_clock() {
        let here = |seconds| ClockReading { is_on_this_machine: true, ..reading(seconds) };
        for elsewhere in [-3600, 3600] {
            assert_eq!(judge(NOON, vec![here(0), reading(elsewhere)]).state, Status::Failed, "{elsewhere}");
            assert_eq!(judge(NOON, vec![here(elsewhere)]).state, Status::Failed, "{elsewhere}");
        }
        let alone = judge(NOON, vec![here(0)]);
        assert_eq!(alone.state, Status::Ok);
        assert!(alone.message.contains("no other clock"), "{}", alone.message);
        let unanswered = judge(NOON, vec![]).message;
        assert!(
            unanswered.ends_with("no server answered, so there is nothing to compare it with"),
            "{unanswered}"
        );
    }

    #[test]
    fn if_two_disagree_neither_is_believed() {
        for elsewhere in [-3600, 3600] {
            let torn = judge(NOON, vec![reading(1), reading(elsewhere)]);
            assert_eq!(torn.state, Status::Warning, "{elsewhere}");
            assert!(torn.message.contains("that of acme and that of acme are"), "{}", torn.message);
        }
        assert_eq!(judge(NOON, vec![reading(3600), reading(7200)]).state, Status::Failed);
    }

    #[test]
    fn an_impossible_year_is_wrong_by_itself() {
        assert_eq!(judge(Time::from_unix_ms(0), vec![]).state, Status::Failed);
        assert_eq!(judge(Time::parse("2126-01-01").unwrap(), vec![]).state, Status::Failed);
    }
}
