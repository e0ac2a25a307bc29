//! What a provider says of the request itself: it is too long, it is declined, its form is not taken.

use serde_json::json;

use super::play::{play, text};
use super::room::Room;
use super::table::{Line, Of, Told, hold};
use crate::support::formats::Format;

#[tokio::test]
async fn what_does_not_fit_is_taken_elsewhere_and_what_is_declined_is_not() {
    let line = |fault, alone, helped| Line { fault, of: Of::Both, alone, helped };
    let too_long = Told::Error(400, "context_length_exceeded");
    let refused = (Told::Error(400, "content_filter"), "m refused");
    hold(&[
        line("context-overflow", (too_long, "m context_overflow"), (Told::Whole, "m context_overflow, w ok")),
        line("refusal", refused, refused),
    ])
    .await;
}

/// The turns of a caller who lets the model go on with words put into its mouth.
const PREFILL: [(&str, &str); 1] = [("assistant", "Canb")];

/// A room whose `fake/503-for-ever` has two fallbacks: one that takes no prefill, and `last`.
async fn room(last: &'static str) -> Room {
    let fallbacks = move |config: &mut mk::config::ServerConfig| {
        let chain = ["claude/prefill-is-rejected".to_owned(), format!("fake/{last}")];
        for fault in ["503-for-ever", "stream-cut-for-ever"] {
            let settings = config.providers.iter_mut().find(|provider| provider.name == "fake").unwrap();
            settings.models.get_mut(fault).unwrap().fallbacks = chain.to_vec();
        }
    };
    Room::open_with(&["503-for-ever", "stream-cut-for-ever"], fallbacks, play).await
}

fn row(model: &str, outcome: &str) -> (String, String) {
    (model.to_owned(), outcome.to_owned())
}

#[tokio::test]
async fn a_fallback_that_rejects_prefill_is_passed_over() {
    for stream in [false, true] {
        let room = room("whole").await;
        let body = json!({"model": "fake/503-for-ever", "stream": stream});
        let seen = room.ask_for(body, &PREFILL).await;
        assert_eq!((seen.status, seen.text.as_str()), (200, text(Format::Chat)), "{}", seen.raw);
        assert_eq!(seen.model.as_deref(), Some("fake/whole"));
        assert_eq!(seen.attempts, Some(5));
        let expected = [
            row("503-for-ever", "overloaded"),
            row("503-for-ever", "overloaded"),
            row("503-for-ever", "overloaded"),
            row("prefill-is-rejected", "rejected"),
            row("whole", "ok"),
        ];
        assert_eq!(seen.booked, expected);
        // Each was asked what the caller asked, the prefill included and nothing else added.
        for ask in &seen.asks {
            assert_eq!(ask.body["messages"].as_array().unwrap().len(), 2, "{}", ask.raw);
            assert!(ask.raw.contains("Canb"), "{}", ask.raw);
        }
    }
}

#[tokio::test]
async fn when_nobody_else_answers_the_caller_hears_of_the_model_he_asked_for() {
    for stream in [false, true] {
        let room = room("503-for-ever").await;
        let body = json!({"model": "fake/503-for-ever", "stream": stream});
        let seen = room.ask_for(body, &PREFILL).await;
        assert_eq!((seen.status, seen.code.as_str()), (503, "provider_overloaded"), "{}", seen.raw);
        assert!(seen.retry_after.is_some() && seen.raw.contains("\"provider\":\"fake\""), "{}", seen.raw);
    }
}

#[tokio::test]
async fn the_model_that_was_asked_for_has_the_last_word_on_the_request() {
    let fallback = |config: &mut mk::config::ServerConfig| {
        let settings = config.providers.iter_mut().find(|provider| provider.name == "claude").unwrap();
        settings.models.get_mut("prefill-is-rejected").unwrap().fallbacks = vec!["fake/whole".to_owned()];
    };
    let room = Room::open_with(&["prefill-is-rejected"], fallback, play).await;
    for stream in [false, true] {
        let body = json!({"model": "claude/prefill-is-rejected", "stream": stream});
        let seen = room.ask_for(body, &PREFILL).await;
        assert_eq!((seen.status, seen.asks.len()), (400, 1), "{}", seen.raw);
    }
}

#[tokio::test]
async fn a_stream_that_broke_goes_on_behind_a_fallback_that_rejects_it_and_with_no_prefill() {
    let room = room("whole").await;
    let seen = room.ask("fake/stream-cut-for-ever", true).await;
    assert_eq!((seen.code.as_str(), seen.text.as_str()), ("", text(Format::Chat)), "{}", seen.raw);
    let outcomes: Vec<&str> = seen.booked.iter().map(|(_, outcome)| outcome.as_str()).collect();
    assert_eq!(outcomes, ["cut", "cut", "cut", "rejected", "ok"]);
    // Nobody is made to speak for the model that broke off: many models refuse that.
    for ask in &seen.asks {
        assert_eq!(ask.body["messages"].as_array().unwrap().len(), 1, "{}", ask.raw);
        assert_eq!(ask.body["messages"][0]["role"], "user");
    }
}

#[tokio::test]
async fn a_fallback_that_declines_ends_the_search() {
    let fallbacks = |config: &mut mk::config::ServerConfig| {
        let settings = config.providers.iter_mut().find(|provider| provider.name == "fake").unwrap();
        let chain = ["claude/refusal".to_owned(), "fake/whole".to_owned()];
        settings.models.get_mut("503-for-ever").unwrap().fallbacks = chain.to_vec();
    };
    let room = Room::open_with(&["503-for-ever"], fallbacks, play).await;
    let seen = room.ask("fake/503-for-ever", false).await;
    assert_eq!((seen.status, seen.code.as_str()), (400, "content_filter"), "{}", seen.raw);
    assert_eq!(seen.asks.last().unwrap().model, "refusal");
}
