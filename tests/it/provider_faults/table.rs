//! A fault as a line of a table: what the caller is to see, and what the provider.

use futures_util::StreamExt;

use super::play::{play, text};
use super::room::{FORMATS, Room, Seen};
use crate::support::eventually;
use crate::support::formats::Format;

/// More attempts than this are never made for one request.
pub const MOST_ATTEMPTS: usize = 6;

/// What the caller is told.
#[derive(Clone, Copy, Debug)]
pub enum Told {
    /// The complete answer.
    Whole,
    /// An error with this status and code.
    Error(u16, &'static str),
    /// The beginning of an answer, and at its end an error with this code.
    Broken(&'static str),
}

/// Which answers a fault is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    Both,
    Answers,
    Streams,
}

/// A line. The attempts are those on the books, in their order: `m` for the model with the fault, `w` for the
/// fallback that answers.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub fault: &'static str,
    pub of: Of,
    /// Without a fallback.
    pub alone: (Told, &'static str),
    /// With one.
    pub helped: (Told, &'static str),
}

/// Holds each line for each format, streamed or not, with and without a fallback.
pub async fn hold(lines: &[Line]) {
    hold_for(&FORMATS, lines).await;
}

/// The same for these formats.
pub async fn hold_for(formats: &[(Format, &'static str)], lines: &[Line]) {
    let faults: Vec<&str> = lines.iter().map(|line| line.fault).collect();
    let room = Room::open(&faults, play).await;
    let mut cases = Vec::new();
    for line in lines {
        for &(format, provider) in formats {
            for (stream, helped) in [(false, false), (false, true), (true, false), (true, true)] {
                if line.of != if stream { Of::Answers } else { Of::Streams } {
                    cases.push((line, format, provider, stream, helped));
                }
            }
        }
    }
    let held = futures_util::stream::iter(cases).map(|(line, format, provider, stream, helped)| {
        let room = &room;
        async move {
            let suffix = if helped { "-helped" } else { "" };
            let seen = room.ask(&format!("{provider}/{}{suffix}", line.fault), stream).await;
            let (told, booked) = if helped { line.helped } else { line.alone };
            let case = format!("{provider}/{}{suffix}, streamed: {stream}\n{}", line.fault, seen.raw);
            let is_late = stream && line.fault.starts_with("stream-");
            check(&seen, (told, booked), format, is_late, &case);
        }
    });
    held.buffer_unordered(16).collect::<()>().await;
    eventually("no call goes on", || room.desk.provider.in_flight() == 0).await;
}

/// Holds one case; `is_late` if the fault comes behind the beginning of the answer.
fn check(seen: &Seen, (told, booked): (Told, &str), format: Format, is_late: bool, case: &str) {
    // The caller's view.
    let whole = text(format);
    match told {
        Told::Whole => {
            assert_eq!((seen.status, seen.code.as_str(), seen.text.as_str()), (200, "", whole), "{case}");
            assert_eq!(seen.raw.matches("\"finish_reason\":\"stop\"").count(), 1, "{case}");
        }
        Told::Error(status, code) => {
            assert_eq!((seen.status, seen.code.as_str(), seen.text.as_str()), (status, code, ""), "{case}");
            assert_eq!(seen.retry_after.is_some(), status == 503, "{case}");
        }
        Told::Broken(code) => {
            assert_eq!((seen.status, seen.code.as_str()), (200, code), "{case}");
            assert!(!seen.text.is_empty() && whole.starts_with(&seen.text) && seen.text != whole, "{case}");
            assert_eq!(seen.raw.matches("\"finish_reason\":\"error\"").count(), 1, "{case}");
        }
    }
    // The provider's view, and the books, which agree with it.
    let short = |model: &str| if model == "whole" { "w" } else { "m" };
    let rows: Vec<String> =
        seen.booked.iter().map(|(model, outcome)| format!("{} {outcome}", short(model))).collect();
    assert_eq!(rows.join(", "), booked, "{case}");
    let asked: Vec<&str> = seen.asks.iter().map(|ask| short(&ask.model)).collect();
    let models: Vec<&str> = seen.booked.iter().map(|(model, _)| short(model)).collect();
    // Only what was given up as silent may not have been read by then.
    let read = seen.booked.iter().filter(|(_, outcome)| outcome != "timeout");
    let read: Vec<&str> = read.map(|(model, _)| short(model)).collect();
    assert!(asked == models || asked == read, "{asked:?} of {models:?}: {case}");
    assert!(models.len() <= MOST_ATTEMPTS, "{case}");
    // What is asked again is asked in the same words.
    for ask in &seen.asks {
        let first = seen.asks.iter().find(|first| first.model == ask.model).unwrap();
        assert_eq!(ask.raw, first.raw, "{case}");
    }
    // The headers say how it stood when the answer began, which for a stream is before it breaks.
    let breaks = seen.status == 200 && seen.booked[0].1 != "ok" && is_late;
    let begun = if breaks { 1 } else { models.len() };
    assert_eq!(seen.attempts, Some(u32::try_from(begun).unwrap()), "{case}");
    if seen.status == 200 {
        let (_, model) = seen.model.as_deref().unwrap().split_once('/').unwrap();
        assert_eq!(short(model), models[begun - 1], "{case}");
    }
}
