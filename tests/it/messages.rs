//! The Messages API at `/anthropic`: answers of any provider in its form, whole and streamed; keys, errors, lengths and
//! models as its clients expect them.

use mk::api::Service;
use mk::money::NanoUsd;
use serde_json::{Value, json};

use crate::support::chat::{Gateway, gateway, gateway_with};
use crate::support::description::{Answer, Description};
use crate::support::provider::{Reply, StreamStep, chunk, role_chunk, stream, text_chunk};
use crate::support::server::client;

const PATH: &str = "/anthropic/v1/messages";

fn hello() -> Value {
    json!({"model": "fake/m", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]})
}

fn with(changes: Value) -> Value {
    let mut body = hello();
    let Value::Object(changes) = changes else { panic!("{changes}") };
    for (name, value) in changes {
        body[name] = value;
    }
    body
}

fn post(gateway: &Gateway, path: &str, body: &Value) -> reqwest::RequestBuilder {
    client()
        .post(format!("{}{path}", gateway.server.base))
        .header("x-api-key", &gateway.key)
        .header("anthropic-version", "2023-06-01")
        .header("x-request-id", "req-1")
        .json(body)
}

async fn ask(gateway: &Gateway, body: &Value) -> (u16, Value) {
    let response = post(gateway, PATH, body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// The events of a stream: the data of each, whose name must be its type.
async fn events(gateway: &Gateway, body: &Value) -> Vec<Value> {
    let response = post(gateway, PATH, body).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    let text = response.text().await.unwrap();
    text.split_terminator("\n\n")
        .map(|frame| {
            let (name, data) = frame.split_once('\n').unwrap();
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(name, format!("event: {}", data["type"].as_str().unwrap()));
            data
        })
        .collect()
}

#[tokio::test]
async fn a_whole_answer_is_a_message() {
    let gateway = gateway(|_| Reply::Text("Hello".to_owned())).await;
    let response = post(&gateway, &format!("{PATH}?beta=true"), &hello()).send().await.unwrap();
    assert_eq!(response.status(), 200);
    for (name, value) in [("x-mk-model", "fake/m"), ("request-id", "req-1"), ("x-mk-attempts", "1")] {
        assert_eq!(response.headers()[name], value);
    }
    let mut message: Value = response.json().await.unwrap();
    assert!(message["id"].take().as_str().unwrap().starts_with("msg_"));
    assert_eq!(
        message,
        json!({
            "id": null, "type": "message", "role": "assistant", "model": "fake/m",
            "content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 10},
        })
    );
    assert_eq!(gateway.booked(), [("fake/m".to_owned(), "ok".to_owned(), 100, 10)]);
}

#[tokio::test]
async fn a_stream_is_these_bytes() {
    let gateway = gateway(|_| stream(&["Hel", "lo"])).await;
    let response = post(&gateway, PATH, &with(json!({"stream": true}))).send().await.unwrap();
    let text = response.text().await.unwrap();
    let (start, rest) = text.split_once("\n\n").unwrap();
    assert!(
        start.starts_with(
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_"
        ),
        "{start}"
    );
    let (blocks, end) = rest.split_once("event: message_delta\n").unwrap();
    assert_eq!(
        blocks,
        concat!(
            "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hel\"}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"lo\"}}\n\n",
            "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
        )
    );
    assert!(end.starts_with("data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{"), "{end}");
    assert!(end.ends_with("\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"), "{end}");
}

#[tokio::test]
async fn calls_of_tools_go_both_ways() {
    let gateway = gateway(|ask| {
        let messages = ask.body["messages"].as_array().unwrap();
        if messages.last().unwrap()["role"] == "tool" {
            return Reply::Text("7 degrees".to_owned());
        }
        let call = |piece: &str| json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": piece}});
        if ask.stream {
            let more = json!({"index": 0, "function": {"arguments": "\"Oslo\"}"}});
            return Reply::Stream(vec![
                role_chunk(),
                chunk(&json!([{"index": 0, "delta": {"tool_calls": [call("{\"city\":")]}, "finish_reason": null}])),
                chunk(&json!([{"index": 0, "delta": {"tool_calls": [more]}, "finish_reason": null}])),
                chunk(&json!([{"index": 0, "delta": {}, "finish_reason": "tool_calls"}])),
                StreamStep::Send("data: [DONE]\n\n".to_owned()),
            ]);
        }
        let message = json!({"role": "assistant", "content": null, "tool_calls": [call("{\"city\":\"Oslo\"}")]});
        Reply::status(200, &json!({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}))
    })
    .await;
    let tools = json!([{"name": "weather", "input_schema": {"type": "object"}}]);
    let (status, message) = ask(&gateway, &with(json!({"tools": tools}))).await;
    let call = json!({"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Oslo"}});
    assert_eq!((status, &message["stop_reason"]), (200, &json!("tool_use")));
    assert_eq!(message["content"], json!([call]));

    let streamed = events(&gateway, &with(json!({"tools": tools, "stream": true}))).await;
    let pieces: String =
        streamed.iter().filter_map(|event| event["delta"]["partial_json"].as_str()).collect();
    assert_eq!(
        (pieces.as_str(), &streamed[1]["content_block"]["name"]),
        ("{\"city\":\"Oslo\"}", &json!("weather"))
    );

    let result = json!([{"type": "tool_result", "tool_use_id": "call_1", "content": "7 degrees"}]);
    let turns = json!([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": [call]}, {"role": "user", "content": result}]);
    let (_, message) = ask(&gateway, &with(json!({"tools": tools, "messages": turns}))).await;
    assert_eq!(message["content"][0]["text"], "7 degrees");
}

#[tokio::test]
async fn thoughts_are_shown_to_those_who_ask_for_them() {
    let gateway = gateway(|_| {
        let message = json!({"role": "assistant", "content": "Hi", "reasoning_content": "hm"});
        Reply::status(200, &json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
    })
    .await;
    let (_, message) = ask(&gateway, &with(json!({"thinking": {"type": "adaptive"}}))).await;
    assert_eq!(message["content"][0], json!({"type": "thinking", "thinking": "hm", "signature": ""}));
    let (_, message) = ask(&gateway, &hello()).await;
    assert_eq!(message["content"][0]["type"], "text");
}

#[tokio::test]
async fn a_stream_that_breaks_ends_with_an_error_event() {
    let gateway =
        gateway(|_| Reply::Stream(vec![role_chunk(), text_chunk("Hel"), StreamStep::APART, StreamStep::Cut]))
            .await;
    let events = events(&gateway, &with(json!({"stream": true}))).await;
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["error"]["type"]), (&json!("error"), &json!("api_error")));
    assert_eq!((&last["error"]["code"], &last["request_id"]), (&json!("provider_error"), &json!("req-1")));
    assert!(!events.iter().any(|event| event["type"] == "message_stop"));
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive_by_pings() {
    let gateway = gateway_with(
        "",
        "",
        |setup| setup.options(|options| options.keep_alive = std::time::Duration::from_millis(100)),
        |_| {
            let pause = StreamStep::Pause(std::time::Duration::from_millis(700));
            let end = chunk(&json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]));
            Reply::Stream(vec![
                role_chunk(),
                pause,
                text_chunk("Hi"),
                end,
                StreamStep::Send("data: [DONE]\n\n".to_owned()),
            ])
        },
    )
    .await;
    let events = events(&gateway, &with(json!({"stream": true}))).await;
    assert_eq!((&events[0]["type"], &events[1]), (&json!("message_start"), &json!({"type": "ping"})));
    assert_eq!(events.last().unwrap()["type"], "message_stop");
}

#[tokio::test]
async fn a_key_comes_as_x_api_key_or_bearer() {
    let gateway = gateway(|_| Reply::Text("Hello".to_owned())).await;
    let (key, other) = (gateway.key.clone(), gateway.server.key(Service::Inference));
    let send = |headers: Vec<(&'static str, String)>, path: &str| {
        let request = client().post(format!("{}{path}", gateway.server.base)).json(&hello());
        let request = headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        async move { request.send().await.unwrap().status().as_u16() }
    };
    let bearer = |key: &str| ("authorization", format!("Bearer {key}"));
    for (headers, status) in [
        (vec![("x-api-key", key.clone())], 200),
        (vec![bearer(&key)], 200),
        (vec![bearer(&key), ("x-api-key", key.clone())], 200),
        (vec![bearer(&key), ("x-api-key", String::new())], 200),
        (vec![bearer(&key), ("x-api-key", other.clone())], 401),
        (vec![("x-api-key", key.clone()), ("x-api-key", key.clone())], 401),
        (vec![bearer(&other), bearer(&key), ("x-api-key", key.clone())], 401),
        (vec![], 401),
    ] {
        assert_eq!(send(headers.clone(), PATH).await, status, "{}", headers.len());
    }
    assert_eq!(send(vec![("x-api-key", key.clone())], "/openai/v1/chat/completions").await, 401);
    let request = client().post(format!("{}{PATH}", gateway.server.base)).json(&hello());
    let refused = request.bearer_auth(&key).header("x-api-key", &other).send().await.unwrap();
    let refused: Value = refused.json().await.unwrap();
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("`x-api-key` and `authorization` hold different keys"), "{refused}");
}

#[tokio::test]
async fn every_status_has_its_type_and_names_the_caller_s_own_parameter() {
    let gateway = gateway_with(
        "first_byte_timeout = \"300ms\"",
        "",
        |setup| setup.config(|config| config.inference_max_body_bytes = 4000),
        |ask| {
            let fail = |status: u16, error: Value| Reply::status(status, &json!({"error": error}));
            match ask.model.as_str() {
                "long" => fail(400, json!({"code": "context_length_exceeded"})),
                "strange" => fail(400, json!({"message": "no", "param": "stop"})),
                "second" => fail(400, json!({"message": "no", "param": "messages[1].content"})),
                "unknown" => fail(404, json!({"message": "no"})),
                "limited" => fail(429, json!({"message": "no"})),
                "broken" => fail(500, json!({"message": "no"})),
                _ => Reply::Hang,
            }
        },
    )
    .await;
    let (key, _) = gateway.server.key_with(Service::Inference, |new| new.per_minute = Some(0));
    let (poor, _) = gateway.server.key_with(Service::Inference, |new| new.budget = Some(NanoUsd(1)));
    let (narrow, _) = gateway.server.key_with(Service::Inference, |new| new.models = vec!["x/*".to_owned()]);
    let (once, _) = gateway.server.key_with(Service::Inference, |new| new.per_minute = Some(1));
    let send = |key: &str, body: String| {
        client()
            .post(format!("{}{PATH}", gateway.server.base))
            .bearer_auth(key)
            .header("content-type", "application/json")
            .header("x-request-id", "req-1")
            .body(body)
    };
    let model = |name: &str| send(&key, with(json!({"model": name})).to_string());
    let second = with(json!({"model": "fake/second", "system": "Be brief."}));
    send(&once, "{}".to_owned()).send().await.unwrap();
    let invalid = "invalid_request_error";
    for (request, status, kind, param, words) in [
        (send(&key, "{".to_owned()), 400, invalid, "", "not valid JSON"),
        (
            send(&key, json!({"model": "fake/m", "messages": []}).to_string()),
            400,
            invalid,
            "messages",
            "non-empty",
        ),
        (send(&key, second.to_string()), 400, invalid, "messages[0]", "refused"),
        (model("fake/strange"), 400, invalid, "stop_sequences", "refused"),
        (model("fake/long"), 400, invalid, "", "prompt is too long"),
        (send("nonsense", "{}".to_owned()), 401, "authentication_error", "", "Invalid or missing API key"),
        (send(&poor, hello().to_string()), 402, "billing_error", "", "budget"),
        (send(&narrow, hello().to_string()), 403, "permission_error", "model", "cannot use fake/m"),
        (model("fake/unknown"), 404, "not_found_error", "", "has no model"),
        (model("nobody"), 404, "not_found_error", "model", "provider"),
        (send(&key, " ".repeat(4001)), 413, "request_too_large", "", "4000 bytes"),
        (send(&once, "{}".to_owned()), 429, "rate_limit_error", "", "Too many requests per minute"),
        (model("fake/broken"), 502, "api_error", "", "failed"),
        (model("fake/limited"), 503, "overloaded_error", "", "rate-limiting"),
        (model("fake/silent"), 504, "timeout_error", "", "in time"),
    ] {
        let response = request.send().await.unwrap();
        let got = response.status().as_u16();
        let body: Value = response.json().await.unwrap();
        let error = &body["error"];
        assert_eq!((got, &body["type"], &error["type"]), (status, &json!("error"), &json!(kind)), "{body}");
        assert_eq!(
            (error["param"].as_str().unwrap_or(""), &body["request_id"]),
            (param, &json!("req-1")),
            "{body}"
        );
        assert!(error["message"].as_str().unwrap().contains(words), "{body}");
    }
    let (_, body) = ask(&gateway, &with(json!({"model": "fake/m", "mcp_servers": [{"type": "url"}]}))).await;
    assert_eq!(
        body.to_string(),
        concat!(
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"`mcp_servers`: only Anthropic's own "#,
            r#"models support it; leave it out","code":"unsupported_parameter","param":"mcp_servers"},"#,
            r#""request_id":"req-1"}"#
        )
    );
}

#[tokio::test]
async fn what_agents_send_by_default_reaches_models_of_every_kind() {
    let gateway = gateway_with(
        "",
        "[providers.claude]\nkind = \"anthropic\"\nbase_url = \"{base_url}\"\n\
         [providers.gemini]\nkind = \"google\"\nbase_url = \"{base_url}\"",
        |setup| setup,
        |_| Reply::Text("Hello".to_owned()),
    )
    .await;
    let mark = json!({"type": "ephemeral"});
    let body = |model: &str| {
        with(json!({
            "model": model,
            "system": [{"type": "text", "text": "Be brief.", "cache_control": mark}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello", "cache_control": mark}]}],
            "tools": [
                {"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}},
                {"type": "web_search_20250305", "name": "web_search", "max_uses": 8},
            ],
            "thinking": {"type": "enabled", "budget_tokens": 31999},
            "metadata": {"user_id": "user_".to_owned() + &"a".repeat(100)},
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
            "output_config": {"effort": "high"},
            "temperature": 1,
        }))
    };
    for (model, dropped) in [
        ("fake/gpt-4.1", "output_config.effort, web_search_20250305, cache_control"),
        ("claude/claude-sonnet-5", ""),
        ("gemini/gemini-3.5-flash", "metadata.user_id"),
    ] {
        let response = post(&gateway, PATH, &body(model)).send().await.unwrap();
        let status = response.status();
        let left_out = response.headers().get("x-mk-dropped").map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(status, 200, "{model}: {}", response.text().await.unwrap());
        assert_eq!(left_out.is_none(), dropped.is_empty(), "{model}: {left_out:?}");
        let left_out = left_out.unwrap_or_default();
        for name in dropped.split(", ").filter(|name| !name.is_empty()) {
            assert!(left_out.split(", ").any(|known| known == name), "{model}: {name} in {left_out}");
        }
    }
    let asked = gateway.provider.requests();
    let plain = asked.iter().find(|ask| ask.model == "gpt-4.1").unwrap();
    assert!(!plain.raw.contains("cache_control") && !plain.raw.contains("reasoning_effort"), "{}", plain.raw);
    let claude = asked.iter().find(|ask| ask.model == "claude-sonnet-5").unwrap();
    let mut as_sent = body("claude-sonnet-5");
    as_sent["model"] = json!("claude-sonnet-5");
    assert_eq!(claude.body, as_sent);
}

#[tokio::test]
async fn lengths_are_estimated_without_asking_a_model() {
    let gateway = gateway(|_| Reply::Hang).await;
    let count = async |body: Value| {
        let response = post(&gateway, &format!("{PATH}/count_tokens?beta=true"), &body).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let mut body = hello();
    body.as_object_mut().unwrap().remove("max_tokens");
    let (status, short) = count(body.clone()).await;
    assert_eq!((status, &short["estimated"]), (200, &json!(true)));
    body["system"] = "x".repeat(4000).into();
    body["tools"] =
        json!([{"name": "f", "description": "y".repeat(400), "input_schema": {"type": "object"}}]);
    let (_, long) = count(body).await;
    let (short, long) = (short["input_tokens"].as_u64().unwrap(), long["input_tokens"].as_u64().unwrap());
    assert!((1..20).contains(&short) && (1100..1300).contains(&long), "{short} {long}");
    let (status, error) =
        count(json!({"model": "nobody", "messages": [{"role": "user", "content": "x"}]})).await;
    assert_eq!((status, &error["error"]["type"]), (404, &json!("not_found_error")));
    assert_eq!(gateway.provider.requests().len(), 0);
}

#[tokio::test]
async fn models_are_listed_in_pages() {
    let gateway = gateway(|_| Reply::Hang).await;
    let get = async |path: &str| {
        let request = client().get(format!("{}/anthropic/v1/models{path}", gateway.server.base));
        let response = request.header("x-api-key", &gateway.key).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let (status, list) = get("?limit=1000").await;
    assert_eq!((status, &list["has_more"]), (200, &json!(false)));
    let model = json!({"type": "model", "id": "fake/m", "display_name": "fake/m", "created_at": "1970-01-01T00:00:00Z"});
    assert!(list["data"].as_array().unwrap().contains(&model), "{list}");
    assert_eq!(get("/fake%2Fm").await, (200, model));
    assert_eq!(get("/fake/nothing").await.0, 404);
    assert_eq!(get("?limit=1").await.1["has_more"], true);
    assert_eq!(get("?limit=0").await.1["error"]["type"], "invalid_request_error");
}

#[tokio::test]
async fn answers_are_as_described() {
    let gateway = gateway(|ask| match ask.body["messages"][0]["content"].as_str() {
        Some("break") => {
            Reply::Stream(vec![role_chunk(), text_chunk("Hel"), StreamStep::APART, StreamStep::Cut])
        }
        _ if ask.stream => stream(&["Hel", "lo"]),
        _ => Reply::Text("Hello".to_owned()),
    })
    .await;
    let description = Description::of(&gateway.server).await;
    let broken = with(json!({"stream": true, "messages": [{"role": "user", "content": "break"}]}));
    let count = format!("{PATH}/count_tokens");
    for (path, body, status) in [
        (PATH, hello(), 200),
        (PATH, with(json!({"stream": true})), 200),
        (PATH, broken, 200),
        (PATH, with(json!({"max_tokens": 0})), 400),
        (PATH, with(json!({"model": "nobody"})), 404),
        (&*count, hello(), 200),
        (&*count, json!({}), 400),
    ] {
        let answer = Answer::read(post(&gateway, path, &body).send().await.unwrap()).await;
        assert_eq!(answer.status, status, "{}", answer.text);
        description.check_answer("POST", path, &answer);
    }
    for (template, path) in [
        ("/anthropic/v1/models", "/anthropic/v1/models"),
        ("/anthropic/v1/models/{model}", "/anthropic/v1/models/fake/m"),
        ("/anthropic/v1/models/{model}", "/anthropic/v1/models/nothing"),
        ("/anthropic", "/anthropic"),
    ] {
        let request = client().get(format!("{}{path}", gateway.server.base)).bearer_auth(&gateway.key);
        description.check_answer("GET", template, &Answer::read(request.send().await.unwrap()).await);
    }
}
