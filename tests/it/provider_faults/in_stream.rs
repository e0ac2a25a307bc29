//! Faults within a response that has started.

use super::fixture::FORMATS;
use super::table::{Expected, Line, Mode, check_all, check_formats};

#[tokio::test]
async fn every_fault_within_a_response_is_recovered_or_reported() {
    use Expected::{Broken, Whole};
    let line =
        |fault, mode, without_fallback, with_fallback| Line { fault, mode, without_fallback, with_fallback };
    check_all(&[
        line("stream-cut", Mode::Both, (Whole, "m cut, m ok"), (Whole, "m cut, m ok")),
        line(
            "stream-cut-always",
            Mode::Streams,
            (Broken("provider_error"), "m cut, m cut, m cut"),
            (Whole, "m cut, m cut, m cut, w ok"),
        ),
        line(
            "stream-stall",
            Mode::Streams,
            (Broken("provider_timeout"), "m timeout"),
            (Whole, "m timeout, w ok"),
        ),
        line("malformed-chunk", Mode::Streams, (Whole, "m ok"), (Whole, "m ok")),
    ])
    .await;
}

#[tokio::test]
async fn a_stream_with_a_finish_reason_needs_no_end_marker() {
    use Expected::Whole;
    // After a finish reason, `[DONE]` and `message_stop` say nothing new.
    let line = Line {
        fault: "no-end-mark",
        mode: Mode::Streams,
        without_fallback: (Whole, "m ok"),
        with_fallback: (Whole, "m ok"),
    };
    check_formats(&FORMATS[..2], &[line]).await;
}
