//! Faults inside of an answer that has begun.

use super::room::FORMATS;
use super::table::{Line, Of, Told, hold, hold_for};

#[tokio::test]
async fn every_fault_is_mended_or_told() {
    use Told::{Broken, Whole};
    let line = |fault, of, alone, helped| Line { fault, of, alone, helped };
    hold(&[
        line("stream-cut", Of::Both, (Whole, "m cut, m ok"), (Whole, "m cut, m ok")),
        line(
            "stream-cut-for-ever",
            Of::Streams,
            (Broken("provider_error"), "m cut, m cut, m cut"),
            (Whole, "m cut, m cut, m cut, w ok"),
        ),
        line(
            "stream-stall",
            Of::Streams,
            (Broken("provider_timeout"), "m timeout"),
            (Whole, "m timeout, w ok"),
        ),
        line("malformed-chunk", Of::Streams, (Whole, "m ok"), (Whole, "m ok")),
    ])
    .await;
}

#[tokio::test]
async fn an_answer_with_its_reason_needs_no_mark_of_its_end() {
    use Told::Whole;
    // `[DONE]` and `message_stop` only say again that it was all.
    let line =
        Line { fault: "no-end-mark", of: Of::Streams, alone: (Whole, "m ok"), helped: (Whole, "m ok") };
    hold_for(&FORMATS[..2], &[line]).await;
}
