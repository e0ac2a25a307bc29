//! Keys, times, dates and amounts typed by users: what is read is written back unchanged, and no typing error turns one
//! key into another.

use crate::input::{is_harmless, number};
use mk::clock::Time;
use mk::keys::{expiry, service_of};
use mk::money::NanoUsd;
use mk::usage::{Month, parse_date};

/// A well-formed key that nobody has.
const KEY: &str = "mk_verify_000000000000000000000000004ANCeP";

fn key(text: &str) {
    let Some(service) = service_of(text) else { return };
    assert!(text.is_ascii() && text.len() == format!("mk_{service}_").len() + 32, "{text:?}");
    assert!(text.starts_with(&format!("mk_{service}_")), "{text:?}");
    assert_eq!(service.to_string().parse().ok(), Some(service));
}

/// The same key with up to four neighbouring characters replaced by the beginning of `text`.
fn mistyped(text: &str) {
    let slip: String = text.chars().filter(char::is_ascii).take(4).collect();
    let place = usize::try_from(number(text.as_bytes(), 0)).unwrap_or_default() % (KEY.len() - slip.len());
    let typed = [&KEY[..place], &slip, &KEY[place + slip.len()..]].concat();
    assert_eq!(service_of(&typed).is_some(), typed == KEY, "{typed:?}");
    key(&typed);
}

fn times(text: &str) {
    if let Some(time) = Time::parse(text) {
        let written = time.rfc3339();
        assert_eq!(Time::parse(&written), Some(time), "{text:?} became {written:?}");
    }
    if let Some(time) = Time::parse_http(text) {
        assert_eq!(Time::parse(&time.rfc3339()), Some(time), "{text:?}");
    }
    if let Some(day) = parse_date(text) {
        assert_eq!(Time::of_utc_day(day).utc_date(), text);
    }
    if let Some(month) = Month::parse(text) {
        assert_eq!(month.to_string(), text);
        let days = month.days();
        assert!((28..=31).contains(&(days.last - days.first + 1)), "{text:?}: {days:?}");
    }
    let now = Time::from_unix_ms(1_795_176_000_000);
    match expiry::parse(text, now) {
        Ok(at) => assert!(at > now, "{text:?} lies behind"),
        Err(complaint) => assert!(is_harmless(&complaint), "{complaint:?}"),
    }
}

fn amounts(text: &str) {
    let Some(amount) = NanoUsd::parse_usd(text) else { return };
    let written = amount.to_string();
    assert_eq!(written.strip_prefix('$').and_then(NanoUsd::parse_usd), Some(amount), "{text:?}");
}

pub(super) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    key(&text);
    mistyped(&text);
    times(&text);
    amounts(&text);
}
