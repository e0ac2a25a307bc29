//! Budgets of keys and apps for chat completions: reserved before a call, settled after it, never overrun.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use mk::api::Service;
use mk::keys;
use mk::money::NanoUsd;
use mk::storage::AppChange;
use serde_json::{Value, json};

use crate::support::chat::{Gateway, config, gateway, gateway_with, hello, hello_stream};
use crate::support::eventually;
use crate::support::mk::Mk;
use crate::support::provider::{FakeProvider, ModelRequest, Reply, StreamStep, role_chunk, text_chunk};
use crate::support::server::{NOON, Setup};

/// The cost of a call answered by `Reply::Text`: 100 tokens at $1 and 10 at $2 per million.
const COST: u64 = 120_000;
/// The maximum cost of [`small`]: as many prompt tokens as it has bytes (81), and 100 completion tokens.
const MOST: u64 = 281_000;

/// A request limited to a short answer.
fn small() -> Value {
    let mut body = hello();
    body["max_tokens"] = json!(100);
    body
}

/// The same, streamed.
fn small_stream() -> Value {
    let mut body = small();
    body["stream"] = json!(true);
    body
}

fn says_hi(_: &ModelRequest) -> Reply {
    Reply::Text("Hi".to_owned())
}

/// A key with this budget, and its id.
fn key_of(gateway: &Gateway, budget: u64) -> (String, String) {
    gateway.server.key_with(Service::Inference, |new| new.budget = Some(NanoUsd(budget)))
}

fn set_app_budget(gateway: &Gateway, budget: Option<u64>) {
    let change = AppChange { name: None, budget: Some(budget.map(NanoUsd)) };
    let store = &gateway.server.app.store;
    let id = store.app("default").unwrap().id;
    keys::apps::update(store, &id, &change, gateway.server.clock.now()).unwrap();
}

async fn ask(gateway: &Gateway, key: &str, body: &Value) -> (u16, Value) {
    let response = gateway.post_as(key, body.to_string()).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// What is left of a budget, taken from the rejection of `hello`, whose maximum cost without a token limit exceeds it.
async fn left(gateway: &Gateway, key: &str) -> String {
    let (status, body) = ask(gateway, key, &hello()).await;
    assert_eq!((status, &body["code"]), (402, &json!("budget_exceeded")), "{body}");
    let message = body["message"].as_str().unwrap();
    assert!(message.starts_with("this could cost up to $0.0656, but "), "{message}");
    message.split("but ").nth(1).unwrap().split(' ').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_request_beyond_the_budget_is_rejected_before_any_call() {
    let gateway = gateway(says_hi).await;
    let (key, _) = key_of(&gateway, MOST - 1);
    for (body, most) in [(small(), "0.000281"), (small_stream(), "0.000295")] {
        let response = gateway.post_as(&key, body.to_string()).send().await.unwrap();
        assert_eq!(response.status(), 402);
        let headers = response.headers().clone();
        assert_eq!(headers["content-type"], "application/json");
        assert_eq!(
            (&headers["x-should-retry"], &headers["x-mk-attempts"]),
            (&"false".parse().unwrap(), &"0".parse().unwrap())
        );
        assert!(headers.contains_key("x-ratelimit-remaining") && !headers.contains_key("retry-after"));
        let expected = format!(
            concat!(
                r#"{{"error":"Payment Required","message":"this could cost up to ${}, but $0.000280999 is left of the "#,
                r#"monthly budget of this API key ($0.000280999); send a smaller `max_tokens`, or ask the operator to "#,
                r#"raise it; it resets on 2026-12-01 (UTC)","code":"budget_exceeded","request_id":"req-1"}}"#
            ),
            most
        );
        assert_eq!(response.text().await.unwrap(), expected);
    }
    assert_eq!((gateway.provider.requests().len(), gateway.rows().len()), (0, 0));

    let mut smaller = small();
    smaller["max_tokens"] = json!(90);
    assert_eq!(ask(&gateway, &key, &smaller).await.0, 200, "a smaller answer fits");
    smaller["n"] = json!(2);
    assert_eq!(ask(&gateway, &key, &smaller).await.0, 402, "two do not");
}

#[tokio::test]
async fn an_exhausted_budget_is_reported_with_its_reset_date() {
    let gateway = gateway(says_hi).await;
    let (key, _) = key_of(&gateway, 2 * COST);
    let mut tiny = small();
    tiny["max_tokens"] = json!(1);
    for _ in 0..2 {
        assert_eq!(ask(&gateway, &key, &tiny).await.0, 200);
    }
    let (status, body) = ask(&gateway, &key, &tiny).await;
    assert_eq!(status, 402);
    assert_eq!(
        body["message"],
        "the monthly budget of this API key ($0.00024) is used up; ask the operator to raise it; \
         it resets on 2026-12-01 (UTC)"
    );
    let (status, _) =
        ask(&gateway, &key, &json!({"model": "sandbox/alpha", "messages": hello()["messages"]})).await;
    assert_eq!(status, 200, "a free model still works");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_cannot_overrun_a_budget() {
    let gateway = gateway(|_| Reply::Text("Hi".to_owned()).after(Duration::from_millis(150))).await;
    let (key, id) = key_of(&gateway, 5 * MOST - 1);
    let body = small();
    let all = join_all((0..24).map(|_| ask(&gateway, &key, &body))).await;
    assert!(all.iter().all(|(status, _)| matches!(status, 200 | 402)), "{all:?}");
    let served = all.iter().filter(|(status, _)| *status == 200).count();
    assert!(served >= 4 && served as u64 * COST < 5 * MOST, "{served}");
    assert!(gateway.provider.most_in_flight() <= 4, "{}", gateway.provider.most_in_flight());
    assert_eq!(gateway.provider.requests().len(), served);

    gateway.server.app.flush().unwrap();
    let spent = keys::spent(&gateway.server.app.store, &id, NOON).unwrap();
    assert_eq!(spent, NanoUsd(served as u64 * COST));
    assert_eq!(left(&gateway, &key).await, NanoUsd(5 * MOST - 1).minus(spent).to_string());
}

#[tokio::test]
async fn an_app_s_budget_is_shared_by_all_its_keys() {
    let gateway = gateway(says_hi).await;
    set_app_budget(&gateway, Some(MOST + COST));
    let (own, _) = key_of(&gateway, 10 * MOST);
    assert_eq!(ask(&gateway, &own, &small()).await.0, 200);
    assert_eq!(ask(&gateway, &gateway.key, &small()).await.0, 200, "a key without its own budget");
    for key in [&own, &gateway.key] {
        let (status, body) = ask(&gateway, key, &small()).await;
        let message = body["message"].as_str().unwrap();
        assert!(
            status == 402 && message.contains("the monthly budget of this API key's app ($0.000401)"),
            "{body}"
        );
    }
    set_app_budget(&gateway, None);
    assert_eq!(ask(&gateway, &own, &small()).await.0, 200);
    assert_eq!(
        left(&gateway, &own).await,
        NanoUsd(10 * MOST - 2 * COST).to_string(),
        "a rejected request uses neither budget"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_changed_on_the_command_line_applies_to_the_next_request() {
    let gateway = gateway(says_hi).await;
    let data = gateway.server.dir.path().join("data");
    let update = async |flags: &[&'static str]| {
        let arguments = ["apps", "update", "default"].into_iter().chain(flags.iter().copied());
        let ran = Mk::new().args(arguments).env("MK_DATA_DIR", data.to_str().unwrap()).run_beside().await;
        assert_eq!(ran.code(), 0, "{ran:?}");
    };
    for (flags, status) in [
        (&["--budget-usd", "0.00028"][..], 402),
        (&["--budget-usd", "0.000281"], 200),
        (&["--budget-usd", "0.000281"], 402),
        (&["--budget-usd", "0.1"], 200),
        (&["--budget-usd", "0"], 402),
        (&["--no-budget"], 200),
    ] {
        update(flags).await;
        assert_eq!(ask(&gateway, &gateway.key, &small()).await.0, status, "{flags:?}");
    }
}

#[tokio::test]
async fn failed_calls_release_their_reservation_before_the_next_retry() {
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let script = move |_: &ModelRequest| match calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0..3 => Reply::status(503, &json!({})),
        3 => Reply::status(400, &json!({"error": {"message": "no"}})),
        _ => Reply::Text("Hi".to_owned()),
    };
    let gateway = gateway_with(
        "",
        "",
        |setup| setup.config(|config| config.providers[0].call_policy.retries = 2),
        script,
    )
    .await;
    let (key, _) = key_of(&gateway, MOST);
    assert_eq!(ask(&gateway, &key, &small()).await.0, 503);
    assert_eq!(gateway.provider.requests().len(), 3, "each attempt found the full budget");
    assert_eq!(ask(&gateway, &key, &small()).await.0, 400);
    assert_eq!(left(&gateway, &key).await, "$0.000281");
    assert_eq!(ask(&gateway, &key, &small()).await.0, 200);
}

#[tokio::test]
async fn spending_survives_a_restart_and_resets_each_month() {
    let provider = FakeProvider::start(says_hi).await;
    let first = Setup::new(config(&provider.base_url, "", "")).start().await;
    let (key, _) = first.key_with(Service::Inference, |new| new.budget = Some(NanoUsd(MOST)));
    let dir = first.dir.clone();
    let gateway = Gateway { server: first, provider, key };
    assert_eq!(gateway.ask(&small()).await.status(), 200);
    let Gateway { server, provider, key } = gateway;
    server.shutdown().await;

    let mut again = Setup::new(config(&provider.base_url, "", ""));
    again.config.data_dir = dir.path().join("data");
    let gateway = Gateway { server: again.start().await, provider, key };
    assert_eq!(left(&gateway, &gateway.key).await, NanoUsd(MOST - COST).to_string());
    gateway.server.clock.advance(NOON.next_utc_month().since(NOON));
    assert_eq!(left(&gateway, &gateway.key).await, NanoUsd(MOST).to_string());
    assert_eq!(gateway.ask(&small()).await.status(), 200);
}

#[tokio::test]
async fn a_model_without_a_price_is_not_called_on_a_budget() {
    let fallbacks = "[inference.fallbacks]\n\"fake/m\" = [\"fake/n\"]";
    let gateway = gateway_with("", fallbacks, |setup| setup, |_| Reply::status(500, &json!({}))).await;
    let (key, _) = key_of(&gateway, 1_000_000_000);
    let mut body = small();
    body["model"] = json!("fake/n");
    let (status, body) = ask(&gateway, &key, &body).await;
    assert_eq!((status, &body["code"], &body["error"]), (403, &json!("price_unknown"), &json!("Forbidden")));
    assert_eq!(
        body["message"],
        "there is a budget, but the price of fake/n is unknown; the server's operator can set \
         input_usd_per_mtok and output_usd_per_mtok"
    );
    assert_eq!(ask(&gateway, &key, &small()).await.0, 502);
    assert_eq!(gateway.provider.requests_for("n").len(), 0, "nor as a fallback");
    assert_eq!(ask(&gateway, &gateway.key, &small()).await.0, 502);
    assert_eq!(gateway.provider.requests_for("n").len(), 1, "without a budget it is");
}

#[tokio::test]
async fn an_unreadable_ledger_rejects_requests_on_a_budget() {
    let gateway = gateway(says_hi).await;
    let (key, _) = key_of(&gateway, 1_000_000_000);
    let ledger = gateway.server.dir.path().join("data").join("ledger.db");
    std::fs::rename(&ledger, ledger.with_extension("gone")).unwrap();
    let response = gateway.post_as(&key, small().to_string()).send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers().contains_key("retry-after")), (503, true));
    assert_eq!(response.json::<Value>().await.unwrap()["code"], "store_unavailable");
    assert_eq!(gateway.provider.requests().len(), 0);
    std::fs::rename(ledger.with_extension("gone"), &ledger).unwrap();
    assert_eq!(ask(&gateway, &key, &small()).await.0, 200);
}

#[tokio::test]
async fn a_prompt_is_reserved_with_its_bytes() {
    let gateway = gateway(says_hi).await;
    let (key, _) = key_of(&gateway, 800_000);
    let mut body = small();
    body["messages"][0]["content"] = json!("𒀀".repeat(200));
    let (status, refused) = ask(&gateway, &key, &body).await;
    assert_eq!(status, 402);
    let message = refused["message"].as_str().unwrap();
    assert!(message.starts_with("this could cost up to $0.001076"), "800 bytes instead of 5: {message}");
}

/// A stream that never ends, of text or of anything else, and its end at the caller.
async fn endless(chunk: &StreamStep, body: &Value, budget: Option<u64>) -> (Gateway, String, usize) {
    let StreamStep::Send(text) = chunk.clone() else { unreachable!() };
    let gateway = gateway(move |_| {
        Reply::Stream(vec![role_chunk(), StreamStep::Repeat(text.clone(), usize::MAX), StreamStep::Stall])
    })
    .await;
    let key = budget.map_or_else(|| gateway.key.clone(), |budget| key_of(&gateway, budget).0);
    let mut stream = gateway.post_as(&key, body.to_string()).send().await.unwrap().bytes_stream();
    let (mut end, mut received) = (Vec::new(), 0);
    while let Some(piece) = stream.next().await {
        let piece = piece.unwrap();
        received += piece.len();
        end.extend_from_slice(&piece);
        end.drain(..end.len().saturating_sub(4096));
    }
    (gateway, String::from_utf8_lossy(&end).into_owned(), received)
}

#[tokio::test]
async fn a_stream_that_goes_far_beyond_its_limit_is_stopped() {
    let mut body = small_stream();
    body["max_tokens"] = json!(10);
    for budget in [Some(50_000_000), None] {
        let (gateway, end, received) = endless(&text_chunk("0123456789"), &body, budget).await;
        assert!(received < 2_000_000, "{received}");
        assert!(end.ends_with("data: [DONE]\n\n"), "{end}");
        let error: Value = serde_json::from_str(end.rsplit("data: ").nth(1).unwrap()).unwrap();
        assert_eq!(
            (&error["error"]["code"], &error["choices"][0]["finish_reason"]),
            (&json!("provider_invalid_response"), &json!("error"))
        );
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("fake/m exceeded the limit of its answer"), "{message}");
        eventually("the provider is stopped", || gateway.provider.in_flight() == 0).await;
        let row = gateway.rows().remove(0);
        assert_eq!(row.outcome, "too_large");
        assert!((4_000..20_000).contains(&row.completion_tokens), "{row:?}");
    }
}

#[tokio::test]
async fn a_stream_without_a_limit_is_stopped_at_the_most_bytes_of_any_answer() {
    let mut body = hello_stream();
    body["model"] = json!("fake/n");
    let big = format!(": {}\n\n", "x".repeat(1 << 20));
    let (gateway, end, received) = endless(&StreamStep::Send(big), &body, None).await;
    assert!(end.contains("sent more than 256 MiB") && received < 10_000, "{received} {end}");
    eventually("the provider is stopped", || gateway.provider.in_flight() == 0).await;
}

#[tokio::test]
async fn what_is_charged_apart_from_tokens_is_refused_on_a_budget() {
    let gateway = gateway(says_hi).await;
    let (key, _) = key_of(&gateway, 1_000_000_000);
    for (name, value) in [
        ("web_search_options", json!({})),
        ("search_parameters", json!({"mode": "auto"})),
        ("enable_search", json!(true)),
        ("Enable_Search", json!(true)),
        ("modalities", json!(["text", "audio"])),
        ("audio", json!({"voice": "alloy", "format": "wav"})),
        ("service_tier", json!("priority")),
        ("TOOLS", json!([{"type": "web_search"}])),
    ] {
        let mut body = small();
        body[name] = value.clone();
        let (status, error) = ask(&gateway, &key, &body).await;
        assert_eq!((status, &error["code"]), (400, &json!("unsupported_parameter")), "{error}");
        assert_eq!(error["param"], name);
        assert_eq!(ask(&gateway, &gateway.key, &body).await.0, 200, "{name} without a budget");
    }
    for (name, value) in [
        ("web_search_options", Value::Null),
        ("enable_search", json!(false)),
        ("modalities", json!(["text"])),
        ("service_tier", json!("auto")),
    ] {
        let mut body = small();
        body[name] = value;
        assert_eq!(ask(&gateway, &key, &body).await.0, 200, "{name}");
    }
    let mut body = small();
    for (tool, param) in [
        (r#"{"type":"function","TYPE":"web_search","function":{"name":"f"}}"#, "tools[0].TYPE"),
        (r#"{"type":"function","type":"web_search"}"#, "tools[0].type"),
        (r#"{"type":"Function","function":{"name":"f"}}"#, "tools[0].type"),
    ] {
        body["tools"] = json!("TOOL");
        let text = body.to_string().replace("\"TOOL\"", &format!("[{tool}]"));
        let response = gateway.post_as(&key, text).send().await.unwrap();
        let (status, error) = (response.status(), response.json::<Value>().await.unwrap());
        assert_eq!((status.as_u16(), &error["param"]), (400, &json!(param)), "{error}");
    }
}
