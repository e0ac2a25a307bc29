//! Rejections of the request itself: it is too long, it is refused, or its form is not accepted.

use serde_json::json;

use super::fixture::Fixture;
use super::play::{play, text};
use super::table::{Expected, Line, Mode, check_all};
use crate::support::formats::Format;

#[tokio::test]
async fn a_request_that_is_too_long_goes_to_a_fallback_but_a_refused_one_does_not() {
    let line = |fault, without_fallback, with_fallback| Line {
        fault,
        mode: Mode::Both,
        without_fallback,
        with_fallback,
    };
    let too_long = Expected::Error(400, "context_length_exceeded");
    let refused = (Expected::Error(400, "content_filter"), "m refused");
    check_all(&[
        line(
            "context-overflow",
            (too_long, "m context_overflow"),
            (Expected::Whole, "m context_overflow, w ok"),
        ),
        line("refusal", refused, refused),
    ])
    .await;
}

/// A prefill: the beginning of the model's own message, which it is to continue.
const PREFILL: [(&str, &str); 1] = [("assistant", "Canb")];

/// A fixture whose `fake/503-always` has two fallbacks: one that rejects a prefill, and `last`.
async fn fixture(last: &'static str) -> Fixture {
    let fallbacks = move |config: &mut mk::config::ServerConfig| {
        let chain = ["claude/prefill-is-rejected".to_owned(), format!("fake/{last}")];
        for fault in ["503-always", "stream-cut-always"] {
            let settings = config.providers.iter_mut().find(|provider| provider.name == "fake").unwrap();
            settings.models.get_mut(fault).unwrap().fallbacks = chain.to_vec();
        }
    };
    Fixture::open_with(&["503-always", "stream-cut-always"], fallbacks, play).await
}

fn row(model: &str, outcome: &str) -> (String, String) {
    (model.to_owned(), outcome.to_owned())
}

#[tokio::test]
async fn a_fallback_that_rejects_a_prefill_is_skipped() {
    for stream in [false, true] {
        let fixture = fixture("whole").await;
        let body = json!({"model": "fake/503-always", "stream": stream});
        let seen = fixture.ask_for(body, &PREFILL).await;
        assert_eq!((seen.status, seen.text.as_str()), (200, text(Format::Chat)), "{}", seen.raw);
        assert_eq!(seen.model.as_deref(), Some("fake/whole"));
        assert_eq!(seen.attempts, Some(5));
        let expected = [
            row("503-always", "overloaded"),
            row("503-always", "overloaded"),
            row("503-always", "overloaded"),
            row("prefill-is-rejected", "rejected"),
            row("whole", "ok"),
        ];
        assert_eq!(seen.recorded, expected);
        // Each got what the caller sent, with the prefill and nothing added.
        for ask in &seen.asks {
            assert_eq!(ask.body["messages"].as_array().unwrap().len(), 2, "{}", ask.raw);
            assert!(ask.raw.contains("Canb"), "{}", ask.raw);
        }
    }
}

#[tokio::test]
async fn if_no_fallback_answers_the_caller_gets_the_error_of_the_requested_model() {
    for stream in [false, true] {
        let fixture = fixture("503-always").await;
        let body = json!({"model": "fake/503-always", "stream": stream});
        let seen = fixture.ask_for(body, &PREFILL).await;
        assert_eq!((seen.status, seen.code.as_str()), (503, "provider_overloaded"), "{}", seen.raw);
        assert!(seen.retry_after.is_some() && seen.raw.contains("\"provider\":\"fake\""), "{}", seen.raw);
    }
}

#[tokio::test]
async fn a_request_rejected_by_the_requested_model_goes_to_no_fallback() {
    let fallback = |config: &mut mk::config::ServerConfig| {
        let settings = config.providers.iter_mut().find(|provider| provider.name == "claude").unwrap();
        settings.models.get_mut("prefill-is-rejected").unwrap().fallbacks = vec!["fake/whole".to_owned()];
    };
    let fixture = Fixture::open_with(&["prefill-is-rejected"], fallback, play).await;
    for stream in [false, true] {
        let body = json!({"model": "claude/prefill-is-rejected", "stream": stream});
        let seen = fixture.ask_for(body, &PREFILL).await;
        assert_eq!((seen.status, seen.asks.len()), (400, 1), "{}", seen.raw);
    }
}

#[tokio::test]
async fn a_broken_stream_is_resumed_by_the_next_fallback_without_a_prefill() {
    let fixture = fixture("whole").await;
    let seen = fixture.ask("fake/stream-cut-always", true).await;
    assert_eq!((seen.code.as_str(), seen.text.as_str()), ("", text(Format::Chat)), "{}", seen.raw);
    let outcomes: Vec<&str> = seen.recorded.iter().map(|(_, outcome)| outcome.as_str()).collect();
    assert_eq!(outcomes, ["cut", "cut", "cut", "rejected", "ok"]);
    // The broken response is not sent as a prefill, which many models reject.
    for ask in &seen.asks {
        assert_eq!(ask.body["messages"].as_array().unwrap().len(), 1, "{}", ask.raw);
        assert_eq!(ask.body["messages"][0]["role"], "user");
    }
}

#[tokio::test]
async fn a_refusal_by_a_fallback_is_final() {
    let fallbacks = |config: &mut mk::config::ServerConfig| {
        let settings = config.providers.iter_mut().find(|provider| provider.name == "fake").unwrap();
        let chain = ["claude/refusal".to_owned(), "fake/whole".to_owned()];
        settings.models.get_mut("503-always").unwrap().fallbacks = chain.to_vec();
    };
    let fixture = Fixture::open_with(&["503-always"], fallbacks, play).await;
    let seen = fixture.ask("fake/503-always", false).await;
    assert_eq!((seen.status, seen.code.as_str()), (400, "content_filter"), "{}", seen.raw);
    assert_eq!(seen.asks.last().unwrap().model, "refusal");
}
