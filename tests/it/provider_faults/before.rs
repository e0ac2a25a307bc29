//! Faults before the first byte of an answer.

use std::time::{Duration, Instant};

use super::play::play;
use super::room::{FORMATS, Room};
use super::table::{Line, Of, Told, hold};

const RATE_LIMITED: Told = Told::Error(503, "provider_rate_limited");
const OVERLOADED: Told = Told::Error(503, "provider_overloaded");
const BROKEN: Told = Told::Error(502, "provider_error");
const TIMEOUT: Told = Told::Error(504, "provider_timeout");
const REJECTED: Told = Told::Error(502, "provider_invalid_response");

#[tokio::test]
async fn every_fault_is_answered_or_told() {
    use Told::Whole;
    let line = |fault, of, alone, helped| Line { fault, of, alone, helped };
    hold(&[
        line(
            "429-asks-for-a-second",
            Of::Both,
            (Whole, "m rate_limited, m ok"),
            (Whole, "m rate_limited, m ok"),
        ),
        line(
            "429-asks-for-five-minutes",
            Of::Both,
            (RATE_LIMITED, "m rate_limited"),
            (Whole, "m rate_limited, w ok"),
        ),
        line("429-once", Of::Both, (Whole, "m rate_limited, m ok"), (Whole, "m rate_limited, m ok")),
        line(
            "429-for-ever",
            Of::Both,
            (RATE_LIMITED, "m rate_limited, m rate_limited, m rate_limited"),
            (Whole, "m rate_limited, m rate_limited, m rate_limited, w ok"),
        ),
        line("500-once", Of::Both, (Whole, "m provider_error, m ok"), (Whole, "m provider_error, m ok")),
        line(
            "503-for-ever",
            Of::Both,
            (OVERLOADED, "m overloaded, m overloaded, m overloaded"),
            (Whole, "m overloaded, m overloaded, m overloaded, w ok"),
        ),
        line("reset-once", Of::Both, (Whole, "m cut, m ok"), (Whole, "m cut, m ok")),
        line(
            "reset-for-ever",
            Of::Both,
            (BROKEN, "m cut, m cut, m cut"),
            (Whole, "m cut, m cut, m cut, w ok"),
        ),
        line("silence", Of::Both, (TIMEOUT, "m timeout"), (Whole, "m timeout, w ok")),
        line("slow-first-token", Of::Streams, (Whole, "m ok"), (Whole, "m timeout, w ok")),
        line("malformed-answer", Of::Answers, (REJECTED, "m malformed"), (Whole, "m malformed, w ok")),
    ])
    .await;
}

#[tokio::test]
async fn a_wait_that_the_provider_asks_for_is_kept_to_and_a_long_one_is_passed_on() {
    let room = Room::open(&["429-asks-for-a-second", "429-asks-for-five-minutes"], play).await;
    for (_, provider) in FORMATS {
        for stream in [false, true] {
            let seen = room.ask(&format!("{provider}/429-asks-for-a-second"), stream).await;
            let pause = seen.asks[1].at - seen.asks[0].at;
            assert!(pause >= Duration::from_secs(1), "{provider}: {pause:?}");

            let began = Instant::now();
            let seen = room.ask(&format!("{provider}/429-asks-for-five-minutes"), stream).await;
            assert!(began.elapsed() < Duration::from_secs(30), "{provider}");
            assert_eq!((seen.status, seen.retry_after), (503, Some(300)), "{provider}: {}", seen.raw);
        }
    }
}

#[tokio::test]
async fn a_connection_that_is_reset_when_it_is_used_again_counts_each_call_once() {
    let room = Room::open(&["reset-once"], play).await;
    for stream in [false, true, false, true] {
        // It leaves its connection for the next call, which is reset on it.
        let warm = room.ask("fake/whole", stream).await;
        assert_eq!(warm.booked, [("whole".to_owned(), "ok".to_owned())]);
        let seen = room.ask("fake/reset-once", stream).await;
        assert_eq!((seen.status, seen.asks.len(), seen.attempts), (200, 2, Some(2)), "{}", seen.raw);
    }
}
