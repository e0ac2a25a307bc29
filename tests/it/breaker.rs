//! Circuit breakers: a target that keeps failing is paused, then probed with one call at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mk::api::Service;
use mk::inference::{BreakerReport, BreakerState};
use serde_json::{Value, json};

use crate::support::chat::{Gateway, chunks, config, gateway_with, hello, hello_stream, text_of};
use crate::support::events::Events;
use crate::support::eventually;
use crate::support::panel::{self, finds_eiffel};
use crate::support::provider::{
    FakeProvider, ModelRequest, Reply, StreamStep, role_chunk, stream, text_chunk,
};
use crate::support::scrape::scrape;
use crate::support::server::Setup;

/// The breaker of `fake/m` opens at the third failure, for longer than any test runs.
const LONG: &str = "breaker_failures = 3\nbreaker_pause = \"5m\"";
/// As [`LONG`], but for a moment only.
const SHORT: &str = "breaker_failures = 3\nbreaker_pause = \"150ms\"";
const FALLBACK: &str = "[inference.fallbacks]\n\"fake/m\" = [\"fake/n\"]\n";

/// Whether `m` fails; can be changed during a test.
#[derive(Clone)]
struct Switch(Arc<AtomicBool>);

impl Switch {
    fn on() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    fn turn(&self, fails: bool) {
        self.0.store(fails, Ordering::SeqCst);
    }

    /// `m` fails while the switch is on; all other models answer.
    fn script(&self) -> impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static {
        let fails = self.0.clone();
        move |ask| match ask.model.as_str() {
            "m" if fails.load(Ordering::SeqCst) => Reply::status(500, &json!({})),
            _ if ask.body["stream"] == true => stream(&["hello"]),
            _ => Reply::Text("hello".to_owned()),
        }
    }
}

async fn status(gateway: &Gateway) -> u16 {
    gateway.ask(&hello()).await.status().as_u16()
}

/// Sends failing requests until the breaker of `m` is open.
async fn open(gateway: &Gateway) {
    for _ in 0..3 {
        status(gateway).await;
    }
    assert!(state(gateway).is_some_and(|state| state != BreakerState::Closed));
}

/// The state of the breaker of `m`, if it has recorded any failure.
fn state(gateway: &Gateway) -> Option<BreakerState> {
    let reports = gateway.server.app.configured().gateway.breakers();
    reports.into_iter().find(|report| report.model.as_deref() == Some("m")).map(|report| report.state)
}

async fn half_open(gateway: &Gateway) {
    eventually("the pause ends", || state(gateway) == Some(BreakerState::HalfOpen)).await;
}

#[tokio::test]
async fn responses_too_large_because_of_the_request_open_no_breaker_and_are_billed() {
    let huge = " ".repeat(9 << 20);
    let gateway =
        gateway_with(LONG, "", |setup| setup, move |_| Reply::Raw(200, Vec::new(), huge.clone())).await;
    let mut body = hello();
    body["n"] = json!(128);
    for _ in 0..3 {
        let (_, refused) = gateway.json(&body).await;
        assert_eq!(refused["code"], "provider_invalid_response");
        assert!(refused["message"].as_str().unwrap().contains("ask for fewer choices"), "{refused}");
    }
    assert_eq!(state(&gateway), None);
    // Estimated at a quarter of a token per byte, capped at what the choices may contain.
    let row = gateway.rows().remove(0);
    assert_eq!((&*row.outcome, row.prompt_tokens, row.completion_tokens), ("too_large", 6, 9 << 18));
    body["max_tokens"] = json!(10);
    gateway.json(&body).await;
    assert_eq!(gateway.rows()[3].completion_tokens, 1280);
}

#[tokio::test]
async fn a_model_that_keeps_failing_is_paused_and_the_response_says_for_how_long() {
    let gateway = gateway_with(LONG, "", |setup| setup, Switch::on().script()).await;
    for _ in 0..3 {
        assert_eq!(gateway.json(&hello()).await.1["code"], "provider_error");
    }
    let booked = gateway.rows().len();
    for body in [hello(), hello_stream()] {
        let began = Instant::now();
        let response = gateway.ask(&body).await;
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["x-mk-attempts"], "0");
        let wait: u64 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((200..=300).contains(&wait), "{wait}");
        let error: Value = response.json().await.unwrap();
        assert_eq!((&error["code"], &error["provider"]), (&json!("no_provider_available"), &json!("fake")));
        let expected = format!(
            "fake/m is paused after repeated failures (the last: provider_error); try again in {wait} s"
        );
        assert_eq!(error["message"], expected);
    }
    assert_eq!(gateway.provider.requests().len(), 3);
    assert_eq!(gateway.rows().len(), booked, "a call that was not made is not booked");
    let report =
        BreakerReport { provider: "fake".to_owned(), model: Some("m".to_owned()), state: BreakerState::Open };
    assert_eq!(gateway.server.app.configured().gateway.breakers(), [report]);
    scrape(&gateway.server).await.assert(&[(r#"mk_breaker_state{provider="fake",model="m"}"#, 2.0)]);
    // The provider's other models are unaffected.
    assert_eq!(gateway.ask(&json!({"model": "fake/n", "messages": hello()["messages"]})).await.status(), 200);
}

#[tokio::test]
async fn the_fallback_answers_immediately_while_the_breaker_is_open() {
    // Until the breaker opens, the silent model is waited for.
    let more = format!("[inference]\nfirst_token_timeout_with_fallback = \"2s\"\n{FALLBACK}");
    let gateway = gateway_with(
        LONG,
        &more,
        |setup| setup,
        |ask| match ask.model.as_str() {
            "m" => Reply::Hang,
            _ => stream(&["hello"]),
        },
    )
    .await;
    for expected in ["2", "2", "2", "1", "1"] {
        let response = gateway.ask(&hello_stream()).await;
        assert_eq!(response.headers()["x-mk-attempts"], expected);
        assert_eq!(response.headers()["x-mk-model"], "fake/n");
        assert_eq!(text_of(&chunks(&response.text().await.unwrap()), 0), "hello");
    }
    // A call may have been cancelled before the provider read it.
    assert!((1..=3).contains(&gateway.provider.requests_for("m").len()));
}

#[tokio::test]
async fn a_paused_fallback_does_not_shorten_the_first_token_timeout() {
    let more = format!("[inference]\nfirst_token_timeout_with_fallback = \"2s\"\n{FALLBACK}");
    let slow = |ask: &ModelRequest| match ask.model.as_str() {
        "m" => stream(&["slow"]).after(Duration::from_secs(4)),
        _ => Reply::status(500, &json!({})),
    };
    let of_provider = "breaker_pause = \"5m\"\nbreaker_failures = 0\n\
                       [providers.fake.models.n]\nbreaker_failures = 1";
    let gateway = gateway_with(of_provider, &more, |setup| setup, slow).await;
    // Until its breaker opens, the fallback counts as available.
    assert_eq!(gateway.ask(&hello_stream()).await.status(), 504);
    assert_eq!(text_of(&chunks(&gateway.stream(&hello_stream()).await), 0), "slow");
}

#[tokio::test]
async fn a_successful_probe_closes_the_breaker_and_a_failed_one_doubles_the_pause() {
    let switch = Switch::on();
    let gateway = gateway_with(SHORT, "", |setup| setup, switch.script()).await;
    open(&gateway).await;
    let mut asked = 3;
    // Up to a quarter of each is left to chance.
    for pause in [225, 450] {
        half_open(&gateway).await;
        let began = Instant::now();
        assert_eq!(status(&gateway).await, 502);
        asked += 1;
        assert_eq!(gateway.provider.requests().len(), asked);
        half_open(&gateway).await;
        assert!(began.elapsed() >= Duration::from_millis(pause), "{:?}", began.elapsed());
    }
    switch.turn(false);
    for _ in 0..4 {
        assert_eq!(status(&gateway).await, 200);
    }
    assert_eq!((state(&gateway), gateway.provider.requests().len()), (None, asked + 4));
    // The failure count starts again from zero.
    switch.turn(true);
    assert_eq!((status(&gateway).await, status(&gateway).await), (502, 502));
    assert_eq!(state(&gateway), Some(BreakerState::Closed));
}

#[tokio::test]
async fn only_one_of_many_concurrent_requests_is_the_probe() {
    let count = AtomicUsize::new(0);
    let gateway = gateway_with(
        SHORT,
        "",
        |setup| setup,
        move |_| match count.fetch_add(1, Ordering::SeqCst) {
            0..3 => Reply::status(500, &json!({})),
            _ => Reply::Text("hello".to_owned()).after(Duration::from_secs(2)),
        },
    )
    .await;
    open(&gateway).await;
    half_open(&gateway).await;
    let statuses = futures_util::future::join_all((0..10).map(|_| status(&gateway))).await;
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 503).count(), 9, "{statuses:?}");
    assert_eq!(gateway.provider.requests().len(), 4);
}

#[tokio::test]
async fn a_probe_abandoned_by_its_caller_makes_room_for_the_next() {
    let count = AtomicUsize::new(0);
    let gateway = gateway_with(
        SHORT,
        "",
        |setup| setup,
        move |_| match count.fetch_add(1, Ordering::SeqCst) {
            0..3 => Reply::status(500, &json!({})),
            3 => Reply::Hang,
            _ => Reply::Text("hello".to_owned()),
        },
    )
    .await;
    open(&gateway).await;
    half_open(&gateway).await;
    let leaving = tokio::spawn(gateway.post(hello().to_string()).send());
    eventually("the probe is in flight", || gateway.provider.requests().len() == 4).await;
    assert_eq!(status(&gateway).await, 503);
    leaving.abort();
    eventually("the probe is cancelled", || gateway.provider.in_flight() == 0).await;
    assert_eq!(status(&gateway).await, 200);
    assert_eq!(state(&gateway), None);
}

#[tokio::test]
async fn failures_caused_by_callers_do_not_count_towards_the_breaker() {
    for (code, body) in [
        (400, json!({"error": {"code": "content_filter"}})),
        (400, json!({"error": {"message": "no such field"}})),
        (400, json!({"error": {"code": "context_length_exceeded"}})),
        (404, json!({})),
        (429, json!({})),
    ] {
        let switch = AtomicUsize::new(0);
        let told = body.clone();
        let gateway = gateway_with(
            LONG,
            "",
            |setup| setup,
            move |_| match switch.fetch_add(1, Ordering::SeqCst) {
                0..8 => Reply::status(code, &told),
                _ => Reply::Text("hello".to_owned()),
            },
        )
        .await;
        for _ in 0..8 {
            assert_ne!(gateway.json(&hello()).await.1["code"], "no_provider_available", "{body}");
        }
        assert_eq!(status(&gateway).await, 200);
    }
}

#[tokio::test]
async fn broken_streams_count_as_failures_and_a_complete_one_resets_the_count() {
    let count = AtomicUsize::new(0);
    // The pause makes sure that the text has reached the caller before the stream breaks.
    let pause = StreamStep::Pause(Duration::from_millis(300));
    let broken =
        move || Reply::Stream(vec![role_chunk(), text_chunk("half"), pause.clone(), StreamStep::Cut]);
    let gateway = gateway_with(
        LONG,
        "",
        |setup| setup,
        move |_| match count.fetch_add(1, Ordering::SeqCst) {
            2 => stream(&["hello"]),
            _ => broken(),
        },
    )
    .await;
    for expected in ["half", "half", "hello", "half", "half", "half"] {
        let raw = gateway.stream(&hello_stream()).await;
        assert_eq!(text_of(&chunks(&raw), 0), expected);
    }
    assert_eq!(gateway.json(&hello_stream()).await.1["code"], "no_provider_available");
    assert_eq!(gateway.provider.requests().len(), 6);
}

#[tokio::test]
async fn an_unreachable_provider_is_paused_with_all_its_models() {
    let gone = FakeProvider::start(|_| Reply::Hang).await;
    let config = config(&gone.base_url, LONG, "");
    drop(gone);
    let mut gateway = gateway_with("", "", |setup| setup, |_| Reply::Hang).await;
    gateway.server = Setup::new(config).start().await;
    gateway.key = gateway.server.key(Service::Inference);
    let whole = |gateway: &Gateway| {
        let reports = gateway.server.app.configured().gateway.breakers();
        reports.iter().any(|report| report.model.is_none() && report.state == BreakerState::Open)
    };
    // The port may close a moment after the provider is dropped.
    for _ in 0..50 {
        if whole(&gateway) {
            break;
        }
        status(&gateway).await;
    }
    let (status, body) = gateway.json(&json!({"model": "fake/n", "messages": hello()["messages"]})).await;
    assert_eq!((status, &body["code"]), (503, &json!("no_provider_available")));
    let message = body["message"].as_str().unwrap();
    assert!(
        message.starts_with("the provider fake is paused after repeated failures (the last: unreachable)")
    );
}

#[tokio::test]
async fn an_open_breaker_ends_retries_and_honours_a_longer_retry_after() {
    let busy = |_: &ModelRequest| Reply::Raw(503, vec![("retry-after", "40".to_owned())], "{}".to_owned());
    let of_provider = "breaker_failures = 1\nbreaker_pause = \"1s\"\n";
    let gateway = gateway_with(
        of_provider,
        "",
        |setup| setup.config(|config| config.providers[0].call_policy.retries = 2),
        busy,
    )
    .await;
    let response = gateway.ask(&hello()).await;
    assert_eq!(response.headers()["x-mk-attempts"], "1");
    assert_eq!(response.json::<Value>().await.unwrap()["code"], "provider_overloaded");
    let response = gateway.ask(&hello()).await;
    let wait: u64 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((20..=40).contains(&wait), "{wait}");
}

#[tokio::test]
async fn a_verification_replaces_a_paused_model_by_a_standby() {
    let provider = FakeProvider::start(|ask| match (ask.task.as_str(), ask.model.as_str()) {
        ("claims", _) => finds_eiffel(),
        (_, "one") => Reply::status(500, &json!({})),
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(panel::config(&provider.base_url))
        .config(|config| {
            config.verify.general.standby = vec!["fake/four".into()];
            config.providers[0].call_policy.breaker_failures = 2;
            config.providers[0].call_policy.breaker_pause = Duration::from_mins(5);
        })
        .start()
        .await;
    let key = server.key(Service::Verify);
    for code in ["provider_error", "provider_error", "paused", "paused"] {
        let request = server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."}));
        let events = Events::read(request.send().await.unwrap()).await;
        let results = events.results();
        assert_eq!(results[0]["assessment"], "TRUE");
        assert_eq!(results[0]["model_errors"], json!([{"model": "fake/one", "code": code}]));
        let answered: Vec<&Value> =
            results[0]["model_answers"].as_array().unwrap().iter().map(|answer| &answer["model"]).collect();
        assert_eq!(answered, ["fake/two", "fake/three", "fake/four"]);
    }
    assert_eq!(provider.requests_for("one").len(), 2);
}

#[tokio::test]
async fn a_verification_without_an_available_provider_fails_with_that_code() {
    let provider = FakeProvider::start(|_| Reply::status(500, &json!({}))).await;
    let server = Setup::new(panel::config(&provider.base_url))
        .config(|config| config.providers[0].call_policy.breaker_failures = 1)
        .start()
        .await;
    let key = server.key(Service::Verify);
    for code in ["provider_error", "no_provider_available"] {
        let request = server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."}));
        assert_eq!(Events::read(request.send().await.unwrap()).await.end("error")["code"], code);
    }
    assert_eq!(provider.requests().len(), 1);
}
