//! Traces: what a collector gets of requests and verifications, and that no collector harms a server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mk::api::Service;
use serde_json::{Value, json};

use crate::support::chat::{Gateway, gateway, gateway_with, hello, hello_stream};
use crate::support::panel::{self, panel_by};
use crate::support::provider::{ModelRequest, Reply, stream};
use crate::support::scrape::{scrape, scrape_until};
use crate::support::scripted::{Scripted, Step, answer};
use crate::support::server::{Setup, client};

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const ANSWER: &str = "An answer that no trace may hold";

/// A collector that takes everything.
async fn collector() -> Scripted {
    Scripted::answering(answer("200 OK", "", "{}")).await
}

fn traced(setup: Setup, collector: &str) -> Setup {
    setup.config(|config| config.traces.endpoint = Some(format!("{collector}/v1/traces")))
}

/// A server that sends its traces there.
async fn traced_gateway(
    collector: &str,
    rest: &str,
    script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static,
) -> Gateway {
    gateway_with("", rest, |setup| traced(setup, collector), script).await
}

fn completion(text: &str) -> Reply {
    let choice =
        json!({"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"});
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10});
    Reply::status(
        200,
        &json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m-2026", "choices": [choice], "usage": usage}),
    )
}

/// A span as the collector got it.
#[derive(Debug)]
struct Span {
    raw: Value,
    attributes: BTreeMap<String, Value>,
}

impl Span {
    fn name(&self) -> &str {
        self.raw["name"].as_str().unwrap()
    }

    fn id(&self) -> &str {
        self.raw["spanId"].as_str().unwrap()
    }

    fn is_child_of(&self, parent: &Self) -> bool {
        self.raw["parentSpanId"] == parent.raw["spanId"] && self.raw["traceId"] == parent.raw["traceId"]
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.attributes.get(key)
    }

    fn text(&self, key: &str) -> &str {
        self.get(key).and_then(|value| value["stringValue"].as_str()).unwrap_or_default()
    }
}

/// All spans that have arrived, by the time they began.
fn spans(collector: &Scripted) -> Vec<Span> {
    let mut spans = Vec::new();
    for request in collector.requests() {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
        assert!(head.to_ascii_lowercase().contains("content-type: application/json"), "{head}");
        let body: Value = serde_json::from_str(body).unwrap();
        let resource = &body["resourceSpans"][0]["resource"]["attributes"][0];
        assert_eq!(*resource, json!({"key": "service.name", "value": {"stringValue": "mk"}}));
        for raw in body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap() {
            let attributes = raw["attributes"].as_array().unwrap().iter();
            let attributes =
                attributes.map(|one| (one["key"].as_str().unwrap().to_owned(), one["value"].clone()));
            let span = Span { raw: raw.clone(), attributes: attributes.collect() };
            assert_eq!(
                span.attributes.len(),
                raw["attributes"].as_array().unwrap().len(),
                "an attribute twice: {raw}"
            );
            spans.push(span);
        }
    }
    spans.sort_by_key(|span| {
        let [start, end] = ["startTimeUnixNano", "endTimeUnixNano"]
            .map(|at| span.raw[at].as_str().unwrap().parse::<u64>().unwrap());
        assert!(start <= end);
        (start, std::cmp::Reverse(end))
    });
    spans
}

/// The spans of that name.
fn named<'s>(spans: &'s [Span], name: &str) -> Vec<&'s Span> {
    spans.iter().filter(|span| span.name() == name).collect()
}

#[tokio::test]
async fn a_completion_is_a_span_with_a_child_for_each_attempt() {
    let collector = collector().await;
    let rest = "[inference.fallbacks]\n\"fake/m\" = [\"fake/n\"]\n";
    let gateway = traced_gateway(&collector.base, rest, |ask| match ask.model.as_str() {
        "m" => Reply::status(500, &json!({"error": {"message": "no"}})),
        _ => completion(ANSWER),
    })
    .await;
    let response = gateway.post(hello().to_string()).header("traceparent", CALLER).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers().get("traceparent").is_none());
    let Gateway { server, provider, .. } = gateway;
    server.shutdown().await;

    let spans = spans(&collector);
    let [request, failed, fallback] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!(request.name(), "POST /inference/v1/chat/completions");
    assert_eq!((&request.raw["kind"], &request.raw["traceId"]), (&json!(2), &json!(TRACE)));
    assert_eq!(request.raw["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(request.get("http.response.status_code"), Some(&json!({"intValue": "200"})));
    assert_eq!(request.text("http.route"), "/inference/v1/chat/completions");
    assert_eq!((request.text("mk.request_id"), request.text("mk.answered_by")), ("req-1", "fake/n"));
    assert_eq!((request.get("error.type"), &request.raw["status"]), (None, &json!({})));
    assert!(request.attributes.keys().all(|key| !key.starts_with("gen_ai.usage")), "counted twice");

    for (span, asked) in [failed, fallback].into_iter().zip(provider.requests()) {
        assert!(span.is_child_of(request));
        assert_eq!(span.raw["kind"], 3);
        assert_eq!(asked.traceparent.unwrap(), format!("00-{TRACE}-{}-01", span.id()));
        assert_eq!(span.text("gen_ai.operation.name"), "chat");
        assert_eq!(span.text("gen_ai.provider.name"), "fake");
        assert_eq!(span.text("server.address"), "127.0.0.1");
        assert!(span.get("server.port").is_some());
    }
    assert_eq!((failed.name(), failed.text("gen_ai.request.model")), ("chat m", "m"));
    assert_eq!((failed.text("error.type"), &failed.raw["status"]), ("provider_error", &json!({"code": 2})));
    assert_eq!((fallback.name(), fallback.get("error.type")), ("chat n", None));
    assert_eq!(fallback.get("gen_ai.usage.input_tokens"), Some(&json!({"intValue": "7"})));
    assert_eq!(fallback.get("gen_ai.usage.output_tokens"), Some(&json!({"intValue": "3"})));
    let stop = json!({"arrayValue": {"values": [{"stringValue": "stop"}]}});
    assert_eq!(fallback.get("gen_ai.response.finish_reasons"), Some(&stop));
    let sent = collector.requests().concat();
    assert!(!sent.contains("Hello") && !sent.contains(ANSWER), "a text in a trace: {sent}");
}

#[tokio::test]
async fn a_call_for_embeddings_is_named_as_one() {
    let collector = collector().await;
    let gateway = traced_gateway(&collector.base, "", |_| {
        let vector = json!({"object": "embedding", "index": 0, "embedding": [0.5]});
        let usage = json!({"prompt_tokens": 1, "total_tokens": 1});
        Reply::status(200, &json!({"object": "list", "model": "m", "data": [vector], "usage": usage}))
    })
    .await;
    let url = format!("{}/openai/v1/embeddings", gateway.server.base);
    let request =
        client().post(url).bearer_auth(&gateway.key).json(&json!({"model": "fake/m", "input": "Hi"}));
    assert_eq!(request.send().await.unwrap().status(), 200);
    gateway.server.shutdown().await;
    let spans = spans(&collector);
    let [call] = named(&spans, "embeddings m")[..] else { panic!("{spans:#?}") };
    assert_eq!(call.text("gen_ai.operation.name"), "embeddings");
    assert_eq!(call.text("mk.purpose"), "embeddings");
}

#[tokio::test]
async fn texts_are_in_traces_if_the_operator_says_so() {
    let collector = collector().await;
    let change = |setup: Setup| traced(setup, &collector.base).config(|config| config.traces.capture = true);
    let gateway =
        gateway_with(
            "",
            "",
            change,
            |ask| if ask.stream { stream(&["Hel", "lo!"]) } else { completion(ANSWER) },
        )
        .await;
    gateway.stream(&hello_stream()).await;
    assert_eq!(gateway.ask(&hello()).await.status(), 200);
    gateway.server.shutdown().await;

    let spans = spans(&collector);
    let mut calls = named(&spans, "chat m");
    calls.sort_by_key(|call| call.get("gen_ai.request.stream") == Some(&json!({"boolValue": false})));
    let input = json!([{"role": "user", "parts": [{"type": "text", "content": "Hello"}]}]);
    for (call, text) in calls.iter().zip(["Hello!", ANSWER]) {
        let read = |key: &str| serde_json::from_str::<Value>(call.text(key)).unwrap();
        assert_eq!(read("gen_ai.input.messages"), input);
        let parts = json!([{"type": "text", "content": text}]);
        let output = json!([{"role": "assistant", "parts": parts, "finish_reason": "stop"}]);
        assert_eq!(read("gen_ai.output.messages"), output);
    }
    assert_eq!(calls.len(), 2);
    assert!(calls[0].get("gen_ai.response.time_to_first_chunk").is_some());
    assert_eq!(calls[0].get("gen_ai.request.stream"), Some(&json!({"boolValue": true})));
}

#[tokio::test]
async fn a_verification_is_a_tree() {
    let collector = collector().await;
    let provider = panel_by(|model, ask| match (ask.task.as_str(), model) {
        ("answer", "three") => Reply::status(500, &json!({})),
        ("answer", _) => ask.choose("Paris"),
        _ => Reply::json(&json!({"claims": [], "missing": []})),
    })
    .await;
    let mut config = panel::config(&provider.base_url);
    config.verify.general.auditor = Some("fake/one".to_owned());
    let server = traced(Setup::new(config), &collector.base).start().await;
    let key = server.key(Service::Verify);
    let body = json!({"fact": "The Eiffel Tower is in Paris."});
    let response = server.verify(&key, &body).header("traceparent", "not a context").send().await.unwrap();
    assert!(response.text().await.unwrap().contains("\"TRUE\""));
    server.shutdown().await;

    let spans = spans(&collector);
    let request = named(&spans, "POST /verify/v1/stream")[0];
    assert_eq!(request.get("error.type"), None);
    assert!(
        request.raw.get("parentSpanId").is_none() && request.text("mk.verification_id").starts_with("ver_")
    );
    for (stage, call) in [("extract", "chat extractor"), ("audit", "chat one")] {
        let [stage] = named(&spans, stage)[..] else { panic!("{stage}: {spans:#?}") };
        assert!(stage.is_child_of(request) && stage.raw["kind"] == 1);
        assert_eq!(named(&spans, call).iter().filter(|call| call.is_child_of(stage)).count(), 1, "{call}");
    }
    let [claim] = named(&spans, "claim")[..] else { panic!("{spans:#?}") };
    assert!(claim.is_child_of(request));
    assert_eq!((claim.text("mk.claim.assessment"), claim.get("mk.claim")), ("TRUE", None));
    let votes = named(&spans, "vote");
    assert_eq!(votes.len(), 3);
    let mut failed = 0;
    for vote in votes {
        assert!(vote.is_child_of(claim));
        let calls: Vec<&Span> = spans.iter().filter(|call| call.is_child_of(vote)).collect();
        let [call] = calls[..] else { panic!("{calls:#?}") };
        assert_eq!(call.get("error.type"), vote.get("error.type"));
        failed += usize::from(vote.get("error.type").is_some());
        let told = provider.requests().into_iter().filter_map(|asked| asked.traceparent);
        assert_eq!(told.filter(|told| told.contains(call.id())).count(), 1);
    }
    assert_eq!(failed, 1);
    let sent = collector.requests().concat();
    assert!(!sent.contains("Eiffel") && !sent.contains("not a context"), "{sent}");
}

#[tokio::test]
async fn without_a_collector_nothing_is_told() {
    let gateway = gateway(|_| completion("Hi")).await;
    let response = gateway.post(hello().to_string()).header("traceparent", CALLER).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(gateway.provider.requests()[0].traceparent, None);
    let page = scrape(&gateway.server).await;
    assert!(page.series.keys().all(|series| !series.starts_with("mk_trace_spans")));
}

#[tokio::test]
async fn requests_without_a_valid_key_are_not_traced() {
    let collector = collector().await;
    let gateway = traced_gateway(&collector.base, "", |_| completion("Hi")).await;
    let unknown = "mk_inference_00000000000000000000000000000000";
    assert_eq!(gateway.post_as(unknown, hello().to_string()).send().await.unwrap().status(), 401);
    for path in ["/inference/v1/health", "/", "/nowhere"] {
        client().get(format!("{}{path}", gateway.server.base)).send().await.unwrap();
    }
    let wrong = gateway.ask(&json!({"model": "nobody/x", "messages": []})).await;
    assert!(wrong.status().is_client_error());
    gateway.server.shutdown().await;
    let spans = spans(&collector);
    let [only] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!(only.name(), "POST /inference/v1/chat/completions");
    assert!(!only.text("error.type").is_empty());
    assert_eq!(only.raw["status"], json!({}), "a caller's fault is no error of this server");
}

#[tokio::test]
async fn spans_that_a_busy_collector_refuses_are_sent_again() {
    let busy = answer("503 Service Unavailable", "retry-after: 0\r\n", "{}");
    let taken = answer("200 OK", "", r#"{"partialSuccess":{"rejectedSpans":"1"}}"#);
    let script = move |n: usize| vec![Step::Send(if n == 0 { busy.clone() } else { taken.clone() })];
    let collector = Scripted::start(script).await;
    let gateway = traced_gateway(&collector.base, "", |_| completion("Hi")).await;
    assert_eq!(gateway.ask(&hello()).await.status(), 200);
    let is_over = |page: &crate::support::scrape::Page| {
        let count = |outcome: &str| page.series[&format!("mk_trace_spans_total{{outcome=\"{outcome}\"}}")];
        (count("sent") - 1.0).abs() < 0.1 && (count("failed") - 1.0).abs() < 0.1
    };
    scrape_until(&gateway.server, "one span is taken and one rejected", is_over).await;
    let sent = collector.requests();
    assert!(sent.len() == 2 && sent[0] == sent[1], "{sent:?}");
}

#[tokio::test]
async fn no_collector_keeps_a_server_from_answering_or_from_ending() {
    let flood = |_| {
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec();
        let chunk = format!("10000\r\n{}\r\n", "[".repeat(0x10000)).into_bytes();
        vec![Step::Send(head), Step::Flood(chunk)]
    };
    let garbage = |_| vec![Step::Send(b"\xff\x00 what\r\n\r\n".repeat(9))];
    let (flood, garbage) = (Scripted::start(flood).await, Scripted::start(garbage).await);
    let silent = Scripted::start(|_| vec![Step::Hang]).await;
    let gone = "http://127.0.0.1:1".to_owned();
    for collector in [&flood.base, &garbage.base, &silent.base, &gone] {
        let gateway = traced_gateway(collector, "", |_| completion("Hi")).await;
        let start = Instant::now();
        for _ in 0..10 {
            assert_eq!(gateway.ask(&hello()).await.status(), 200);
        }
        gateway.server.shutdown().await;
        assert!(start.elapsed() < Duration::from_secs(20), "{collector}");
    }
}

#[tokio::test]
async fn a_caller_that_leaves_ends_its_spans() {
    let collector = collector().await;
    let gateway = traced_gateway(&collector.base, "", |_| Reply::Hang).await;
    let asking = gateway.post(hello().to_string()).timeout(Duration::from_millis(300)).send();
    assert!(asking.await.is_err());
    gateway.server.shutdown().await;
    let spans = spans(&collector);
    assert_eq!(spans.len(), 2, "{spans:#?}");
    for span in &spans {
        assert_eq!((span.text("error.type"), &span.raw["status"]), ("cancelled", &json!({})));
    }
}
