//! How often and how fast providers are called, whatever combination of faults they have.

use std::time::Duration;

use futures_util::StreamExt;
use mk::config::ServerConfig;

use super::fixture::{Fixture, Seen};
use super::play::{play, text, whole};
use super::table::MOST_ATTEMPTS;
use crate::support::formats::Format;
use crate::support::provider::{ModelRequest, Reply};

/// Gives a model of the provider `fake` these fallbacks.
fn chain(model: &'static str, fallbacks: &'static [&'static str]) -> impl FnOnce(&mut ServerConfig) {
    move |config| {
        let fake = config.providers.iter_mut().find(|provider| provider.name == "fake").unwrap();
        let settings = fake.models.get_mut(model).unwrap();
        settings.fallbacks = fallbacks.iter().map(|id| (*id).to_owned()).collect();
    }
}

/// The models that were called, in order.
fn called(seen: &Seen) -> Vec<&str> {
    seen.asks.iter().map(|ask| ask.model.as_str()).collect()
}

#[tokio::test]
async fn many_fallbacks_with_retries_share_six_attempts_and_each_is_called() {
    let fallbacks = &["claude/503-always", "gemini/503-always", "fake/500-always"];
    let script = |fault: &str, call, ask: &ModelRequest| match fault {
        "500-always" => play("500-once", 0, ask),
        other => play(other, call, ask),
    };
    let fixture = Fixture::open_with(&["503-always"], chain("503-always", fallbacks), script).await;
    for stream in [false, true] {
        let seen = fixture.ask("fake/503-always", stream).await;
        assert_eq!((seen.status, seen.code.as_str()), (503, "provider_overloaded"), "{}", seen.raw);
        assert_eq!((seen.asks.len(), seen.recorded.len(), seen.attempts), (6, 6, Some(6)));
        // A model is not retried if that would use up the attempt of a model that has not been called at all.
        let formats: Vec<Format> = seen.asks.iter().map(|ask| ask.format).collect();
        let (chat, anthropic, google) = (Format::Chat, Format::Anthropic, Format::Google);
        assert_eq!(formats, [chat, chat, chat, anthropic, google, chat]);
        assert_eq!(called(&seen)[5], "500-always");
    }
}

#[tokio::test]
async fn the_last_of_many_fallbacks_can_still_answer() {
    let fallbacks = &["claude/503-always", "gemini/503-always", "claude/429-always", "fake/whole"];
    let fixture = Fixture::open_with(&["503-always"], chain("503-always", fallbacks), play).await;
    for stream in [false, true] {
        let seen = fixture.ask("fake/503-always", stream).await;
        assert_eq!((seen.status, seen.text.as_str()), (200, text(Format::Chat)), "{}", seen.raw);
        assert_eq!((seen.asks.len(), seen.model.as_deref()), (6, Some("fake/whole")));
    }
}

#[tokio::test]
async fn a_request_has_at_most_six_attempts_however_many_retries_are_configured() {
    let often =
        |config: &mut ServerConfig| config.providers.iter_mut().for_each(|one| one.call_policy.retries = 10);
    // With `retry-after-ms: 1` there is hardly a pause, so that ten attempts would take no longer than six.
    let script = |fault: &str, call, ask: &ModelRequest| match fault {
        "quick-429-always" => {
            Reply::Raw(429, vec![("retry-after-ms", "1".to_owned())], "{\"error\":{}}".to_owned())
        }
        other => play(other, call, ask),
    };
    let fixture = Fixture::open_with(&["quick-429-always", "stream-cut-always"], often, script).await;
    for stream in [false, true] {
        let seen = fixture.ask("fake/quick-429-always", stream).await;
        assert_eq!((seen.status, seen.asks.len(), seen.attempts), (503, MOST_ATTEMPTS, Some(6)));
        // One attempt is reserved for the fallback.
        let seen = fixture.ask("fake/quick-429-always-with-fallback", stream).await;
        assert_eq!((seen.status, seen.asks.len(), seen.attempts), (200, MOST_ATTEMPTS, Some(6)));
    }
    // Attempts that resume a broken stream count towards the six.
    let seen = fixture.ask("fake/stream-cut-always", true).await;
    assert_eq!((seen.code.as_str(), seen.asks.len()), ("provider_error", MOST_ATTEMPTS), "{}", seen.raw);
    let seen = fixture.ask("fake/stream-cut-always-with-fallback", true).await;
    assert_eq!((seen.code.as_str(), seen.text.as_str()), ("", text(Format::Chat)), "{}", seen.raw);
    assert_eq!((called(&seen).len(), *called(&seen).last().unwrap()), (MOST_ATTEMPTS, "whole"));
}

#[tokio::test]
async fn attempts_before_and_after_the_first_byte_share_the_six() {
    // Two calls until a stream starts, and the remaining attempts to resume it.
    let fallbacks = &["fake/stream-cut-always", "claude/503-always"];
    let script = |fault: &str, call, ask: &ModelRequest| match (fault, call) {
        ("late-and-cut", 0) => play("500-once", 0, ask),
        ("late-and-cut", _) => play("stream-cut-always", call, ask),
        (other, _) => play(other, call, ask),
    };
    let fixture = Fixture::open_with(&["late-and-cut"], chain("late-and-cut", fallbacks), script).await;
    let seen = fixture.ask("fake/late-and-cut", true).await;
    assert_eq!((seen.status, seen.code.as_str()), (200, "provider_error"), "{}", seen.raw);
    assert_eq!((seen.attempts, seen.asks.len(), seen.recorded.len()), (Some(2), 6, 6));
    let expected = ["late-and-cut", "late-and-cut", "late-and-cut", "stream-cut-always"];
    assert_eq!(called(&seen)[..4], expected);
    assert_eq!(seen.asks[5].format, Format::Anthropic, "every model was called");
}

/// The total pauses before the first and before the second retry of many concurrent requests.
async fn pauses(fixture: &Fixture, stream: bool) -> (Duration, Duration) {
    let requests = futures_util::stream::iter(0..60).map(|_| fixture.ask("fake/503-always", stream));
    let all: Vec<Seen> = requests.buffer_unordered(60).collect().await;
    let pause = |seen: &Seen, nth: usize| seen.asks[nth].at - seen.asks[nth - 1].at;
    (all.iter().map(|seen| pause(seen, 1)).sum(), all.iter().map(|seen| pause(seen, 2)).sum())
}

#[tokio::test]
async fn pauses_between_attempts_grow_and_are_random() {
    let fixture = Fixture::open(&["503-always"], play).await;
    for stream in [false, true] {
        // Drawn from up to 250 ms and up to 500 ms: over sixty requests about 7.5 s and 15 s in total, give or take 1
        // s. A busy machine only lengthens them; the second bound is beyond what pauses like the first would add up to.
        let (first, second) = pauses(&fixture, stream).await;
        assert!(first >= Duration::from_millis(4_500), "{first:?}");
        assert!(second >= Duration::from_millis(9_500), "{second:?}");
    }
}

#[tokio::test]
async fn a_flapping_provider_costs_a_retry_but_no_response() {
    // Every second call fails, whichever request it belongs to; five consecutive failures would pause the model.
    let count = std::sync::atomic::AtomicUsize::new(0);
    let script = move |_: &str, _, ask: &ModelRequest| {
        let nth = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        if nth.is_multiple_of(2) { play("500-once", 0, ask) } else { whole(ask) }
    };
    let breaker = |config: &mut ServerConfig| {
        config.providers.iter_mut().for_each(|provider| provider.call_policy.breaker_failures = 5);
    };
    let fixture = Fixture::open_with(&["flaps"], breaker, script).await;
    for nth in 0..20 {
        let seen = fixture.ask("fake/flaps", nth % 3 == 0).await;
        assert_eq!((seen.status, seen.text.as_str()), (200, text(Format::Chat)), "{}", seen.raw);
        assert_eq!((seen.attempts, seen.asks.len()), (Some(2), 2));
    }
    assert!(
        fixture.gateway.server.app.configured().gateway.breakers().is_empty(),
        "a model that recovers at once is never paused"
    );
}
