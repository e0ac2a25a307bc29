//! Faults before the first byte of a response.

use std::time::{Duration, Instant};

use super::fixture::{FORMATS, Fixture};
use super::play::play;
use super::table::{Expected, Line, Mode, check_all};

const RATE_LIMITED: Expected = Expected::Error(503, "provider_rate_limited");
const OVERLOADED: Expected = Expected::Error(503, "provider_overloaded");
const BROKEN: Expected = Expected::Error(502, "provider_error");
const TIMEOUT: Expected = Expected::Error(504, "provider_timeout");
const REJECTED: Expected = Expected::Error(502, "provider_invalid_response");

#[tokio::test]
async fn every_fault_before_the_response_leads_to_an_answer_or_a_clean_error() {
    use Expected::Whole;
    let line =
        |fault, mode, without_fallback, with_fallback| Line { fault, mode, without_fallback, with_fallback };
    check_all(&[
        line(
            "429-asks-for-a-second",
            Mode::Both,
            (Whole, "m rate_limited, m ok"),
            (Whole, "m rate_limited, m ok"),
        ),
        line(
            "429-asks-for-five-minutes",
            Mode::Both,
            (RATE_LIMITED, "m rate_limited"),
            (Whole, "m rate_limited, w ok"),
        ),
        line("429-once", Mode::Both, (Whole, "m rate_limited, m ok"), (Whole, "m rate_limited, m ok")),
        line(
            "429-always",
            Mode::Both,
            (RATE_LIMITED, "m rate_limited, m rate_limited, m rate_limited"),
            (Whole, "m rate_limited, m rate_limited, m rate_limited, w ok"),
        ),
        line("500-once", Mode::Both, (Whole, "m provider_error, m ok"), (Whole, "m provider_error, m ok")),
        line(
            "503-always",
            Mode::Both,
            (OVERLOADED, "m overloaded, m overloaded, m overloaded"),
            (Whole, "m overloaded, m overloaded, m overloaded, w ok"),
        ),
        line("reset-once", Mode::Both, (Whole, "m cut, m ok"), (Whole, "m cut, m ok")),
        line(
            "reset-always",
            Mode::Both,
            (BROKEN, "m cut, m cut, m cut"),
            (Whole, "m cut, m cut, m cut, w ok"),
        ),
        line("silence", Mode::Both, (TIMEOUT, "m timeout"), (Whole, "m timeout, w ok")),
        line("slow-first-token", Mode::Streams, (Whole, "m ok"), (Whole, "m timeout, w ok")),
        line("malformed-answer", Mode::Whole, (REJECTED, "m malformed"), (Whole, "m malformed, w ok")),
    ])
    .await;
}

#[tokio::test]
async fn a_short_retry_after_is_respected_and_a_long_one_passed_on() {
    let fixture = Fixture::open(&["429-asks-for-a-second", "429-asks-for-five-minutes"], play).await;
    for (_, provider) in FORMATS {
        for stream in [false, true] {
            let seen = fixture.ask(&format!("{provider}/429-asks-for-a-second"), stream).await;
            let pause = seen.asks[1].at - seen.asks[0].at;
            assert!(pause >= Duration::from_secs(1), "{provider}: {pause:?}");

            let began = Instant::now();
            let seen = fixture.ask(&format!("{provider}/429-asks-for-five-minutes"), stream).await;
            assert!(began.elapsed() < Duration::from_secs(30), "{provider}");
            assert_eq!((seen.status, seen.retry_after), (503, Some(300)), "{provider}: {}", seen.raw);
        }
    }
}

#[tokio::test]
async fn a_reset_of_a_reused_connection_counts_each_call_once() {
    let fixture = Fixture::open(&["reset-once"], play).await;
    for stream in [false, true, false, true] {
        // Leaves its connection in the pool; the next call reuses it and is reset.
        let warm = fixture.ask("fake/whole", stream).await;
        assert_eq!(warm.recorded, [("whole".to_owned(), "ok".to_owned())]);
        let seen = fixture.ask("fake/reset-once", stream).await;
        assert_eq!((seen.status, seen.asks.len(), seen.attempts), (200, 2, Some(2)), "{}", seen.raw);
    }
}
