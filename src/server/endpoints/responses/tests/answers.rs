//! Answers, whole and streamed.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::events::Events;
use super::super::request::Translated;
use super::super::response::{self, Response};
use super::{OPENAI, translate, translated};
use crate::server::endpoints::chat::stream::Transcoder;
use crate::server::reply::{ApiError, ErrorCode};

const TOOLS: &str = r#"[{"type":"custom","name":"patch"},{"type":"namespace","name":"agents","tools":[{"type":"function","name":"close"}]}]"#;

/// A request with the tools.
fn asked() -> Translated {
    let tools: Value = serde_json::from_str(TOOLS).unwrap();
    translated(&json!({"model": "a/b", "input": "Hi", "tools": tools, "temperature": 0.5})).unwrap()
}

fn whole(choice: &Value) -> Value {
    let Translated { echo, names, .. } = asked();
    let completion = json!({
        "id": "c", "object": "chat.completion", "created": 7, "model": "a/b", "choices": [choice],
        "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8, "prompt_tokens_details": {"cached_tokens": 2}},
    });
    let body = response::whole(&Bytes::from(completion.to_string()), echo, &names, "a/b").unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// Takes the ids, which must be unique and of this kind.
fn take_ids(output: &mut Value, prefixes: &[&str]) {
    let items = output.as_array_mut().unwrap();
    assert_eq!(items.len(), prefixes.len());
    for (item, prefix) in items.iter_mut().zip(prefixes) {
        let id = item.as_object_mut().unwrap().remove("id").unwrap();
        assert!(id.as_str().unwrap().starts_with(prefix), "{id}");
    }
}

#[test]
fn a_whole_answer_is_a_response() {
    let citation = json!({"type": "url_citation", "url_citation": {"url": "https://a", "title": "A", "start_index": 0, "end_index": 2}});
    let mut response = whole(&json!({"index": 0, "finish_reason": "stop", "message": {
        "role": "assistant", "content": "Hi \u{1f600}\n", "reasoning_content": "Hm", "annotations": [citation],
        "images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}],
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "patch", "arguments": "{\"input\":\"a\\nb\"}"}},
            {"id": "c2", "type": "function", "function": {"name": "patch", "arguments": "a patch"}},
            {"id": "c3", "type": "function", "function": {"name": "agents__close", "arguments": "{}"}, "extra_content": {"google": {}}},
        ],
    }}));
    take_ids(&mut response["output"], &["rs_", "msg_", "ig_", "ctc_", "ctc_", "fc_"]);
    let source =
        json!({"type": "url_citation", "url": "https://a", "title": "A", "start_index": 0, "end_index": 2});
    assert_eq!(
        response["output"],
        json!([
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}], "encrypted_content": null, "status": "completed"},
            {"type": "message", "role": "assistant", "status": "completed", "content": [
                {"type": "output_text", "text": "Hi \u{1f600}\n", "annotations": [source], "logprobs": []},
            ]},
            {"type": "image_generation_call", "result": "AA==", "status": "completed"},
            {"type": "custom_tool_call", "input": "a\nb", "call_id": "c1", "name": "patch", "status": "completed"},
            {"type": "custom_tool_call", "input": "a patch", "call_id": "c2", "name": "patch", "status": "completed"},
            {"type": "function_call", "arguments": "{}", "call_id": "c3", "name": "close", "namespace": "agents", "extra_content": {"google": {}}, "status": "completed"},
        ])
    );
    assert_eq!(
        (&response["status"], &response["created_at"], &response["model"]),
        (&json!("completed"), &json!(7), &json!("a/b"))
    );
    assert_eq!(
        response["usage"],
        json!({
            "input_tokens": 5, "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
            "output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 8,
        })
    );
    let tools: Value = serde_json::from_str(TOOLS).unwrap();
    assert_eq!(
        (&response["tools"], &response["temperature"], &response["error"]),
        (&tools, &json!(0.5), &Value::Null)
    );
}

#[test]
fn arguments_that_are_the_object_itself_are_those_of_a_string() {
    let call = |name: &str, arguments: Value| json!({"index": 0, "id": "c", "function": {"name": name, "arguments": arguments}});
    for (call, field, expected) in [
        (call("agents__close", json!({"id": "a\"b"})), "arguments", "{\"id\":\"a\\\"b\"}"),
        (call("patch", json!({"input": "+a\n"})), "input", "+a\n"),
    ] {
        let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        let response = whole(&json!({"finish_reason": "tool_calls", "message": message}));
        assert_eq!(response["output"][0][field], expected);
        let events = events(&[json!({"tool_calls": [call]})], Some("tool_calls"));
        assert_eq!(events.last().unwrap()["response"]["output"][0][field], expected);
    }
}

#[test]
fn what_is_repeated_of_a_request_stays_on_one_line() {
    let body = "{\"model\": \"a/b\", \"input\": \"Hi\", \"metadata\": {\n  \"a\": \"b\\nc\"\r\n}, \"tools\": [\r\n]}";
    let Translated { echo, names, .. } = translate(body.as_bytes(), false, |_| OPENAI).unwrap();
    let mut events = Events::new(Response::new(echo, "a/b", 7), names);
    let mut out = Vec::new();
    events.chunks(b"data: [DONE]\n\n", &mut out);
    let text = String::from_utf8(out).unwrap();
    for frame in text.split_terminator("\n\n") {
        let (_, data) = frame.split_once("\ndata: ").unwrap();
        assert!(!data.contains(['\n', '\r']), "{data}");
        let event: Value = serde_json::from_str(data).unwrap();
        if let Some(response) = event.get("response") {
            assert_eq!(response["metadata"], json!({"a": "b\nc"}));
        }
    }
}

#[test]
fn an_answer_that_is_cut_or_withheld_is_incomplete() {
    for (finish, reason) in [("length", "max_output_tokens"), ("content_filter", "content_filter")] {
        let response = whole(
            &json!({"finish_reason": finish, "message": {"role": "assistant", "content": null, "refusal": "No."}}),
        );
        assert_eq!(response["status"], "incomplete");
        assert_eq!(response["incomplete_details"]["reason"], reason);
        assert_eq!(response["output"][0]["status"], "incomplete");
        assert_eq!(response["output"][0]["content"], json!([{"type": "refusal", "refusal": "No."}]));
    }
    let empty = whole(
        &json!({"finish_reason": "stop", "provider_finish_reason": "eot", "message": {"role": "assistant", "content": ""}}),
    );
    assert_eq!(empty["output"][0]["content"][0]["text"], "");
    assert_eq!(empty["provider_finish_reason"], "eot");
}

/// The events that chunks with these deltas become, the last with this finish reason; without one, it breaks.
fn events(deltas: &[Value], finish: Option<&str>) -> Vec<Value> {
    let Translated { echo, names, .. } = asked();
    let mut events = Events::new(Response::new(echo, "a/b", 7), names);
    let chunk = |choice: &Value| format!("data: {}\n\n", json!({"id": "c", "choices": [choice]}));
    let mut out = Vec::new();
    for delta in deltas {
        events
            .chunks(chunk(&json!({"index": 0, "delta": delta, "finish_reason": null})).as_bytes(), &mut out);
    }
    if let Some(finish) = finish {
        let usage =
            json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}});
        let last = chunk(&json!({"index": 0, "delta": {}, "finish_reason": finish}));
        events.chunks(format!("{last}data: {usage}\n\ndata: [DONE]\n\n").as_bytes(), &mut out);
    } else {
        events.fail(ApiError::from(ErrorCode::ServerOverloaded), &mut out);
    }
    let text = String::from_utf8(out).unwrap();
    let frames = text.strip_suffix("\n\n").unwrap().split("\n\n");
    let read = frames.enumerate().map(|(number, frame)| {
        let (name, data) = frame.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
        let event: Value = serde_json::from_str(data).unwrap();
        assert_eq!((&event["type"], &event["sequence_number"]), (&json!(name), &json!(number)), "{frame}");
        event
    });
    read.collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap().strip_prefix("response.").unwrap()).collect()
}

#[test]
fn a_stream_is_typed_events_in_order() {
    let call = |index: u32, id: Value, name: Value, arguments: &str| json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]});
    let deltas = [
        json!({"role": "assistant", "content": ""}),
        json!({"reasoning_content": "H"}),
        json!({"reasoning_content": "m"}),
        json!({"content": "a\""}),
        json!({"content": "b"}),
        call(0, json!("c1"), json!("agents__close"), "{\"x\""),
        call(1, json!("c2"), json!("patch"), "{\"input\":"),
        call(0, Value::Null, Value::Null, ":1}"),
        call(1, Value::Null, Value::Null, "\"p\"}"),
    ];
    let mut events = events(&deltas, Some("tool_calls"));
    let expected = [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(types(&events), expected);
    assert_eq!(events[0]["response"]["status"], "in_progress");
    assert_eq!((&events[12]["delta"], &events[13]["text"]), (&json!("b"), &json!("a\"b")));
    assert_eq!(events[19]["output_index"], 2);
    assert_eq!(events[20]["arguments"], "{\"x\":1}");
    assert_eq!(events[23]["input"], "p");
    let added: Vec<&Value> =
        events.iter().filter(|event| event["type"] == "response.output_item.added").collect();
    assert_eq!(added[2]["item"]["arguments"], "");
    let done: Vec<Value> = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| event["item"].clone())
        .collect();
    let response = events.last_mut().unwrap()["response"].take();
    assert_eq!(response["output"], json!(done));
    assert_eq!(response["usage"]["total_tokens"], 8);
    assert_eq!(response["id"], events[0]["response"]["id"]);
}

#[test]
fn a_stream_ends_as_its_answer_does() {
    let text = [json!({"content": "a"})];
    let cut = events(&text, Some("length"));
    assert_eq!(cut.last().unwrap()["type"], "response.incomplete");
    assert_eq!(cut.last().unwrap()["response"]["output"][0]["status"], "incomplete");
    let empty = events(&[], Some("stop"));
    assert_eq!(empty.last().unwrap()["response"]["output"][0]["content"][0]["text"], "");
    let refused = events(&[json!({"refusal": "No"}), json!({"refusal": "."})], Some("stop"));
    assert_eq!(refused.last().unwrap()["response"]["output"][0]["content"][0]["refusal"], "No.");
    let broken = events(&text, None);
    let expected =
        ["created", "in_progress", "output_item.added", "content_part.added", "output_text.delta", "failed"];
    assert_eq!(types(&broken), expected);
    let response = &broken[5]["response"];
    assert_eq!(
        (&response["status"], &response["error"]["code"]),
        (&json!("failed"), &json!("server_overloaded"))
    );
    assert_eq!(response["output"][0]["content"][0]["text"], "a");
    assert_eq!(response["output"][0]["status"], "incomplete");
}

proptest! {
    #[test]
    fn no_chunk_makes_it_panic(delta in r#"\{("(content|reasoning|refusal|tool_calls|annotations|images)":("x"|7|null|"\\ud800"|\[(\{("(index|id|function|type|url_citation|image_url)":(0|7|"c"|\{\}|\{"url":"u"\}|\{"name":"patch","arguments":"\{"\}),?){0,3}\},?){0,2}\]),?){0,3}\}"#) {
        let Translated { echo, names, .. } = asked();
        let mut events = Events::new(Response::new(echo, "a/b", 7), names);
        let mut out = Vec::new();
        let chunks = format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\ndata: [DONE]\n\n");
        events.chunks(chunks.as_bytes(), &mut out);
        let text = String::from_utf8(out).unwrap();
        for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
            prop_assert!(serde_json::from_str::<Box<serde_json::value::RawValue>>(data).is_ok(), "{data}");
        }
    }
}
