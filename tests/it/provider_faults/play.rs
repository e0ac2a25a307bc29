//! How a provider of each format plays each fault, and its response when nothing is wrong.

use serde_json::json;

use super::fixture::SHORT;
use crate::support::formats::Format;
use crate::support::provider::{ModelRequest, Reply, StreamStep};
use crate::support::recorded::{events, play as recording};

/// The whole text of an undisturbed response.
pub const fn text(format: Format) -> &'static str {
    match format {
        Format::Chat => "Canberra",
        Format::Anthropic | Format::Google => "Two and two are fömünd 四.",
    }
}

/// The folder of `tests/data/providers` with the recorded responses of a format.
const fn folder(format: Format) -> &'static str {
    match format {
        Format::Chat => "openai",
        Format::Anthropic => "anthropic",
        Format::Google => "google",
    }
}

/// A complete stream as events, and how many of them it takes until some of its text has arrived.
fn beats(format: Format) -> (Vec<StreamStep>, usize) {
    let scenario = if format == Format::Chat { "chat-stream-azure" } else { "chat-stream-text" };
    let first_text = match format {
        Format::Chat => 3,
        Format::Anthropic => 4,
        Format::Google => 1,
    };
    (events(folder(format), scenario).into_iter().map(StreamStep::Send).collect(), first_text)
}

/// The complete response, streamed if the request asked for it.
pub fn whole(ask: &ModelRequest) -> Reply {
    if ask.stream { Reply::Stream(beats(ask.format).0) } else { Reply::Text(text(ask.format).to_owned()) }
}

/// A stream that starts and then continues with `rest`; a response that is not streamed is cut.
fn started(ask: &ModelRequest, rest: &[StreamStep]) -> Reply {
    if !ask.stream {
        return Reply::Cut;
    }
    let (mut beats, first_text) = beats(ask.format);
    beats.truncate(first_text);
    // So that the start reaches the caller before the stream breaks.
    beats.push(StreamStep::APART);
    beats.extend_from_slice(rest);
    Reply::Stream(beats)
}

/// An error response that every format understands.
fn status(status: u16, kind: &str, headers: &[(&'static str, &str)]) -> Reply {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    let error = json!({"type": kind, "message": "not now", "code": status});
    Reply::Raw(status, headers, json!({"type": "error", "error": error}).to_string())
}

/// How a provider with this fault answers the `call`-th call of a request to a model, counted from 0.
pub fn play(fault: &str, call: usize, ask: &ModelRequest) -> Reply {
    match (fault, call) {
        ("429-asks-for-a-second", 0) => status(429, "rate_limit_error", &[("retry-after", "1")]),
        ("429-asks-for-five-minutes", _) => status(429, "rate_limit_error", &[("retry-after", "300")]),
        ("429-once", 0) | ("429-always", _) => status(429, "rate_limit_error", &[]),
        ("500-once", 0) => status(500, "api_error", &[]),
        ("503-always", _) => status(503, "overloaded_error", &[]),
        ("reset-once", 0) | ("reset-always", _) => Reply::Reset,
        ("silence", _) => Reply::Hang,
        ("slow-first-token", _) => {
            let comment = StreamStep::Send(": thinking\n\n".to_owned());
            let mut beats = beats(ask.format).0;
            beats.splice(0..0, [comment, StreamStep::Pause(SHORT * 3)]);
            Reply::Stream(beats)
        }
        ("stream-cut", 0) | ("stream-cut-always", _) => started(ask, &[StreamStep::Cut]),
        ("stream-stall", _) => started(ask, &[StreamStep::Stall]),
        ("malformed-chunk", _) => {
            let mut beats = beats(ask.format).0;
            let garbage = "data: {\"choices\": [{\"del\n\ndata: \u{1}\n\n";
            beats.insert(1, StreamStep::Send(garbage.to_owned()));
            Reply::Stream(beats)
        }
        ("malformed-answer", _) => Reply::Raw(200, Vec::new(), "{\"choices\": [{\"mess".to_owned()),
        ("no-end-mark", _) => {
            let mut beats = beats(ask.format).0;
            beats.pop();
            Reply::Stream(beats)
        }
        ("context-overflow", _) => too_long(ask.format),
        ("refusal", _) => refusal(ask),
        ("prefill-is-rejected", _) => status(400, "invalid_request_error", &[]),
        _ => whole(ask),
    }
}

fn too_long(format: Format) -> Reply {
    let scenario = match format {
        Format::Chat => "400-context-length",
        Format::Anthropic => "400-prompt-too-long",
        Format::Google => "400-context",
    };
    bad_request(recording(folder(format), scenario))
}

fn refusal(ask: &ModelRequest) -> Reply {
    match ask.format {
        Format::Chat => bad_request(recording("openai", "400-content-filter-azure")),
        Format::Anthropic => bad_request(recording("anthropic", "400-output-blocked")),
        Format::Google if ask.stream => recording("google", "chat-stream-blocked-prompt"),
        Format::Google => recording("google", "chat-answer-blocked-prompt"),
    }
}

fn bad_request(recording: Reply) -> Reply {
    match recording {
        Reply::Raw(_, headers, body) => Reply::Raw(400, headers, body),
        other => other,
    }
}
