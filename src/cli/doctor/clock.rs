//! Is the time of day right? Keys expire, limits begin anew and certificates are judged by it.

use std::time::Duration;

use super::check::Check;
use crate::cli::remote;
use crate::clock::Time;

const NAME: &str = "clock";

/// When this was written; no clock that is right shows less.
const WRITTEN: &str = "2026-11-01";
/// Nobody runs it then.
const FAR: &str = "2100-01-01";

/// More than any answer takes, and than the whole seconds of a header hide.
const DOUBTFUL: Duration = Duration::from_secs(30);
/// Certificates and signed requests are refused from here on.
const WRONG: Duration = Duration::from_mins(5);

/// What somebody else's clock showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    /// Whose.
    pub(super) who: String,
    /// There.
    pub(super) theirs: Time,
    /// Here, when that arrived.
    pub(super) ours: Time,
}

impl Reference {
    /// How far ours is ahead, in milliseconds.
    const fn ahead(&self) -> i64 {
        self.ours.unix_ms() - self.theirs.unix_ms()
    }
}

/// Judges the time of day by that of others, of whom the median is believed.
pub(super) fn judge(now: Time, mut references: Vec<Reference>) -> Check {
    let is_sane = Time::parse(WRITTEN).is_none_or(|least| now >= least)
        && Time::parse(FAR).is_none_or(|most| now < most);
    if !is_sane {
        return Check::failed(NAME, format!("it shows {now}, which cannot be"))
            .hint("set it, by NTP if there is a network: `timedatectl set-ntp true`");
    }
    references.sort_by_key(Reference::ahead);
    let Some(believed) = references.get(references.len() / 2) else {
        return Check::ok(NAME, format!("{now}; nobody answered to compare it with"));
    };
    let off = Duration::from_millis(believed.ahead().unsigned_abs());
    let side = if believed.ahead() < 0 { "behind" } else { "ahead of" };
    let told = format!("{now}, {} {side} that of {}", remote::span(off), believed.who);
    let set = "set it by NTP: keys expire and limits begin anew by this clock";
    if off >= WRONG {
        return Check::failed(NAME, told).hint(set);
    }
    if off >= DOUBTFUL {
        return Check::warning(NAME, told).hint(set);
    }
    Check::ok(NAME, format!("{now}, as that of {}", believed.who))
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    const NOON: Time = Time::from_unix_ms(1_795_176_000_000);

    fn ahead(seconds: i64) -> Reference {
        let theirs = Time::from_unix_ms(NOON.unix_ms() - seconds * 1000);
        Reference { who: "acme".to_owned(), theirs, ours: NOON }
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
    fn a_year_that_cannot_be_is_wrong_by_itself() {
        assert_eq!(judge(Time::from_unix_ms(0), vec![]).state, State::Failed);
        assert_eq!(judge(Time::parse("2126-01-01").unwrap(), vec![]).state, State::Failed);
    }
}
