//! Requests, translated and refused.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::request::name_here;
use super::{OPENAI, translate, translated};
use crate::inference::{Effort, Takes};

/// The request with these fields beside a model, as a chat completion without its model.
fn chat(fields: &Value) -> Value {
    let mut body = json!({"model": "a/b", "input": "Hi"});
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    let translated = translated(&body).unwrap();
    let mut chat: Value = serde_json::from_slice(&translated.body).unwrap();
    assert_eq!(chat.as_object_mut().unwrap().remove("model"), Some(json!("a/b")));
    chat
}

/// The messages that items become.
fn messages(input: &Value) -> Value {
    chat(&json!({"input": input}))["messages"].take()
}

/// The parameter at fault in a request with these fields, and its message.
fn refused(fields: &Value) -> (String, String) {
    let mut body = json!({"model": "a/b", "input": "Hi"});
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    let error = translated(&body).unwrap_err().into_body("");
    (error.param.unwrap_or_default(), error.message)
}

#[test]
fn a_text_is_the_message_of_a_user() {
    let expected = json!({"messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
    ]});
    assert_eq!(chat(&json!({"instructions": "Be brief.", "store": false, "background": null})), expected);
}

#[test]
fn a_turn_of_the_model_is_one_message() {
    let call = |id: &str, arguments: &str| json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": "look", "arguments": arguments});
    let result =
        |id: &str, output: Value| json!({"type": "function_call_output", "call_id": id, "output": output});
    let told = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": arguments}});
    let input = json!([
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Two\n"}, {"type": "input_text", "text": "\"parts\""}]},
        {"role": "user", "content": "Look"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {"type": "message", "role": "assistant", "id": "msg_1", "content": [{"type": "output_text", "text": "I ", "annotations": []}, {"type": "output_text", "text": "look"}]},
        call("c1", "{\"at\": 1}"),
        call("c2", "{}"),
        {"role": "assistant", "content": "Still looking"},
        result("c1", json!("here")),
        result("c2", json!([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}])),
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"role": "assistant", "content": []},
    ]);
    let expected = json!([
        {"role": "system", "content": "Two\n\n\n\"parts\""},
        {"role": "user", "content": "Look"},
        {"role": "assistant", "content": "I look\n\nStill looking", "tool_calls": [told("c1", "{\"at\": 1}"), told("c2", "{}")]},
        {"role": "tool", "tool_call_id": "c1", "content": "here"},
        {"role": "tool", "tool_call_id": "c2", "content": "a\nb"},
        {"role": "assistant", "content": null, "refusal": "No."},
        {"role": "assistant", "content": ""},
    ]);
    assert_eq!(messages(&input), expected);
    let translated = translated(&json!({"model": "a/b", "instructions": "x", "input": input})).unwrap();
    assert_eq!(translated.left_out, ["input.reasoning"]);
    let origins = [None, Some(0), Some(1), Some(3), Some(7), Some(8), Some(9), Some(10)];
    assert_eq!(translated.origins, origins);
    assert_eq!(name_here("messages[3].tool_calls[0]", &origins).as_deref(), Some("input[3]"));
    assert_eq!(name_here("messages[0].content", &origins).as_deref(), Some("instructions"));
    assert_eq!(name_here("max_tokens", &origins).as_deref(), Some("max_output_tokens"));
    assert_eq!(name_here("messages[99]", &origins), None);
    assert_eq!(name_here("top_k", &origins), None);
}

#[test]
fn images_files_and_sounds_are_parts() {
    let content = json!([
        {"type": "input_text", "text": "See"},
        {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"},
        {"type": "input_image", "image_url": "https://a/b", "detail": "original"},
        {"type": "input_text", "text": "and"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
    ]);
    let expected = json!([
        {"type": "text", "text": "See"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "image_url", "image_url": {"url": "https://a/b", "detail": "high"}},
        {"type": "text", "text": "and"},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
    ]);
    assert_eq!(
        messages(&json!([{"role": "user", "content": content}])),
        json!([{"role": "user", "content": expected}])
    );
}

#[test]
fn what_results_show_besides_text_is_told_by_the_user_after_all_of_them() {
    let image = |name: &str| json!({"type": "input_image", "image_url": format!("https://a/{name}")});
    let told = |name: &str| json!({"type": "image_url", "image_url": {"url": format!("https://a/{name}")}});
    let note = |id: &str| json!({"type": "text", "text": format!("What the tool returned for the call {id} besides text:")});
    let text = |text: &str| json!({"type": "input_text", "text": text});
    let result =
        |id: &str, output: Value| json!({"type": "function_call_output", "call_id": id, "output": output});
    let input = json!([
        result("c1", json!([text("a"), image("1"), image("2"), text("b")])),
        {"type": "reasoning", "summary": []},
        result("c2", json!([image("3")])),
        result("c3", json!("c")),
        {"role": "user", "content": "Go on."},
        result("c4", json!([image("4")])),
    ]);
    let expected = json!([
        {"role": "tool", "tool_call_id": "c1", "content": "a\nb"},
        {"role": "tool", "tool_call_id": "c2", "content": ""},
        {"role": "tool", "tool_call_id": "c3", "content": "c"},
        {"role": "user", "content": [note("c1"), told("1"), told("2"), note("c2"), told("3")]},
        {"role": "user", "content": "Go on."},
        {"role": "tool", "tool_call_id": "c4", "content": ""},
        {"role": "user", "content": [note("c4"), told("4")]},
    ]);
    assert_eq!(messages(&input), expected);
    let origins = translated(&json!({"model": "a/b", "input": input})).unwrap().origins;
    assert_eq!(origins, [0, 2, 3, 0, 4, 5, 5].map(Some));
}

#[test]
fn tools_are_functions_whatever_their_type() {
    let schema = json!({"type": "object"});
    let grammar = json!({"type": "grammar", "syntax": "lark", "definition": "start: \"x\""});
    let body = json!({
        "tools": [
            {"type": "function", "name": "look", "description": "d", "parameters": schema, "strict": true},
            {"type": "custom", "name": "patch", "description": "Patches.", "format": grammar},
            {"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "close", "parameters": schema, "strict": null}]},
            {"type": "web_search", "external_web_access": false},
        ],
        "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "custom", "name": "patch"}, {"type": "function", "name": "close"}, {"type": "web_search"}]},
        "parallel_tool_calls": false,
        "input": [
            {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "a \"b\"\n"},
            {"type": "function_call", "call_id": "e", "name": "close", "namespace": "agents", "arguments": "{}", "extra_content": {"google": {}}},
        ],
    });
    let expected = json!({
        "messages": [{"role": "assistant", "content": null, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "patch", "arguments": "{\"input\":\"a \\\"b\\\"\\n\"}"}},
            {"id": "e", "type": "function", "function": {"name": "agents__close", "arguments": "{}"}, "extra_content": {"google": {}}},
        ]}],
        "tools": [
            {"type": "function", "function": {
                "name": "patch",
                "description": "Patches.\n\n`input` must match this grammar (lark):\n\nstart: \"x\"",
                "parameters": {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"], "additionalProperties": false},
            }},
            {"type": "function", "function": {"name": "agents__close", "parameters": schema}},
        ],
        "tool_choice": "required",
        "parallel_tool_calls": false,
        "reasoning_effort": "none",
    });
    assert_eq!(chat(&body), expected);
    let mut body = body;
    body["model"] = json!("a/b");
    assert_eq!(translated(&body).unwrap().left_out, ["tools.web_search"]);
    body["tool_choice"] = json!({"type": "function", "name": "look"});
    let chosen = json!({"type": "function", "function": {"name": "look"}});
    assert_eq!(chat(&body)["tool_choice"], chosen);
    // Without tools, there is nothing to choose.
    assert_eq!(chat(&json!({"tool_choice": "auto", "tools": []})).as_object().unwrap().len(), 1);
}

#[test]
fn a_long_name_in_a_namespace_is_cut_to_one_of_its_own() {
    let names: Vec<String> = ["a", "b"]
        .map(|end| {
            let tool = json!({"type": "function", "name": format!("{}{end}", "é".repeat(40))});
            let tools = json!([{"type": "namespace", "name": "mcp__x__", "tools": [tool]}]);
            let name = chat(&json!({"tools": tools}))["tools"][0]["function"]["name"].take();
            name.as_str().unwrap().to_owned()
        })
        .into();
    assert!(
        names[0] != names[1] && names.iter().all(|name| name.len() <= 64 && name.starts_with("mcp__x__é"))
    );
}

#[test]
fn parameters_have_their_names_of_the_other_format() {
    let format = json!({"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": true});
    let body = json!({
        "text": {"format": format, "verbosity": "low"}, "reasoning": {"effort": "low", "summary": "auto"},
        "max_output_tokens": 9, "temperature": 0.5, "top_p": 0.5, "top_logprobs": 2, "safety_identifier": "u",
        "stream": true, "stream_options": {"include_obfuscation": false}, "top_k": 3,
        "include": ["reasoning.encrypted_content"], "truncation": "disabled", "service_tier": "auto",
    });
    let expected = json!({
        "messages": [{"role": "user", "content": "Hi"}],
        "verbosity": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": {"type": "object"}}},
        "reasoning_effort": "low", "logprobs": true, "top_logprobs": 2, "max_tokens": 9, "user": "u",
        "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.5, "top_p": 0.5, "top_k": 3,
    });
    assert_eq!(chat(&body), expected);
    assert_eq!(
        chat(&json!({"text": {"format": {"type": "json_object"}}}))["response_format"]["type"],
        "json_object"
    );
    let tuning = json!({
        "model": "a/b", "input": "Hi", "client_metadata": {"a": "b"}, "prompt_cache_key": "k", "metadata": {},
        "truncation": "auto", "service_tier": "flex", "include": ["file_search_call.results"],
    });
    let left_out = ["include", "client_metadata", "prompt_cache_key", "truncation", "service_tier"];
    assert_eq!(translated(&tuning).unwrap().left_out, left_out);
}

#[test]
fn tools_that_run_at_a_provider_are_left_out_if_the_operator_says_so() {
    let function = json!({"type": "function", "name": "f"});
    for (tools, choice, left_out) in [
        (json!([{"type": "web_search"}]), Value::Null, "tools.web_search"),
        (json!([{"type": "web_search"}]), json!({"type": "web_search"}), "tool_choice tools.web_search"),
        (json!([function, {"type": "mcp"}]), json!({"type": "mcp"}), "tool_choice tools.mcp"),
    ] {
        let body = json!({"model": "a/b", "input": "Hi", "tools": tools, "tool_choice": choice}).to_string();
        assert!(translate(body.as_bytes(), false, |_| OPENAI).is_err());
        let translated = translate(body.as_bytes(), true, |_| OPENAI).unwrap();
        assert_eq!(translated.left_out.join(" "), left_out);
        assert!(!String::from_utf8_lossy(&translated.body).contains("tool_choice"));
    }
}

#[test]
fn what_tunes_an_answer_is_told_to_models_that_take_it() {
    let older_claude = Takes { least_effort: None, own_format: false, ..OPENAI };
    let claude = Takes {
        least_effort: Some(Effort::None),
        thinks_with_tools: true,
        highest_efforts: true,
        ..older_claude
    };
    let gemini = Takes { least_effort: Some(Effort::Minimal), highest_efforts: false, ..claude };
    let unknown = Takes { least_effort: None, ..OPENAI };
    let tools = json!([{"type": "function", "name": "f"}]);
    for (takes, tools, wanted, told, left_out) in [
        (OPENAI, Value::Null, "xhigh", "xhigh low", "reasoning.summary"),
        (OPENAI, tools.clone(), "high", "none low", "reasoning.effort reasoning.summary"),
        (OPENAI, tools.clone(), "", "none low", "reasoning.summary"),
        (claude, tools.clone(), "", "- -", "text.verbosity reasoning.summary"),
        (older_claude, tools.clone(), "", "- -", "text.verbosity reasoning.summary"),
        (older_claude, tools.clone(), "medium", "- -", "text.verbosity reasoning.effort reasoning.summary"),
        (claude, tools.clone(), "xhigh", "xhigh -", "text.verbosity reasoning.summary"),
        (gemini, tools.clone(), "xhigh", "high -", "text.verbosity reasoning.summary"),
        (gemini, tools, "none", "minimal -", "text.verbosity reasoning.summary"),
        (unknown, Value::Null, "huge", "huge low", "reasoning.summary"),
    ] {
        let body = json!({
            "model": "a/b", "input": "Hi", "tools": tools, "text": {"verbosity": "low"},
            "reasoning": {"effort": Some(wanted).filter(|wanted| !wanted.is_empty()), "summary": "auto"},
        });
        let translated = translate(body.to_string().as_bytes(), false, |_| takes).unwrap();
        let chat: Value = serde_json::from_slice(&translated.body).unwrap();
        let text = |name: &str| chat[name].as_str().unwrap_or("-").to_owned();
        assert_eq!([text("reasoning_effort"), text("verbosity")].join(" "), told, "{body}");
        assert_eq!(translated.left_out.join(" "), left_out, "{body}");
    }
}

#[test]
fn what_cannot_be_had_is_refused_by_name() {
    for (fields, param, says) in [
        (json!({"previous_response_id": "resp_1"}), "previous_response_id", "whole conversation in `input`"),
        (json!({"conversation": "conv_1"}), "conversation", "whole conversation"),
        (json!({"background": true}), "background", "stream the answer"),
        (json!({"store": true}), "store", "leave it out"),
        (json!({"messages": []}), "messages", "`input`"),
        (json!({"max_tokens": 1}), "max_tokens", "`max_output_tokens`"),
        (json!({"prompt": {"id": "p"}}), "prompt", "leave it out"),
        (json!({"max_output_tokens": 0}), "max_output_tokens", "from 1"),
        (json!({"input": null}), "input", "required"),
        (json!({"input": []}), "input", "non-empty"),
        (json!({"input": 7}), "input", "a string"),
        (json!({"input": [7]}), "input[0]", "an object"),
        (json!({"input": [{"type": "item_reference", "id": "msg_1"}]}), "input[0].type", "not stored"),
        (json!({"input": [{"type": "web_search_call", "id": "ws_1"}]}), "input[0].type", "web_search_call"),
        (json!({"input": [{"role": "tool", "content": "x"}]}), "input[0].role", "user, assistant"),
        (json!({"input": [{"role": "user"}]}), "input[0].content", "required"),
        (
            json!({"input": [{"role": "user", "content": [{"type": "x\u{7}y"}]}]}),
            "input[0].content[0].type",
            "`xy`",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}),
            "input[0].content[0].file_id",
            "`image_url`",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_file", "file_url": "f"}]}]}),
            "input[0].content[0].file_url",
            "`file_data`",
        ),
        (json!({"input": [{"type": "function_call_output", "call_id": "c"}]}), "input[0].output", "required"),
        (
            json!({"input": [{"type": "function_call", "call_id": "c", "name": "n"}]}),
            "input[0].arguments",
            "required",
        ),
        (json!({"tools": [{"type": "web_search"}]}), "tools", "`web_search`"),
        (
            json!({"tools": [{"type": "function", "name": "a"}, {"type": "mcp"}], "tool_choice": {"type": "mcp"}}),
            "tool_choice.type",
            "`mcp`",
        ),
        (
            json!({"tools": [{"type": "function", "name": "a"}, {"type": "mcp"}], "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "mcp"}]}}),
            "tool_choice.tools",
            "`mcp`",
        ),
        (
            json!({"tools": [{"type": "function", "name": "a"}, {"type": "custom", "name": "a"}]}),
            "tools[1].name",
            "unique",
        ),
        (
            json!({"tools": [{"type": "function", "name": "a"}], "tool_choice": {"type": "function", "name": "b"}}),
            "tool_choice.name",
            "one of `tools`",
        ),
        (json!({"tools": [{"type": "function"}]}), "tools[0].name", "required"),
        (json!({"text": {"format": {"type": "xml"}}}), "text.format.type", "json_schema"),
    ] {
        let (named, message) = refused(&fields);
        assert_eq!(named, param, "{fields}");
        assert!(message.contains(says), "{fields}: {message}");
    }
    // With nothing to be called, what cannot be called does not matter.
    assert_eq!(
        chat(&json!({"tools": [{"type": "web_search"}], "tool_choice": "none"})).as_object().unwrap().len(),
        1
    );
}

proptest! {
    #[test]
    fn no_body_makes_it_panic(
        fields in prop::collection::btree_map(
            "(input|tools|tool_choice|text|reasoning|include|instructions|messages|stream|store)",
            r#"null|true|7|"x"|\[\]|\{\}|"\\ud800"|\[(\{("(type|role|content|name|tools|output|call_id|input|arguments|image_url)":("message"|"user"|"custom"|"namespace"|"function_call_output"|"custom_tool_call"|"input_image"|\[\{"type":"input_text","text":"\\n"\}\]|"\\ud800"),?){0,4}\},?){0,3}\]"#,
            0..5,
        )
    ) {
        let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        if let Ok(translated) = translate(format!("{{{}}}", fields.join(",")).as_bytes(), false, |_| OPENAI) {
            // What is passed on is JSON again, whatever it was made of.
            prop_assert!(serde_json::from_slice::<Box<serde_json::value::RawValue>>(&translated.body).is_ok());
        }
    }
}
