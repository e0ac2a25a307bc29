//! Is the system clock right? Key expiry, rate limits and certificates depend on it.

use std::time::Duration;

use super::check::{Check, State};
use crate::cli::remote;
use crate::clock::Time;
use crate::loopback::is_loopback;

const NAME: &str = "clock";

/// When this was written; no correct clock shows an earlier date.
const WRITTEN: &str = "2026-11-01";
/// Nobody will run it by then.
const FAR: &str = "2100-01-01";

/// More than any response takes, and than the whole seconds of a header hide.
const DOUBTFUL: Duration = Duration::from_secs(30);
/// From here on, certificates and signed requests are refused.
const WRONG: Duration = Duration::from_mins(5);

/// The reading of another clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    /// Whose clock it is.
    pub(super) who: String,
    /// The time it showed.
    pub(super) theirs: Time,
    /// The time here when its reading arrived.
    pub(super) ours: Time,
    /// Whether it was asked at an address of this machine.
    pub(super) is_here: bool,
}

impl Reference {
    /// How far our clock is ahead, in milliseconds.
    const fn ahead(&self) -> i64 {
        self.ours.unix_ms() - self.theirs.unix_ms()
    }

    const fn off(&self) -> Duration {
        Duration::from_millis(self.ahead().unsigned_abs())
    }

    /// Whether it is likely the same clock as ours.
    fn is_ours(&self) -> bool {
        self.is_here && self.off() < DOUBTFUL
    }

    /// The verdict on our clock if this one is right.
    fn verdict(&self) -> State {
        match self.off() {
            off if off >= WRONG => State::Failed,
            off if off >= DOUBTFUL => State::Warning,
            _ => State::Ok,
        }
    }
}

/// Whether an address is on this machine.
pub(super) fn is_here(address: &str) -> bool {
    address.parse::<http::Uri>().is_ok_and(|address| address.host().is_some_and(is_loopback))
}

/// Judges our clock by the median of the others. With an even number, the two in the middle must agree, or neither is
/// believed.
pub(super) fn judge(now: Time, mut references: Vec<Reference>) -> Check {
    let is_sane = Time::parse(WRITTEN).is_none_or(|least| now >= least)
        && Time::parse(FAR).is_none_or(|most| now < most);
    if !is_sane {
        return Check::failed(NAME, format!("it shows {now}, which cannot be"))
            .hint("set it, by NTP if there is a network: `timedatectl set-ntp true`");
    }
    references.retain(|reference| !reference.is_ours());
    references.sort_by_key(Reference::ahead);
    let Some(believed) = references.get(references.len() / 2) else {
        return Check::ok(NAME, format!("{now}; nobody elsewhere answered to compare it with"));
    };
    let other = &references[(references.len() - 1) / 2];
    if other.verdict() != believed.verdict() {
        let apart = Duration::from_millis(believed.ahead().abs_diff(other.ahead()));
        let told = format!(
            "{now}; that of {} and that of {} are {} apart",
            believed.who,
            other.who,
            remote::span(apart)
        );
        return Check::warning(NAME, told)
            .hint("see which of the three is right: `timedatectl` shows this one's state");
    }
    let side = if believed.ahead() < 0 { "behind" } else { "ahead of" };
    let told = format!("{now}, {} {side} that of {}", remote::span(believed.off()), believed.who);
    let set = "set it by NTP: keys expire and limits begin anew by this clock";
    match believed.verdict() {
        State::Failed => Check::failed(NAME, told).hint(set),
        State::Warning => Check::warning(NAME, told).hint(set),
        _ => Check::ok(NAME, format!("{now}, as that of {}", believed.who)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Time = Time::from_unix_ms(1_795_176_000_000);

    fn ahead(seconds: i64) -> Reference {
        let theirs = Time::from_unix_ms(NOON.unix_ms() - seconds * 1000);
        Reference { who: "acme".to_owned(), theirs, ours: NOON, is_here: false }
    }

    #[test]
    fn small_differences_are_none() {
        assert_eq!(judge(NOON, vec![ahead(2)]).state, State::Ok);
        assert_eq!(judge(NOON, vec![]).state, State::Ok);
        assert_eq!(judge(NOON, vec![ahead(-40)]).state, State::Warning);
        let wrong = judge(NOON, vec![ahead(-4000)]);
        assert_eq!(wrong.state, State::Failed);
        assert!(wrong.message.ends_with("66 m 40 s behind that of acme"), "{}", wrong.message);
    }

    #[test]
    fn one_wrong_clock_elsewhere_does_not_make_ours_wrong() {
        assert_eq!(judge(NOON, vec![ahead(0), ahead(90_000), ahead(1)]).state, State::Ok);
    }

    #[test]
    fn a_server_on_this_machine_has_the_same_clock() {
        let here = |seconds| Reference { is_here: true, ..ahead(seconds) };
        for elsewhere in [-3600, 3600] {
            assert_eq!(judge(NOON, vec![here(0), ahead(elsewhere)]).state, State::Failed, "{elsewhere}");
            assert_eq!(judge(NOON, vec![here(elsewhere)]).state, State::Failed, "{elsewhere}");
        }
        assert_eq!(judge(NOON, vec![here(0)]).state, State::Ok);
    }

    #[test]
    fn of_two_that_do_not_agree_neither_is_believed() {
        for elsewhere in [-3600, 3600] {
            let torn = judge(NOON, vec![ahead(1), ahead(elsewhere)]);
            assert_eq!(torn.state, State::Warning, "{elsewhere}");
            assert!(torn.message.contains("that of acme and that of acme are"), "{}", torn.message);
        }
        assert_eq!(judge(NOON, vec![ahead(3600), ahead(7200)]).state, State::Failed);
    }

    #[test]
    fn a_year_that_cannot_be_is_wrong_by_itself() {
        assert_eq!(judge(Time::from_unix_ms(0), vec![]).state, State::Failed);
        assert_eq!(judge(Time::parse("2126-01-01").unwrap(), vec![]).state, State::Failed);
    }
}
