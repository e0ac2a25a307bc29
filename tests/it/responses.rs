//! Responses behind OpenAI's door, asked of providers that know only other formats.

use serde_json::{Value, json};

use crate::support::chat::{Gateway, gateway_with};
use crate::support::formats::Format;
use crate::support::provider::{ModelRequest, Reply, StreamStep, role_chunk, stream, text_chunk};
use crate::support::server::client;

const OTHERS: &str = "[providers.claude]\nkind = \"anthropic\"\nbase_url = \"{base_url}\"\nretries = 0\n\
                      [providers.gemini]\nkind = \"google\"\nbase_url = \"{base_url}\"\nretries = 0\n";

/// A server in front of a provider that has chat completions alone.
async fn gateway(script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static) -> Gateway {
    gateway_with("responses = false", OTHERS, |setup| setup, script).await
}

/// A request for a response, with the id `req-1`.
fn request(gateway: &Gateway, body: &Value) -> reqwest::RequestBuilder {
    let url = format!("{}/openai/v1/responses", gateway.server.base);
    client().post(url).bearer_auth(&gateway.key).header("x-request-id", "req-1").json(body)
}

async fn ask(gateway: &Gateway, body: &Value) -> (u16, Value) {
    let response = request(gateway, body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// The events of a streamed answer, whose frames must have the form that clients read.
async fn events(gateway: &Gateway, body: &Value) -> Vec<Value> {
    let response = request(gateway, body).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    let text = response.text().await.unwrap();
    let frames = text.split_terminator("\n\n").filter(|frame| *frame != ": keep-alive");
    let read = frames.enumerate().map(|(number, frame)| {
        let (name, data) = frame.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
        let event: Value = serde_json::from_str(data).unwrap();
        assert_eq!((&event["type"], &event["sequence_number"]), (&json!(name), &json!(number)));
        event
    });
    read.collect()
}

/// A script that answers in whatever format it is asked.
fn answers(ask: &ModelRequest) -> Reply {
    if ask.stream { stream(&["Hel", "lo"]) } else { Reply::Text("Hello".to_owned()) }
}

#[tokio::test]
async fn a_text_is_answered_whole_and_streamed() {
    let gateway = gateway(answers).await;
    let body =
        json!({"model": "fake/m", "input": "Hi", "prompt_cache_key": "k", "reasoning": {"summary": "auto"}});
    let response = request(&gateway, &body).send().await.unwrap();
    assert_eq!(response.headers()["x-mk-model"], "fake/m");
    assert_eq!(response.headers()["x-mk-dropped"], "reasoning.summary, prompt_cache_key");
    let response: Value = response.json().await.unwrap();
    assert_eq!(response["output"][0]["content"][0]["text"], "Hello");
    assert_eq!((&response["model"], &response["usage"]["output_tokens"]), (&json!("fake/m"), &json!(10)));

    let streamed = json!({"model": "fake/m", "input": [{"role": "user", "content": "Hi"}], "stream": true});
    let events = events(&gateway, &streamed).await;
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    assert_eq!(last["response"]["output"][0]["content"][0]["text"], "Hello");
    assert_eq!(last["response"]["usage"]["total_tokens"], 10);
    let asked = gateway.provider.requests();
    assert_eq!(asked[0].body, json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}));
    assert_eq!(asked[1].body["messages"], asked[0].body["messages"]);
    let row = |prompt, completion| ("fake/m".to_owned(), "ok".to_owned(), prompt, completion);
    assert_eq!(gateway.booked(), [row(100, 10), row(7, 3)]);
}

#[tokio::test]
async fn a_tool_loop_is_told_to_every_kind_of_provider() {
    let gateway = gateway(answers).await;
    let result = json!([
        {"type": "input_text", "text": "done"},
        {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
    ]);
    let mut body = json!({
        "instructions": "Work.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Go"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": null},
            {"type": "function_call", "call_id": "c1", "name": "close", "namespace": "agents", "arguments": "{\"id\":1}"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "+a"},
            {"type": "function_call_output", "call_id": "c1", "output": "closed"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": result},
        ],
        "tools": [
            {"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "close", "parameters": {"type": "object"}}]},
            {"type": "custom", "name": "patch", "description": "Patches."},
            {"type": "web_search"},
        ],
        "tool_choice": "auto",
        "store": false,
        "include": ["reasoning.encrypted_content"],
    });
    for model in ["fake/m", "claude/m", "gemini/m"] {
        body["model"] = json!(model);
        let (status, response) = ask(&gateway, &body).await;
        assert_eq!((status, &response["status"]), (200, &json!("completed")), "{model}: {response}");
    }
    let [chat, claude, gemini] = gateway.provider.requests().try_into().unwrap();
    assert_eq!(chat.body["messages"][2]["tool_calls"][0]["function"]["name"], "agents__close");
    assert_eq!(chat.body["messages"][4]["content"], "done");
    assert_eq!(chat.body["messages"][5]["content"][1]["image_url"]["url"], "data:image/png;base64,AA==");
    assert_eq!((claude.format, gemini.format), (Format::Anthropic, Format::Google));
    let called = json!({"type": "tool_use", "id": "c2", "name": "patch", "input": {"input": "+a"}});
    assert_eq!(claude.body["messages"][1]["content"][1], called);
    assert_eq!(claude.body["messages"][2]["content"][0]["tool_use_id"], "c1");
    assert_eq!(claude.body["messages"][2]["content"][1]["content"], "done");
    assert_eq!(claude.body["messages"][2]["content"][3]["type"], "image");
    assert_eq!(gemini.body["contents"][1]["parts"][0]["functionCall"]["name"], "agents__close");
}

#[tokio::test]
async fn what_is_wrong_is_named_as_the_caller_named_it() {
    let gateway = gateway(answers).await;
    let output = json!([{"role": "user", "content": "x"}, {"type": "function_call_output", "call_id": "c", "output": ""}]);
    for (model, more, param) in [
        ("claude/m", json!({"top_logprobs": 2}), "top_logprobs"),
        ("claude/m", json!({"input": output}), "input[1]"),
        ("fake/m", json!({"temperature": 3}), "temperature"),
        ("fake/m", json!({"input": [{"role": "user", "content": "\\ud800"}]}), "input[0]"),
        ("fake/m", json!({"previous_response_id": "resp_1"}), "previous_response_id"),
        ("nobody/m", json!({}), "model"),
    ] {
        let mut body = json!({"model": model, "input": "Hi"});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        // A lone surrogate has no other notation.
        let text = body.to_string().replace("\\\\ud800", "\\ud800");
        let sent = request(&gateway, &body).body(text).send().await.unwrap();
        let status = sent.status().as_u16();
        let answer: Value = sent.json().await.unwrap();
        assert!(matches!(status, 400 | 404), "{answer}");
        assert_eq!(answer["error"]["param"], param, "{answer}");
        assert!(!answer["error"]["message"].as_str().unwrap().contains("messages["), "{answer}");
    }
    assert!(gateway.provider.requests().is_empty());
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_told_as_clients_match_it() {
    let gateway = gateway(|_| {
        let error = json!({"message": "too many tokens", "code": "context_length_exceeded"});
        Reply::status(400, &json!({"error": error}))
    })
    .await;
    for stream in [false, true] {
        let (status, answer) =
            ask(&gateway, &json!({"model": "fake/m", "input": "Hi", "stream": stream})).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("context_length_exceeded")));
        assert!(answer["error"]["message"].as_str().unwrap().contains("maximum context length"));
    }
}

#[tokio::test]
async fn a_stream_that_breaks_ends_with_a_failure() {
    let gateway =
        gateway(|_| Reply::Stream(vec![role_chunk(), text_chunk("Hel"), StreamStep::APART, StreamStep::Cut]))
            .await;
    let events = events(&gateway, &json!({"model": "fake/m", "input": "Hi", "stream": true})).await;
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.failed");
    assert_eq!(last["response"]["error"]["code"], "provider_error");
    assert!(last["response"]["error"]["message"].as_str().unwrap().contains("the provider fake"));
    assert_eq!(last["response"]["output"][0]["content"][0]["text"], "Hel");
}

#[tokio::test]
async fn a_web_socket_is_refused_at_once() {
    let gateway = gateway(|_| Reply::Hang).await;
    let url = format!("{}/openai/v1/responses", gateway.server.base);
    let upgrade = client().get(url).header("connection", "upgrade").header("upgrade", "websocket");
    let response = upgrade.bearer_auth(&gateway.key).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["x-should-retry"]),
        (426, &"false".parse().unwrap())
    );
    let get = client().get(format!("{}/openai/v1/responses", gateway.server.base)).send().await.unwrap();
    assert_eq!((get.status().as_u16(), &get.headers()["allow"]), (405, &"POST".parse().unwrap()));
}
