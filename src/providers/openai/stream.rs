//! A streamed answer: chunks that are in order pass as they are, the others are put in order.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::delta::Delta;
use super::{complaint, completion, finish, reply};
use crate::providers::chunks::{Chunks, Place};
use crate::providers::completion::{Decoder, Step};
use crate::providers::fields::Fields;
use crate::providers::sse::Event;
use crate::providers::{Failure, Incoming};

/// Reads the events of one answer; what it knows of it is in the chunks.
#[derive(Debug)]
pub(super) struct Reader;

#[derive(Deserialize)]
struct Choice<'a> {
    /// Some servers that know one choice only leave it out.
    index: Option<u32>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    logprobs: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Choice<'_> {
    fn place(&self) -> u32 {
        self.index.unwrap_or_default()
    }

    /// Notes what goes to the caller.
    fn note(&self, chunks: &mut Chunks) {
        if let Some(delta) = &self.delta {
            delta.note(self.place(), chunks);
        }
        if self.logprobs.is_some() {
            chunks.keep_nothing();
        }
    }
}

impl Decoder for Reader {
    fn read(&mut self, event: &Event<'_>, chunks: &mut Chunks) -> Result<Step, Failure> {
        if event.data.trim_ascii() == b"[DONE]" {
            return Ok(Step::End);
        }
        if event.data.contains(&b'\n') {
            // Several `data` lines make one text; ours is one line.
            let Ok(value) = serde_json::from_slice::<Value>(event.data) else { return Ok(Step::Skipped) };
            return chunk(value.to_string().as_bytes(), chunks);
        }
        chunk(event.data, chunks)
    }
}

fn chunk(data: &[u8], chunks: &mut Chunks) -> Result<Step, Failure> {
    let Ok(fields) = serde_json::from_slice::<Fields<'_>>(data) else { return Ok(Step::Skipped) };
    if fields.given("error").is_some() {
        return Err(disguised(data));
    }
    let Some(raw) = fields.given("choices") else {
        usage(&fields, chunks);
        return Ok(if fields.given("usage").is_some() { Step::More } else { Step::Skipped });
    };
    let Ok(choices) = serde_json::from_str::<Vec<Choice<'_>>>(raw.get()) else { return Ok(Step::Skipped) };
    usage(&fields, chunks);
    if choices.is_empty() {
        // The usage at the end, or Azure's opinion about the prompt at the beginning.
        return Ok(Step::More);
    }
    if let Some(error) = choices.iter().find_map(|choice| choice.error) {
        return Err(disguised(format!("{{\"error\":{}}}", error.get()).as_bytes()));
    }
    chunks.begin(fields.read::<String>("id").as_deref(), fields.read("created"));
    if choices.iter().all(|choice| is_in_order(choice, chunks)) {
        for choice in &choices {
            chunks.open(choice.place());
            choice.note(chunks);
        }
        chunks.write(raw.get(), further(&fields));
        return Ok(Step::More);
    }
    put_in_order(raw, &choices, chunks)
}

/// Whether a choice may pass as it is: a delta at its place, and no finish reason.
fn is_in_order(choice: &Choice<'_>, chunks: &Chunks) -> bool {
    let Some(delta) = &choice.delta else { return false };
    choice.finish_reason.is_none()
        && choice.index.is_some()
        && match chunks.place(choice.place()) {
            Place::First => delta.role.is_some(),
            Place::Inside => true,
            Place::Behind => false,
        }
}

/// Takes a chunk apart: roles before content, content before finish reasons, nothing behind them.
fn put_in_order(raw: &RawValue, read: &[Choice<'_>], chunks: &mut Chunks) -> Result<Step, Failure> {
    let Ok(values) = serde_json::from_str::<Vec<Map<String, Value>>>(raw.get()) else {
        return Ok(Step::Skipped);
    };
    for (mut value, choice) in values.into_iter().zip(read) {
        let index = choice.place();
        if chunks.place(index) == Place::Behind {
            continue;
        }
        let reason = choice.finish_reason.map_or("", RawValue::get).trim_matches('"');
        let reason = finish::read(reason)?;
        let mut delta = value.shift_remove("delta").unwrap_or_default();
        value.shift_remove("finish_reason");
        let has_content = says_something(&delta);
        choice.note(chunks);
        if chunks.place(index) == Place::First {
            chunks.delta(index, &json!({"role": "assistant", "content": ""}));
            if let (Some(fields), false) = (delta.as_object_mut(), has_content) {
                fields.clear();
            }
        }
        if has_content || (reason.is_none() && delta.as_object().is_some_and(|delta| !delta.is_empty())) {
            let mut content = value.clone();
            content.insert("index".to_owned(), json!(index));
            content.insert("delta".to_owned(), delta);
            content.insert("finish_reason".to_owned(), Value::Null);
            chunks.one(&Value::Object(content));
            value.retain(|name, _| name == "index");
        }
        if let Some(reason) = reason {
            chunks.finish(index, reason, value);
        }
    }
    Ok(Step::More)
}

/// Whether a delta holds more than the role and empty texts.
fn says_something(delta: &Value) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    delta
        .as_object()
        .is_some_and(|delta| delta.iter().any(|(name, value)| name != "role" && !is_empty(value)))
}

/// What a provider adds to a chunk. The usage comes at the end, if it is asked for.
fn further<'f>(fields: &'f Fields<'_>) -> impl Iterator<Item = (&'f str, &'f str)> {
    fields
        .iter()
        .filter(|(name, _)| !matches!(*name, "id" | "object" | "created" | "model" | "choices" | "usage"))
        .map(|(name, value)| (name, value.get()))
}

fn usage(fields: &Fields<'_>, chunks: &mut Chunks) {
    let Some(raw) = fields.given("usage") else { return };
    let Some(usage) = serde_json::from_str(raw.get()).ok().and_then(|usage: Value| reply::usage(&usage))
    else {
        return;
    };
    let text = RawValue::from_string(completion::complete_usage(raw, usage)).ok();
    chunks.usage(usage, text.as_deref());
}

/// The failure that a chunk holds.
fn disguised(data: &[u8]) -> Failure {
    let source = serde_json::from_slice(data).unwrap_or(Value::Null);
    complaint::inside_success(&source, &Incoming::in_stream())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
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
        Chunks::new(&asked, Labels { model: "a/b".to_owned(), created: 7 })
    }

    /// What goes out for these events, whether the answer is whole then, and with which failure it broke.
    fn play(events: &[String], choices: u32) -> (Vec<Value>, bool, Option<Failure>) {
        let mut chunks = chunks(choices);
        let mut decoder = sse::Decoder::default();
        let mut failure = None;
        for event in events {
            decoder.feed(format!("data: {event}\n\n").as_bytes());
            while let Some(event) = decoder.next().unwrap() {
                failure = failure.or(Reader.read(&event, &mut chunks).err());
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
    fn a_chunk_in_order_passes_as_it_is() {
        let choice = r#"{"index":0,"delta":{"role":"assistant","content":"a"},"logprobs":{"x":1.50},"finish_reason":null}"#;
        let mut chunks = chunks(1);
        let data = format!(r#"{{{HEAD},"choices":[{choice}],"usage":null,"service_tier":"x"}}"#);
        let event = Event { name: b"", data: data.as_bytes() };
        assert_eq!(Reader.read(&event, &mut chunks), Ok(Step::More));
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
    fn estimates_count_characters_not_bytes() {
        let mut chunks = chunks(1);
        for text in ["ääää", "\\u00e4\\u00e4\\u00e4\\u00e4"] {
            let data = one(&format!(r#"{{"index":0,"delta":{{"role":"assistant","content":"{text}"}}}}"#));
            Reader.read(&Event { name: b"", data: data.as_bytes() }, &mut chunks).unwrap();
        }
        assert_eq!((chunks.used().prompt_tokens, chunks.used().completion_tokens), (9, 2));
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

    proptest! {
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
}
