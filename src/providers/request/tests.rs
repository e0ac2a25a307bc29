//! Callers' requests of all kinds, decoded for translation.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn decode(body: &Value) -> Result<DecodedRequest, Failure> {
    let body = body.to_string();
    let fields: Fields<'_> = serde_json::from_str(&body).unwrap();
    DecodedRequest::decode(&CompletionRequest {
        fields,
        stream: false,
        include_usage: false,
        choices: 1,
        prompt_tokens: 0,
        native: None,
    })
}

/// The field that is refused in a request with one user message and these fields.
fn refused(further: &Value) -> Option<String> {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    for (name, value) in further.as_object().unwrap() {
        body[name] = value.clone();
    }
    match decode(&body) {
        Ok(_) => None,
        Err(Failure::Unsupported { param, message }) => {
            assert!(!message.is_empty());
            Some(param)
        }
        Err(failure) => panic!("{failure:?}"),
    }
}

#[test]
fn fields_without_effect_are_accepted() {
    for further in [
        json!({"logprobs": false, "top_logprobs": 0, "logit_bias": {}, "modalities": ["text"]}),
        json!({"audio": null, "prediction": null, "functions": [], "tools": [], "tool_choice": "none"}),
        json!({"response_format": {"type": "text"}, "verbosity": "medium", "service_tier": "auto"}),
        json!({"user": "u", "metadata": {"a": "b"}, "store": true, "prompt_cache_key": "k"}),
        json!({"frequency_penalty": 0, "presence_penalty": 0.0, "stop": null, "parallel_tool_calls": true}),
    ] {
        assert_eq!(refused(&further), None, "{further}");
    }
}

#[test]
fn unsupported_fields_are_refused_by_name() {
    for (further, param) in [
        (json!({"logprobs": true}), "logprobs"),
        (json!({"logit_bias": {"50256": -100}}), "logit_bias"),
        (json!({"modalities": ["text", "audio"]}), "modalities"),
        (json!({"invented\u{7}_tomorrow": 1}), "invented\u{fffd}_tomorrow"),
        (json!({"Länge": 1}), "Länge"),
        (json!({"functions": [{"name": "f"}]}), "functions"),
        (json!({"verbosity": "low"}), "verbosity"),
        (json!({"web_search_options": {}}), "web_search_options"),
        (json!({"service_tier": "flex"}), "service_tier"),
        (json!({"stop": 5}), "stop"),
        (json!({"seed": "x"}), "seed"),
        (json!({"top_p": 1.5}), "top_p"),
        (json!({"response_format": {"type": "grammar"}}), "response_format.type"),
        (json!({"response_format": {"type": "json_schema"}}), "response_format.json_schema.schema"),
        (json!({"tools": [{"type": "web_search"}]}), "tools[0].type"),
        (json!({"tools": [{"type": "function", "function": {}}]}), "tools[0].function.name"),
        (json!({"tool_choice": "required"}), "tool_choice"),
        (json!({"tool_choice": {"type": "allowed_tools"}}), "tool_choice"),
        (json!({"tool_choice": {"type": "function", "mode": "x"}}), "tool_choice.mode"),
        (
            json!({"tools": [{"type": "function", "function": {"name": "f", "examples": [1]}}]}),
            "tools[0].function.examples",
        ),
        (json!({"response_format": {"type": "text", "grammar": "x"}}), "response_format.grammar"),
    ] {
        assert_eq!(refused(&further).as_deref(), Some(param), "{further}");
    }
}

#[test]
fn what_sdks_add_to_an_answer_is_no_part_of_the_conversation() {
    let messages = |is_extended: bool| {
        let mut call =
            json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}});
        let mut answer = json!({"role": "assistant", "content": "b"});
        if is_extended {
            call["provider_specific_fields"] = json!({"thought": "x"});
            call["function"]["provider_specific_fields"] = json!({"thought": "x"});
            call["function"]["parsed_arguments"] = json!({"x": 1});
            for (name, value) in [
                ("parsed", json!({"x": 1})),
                ("provider_specific_fields", json!({"citations": null})),
                ("thinking_blocks", json!([{"type": "thinking", "thinking": "Hm.", "signature": ""}])),
                ("reasoning_content", json!("Hm.")),
                ("refusal", json!(null)),
                ("audio", json!(null)),
                ("function_call", json!(null)),
            ] {
                answer[name] = value;
            }
        }
        answer["tool_calls"] = json!([call]);
        json!({"messages": [{"role": "user", "content": "a"}, answer]})
    };
    assert_eq!(decode(&messages(true)).unwrap().turns, decode(&messages(false)).unwrap().turns);
}

#[test]
fn unsupported_message_fields_are_refused_by_path() {
    let call = |arguments: &str| json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}});
    for (message, param) in [
        (json!({"role": "user", "content": "Hi", "name": 5}), "messages[1].name"),
        (json!({"role": "user", "content": [{"type": "video"}]}), "messages[1].content[0].type"),
        (
            json!({"role": "user", "content": [{"type": "input_audio", "input_audio": {"format": "flac"}}]}),
            "messages[1].content[0].input_audio.format",
        ),
        (
            json!({"role": "user", "content": [{"type": "input_audio", "input_audio": {"format": "wav"}}]}),
            "messages[1].content[0].input_audio.data",
        ),
        (
            json!({"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}),
            "messages[1].content[0].file.file_id",
        ),
        (
            json!({"role": "user", "content": [{"type": "file", "file": {"file_data": "JVBERi0="}}]}),
            "messages[1].content[0].file.file_data",
        ),
        (
            json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data"}}]}),
            "messages[1].content[0].image_url.url",
        ),
        (
            json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}),
            "messages[1].content[0].image_url.url",
        ),
        (
            json!({"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": "https://a.example/b.png", "detail": "low"}},
            ]}),
            "messages[1].content[0].image_url.detail",
        ),
        (
            json!({"role": "user", "content": [{"type": "text", "text": "Hi", "tone": "kind"}]}),
            "messages[1].content[0].tone",
        ),
        (json!({"role": "tool", "tool_call_id": "b", "content": "1"}), "messages[1].tool_call_id"),
        (json!({"role": "assistant", "audio": {"id": "x"}}), "messages[1].audio"),
        (
            json!({"role": "assistant", "tool_calls": [call("[1]")]}),
            "messages[1].tool_calls[0].function.arguments",
        ),
        (json!({"role": "assistant", "tool_calls": [{"type": "custom"}]}), "messages[1].tool_calls[0].type"),
    ] {
        let first = json!({"role": "user", "content": "Hi"});
        assert_eq!(refused(&json!({"messages": [first, message]})).as_deref(), Some(param), "{message}");
    }
    let only_system = json!({"messages": [{"role": "system", "content": "Be kind."}]});
    assert_eq!(refused(&only_system).as_deref(), Some("messages"));
}

#[test]
fn tool_calls_of_any_other_form_are_refused_not_emptied() {
    let refused_call = |calls: Value| {
        let message = json!({"role": "assistant", "content": "I look.", "tool_calls": calls});
        refused(&json!({"messages": [{"role": "user", "content": "Hi"}, message]}))
    };
    let with = |arguments: Value| {
        let function = json!({"name": "f", "arguments": arguments});
        refused_call(json!([{"id": "c", "type": "function", "function": function}]))
    };
    for accepted in [json!(null), json!(""), json!(" "), json!("{}"), json!("{\"a\":1}"), json!({"a": 1})] {
        assert_eq!(with(accepted.clone()), None, "{accepted}");
    }
    let path = "messages[1].tool_calls[0].function.arguments";
    for other in [json!([]), json!([{"a": 1}]), json!(0), json!(false), json!("[]"), json!("null")] {
        assert_eq!(with(other.clone()).as_deref(), Some(path), "{other}");
    }
    assert_eq!(refused_call(json!(null)), None);
    for other in [json!({}), json!({"id": "c"}), json!("f"), json!(true)] {
        assert_eq!(refused_call(other.clone()).as_deref(), Some("messages[1].tool_calls"), "{other}");
    }
}

#[test]
fn consecutive_messages_of_one_speaker_become_one_turn() {
    let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}});
    let request = decode(&json!({"messages": [
        {"role": "system", "content": "One."},
        {"role": "user", "content": "b"},
        {"role": "developer", "content": [{"type": "text", "text": "Two."}]},
        {"role": "user", "content": [{"type": "text", "text": "c"}, {"type": "text", "text": ""}]},
        {"role": "assistant", "content": "", "tool_calls": [call], "refusal": null, "annotations": []},
        {"role": "tool", "tool_call_id": "a", "name": "f", "content": "1"},
        {"role": "user", "content": "d"},
    ]}));
    let request = request.unwrap();
    let part = |content, path: &str| Part { content, cache_control: None, path: path.to_owned() };
    let text = |text: &str, path: &str| part(ContentPart::Text(text.to_owned()), path);
    assert_eq!(request.system, [text("One.", "messages[0].content"), text("Two.", "messages[2].content[0]")]);
    let (id, name) = ("a".to_owned(), "f".to_owned());
    let (arguments, signature) = (serde_json::Map::new(), None);
    let called = ContentPart::ToolCall { id: id.clone(), name: name.clone(), arguments, signature };
    let result = ContentPart::ToolResult { id, name, parts: vec![text("1", "messages[5].content")] };
    let turn = |speaker, parts| Turn { speaker, parts };
    let expected = vec![
        turn(Speaker::User, vec![text("b", "messages[1].content"), text("c", "messages[3].content[0]")]),
        turn(Speaker::Model, vec![part(called, "messages[4].tool_calls[0]")]),
        turn(Speaker::User, vec![part(result, "messages[5]"), text("d", "messages[6].content")]),
    ];
    assert_eq!(request.turns, expected);
}

/// The texts of a conversation of these messages, each of a role, a name and a content.
fn texts(messages: &[(&str, Value, Value)]) -> Vec<String> {
    let messages = messages.iter().map(|(role, name, content)| {
        let mut message = json!({"role": role, "content": content});
        if !name.is_null() {
            message["name"] = name.clone();
        }
        message
    });
    let request = decode(&json!({"messages": messages.collect::<Value>()})).unwrap();
    let parts = request.system.iter().chain(request.turns.iter().flat_map(|turn| &turn.parts));
    parts.filter_map(Part::as_text).map(str::to_owned).collect()
}

#[test]
fn names_are_shown_only_where_they_tell_somebody_apart() {
    let shared = [
        ("system", json!("rules"), json!("Rules")),
        ("user", json!("Ann"), json!("a")),
        ("assistant", json!("bot"), json!("b")),
        ("user", json!("Ann"), json!("c")),
        ("user", json!(""), json!("d")),
        ("user", Value::Null, json!("e")),
    ];
    assert_eq!(texts(&shared), ["Rules", "a", "b", "c", "d", "e"]);
    let image = json!({"type": "image_url", "image_url": {"url": "https://a.example/b.png"}});
    let several = [
        ("user", json!("Ann"), json!("a")),
        ("assistant", json!("bot"), json!("b")),
        ("user", json!("Bob"), json!([image, {"type": "text", "text": "c"}])),
        ("user", json!("Bob"), json!([image])),
        ("user", Value::Null, json!("d")),
    ];
    assert_eq!(texts(&several), ["Ann: a", "b", "Bob: c", "Bob:", "d"]);
}

#[test]
fn the_smaller_of_two_limits_counts() {
    let limit = |further: Value| {
        let mut body = further;
        body["messages"] = json!([{"role": "user", "content": "Hi"}]);
        decode(&body).unwrap().max_tokens
    };
    assert_eq!(limit(json!({"max_tokens": 5})), Some(5));
    assert_eq!(limit(json!({"max_tokens": 5, "max_completion_tokens": 4})), Some(4));
    assert_eq!(limit(json!({"max_tokens": null})), None);
}

/// Any JSON of a few levels, with names and words that have a meaning here.
fn anything() -> impl Strategy<Value = Value> {
    let word = || {
        prop::sample::select(vec!["type", "function", "text", "image_url", "name", "url", "id", "data:,", ""])
    };
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
        ".{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..4).prop_map(|fields| fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_request_makes_it_panic(value in anything(), name in prop::sample::select(KNOWN_FIELDS.to_vec())) {
        let _ = decode(&json!({"messages": [{"role": "user", "content": value}]}));
        let _ = decode(&json!({"messages": [{"role": "assistant", "content": value, "tool_calls": [value]}]}));
        let mut body = json!({"messages": [{"role": "user", "content": "Hi"}]});
        body[name] = value;
        if let Err(Failure::Unsupported { param, message }) = decode(&body) {
            prop_assert!(param.starts_with(name) && !message.is_empty(), "{param}: {message}");
        }
    }
}
