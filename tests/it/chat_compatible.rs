//! Providers with their own variants of the chat-completion format, as documented by them.

use mk::api::Service;
use mk::config::{Env, ServerArgs, ServerConfig};
use serde_json::{Value, json};

use crate::support::chat::{chunks, gateway, hello_stream};
use crate::support::provider::{Reply, StreamStep};
use crate::support::recorded;
use crate::support::scripted::{Scripted, answer, stream};
use crate::support::server::{NOON, Setup, client};

const AZURE: &str = r#"
listen = "127.0.0.1:0"
data_dir = "/nowhere"
[providers.azure]
base_url = "{base}/openai/deployments/ours?api-version=2024-10-21"
api_key_env = "AZURE_OPENAI_API_KEY"
api_key_header = "api-key"
retries = 0
[providers.v1]
base_url = "{base}/openai/v1/"
api_key_env = "AZURE_OPENAI_API_KEY"
retries = 0
"#;

fn azure(base: &str) -> ServerConfig {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("server.toml");
    std::fs::write(&file, AZURE.replace("{base}", base)).unwrap();
    let arguments = ServerArgs { config: Some(file), ..ServerArgs::default() };
    mk::config::load_server(&arguments, &Env::bare([("AZURE_OPENAI_API_KEY", "azure-secret")], NOON)).unwrap()
}

#[tokio::test]
async fn azure_requests_use_its_url_and_key_header() {
    let events = recorded::events("openai", "chat-stream-azure").concat();
    let provider = Scripted::answering(stream(&events)).await;
    let server = Setup::new(azure(&provider.base)).start().await;
    let key = server.key(Service::Inference);
    let address = format!("{}/inference/v1/chat/completions", server.base);
    for model in ["azure/gpt-4.1", "v1/gpt-4.1"] {
        let mut body = hello_stream();
        body["model"] = json!(model);
        let answer = client().post(&address).bearer_auth(&key).json(&body).send().await.unwrap();
        let raw = answer.text().await.unwrap();
        let list = chunks(&raw);
        assert_eq!(
            list[0]["choices"][0]["delta"]["role"], "assistant",
            "a chunk without choices came first: {raw}"
        );
        assert!(list.iter().all(|chunk| chunk["model"] == model), "{raw}");
    }
    let requests = provider.requests();
    let dated = "POST /openai/deployments/ours/chat/completions?api-version=2024-10-21 HTTP/1.1\r\n";
    assert!(requests[0].starts_with(dated), "{}", requests[0]);
    assert!(requests[0].contains("api-key: azure-secret\r\n") && !requests[0].contains("authorization"));
    assert!(requests[1].starts_with("POST /openai/v1/chat/completions HTTP/1.1\r\n"), "{}", requests[1]);
    assert!(requests[1].contains("authorization: Bearer azure-secret\r\n"), "{}", requests[1]);
}

#[tokio::test]
async fn azure_errors_are_mapped_and_never_expose_its_key() {
    let filtered = json!({"error": {
        "message": "The response was filtered due to the prompt triggering content management policy.",
        "type": null, "param": "prompt", "code": "content_filter", "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": true}}},
    }});
    for (status, body, expected) in [
        ("400 Bad Request", filtered, (400, "content_filter")),
        (
            "401 Unauthorized",
            json!({"error": {"code": "401", "message": "invalid subscription key azure-secret"}}),
            (502, "provider_auth_failed"),
        ),
        ("404 Not Found", json!({"error": {"code": "DeploymentNotFound"}}), (404, "model_not_found")),
    ] {
        let provider = Scripted::answering(answer(status, "", &body.to_string())).await;
        let server = Setup::new(azure(&provider.base)).start().await;
        let sent = client()
            .post(format!("{}/inference/v1/chat/completions", server.base))
            .bearer_auth(server.key(Service::Inference))
            .json(&json!({"model": "azure/x", "messages": [{"role": "user", "content": "x"}]}));
        let response = sent.send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        let error: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((status, error["code"].as_str().unwrap()), expected, "{text}");
        assert!(!text.contains("azure-secret"), "{text}");
    }
}

/// Assembles a stream's tool calls as a client does: by index, with arguments concatenated.
fn calls(list: &[Value]) -> Vec<(String, String)> {
    let mut calls: Vec<(String, String)> = Vec::new();
    let pieces =
        list.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].as_array()).flatten();
    for piece in pieces {
        let number = usize::try_from(piece["index"].as_u64().unwrap()).unwrap();
        if number == calls.len() {
            calls.push((piece["id"].as_str().unwrap().to_owned(), String::new()));
        }
        calls[number].1.push_str(piece["function"]["arguments"].as_str().unwrap_or_default());
    }
    calls
}

#[tokio::test]
async fn parallel_tool_calls_stay_separate_however_a_server_numbers_them() {
    for scenario in [
        "chat-stream-ollama-tools-without-index",
        "chat-stream-ollama-tools-all-first",
        "chat-stream-gemini-tools",
    ] {
        let events = recorded::events("openai", scenario);
        let gateway =
            gateway(move |_| Reply::Stream(events.iter().cloned().map(StreamStep::Send).collect())).await;
        let list = chunks(&gateway.stream(&hello_stream()).await);
        let found = calls(&list);
        let arguments: Vec<&str> = found.iter().map(|(_, arguments)| arguments.as_str()).collect();
        assert_eq!(arguments, [r#"{"city":"Rome"}"#, r#"{"city":"Oslo"}"#], "{scenario}");
        assert_ne!(found[0].0, found[1].0, "{scenario}");
    }
}
