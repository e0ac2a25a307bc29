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
async fn an_end_that_was_told_needs_no_mark_where_the_format_tells_it_otherwise() {
    use Told::{Error, Whole};
    let line = |alone, helped| Line { fault: "no-end-mark", of: Of::Streams, alone, helped };
    let (chat, anthropic) = (&FORMATS[..1], &FORMATS[1..2]);
    // The finish reason says that it was all; `[DONE]` only says it again.
    hold_for(chat, &[line((Whole, "m ok"), (Whole, "m ok"))]).await;
    // Here the last event alone says so: a reason without it is an answer that broke off.
    let cut = Error(502, "provider_error");
    hold_for(anthropic, &[line((cut, "m cut, m cut, m cut"), (Whole, "m cut, m cut, m cut, w ok"))]).await;
}
