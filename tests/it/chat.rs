//! Chat completions without streaming: what reaches the provider, what comes back, what is rejected.

use std::time::Duration;

use mk::api::Service;
use mk::money::NanoUsd;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::chat::{Gateway, gateway, hello};
use crate::support::provider::Reply;
use crate::support::raw::request;
use crate::support::server::client;

fn answer(body: &Value) -> Reply {
    Reply::Raw(200, vec![("x-ratelimit-remaining-requests", "9".to_owned())], body.to_string())
}

/// A response with provider-specific fields.
fn rich() -> Value {
    json!({
        "id": "chatcmpl-up",
        "object": "chat.completion",
        "created": 1_795_000_000,
        "model": "m-2026-01-01",
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": "Hi", "refusal": null, "annotations": []},
            "logprobs": null,
            "finish_reason": "stop",
        }],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10,
                  "prompt_tokens_details": {"cached_tokens": 4}},
        "service_tier": "default",
    })
}

#[tokio::test]
async fn a_response_has_the_documented_shape_and_keeps_the_provider_s_extra_fields() {
    let gateway = gateway(|_| answer(&rich())).await;
    let response = gateway.ask(&hello()).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(response.headers()["x-mk-model"], "fake/m");
    assert_eq!(response.headers()["x-mk-attempts"], "1");
    assert_eq!(response.headers()["x-ratelimit-limit"], "60");
    assert!(response.headers().get("x-ratelimit-remaining-requests").is_none());
    let mut expected = rich();
    expected["model"] = json!("fake/m");
    assert_eq!(response.json::<Value>().await.unwrap(), expected);
    assert_eq!(gateway.booked(), [("fake/m".to_owned(), "ok".to_owned(), 7, 3)]);
    let row = gateway.rows().remove(0);
    assert_eq!((row.cost.unwrap().0, row.service), (13_000, Service::Inference));
}

#[tokio::test]
async fn fields_that_a_provider_omits_are_filled_in() {
    let bare = json!({"choices": [{"message": {"content": "Hello there"}}]});
    let gateway = gateway(move |_| answer(&bare)).await;
    let (status, body) = gateway.json(&hello()).await;
    assert_eq!(status, 200);
    assert!(body["id"].as_str().unwrap().starts_with("chatcmpl_"));
    assert_eq!((&body["object"], &body["model"]), (&json!("chat.completion"), &json!("fake/m")));
    assert_eq!(body["created"], 1_795_176_000);
    let message = json!({"role": "assistant", "content": "Hello there"});
    assert_eq!(body["choices"], json!([{"message": message, "index": 0, "finish_reason": "stop"}]));
    let usage = json!({"prompt_tokens": 6, "completion_tokens": 3, "total_tokens": 9, "estimated": true});
    assert_eq!(body["usage"], usage);
    assert_eq!(gateway.booked(), [("fake/m".to_owned(), "ok".to_owned(), 6, 3)]);
}

#[tokio::test]
async fn a_request_is_forwarded_unchanged_except_for_the_model() {
    let gateway = gateway(|_| answer(&rich())).await;
    let body = concat!(
        r#"{"messages": [ {"role":"user","content":"caf\u00e9 \ud83d\ude00","name":"é"} ],"#,
        r#" "temperature": 0.70, "tools":[{"type":"function"}], "frobnicate": {"a" : 1.0e2},"#,
        r#" "max_tokens": 5, "model":"fake/m", "stream": false}"#
    );
    let response = gateway.post(body).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let expected = concat!(
        r#"{"model":"m","messages":[ {"role":"user","content":"caf\u00e9 \ud83d\ude00","name":"é"} ],"#,
        r#""temperature":0.70,"tools":[{"type":"function"}],"frobnicate":{"a" : 1.0e2},"#,
        r#""max_tokens":5,"stream":false}"#
    );
    assert_eq!(gateway.provider.requests()[0].raw, expected);
}

#[tokio::test]
async fn reasoning_models_get_max_completion_tokens() {
    let gateway = gateway(|ask| match ask.body.get("max_tokens") {
        Some(_) if ask.model == "hidden-reasoner" => {
            let message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
            Reply::status(400, &json!({"error": {"message": message, "code": "unsupported_parameter"}}))
        }
        _ => answer(&rich()),
    })
    .await;
    for (model, asks) in [("o4-mini", 1), ("openai/gpt-5.4-mini", 1), ("hidden-reasoner", 2)] {
        let mut body = hello();
        body["model"] = json!(format!("fake/{model}"));
        body["max_tokens"] = json!(9);
        let (status, _) = gateway.json(&body).await;
        assert_eq!(status, 200);
        let asked = gateway.provider.requests_for(model);
        assert_eq!(asked.len(), asks, "{model}");
        let last = &asked.last().unwrap().body;
        assert_eq!((last.get("max_tokens"), &last["max_completion_tokens"]), (None, &json!(9)));
    }
}

/// Sends a body that must be rejected without a provider call; returns status, code, param and message.
async fn refusal(gateway: &Gateway, body: &str) -> (u16, String, String, String) {
    let response = gateway.post(body.to_owned()).send().await.unwrap();
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    assert_eq!(gateway.provider.requests().len(), 0, "{body}");
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    (status, text("code"), text("param"), text("message"))
}

#[tokio::test]
async fn invalid_parameters_are_reported_with_path_value_and_range() {
    let gateway = gateway(|_| answer(&rich())).await;
    let user = r#"{"role":"user","content":"x"}"#;
    let with = |more: &str| format!(r#"{{"model":"fake/m","messages":[{user}],{more}}}"#);
    let messages = |list: &str| format!(r#"{{"model":"fake/m","messages":{list}}}"#);
    let list = "a non-empty array of messages";
    let content = "a string or a non-empty array of content parts";
    for (body, param, message) in [
        (with(r#""temperature":2.5"#), "temperature", "a number from 0 to 2, not 2.5"),
        (with(r#""temperature":"hot""#), "temperature", "a number from 0 to 2, not \"hot\""),
        (with(r#""max_tokens":0"#), "max_tokens", "a whole number from 1 to 4294967295, not 0"),
        (with(r#""max_tokens":1.5"#), "max_tokens", "a whole number from 1 to 4294967295, not 1.5"),
        (with(r#""stream":"yes""#), "stream", "true or false, not \"yes\""),
        (with(r#""stream_options":[1]"#), "stream_options", "an object, not an array"),
        (
            with(r#""stream_options":{"include_usage":1}"#),
            "stream_options.include_usage",
            "true or false, not 1",
        ),
        (with(r#""n":129"#), "n", "a whole number from 1 to 128, not 129"),
        (messages("[]"), "messages", &format!("{list}, not an empty array")),
        (messages("\"x\""), "messages", &format!("{list}, not \"x\"")),
        (messages("[3]"), "messages[0]", "an object, not 3"),
        (
            messages(&format!(r#"[{user},{user},{{"role":"robot","content":"x"}}]"#)),
            "messages[2].role",
            "system, user, assistant, developer or tool, not \"robot\"",
        ),
        (messages(r#"[{"role":"user","content":7}]"#), "messages[0].content", &format!("{content}, not 7")),
        (
            messages(r#"[{"role":"user","content":[]}]"#),
            "messages[0].content",
            &format!("{content}, not an empty array"),
        ),
        (
            messages(r#"[{"role":"user","content":[{"type":"text","text":5}]}]"#),
            "messages[0].content[0].text",
            "a string, not 5",
        ),
        (
            messages(r#"[{"role":"user","content":[{"type":"text","text":"a"},"b"]}]"#),
            "messages[0].content[1]",
            "an object, not \"b\"",
        ),
    ] {
        let expected = format!("`{param}` must be {message}");
        let refused = refusal(&gateway, &body).await;
        assert_eq!(refused, (400, "invalid_parameter".to_owned(), param.to_owned(), expected), "{body}");
    }
}

#[tokio::test]
async fn missing_parameters_and_malformed_bodies_are_rejected() {
    let gateway = gateway(|_| answer(&rich())).await;
    for (body, param) in [
        (r#"{"messages":[{"role":"user","content":"x"}]}"#, "model"),
        (r#"{"model":"fake/m"}"#, "messages"),
        (r#"{"model":"fake/m","messages":[{"content":"x"}]}"#, "messages[0].role"),
        (r#"{"model":"fake/m","messages":[{"role":"user"}]}"#, "messages[0].content"),
        (r#"{"model":"fake/m","messages":[{"role":"user","content":null}]}"#, "messages[0].content"),
        (r#"{"model":"fake/m","messages":[{"role":"assistant","content":null}]}"#, "messages[0].content"),
        (r#"{"model":"fake/m","messages":[{"role":"user","content":[{}]}]}"#, "messages[0].content[0].type"),
    ] {
        let (status, code, named, _) = refusal(&gateway, body).await;
        assert_eq!((status, code.as_str(), named.as_str()), (400, "missing_parameter", param));
    }
    for body in ["", "[1]", "{", "nonsense", r#"{"model":"fake/m","model":"fake/n"}"#, "\u{feff}{}"] {
        let (status, code, _, message) = refusal(&gateway, body).await;
        assert_eq!((status, code.as_str()), (400, "invalid_json"), "{message}");
    }
}

#[tokio::test]
async fn tool_calls_images_and_developer_messages_are_forwarded() {
    let gateway = gateway(|_| answer(&rich())).await;
    let messages = json!([
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "call_1", "content": "a cat"},
    ]);
    let (status, _) = gateway.json(&json!({"model": "fake/m", "messages": messages})).await;
    assert_eq!(status, 200);
    assert_eq!(gateway.provider.requests()[0].body["messages"], messages);
}

#[tokio::test]
async fn unknown_and_disallowed_models_are_rejected() {
    let gateway = gateway(|_| answer(&rich())).await;
    let ask = |model: &str| {
        let mut body = hello();
        body["model"] = json!(model);
        body.to_string()
    };
    for model in ["", "gpt-4", "nobody/gpt-4", "fake/", "/m", "fake/a b", "sandbox/omega", "fake/\u{7}"] {
        let (status, code, param, message) = refusal(&gateway, &ask(model)).await;
        assert_eq!((status, code.as_str(), param.as_str()), (404, "model_not_found", "model"), "{model}");
        assert!(message.contains("configured providers: fake, sandbox."), "{message}");
    }
    let (limited, _) = gateway.server.key_with(Service::Inference, |new| {
        new.models = vec!["sandbox/*".to_owned(), "fake/n".to_owned()];
    });
    let status = async |model: &str| {
        let response = gateway.post_as(&limited, ask(model)).send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json::<Value>().await.unwrap()["code"].as_str().map(str::to_owned))
    };
    assert_eq!(status("fake/m").await, (403, Some("model_not_allowed".to_owned())));
    assert_eq!(status("fake/n").await.0, 200);
    assert_eq!(status("sandbox/alpha").await.0, 200);
}

#[tokio::test]
async fn a_limited_key_cannot_let_the_provider_choose_another_model() {
    let gateway = gateway(|_| answer(&rich())).await;
    let key = |models: &[&str], budget: Option<u64>| {
        let made = gateway.server.key_with(Service::Inference, |new| {
            new.models = models.iter().map(|&model| model.to_owned()).collect();
            new.budget = budget.map(NanoUsd);
        });
        made.0
    };
    let [limited, budgeted, free] =
        [key(&["fake/*"], None), key(&[], Some(1_000_000_000)), key(&["*"], None)];
    for (name, value) in [
        ("models", json!(["dear/model"])),
        ("route", json!("fallback")),
        ("preset", json!("dear")),
        ("fallbacks", json!([{"model": "dear/model"}])),
        ("FallBacks", json!([{"model": "dear/model"}])),
        ("extra_body", json!({"model": "dear/model"})),
    ] {
        let mut body = hello();
        body[name] = value.clone();
        for key in [&limited, &budgeted] {
            let response = gateway.post_as(key, body.to_string()).send().await.unwrap();
            let (status, error) = (response.status(), response.json::<Value>().await.unwrap());
            assert_eq!((status.as_u16(), &error["code"]), (400, &json!("unsupported_parameter")), "{error}");
            assert_eq!(error["param"], name);
        }
        let sent_before = gateway.provider.requests().len();
        assert_eq!(gateway.post_as(&free, body.to_string()).send().await.unwrap().status(), 200);
        assert_eq!(gateway.provider.requests()[sent_before].body[name], value, "passed on");
        body[name] = Value::Null;
        assert_eq!(gateway.post_as(&limited, body.to_string()).send().await.unwrap().status(), 200);
    }
    assert_eq!(gateway.provider.requests().len(), 12);

    let mut body = hello();
    body["tools"] = json!([
        {"type": "function", "function": {"name": "f"}},
        {"type": "gateway:advisor", "parameters": {"model": "dear/model"}},
    ]);
    let response = gateway.post_as(&limited, body.to_string()).send().await.unwrap();
    let (status, error) = (response.status(), response.json::<Value>().await.unwrap());
    assert_eq!((status.as_u16(), &error["param"]), (400, &json!("tools[1].type")), "{error}");
    assert_eq!(gateway.post_as(&free, body.to_string()).send().await.unwrap().status(), 200);
    body["tools"][1]["type"] = json!("custom");
    assert_eq!(gateway.post_as(&limited, body.to_string()).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_name_that_a_provider_could_take_for_a_checked_one_is_refused() {
    let gateway = gateway(|_| answer(&rich())).await;
    for (name, known) in [
        ("Model", "model"),
        ("MESSAGES", "messages"),
        ("me\u{17f}sages", "messages"),
        ("Max_Tokens", "max_tokens"),
        ("N", "n"),
        ("Stream", "stream"),
    ] {
        let mut body = hello();
        body[name] = body.get(known).cloned().unwrap_or_else(|| json!(1));
        let (status, error) = gateway.json(&body).await;
        assert_eq!((status, &error["code"]), (400, &json!("unsupported_parameter")), "{error}");
        assert_eq!(error["param"], name);
        assert!(error["message"].as_str().unwrap().ends_with(&format!("did you mean `{known}`?")), "{error}");
    }
    assert_eq!(gateway.provider.requests().len(), 0);
    let mut body = hello();
    body["chatTemplate"] = json!("x");
    assert_eq!(gateway.json(&body).await.0, 200, "unknown names are passed on");
}

#[tokio::test]
async fn only_inference_keys_may_request_completions() {
    let gateway = gateway(|_| answer(&rich())).await;
    let other = gateway.server.key(Service::Verify);
    let response = gateway.post_as(&other, hello().to_string()).send().await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(response.json::<Value>().await.unwrap()["code"], "wrong_service");
    let url = format!("{}/inference/v1/chat/completions", gateway.server.base);
    assert_eq!(client().post(&url).send().await.unwrap().status(), 401);
    let wrong_method = client().get(&url).send().await.unwrap();
    assert_eq!(
        (wrong_method.status().as_u16(), &wrong_method.headers()["allow"]),
        (405, &"POST".parse().unwrap())
    );
    let large = "x".repeat(33_600_000);
    assert_eq!(gateway.post(large).send().await.unwrap().status(), 413);
    assert_eq!(gateway.provider.requests().len(), 0);
}

#[tokio::test]
async fn models_are_listed_with_prices_and_filtered_by_key() {
    let gateway = gateway(|_| answer(&rich())).await;
    let list = async |key: &str| {
        let request = client().get(format!("{}/inference/v1/models", gateway.server.base)).bearer_auth(key);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let (status, body) = list(&gateway.key).await;
    assert_eq!((status, &body["object"]), (200, &json!("list")));
    let mut model = json!({"id": "fake/n", "object": "model", "created": 1_795_176_000, "owned_by": "fake", "kind": "chat"});
    assert_eq!(body["data"][1], model, "unknown values are omitted");
    model["id"] = json!("fake/m");
    model["input_usd_per_mtok"] = json!(1.0);
    model["output_usd_per_mtok"] = json!(2.0);
    assert_eq!(body["data"][0], model);
    let ids = |body: &Value| -> Vec<String> {
        let data = body["data"].as_array().unwrap();
        data.iter().map(|model| model["id"].as_str().unwrap().to_owned()).collect()
    };
    let all = ids(&body);
    assert_eq!(all[..3], ["fake/m", "fake/n", "sandbox/alpha"]);
    assert_eq!(all.len(), 8);
    let (limited, _) =
        gateway.server.key_with(Service::Inference, |new| new.models = vec!["fake/n".to_owned()]);
    assert_eq!(ids(&list(&limited).await.1), ["fake/n"]);
    assert_eq!(list(&gateway.server.key(Service::Verify)).await.0, 401);
}

#[tokio::test]
async fn a_key_revoked_during_the_upload_is_rejected() {
    let gateway = gateway(|_| Reply::Text("Hi".to_owned())).await;
    let (key, id) = gateway.server.key_with(Service::Inference, |_| {});
    let body = hello().to_string();
    let (length, bearer) = (body.len().to_string(), format!("Bearer {key}"));
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("content-length", &length),
        ("expect", "100-continue"),
    ];
    let mut stream = TcpStream::connect(gateway.server.authority()).await.unwrap();
    stream.write_all(&request("POST", "/inference/v1/chat/completions", &headers, "")).await.unwrap();
    // `100 Continue` is sent only after the request has passed the gate.
    let mut asked = [0; 25];
    stream.read_exact(&mut asked).await.unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
    tokio::time::sleep(Duration::from_millis(200)).await;
    gateway.server.app.store.revoke_key(&id, gateway.server.clock.now()).unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("api_key_revoked"), "{answer}");
    assert_eq!(gateway.provider.requests().len(), 0);
}
