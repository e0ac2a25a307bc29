//! Faults as lines of a table: what the caller and the provider should see.

use futures_util::StreamExt;

use super::fixture::{FORMATS, Fixture, Seen};
use super::play::{play, text};
use crate::support::eventually;
use crate::support::formats::Format;

/// The most attempts that a request may make.
pub const MOST_ATTEMPTS: usize = 6;

/// What the caller should get.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// The complete response.
    Whole,
    /// An error with this status and code.
    Error(u16, &'static str),
    /// The beginning of a response, followed by an error with this code.
    Broken(&'static str),
}

/// Which kinds of responses a fault can affect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Both,
    Whole,
    Streams,
}

/// A line of the table. The attempts are those of the ledger, in order: `m` is the model with the fault, `w` the
/// fallback that answers.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub fault: &'static str,
    pub mode: Mode,
    pub without_fallback: (Expected, &'static str),
    pub with_fallback: (Expected, &'static str),
}

/// Checks each line for each format, streamed or not, with and without a fallback.
pub async fn check_all(lines: &[Line]) {
    check_formats(&FORMATS, lines).await;
}

/// The same, for these formats.
pub async fn check_formats(formats: &[(Format, &'static str)], lines: &[Line]) {
    let faults: Vec<&str> = lines.iter().map(|line| line.fault).collect();
    let fixture = Fixture::open(&faults, play).await;
    let mut cases = Vec::new();
    for line in lines {
        for &(format, provider) in formats {
            for (stream, with_fallback) in [(false, false), (false, true), (true, false), (true, true)] {
                if line.mode != if stream { Mode::Whole } else { Mode::Streams } {
                    cases.push((line, format, provider, stream, with_fallback));
                }
            }
        }
    }
    let checks = futures_util::stream::iter(cases).map(|(line, format, provider, stream, with_fallback)| {
        let fixture = &fixture;
        async move {
            let suffix = if with_fallback { "-with-fallback" } else { "" };
            let seen = fixture.ask(&format!("{provider}/{}{suffix}", line.fault), stream).await;
            let (expected, recorded) = if with_fallback { line.with_fallback } else { line.without_fallback };
            let case = format!("{provider}/{}{suffix}, streamed: {stream}\n{}", line.fault, seen.raw);
            let is_late = stream && line.fault.starts_with("stream-");
            check(&seen, (expected, recorded), format, is_late, &case);
        }
    });
    checks.buffer_unordered(16).collect::<()>().await;
    eventually("no call is left", || fixture.gateway.provider.in_flight() == 0).await;
}

/// Checks one case; `is_late` if the fault comes after the beginning of the response.
fn check(seen: &Seen, (expected, recorded): (Expected, &str), format: Format, is_late: bool, case: &str) {
    // What the caller got.
    let whole = text(format);
    match expected {
        Expected::Whole => {
            assert_eq!((seen.status, seen.code.as_str(), seen.text.as_str()), (200, "", whole), "{case}");
            assert_eq!(seen.raw.matches("\"finish_reason\":\"stop\"").count(), 1, "{case}");
        }
        Expected::Error(status, code) => {
            assert_eq!((seen.status, seen.code.as_str(), seen.text.as_str()), (status, code, ""), "{case}");
            assert_eq!(seen.retry_after.is_some(), status == 503, "{case}");
        }
        Expected::Broken(code) => {
            assert_eq!((seen.status, seen.code.as_str()), (200, code), "{case}");
            assert!(!seen.text.is_empty() && whole.starts_with(&seen.text) && seen.text != whole, "{case}");
            assert_eq!(seen.raw.matches("\"finish_reason\":\"error\"").count(), 1, "{case}");
        }
    }
    // What the provider received, and the ledger, which must agree with it.
    let short = |model: &str| if model == "whole" { "w" } else { "m" };
    let rows: Vec<String> =
        seen.recorded.iter().map(|(model, outcome)| format!("{} {outcome}", short(model))).collect();
    assert_eq!(rows.join(", "), recorded, "{case}");
    let asked: Vec<&str> = seen.asks.iter().map(|ask| short(&ask.model)).collect();
    let models: Vec<&str> = seen.recorded.iter().map(|(model, _)| short(model)).collect();
    // A call that timed out may not have been read by the provider yet.
    let read = seen.recorded.iter().filter(|(_, outcome)| outcome != "timeout");
    let read: Vec<&str> = read.map(|(model, _)| short(model)).collect();
    assert!(asked == models || asked == read, "{asked:?} instead of {models:?}: {case}");
    assert!(models.len() <= MOST_ATTEMPTS, "{case}");
    // A retry sends the same request.
    for ask in &seen.asks {
        let first = seen.asks.iter().find(|first| first.model == ask.model).unwrap();
        assert_eq!(ask.raw, first.raw, "{case}");
    }
    // The headers describe the attempts until the response started, which for a stream is before it breaks.
    let breaks = seen.status == 200 && seen.recorded[0].1 != "ok" && is_late;
    let started = if breaks { 1 } else { models.len() };
    assert_eq!(seen.attempts, Some(u32::try_from(started).unwrap()), "{case}");
    if seen.status == 200 {
        let (_, model) = seen.model.as_deref().unwrap().split_once('/').unwrap();
        assert_eq!(short(model), models[started - 1], "{case}");
    }
}
