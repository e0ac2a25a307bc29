//! What becomes of each part of a request.

use serde_json::json;

use super::*;
use crate::inference::Effort;
use crate::server::request::params::Params;

/// What a model of Anthropic's takes.
const CLAUDE: Takes = Takes {
    cache_marks: true,
    least_effort: Some(Effort::None),
    highest_efforts: true,
    own_format: false,
    thinks_with_tools: true,
    max_output_tokens: Some(1000),
};

fn translate(
    body: &[u8],
    purpose: Purpose,
    drop_unsupported: bool,
    takes: impl FnOnce(&str) -> Takes,
) -> Result<Translated, ApiError> {
    of(&Params::raw(body)?, purpose, drop_unsupported, takes)
}

fn translated(more: Value, takes: Takes, drop_unsupported: bool) -> Result<(Value, Translated), String> {
    let mut body =
        json!({"model": "a/b", "max_tokens": 5000, "messages": [{"role": "user", "content": "Hi"}]});
    let Value::Object(more) = more else { panic!("{more}") };
    for (name, value) in more {
        body[name] = value;
    }
    let body = body.to_string();
    let translated = translate(body.as_bytes(), Purpose::Answer, drop_unsupported, |_| takes);
    let translated = translated.map_err(|error| {
        let body = error.into_body("");
        format!("{} {}", body.code, body.param.unwrap_or_default())
    })?;
    Ok((serde_json::from_slice(&translated.body).unwrap(), translated))
}

/// The chat completion for a request, for a model that takes nothing; and what was left out.
fn chat(more: Value) -> (Value, Vec<String>) {
    let (body, translated) = translated(more, Takes::default(), false).unwrap();
    (body, translated.left_out)
}

fn refusal(more: Value) -> String {
    translated(more, Takes::default(), false).unwrap_err()
}

#[test]
fn the_simplest_request_is_a_chat_completion() {
    let (body, left_out) = chat(json!({}));
    let messages = json!([{"role": "user", "content": "Hi"}]);
    assert_eq!(body, json!({"model": "a/b", "messages": messages, "max_tokens": 5000}));
    assert_eq!(left_out, [""; 0]);
}

#[test]
fn fields_have_the_names_of_chat_completions() {
    let (body, left_out) = chat(json!({
        "stream": true, "temperature": 0.5, "top_p": 0.9, "top_k": 3, "stop_sequences": ["END"],
        "metadata": {"user_id": "u1", "other": 1}, "service_tier": "auto", "context_management": {"edits": []},
        "cache_control": {"type": "ephemeral"}, "container": null, "mcp_servers": [],
    }));
    for (name, expected) in [
        ("stream", json!(true)),
        ("stream_options", json!({"include_usage": true})),
        ("temperature", json!(0.5)),
        ("top_p", json!(0.9)),
        ("top_k", json!(3)),
        ("stop", json!(["END"])),
        ("user", json!("u1")),
    ] {
        assert_eq!(body[name], expected, "{name}");
    }
    assert_eq!(left_out, ["metadata", "service_tier", "context_management", "cache_control"]);
    let (body, _) = chat(json!({"metadata": {"user_id": "x".repeat(130)}}));
    assert_eq!(body["user"].as_str().unwrap().len(), 64);
}

#[test]
fn what_would_change_the_answer_is_refused_by_name_or_named() {
    let image = |source: Value| json!({"messages": [{"role": "user", "content": [{"type": "image", "source": source}]}]});
    let cited = json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}, "citations": {"enabled": true}});
    for (more, code) in [
        (json!({"mcp_servers": [{"type": "url"}]}), "unsupported_parameter mcp_servers"),
        (json!({"container": "c"}), "unsupported_parameter container"),
        (json!({"novelty": 1}), "unsupported_parameter novelty"),
        (
            image(json!({"type": "file", "file_id": "f"})),
            "unsupported_parameter messages[0].content[0].source.type",
        ),
        (
            json!({"messages": [{"role": "user", "content": [cited]}]}),
            "unsupported_parameter messages[0].content[0].citations",
        ),
        (
            json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
            "unsupported_parameter tools[0].type",
        ),
    ] {
        assert_eq!(refusal(more.clone()), code);
        let (_, left) = translated(more, Takes::default(), true).unwrap();
        assert_eq!(left.left_out.len(), 1, "{code}");
    }
}

#[test]
fn what_is_wrong_is_named_by_the_caller_s_own_path() {
    for (more, expected) in [
        (json!({"messages": []}), "invalid_parameter messages"),
        (json!({"messages": [7]}), "invalid_parameter messages[0]"),
        (json!({"messages": [{"role": "tool", "content": ""}]}), "invalid_parameter messages[0].role"),
        (json!({"messages": [{"role": "user"}]}), "missing_parameter messages[0].content"),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "video"}]}]}),
            "invalid_parameter messages[0].content[0].type",
        ),
        (json!({"system": 7}), "invalid_parameter system"),
        (json!({"system": [{"type": "image"}]}), "invalid_parameter system[0].type"),
        (json!({"max_tokens": 0}), "invalid_parameter max_tokens"),
        (json!({"thinking": {"type": "enabled"}}), "missing_parameter thinking.budget_tokens"),
        (json!({"output_config": {"effort": "huge"}}), "invalid_parameter output_config.effort"),
        (json!({"tools": [{"name": "f"}]}), "missing_parameter tools[0].input_schema"),
        (json!({"tool_choice": {"type": "any"}}), "invalid_parameter tool_choice"),
        (json!({"metadata": {"user_id": 7}}), "invalid_parameter metadata.user_id"),
    ] {
        assert_eq!(refusal(more), expected);
    }
}

#[test]
fn system_texts_and_turns_become_messages() {
    let (body, left_out) = chat(json!({
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2; cch=1;"},
            {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "Be kind."},
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "c"}]},
            {"role": "system", "content": "Now in French."},
            {"role": "user", "content": []},
        ],
    }));
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "Be brief.\n\nBe kind."},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": "c"},
            {"role": "system", "content": "Now in French."},
            {"role": "user", "content": ""},
        ])
    );
    assert_eq!(left_out, ["x-anthropic-billing-header", "cache_control", "thinking"]);
}

#[test]
fn marks_for_caches_stay_for_models_that_take_them() {
    let mark = json!({"type": "ephemeral"});
    let text = json!({"type": "text", "text": "a", "cache_control": mark});
    let tool = json!({"name": "f", "input_schema": {"type": "object"}, "cache_control": mark});
    let more = json!({"system": [text], "messages": [{"role": "user", "content": [text]}], "tools": [tool]});
    let (body, translated) = translated(more, CLAUDE, false).unwrap();
    assert_eq!(body["messages"][0]["content"], json!([text]));
    assert_eq!(body["messages"][1]["content"], json!([text]));
    assert_eq!(body["tools"][0]["cache_control"], mark);
    assert_eq!((translated.left_out.len(), &body["max_tokens"]), (0, &json!(1000)));
}

#[test]
fn results_of_tools_come_first_and_what_they_show_with_the_user_s_words() {
    let picture =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}});
    let (body, _) = chat(json!({"messages": [
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
            {"type": "tool_use", "id": "t2", "name": "g", "input": {}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "ok"}, picture]},
            {"type": "tool_result", "tool_use_id": "t2", "content": "no such file", "is_error": true},
            {"type": "text", "text": "Go on."},
        ]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t3"}]},
    ]}));
    assert_eq!(
        body["messages"],
        json!([
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
                {"id": "t2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "t1", "content": "ok"},
            {"role": "tool", "tool_call_id": "t2", "content": "Error: no such file"},
            {"role": "user", "content": [
                {"type": "text", "text": "What the tool returned for the call t1 besides text:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
                {"type": "text", "text": "Go on."},
            ]},
            {"role": "tool", "tool_call_id": "t3", "content": ""},
        ])
    );
}

#[test]
fn documents_and_results_of_searches_become_files_and_texts() {
    let pdf = json!({"type": "base64", "media_type": "application/pdf", "data": "aGk="});
    let (body, _) = chat(json!({"messages": [{"role": "user", "content": [
        {"type": "document", "source": pdf, "title": "a.pdf"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "notes"}, "title": "N"},
        {"type": "search_result", "title": "T", "source": "https://a", "content": [{"type": "text", "text": "found"}]},
    ]}]}));
    assert_eq!(
        body["messages"][0]["content"],
        json!([
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}},
            {"type": "text", "text": "N"},
            {"type": "text", "text": "notes"},
            {"type": "text", "text": "T\nhttps://a\n\nfound"},
        ])
    );
}

#[test]
fn tools_become_functions_and_those_of_anthropic_are_left_out_beside_them() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let own = json!({"name": "f", "description": "d", "input_schema": schema, "eager_input_streaming": true});
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    let choice = |kind: &str, name: &str| json!({"tools": [search, own], "tool_choice": {"type": kind, "name": name, "disable_parallel_tool_use": true}});
    let (body, left_out) = chat(choice("tool", "f"));
    assert_eq!(
        body["tools"],
        json!([{"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}}])
    );
    assert_eq!(body["tool_choice"], json!({"type": "function", "function": {"name": "f"}}));
    assert_eq!(body["parallel_tool_calls"], false);
    assert_eq!(left_out, ["eager_input_streaming", "web_search_20250305"]);
    assert_eq!(chat(choice("any", "")).0["tool_choice"], "required");
    assert_eq!(refusal(choice("tool", "web_search")), "unsupported_parameter tool_choice.name");
    assert_eq!(refusal(choice("tool", "nothing")), "invalid_parameter tool_choice.name");
    let (_, translated) = translated(choice("auto", ""), CLAUDE, false).unwrap();
    assert_eq!(translated.names.of("tools[0].function.name"), "tools[1].name");
}

#[test]
fn a_budget_of_thoughts_becomes_an_effort_that_the_model_takes() {
    let budget = |tokens: u64| json!({"thinking": {"type": "enabled", "budget_tokens": tokens}});
    let effort = |word: &str| json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": word}});
    let gpt = Takes { highest_efforts: false, ..CLAUDE };
    let newest = Takes { thinks_with_tools: false, ..gpt };
    let told = |more: Value, takes: Takes| {
        let (body, translated) = translated(more, takes, false).unwrap();
        (body["reasoning_effort"].as_str().unwrap_or("-").to_owned(), translated.left_out.join(" "))
    };
    let with_tools = |mut more: Value| {
        more["tools"] = json!([{"name": "f", "input_schema": {"type": "object"}}]);
        more
    };
    for (more, takes, expected, left_out) in [
        (budget(1024), CLAUDE, "low", ""),
        (budget(10_000), CLAUDE, "medium", ""),
        (budget(31_999), gpt, "high", ""),
        (json!({"thinking": {"type": "disabled"}}), gpt, "none", ""),
        (json!({"thinking": {"type": "adaptive"}}), gpt, "-", ""),
        (json!({"thinking": {"type": "adaptive"}}), CLAUDE, "high", ""),
        (effort("max"), CLAUDE, "max", ""),
        (effort("max"), gpt, "high", ""),
        (effort("low"), Takes::default(), "-", "output_config.effort"),
        (budget(1024), Takes::default(), "-", "thinking"),
        (with_tools(effort("high")), newest, "none", "output_config.effort"),
        (with_tools(json!({})), newest, "none", ""),
        (with_tools(effort("high")), gpt, "high", ""),
        (json!({}), gpt, "-", ""),
    ] {
        assert_eq!(told(more.clone(), takes), (expected.to_owned(), left_out.to_owned()), "{more}");
    }
    let shows = |more| translated(more, gpt, false).unwrap().1.shows_thinking;
    assert!(shows(budget(1024)) && !shows(json!({})) && !shows(json!({"thinking": {"type": "disabled"}})));
    assert!(!shows(json!({"thinking": {"type": "adaptive", "display": "omitted"}})));
}

#[test]
fn a_schema_of_the_answer_is_strict_where_it_can_be() {
    let asked = |schema: Value| {
        let format = json!({"type": "json_schema", "schema": schema});
        chat(json!({"output_config": {"format": format}})).0["response_format"].clone()
    };
    let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    let format = asked(closed.clone());
    assert_eq!(
        format,
        json!({"type": "json_schema", "json_schema": {"name": "output", "schema": closed, "strict": true}})
    );
    let open = json!({"type": "object", "properties": {"a": closed}, "additionalProperties": false});
    assert_eq!(asked(open)["json_schema"]["strict"], false);
    for anything in [json!({"type": "object"}), json!({"type": ["object", "null"]})] {
        let inside = json!({"type": "object", "properties": {"a": anything}, "required": ["a"], "additionalProperties": false});
        for schema in [anything, inside] {
            assert_eq!(asked(schema.clone())["json_schema"]["strict"], false, "{schema}");
        }
    }
    let empty = json!({"type": "object", "additionalProperties": false});
    assert_eq!(asked(empty)["json_schema"]["strict"], true);
}

#[test]
fn what_is_passed_on_stays_the_bytes_it_is() {
    let body = concat!(
        r#"{"model":"a/b","max_tokens":9,"system":["caf\u00e9","\"x\""],"messages":["#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t\u0031","name":"f","input":{"a": 1.50}}]},"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t\u0031","is_error":true,"content":"\n an \u0065rror"}]},"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":["\"no\"","\t"]}]}],"#,
        r#""tools":[{"name":"f","input_schema":{"x":[ 1e2 ]}}]}"#
    );
    let translated = translate(body.as_bytes(), Purpose::Answer, false, |_| Takes::default()).unwrap();
    let expected = concat!(
        r#"{"model":"a/b","messages":[{"role":"system","content":"caf\u00e9\n\n\"x\""},"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"t\u0031","type":"function","function":{"name":"f","arguments":"{\"a\": 1.50}"}}]},"#,
        r#"{"role":"tool","tool_call_id":"t\u0031","content":"\n an \u0065rror"},"#,
        r#"{"role":"tool","tool_call_id":"t2","content":"Error: \"no\"\n\n\t"}],"max_tokens":9,"#,
        r#""tools":[{"type":"function","function":{"name":"f","parameters":{"x":[ 1e2 ]}}}]}"#
    );
    assert_eq!(String::from_utf8_lossy(&translated.body), expected);
}

#[test]
fn what_two_readers_could_read_differently_is_refused_wherever_it_stands() {
    for (body, param) in [
        (r#"{"model":"a/b","model":"c/d"}"#, "model"),
        (
            r#"{"model":"a/b","messages":[{"role":"user","content":"a","content":"b"}]}"#,
            "messages[0].content",
        ),
        (r#"{"tools":[{"name":"f","input_schema":{"a":{"b":1,"\u0062":2}}}]}"#, "tools[0].input_schema.a.b"),
        (r#"{"messages":[{"role":"user","content":"\ud800"}]}"#, ""),
    ] {
        let refused = translate(body.as_bytes(), Purpose::Answer, true, |_| Takes::default()).unwrap_err();
        assert_eq!(refused.into_body("").param.unwrap_or_default(), param, "{body}");
    }
}

proptest::proptest! {
    #[test]
    fn no_body_makes_it_panic(
        body in r#"\{("(model|messages|max_tokens|system|tools|thinking|tool_choice)":("a/b"|[0-9.e-]{1,4}|null|\[(\{("(role|content|type|source|name)":("user"|"text"|"tool_result"|"image"|null|\[\{"type":"text"\}\]|7|\{\}),?){0,4}\},?){0,2}\]|\{"type":"(any|enabled|tool)"\}),?){0,5}\}?"#
    ) {
        for (purpose, takes) in [(Purpose::Answer, Takes::default()), (Purpose::Count, CLAUDE)] {
            if let Ok(translated) = translate(body.as_bytes(), purpose, purpose == Purpose::Count, |_| takes) {
                // What is passed on is JSON again, whatever it was made of.
                proptest::prop_assert!(serde_json::from_slice::<Value>(&translated.body).is_ok());
            }
        }
    }
}
