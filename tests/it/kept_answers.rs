//! Answers that are kept for callers who ask for it: for the same request of the same app alone, only if they are whole,
//! for as long as was asked, free, and marked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mk::api::Service;
use mk::api::cache_time::CacheTime;
use mk::keys::apps;
use mk::money::NanoUsd;
use reqwest::Response;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::chat::{Gateway, gateway_with, hello, hello_stream};
use crate::support::console::Console;
use crate::support::provider::{ModelRequest, Reply, stream};
use crate::support::scrape::scrape;
use crate::support::server::client;

const HOUR: Duration = Duration::from_hours(1);

/// A provider that numbers its answers, so that a kept one can be told from a new one.
fn numbered() -> impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static {
    let count = AtomicUsize::new(0);
    move |ask| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        if ask.body.get("input").is_some() {
            let vector = json!({"object": "embedding", "index": 0, "embedding": [0.5]});
            let usage = json!({"prompt_tokens": 1, "total_tokens": 1});
            return Reply::status(200, &json!({"object": "list", "data": [vector], "usage": usage}));
        }
        if ask.stream { stream(&["streamed"]) } else { Reply::Text(format!("answer {number}")) }
    }
}

async fn gateway(rest: &str) -> Gateway {
    let rest = format!("[limits]\nper_minute = 0\n{rest}");
    gateway_with("responses = false", &rest, |setup| setup, numbered()).await
}

async fn ask_as(gateway: &Gateway, key: &str, body: &Value, cache: Option<&str>) -> Response {
    let request = gateway.post_as(key, body.to_string());
    let request = match cache {
        Some(value) => request.header("x-mk-cache", value),
        None => request,
    };
    request.send().await.unwrap()
}

/// What the header says, and the text of the answer.
async fn read(response: Response) -> (String, String) {
    let mark = response.headers().get("x-mk-cache").map_or("-", |mark| mark.to_str().unwrap()).to_owned();
    let body: Value = response.json().await.unwrap();
    (mark, body["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned())
}

async fn asked(gateway: &Gateway, body: &Value, cache: Option<&str>) -> (String, String) {
    read(ask_as(gateway, &gateway.key, body, cache).await).await
}

fn is(found: &(String, String), mark: &str, text: &str) {
    assert_eq!((found.0.as_str(), found.1.as_str()), (mark, text));
}

#[tokio::test]
async fn the_same_request_is_answered_with_what_was_kept_and_costs_nothing() {
    let gateway = gateway("").await;
    is(&asked(&gateway, &hello(), Some("1h")).await, "miss", "answer 0");
    gateway.server.clock.advance(Duration::from_secs(90));
    let hit = ask_as(&gateway, &gateway.key, &hello(), Some("1h")).await;
    let header = |name: &str| hit.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(
        (header("age"), header("x-mk-attempts"), header("x-mk-model")),
        ("90".into(), "0".into(), "fake/m".into())
    );
    is(&read(hit).await, "hit", "answer 0");
    assert_eq!(gateway.provider.requests().len(), 1);
    let rows = gateway.rows();
    let booked: Vec<_> = rows.iter().map(|row| (&*row.outcome, row.prompt_tokens, row.is_first)).collect();
    assert_eq!(booked, [("ok", 100, true), ("cached", 0, true)]);
    assert_eq!((rows[1].cost, &*rows[1].model), (Some(NanoUsd(0)), "fake/m"));
    // Nobody who does not ask gets it, and another wording is another request.
    is(&asked(&gateway, &hello(), None).await, "-", "answer 1");
    is(&asked(&gateway, &hello(), Some("off")).await, "-", "answer 2");
    let other = json!({"model": "fake/m", "messages": hello()["messages"], "temperature": 0});
    is(&asked(&gateway, &other, Some("1h")).await, "miss", "answer 3");
    is(&asked(&gateway, &hello(), Some("1h")).await, "hit", "answer 0");
}

#[tokio::test]
async fn an_answer_is_no_older_than_is_asked_for_and_than_it_was_kept_for() {
    let gateway = gateway("").await;
    is(&asked(&gateway, &hello(), Some("1h")).await, "miss", "answer 0");
    gateway.server.clock.advance(HOUR / 2);
    // Once from what waits to be written, once from the store.
    is(&asked(&gateway, &hello(), Some("20m")).await, "miss", "answer 1");
    gateway.server.app.flush_verdicts();
    gateway.server.clock.advance(HOUR / 3 + Duration::from_secs(1));
    is(&asked(&gateway, &hello(), Some("1d")).await, "miss", "answer 2");
    gateway.server.app.flush_verdicts();
    gateway.server.clock.advance(23 * HOUR);
    is(&asked(&gateway, &hello(), Some("30d")).await, "hit", "answer 2");
    gateway.server.clock.advance(2 * HOUR);
    is(&asked(&gateway, &hello(), Some("30d")).await, "miss", "answer 3");
}

#[tokio::test]
async fn the_header_outranks_the_key_and_anything_else_is_refused() {
    let gateway = gateway("").await;
    let (key, _) = gateway.server.key_with(Service::Inference, |new| new.cache = CacheTime::parse("1h"));
    is(&read(ask_as(&gateway, &key, &hello(), None).await).await, "miss", "answer 0");
    is(&read(ask_as(&gateway, &key, &hello(), None).await).await, "hit", "answer 0");
    is(&read(ask_as(&gateway, &key, &hello(), Some("off")).await).await, "-", "answer 1");
    // Another key of the same app may have it.
    is(&asked(&gateway, &hello(), Some("1h")).await, "hit", "answer 0");
    for wrong in ["", "on", "0s", "31d", "1h1h", "fresh"] {
        let response = ask_as(&gateway, &key, &hello(), Some(wrong)).await;
        let status = response.status().as_u16();
        let error: Value = response.json().await.unwrap();
        assert_eq!((status, &error["param"]), (400, &json!("x-mk-cache")), "{wrong}: {error}");
    }
    let twice = gateway.post(hello().to_string()).header("x-mk-cache", "1h").header("x-mk-cache", "2h");
    assert_eq!(twice.send().await.unwrap().status(), 400);
}

#[tokio::test]
async fn nothing_crosses_apps_and_an_app_that_is_deleted_leaves_nothing() {
    let gateway = gateway("").await;
    let app = &gateway.server.app;
    let other = apps::create(&app.store, "other", None, gateway.server.clock.now()).unwrap();
    let (foreign, _) = gateway.server.key_with(Service::Inference, |new| new.app = "other".to_owned());
    is(&asked(&gateway, &hello(), Some("1h")).await, "miss", "answer 0");
    is(&read(ask_as(&gateway, &foreign, &hello(), Some("1h")).await).await, "miss", "answer 1");
    is(&read(ask_as(&gateway, &foreign, &hello(), Some("1h")).await).await, "hit", "answer 1");
    app.flush_verdicts();
    let kept = || {
        let ledger = Connection::open(gateway.server.dir.path().join("data/ledger.db")).unwrap();
        ledger.query_row("SELECT count(*) FROM verdicts", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(kept(), 2);
    app.store.delete_app(&other.id, gateway.server.clock.now()).unwrap();
    assert_eq!(kept(), 1);
    // Tidied by the next longer time that rows are told apart by.
    gateway.server.clock.advance(HOUR + Duration::from_secs(1));
    app.tidy_verdicts().unwrap();
    assert_eq!(kept(), 0);
}

#[tokio::test]
async fn only_whole_answers_of_who_was_asked_are_kept() {
    let answer = |finish: &str, usage: Value| {
        let message = json!({"role": "assistant", "content": "x"});
        let choice = json!({"index": 0, "message": message, "finish_reason": finish});
        json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage})
    };
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8});
    let replies = [
        ("whole", Reply::status(200, &answer("stop", usage.clone()))),
        ("calls", Reply::status(200, &answer("tool_calls", usage.clone()))),
        ("cut", Reply::status(200, &answer("length", usage.clone()))),
        ("filtered", Reply::status(200, &answer("content_filter", usage.clone()))),
        ("odd", Reply::status(200, &answer("exhausted", usage))),
        ("uncounted", Reply::status(200, &answer("stop", Value::Null))),
        ("failing", Reply::status(500, &json!({}))),
    ];
    let rest = "[limits]\nper_minute = 0\n[inference.fallbacks]\n\"fake/down\" = [\"fake/whole\"]\n\
                [models.pool]\ntargets = [\"fake/down\", \"fake/whole\"]\n";
    let replies = Arc::new(replies);
    let script = move |ask: &ModelRequest| {
        let found = replies.iter().find(|(model, _)| *model == ask.model);
        found.map_or_else(|| Reply::status(500, &json!({})), |(_, reply)| reply.clone())
    };
    let gateway = gateway_with("breaker_failures = 0", rest, |setup| setup, script).await;
    for (model, is_kept) in [
        ("fake/whole", true),
        ("fake/calls", true),
        ("fake/cut", false),
        ("fake/filtered", false),
        ("fake/odd", false),
        ("fake/uncounted", false),
        ("fake/failing", false),
        // A fallback's answer is not, but that of any target of a pool is.
        ("fake/down", false),
        ("pool", true),
    ] {
        let body = json!({"model": model, "messages": hello()["messages"]});
        ask_as(&gateway, &gateway.key, &body, Some("1h")).await;
        let before = gateway.provider.requests().len();
        let again = ask_as(&gateway, &gateway.key, &body, Some("1h")).await;
        let is_hit = again.headers().get("x-mk-cache").is_some_and(|mark| mark == "hit");
        let is_asked = gateway.provider.requests().len() > before;
        assert_eq!((is_hit, is_asked), (is_kept, !is_kept), "{model}");
    }
}

#[tokio::test]
async fn a_name_that_means_something_else_is_another_request() {
    let pool = |targets: &str| format!("[limits]\nper_minute = 0\n[models.fast]\ntargets = [{targets}]\n");
    let one = gateway_with("", &pool("\"fake/m\""), |setup| setup, numbered()).await;
    let body = json!({"model": "fast", "messages": hello()["messages"]});
    is(&asked(&one, &body, Some("1h")).await, "miss", "answer 0");
    is(&asked(&one, &body, Some("1h")).await, "hit", "answer 0");
    let changed = crate::support::chat::config(&one.provider.base_url, "", &pool("\"fake/n\""));
    one.server.app.reconfigure(&changed).unwrap();
    is(&asked(&one, &body, Some("1h")).await, "miss", "answer 1");
    // A key that may use less asks for something else, too.
    let both = crate::support::chat::config(&one.provider.base_url, "", &pool("\"fake/m\", \"fake/n\""));
    one.server.app.reconfigure(&both).unwrap();
    is(&asked(&one, &body, Some("1h")).await, "miss", "answer 2");
    let (narrow, _) =
        one.server.key_with(Service::Inference, |new| new.models = vec!["fake/n".into(), "fast".into()]);
    is(&read(ask_as(&one, &narrow, &body, Some("1h")).await).await, "hit", "answer 2");
}

#[tokio::test]
async fn streams_pass_by_and_the_operator_may_allow_none() {
    let streaming = gateway("").await;
    for _ in 0..2 {
        let response = ask_as(&streaming, &streaming.key, &hello_stream(), Some("1h")).await;
        assert_eq!(response.headers()["x-mk-cache"], "bypass");
        assert!(response.text().await.unwrap().ends_with("data: [DONE]\n\n"));
    }
    let without = gateway("[inference]\nmax_cache = \"off\"\n").await;
    is(&asked(&without, &hello(), Some("1h")).await, "bypass", "answer 0");
    is(&asked(&without, &hello(), Some("1h")).await, "bypass", "answer 1");
    let brief = gateway("[inference]\nmax_cache = \"1d\"\n").await;
    is(&asked(&brief, &hello(), Some("7d")).await, "miss", "answer 0");
    brief.server.app.flush_verdicts();
    brief.server.clock.advance(25 * HOUR);
    is(&asked(&brief, &hello(), Some("7d")).await, "miss", "answer 1");
}

#[tokio::test]
async fn limits_count_hits_and_budgets_do_not() {
    let gateway = gateway("").await;
    let (key, id) = gateway.server.key_with(Service::Inference, |new| {
        new.per_day = Some(3);
        // Enough for one call.
        new.budget = Some(NanoUsd(70_000_000));
        new.cache = CacheTime::parse("1h");
    });
    let body = json!({"model": "fake/m", "messages": hello()["messages"], "max_tokens": 1});
    is(&read(ask_as(&gateway, &key, &body, None).await).await, "miss", "answer 0");
    gateway.server.app.flush().unwrap();
    let change = mk::api::console::KeyChange { budget: Some(Some(NanoUsd(1))), ..Default::default() };
    let now = gateway.server.clock.now();
    mk::keys::update(&gateway.server.app.store, &id, &change, now).unwrap();
    let other = json!({"model": "fake/m", "messages": hello()["messages"], "max_tokens": 2});
    assert_eq!(ask_as(&gateway, &key, &other, None).await.status(), 402);
    is(&read(ask_as(&gateway, &key, &body, None).await).await, "hit", "answer 0");
    assert_eq!(ask_as(&gateway, &key, &body, None).await.status(), 429);
}

#[tokio::test]
async fn every_door_has_it_and_reports_count_hits_as_requests() {
    let gateway = gateway("").await;
    let message = json!({"model": "fake/m", "max_tokens": 9, "messages": hello()["messages"]});
    let response = json!({"model": "fake/m", "input": "Hello"});
    let vectors = json!({"model": "fake/m", "input": ["Hello"]});
    for (path, body) in [
        ("/anthropic/v1/messages", message),
        ("/openai/v1/responses", response),
        ("/openai/v1/embeddings", vectors),
    ] {
        let mut answers = Vec::new();
        for mark in ["miss", "hit"] {
            let request = client().post(format!("{}{path}", gateway.server.base)).json(&body);
            let answer = request.bearer_auth(&gateway.key).header("x-mk-cache", "1h").send().await.unwrap();
            assert_eq!(
                (answer.status().as_u16(), &answer.headers()["x-mk-cache"]),
                (200, &mark.parse().unwrap()),
                "{path}"
            );
            let mut answer: Value = answer.json().await.unwrap();
            // Made for each answer anew, as are the ids in it.
            answer
                .as_object_mut()
                .unwrap()
                .retain(|name, _| ["usage", "data", "model", "stop_reason"].contains(&&**name));
            answers.push(answer);
        }
        assert_eq!(answers[0], answers[1], "{path}");
    }
    gateway.server.app.flush().unwrap();
    let console = Console::of(&gateway.server);
    let (_, usage) = console.get("/v1/usage?by=app").await;
    assert_eq!(
        (&usage["data"][0]["requests"], &usage["data"][0]["errors"]),
        (&json!(6), &json!(0)),
        "{usage}"
    );
    let page = scrape(&gateway.server).await;
    assert_eq!(page.series[r#"mk_verdict_cache_total{entry="answer",outcome="hit"}"#].to_string(), "3");
}
