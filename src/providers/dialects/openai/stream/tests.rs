//! Chunks of many providers, and what they become for the caller.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::money::Tokens;
use crate::providers::{CompletionRequest, ResponseMeta, sse};

const HEAD: &str = r#""id":"c","created":5,"model":"up""#;

fn chunks(choices: u32) -> ChunkWriter {
    let request = CompletionRequest {
        fields: Fields::default(),
        stream: true,
        include_usage: true,
        choices,
        prompt_tokens: 9,
        native: None,
    };
    ChunkWriter::new(&request, ResponseMeta { model: "a/b".into(), created: 7 })
}

/// The chunks written for these events, whether the answer may end after them, and the failure that it broke with.
fn play(events: &[String], choices: u32) -> (Vec<Value>, bool, Option<Failure>) {
    let mut chunks = chunks(choices);
    let mut sse_decoder = sse::Decoder::default();
    let mut decoder = Decoder::default();
    let mut failure = None;
    for event in events {
        sse_decoder.feed(format!("data: {event}\n\n").as_bytes());
        while let Some(event) = sse_decoder.next().unwrap() {
            failure = failure.or(decoder.read(&event, &mut chunks).err());
        }
    }
    let whole = chunks.may_end();
    chunks.write_finishes();
    let out = String::from_utf8(chunks.take().to_vec()).unwrap();
    let lines = out.split_terminator("\n\n").map(|line| line.strip_prefix("data: ").unwrap());
    (lines.map(|line| serde_json::from_str(line).unwrap()).collect(), whole, failure)
}

fn one(choice: &str) -> String {
    format!("{{{HEAD},\"choices\":[{choice}]}}")
}

#[test]
fn a_complete_answer_in_one_chunk_is_passed_on() {
    let whole = r#"{"index":0,"message":{"role":"assistant","content":"all"},"finish_reason":"stop"}"#;
    let (out, is_whole, failure) = play(&[one(whole)], 1);
    assert!(is_whole && failure.is_none(), "{failure:?}");
    let said: String =
        out.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(
        (said.as_str(), out.last().unwrap()["choices"][0]["finish_reason"].as_str()),
        ("all", Some("stop"))
    );
    // After deltas, it only repeats them.
    let delta = r#"{"index":0,"delta":{"role":"assistant","content":"all"}}"#;
    let (out, ..) = play(&[one(delta), one(whole)], 1);
    let said: String =
        out.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(said, "all");
}

/// The usage accounted for a stream of these usage objects, each with a text of 40 characters.
fn accounted(usages: &[&str], finish: &str) -> Tokens {
    let mut chunks = chunks(1);
    let mut decoder = Decoder::default();
    let content = "x".repeat(40);
    let last = usages.len() - 1;
    for (at, usage) in usages.iter().enumerate() {
        let finish = if at == last { finish } else { "null" };
        let choice = format!(r#"{{"index":0,"delta":{{"content":"{content}"}},"finish_reason":{finish}}}"#);
        let data = format!(r#"{{{HEAD},"choices":[{choice}],"usage":{usage}}}"#);
        decoder.read(&Event { name: b"", data: data.as_bytes() }, &mut chunks).unwrap();
    }
    chunks.usage()
}

#[test]
fn reports_of_zero_tokens_are_ignored_at_any_position() {
    const ZEROS: &str = r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#;
    let reported = r#"{"prompt_tokens":9,"completion_tokens":80}"#;
    let estimated = accounted(&["null", "null"], "null");
    assert!(estimated.prompt > 0 && estimated.completion >= 20, "{estimated:?}");
    assert_eq!(accounted(&[ZEROS, ZEROS], "null"), estimated);
    assert_eq!(accounted(&[ZEROS, ZEROS], r#""stop""#), estimated);
    let expected = Tokens::new(9, 80);
    for usages in [[reported, ZEROS], [ZEROS, reported]] {
        assert_eq!(accounted(&usages, r#""stop""#), expected);
    }
}

#[test]
fn an_early_report_does_not_cover_all_of_a_broken_answer() {
    let early = r#"{"prompt_tokens":9,"completion_tokens":0}"#;
    let estimated = accounted(&["null", "null", "null"], "null").completion;
    assert_eq!(accounted(&[early, "null", "null"], "null"), Tokens::new(9, estimated));
    assert_eq!(accounted(&[early, "null", "null"], r#""stop""#), Tokens::new(9, 0));
}

#[test]
fn a_chunk_in_order_is_passed_on_unchanged() {
    let choice = r#"{"index":0,"delta":{"role":"assistant","content":"a"},"logprobs":{"x":1.50},"finish_reason":null}"#;
    let mut chunks = chunks(1);
    let data = format!(r#"{{{HEAD},"choices":[{choice}],"usage":null,"service_tier":"x"}}"#);
    let event = Event { name: b"", data: data.as_bytes() };
    assert_eq!(Decoder::default().read(&event, &mut chunks), Ok(EventOutcome::More));
    let expected = format!(
        "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":5,\"model\":\"a/b\",\
         \"choices\":[{choice}],\"service_tier\":\"x\"}}\n\n"
    );
    assert_eq!(String::from_utf8(chunks.take().to_vec()).unwrap(), expected);
}

#[test]
fn the_role_is_the_documented_one_wherever_it_stands() {
    let chunk = |text: &str| {
        one(&format!(r#"{{"index":0,"delta":{{"role":"model","content":"{text}"}},"finish_reason":null}}"#))
    };
    let (out, _, failure) = play(&[chunk("a"), chunk("b")], 1);
    let deltas: Vec<&Value> = out.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
    let expected =
        [json!({"role": "assistant", "content": ""}), json!({"content": "a"}), json!({"content": "b"})];
    assert_eq!((deltas, failure), (expected.iter().collect(), None));
}

#[test]
fn a_chunk_with_everything_becomes_three() {
    let choice = r#"{"index":0,"delta":{"role":"assistant","content":"a","refusal":null},"content_filter":1,"finish_reason":"stop"}"#;
    let (out, whole, _) = play(&[one(choice)], 1);
    let deltas: Vec<&Value> = out.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
    assert_eq!(*deltas[0], json!({"role": "assistant", "content": ""}));
    assert_eq!(deltas[1]["content"], "a");
    assert_eq!((deltas[2], deltas.len(), whole), (&json!({}), 3, true));
    assert_eq!(out[1]["choices"][0]["content_filter"], 1);
}

#[test]
fn finish_reasons_that_mean_an_interruption_are_no_end() {
    let end = |reason: &str| one(&format!(r#"{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}"#));
    assert_eq!(play(&[end("abort")], 1).2, Some(Failure::Cut));
    assert_eq!(play(&[end("error")], 1).2, Some(Failure::Broken { status: 200, retry_after: None }));
    let (out, whole, failure) = play(&[end("model_length")], 1);
    assert_eq!((&out[1]["choices"][0]["finish_reason"], whole, failure), (&json!("length"), true, None));
    let (_, whole, _) = play(&[end("")], 1);
    assert!(!whole);
}

#[test]
fn the_most_telling_finish_reason_counts() {
    let chunk = |content: &str, reason: &str| {
        one(&format!(r#"{{"index":0,"delta":{{"content":"{content}"}},"finish_reason":"{reason}"}}"#))
    };
    for (reasons, expected) in [
        (["stop", "stop"], "stop"),
        (["stop", "tool_calls"], "tool_calls"),
        (["length", "stop"], "length"),
        (["length", "content_filter"], "content_filter"),
    ] {
        for content in ["", "x"] {
            let (out, whole, failure) = play(&reasons.map(|reason| chunk(content, reason)), 1);
            assert_eq!((whole, failure), (true, None));
            let ends: Vec<_> =
                out.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str()).collect();
            assert_eq!(ends, [expected], "{out:?}");
        }
    }
}

#[test]
fn content_with_the_report_of_an_interruption_is_passed_on() {
    let error = r#"{"index":0,"delta":{"role":"assistant","content":"x"},"finish_reason":"error"}"#;
    let (out, whole, failure) = play(&[one(error)], 1);
    assert_eq!(out[1]["choices"][0]["delta"]["content"], "x");
    assert_eq!((whole, failure), (false, Some(Failure::Broken { status: 200, retry_after: None })));
}

#[test]
fn finish_reasons_that_are_held_back_are_bounded() {
    let mut chunks = chunks(1);
    let mut decoder = Decoder::default();
    let mut read = |index: u32| {
        let choice = format!(
            r#"{{"index":{index},"delta":{{}},"x":"{}","finish_reason":"stop"}}"#,
            "y".repeat(1 << 20)
        );
        let read = decoder.read(&Event { name: b"", data: one(&choice).as_bytes() }, &mut chunks);
        chunks.take();
        read
    };
    for _ in 0..20 {
        assert_eq!(read(0), Ok(EventOutcome::More), "one choice keeps one reason");
    }
    assert_eq!((1..20).find_map(|index| read(index).err()), Some(Failure::Malformed));
}

#[test]
fn the_output_for_one_event_is_bounded() {
    let choices = vec![r#"{"delta":{"content":"x"}}"#; 1000].join(",");
    let data = format!(r#"{{{HEAD},"choices":[{choices}],"more":"{}"}}"#, "y".repeat(1 << 20));
    let mut chunks = chunks(1);
    let event = Event { name: b"", data: data.as_bytes() };
    assert_eq!(Decoder::default().read(&event, &mut chunks), Err(Failure::Malformed));
    assert!(chunks.take().len() < 16 << 20);
}

#[test]
fn chunks_with_too_many_choices_are_refused() {
    let of = |count| {
        let data = one(&vec![r#"{"index":0,"delta":{"content":"x"}}"#; count].join(","));
        Decoder::default().read(&Event { name: b"", data: data.as_bytes() }, &mut chunks(1))
    };
    assert_eq!(of(MAX_LISTED_CHOICES), Ok(EventOutcome::More));
    assert_eq!(of(MAX_LISTED_CHOICES + 1), Ok(EventOutcome::Unreadable));
}

#[test]
fn a_choice_that_is_not_an_object_is_dropped() {
    let fields = r#"[0,{"role":"assistant","content":"x"},null,null,null]"#;
    assert_eq!(play(&[one(fields)], 1), (Vec::new(), false, None));
}

#[test]
fn estimates_count_characters_not_bytes() {
    let mut chunks = chunks(1);
    for text in ["ääää", "\\u00e4\\u00e4\\u00e4\\u00e4"] {
        let data = one(&format!(r#"{{"index":0,"delta":{{"role":"assistant","content":"{text}"}}}}"#));
        Decoder::default().read(&Event { name: b"", data: data.as_bytes() }, &mut chunks).unwrap();
    }
    assert_eq!(chunks.usage(), Tokens::new(9, 2));
}

fn event() -> impl Strategy<Value = String> {
    let index = prop::sample::select(vec!["", r#""index":0,"#, r#""index":1,"#, r#""index":2,"#]);
    let delta = prop::sample::select(vec![
        "",
        r#""delta":{},"#,
        r#""delta":null,"#,
        r#""delta":{"role":"assistant"},"#,
        r#""delta":{"role":"assistant","content":"x"},"#,
        r#""delta":{"content":"y"},"#,
        r#""delta":{"content":[1]},"#,
        r#""delta":{"tool_calls":[{"index":0}]},"#,
        r#""delta":{"tool_calls":[{"id":"a","function":{"name":"f"}},{"id":"b"}]},"#,
        r#""delta":{"tool_calls":[[null,null,{"name":"f"}]]},"#,
        r#""delta":[null,null,null,null,null,[{"function":{"name":"f"}}]],"#,
        r#""delta":{"content":[{"type":"text","text":"z"},{"type":"thinking","thinking":7}]},"#,
    ]);
    let finish = prop::sample::select(vec!["null", "\"\"", "\"stop\"", "\"length\"", "\"eos\"", "7"]);
    let choice = (index, delta, finish)
        .prop_map(|(index, delta, finish)| format!("{{{index}{delta}\"finish_reason\":{finish}}}"));
    let some = prop::collection::vec(choice, 0..3).prop_map(|list| one(&list.join(",")));
    let rest = prop::sample::select(vec![
        "{",
        "[]",
        "null",
        "{}",
        r#"{"choices":7}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
    ]);
    prop_oneof![8 => some, 1 => rest.prop_map(str::to_owned)]
}

fn text_chunk(text: &str, more: &str) -> String {
    let choice =
        format!(r#"{{"index":0,"delta":{{"content":{text}}},"logprobs":null,"finish_reason":null}}"#);
    format!("{{{HEAD},\"choices\":[{choice}]{more}}}")
}

#[test]
fn a_chunk_like_the_previous_one_takes_the_fast_path() {
    let mut chunks = chunks(1);
    let mut decoder = Decoder::default();
    let role = one(r#"{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}"#);
    for data in [&role, &text_chunk("\"a\"", "")] {
        assert!(!decoder.template.try_write(data.as_bytes(), &mut chunks), "{data}");
        decoder.read(&Event { name: b"", data: data.as_bytes() }, &mut chunks).unwrap();
    }
    let before = chunks.take();
    assert!(decoder.template.try_write(text_chunk(r#""b\u00e4""#, "").as_bytes(), &mut chunks));
    let expected = String::from_utf8(before.to_vec()).unwrap().split_off(before.len() / 2);
    let (_, expected) = expected.split_once("data: ").unwrap();
    assert_eq!(chunks.take(), format!("data: {}", expected.replace("\"a\"", r#""b\u00e4""#)));
    assert_eq!(chunks.take_text().as_deref(), Some("abä"));

    let unlike = [
        text_chunk("\"a\"", r#","x":1"#),
        text_chunk("[]", ""),
        text_chunk("\"a\",\"refusal\":\"b\"", ""),
        role,
    ];
    for data in unlike {
        let again = text_chunk("\"a\"", "");
        decoder.read(&Event { name: b"", data: again.as_bytes() }, &mut chunks).unwrap();
        assert!(!decoder.template.try_write(data.as_bytes(), &mut chunks), "{data}");
        assert!(!decoder.template.try_write(again.as_bytes(), &mut chunks), "it is broken");
    }
}

#[test]
fn templates_are_given_up_if_no_chunk_matches() {
    let mut chunks = chunks(1);
    let mut decoder = Decoder::default();
    let mut read = |data: &str| {
        decoder.read(&Event { name: b"", data: data.as_bytes() }, &mut chunks).unwrap();
        decoder.template.is_valid()
    };
    read(&one(r#"{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}"#));
    let kept = (0..20).filter(|number| read(&text_chunk("\"a\"", &format!(",\"x\":{number}")))).count();
    assert_eq!(kept, 8);
}

/// Chunks as they usually repeat, and chunks that differ only slightly from those.
fn chunk_of_text() -> impl Strategy<Value = String> {
    let text = prop::sample::select(vec![
        r#""a""#,
        r#""äöü""#,
        r#""\n\"\\""#,
        r#""\ud83d\ude00""#,
        r#""\ud83d""#,
        r#""b" "#,
        r#"" c""#,
        "\"d\"\n",
        "\n\"d\"",
        "\"d\"\n\n",
        "\"\"",
        "null",
        "7",
        "[]",
        "\"",
        r#""a","role":"x""#,
        r#""a","content":"b""#,
        r#""a","refusal":"b""#,
        r#""a","refusal":null"#,
        r#""a","reasoning":"""#,
        r#""a","reasoning":null,"reasoning_content":"c""#,
        r#""a","tool_calls":[]"#,
        r#""a","content":null"#,
        r#"null,"content":"a""#,
        r#""a","x":false"#,
        r#""a","x":{"content":"b"}"#,
        "\"d\"\t",
        r#""\x""#,
        r#""\u12""#,
        r#""a"},"delta":{"content":"b""#,
        "\"\u{1}\"",
    ]);
    let index = prop::sample::select(vec!["0", "0", "0", "0", "1", " 0"]);
    let behind = prop::sample::select(vec![
        "null",
        "null",
        "null",
        "null",
        "\"stop\"",
        "null,\"logprobs\":null",
        "null,\"logprobs\":{}",
        "null,\"error\":null",
        "null,\"error\":{}",
        "null,\"finish_reason\":null",
        "null,\"delta\":null",
        "null,\"index\":1",
        "\"\"",
    ]);
    let rest = prop::sample::select(vec![
        "",
        "",
        "",
        r#","usage":null"#,
        r#","usage":{"prompt_tokens":1,"completion_tokens":2}"#,
        r#","x":"y""#,
        r#","x_groq":{"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
        r#","x_groq":null"#,
        r#","x_groq":{"id":"q"}"#,
        r#","choices":[]"#,
        r#","error":{"message":"m"}"#,
        r#","error":null"#,
        r#","id":"other""#,
        r#","usage":null,"usage":{"prompt_tokens":1}"#,
        "\n",
        " ",
    ]);
    (index, text, behind, rest).prop_map(|(index, text, behind, rest)| {
        format!(r#"{{{HEAD},"choices":[{{"index":{index},"delta":{{"content":{text}}},"finish_reason":{behind}}}]{rest}}}"#)
    })
}

proptest! {
    #[test]
    fn the_fast_path_makes_no_difference(
        (kinds, order) in (prop::collection::vec(prop_oneof![4 => chunk_of_text(), 1 => event()], 1..4), prop::collection::vec(0_usize..4, 0..20)),
        other_text in any::<String>(),
        choices in 1_u32..3,
    ) {
        let role = one(r#"{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}"#);
        let other = one(&format!(r#"{{"index":0,"delta":{{"content":{}}},"finish_reason":null}}"#, json!(other_text)));
        let kind = |place: &usize| kinds.get(*place).unwrap_or(&other);
        let events: Vec<&String> = std::iter::once(&role).chain(order.iter().map(kind)).collect();
        let play = |mut decoder: Decoder| {
            let mut chunks = chunks(choices);
            let told: Vec<_> = events
                .iter()
                .map(|data| decoder.read(&Event { name: b"", data: data.as_bytes() }, &mut chunks))
                .collect();
            let (used, ends) = (chunks.usage(), chunks.may_end());
            chunks.write_finishes();
            (told, String::from_utf8(chunks.take().to_vec()).unwrap(), used, ends, chunks.take_text())
        };
        prop_assert_eq!(play(Decoder::default()), play(Decoder { template: ChunkTemplate::disabled(), ..Decoder::default() }));
    }

    #[test]
    fn any_chunks_are_put_in_order(events in prop::collection::vec(event(), 0..12), choices in 1_u32..4) {
        let (out, _, _) = play(&events, choices);
        let mut begun = Vec::new();
        let mut ended = Vec::new();
        for chunk in &out {
            prop_assert_eq!(&chunk["model"], "a/b");
            prop_assert_eq!(&chunk["id"], &out[0]["id"]);
            prop_assert!(chunk.get("usage").is_none());
            for choice in chunk["choices"].as_array().unwrap() {
                let index = choice["index"].as_u64().unwrap();
                prop_assert!(!ended.contains(&index), "behind the end: {:?}", out);
                if !begun.contains(&index) {
                    prop_assert!(choice["delta"]["role"].is_string(), "no role first: {:?}", out);
                    begun.push(index);
                }
                if choice["finish_reason"].is_string() {
                    prop_assert_eq!(&choice["delta"], &json!({}));
                    ended.push(index);
                }
            }
        }
    }
}
