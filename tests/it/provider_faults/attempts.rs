//! How often and how fast a provider is asked, whatever its faults are together.

use std::time::Duration;

use futures_util::StreamExt;
use mk::config::ServerConfig;

use super::play::{play, text, whole};
use super::room::{Room, Seen};
use super::table::MOST_ATTEMPTS;
use crate::support::formats::Format;
use crate::support::provider::{Ask, Turn};

/// Gives a model of the provider `fake` these fallbacks.
fn chain(model: &'static str, fallbacks: &'static [&'static str]) -> impl FnOnce(&mut ServerConfig) {
    move |config| {
        let fake = config.providers.iter_mut().find(|provider| provider.name == "fake").unwrap();
        let settings = fake.models.get_mut(model).unwrap();
        settings.fallbacks = fallbacks.iter().map(|id| (*id).to_owned()).collect();
    }
}

/// The models that were asked, in their order.
fn asked(seen: &Seen) -> Vec<&str> {
    seen.asks.iter().map(|ask| ask.model.as_str()).collect()
}

#[tokio::test]
async fn many_fallbacks_with_many_retries_make_six_attempts_and_everybody_is_asked() {
    let fallbacks = &["claude/503-for-ever", "gemini/503-for-ever", "fake/500-for-ever"];
    let script = |fault: &str, call, ask: &Ask| match fault {
        "500-for-ever" => play("500-once", 0, ask),
        other => play(other, call, ask),
    };
    let room = Room::open_with(&["503-for-ever"], chain("503-for-ever", fallbacks), script).await;
    for stream in [false, true] {
        let seen = room.ask("fake/503-for-ever", stream).await;
        assert_eq!((seen.status, seen.code.as_str()), (503, "provider_overloaded"), "{}", seen.raw);
        assert_eq!((seen.asks.len(), seen.booked.len(), seen.attempts), (6, 6, Some(6)));
        // A model is not tried again at the cost of one that has not been asked at all.
        let formats: Vec<Format> = seen.asks.iter().map(|ask| ask.format).collect();
        let (chat, anthropic, google) = (Format::Chat, Format::Anthropic, Format::Google);
        assert_eq!(formats, [chat, chat, chat, anthropic, google, chat]);
        assert_eq!(asked(&seen)[5], "500-for-ever");
    }
}

#[tokio::test]
async fn the_last_of_many_fallbacks_still_answers() {
    let fallbacks = &["claude/503-for-ever", "gemini/503-for-ever", "claude/429-for-ever", "fake/whole"];
    let room = Room::open_with(&["503-for-ever"], chain("503-for-ever", fallbacks), play).await;
    for stream in [false, true] {
        let seen = room.ask("fake/503-for-ever", stream).await;
        assert_eq!((seen.status, seen.text.as_str()), (200, text(Format::Chat)), "{}", seen.raw);
        assert_eq!((seen.asks.len(), seen.model.as_deref()), (6, Some("fake/whole")));
    }
}

#[tokio::test]
async fn a_model_may_be_tried_often_but_a_request_has_six_attempts() {
    let often = |config: &mut ServerConfig| config.providers.iter_mut().for_each(|one| one.retries = 10);
    // Each asks for a pause of its own, so that ten would take no longer than six.
    let script = |fault: &str, call, ask: &Ask| match fault {
        "quick-429-for-ever" => {
            Turn::Raw(429, vec![("retry-after-ms", "1".to_owned())], "{\"error\":{}}".to_owned())
        }
        other => play(other, call, ask),
    };
    let room = Room::open_with(&["quick-429-for-ever", "stream-cut-for-ever"], often, script).await;
    for stream in [false, true] {
        let seen = room.ask("fake/quick-429-for-ever", stream).await;
        assert_eq!((seen.status, seen.asks.len(), seen.attempts), (503, MOST_ATTEMPTS, Some(6)));
        // The fallback keeps its one.
        let seen = room.ask("fake/quick-429-for-ever-helped", stream).await;
        assert_eq!((seen.status, seen.asks.len(), seen.attempts), (200, MOST_ATTEMPTS, Some(6)));
    }
    // Those that go on where a stream broke are of the six.
    let seen = room.ask("fake/stream-cut-for-ever", true).await;
    assert_eq!((seen.code.as_str(), seen.asks.len()), ("provider_error", MOST_ATTEMPTS), "{}", seen.raw);
    let seen = room.ask("fake/stream-cut-for-ever-helped", true).await;
    assert_eq!((seen.code.as_str(), seen.text.as_str()), ("", text(Format::Chat)), "{}", seen.raw);
    assert_eq!((asked(&seen).len(), *asked(&seen).last().unwrap()), (MOST_ATTEMPTS, "whole"));
}

#[tokio::test]
async fn attempts_before_the_first_byte_and_behind_it_are_six_together() {
    // Two calls until a stream begins, and whatever is left for those that go on with it.
    let fallbacks = &["fake/stream-cut-for-ever", "claude/503-for-ever"];
    let script = |fault: &str, call, ask: &Ask| match (fault, call) {
        ("late-and-cut", 0) => play("500-once", 0, ask),
        ("late-and-cut", _) => play("stream-cut-for-ever", call, ask),
        (other, _) => play(other, call, ask),
    };
    let room = Room::open_with(&["late-and-cut"], chain("late-and-cut", fallbacks), script).await;
    let seen = room.ask("fake/late-and-cut", true).await;
    assert_eq!((seen.status, seen.code.as_str()), (200, "provider_error"), "{}", seen.raw);
    assert_eq!((seen.attempts, seen.asks.len(), seen.booked.len()), (Some(2), 6, 6));
    let expected = ["late-and-cut", "late-and-cut", "late-and-cut", "stream-cut-for-ever"];
    assert_eq!(asked(&seen)[..4], expected);
    assert_eq!(seen.asks[5].format, Format::Anthropic, "each was asked");
}

/// The pauses before the first and the second retry of many requests at once.
async fn pauses(room: &Room, stream: bool) -> (Duration, Duration) {
    let requests = futures_util::stream::iter(0..60).map(|_| room.ask("fake/503-for-ever", stream));
    let all: Vec<Seen> = requests.buffer_unordered(60).collect().await;
    let pause = |seen: &Seen, nth: usize| seen.asks[nth].at - seen.asks[nth - 1].at;
    (all.iter().map(|seen| pause(seen, 1)).sum(), all.iter().map(|seen| pause(seen, 2)).sum())
}

#[tokio::test]
async fn pauses_between_attempts_grow_and_are_spread() {
    let room = Room::open(&["503-for-ever"], play).await;
    for stream in [false, true] {
        // Drawn from up to 250 ms and from up to 500 ms: of sixty requests 7.5 s and 15 s together, give or take one.
        // A machine that is busy only makes them longer; the second bound is beyond what pauses like the first make.
        let (first, second) = pauses(&room, stream).await;
        assert!(first >= Duration::from_millis(4_500), "{first:?}");
        assert!(second >= Duration::from_millis(9_500), "{second:?}");
    }
}

#[tokio::test]
async fn a_provider_that_flaps_costs_a_retry_and_no_answer() {
    // Every second call fails, whoever makes it; five failures in a row would pause the model.
    let count = std::sync::atomic::AtomicUsize::new(0);
    let script = move |_: &str, _, ask: &Ask| {
        let nth = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        if nth.is_multiple_of(2) { play("500-once", 0, ask) } else { whole(ask) }
    };
    let breaker = |config: &mut ServerConfig| {
        config.providers.iter_mut().for_each(|provider| provider.breaker_failures = 5);
    };
    let room = Room::open_with(&["flaps"], breaker, script).await;
    for nth in 0..20 {
        let seen = room.ask("fake/flaps", nth % 3 == 0).await;
        assert_eq!((seen.status, seen.text.as_str()), (200, text(Format::Chat)), "{}", seen.raw);
        assert_eq!((seen.attempts, seen.asks.len()), (Some(2), 2));
    }
    assert!(
        room.desk.server.app.configured().gateway.breakers().is_empty(),
        "what forgives at once is never paused"
    );
}
