//! The doors of other protocols: `/openai/v1` and `/anthropic`. One gate, one set of limits, and errors in the form
//! that the clients of each protocol show and match on.

use mk::api::Service;
use mk::money::NanoUsd;
use serde_json::{Value, json};

use crate::support::chat::{Gateway, gateway, gateway_with, hello, hello_stream};
use crate::support::provider::{Reply, StreamStep, role_chunk, stream, text_chunk};
use crate::support::raw::{exchange, request};
use crate::support::server::client;

/// A request at a path of the gateway, with the id `req-1`.
fn at(gateway: &Gateway, method: &str, path: &str) -> reqwest::RequestBuilder {
    let method = method.parse().unwrap();
    client().request(method, format!("{}{path}", gateway.server.base)).header("x-request-id", "req-1")
}

/// A completion at OpenAI's door.
fn ask(gateway: &Gateway, key: &str, body: &Value) -> reqwest::RequestBuilder {
    at(gateway, "POST", "/openai/v1/chat/completions").bearer_auth(key).json(body)
}

async fn read(request: reqwest::RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

fn failing(status: u16, error: &Value) -> Reply {
    Reply::status(status, &json!({"error": error}))
}

#[tokio::test]
async fn completions_are_the_same_at_both_doors() {
    let gateway = gateway(|ask| match ask.body["messages"][0]["content"].as_str().unwrap() {
        "break" => Reply::Stream(vec![role_chunk(), text_chunk("Hel"), StreamStep::APART, StreamStep::Cut]),
        _ if ask.stream => stream(&["Hel", "lo"]),
        _ => Reply::Text("Hello".to_owned()),
    })
    .await;
    let mut broken = hello_stream();
    broken["messages"][0]["content"] = "break".into();
    for body in [hello(), hello_stream(), broken] {
        let documented = read(gateway.post(body.to_string())).await;
        let here = read(ask(&gateway, &gateway.key, &body)).await;
        assert_eq!(documented.0, 200);
        let without_id = |text: &str| {
            let (before, after) = text.split_once("chatcmpl-").unwrap();
            (before.to_owned(), after.split_once('"').unwrap().1.replace("chatcmpl-", "").len())
        };
        assert_eq!(without_id(&here.1), without_id(&documented.1));
    }
    assert_eq!(gateway.rows().len(), 6);
}

#[tokio::test]
async fn models_are_listed_and_found_by_encoded_names() {
    let gateway = gateway(|_| Reply::Hang).await;
    let get = |path: &str| read(at(&gateway, "GET", path).bearer_auth(&gateway.key));
    let (status, list) = get("/openai/v1/models").await;
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!((status, &list["object"]), (200, &json!("list")));
    assert!(list["data"].as_array().unwrap().iter().any(|model| model["id"] == "fake/m"));
    for path in ["/openai/v1/models/fake/m", "/openai/v1/models/fake%2Fm"] {
        let (status, model) = get(path).await;
        let model: Value = serde_json::from_str(&model).unwrap();
        assert_eq!((status, &model["id"], &model["object"]), (200, &json!("fake/m"), &json!("model")));
    }
    let (status, error) = get("/openai/v1/models/nobody").await;
    assert_eq!(status, 404);
    assert!(error.starts_with(r#"{"error":{"message":"there is no model"#), "{error}");
}

#[tokio::test]
async fn the_base_of_a_door_answers_without_a_key() {
    let gateway = gateway(|_| Reply::Hang).await;
    for path in ["/openai/v1", "/openai/v1/", "/anthropic", "/anthropic/"] {
        for method in ["GET", "HEAD"] {
            assert_eq!(read(at(&gateway, method, path)).await.0, 200, "{method} {path}");
        }
        assert_eq!(read(at(&gateway, "POST", path)).await.0, 405, "{path}");
    }
}

#[tokio::test]
async fn an_error_at_openai_is_exactly_these_bytes() {
    let gateway = gateway(|_| failing(401, &json!({"message": "bad key sk-secret"}))).await;
    let response = ask(&gateway, &gateway.key, &hello()).send().await.unwrap();
    assert_eq!(response.status(), 502);
    for (name, value) in [("x-should-retry", "false"), ("x-request-id", "req-1"), ("x-mk-attempts", "1")] {
        assert_eq!(response.headers()[name], value);
    }
    let expected = concat!(
        r#"{"error":{"message":"the provider fake rejected this server's key; its operator has to check it","#,
        r#""type":"server_error","param":null,"code":"provider_auth_failed","provider":"fake"},"request_id":"req-1"}"#
    );
    assert_eq!(response.text().await.unwrap(), expected);
    let (_, refused) = read(at(&gateway, "POST", "/openai/v1/chat/completions")).await;
    let expected = concat!(
        r#"{"error":{"message":"Invalid or missing API key","type":"authentication_error","param":null,"#,
        r#""code":"missing_api_key"},"request_id":"req-1"}"#
    );
    assert_eq!(refused, expected);
}

#[tokio::test]
async fn every_status_at_openai_has_its_type_and_code() {
    let gateway = gateway_with(
        "first_byte_timeout = \"300ms\"",
        "",
        |setup| setup.config(|config| config.inference_max_body_bytes = 4000),
        |ask| match ask.model.as_str() {
            "long" => failing(400, &json!({"code": "context_length_exceeded"})),
            "strange" => failing(400, &json!({"code": "odd", "message": "no", "param": "top_p"})),
            "unknown" => failing(404, &json!({"message": "no"})),
            "limited" => failing(429, &json!({"message": "no"})),
            "broken" => failing(500, &json!({"message": "no"})),
            _ => Reply::Hang,
        },
    )
    .await;
    let server = &gateway.server;
    let unlimited = |new: &mut mk::keys::NewKey| new.per_minute = Some(0);
    let (key, _) = server.key_with(Service::Inference, unlimited);
    let (poor, _) = server.key_with(Service::Inference, |new| new.budget = Some(NanoUsd(1)));
    let (narrow, _) = server.key_with(Service::Inference, |new| new.models = vec!["other/*".to_owned()]);
    let (once, _) = server.key_with(Service::Inference, |new| new.per_minute = Some(1));
    let verify = server.key(Service::Verify);
    ask(&gateway, &once, &json!({})).send().await.unwrap();
    let model = |name: &str| {
        let mut body = hello();
        body["model"] = format!("fake/{name}").into();
        ask(&gateway, &key, &body)
    };
    let post = || at(&gateway, "POST", "/openai/v1/chat/completions").bearer_auth(&key);
    let json_post = || post().header("content-type", "application/json");
    let invalid = "invalid_request_error";
    let cases = [
        (json_post().body("{"), 400, invalid, "invalid_json", ""),
        (ask(&gateway, &key, &json!({"model": "fake/m"})), 400, invalid, "missing_parameter", "messages"),
        (model("strange"), 400, invalid, "odd", "top_p"),
        (model("long"), 400, invalid, "context_length_exceeded", ""),
        (ask(&gateway, "nonsense", &hello()), 401, "authentication_error", "invalid_api_key", ""),
        (ask(&gateway, &verify, &hello()), 401, "authentication_error", "wrong_service", ""),
        (ask(&gateway, &poor, &hello()), 402, "insufficient_quota", "budget_exceeded", ""),
        (ask(&gateway, &narrow, &hello()), 403, "permission_error", "model_not_allowed", "model"),
        (model("unknown"), 404, "not_found_error", "model_not_found", ""),
        (at(&gateway, "GET", "/openai/v1/nothing"), 404, "not_found_error", "unknown_route", ""),
        (at(&gateway, "GET", "/openai/v1/chat/completions"), 405, invalid, "method_not_allowed", ""),
        (json_post().body(" ".repeat(4001)), 413, invalid, "body_too_large", ""),
        (post().body("{}"), 415, invalid, "unsupported_media_type", ""),
        (ask(&gateway, &once, &hello()), 429, "rate_limit_error", "rate_limited_minute", ""),
        (model("broken"), 502, "server_error", "provider_error", ""),
        (model("limited"), 503, "server_error", "provider_rate_limited", ""),
        (model("silent"), 504, "server_error", "provider_timeout", ""),
    ];
    for (request, status, kind, code, param) in cases {
        let (got, text) = read(request).await;
        let body: Value = serde_json::from_str(&text).unwrap();
        let error = &body["error"];
        assert_eq!((got, &error["type"], &error["code"]), (status, &json!(kind), &json!(code)), "{text}");
        let param = if param.is_empty() { Value::Null } else { json!(param) };
        assert_eq!((&error["param"], &body["request_id"]), (&param, &json!("req-1")), "{text}");
        let message = error["message"].as_str().unwrap();
        assert!(!message.is_empty());
        assert_eq!(
            message.contains("maximum context length"),
            code == "context_length_exceeded",
            "{message}"
        );
    }
}

#[tokio::test]
async fn unknown_paths_at_anthropic_are_refused_in_its_form() {
    let gateway = gateway(|_| Reply::Hang).await;
    let bytes = request("GET", "/anthropic/v1/nothing", &[("x-request-id", "my-id.1")], "");
    let answer = exchange(gateway.server.authority(), &bytes).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 404 ") && head.contains("\r\nrequest-id: my-id.1"), "{head}");
    let expected = concat!(
        r#"{"type":"error","error":{"type":"not_found_error","message":"no such endpoint; the API is under "#,
        r#"/verify/v1, /inference/v1, /openai/v1, /anthropic/v1 and /v1","code":"unknown_route"},"request_id":"my-id.1"}"#
    );
    assert_eq!(body, expected);
}

#[tokio::test]
async fn only_the_doors_of_models_take_large_bodies() {
    let gateway = gateway(|_| Reply::Text("Hello".to_owned())).await;
    let mut body = hello();
    body["messages"][0]["content"] = "x".repeat(5 << 20).into();
    assert_eq!(read(gateway.post(body.to_string())).await.0, 200);
    assert_eq!(read(ask(&gateway, &gateway.key, &body)).await.0, 200);
    let verify = gateway.server.key(Service::Verify);
    let fact = json!({"fact": "x".repeat(5 << 20)});
    assert_eq!(gateway.server.verify(&verify, &fact).send().await.unwrap().status(), 413);
}
