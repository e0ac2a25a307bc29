//! Real responses, checked against what `/openapi.json` says of them: statuses, headers, types, schemas.

use std::time::Duration;

use mk::api::Service;
use mk::config::ServerConfig;
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::support::chat::{gateway, hello, hello_stream};
use crate::support::description::{Answer, Description};
use crate::support::provider::{Reply, StreamStep, role_chunk, stream, text_chunk};
use crate::support::server::{Setup, TestServer, client, sandbox};

const VERIFY: &str = "/verify/v1/stream";
const EXTRACT: &str = "/verify/v1/extract";
const CHAT: &str = "/inference/v1/chat/completions";
const KEYS: &str = "/v1/apps/{app_id}/keys";
const KEY: &str = "/v1/apps/{app_id}/keys/{key_id}";

/// A server with simulated models and without limits, and its description.
async fn server() -> (TestServer, Description) {
    let unlimited =
        |config: &mut ServerConfig| (config.limits.keys.per_minute, config.limits.keys.per_day) = (0, 0);
    let server = Setup::new(sandbox()).config(unlimited).start().await;
    let description = Description::of(&server).await;
    (server, description)
}

/// Sends a request, and fails unless its response is one of those described.
async fn check(description: &Description, method: &str, path: &str, request: RequestBuilder) -> Answer {
    let answer = Answer::read(request.send().await.unwrap()).await;
    description.check_answer(method, path, &answer);
    answer
}

#[tokio::test]
async fn verifications_respond_as_described() {
    let (server, description) = server().await;
    let key = server.key(Service::Verify);
    // A true claim, a false one, one that no model knows, and an opinion.
    let fact = "Canberra is the capital of Australia. 2 + 2 = 5. My uncle has 3 cats. Tea is the best drink.";
    let mut ended = Vec::new();
    for (fact, progress) in
        [(fact, ""), (fact, "models"), ("Is it raining?", ""), ("2 + 2 = 4. [sandbox:fail]", "models")]
    {
        let body = json!({"fact": fact, "explain": true});
        let request = server.verify(&key, &body).header("x-mk-progress", progress);
        let text = check(&description, "POST", VERIFY, request).await.text;
        ended.push(text.contains("event: completed\n"));
        let document = server.verify(&key, &body).header("accept", "application/json");
        check(&description, "POST", VERIFY, document).await;
        let extract = || client().post(format!("{}{EXTRACT}", server.base)).bearer_auth(&key).json(&body);
        check(&description, "POST", EXTRACT, extract()).await;
        check(&description, "POST", EXTRACT, extract().header("accept", "text/event-stream")).await;
    }
    assert!(ended.contains(&true), "{ended:?}");
}

#[tokio::test]
async fn completions_respond_as_described() {
    let gateway = gateway(|ask| match ask.body["messages"][0]["content"].as_str().unwrap() {
        "break" => Reply::Stream(vec![role_chunk(), text_chunk("Hel"), StreamStep::APART, StreamStep::Cut]),
        "tools" => Reply::status(200, &json!({"choices": [{
            "message": {"content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            "finish_reason": "tool_calls",
        }]})),
        "refuse" => Reply::status(400, &json!({"error": {"message": "no", "param": "top_p"}})),
        _ if ask.body["stream"] == true => stream(&["Hel", "lo"]),
        _ => Reply::Text("Hello".to_owned()),
    })
    .await;
    let description = Description::of(&gateway.server).await;
    let mut with_usage = hello_stream();
    with_usage["stream_options"] = json!({"include_usage": true});
    let (mut broken, mut tools, mut refused) = (hello_stream(), hello(), hello());
    broken["messages"][0]["content"] = "break".into();
    tools["messages"][0]["content"] = "tools".into();
    refused["messages"][0]["content"] = "refuse".into();
    let mut statuses = Vec::new();
    for body in [hello(), hello_stream(), with_usage, broken, tools, refused] {
        statuses.push(check(&description, "POST", CHAT, gateway.post(body.to_string())).await.status);
    }
    assert_eq!(statuses, [200, 200, 200, 200, 200, 400]);
}

#[tokio::test]
async fn sandbox_completions_and_models_respond_as_described() {
    let (server, description) = server().await;
    let key = server.key(Service::Inference);
    let mut statuses = Vec::new();
    for (text, stream) in [
        ("What is 6 × 7?", false),
        ("What is 6 × 7?", true),
        ("[sandbox:fail]", true),
        ("[sandbox:garbage] What is 6 × 7?", true),
    ] {
        let body = json!({"model": "sandbox/alpha", "messages": [{"role": "user", "content": text}], "stream": stream});
        let request = client().post(format!("{}{CHAT}", server.base)).bearer_auth(&key).json(&body);
        statuses.push(check(&description, "POST", CHAT, request).await.status);
    }
    assert_eq!(statuses, [200, 200, 502, 200]);
    for path in ["/inference/v1/embeddings", "/openai/v1/embeddings"] {
        for (input, status) in [(json!(["Canberra", "Oslo"]), 200), (json!([1, 2]), 400)] {
            let body = json!({"model": "sandbox/alpha", "input": input});
            let request = client().post(format!("{}{path}", server.base)).bearer_auth(&key).json(&body);
            assert_eq!(check(&description, "POST", path, request).await.status, status);
        }
    }
    let models = "/inference/v1/models";
    let request = client().get(format!("{}{models}", server.base)).bearer_auth(&key);
    assert_eq!(check(&description, "GET", models, request).await.status, 200);
    for (model, status) in [("sandbox/alpha", 200), ("sandbox/nothing", 404)] {
        let request = client().get(format!("{}{models}/{model}", server.base)).bearer_auth(&key);
        assert_eq!(check(&description, "GET", "/inference/v1/models/{model}", request).await.status, status);
    }
}

#[tokio::test]
async fn open_pages_respond_as_described() {
    let (server, description) = server().await;
    for path in ["/verify/v1/health", "/inference/v1/health", "/metrics", "/openapi.json"] {
        let request = client().get(format!("{}{path}", server.base));
        assert_eq!(check(&description, "GET", path, request).await.status, 200, "{path}");
    }
    let broken = rusqlite::Connection::open(server.dir.path().join("data/mk.db")).unwrap();
    broken.execute_batch("ALTER TABLE keys RENAME TO hidden").unwrap();
    for path in ["/verify/v1/health", "/inference/v1/health"] {
        let request = client().get(format!("{}{path}", server.base));
        assert_eq!(check(&description, "GET", path, request).await.status, 503, "{path}");
    }
}

#[tokio::test]
async fn refusals_respond_as_described() {
    let server = Setup::new(sandbox()).config(|config| {
        config.max_body_bytes = 1000;
        config.verify.general.max_fact_chars = 1000;
        config.verify.legal.max_fact_chars = 1000;
    });
    let server = server.options(|options| options.body_idle = Duration::from_millis(500)).start().await;
    let description = Description::of(&server).await;
    let (key, other) = (server.key(Service::Verify), server.key(Service::Inference));
    let (limited, _) = server.key_with(Service::Verify, |new| new.per_minute = Some(1));
    let (elsewhere, _) =
        server.key_with(Service::Verify, |new| new.addresses = vec!["10.0.0.0/8".to_owned()]);
    let (narrow, _) = server.key_with(Service::Verify, |new| new.models = vec!["other/*".to_owned()]);
    let fact = json!({"fact": "2 + 2 = 4"});
    server.verify(&limited, &fact).send().await.unwrap();
    let post = |key: &str| client().post(format!("{}{VERIFY}", server.base)).bearer_auth(key);
    let slow = reqwest::Body::wrap_stream(futures_util::stream::pending::<std::io::Result<&str>>());
    let cases = [
        (400, server.verify(&key, &json!({"fact": 5}))),
        (400, server.verify(&key, &json!([]))),
        (401, client().post(format!("{}{VERIFY}", server.base))),
        (401, server.verify(&other, &fact)),
        (403, server.verify(&elsewhere, &fact)),
        (403, server.verify(&narrow, &fact)),
        (408, post(&key).header("content-type", "application/json").body(slow)),
        (413, server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris.".repeat(50_000)}))),
        (415, post(&key).body("{}")),
        (429, server.verify(&limited, &fact)),
        (
            502,
            server
                .verify(&key, &json!({"fact": "2 + 2 = 4 [sandbox:fail]"}))
                .header("accept", "application/json"),
        ),
    ];
    for (status, request) in cases {
        assert_eq!(check(&description, "POST", VERIFY, request).await.status, status);
    }
    for body in
        [json!({"model": "nobody/m", "messages": [{"role": "user", "content": "x"}]}), json!({"model": 5})]
    {
        let request = client().post(format!("{}{CHAT}", server.base)).bearer_auth(&other).json(&body);
        check(&description, "POST", CHAT, request).await;
    }
}

/// Sends every console operation with all its examples, with a key and without one.
#[tokio::test]
async fn console_operations_respond_as_described() {
    let (server, description) = server().await;
    let (key, own) = server.key_with(Service::Console, |_| {});
    let app = server.app.store.apps().unwrap().remove(0).id;
    let operations = description.operations();
    for (template, method, operation) in operations.iter().filter(|(path, ..)| path.starts_with("/v1/")) {
        // The key in use and its app must not be deleted or replaced.
        let ends = method == "delete" || template.ends_with("/rotate");
        let (app, own) = if ends { ("app_none", "key_none") } else { (app.as_str(), own.as_str()) };
        let path = template.replace("{app_id}", app).replace("{key_id}", own);
        let query = if path.ends_with("/statement") { "?month=2026-11" } else { "" };
        let ask = |body: &Value, with_key: bool| {
            let method = method.to_ascii_uppercase().parse().unwrap();
            let request = client().request(method, format!("{}{path}{query}", server.base));
            let request = if with_key { request.bearer_auth(&key) } else { request };
            if body.is_null() { request } else { request.json(body) }
        };
        for body in bodies(operation) {
            let answer = check(&description, method, template, ask(&body, true)).await;
            assert!(!answer.text.contains("unknown_route"), "{method} {template} has no handler");
            check(&description, method, template, ask(&body, false)).await;
        }
    }
}

/// The request bodies to try an operation with: its examples and an invalid one, or none.
fn bodies(operation: &Value) -> Vec<Value> {
    let examples = operation["requestBody"]["content"]["application/json"]["examples"].as_object();
    let Some(examples) = examples else { return vec![Value::Null] };
    examples.values().map(|example| example["value"].clone()).chain([json!({"nonsense": 1})]).collect()
}

#[tokio::test]
async fn creating_using_and_deleting_an_app_responds_as_described() {
    let (server, description) = server().await;
    let console = server.key(Service::Console);
    let url = |path: &str| format!("{}{path}", server.base);
    let ask =
        |method: &str, path: &str| client().request(method.parse().unwrap(), url(path)).bearer_auth(&console);
    let named = json!({"name": "news"});
    let made = check(&description, "POST", "/v1/apps", ask("POST", "/v1/apps").json(&named)).await;
    let app: Value = serde_json::from_str(&made.text).unwrap();
    let app = format!("/v1/apps/{}", app["id"].as_str().unwrap());

    let request = ask("POST", &format!("{app}/keys")).json(&json!({"service": "verify"}));
    let created = check(&description, "POST", KEYS, request).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let created: Value = serde_json::from_str(&created.text).unwrap();
    let key = format!("{app}/keys/{}", created["id"].as_str().unwrap());
    let own = client().get(url("/v1/key")).bearer_auth(created["key"].as_str().unwrap());
    assert_eq!(check(&description, "GET", "/v1/key", own).await.status, 200);
    let rotate = ask("POST", &format!("{key}/rotate")).json(&json!({"grace_seconds": 60}));
    assert_eq!(check(&description, "POST", &format!("{KEY}/rotate"), rotate).await.status, 201);
    for _ in 0..2 {
        assert_eq!(check(&description, "DELETE", KEY, ask("DELETE", &key)).await.status, 200);
    }
    let rename = ask("PATCH", &key).json(&json!({"name": "late"}));
    assert_eq!(check(&description, "PATCH", KEY, rename).await.status, 409);
    let list = ask("GET", &format!("{app}/keys?state=revoked"));
    assert_eq!(check(&description, "GET", KEYS, list).await.status, 200);
    let (reports, statement) = ("/v1/usage", "/v1/apps/{app_id}/statement");
    for (template, path) in [(reports, reports.to_owned()), (statement, format!("{app}/statement"))] {
        let table = ask("GET", &path).header("accept", "text/csv");
        let table = check(&description, "GET", template, table).await;
        assert!(table.headers["content-type"].to_str().unwrap().starts_with("text/csv"));
    }
    for _ in 0..2 {
        assert_eq!(check(&description, "DELETE", "/v1/apps/{app_id}", ask("DELETE", &app)).await.status, 200);
    }
}
