//! Chunks of many makes, and what becomes of them.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::money::Tokens;
use crate::providers::{Completion, Labels, sse};

const HEAD: &str = r#""id":"c","created":5,"model":"up""#;

fn chunks(choices: u32) -> Chunks {
    let asked = Completion {
        fields: Fields::default(),
        stream: true,
        include_usage: true,
        choices,
        prompt_tokens: 9,
    };
    Chunks::new(&asked, Labels { model: "a/b".into(), created: 7 })
}

/// What goes out for these events, whether the answer is whole then, and with which failure it broke.
fn play(events: &[String], choices: u32) -> (Vec<Value>, bool, Option<Failure>) {
    let mut chunks = chunks(choices);
    let mut decoder = sse::Decoder::default();
    let mut reader = Reader::default();
    let mut failure = None;
    for event in events {
        decoder.feed(format!("data: {event}\n\n").as_bytes());
        while let Some(event) = decoder.next().unwrap() {
            failure = failure.or(reader.read(&event, &mut chunks).err());
        }
    }
    let whole = chunks.may_end();
    let out = String::from_utf8(chunks.take().to_vec()).unwrap();
    let lines = out.split_terminator("\n\n").map(|line| line.strip_prefix("data: ").unwrap());
    (lines.map(|line| serde_json::from_str(line).unwrap()).collect(), whole, failure)
}

fn one(choice: &str) -> String {
    format!("{{{HEAD},\"choices\":[{choice}]}}")
}

#[test]
fn a_whole_answer_in_one_chunk_is_one() {
    let whole = r#"{"index":0,"message":{"role":"assistant","content":"all"},"finish_reason":"stop"}"#;
    let (out, is_whole, failure) = play(&[one(whole)], 1);
    assert!(is_whole && failure.is_none(), "{failure:?}");
    let said: String =
        out.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(
        (said.as_str(), out.last().unwrap()["choices"][0]["finish_reason"].as_str()),
        ("all", Some("stop"))
    );
    // Behind deltas it repeats them.
    let delta = r#"{"index":0,"delta":{"role":"assistant","content":"all"}}"#;
    let (out, ..) = play(&[one(delta), one(whole)], 1);
    let said: String =
        out.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(said, "all");
}

/// What `chunks` are accounted with behind a stream of usage objects, each with a text of 40 characters.
fn accounted(usages: &[&str], finish: &str) -> Tokens {
    let mut chunks = chunks(1);
    let mut reader = Reader::default();
    let content = "x".repeat(40);
    let last = usages.len() - 1;
    for (at, usage) in usages.iter().enumerate() {
        let finish = if at == last { finish } else { "null" };
        let choice = format!(r#"{{"index":0,"delta":{{"content":"{content}"}},"finish_reason":{finish}}}"#);
        let data = format!(r#"{{{HEAD},"choices":[{choice}],"usage":{usage}}}"#);
        reader.read(&Event { name: b"", data: data.as_bytes() }, &mut chunks).unwrap();
    }
    chunks.used()
}

#[test]
fn zeros_are_no_figures_wherever_they_stand() {
    const ZEROS: &str = r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#;
    let told = r#"{"prompt_tokens":9,"completion_tokens":80}"#;
    let estimated = accounted(&["null", "null"], "null");
    assert!(estimated.prompt > 0 && estimated.completion >= 20, "{estimated:?}");
    assert_eq!(accounted(&[ZEROS, ZEROS], "null"), estimated);
    assert_eq!(accounted(&[ZEROS, ZEROS], r#""stop""#), estimated);
    let expected = Tokens { prompt: 9, completion: 80 };
    for usages in [[told, ZEROS], [ZEROS, told]] {
        assert_eq!(accounted(&usages, r#""stop""#), expected);
    }
}

#[test]
fn what_was_said_early_is_not_all_of_an_answer_that_broke() {
    let early = r#"{"prompt_tokens":9,"completion_tokens":0}"#;
    let estimated = accounted(&["null", "null", "null"], "null").completion;
    assert_eq!(accounted(&[early, "null", "null"], "null"), Tokens { prompt: 9, completion: estimated });
    assert_eq!(accounted(&[early, "null", "null"], r#""stop""#), Tokens { prompt: 9, completion: 0 });
}

#[test]
fn a_chunk_in_order_passes_as_it_is() {
    let choice = r#"{"index":0,"delta":{"role":"assistant","content":"a"},"logprobs":{"x":1.50},"finish_reason":null}"#;
    let mut chunks = chunks(1);
    let data = format!(r#"{{{HEAD},"choices":[{choice}],"usage":null,"service_tier":"x"}}"#);
    let event = Event { name: b"", data: data.as_bytes() };
    assert_eq!(Reader::default().read(&event, &mut chunks), Ok(Step::More));
    let expected = format!(
        "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":5,\"model\":\"a/b\",\
         \"choices\":[{choice}],\"service_tier\":\"x\"}}\n\n"
    );
    assert_eq!(String::from_utf8(chunks.take().to_vec()).unwrap(), expected);
}

#[test]
fn everything_in_one_chunk_becomes_three() {
    let choice = r#"{"index":0,"delta":{"role":"assistant","content":"a","refusal":null},"content_filter":1,"finish_reason":"stop"}"#;
    let (out, whole, _) = play(&[one(choice)], 1);
    let deltas: Vec<&Value> = out.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
    assert_eq!(*deltas[0], json!({"role": "assistant", "content": ""}));
    assert_eq!(deltas[1]["content"], "a");
    assert_eq!((deltas[2], deltas.len(), whole), (&json!({}), 3, true));
    assert_eq!(out[1]["choices"][0]["content_filter"], 1);
}

#[test]
fn words_for_a_break_are_no_end() {
    let end = |reason: &str| one(&format!(r#"{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}"#));
    assert_eq!(play(&[end("abort")], 1).2, Some(Failure::Cut));
    assert_eq!(play(&[end("error")], 1).2, Some(Failure::Broken { status: 200 }));
    let (out, whole, failure) = play(&[end("model_length")], 1);
    assert_eq!((&out[1]["choices"][0]["finish_reason"], whole, failure), (&json!("length"), true, None));
    let (_, whole, _) = play(&[end("")], 1);
    assert!(!whole);
}

#[test]
fn no_event_makes_much_more_of_itself() {
    let choices = vec![r#"{"delta":{"content":"x"}}"#; 1000].join(",");
    let data = format!(r#"{{{HEAD},"choices":[{choices}],"more":"{}"}}"#, "y".repeat(1 << 20));
    let mut chunks = chunks(1);
    let event = Event { name: b"", data: data.as_bytes() };
    assert_eq!(Reader::default().read(&event, &mut chunks), Err(Failure::Malformed));
    assert!(chunks.take().len() < 16 << 20);
}

#[test]
fn no_more_choices_are_read_than_any_chunk_holds() {
    let of = |count| {
        let data = one(&vec![r#"{"index":0,"delta":{"content":"x"}}"#; count].join(","));
        Reader::default().read(&Event { name: b"", data: data.as_bytes() }, &mut chunks(1))
    };
    assert_eq!(of(MOST_LISTED), Ok(Step::More));
    assert_eq!(of(MOST_LISTED + 1), Ok(Step::Unreadable));
}

#[test]
fn a_choice_that_is_no_object_is_left_out() {
    let fields = r#"[0,{"role":"assistant","content":"x"},null,null,null]"#;
    assert_eq!(play(&[one(fields)], 1), (Vec::new(), false, None));
}

#[test]
fn estimates_count_characters_not_bytes() {
    let mut chunks = chunks(1);
    for text in ["ääää", "\\u00e4\\u00e4\\u00e4\\u00e4"] {
        let data = one(&format!(r#"{{"index":0,"delta":{{"role":"assistant","content":"{text}"}}}}"#));
        Reader::default().read(&Event { name: b"", data: data.as_bytes() }, &mut chunks).unwrap();
    }
    assert_eq!(chunks.used(), Tokens { prompt: 9, completion: 2 });
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

fn said(text: &str, more: &str) -> String {
    let choice =
        format!(r#"{{"index":0,"delta":{{"content":{text}}},"logprobs":null,"finish_reason":null}}"#);
    format!("{{{HEAD},\"choices\":[{choice}]{more}}}")
}

#[test]
fn the_same_chunk_again_is_not_read_again() {
    let mut chunks = chunks(1);
    let mut reader = Reader::default();
    let role = one(r#"{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}"#);
    for data in [&role, &said("\"a\"", "")] {
        assert!(!reader.mould.pour(data.as_bytes(), &mut chunks), "{data}");
        reader.read(&Event { name: b"", data: data.as_bytes() }, &mut chunks).unwrap();
    }
    let before = chunks.take();
    assert!(reader.mould.pour(said(r#""b\u00e4""#, "").as_bytes(), &mut chunks));
    let expected = String::from_utf8(before.to_vec()).unwrap().split_off(before.len() / 2);
    let (_, expected) = expected.split_once("data: ").unwrap();
    assert_eq!(chunks.take(), format!("data: {}", expected.replace("\"a\"", r#""b\u00e4""#)));
    assert_eq!(chunks.take_said().as_deref(), Some("abä"));

    let unlike = [said("\"a\"", r#","x":1"#), said("[]", ""), said("\"a\",\"refusal\":\"b\"", ""), role];
    for data in unlike {
        let again = said("\"a\"", "");
        reader.read(&Event { name: b"", data: again.as_bytes() }, &mut chunks).unwrap();
        assert!(!reader.mould.pour(data.as_bytes(), &mut chunks), "{data}");
        assert!(!reader.mould.pour(again.as_bytes(), &mut chunks), "it is broken");
    }
}

#[test]
fn where_no_chunk_is_like_another_none_is_expected_to_be() {
    let mut chunks = chunks(1);
    let mut reader = Reader::default();
    let mut read = |data: &str| {
        reader.read(&Event { name: b"", data: data.as_bytes() }, &mut chunks).unwrap();
        reader.mould.is_whole()
    };
    read(&one(r#"{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}"#));
    let kept = (0..20).filter(|number| read(&said("\"a\"", &format!(",\"x\":{number}")))).count();
    assert_eq!(kept, 8);
}

/// Chunks as they come over and over, and such as are nearly like them.
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
    fn a_chunk_like_the_last_one_goes_out_as_if_it_were_the_first(
        (kinds, order) in (prop::collection::vec(prop_oneof![4 => chunk_of_text(), 1 => event()], 1..4), prop::collection::vec(0_usize..4, 0..20)),
        other_text in any::<String>(),
        choices in 1_u32..3,
    ) {
        let role = one(r#"{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}"#);
        let other = one(&format!(r#"{{"index":0,"delta":{{"content":{}}},"finish_reason":null}}"#, json!(other_text)));
        let kind = |place: &usize| kinds.get(*place).unwrap_or(&other);
        let events: Vec<&String> = std::iter::once(&role).chain(order.iter().map(kind)).collect();
        let play = |mut reader: Reader| {
            let mut chunks = chunks(choices);
            let told: Vec<_> = events
                .iter()
                .map(|data| reader.read(&Event { name: b"", data: data.as_bytes() }, &mut chunks))
                .collect();
            let (used, ends) = (chunks.used(), chunks.may_end());
            (told, String::from_utf8(chunks.take().to_vec()).unwrap(), used, ends, chunks.take_said())
        };
        prop_assert_eq!(play(Reader::default()), play(Reader { mould: Mould::none(), ..Reader::default() }));
    }

    #[test]
    fn whatever_comes_the_order_holds(events in prop::collection::vec(event(), 0..12), choices in 1_u32..4) {
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
