//! Requests for responses that a provider with that API gets as they came, and its answers as they come back; where a
//! provider does not have it, that is found out and remembered.

use mk::api::Service;
use mk::money::NanoUsd;
use serde_json::{Value, json};

use crate::support::chat::{Gateway, gateway, gateway_with};
use crate::support::provider::{ModelRequest, Reply, StreamStep};
use crate::support::server::client;

fn post(gateway: &Gateway, body: impl Into<String>) -> reqwest::RequestBuilder {
    client()
        .post(format!("{}/openai/v1/responses", gateway.server.base))
        .bearer_auth(&gateway.key)
        .header("content-type", "application/json")
        .header("x-request-id", "req-1")
        .body(body.into())
}

fn turn(model: &str, more: &str) -> String {
    format!(
        r#"{{ "model" : "{model}","input":[ {{"role":"user","content":[{{"type":"input_text","text":"Go \u00e9"}}]}},
{{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAA=="}},
{{"type":"function_call","call_id":"c1","name":"close","namespace":"agents","arguments":"{{}}"}},
{{"type":"function_call_output","call_id":"c1","output":"closed"}}],
"tools":[{{"type":"function","name":"close","parameters":{{"type":"object"}}}},{{"type":"web_search"}}],
"prompt_cache_key":"k","include":["reasoning.encrypted_content"],"store":false,"unheard_of":1.0{more}}}"#
    )
}

const WHOLE: &str = r#"{"id":"resp_1","object":"response","status":"completed","error":null,"model":"m-2026",
"output":[{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gB=="},{"type":"message","content":[{"type":"output_text","text":"Done","annotations":[]}]}],
"usage":{"input_tokens":50,"input_tokens_details":{"cached_tokens":30},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":57},"unheard_of":[1.0]}"#;

fn frame(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

fn stream(model: &str) -> Vec<String> {
    let response = |status: &str| json!({"id": "resp_1", "object": "response", "status": status, "error": null, "model": model, "output": [], "usage": null, "tools": []});
    let mut completed = response("completed");
    completed["usage"] =
        json!({"input_tokens": 50, "input_tokens_details": {"cached_tokens": 30}, "output_tokens": 7});
    [
        json!({"type": "response.created", "sequence_number": 0, "response": response("in_progress")}),
        json!({"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": {"type": "message", "id": "msg_1"}}),
        json!({"type": "response.output_text.delta", "sequence_number": 2, "item_id": "msg_1", "delta": "Done, all done", "obfuscation": "x"}),
        json!({"type": "response.unheard_of", "sequence_number": 3}),
        json!({"type": "response.completed", "sequence_number": 4, "response": completed}),
    ]
    .iter()
    .map(frame)
    .collect()
}

fn sent(frames: &[String]) -> Vec<StreamStep> {
    frames.iter().cloned().map(StreamStep::Send).collect()
}

fn has_responses(ask: &ModelRequest) -> Reply {
    match (ask.path.as_str(), ask.stream) {
        ("/v1/responses", false) => Reply::Raw(200, Vec::new(), WHOLE.to_owned()),
        ("/v1/responses", true) => Reply::Stream(sent(&stream("m-2026"))),
        _ => Reply::Text("translated".to_owned()),
    }
}

/// A provider that has chat completions alone, and says so in the way of `status`.
fn has_none(status: u16) -> impl Fn(&ModelRequest) -> Reply {
    move |ask| match ask.path.as_str() {
        "/v1/responses" => Reply::status(status, &json!({"detail": "Not Found"})),
        _ if ask.model == "unknown" => Reply::status(404, &json!({"error": {"code": "model_not_found"}})),
        _ => Reply::Text("translated".to_owned()),
    }
}

fn paths(gateway: &Gateway) -> Vec<String> {
    gateway.provider.requests().into_iter().map(|ask| ask.path).collect()
}

/// Outcome, prompt, cached and completion tokens of each row of `req-1`.
fn booked(gateway: &Gateway) -> Vec<(String, u64, u64, u64)> {
    let rows = gateway.rows().into_iter();
    rows.map(|row| (row.outcome.into_owned(), row.prompt_tokens, row.cached_tokens, row.completion_tokens))
        .collect()
}

#[tokio::test]
async fn a_request_and_its_answer_pass_as_they_are() {
    for setting in ["responses = true", ""] {
        let gateway = gateway_with(setting, "", |setup| setup, has_responses).await;
        // What nobody could translate is asked only of those who surely take it.
        let more = if setting.is_empty() { "" } else { r#","prompt":{"id":"pmpt_1"}"# };
        let response = post(&gateway, turn("fake/m", more)).send().await.unwrap();
        assert_eq!(response.headers()["x-mk-model"], "fake/m");
        assert!(response.headers().get("x-mk-dropped").is_none());
        assert_eq!(response.text().await.unwrap(), WHOLE.replace("\"m-2026\"", "\"fake/m\""));
        let [asked] = gateway.provider.requests().try_into().unwrap();
        assert_eq!((asked.raw, asked.path.as_str()), (turn("m", more), "/v1/responses"));
        assert_eq!(booked(&gateway), [("ok".to_owned(), 50, 30, 7)]);
    }
}

#[tokio::test]
async fn events_pass_as_they_are() {
    let gateway = gateway(has_responses).await;
    let response = post(&gateway, turn("fake/m", r#","stream":true"#)).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(response.text().await.unwrap(), stream("fake/m").concat());
    assert_eq!(booked(&gateway), [("ok".to_owned(), 50, 30, 7)]);
}

#[tokio::test]
async fn a_provider_without_them_is_remembered() {
    for status in [404, 405, 501] {
        let gateway = gateway(has_none(status)).await;
        for _ in 0..2 {
            let response = post(&gateway, turn("fake/m", "")).send().await.unwrap();
            assert!(response.headers()["x-mk-dropped"].to_str().unwrap().contains("tools.web_search"));
            let answer: Value = response.json().await.unwrap();
            assert_eq!(answer["output"][0]["content"][0]["text"], "translated", "{answer}");
        }
        assert_eq!(paths(&gateway), ["/v1/responses", "/v1/chat/completions", "/v1/chat/completions"]);
        let row = ("ok".to_owned(), 100, 0, 10);
        assert_eq!(booked(&gateway), [row.clone(), row]);
        let response = post(&gateway, turn("fake/unknown", "")).send().await.unwrap();
        assert_eq!(response.status(), 404);
    }
}

#[tokio::test]
async fn a_setting_says_what_a_provider_has() {
    let gateway = gateway_with("responses = false", "", |setup| setup, has_responses).await;
    post(&gateway, turn("fake/m", "")).send().await.unwrap();
    assert_eq!(paths(&gateway), ["/v1/chat/completions"]);
    let gateway = gateway_with("responses = true", "", |setup| setup, has_none(404)).await;
    let response = post(&gateway, turn("fake/m", "")).send().await.unwrap();
    assert_eq!((response.status().as_u16(), paths(&gateway)), (404, vec!["/v1/responses".to_owned()]));
}

#[tokio::test]
async fn what_is_refused_by_name_is_refused_here_as_well() {
    let gateway = gateway_with("responses = true", "", |setup| setup, has_responses).await;
    for name in ["previous_response_id", "conversation"] {
        let response = post(&gateway, turn("fake/m", &format!(r#","{name}":"x""#))).send().await.unwrap();
        assert_eq!(response.status(), 400);
        let error: Value = response.json().await.unwrap();
        assert_eq!(error["error"]["param"], name);
    }
    assert!(paths(&gateway).is_empty());
}

#[tokio::test]
async fn a_stream_that_breaks_ends_with_a_failure_and_is_booked() {
    let failed = json!({"type": "response.failed", "sequence_number": 3, "response": {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "of org-1"}}});
    for (end, code, outcome) in [
        (StreamStep::Cut, "provider_error", "cut"),
        (StreamStep::Send(frame(&failed)), "provider_rate_limited", "rate_limited"),
    ] {
        let gateway = gateway(move |_| {
            let mut steps = sent(&stream("m-2026")[..3]);
            steps.extend([StreamStep::APART, end.clone()]);
            Reply::Stream(steps)
        })
        .await;
        let response = post(&gateway, turn("fake/m", r#","stream":true"#)).send().await.unwrap();
        let text = response.text().await.unwrap();
        let rest = text.strip_prefix(&*stream("fake/m")[..3].concat()).unwrap_or_else(|| panic!("{text}"));
        let event: Value = serde_json::from_str(rest.split_once("data: ").unwrap().1).unwrap();
        let response = &event["response"];
        assert_eq!((&event["type"], &event["sequence_number"]), (&json!("response.failed"), &json!(3)));
        assert_eq!((&response["id"], &response["status"]), (&json!("resp_1"), &json!("failed")));
        assert_eq!(response["error"]["code"], code);
        assert!(!text.contains("org-1"));
        let [(booked, prompt, _, completion)] = booked(&gateway).try_into().unwrap();
        assert_eq!((&*booked, completion), (outcome, 4));
        assert!(prompt > 10, "{prompt}");
    }
}

#[tokio::test]
async fn a_text_that_comes_whole_counts_as_one_in_pieces_does() {
    let done = json!({"type": "response.output_text.done", "sequence_number": 2, "item_id": "msg_1", "text": "Done, all done"});
    for pieces in [&stream("m-2026")[2..3], &[]] {
        let pieces = pieces.to_vec();
        let done = done.clone();
        let gateway = gateway(move |_| {
            let mut steps = sent(&[&stream("m-2026")[..2], &pieces, &[frame(&done)]].concat());
            steps.extend([StreamStep::APART, StreamStep::Cut]);
            Reply::Stream(steps)
        })
        .await;
        post(&gateway, turn("fake/m", r#","stream":true"#)).send().await.unwrap().text().await.unwrap();
        let [(_, _, _, completion)] = booked(&gateway).try_into().unwrap();
        assert_eq!(completion, 4);
    }
}

#[tokio::test]
async fn failures_before_the_answer_have_a_status() {
    let failed = r#"{"object":"response","status":"failed","error":{"code":"server_error","message":"no"},"output":[],"model":"m"}"#;
    for (stream, reply) in [
        ("", Reply::Raw(200, Vec::new(), failed.to_owned())),
        ("", Reply::Raw(200, Vec::new(), failed.replace("failed", "in_progress"))),
        (
            r#","stream":true"#,
            Reply::Stream(vec![StreamStep::Send(frame(
                &json!({"type": "error", "code": "server_error", "message": "no"}),
            ))]),
        ),
        (r#","stream":true"#, Reply::Stream(sent(&stream_of_nothing()))),
    ] {
        let gateway = gateway(move |_| reply.clone()).await;
        let response = post(&gateway, turn("fake/m", stream)).send().await.unwrap();
        assert_eq!(response.status(), 502);
    }
}

/// A stream that has lost its beginning.
fn stream_of_nothing() -> Vec<String> {
    stream("m-2026")[2..].to_vec()
}

#[tokio::test]
async fn keys_with_a_budget_pass_on_only_what_it_counts() {
    let gateway = gateway_with("responses = true", "", |setup| setup, has_responses).await;
    let (key, _) =
        gateway.server.key_with(Service::Inference, |new| new.budget = Some(NanoUsd(1_000_000_000)));
    let gateway = Gateway { key, ..gateway };
    let known = |more: &str| turn("fake/m", more).replace(",\"unheard_of\":1.0", "");
    // The search that agents offer beside their own tools is charged apart.
    let response = post(&gateway, known("")).send().await.unwrap();
    assert!(response.headers()["x-mk-dropped"].to_str().unwrap().contains("tools.web_search"));
    let plain = known("").replace(",{\"type\":\"web_search\"}", "");
    let response = post(&gateway, plain.clone()).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), WHOLE.replace("\"m-2026\"", "\"fake/m\""));
    assert_eq!(paths(&gateway), ["/v1/chat/completions", "/v1/responses"]);
    assert_eq!(gateway.provider.requests()[1].raw, plain.replace("fake/m", "m"));
}
