//! What the server logs: the ids by which a request can be found, and no secrets.

use futures_util::StreamExt;
use mk::api::Service;
use serde_json::{Value, json};

use crate::support::chat::{Gateway, gateway_with, hello, hello_stream};
use crate::support::events::Events;
use crate::support::eventually;
use crate::support::log::{Log, on_this_thread};
use crate::support::panel::{config, finds_eiffel, panel_by};
use crate::support::provider::{FakeProvider, Reply, StreamStep, role_chunk, stream, text_chunk};
use crate::support::raw;
use crate::support::scrape::scrape_until;
use crate::support::server::Setup;

#[tokio::test]
async fn requests_are_found_by_their_id_and_no_secret_is_logged() {
    let log = Log::default();
    let guard = log.capture("trace");
    let secret = "sk-test-4f9c1e";
    let provider = FakeProvider::start(|ask| match (ask.task.as_str(), ask.model.as_str()) {
        ("claims", _) => finds_eiffel(),
        (_, "two") => Reply::status(401, &json!({"error": {"message": "Incorrect API key: sk-test-4f9c1e"}})),
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.providers[0].api_key = Some(secret.into()))
        .options(on_this_thread)
        .start()
        .await;
    let key = server.key(Service::Verify);
    let body = json!({"fact": "Private matters of zebra-4711.", "context": "More of okapi-4712."});
    let request = server.verify(&key, &body).header("x-request-id", "find-me.1");
    let events = Events::read(request.send().await.unwrap()).await;
    let id = events.end("completed")["requestId"].clone();
    let typo = format!("{}x", &key[..key.len() - 1]);
    server.verify(&typo, &body).send().await.unwrap();
    let unknown = mk::keys::mint(Service::Verify).unwrap().key;
    let unknown = mk::secret::ExposeSecret::expose_secret(&unknown);
    server.verify(unknown, &body).send().await.unwrap();
    server.shutdown().await;
    drop(guard);

    let lines = log.lines();
    let logged = lines.iter().find(|line| line["fields"]["request_id"] == "find-me.1").expect("not logged");
    assert_eq!(logged["fields"]["status"], 200);
    assert_eq!(logged["fields"]["path"], "/verify/v1/stream");
    let started = lines.iter().find(|line| line["fields"]["verification"] == id).expect("not logged");
    assert_eq!(started["span"]["id"], "find-me.1", "the two ids are linked");

    let text = log.text();
    for word in [&key, &typo, unknown, &key[key.len() - 20..], secret, "zebra-4711", "okapi-4712", "Eiffel"] {
        assert!(!text.contains(word), "{word} is logged");
    }
}

fn log_on_this_thread(setup: Setup) -> Setup {
    setup.options(on_this_thread)
}

#[tokio::test]
async fn failures_fallbacks_and_breakers_are_logged_with_the_request_id() {
    let log = Log::default();
    let guard = log.capture("info");
    let count = std::sync::atomic::AtomicUsize::new(0);
    let of_provider = "breaker_failures = 2\nbreaker_pause = \"50ms\"";
    let more = "[inference.fallbacks]\n\"fake/m\" = [\"fake/n\"]\n";
    let gateway = gateway_with(
        of_provider,
        more,
        |setup| setup.options(on_this_thread).config(|config| config.providers[0].call_policy.retries = 1),
        move |ask| match ask.model.as_str() {
            "m" if count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 2 => {
                Reply::status(500, &json!({}))
            }
            _ => Reply::Text("hello".to_owned()),
        },
    )
    .await;
    assert_eq!(gateway.ask(&hello()).await.headers()["x-mk-model"], "fake/n");
    crate::support::eventually("the pause ends", || {
        gateway.server.app.configured().gateway.breakers()[0].state == mk::inference::BreakerState::HalfOpen
    })
    .await;
    assert_eq!(gateway.ask(&hello()).await.headers()["x-mk-model"], "fake/m");
    drop(guard);

    let lines = log.lines();
    let lines_saying = |message: &str| -> Vec<&Value> {
        let lines = lines.iter().filter(|line| line["fields"]["message"] == message);
        lines.inspect(|line| assert_eq!(line["span"]["id"], "req-1", "{line}")).collect()
    };
    let failed = lines_saying("a model call failed");
    assert_eq!(failed.len(), 2);
    assert!(failed[0]["fields"]["retry_in_ms"].is_u64(), "{}", failed[0]);
    assert_eq!(failed[1]["fields"].get("retry_in_ms"), None, "there is no further retry: {}", failed[1]);
    for line in failed {
        assert_eq!(
            (&line["fields"]["outcome"], &line["fields"]["detail"]),
            (&json!("provider_error"), &json!("status 500"))
        );
    }
    let fallback = lines_saying("falling back to another model");
    assert_eq!(fallback.len(), 1);
    let expected = json!({"message": "falling back to another model", "model": "fake/m",
                          "outcome": "provider_error", "fallback": "fake/n"});
    assert_eq!(fallback[0]["fields"], expected);
    let opens = lines_saying("a circuit breaker opens");
    assert_eq!((opens.len(), &opens[0]["level"]), (1, &json!("WARN")));
    let mut fields = opens[0]["fields"].clone();
    // A part of it is left to chance.
    assert!(fields["pause"].take().as_str().is_some_and(|pause| pause.ends_with("ms")), "{}", opens[0]);
    let expected = json!({"message": "a circuit breaker opens", "provider": "fake", "model": "m", "failures": 2,
                          "pause": null, "outcome": "provider_error"});
    assert_eq!(fields, expected);
    let closes = lines_saying("a circuit breaker closes");
    assert_eq!(
        (closes.len(), &closes[0]["level"], &closes[0]["fields"]["model"]),
        (1, &json!("INFO"), &json!("m"))
    );
}

#[tokio::test]
async fn a_paused_model_is_not_said_to_have_failed() {
    let log = Log::default();
    let guard = log.capture("info");
    let more = "[inference.fallbacks]\n\"fake/m\" = [\"fake/n\"]\n";
    let setup = |setup: Setup| setup.options(on_this_thread);
    let gateway = gateway_with("breaker_failures = 1", more, setup, |ask| match &*ask.model {
        "m" => Reply::status(500, &json!({})),
        _ => Reply::Text("hello".to_owned()),
    })
    .await;
    for _ in 0..2 {
        assert_eq!(gateway.ask(&hello()).await.headers()["x-mk-model"], "fake/n");
    }
    drop(guard);
    let because: Vec<Value> = log
        .lines()
        .iter()
        .filter(|line| line["fields"]["message"] == "falling back to another model")
        .map(|line| line["fields"]["outcome"].clone())
        .collect();
    assert_eq!(because, ["provider_error", "paused"]);
    assert_eq!(log.text().matches("a model call failed").count(), 1);
}

#[tokio::test]
async fn a_broken_stream_and_its_lost_chunks_are_logged_with_the_model() {
    let log = Log::default();
    let guard = log.capture("info");
    let setup = |setup: Setup| setup.options(on_this_thread);
    let gateway = gateway_with("", "", setup, |_| {
        let unreadable = StreamStep::Send("data: {\"choices\": 5}\n\n".to_owned());
        Reply::Stream(vec![role_chunk(), text_chunk("a"), unreadable, StreamStep::APART, StreamStep::Cut])
    })
    .await;
    let text = gateway.stream(&hello_stream()).await;
    assert!(text.contains("\"error\""), "{text}");
    drop(guard);
    for message in ["a stream broke", "unreadable chunks of a stream were dropped"] {
        let lines = log.lines();
        let line = lines.iter().find(|line| line["fields"]["message"] == message);
        assert_eq!(line.map(|line| &line["fields"]["model"]), Some(&json!("fake/m")), "{message}");
    }
}

#[tokio::test]
async fn untrusted_text_cannot_forge_a_log_line() {
    let log = Log::default();
    let guard = log.capture("debug");
    let provider = FakeProvider::start(|_| {
        Reply::status(
            400,
            &json!({"error": {"message": "no\n{\"level\":\"INFO\"}\u{1b}[2J", "code": "a\nb"}}),
        )
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).options(on_this_thread).start().await;
    let key = server.key(Service::Verify);
    Events::read(
        server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap(),
    )
    .await
    .end("error");
    let path = format!("/{}", "long".repeat(10_000));
    crate::support::server::client().get(format!("{}{path}", server.base)).send().await.unwrap();
    drop(guard);
    assert!(log.text().contains("a model call failed"));
    // Each line is a record that the server wrote.
    assert!(log.lines().iter().all(|line| line["target"].as_str().unwrap().starts_with("mk::")));
    assert!(log.text().lines().all(|line| line.len() < 2_000));
}

/// The expected log record of a completion with a key; `more` is added to it.
fn record(gateway: &Gateway, key_id: &str, more: &Value) -> Value {
    let key = gateway.server.app.store.key(key_id).unwrap();
    let mut record = json!({
        "message": "request",
        "request_id": "req-1",
        "method": "POST",
        "path": "/inference/v1/chat/completions",
        "client": "127.0.0.1",
        "key": key_id,
        "app": &*key.app_id,
    });
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    record
}

#[tokio::test]
async fn a_completion_is_logged_in_one_line_with_all_its_details() {
    let log = Log::default();
    let guard = log.capture("info");
    let fallback = "[inference.fallbacks]\n\"fake/down\" = [\"fake/m\"]";
    let gateway = gateway_with("", fallback, log_on_this_thread, |ask| match ask.model.as_str() {
        "down" => Reply::status(401, &json!({})),
        "bad" => Reply::status(400, &json!({"error": {"message": "zebra-4711"}})),
        _ if ask.body["stream"] == true => stream(&["okapi-4712"]),
        _ => Reply::Text("okapi-4712".into()),
    })
    .await;
    let (key, id) = gateway.server.key_with(Service::Inference, |_| {});
    let asks = |model: &str, body: Value| {
        let mut body = body;
        body["model"] = json!(model);
        body.to_string()
    };
    let bodies = [
        asks("fake/m", hello()),
        asks("fake/down", hello_stream()),
        asks("fake/bad", hello()),
        asks("nobody/m", hello()),
    ];
    for body in bodies {
        gateway.post_as(&key, body).send().await.unwrap().text().await.unwrap();
    }
    eventually("all requests have ended", || log.requests().len() == 4).await;
    drop(guard);

    let done = json!({
        "status": 200, "outcome": "ok", "model": "fake/m", "answered_by": "fake/m", "attempts": 1,
        "prompt_tokens": 100, "completion_tokens": 10, "cost_usd": 0.00012,
    });
    // The first attempt used no tokens, so its unknown price does not matter.
    let fell_back = json!({
        "status": 200, "outcome": "ok", "model": "fake/down", "answered_by": "fake/m", "attempts": 2,
        "prompt_tokens": 7, "completion_tokens": 3, "cost_usd": 0.000_013,
    });
    let refused = json!({
        "status": 400, "outcome": "provider_rejected", "model": "fake/bad", "attempts": 1,
        "prompt_tokens": 0, "completion_tokens": 0, "cost_usd": 0.0,
    });
    let unknown = json!({"status": 404, "outcome": "model_not_found"});
    let expected = [done, fell_back, refused, unknown].map(|more| record(&gateway, &id, &more));
    assert_eq!(log.requests(), expected);

    let lines = log.lines();
    let fallback = lines.iter().find(|line| line["fields"]["fallback"] == "fake/m").expect("not logged");
    assert_eq!(
        (&fallback["fields"]["model"], &fallback["span"]["id"]),
        (&json!("fake/down"), &json!("req-1"))
    );
    for word in [&key, &key[key.len() - 20..], "okapi-4712", "Hello"] {
        assert!(!log.text().contains(word), "{word} is logged");
    }
}

#[tokio::test]
async fn a_stream_is_logged_when_it_ends_with_its_outcome() {
    let log = Log::default();
    let guard = log.capture("info");
    let gateway = gateway_with("", "", log_on_this_thread, |ask| {
        let last = if ask.text().contains("Break") { StreamStep::Cut } else { StreamStep::Stall };
        let pause = StreamStep::APART;
        Reply::Stream(vec![role_chunk(), text_chunk("a"), pause, last])
    })
    .await;
    let (key, id) = gateway.server.key_with(Service::Inference, |_| {});

    let broken = hello_stream().to_string().replace("Hello", "Break");
    gateway.post_as(&key, broken).send().await.unwrap().text().await.unwrap();
    eventually("the broken stream is logged", || log.requests().len() == 1).await;
    let body = hello_stream().to_string();
    let mut answer = gateway.post_as(&key, body.clone()).send().await.unwrap().bytes_stream();
    answer.next().await.unwrap().unwrap();
    assert_eq!(log.requests().len(), 1, "the stream is still open");
    drop(answer);
    eventually("the abandoned stream is logged", || log.requests().len() == 2).await;
    let mut answer = gateway.post_as(&key, body).send().await.unwrap().bytes_stream();
    answer.next().await.unwrap().unwrap();
    gateway.server.app.store.revoke_key(&id, gateway.server.clock.now()).unwrap();
    while answer.next().await.is_some() {}
    eventually("the revoked stream is logged", || log.requests().len() == 3).await;
    drop(guard);

    let expected = ["provider_error", "cancelled", "api_key_revoked"].map(|outcome| {
        record(
            &gateway,
            &id,
            &json!({
                "status": 200, "outcome": outcome, "model": "fake/m", "answered_by": "fake/m", "attempts": 1,
                "prompt_tokens": 6, "completion_tokens": 1, "cost_usd": 0.000_008,
            }),
        )
    });
    assert_eq!(log.requests(), expected);
}

#[tokio::test]
async fn a_cancelled_request_is_logged_with_its_usage() {
    let log = Log::default();
    let guard = log.capture("debug");
    let gateway = gateway_with("", "", log_on_this_thread, |_| Reply::Hang).await;
    let (key, id) = gateway.server.key_with(Service::Inference, |_| {});
    let caller = tokio::spawn(gateway.post_as(&key, hello().to_string()).send());
    eventually("the provider is asked", || gateway.provider.in_flight() == 1).await;
    caller.abort();
    eventually("the request is logged", || log.requests().len() == 1).await;
    drop(guard);
    let left = json!({
        "outcome": "cancelled", "model": "fake/m", "attempts": 1,
        "prompt_tokens": 6, "completion_tokens": 0, "cost_usd": 0.000_006,
    });
    assert_eq!(log.requests(), [record(&gateway, &id, &left)]);
    let lines = log.lines();
    let attempt = lines.iter().find(|line| line["fields"]["message"] == "attempt").expect("not logged");
    assert_eq!(
        (&attempt["fields"]["outcome"], &attempt["fields"]["request_id"]),
        (&json!("cancelled"), &json!("req-1"))
    );
}

#[tokio::test]
async fn a_verification_is_logged_in_one_line() {
    let log = Log::default();
    let guard = log.capture("info");
    let provider = panel_by(|_, ask| ask.choose("Paris")).await;
    let server = Setup::new(config(&provider.base_url)).options(on_this_thread).start().await;
    let key = server.key(Service::Verify);
    let answer = server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap();
    let id = Events::read(answer).await.end("completed")["requestId"].clone();
    eventually("the request is logged", || log.requests().len() == 1).await;
    drop(guard);
    let lines = log.lines();
    assert_eq!(lines.len(), 1, "{}", log.text());
    assert_eq!(lines[0]["fields"]["verification"], id);
}

#[tokio::test]
async fn a_cancelled_verification_is_logged_once_all_its_calls_are_recorded() {
    let log = Log::default();
    let guard = log.capture("info");
    let provider = panel_by(|_, _| Reply::Hang).await;
    let server = Setup::new(config(&provider.base_url)).options(on_this_thread).start().await;
    let key = server.key(Service::Verify);
    let answer = server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap();
    eventually("the panel is asked", || provider.in_flight() == 3).await;
    drop(answer);
    eventually("the request is logged", || log.requests().len() == 1).await;
    drop(guard);
    let record = log.requests().remove(0);
    assert_eq!((&record["status"], &record["outcome"]), (&json!(200), &json!("cancelled")));
    assert_eq!(record["attempts"], 4, "{record}");
    assert!(record["verification"].as_str().unwrap().starts_with("ver_"), "{record}");
}

#[tokio::test]
async fn malformed_http_is_logged_as_it_is_counted_and_answered() {
    let log = Log::default();
    let guard = log.capture("info");
    let server = Setup::new(config("http://127.0.0.1:0")).options(on_this_thread).start().await;
    let answer = raw::exchange(server.authority(), b"this is no http zebra-4711\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let id = answer.lines().find_map(|line| line.strip_prefix("x-request-id: ")).expect("no id");
    scrape_until(&server, "it is counted", |page| {
        page.get(r#"mk_http_requests_total{route="other",method="other",status="400"}"#) >= 1.0
    })
    .await;
    drop(guard);
    let logged: Vec<Value> = log.requests().into_iter().filter(|line| line["path"] != "/metrics").collect();
    let expected = json!({
        "message": "request", "request_id": id, "status": 400, "outcome": "malformed_request",
        "client": "127.0.0.1",
    });
    assert_eq!(logged, [expected]);
    assert!(!log.text().contains("zebra-4711"), "foreign bytes are logged");
}
