//! Messages that a provider of that protocol gets as they came, and its answers as they come back; other providers get
//! what they are translated into.

use mk::api::Service;
use mk::money::NanoUsd;
use serde_json::{Value, json};

use crate::support::chat::{Gateway, gateway_with};
use crate::support::formats::Format;
use crate::support::provider::{ModelRequest, Reply, StreamStep};
use crate::support::server::client;

const PATH: &str = "/anthropic/v1/messages";

/// `claude/m`, at $1 and $2, cached tokens at $0.1 and $3; `claude/lost` falls back to it, `claude/far` to another format.
const CLAUDE: &str = r#"
[providers.claude]
kind = "anthropic"
base_url = "{base_url}"
retries = 0
[providers.claude.models.m]
input_usd_per_mtok = 1.0
output_usd_per_mtok = 2.0
cached_input_usd_per_mtok = 0.1
cache_write_usd_per_mtok = 3.0
[providers.claude.models.far]
input_usd_per_mtok = 1.0
output_usd_per_mtok = 2.0
fallbacks = ["fake/m"]
[models.either]
targets = ["fake/m"]
fallbacks = ["claude/m"]
"#;

async fn start(script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static) -> Gateway {
    gateway_with("", CLAUDE, |setup| setup, script).await
}

fn post(gateway: &Gateway, path: &str, body: impl Into<String>) -> reqwest::RequestBuilder {
    client()
        .post(format!("{}{path}", gateway.server.base))
        .header("x-api-key", &gateway.key)
        .header("anthropic-version", "2023-01-01")
        .header("anthropic-beta", "context-management-2025-06-27,unheard-of-2026-01-01")
        .header("content-type", "application/json")
        .header("x-request-id", "req-1")
        .body(body.into())
}

/// An agent's second turn, as no translation would write it.
fn turn(model: &str, more: &str) -> String {
    format!(
        r#"{{ "max_tokens" :100, "model" : "{model}",
 "system":[{{"type":"text","text":"Be brief.","cache_control":{{"type":"ephemeral","ttl":"1h"}}}}],
 "messages":[{{"role":"user","content":"Oslo?"}},{{"role":"assistant","content":[
  {{"type":"thinking","thinking":"Hm\u00e9.","signature":"EqQBCkgIB=="}},{{"type":"redacted_thinking","data":"3q2+7w=="}},
  {{"type":"tool_use","id":"toolu_1","name":"weather","input":{{"b":1.50,"a":[]}}}}]}},
  {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_1","is_error":false,"content":"7"}}]}}],
 "tools":[{{"name":"weather","input_schema":{{"type":"object"}},"eager_input_streaming":true}}],
 "thinking":{{"type":"adaptive","display":"summarized"}},
 "context_management":{{"edits":[{{"type":"clear_thinking_20251015","keep":"all"}}]}},
 "unheard_of":{{"x":[1,2.0]}}{more}}}"#
    )
}

const MESSAGE: &str = r#"{"id":"msg_01","type":"message","role":"assistant", "model":"m-2026",
"content":[{"type":"thinking","thinking":"Hm.","signature":"Eq=="},{"type":"text","text":"7","citations":[{"type":"page_location","document_index":0}]}],
"stop_reason":"end_turn","stop_sequence":null,"container":{"id":"c"},
"usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":4,"service_tier":"standard"}}"#;

/// A frame of a stream.
fn frame(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

fn stream(model: &str) -> Vec<String> {
    [
        json!({"type": "message_start", "message": {"id": "msg_01", "type": "message", "model": model, "content": [], "usage": {"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 30, "output_tokens": 1}}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "Eq=="}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "S\u{e9}ven"}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {"type": "page_location"}}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "unheard_of", "x": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 4}, "context_management": {"applied_edits": []}}),
        json!({"type": "message_stop"}),
    ]
    .iter()
    .map(frame)
    .collect()
}

fn sent(frames: &[String]) -> Vec<StreamStep> {
    frames.iter().cloned().map(StreamStep::Send).collect()
}

fn as_told(provider: &str) -> String {
    provider.replace("\"m-2026\"", "\"claude/m\"")
}

/// The only row of `req-1`: outcome, prompt, cached, written, completion, cost, whether it is estimated.
fn booked(gateway: &Gateway) -> (String, u64, u64, u64, u64, Option<NanoUsd>, bool) {
    let [row] = gateway.rows().try_into().unwrap();
    let outcome = row.outcome.into_owned();
    (
        outcome,
        row.prompt_tokens,
        row.cached_tokens,
        row.cache_write_tokens,
        row.completion_tokens,
        row.cost,
        row.is_estimated,
    )
}

/// 10 tokens at $1 a million, 30 at $0.1, 20 at $3 and 4 at $2.
const COST: NanoUsd = NanoUsd(10_000 + 3_000 + 60_000 + 8_000);

#[tokio::test]
async fn a_request_and_its_answer_pass_as_they_are() {
    let gateway = start(|_| Reply::Raw(200, Vec::new(), MESSAGE.to_owned())).await;
    let response = post(&gateway, PATH, turn("claude/m", "")).send().await.unwrap();
    assert_eq!(response.headers()["x-mk-model"], "claude/m");
    assert!(response.headers().get("x-mk-dropped").is_none());
    assert_eq!(response.text().await.unwrap(), as_told(MESSAGE));
    let [asked] = gateway.provider.requests().try_into().unwrap();
    assert_eq!((asked.raw, asked.path.as_str()), (turn("m", ""), "/v1/messages"));
    assert_eq!(asked.headers["anthropic-version"], "2023-01-01");
    assert_eq!(asked.headers["anthropic-beta"], "context-management-2025-06-27,unheard-of-2026-01-01");
    let key = gateway.key.as_str();
    assert!(asked.headers.values().all(|value| !value.to_str().unwrap().contains(key)));
    assert_eq!(booked(&gateway), ("ok".to_owned(), 60, 30, 20, 4, Some(COST), false));
}

#[tokio::test]
async fn events_pass_as_they_are() {
    let gateway = start(|_| Reply::Stream(sent(&stream("m-2026")))).await;
    let body = turn("claude/m", r#","stream":true"#);
    let response = post(&gateway, PATH, body).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(response.text().await.unwrap(), stream("claude/m").concat());
    assert_eq!(gateway.provider.requests()[0].raw, turn("m", r#","stream":true"#));
    assert_eq!(booked(&gateway), ("ok".to_owned(), 60, 30, 20, 4, Some(COST), false));
}

#[tokio::test]
async fn the_version_is_told_where_the_caller_leaves_it_out() {
    let gateway = start(|_| Reply::Raw(200, Vec::new(), MESSAGE.to_owned())).await;
    let request = client().post(format!("{}{PATH}", gateway.server.base)).bearer_auth(&gateway.key);
    let body = json!({"model": "claude/m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]});
    assert_eq!(request.json(&body).send().await.unwrap().status(), 200);
    let [asked] = gateway.provider.requests().try_into().unwrap();
    assert_eq!(asked.headers["anthropic-version"], "2023-06-01");
    assert!(!asked.headers.contains_key("anthropic-beta"));
}

#[tokio::test]
async fn a_stream_that_breaks_ends_with_an_error_and_is_booked() {
    let broken = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    for (end, code, outcome) in [
        (StreamStep::Cut, "provider_error", "cut"),
        (StreamStep::Send(frame(&broken)), "provider_overloaded", "overloaded"),
        (StreamStep::Send(frame(&json!({"type": "message_stop"}))), "provider_invalid_response", "malformed"),
        (
            StreamStep::Send(
                "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"x".to_owned() + "\n\n",
            ),
            "provider_invalid_response",
            "malformed",
        ),
    ] {
        let gateway = start(move |_| {
            let mut steps = sent(&stream("m-2026")[..7]);
            steps.extend([StreamStep::APART, end.clone()]);
            Reply::Stream(steps)
        })
        .await;
        let body = turn("claude/m", r#","stream":true"#);
        let text = post(&gateway, PATH, body).send().await.unwrap().text().await.unwrap();
        let begun = stream("claude/m")[..7].concat();
        let rest = text.strip_prefix(&*begun).unwrap_or_else(|| panic!("{text}"));
        let error: Value = serde_json::from_str(rest.strip_prefix("event: error\ndata: ").unwrap()).unwrap();
        assert_eq!((&error["error"]["code"], &error["request_id"]), (&json!(code), &json!("req-1")));
        let (booked, prompt, cached, written, completion, ..) = booked(&gateway);
        assert_eq!((&*booked, prompt, cached, written), (outcome, 60, 30, 20), "{rest}");
        assert!(completion >= 2, "{completion}");
        assert_eq!(gateway.provider.requests().len(), 1);
    }
}

#[tokio::test]
async fn an_answer_that_lacks_its_last_event_gets_it() {
    let gateway = start(|_| Reply::Stream(sent(&stream("m-2026")[..11]))).await;
    let body = turn("claude/m", r#","stream":true"#);
    let text = post(&gateway, PATH, body).send().await.unwrap().text().await.unwrap();
    assert_eq!(text, stream("claude/m").concat());
}

#[tokio::test]
async fn other_models_of_the_chain_get_a_translation() {
    let gateway = start(|ask| match (ask.format, ask.stream) {
        (Format::Anthropic, _) if ask.model == "far" => Reply::status(
            529,
            &json!({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}),
        ),
        (Format::Anthropic, _) => Reply::Raw(200, Vec::new(), MESSAGE.to_owned()),
        _ if ask.model == "m" && ask.body["user"] == "down" => Reply::status(500, &json!({})),
        _ => Reply::Text("Seven".to_owned()),
    })
    .await;
    let body = turn("claude/far", "").replace(",\n \"unheard_of\":{\"x\":[1,2.0]}", "");
    let response = post(&gateway, PATH, body).send().await.unwrap();
    assert_eq!(response.headers()["x-mk-model"], "fake/m");
    assert!(response.headers()["x-mk-dropped"].to_str().unwrap().contains("context_management"));
    let message: Value = response.json().await.unwrap();
    assert_eq!((&message["content"][0]["text"], &message["model"]), (&json!("Seven"), &json!("fake/m")));
    let [claude, fake] = gateway.provider.requests().try_into().unwrap();
    assert_eq!((claude.format, fake.format), (Format::Anthropic, Format::Chat));
    assert_eq!(fake.body["messages"][2]["tool_calls"][0]["function"]["name"], "weather");

    // The other way round; and what cannot be translated is asked of those alone who take it as it is.
    let plain = json!({"model": "either", "max_tokens": 9, "metadata": {"user_id": "down"}, "messages": [{"role": "user", "content": "x"}]});
    let response = post(&gateway, PATH, plain.to_string()).send().await.unwrap();
    assert_eq!(response.headers()["x-mk-model"], "claude/m");
    assert_eq!(response.text().await.unwrap(), as_told(MESSAGE));
    let response = post(&gateway, PATH, turn("claude/far", "")).send().await.unwrap();
    assert_eq!(response.status(), 503, "only the other would have been left");
    let error: Value = response.json().await.unwrap();
    assert_eq!(error["error"]["type"], "overloaded_error");
}

#[tokio::test]
async fn the_words_about_a_prompt_that_is_too_long_stay() {
    for words in [
        "prompt is too long: 208310 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000, decrease input length",
    ] {
        let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": words}});
        let gateway = start(move |_| Reply::status(400, &error)).await;
        for stream in ["", r#","stream":true"#] {
            let response = post(&gateway, PATH, turn("claude/m", stream)).send().await.unwrap();
            assert_eq!(response.status(), 400);
            let error: Value = response.json().await.unwrap();
            assert_eq!(
                (&error["error"]["message"], &error["error"]["type"]),
                (&json!(words), &json!("invalid_request_error"))
            );
        }
    }
}

#[tokio::test]
async fn retries_and_breakers_hold_before_the_first_byte() {
    let busy = std::sync::atomic::AtomicU32::new(0);
    let gateway = gateway_with(
        "",
        &CLAUDE.replacen("retries = 0", "retries = 1", 1),
        |setup| setup,
        move |ask| {
            let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "no"}});
            match busy.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                0 if ask.stream => Reply::Stream(vec![StreamStep::Send(frame(&overloaded))]),
                _ => Reply::Stream(sent(&stream("m-2026"))),
            }
        },
    )
    .await;
    let body = turn("claude/m", r#","stream":true"#);
    let response = post(&gateway, PATH, body).send().await.unwrap();
    assert_eq!(response.headers()["x-mk-attempts"], "2");
    assert_eq!(response.text().await.unwrap(), stream("claude/m").concat());
    let outcomes: Vec<_> = gateway.rows().into_iter().map(|row| row.outcome).collect();
    assert_eq!(outcomes, ["overloaded", "ok"]);
}

#[tokio::test]
async fn keys_with_a_budget_pass_on_only_what_it_counts() {
    let gateway = start(|_| Reply::Raw(200, Vec::new(), MESSAGE.to_owned())).await;
    let (key, _) =
        gateway.server.key_with(Service::Inference, |new| new.budget = Some(NanoUsd(1_000_000_000)));
    let gateway = Gateway { key, ..gateway };
    let ask = async |body: String| {
        let response = post(&gateway, PATH, body).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    let known = |more: &str| turn("claude/m", more).replace(",\n \"unheard_of\":{\"x\":[1,2.0]}", "");
    assert_eq!(ask(known("")).await, (200, as_told(MESSAGE)));
    assert_eq!(gateway.provider.requests()[0].raw, known("").replace("claude/m", "m"));
    assert_eq!(booked(&gateway), ("ok".to_owned(), 60, 30, 20, 4, Some(COST), false));
    // A search is charged apart: beside other tools it is left out, alone it is refused.
    let search = r#"{"type":"web_search_20250305","name":"web_search"}"#;
    let (status, _) = ask(known("").replace("\"tools\":[", &format!("\"tools\":[{search},"))).await;
    assert_eq!(status, 200);
    assert!(!gateway.provider.requests()[1].raw.contains("web_search"));
    for charged in [turn("claude/m", ""), known(r#","mcp_servers":[{"type":"url"}]"#)] {
        let (status, text) = ask(charged).await;
        assert_eq!(status, 400, "{text}");
        assert!(text.contains("unsupported_parameter"), "{text}");
    }
    assert_eq!(gateway.provider.requests().len(), 2);
}

#[tokio::test]
async fn tokens_are_counted_by_the_provider_if_it_can() {
    let gateway = start(|ask| {
        assert_eq!(ask.path, "/v1/messages/count_tokens");
        let reply = |status: u16, body: &str| Reply::Raw(status, Vec::new(), body.to_owned());
        match ask.body["messages"][0]["content"].as_str() {
            Some("wrong") => {
                reply(400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#)
            }
            Some("busy") => reply(529, "{}"),
            _ => reply(200, r#"{"input_tokens": 77,"x":1}"#),
        }
    })
    .await;
    let body = |content: &str| {
        format!(r#"{{ "model": "claude/m","messages":[{{"role":"user","content":"{content}"}}]}}"#)
    };
    let count = async |content: &str| {
        let response = post(&gateway, &format!("{PATH}/count_tokens"), body(content)).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    assert_eq!(count("x").await, (200, r#"{"input_tokens": 77,"x":1}"#.to_owned()));
    assert_eq!(gateway.provider.requests()[0].raw, body("x").replace("claude/m", "m"));
    let (status, text) = count("wrong").await;
    assert!(status == 400 && text.contains("refused the request: no"), "{text}");
    let (status, text) = count("busy").await;
    assert!(status == 200 && text.contains("\"estimated\":true"), "{text}");
    assert_eq!(gateway.rows().len(), 0);
}

#[tokio::test]
async fn answers_are_kept_for_the_same_request_alone() {
    let gateway = start(|ask| match ask.format {
        Format::Anthropic => Reply::Raw(200, Vec::new(), MESSAGE.to_owned()),
        _ => Reply::Text("Seven".to_owned()),
    })
    .await;
    let ask = async |path: &str, beta: &'static str, body: &str| {
        let request = client().post(format!("{}{path}", gateway.server.base)).bearer_auth(&gateway.key);
        let request = request.header("content-type", "application/json").header("anthropic-beta", beta);
        let response = request.header("x-mk-cache", "1h").body(body.to_owned()).send().await.unwrap();
        let mark = response.headers()["x-mk-cache"].to_str().unwrap().to_owned();
        (mark, response.text().await.unwrap())
    };
    let body = r#"{"model":"claude/m","max_tokens":9,"messages":[{"role":"user","content":"x"}]}"#;
    // The same bytes at another door are another request.
    assert_eq!(ask("/openai/v1/chat/completions", "a", body).await.0, "miss");
    for (beta, mark) in [("a", "miss"), ("a", "hit"), ("b", "miss")] {
        assert_eq!(ask(PATH, beta, body).await, (mark.to_owned(), as_told(MESSAGE)));
    }
    // What a fallback says in another form is not kept, what was asked for is.
    let far = body.replace("claude/m", "claude/far");
    for mark in ["miss", "hit"] {
        let (got, text) = ask(PATH, "a", &far).await;
        assert_eq!((&*got, text), (mark, MESSAGE.replace("\"m-2026\"", "\"claude/far\"")));
    }
    assert_eq!(gateway.provider.requests().len(), 4);
}
