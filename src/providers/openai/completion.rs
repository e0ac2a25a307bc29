//! Chat completions for callers, who speak this format themselves: bytes are passed on with the few edits required.
//!
//! A request gets the provider's own model name, the usage of a stream is always asked for, and a token limit is
//! called what the model calls it; everything else goes as it came, fields that nobody here knows included: whether
//! they mean something is between the caller and the provider. An answer gets the model's full identifier and what
//! the documented shape requires; everything a provider adds is kept.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::usage::Reported;
use super::{MOST_LISTED, OpenAi, complaint, finish, further, parts, stream};
use crate::providers::chunks::usage_json;
use crate::providers::completion::{Completed, Completion, Completions, Decoder, Labels};
use crate::providers::fields::{self, Fields};
use crate::providers::json::{Json, Reader};
use crate::providers::{Failed, Failure, Incoming, Model, Outgoing, Usage, estimate, status};

impl Completions for OpenAi {
    fn chat_request(&self, asked: &Completion<'_>, model: &Model) -> Result<Outgoing, Failure> {
        let length: usize = asked.fields.iter().map(|(name, value)| name.len() + value.get().len() + 4).sum();
        let mut body = Vec::with_capacity(length + model.name.len() + 64);
        body.push(b'{');
        fields::write_string(&mut body, "model", &model.name);
        let renames_limit =
            model.max_completion_tokens && asked.fields.given("max_completion_tokens").is_none();
        for (name, value) in asked.fields.iter() {
            match name {
                "model" => {}
                "stream_options" if asked.stream => {}
                "max_tokens" if renames_limit => {
                    fields::write(&mut body, "max_completion_tokens", value.get());
                }
                // The null of somebody who left it open; the renamed limit would stand there twice.
                "max_completion_tokens" if renames_limit => {}
                _ => fields::write_foreign(&mut body, name, value.get()),
            }
        }
        if asked.stream {
            let options = stream_options(asked, model);
            if options != "{}" {
                fields::write(&mut body, "stream_options", &options);
            }
        }
        body.push(b'}');
        Ok(Outgoing { path: "/chat/completions".into(), headers: Vec::new(), body: Bytes::from(body) })
    }

    fn chat_answer(
        &self,
        incoming: &Incoming,
        asked: &Completion<'_>,
        labels: &Labels,
    ) -> Result<Completed, Failed> {
        status::outcome(incoming, |incoming| read(incoming, asked, labels), complaint::read)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::Reader::default())
    }
}

/// The caller's own options, and that the usage is wanted in any case: it is what is accounted.
fn stream_options(asked: &Completion<'_>, model: &Model) -> String {
    let given: Fields<'_> = asked.fields.read("stream_options").unwrap_or_default();
    let mut options = b"{".to_vec();
    if model.stream_usage {
        fields::write(&mut options, "include_usage", "true");
    }
    given
        .iter()
        .filter(|(name, _)| *name != "include_usage")
        .for_each(|(name, value)| fields::write_foreign(&mut options, name, value.get()));
    options.push(b'}');
    String::from_utf8(options).unwrap_or_default()
}

/// What is looked at of a choice.
const OF_CHOICE: [&str; 4] = ["index", "message", "finish_reason", "error"];
/// What is looked at of its message.
const OF_MESSAGE: [&str; 3] = ["role", "content", "tool_calls"];

/// Reads an array of choices: the values of [`OF_CHOICE`] of each.
fn read_choices<'a>(reader: &mut Reader<'a>) -> Option<Vec<[Option<Json<'a>>; 4]>> {
    let mut choices = Vec::with_capacity(1);
    reader.array(|reader| {
        choices.push(reader.known(OF_CHOICE)?);
        (choices.len() <= MOST_LISTED).then_some(())
    })?;
    Some(choices)
}

fn read(incoming: &Incoming, asked: &Completion<'_>, labels: &Labels) -> Result<Completed, Failed> {
    // Once for all: otherwise each value would be checked again where it is kept as it stands.
    let text = std::str::from_utf8(&incoming.body).map_err(|_| Failure::Malformed)?;
    let (mut choices, mut reported) = (None, None);
    let answer = Fields::parse_with(text, |name, reader| match name {
        "choices" => reader.attempt(read_choices).map(|read| choices = read),
        "usage" => reader.attempt(Reported::read).map(|read| reported = read),
        _ => reader.value().map(drop),
    });
    let answer = answer.map_err(|_| Failure::Malformed)?;
    let failed = |failure| Failed { failure, usage: reported.map(|reported| reported.usage) };
    if answer.given("error").is_some() {
        return Err(failed(disguised(incoming, None)));
    }
    let raw = answer.given("choices").ok_or_else(|| failed(Failure::Malformed))?;
    let choices = choices.filter(|choices| !choices.is_empty()).ok_or_else(|| failed(Failure::Malformed))?;
    if let Some(error) = choices.iter().find_map(|[.., error]| *error) {
        return Err(failed(disguised(incoming, Some(error))));
    }
    let mut is_regular = true;
    let mut length = 0;
    for [index, message, finish_reason, _] in choices {
        let message = message.and_then(|message| message.known(OF_MESSAGE));
        let [role, content, calls] = message.ok_or_else(|| failed(Failure::Malformed))?;
        if index.is_some_and(|index| index.read::<u32>().is_none()) {
            return Err(failed(Failure::Malformed));
        }
        length += content.map_or(0, |content| content.get().len().saturating_sub(2));
        let reason = finish_reason.map_or("\"\"", Json::get).trim_matches('"');
        let known = finish::read(reason).map_err(failed)?;
        is_regular &= known == Some(reason) && index.is_some();
        is_regular &= role.is_some_and(|role| role.get() == "\"assistant\"");
        is_regular &= match content {
            Some(content) => content.is_text(),
            None => calls.is_some(),
        };
    }
    let estimated = || Usage {
        prompt_tokens: asked.prompt_tokens,
        completion_tokens: estimate::length_tokens(length as u64),
    };
    let usage = reported.map_or_else(estimated, |reported| reported.usage);
    let repaired = if is_regular { None } else { Some(repaired(raw).map_err(failed)?) };
    let choices = repaired.as_deref().unwrap_or(raw.get());
    let usage_text = match reported {
        Some(reported) => reported.text(),
        None => Cow::Owned(usage_json(usage, true).to_string()),
    };
    Ok(Completed { body: written(&answer, choices, labels, &usage_text), usage })
}

fn written(answer: &Fields<'_>, choices: &str, labels: &Labels, usage: &str) -> Bytes {
    let all_else = answer.iter().map(|(name, value)| name.len() + value.get().len() + 4).sum::<usize>();
    let mut body = Vec::with_capacity(all_else.max(choices.len()) + 256);
    body.push(b'{');
    match answer.get("id").map(Json::get) {
        Some(id) if id.len() > 2 && id.starts_with('"') => fields::write(&mut body, "id", id),
        _ => fields::write_string(&mut body, "id", &crate::id::new("chatcmpl")),
    }
    fields::write(&mut body, "object", "\"chat.completion\"");
    let created = answer.read::<i64>("created").filter(|created| *created > 0);
    fields::write(&mut body, "created", itoa::Buffer::new().format(created.unwrap_or(labels.created)));
    fields::write_string(&mut body, "model", &labels.model);
    fields::write(&mut body, "choices", choices);
    further(answer).for_each(|(name, value)| fields::write_foreign(&mut body, name, value));
    fields::write(&mut body, "usage", usage);
    body.push(b'}');
    Bytes::from(body)
}

/// Choices with what the documented shape requires and this provider left out.
fn repaired(choices: Json<'_>) -> Result<String, Failure> {
    let mut list: Vec<Map<String, Value>> = choices.read().ok_or(Failure::Malformed)?;
    for (place, choice) in list.iter_mut().enumerate() {
        if choice.get("index").and_then(Value::as_u64).is_none() {
            choice.insert("index".to_owned(), json!(place));
        }
        let message = choice.get_mut("message").and_then(Value::as_object_mut).ok_or(Failure::Malformed)?;
        message.insert("role".to_owned(), json!("assistant"));
        parts::flatten(message);
        let is_given = |name| message.get(name).is_some_and(|value| !value.is_null());
        let has_calls = is_given("tool_calls") || is_given("function_call");
        // Without calls, some send null beside a refusal, and Azure nothing where its filter took all of it.
        match message.get("content") {
            Some(Value::String(_)) => {}
            Some(Value::Null) if has_calls => {}
            None | Some(Value::Null) => drop(message.insert("content".to_owned(), json!(""))),
            Some(_) => return Err(Failure::Malformed),
        }
        let reason = choice.get("finish_reason").and_then(Value::as_str).unwrap_or_default();
        // Breaks were found before; an answer that came whole and gives no reason has stopped.
        let known = finish::read(reason).ok().flatten().unwrap_or("stop").to_owned();
        choice.insert("finish_reason".to_owned(), json!(known));
    }
    Ok(json!(list).to_string())
}

/// The failure inside a body of success: of the whole, or of one choice.
fn disguised(incoming: &Incoming, of_choice: Option<Json<'_>>) -> Failure {
    let source = match of_choice {
        Some(error) => error.read().map(|error: Value| json!({"error": error})),
        None => serde_json::from_slice(&incoming.body).ok(),
    };
    complaint::inside_success(&source.unwrap_or(Value::Null), incoming)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use proptest::prelude::*;

    use super::*;
    use crate::clock::Clock;
    use crate::providers::Kind;

    fn sent(body: &str, stream: bool, change: impl FnOnce(&mut Model)) -> String {
        let fields = serde_json::from_str(body).unwrap();
        let asked = Completion { fields, stream, include_usage: false, choices: 1, prompt_tokens: 1 };
        let mut model = Model::known("nobody", Kind::OpenAi, "m");
        change(&mut model);
        let outgoing = OpenAi.chat_request(&asked, &model).unwrap();
        String::from_utf8(outgoing.body.to_vec()).unwrap()
    }

    fn answered(body: &str) -> Result<Value, Failure> {
        let asked = Completion {
            fields: Fields::default(),
            stream: false,
            include_usage: false,
            choices: 1,
            prompt_tokens: 8,
        };
        let (headers, clock) = (HeaderMap::new(), Clock::system());
        let incoming = Incoming { status: 200, headers, body: body.to_owned().into(), clock };
        let labels = Labels { model: "a/b".into(), created: 7 };
        let completed = OpenAi.chat_answer(&incoming, &asked, &labels).map_err(|failed| failed.failure)?;
        Ok(serde_json::from_slice(&completed.body).unwrap())
    }

    #[test]
    fn a_limit_is_called_what_the_model_calls_it_and_stands_there_once() {
        let renamed = |body| sent(body, false, |model| model.max_completion_tokens = true);
        assert_eq!(renamed(r#"{"max_tokens":5}"#), r#"{"model":"m","max_completion_tokens":5}"#);
        let null = r#"{"max_completion_tokens":null,"max_tokens":5}"#;
        assert_eq!(renamed(null), r#"{"model":"m","max_completion_tokens":5}"#);
        // Whoever names both means something by it; the provider says what.
        let both = r#"{"max_tokens":5,"max_completion_tokens":6}"#;
        assert_eq!(renamed(both), r#"{"model":"m","max_tokens":5,"max_completion_tokens":6}"#);
        assert_eq!(sent(r#"{"max_tokens":5}"#, false, |_| {}), r#"{"model":"m","max_tokens":5}"#);
    }

    #[test]
    fn usage_is_asked_for_of_streams_alone() {
        assert_eq!(sent("{}", true, |_| {}), r#"{"model":"m","stream_options":{"include_usage":true}}"#);
        assert_eq!(
            sent(r#"{"stream_options":null}"#, false, |_| {}),
            r#"{"model":"m","stream_options":null}"#
        );
        let without = |body| sent(body, true, |model| model.stream_usage = false);
        assert_eq!(without(r#"{"stream_options":{"include_usage":true}}"#), r#"{"model":"m"}"#);
        let kept = without(r#"{"stream_options":{"include_usage":true,"x":1}}"#);
        assert_eq!(kept, r#"{"model":"m","stream_options":{"x":1}}"#);
    }

    #[test]
    fn an_answer_that_is_none_is_a_failure() {
        for body in ["", "[]", "{}", r#"{"choices":null}"#, r#"{"choices":[]}"#, r#"{"choices":[{}]}"#] {
            assert_eq!(answered(body), Err(Failure::Malformed), "{body}");
        }
        let ended = |reason: &str| {
            answered(&format!(r#"{{"choices":[{{"message":{{}},"finish_reason":"{reason}"}}]}}"#))
        };
        assert_eq!(ended("insufficient_system_resource"), Err(Failure::Overloaded { retry_after: None }));
        assert_eq!(ended("abort"), Err(Failure::Cut));
        assert_eq!(ended("model_length").unwrap()["choices"][0]["finish_reason"], "length");
        let deep =
            format!(r#"{{"choices":[{{"message":{{"content":{}{}}}}}]}}"#, "[".repeat(500), "]".repeat(500));
        assert_eq!(answered(&deep), Err(Failure::Malformed));
        for body in [
            r#"{"choices":[[null,{},"stop",null]]}"#,
            r#"{"choices":[{"message":[null,null]}]}"#,
            r#"{"choices":[[0,{"role":"assistant","content":"x"},"stop",null]]}"#,
            r#"{"choices":[{"index":0,"message":["assistant","x",null],"finish_reason":"stop"}]}"#,
        ] {
            assert_eq!(answered(body), Err(Failure::Malformed), "{body}");
        }
    }

    #[test]
    fn no_more_choices_are_read_than_any_answer_holds() {
        let of = |count| {
            let choice = r#"{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}"#;
            answered(&format!(r#"{{"choices":[{}]}}"#, vec![choice; count].join(",")))
        };
        assert!(of(MOST_LISTED).is_ok());
        assert_eq!(of(MOST_LISTED + 1), Err(Failure::Malformed));
    }

    #[test]
    fn a_message_has_the_documented_shape() {
        let message = |message: &str| {
            let body = format!(r#"{{"choices":[{{"index":0,"message":{message},"finish_reason":"stop"}}]}}"#);
            answered(&body).map(|answer| answer["choices"][0]["message"].clone())
        };
        for (given, expected) in [
            (r#"{"role":"model","content":"a"}"#, json!({"role": "assistant", "content": "a"})),
            (r#"{"role":"assistant","content":null}"#, json!({"role": "assistant", "content": ""})),
            (
                r#"{"role":"assistant","content":null,"refusal":"no"}"#,
                json!({"role": "assistant", "content": "", "refusal": "no"}),
            ),
            (
                r#"{"role":"assistant","content":null,"function_call":{"name":"f"}}"#,
                json!({"role": "assistant", "content": null, "function_call": {"name": "f"}}),
            ),
            (
                r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a"}]}"#,
                json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a"}]}),
            ),
        ] {
            assert_eq!(message(given), Ok(expected), "{given}");
        }
        for given in [r#"{"role":"assistant","content":5}"#, r#"{"role":"assistant","content":{"a":1}}"#] {
            assert_eq!(message(given), Err(Failure::Malformed), "{given}");
        }
    }

    #[test]
    fn a_usage_without_a_total_gets_one() {
        let body = r#"{"choices":[{"message":{}}],"usage":{"prompt_tokens":3,"completion_tokens":4,"x":1}}"#;
        let usage = json!({"prompt_tokens": 3, "completion_tokens": 4, "x": 1, "total_tokens": 7});
        assert_eq!(answered(body).unwrap()["usage"], usage);
    }

    proptest! {
        #[test]
        fn all_fields_but_the_model_arrive_as_they_were(
            names in prop::collection::btree_set("[a-z\"\\\\é]{1,6}", 0..8),
            number in any::<f64>().prop_filter("JSON has no other numbers", |number| number.is_finite()),
        ) {
            let mut given = serde_json::Map::new();
            for name in names {
                given.insert(name.clone(), json!([number, {name: null}]));
            }
            given.insert("model".to_owned(), json!("x/y"));
            let body = json!(given).to_string();
            let got: Value = serde_json::from_str(&sent(&body, false, |_| {})).unwrap();
            let mut expected: Value = serde_json::from_str(&body).unwrap();
            expected["model"] = json!("m");
            prop_assert_eq!(got, expected);
        }

        #[test]
        fn no_answer_makes_it_fail(
            body in r#"\{("(id|created|usage|choices|error|x)":(null|7|"a"|\{\}|\[\]|\[(\{("(index|message|finish_reason)":(null|0|"stop"|\{("role":null)?\}),?){0,3}\},?){0,2}\]),?){0,4}\}"#
        ) {
            let _ = answered(&body);
        }
    }
}
