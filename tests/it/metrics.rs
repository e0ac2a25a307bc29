//! `GET /metrics`: who may read it, and that it counts what requests did.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use futures_util::StreamExt;
use mk::api::Service;
use mk::api::endpoint::Endpoint;
use mk::metrics::table;
use mk::money::{NanoUsd, Price, Tokens};
use mk::usage::{Account, Budget, Meter, Purpose};
use serde_json::{Value, json};

use crate::support::chat::{self, Gateway, gateway, gateway_with, hello, hello_stream};
use crate::support::console::Console;
use crate::support::events::Events;
use crate::support::eventually;
use crate::support::panel::{config, finds_eiffel};
use crate::support::provider::{FakeProvider, Reply, StreamStep, role_chunk, stream, text_chunk};
use crate::support::scrape::{scrape, scrape_until};
use crate::support::server::{Setup, TestServer, client};

fn asks(model: &str) -> Value {
    let mut body = hello();
    body["model"] = json!(model);
    body
}

#[tokio::test]
async fn every_metric_of_the_table_is_on_the_page_and_in_the_manual() {
    let gateway = gateway(|_| Reply::Hang).await;
    let page = scrape(&gateway.server).await;
    let on_page: HashSet<&str> = page.families.keys().map(String::as_str).collect();
    let topic =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/man/mk-operation.7.md")).unwrap();
    for metric in table::ALL {
        assert!(on_page.contains(metric.name.trim_end_matches("_total")), "{}", metric.name);
        assert!(topic.contains(&format!("`{}`", metric.name)), "the manual does not name {}", metric.name);
    }
    assert_eq!(on_page.len(), table::ALL.len());
    let build = format!(r#"mk_build_info{{version="{}"}}"#, env!("CARGO_PKG_VERSION"));
    page.assert(&[
        (&build, 1.0),
        ("process_start_time_seconds", 1_795_176_000.0),
        ("mk_connections_open", 1.0),
    ]);
}

#[tokio::test]
async fn every_route_counted_by_name_exists() {
    let gateway = gateway(|_| Reply::Hang).await;
    for endpoint in Endpoint::all() {
        let route = endpoint.path();
        let response = client().get(format!("{}{route}", gateway.server.base)).send().await.unwrap();
        // Whatever needs a key refuses requests without one before anything else, but exists. No file has such a name.
        let is_file = matches!(endpoint, Endpoint::Asset | Endpoint::Topic);
        assert_eq!(response.status() == 404, is_file, "{route}");
    }
    let console = Console::of(&gateway.server);
    let app = console.app("news").await;
    for _ in 0..2 {
        console.patch(&format!("/v1/apps/{app}"), &json!({"name": "news"})).await;
        console.delete(&format!("/v1/apps/{app}/keys/key_none")).await;
    }
    client().get(format!("{}/no/such/address", gateway.server.base)).send().await.unwrap();
    let page = scrape(&gateway.server).await;
    for route in Endpoint::all().map(Endpoint::path) {
        let has = page.series.keys().any(|series| series.contains(&format!("_total{{route=\"{route}\"")));
        assert!(has, "{route} is not counted by name");
    }
    page.assert(&[
        (r#"mk_http_requests_total{route="other",method="GET",status="404"}"#, 1.0),
        (r#"mk_http_requests_total{route="/v1/apps",method="POST",status="201"}"#, 1.0),
        (r#"mk_http_requests_total{route="/v1/apps/{app_id}",method="PATCH",status="200"}"#, 2.0),
        (
            r#"mk_http_requests_total{route="/v1/apps/{app_id}/keys/{key_id}",method="DELETE",status="404"}"#,
            2.0,
        ),
    ]);
}

const MODELS: &str = r#"
[providers.fake.models.bad]
[providers.fake.models.flaky]
[providers.fake.models.hangs]
[inference.fallbacks]
"fake/down" = ["fake/m"]
"#;

/// A server with a provider whose models are named after how they fail.
async fn desk_with_failing_models() -> Gateway {
    let has_failed = AtomicBool::new(false);
    gateway_with(
        "",
        MODELS,
        |setup| setup.config(|config| config.providers[0].call_policy.retries = 1),
        move |ask| match ask.model.as_str() {
            "bad" => Reply::status(400, &json!({"error": {"message": "no"}})),
            "flaky" if !has_failed.swap(true, Ordering::SeqCst) => Reply::status(503, &json!({})),
            "down" => Reply::status(401, &json!({})),
            "hangs" => Reply::Hang,
            _ if ask.body["stream"] == true => stream(&["a", "b"]),
            _ => Reply::Text("four".into()),
        },
    )
    .await
}

#[tokio::test]
async fn the_page_counts_what_requests_did() {
    let gateway = desk_with_failing_models().await;
    let before = scrape(&gateway.server).await;
    assert_eq!(gateway.json(&hello()).await.0, 200);
    gateway.stream(&hello_stream()).await;
    assert_eq!(gateway.json(&asks("fake/bad")).await.0, 400);
    assert_eq!(gateway.json(&asks("fake/flaky")).await.0, 200);
    assert_eq!(gateway.json(&asks("fake/down")).await.0, 200);
    let caller = tokio::spawn(gateway.post(asks("fake/hangs").to_string()).send());
    eventually("the provider is asked", || gateway.provider.in_flight() == 1).await;
    caller.abort();

    let cancelled =
        r#"mk_http_requests_total{route="/inference/v1/chat/completions",method="POST",status="cancelled"}"#;
    let page = scrape_until(&gateway.server, "the caller has left", |page| page.get(cancelled) > 0.0).await;
    page.assert_grown_from(&before);
    page.assert(&[
        (r#"mk_http_requests_total{route="/inference/v1/chat/completions",method="POST",status="200"}"#, 4.0),
        (r#"mk_http_requests_total{route="/inference/v1/chat/completions",method="POST",status="400"}"#, 1.0),
        (cancelled, 1.0),
        (r#"mk_http_request_duration_seconds_count{route="/inference/v1/chat/completions"}"#, 6.0),
        // A complete response, a streamed one, and one as the fallback of another model.
        (r#"mk_attempts_total{provider="fake",model="m",outcome="ok"}"#, 3.0),
        (r#"mk_attempt_duration_seconds_count{provider="fake",model="m"}"#, 3.0),
        (r#"mk_first_token_seconds_count{provider="fake",model="m"}"#, 1.0),
        (r#"mk_tokens_total{provider="fake",model="m",kind="prompt"}"#, 207.0),
        (r#"mk_tokens_total{provider="fake",model="m",kind="completion"}"#, 23.0),
        (r#"mk_cost_usd_total{provider="fake",model="m"}"#, 253e-6),
        (r#"mk_attempts_unpriced_total{provider="fake",model="m"}"#, 0.0),
        (r#"mk_attempts_total{provider="fake",model="bad",outcome="rejected"}"#, 1.0),
        (r#"mk_attempts_total{provider="fake",model="flaky",outcome="overloaded"}"#, 1.0),
        (r#"mk_attempts_total{provider="fake",model="flaky",outcome="ok"}"#, 1.0),
        (r#"mk_attempts_unpriced_total{provider="fake",model="flaky"}"#, 1.0),
        (r#"mk_cost_usd_total{provider="fake",model="flaky"}"#, 0.0),
        (r#"mk_retries_total{provider="fake",model="flaky"}"#, 1.0),
        (r#"mk_attempts_total{provider="fake",model="down",outcome="auth_failed"}"#, 1.0),
        (r#"mk_fallbacks_total{provider="fake",model="down"}"#, 1.0),
        (r#"mk_retries_total{provider="fake",model="down"}"#, 0.0),
        (r#"mk_attempts_total{provider="fake",model="hangs",outcome="cancelled"}"#, 1.0),
        ("mk_streams_open", 0.0),
        ("mk_database_up", 1.0),
        ("mk_ledger_rows_lost_total", 0.0),
    ]);
    let sum = |prefix: &str| -> f64 {
        page.series.iter().filter(|(series, _)| series.starts_with(prefix)).map(|(_, value)| value).sum()
    };
    assert_eq!(gateway.provider.requests().len(), 8);
    assert!((sum("mk_attempts_total") - 8.0).abs() < f64::EPSILON, "each call is counted once");
}

#[tokio::test]
async fn a_stream_counts_as_open_until_its_caller_leaves() {
    let beats = vec![role_chunk(), text_chunk("a"), StreamStep::Stall];
    let gateway = gateway(move |_| Reply::Stream(beats.clone())).await;
    let mut answer = gateway.ask(&hello_stream()).await.bytes_stream();
    answer.next().await.unwrap().unwrap();
    let counted =
        r#"mk_http_requests_total{route="/inference/v1/chat/completions",method="POST",status="200"}"#;
    let page = scrape(&gateway.server).await;
    page.assert(&[("mk_streams_open", 1.0), (counted, 0.0)]);
    drop(answer);
    let cancelled = r#"mk_attempts_total{provider="fake",model="m",outcome="cancelled"}"#;
    // They are counted one after another, and another thread may read the page meanwhile.
    let page = scrape_until(&gateway.server, "the stream is closed and counted", |page| {
        page.get("mk_streams_open") < 1.0 && page.get(counted) > 0.0 && page.get(cancelled) > 0.0
    })
    .await;
    page.assert(&[("mk_streams_open", 0.0), (counted, 1.0), (cancelled, 1.0)]);
}

#[tokio::test]
async fn a_verification_and_its_standbys_are_counted() {
    let provider = FakeProvider::start(|ask| match (ask.task.as_str(), ask.model.as_str()) {
        ("claims", _) => finds_eiffel(),
        (_, "two") => Reply::status(401, &json!({})),
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.general.standby = vec!["fake/four".into()])
        .start()
        .await;
    let key = server.key(Service::Verify);
    let body = json!({"fact": "The Eiffel Tower is in Paris."});
    Events::read(server.verify(&key, &body).send().await.unwrap()).await.end("completed");
    let counted = r#"mk_http_requests_total{route="/verify/v1/stream",method="POST",status="200"}"#;
    let page = scrape_until(&server, "the verification is counted", |page| page.get(counted) > 0.0).await;
    page.assert(&[
        (counted, 1.0),
        ("mk_streams_open", 0.0),
        (r#"mk_fallbacks_total{provider="fake",model="two"}"#, 1.0),
        (r#"mk_attempts_total{provider="fake",model="two",outcome="auth_failed"}"#, 1.0),
        (r#"mk_attempts_total{provider="fake",model="four",outcome="ok"}"#, 1.0),
    ]);
}

#[tokio::test]
async fn refusals_are_counted_by_reason() {
    let gateway = gateway(|_| Reply::Text("x".into())).await;
    let (narrow, _) = gateway.server.key_with(Service::Inference, |new| new.per_minute = Some(1));
    let (once, _) = gateway.server.key_with(Service::Inference, |new| new.per_day = Some(1));
    let verify = gateway.server.key(Service::Verify);
    for key in ["nonsense", &verify, &narrow, &narrow, &once, &once, &once] {
        gateway.post_as(key, hello().to_string()).send().await.unwrap();
    }
    let page = scrape(&gateway.server).await;
    page.assert(&[
        (r#"mk_auth_failures_total{reason="invalid_api_key"}"#, 1.0),
        (r#"mk_auth_failures_total{reason="wrong_service"}"#, 1.0),
        (r#"mk_auth_failures_total{reason="api_key_revoked"}"#, 0.0),
        (r#"mk_rate_limited_total{subject="key",window="minute"}"#, 1.0),
        (r#"mk_rate_limited_total{subject="key",window="day"}"#, 2.0),
    ]);
}

#[tokio::test]
async fn names_that_callers_make_up_do_not_grow_the_page() {
    let gateway = gateway(|_| Reply::Hang).await;
    let account = Account {
        request_id: "req-1".into(),
        app_id: "".into(),
        key_id: "".into(),
        service: Service::Inference,
        budget: Budget::default(),
        trace: mk::traces::Parent::default(),
        labels: None,
    };
    let app = &gateway.server.app;
    let meter = Meter::new(account, app.accounting());
    let price = Price::new(NanoUsd(1), NanoUsd(1));
    for number in 0..10_000 {
        let model = format!("fake/made-up-{number}");
        let outcome = if number % 2 == 0 { "ok" } else { "unknown_model" };
        let attempt = meter.attempt(model, Purpose::Chat, Some(price), Instant::now(), || None).unwrap();
        attempt.finish(outcome, Tokens::new(1, 1));
    }
    let page = scrape(&gateway.server).await;
    let own = |series: &&String| series.starts_with("mk_attempts_total") && series.contains("made-up");
    assert_eq!(page.series.keys().filter(own).count(), 200);
    page.assert(&[
        (r#"mk_attempts_total{provider="fake",model="other",outcome="ok"}"#, 4_800.0),
        (r#"mk_attempts_total{provider="fake",model="other",outcome="unknown_model"}"#, 5_000.0),
    ]);
}

#[tokio::test]
async fn the_page_needs_no_key_from_the_machine_itself() {
    let gateway = gateway(|_| Reply::Hang).await;
    let address = format!("{}/metrics", gateway.server.base);
    let response = client().get(&address).header("x-request-id", "scrape-1").send().await.unwrap();
    assert_eq!(response.status(), 200);
    let headers = response.headers();
    assert_eq!(headers["content-type"], "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert_eq!(headers["x-request-id"], "scrape-1");
    assert_eq!(headers["x-ratelimit-limit"], "600");
    let head = client().head(&address).send().await.unwrap();
    assert_eq!((head.status().as_u16(), head.text().await.unwrap()), (200, String::new()));
    let post = client().post(&address).send().await.unwrap();
    assert_eq!((post.status().as_u16(), &post.headers()["allow"]), (405, &"GET, HEAD".parse().unwrap()));
}

/// The status and the error code of a scrape that comes through a proxy.
async fn scrape_through_proxy(server: &TestServer, header: &str, key: Option<&str>) -> (u16, String) {
    let mut request = client().get(format!("{}/metrics", server.base)).header(header, "203.0.113.9");
    if let Some(key) = key {
        request = request.bearer_auth(key);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let body: Value = serde_json::from_str(&text).unwrap_or_default();
    assert_eq!(status == 200, text.ends_with("# EOF\n"), "{text}");
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn from_another_machine_the_page_needs_a_console_key() {
    let refused = |status, code: &str| (status, code.to_owned());
    for trusted in [vec![], vec!["127.0.0.0/8".parse().unwrap()]] {
        let provider = FakeProvider::start(|_| Reply::Hang).await;
        let config = chat::config(&provider.base_url, "", "");
        let server = Setup::new(config).config(|config| config.trusted_proxies = trusted).start().await;
        let (console, id) = server.key_with(Service::Console, |_| {});
        let verify = server.key(Service::Verify);
        for header in ["x-forwarded-for", "forwarded", "x-real-ip"] {
            assert_eq!(scrape_through_proxy(&server, header, None).await, refused(401, "missing_api_key"));
            assert_eq!(
                scrape_through_proxy(&server, header, Some("x")).await,
                refused(401, "invalid_api_key")
            );
            assert_eq!(
                scrape_through_proxy(&server, header, Some(&verify)).await,
                refused(401, "wrong_service")
            );
            assert_eq!(scrape_through_proxy(&server, header, Some(&console)).await.0, 200);
        }
        server.app.store.revoke_key(&id, server.clock.now()).unwrap();
        let denied = scrape_through_proxy(&server, "x-forwarded-for", Some(&console)).await;
        assert_eq!(denied, refused(401, "api_key_revoked"));
        let (tied, _) =
            server.key_with(Service::Console, |new| new.addresses = vec!["198.51.100.0/24".to_owned()]);
        let denied = scrape_through_proxy(&server, "x-forwarded-for", Some(&tied)).await;
        assert_eq!(denied, refused(403, "address_not_allowed"));
    }
}

#[tokio::test]
async fn a_scrape_does_not_count_against_its_key_but_updates_its_last_use() {
    let gateway = gateway(|_| Reply::Hang).await;
    let server = &gateway.server;
    let (key, id) = server.key_with(Service::Console, |new| {
        new.per_minute = Some(1);
        new.per_day = Some(1);
    });
    for _ in 0..5 {
        assert_eq!(scrape_through_proxy(server, "x-forwarded-for", Some(&key)).await.0, 200);
    }
    server.app.flush().unwrap();
    assert_eq!(server.app.store.key(&id).unwrap().last_used_at, Some(server.clock.now()));
    assert_eq!(server.app.store.day_count(&id, server.clock.now().utc_day()).unwrap(), 0);
}

#[tokio::test]
async fn scrapes_are_limited_like_any_open_page() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let config = chat::config(&provider.base_url, "", "");
    let server = Setup::new(config).config(|config| config.limits.open_pages_per_minute = 2).start().await;
    scrape(&server).await;
    scrape(&server).await;
    let refused = client().get(format!("{}/metrics", server.base)).send().await.unwrap();
    assert_eq!(refused.status(), 429);
}
