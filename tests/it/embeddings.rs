//! `POST /inference/v1/embeddings` and `/openai/v1/embeddings`: passed on, translated or simulated, and accounted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mk::api::Service;
use mk::money::NanoUsd;
use serde_json::{Value, json};

use crate::support::chat::{Gateway, gateway_with};
use crate::support::provider::{ModelRequest, Reply};
use crate::support::server::client;

const GOOGLE: &str = "[providers.gemini]\nkind = \"google\"\nbase_url = \"{base_url}\"\n\
                      [providers.claude]\nkind = \"anthropic\"\nbase_url = \"{base_url}\"\n";

/// A provider with a vector for each input, as OpenAI and Google write them.
fn vectors(ask: &ModelRequest) -> Reply {
    if let Some(requests) = ask.body["requests"].as_array() {
        let vectors: Vec<Value> = requests.iter().map(|_| json!({"values": [0.5, -0.25]})).collect();
        return Reply::status(200, &json!({"embeddings": vectors}));
    }
    let list = ask.body["input"].as_array().filter(|list| !list[0].is_number());
    let count = list.map_or(1, Vec::len);
    let data: Vec<Value> = (0..count)
        .map(|index| json!({"object": "embedding", "index": index, "embedding": [0.5, -0.25]}))
        .collect();
    let usage = json!({"prompt_tokens": 7, "total_tokens": 7});
    Reply::status(
        200,
        &json!({"object": "list", "data": data, "model": ask.model, "usage": usage, "id": "e-1"}),
    )
}

async fn gateway(script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static) -> Gateway {
    gateway_with("", GOOGLE, |setup| setup, script).await
}

async fn embed_as(gateway: &Gateway, key: &str, path: &str, body: &Value) -> (u16, Value) {
    let request = client().post(format!("{}{path}", gateway.server.base)).bearer_auth(key).json(body);
    let request = request.header("x-request-id", "req-1");
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn embed(gateway: &Gateway, body: &Value) -> (u16, Value) {
    embed_as(gateway, &gateway.key, "/inference/v1/embeddings", body).await
}

#[tokio::test]
async fn a_provider_of_the_format_gets_the_request_as_it_is() {
    let gateway = gateway(vectors).await;
    for path in ["/inference/v1/embeddings", "/openai/v1/embeddings"] {
        let body = json!({"model": "fake/m", "input": ["a", "b"], "dimensions": 2, "encoding_format": "float", "x": 1});
        let (status, answer) = embed_as(&gateway, &gateway.key, path, &body).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(
            (&answer["object"], &answer["model"], &answer["id"]),
            (&json!("list"), &json!("fake/m"), &json!("e-1"))
        );
        assert_eq!(answer["data"][1], json!({"object": "embedding", "index": 1, "embedding": [0.5, -0.25]}));
        assert_eq!(answer["usage"], json!({"prompt_tokens": 7, "total_tokens": 7}));
    }
    let sent = &gateway.provider.requests()[0].body;
    assert_eq!(
        *sent,
        json!({"model": "m", "input": ["a", "b"], "dimensions": 2, "encoding_format": "float", "x": 1})
    );
    // One dollar for a million tokens.
    let rows = gateway.rows();
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!((row.prompt_tokens, row.completion_tokens, row.cost), (7, 0, Some(NanoUsd(7000))));
    }
    // Tokens go to this format as they are.
    for input in [json!([1, 2, 3]), json!([[1, 2], [3]])] {
        assert_eq!(embed(&gateway, &json!({"model": "fake/m", "input": input})).await.0, 200);
        assert_eq!(gateway.provider.requests().last().unwrap().body["input"], input);
    }
}

#[tokio::test]
async fn google_gets_a_request_for_each_text() {
    let gateway = gateway(vectors).await;
    let body = json!({"model": "gemini/g", "input": ["a", "b"], "dimensions": 2, "user": "u"});
    let (status, answer) = embed(&gateway, &body).await;
    assert_eq!(status, 200, "{answer}");
    let sent = &gateway.provider.requests()[0];
    assert_eq!(sent.model, "g");
    let one = |text: &str| json!({"model": "models/g", "content": {"parts": [{"text": text}]}, "outputDimensionality": 2});
    assert_eq!(sent.body, json!({"requests": [one("a"), one("b")]}));
    assert_eq!(answer["data"][1], json!({"object": "embedding", "index": 1, "embedding": [0.5, -0.25]}));
    assert_eq!(answer["usage"]["estimated"], true);

    let base64 = json!({"model": "gemini/g", "input": "a", "encoding_format": "base64"});
    let (_, answer) = embed(&gateway, &base64).await;
    let bytes = STANDARD.decode(answer["data"][0]["embedding"].as_str().unwrap()).unwrap();
    assert_eq!(bytes, [0.5_f32, -0.25].iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_a_provider_does_not_have_is_refused_by_name_and_not_sent() {
    let gateway = gateway(vectors).await;
    for (body, param) in [
        (json!({"model": "claude/c", "input": "a"}), "model"),
        (json!({"model": "gemini/g", "input": [1, 2]}), "input"),
        (json!({"model": "gemini/g", "input": "a", "truncate": true}), "truncate"),
        (json!({"model": "sandbox/alpha", "input": [[1], [2]]}), "input"),
        (json!({"model": "fake/m"}), "input"),
        (json!({"model": "fake/m", "input": ""}), "input"),
        (json!({"model": "fake/m", "input": "a", "dimensions": 0}), "dimensions"),
        (json!({"input": "a"}), "model"),
    ] {
        let (status, error) = embed(&gateway, &body).await;
        assert_eq!((status, &error["param"]), (400, &json!(param)), "{body}: {error}");
    }
    assert_eq!(embed(&gateway, &json!({"model": "nobody/m", "input": "a"})).await.0, 404);
    assert!(gateway.provider.requests().is_empty());
}

#[tokio::test]
async fn the_sandbox_has_the_same_vector_for_the_same_text() {
    let gateway = gateway(vectors).await;
    let body = json!({"model": "sandbox/alpha", "input": ["Paris", "Paris", "Rome"], "dimensions": 16});
    let (status, answer) = embed(&gateway, &body).await;
    assert_eq!(
        (status, &answer["mode"], &answer["model"]),
        (200, &json!("sandbox"), &json!("sandbox/alpha")),
        "{answer}"
    );
    let vector = |index: usize| answer["data"][index]["embedding"].as_array().unwrap().clone();
    assert_eq!((vector(0).len(), vector(0) == vector(1), vector(0) == vector(2)), (16, true, false));
    assert_eq!(embed(&gateway, &body).await.1["data"], answer["data"]);
}

#[tokio::test]
async fn retries_fallbacks_budgets_and_keys_hold_as_for_completions() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let rest = "[inference.fallbacks]\n\"fake/m\" = [\"fake/n\"]\n";
    let gateway = gateway_with(
        "",
        rest,
        |setup| setup,
        move |ask| {
            count.fetch_add(1, Ordering::SeqCst);
            if ask.model == "m" { Reply::status(500, &json!({})) } else { vectors(ask) }
        },
    )
    .await;
    let body = json!({"model": "fake/m", "input": "a"});
    assert_eq!(embed(&gateway, &body).await.1["model"], "fake/n");
    assert_eq!(calls.load(Ordering::SeqCst), 2);

    // The price of `n` is unknown, and a budget of a nano-dollar does not cover a call of `m`.
    let (poor, _) = gateway.server.key_with(Service::Inference, |new| new.budget = Some(NanoUsd(1)));
    let (status, error) = embed_as(&gateway, &poor, "/inference/v1/embeddings", &body).await;
    assert_eq!((status, &error["code"]), (402, &json!("budget_exceeded")), "{error}");
    let unpriced = json!({"model": "fake/n", "input": "a"});
    let (_, error) = embed_as(&gateway, &poor, "/inference/v1/embeddings", &unpriced).await;
    assert_eq!(error["code"], "price_unknown");
    let (narrow, _) =
        gateway.server.key_with(Service::Inference, |new| new.models = vec!["sandbox/*".to_owned()]);
    assert_eq!(embed_as(&gateway, &narrow, "/inference/v1/embeddings", &body).await.0, 403);
    let wrong = gateway.server.key(Service::Verify);
    let (status, error) = embed_as(&gateway, &wrong, "/openai/v1/embeddings", &body).await;
    assert_eq!((status, &error["error"]["code"]), (401, &json!("wrong_service")), "{error}");
}

#[tokio::test]
async fn an_answer_without_a_vector_for_each_text_is_none() {
    let replies = [
        json!({"data": [{"embedding": [1.0]}]}),
        json!({"data": [{"embedding": [1.0]}, {"embedding": 7}]}),
        json!({"data": "x"}),
        json!([]),
    ];
    for reply in replies {
        let gateway = gateway(move |_| Reply::status(200, &reply)).await;
        let (status, error) = embed(&gateway, &json!({"model": "fake/m", "input": ["a", "b"]})).await;
        assert_eq!((status, &error["code"]), (502, &json!("provider_invalid_response")), "{error}");
    }
    let huge = format!("{{\"data\": [{{\"embedding\": [{}1]}}]}}", "0.123456789,".repeat(1_000_000));
    let gateway = gateway(move |_| Reply::Raw(200, Vec::new(), huge.clone())).await;
    let (status, answer) = embed(&gateway, &json!({"model": "fake/m", "input": "a"})).await;
    // Larger than any completion, and still read; a usage is added.
    assert_eq!((status, &answer["usage"]["estimated"]), (200, &json!(true)));
}
