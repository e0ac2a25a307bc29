//! A whole answer that came with a status of success, which does not mean that it is one. It is read once, whoever has
//! asked: a verification takes the first choice's text, a caller all of it, with the few edits that the documented shape
//! requires.
//!
//! What must hold: both take the same for an answer, a failure in disguise, and what it took.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::usage::Reported;
use super::{MOST_LISTED, complaint, finish, further, parts};
use crate::money::Tokens;
use crate::providers::chunks::usage_json;
use crate::providers::fields::{self, Fields};
use crate::providers::json::{Json, Reader};
use crate::providers::{
    Answer, Completed, Completion, Failed, Failure, Finish, Incoming, Labels, estimate, status,
};

/// What an answer holds; its values are the bytes they are.
pub(super) struct Whole<'a> {
    fields: Fields<'a>,
    /// As they stand there.
    raw: Json<'a>,
    /// At least one.
    choices: Vec<Choice<'a>>,
    reported: Option<Reported<'a>>,
}

/// What is looked at of a choice.
struct Choice<'a> {
    index: Option<Json<'a>>,
    /// `None` also for what is no object.
    message: Option<Message<'a>>,
    finish_reason: Option<Json<'a>>,
    error: Option<Json<'a>>,
}

/// What is looked at of its message.
#[derive(Clone, Copy, Default)]
struct Message<'a> {
    role: Option<Json<'a>>,
    content: Option<Json<'a>>,
    refusal: Option<Json<'a>>,
    tool_calls: Option<Json<'a>>,
}

impl<'a> Whole<'a> {
    /// What a provider has sent.
    ///
    /// # Errors
    /// With the failure that status and body tell of.
    pub(super) fn of(incoming: &'a Incoming) -> Result<Self, Failed> {
        status::outcome(incoming, Self::read, complaint::read)
    }

    fn read(incoming: &'a Incoming) -> Result<Self, Failed> {
        // Once for all: otherwise each value would be checked again where it is kept as it stands.
        let text = std::str::from_utf8(&incoming.body).map_err(|_| Failure::Malformed)?;
        let (mut choices, mut reported) = (None, None);
        let fields = Fields::parse_with(text, |name, reader| match name {
            "choices" => {
                reader.attempt(|reader| reader.list(MOST_LISTED, Choice::read)).map(|read| choices = read)
            }
            "usage" => reader.attempt(Reported::read).map(|read| reported = read),
            _ => reader.pass(),
        });
        let fields = fields.map_err(|_| Failure::Malformed)?;
        let failed =
            |failure| Failed { failure, usage: reported.map(|reported: Reported<'_>| reported.usage) };
        if fields.given("error").is_some() {
            return Err(failed(disguised(incoming, None)));
        }
        let raw = fields.given("choices").ok_or_else(|| failed(Failure::Malformed))?;
        let choices = choices.filter(|choices| !choices.is_empty());
        let choices: Vec<Choice<'_>> = choices.ok_or_else(|| failed(Failure::Malformed))?;
        // Routers that have begun to answer report an upstream failure inside a 200.
        if let Some(error) = choices.iter().find_map(|choice| choice.error) {
            return Err(failed(disguised(incoming, Some(error))));
        }
        Ok(Self { fields, raw, choices, reported })
    }

    /// The first choice, for a verification, which asks for one.
    ///
    /// # Errors
    /// If the model declined, or there is no end or no text.
    pub(super) fn answer(&self) -> Result<Answer, Failed> {
        let failed = |failure| self.failed(failure);
        let choice = self.choices.first().ok_or_else(|| failed(Failure::Malformed))?;
        let message = choice.message.unwrap_or_default();
        // A list of parts, as few write it, is short.
        let list = message.content.filter(|content| content.is_array());
        let parts: Vec<Value> = list.and_then(Json::read).unwrap_or_default();
        if declines(message, &parts) {
            return Err(failed(Failure::Refused));
        }
        // Some local servers leave it out: what came whole and gives no reason has stopped.
        let reason = finish::read(choice.reason()).map_err(failed)?;
        let finish = reason.and_then(Finish::named).unwrap_or(Finish::Stop);
        let text = match message.content.and_then(Json::text).map(Cow::into_owned).or_else(|| texts(&parts)) {
            Some(text) => text,
            // A filter, or a limit that reasoning used up, leaves no content; the finish says so.
            None if finish != Finish::Stop => String::new(),
            None if choice.message.is_some() => return Err(failed(Failure::NoAnswer)),
            None => return Err(failed(Failure::Malformed)),
        };
        Ok(Answer { text, finish, usage: self.usage() })
    }

    /// All of it, for a caller.
    ///
    /// # Errors
    /// If a choice has no message, or was broken off.
    pub(super) fn completed(&self, asked: &Completion<'_>, labels: &Labels) -> Result<Completed, Failed> {
        let failed = |failure| self.failed(failure);
        let mut is_regular = true;
        for choice in &self.choices {
            let message = choice.message.ok_or_else(|| failed(Failure::Malformed))?;
            if choice.index.is_some_and(|index| index.read::<u32>().is_none()) {
                return Err(failed(Failure::Malformed));
            }
            let reason = choice.reason();
            let known = finish::read(reason).map_err(failed)?;
            is_regular &= known == Some(reason) && choice.index.is_some();
            is_regular &= message.role.is_some_and(|role| role.get() == "\"assistant\"");
            is_regular &= match message.content {
                Some(content) => content.is_text(),
                None => message.tool_calls.is_some(),
            };
        }
        let estimated = || Tokens { prompt: asked.prompt_tokens, completion: said_tokens(self.raw) };
        let usage = self.usage().unwrap_or_else(estimated);
        let repaired = if is_regular { None } else { Some(repaired(self.raw).map_err(failed)?) };
        let choices = repaired.as_deref().unwrap_or(self.raw.get());
        let usage_text = match &self.reported {
            Some(reported) => reported.text(),
            None => Cow::Owned(usage_json(usage, true).to_string()),
        };
        Ok(Completed { body: written(&self.fields, choices, labels, &usage_text), usage })
    }

    fn usage(&self) -> Option<Tokens> {
        self.reported.map(|reported| reported.usage)
    }

    fn failed(&self, failure: Failure) -> Failed {
        Failed { failure, usage: self.usage() }
    }
}

impl<'a> Choice<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let mut message = None;
        let names = ["index", "message", "finish_reason", "error"];
        let [index, _, finish_reason, error] = reader.known_with(names, |name, reader| match name {
            "message" => reader.attempt(Message::read).map(|read| message = read),
            _ => reader.pass(),
        })?;
        Some(Self { index, message, finish_reason, error })
    }

    /// The word for why it ended, which may be none.
    fn reason(&self) -> &'a str {
        self.finish_reason.map_or("", Json::get).trim_matches('"')
    }
}

impl<'a> Message<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let [role, content, refusal, tool_calls] =
            reader.known(["role", "content", "refusal", "tool_calls"])?;
        Some(Self { role, content, refusal, tool_calls })
    }
}

/// Whether the model declined, in the field or the part made for it.
fn declines(message: Message<'_>, parts: &[Value]) -> bool {
    message.refusal.is_some_and(|refusal| refusal.is_text() && refusal.get() != "\"\"")
        || parts.iter().any(|part| part["refusal"].as_str().is_some_and(|refusal| !refusal.is_empty()))
}

/// The text of a list of parts, of which only those of type `text` are the answer.
fn texts(parts: &[Value]) -> Option<String> {
    let texts: Vec<&str> =
        parts.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str()).collect();
    (!texts.is_empty()).then(|| texts.concat())
}

/// How many tokens the messages of these choices are, by what the model has written of them; by all that stands there,
/// if it cannot be read.
fn said_tokens(choices: Json<'_>) -> u64 {
    let said = |choices: Vec<Value>| {
        choices.iter().map(|choice| estimate::said_characters(&choice["message"])).sum()
    };
    estimate::length_tokens(choices.read().map_or(choices.get().len() as u64, said))
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

    const USAGE: Tokens = Tokens { prompt: 20, completion: 5 };

    fn incoming(body: &str) -> Incoming {
        let (headers, clock) = (HeaderMap::new(), Clock::system());
        Incoming { status: 200, headers, body: body.to_owned().into(), clock }
    }

    /// What a caller is told.
    fn answered(body: &str) -> Result<Value, Failure> {
        let asked = Completion {
            fields: Fields::default(),
            stream: false,
            include_usage: false,
            choices: 1,
            prompt_tokens: 8,
        };
        let incoming = incoming(body);
        let labels = Labels { model: "a/b".into(), created: 7 };
        let completed = Whole::of(&incoming).and_then(|whole| whole.completed(&asked, &labels));
        Ok(serde_json::from_slice(&completed.map_err(|failed| failed.failure)?.body).unwrap())
    }

    fn verified(body: &str) -> Result<Answer, Failed> {
        Whole::of(&incoming(body))?.answer()
    }

    #[test]
    fn without_a_word_of_the_provider_it_takes_what_the_model_has_written() {
        let call = json!({"id": "call_123456789", "type": "function", "function": {"name": "f", "arguments": "x".repeat(39)}});
        let part = json!({"type": "text", "text": "xxxx"});
        for message in [
            json!({"content": "ä".repeat(40)}),
            json!({"content": "\n".repeat(40)}),
            json!({"content": vec![part; 10]}),
            json!({"content": null, "tool_calls": [call]}),
            json!({"content": "", "reasoning_content": "x".repeat(40)}),
        ] {
            let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
            let usage = answered(&json!({"choices": [choice]}).to_string()).unwrap()["usage"].clone();
            let told = (&usage["completion_tokens"], &usage["estimated"]);
            assert_eq!(told, (&json!(10), &json!(true)), "{message}");
        }
    }

    /// What a verification is told of an answer with this content that ended for this reason.
    fn ended(reason: &Value, content: &Value) -> Result<(String, Finish), Failed> {
        let choice = json!({"index": 0, "message": {"content": content}, "finish_reason": reason});
        let usage = json!({"prompt_tokens": 20, "completion_tokens": 5});
        verified(&json!({"choices": [choice], "usage": usage}).to_string())
            .map(|answer| (answer.text, answer.finish))
    }

    #[test]
    fn what_was_withheld_is_so_in_any_words() {
        for reason in ["content_filter", "SAFETY", "sensitive", "refusal", "PROHIBITED_CONTENT"] {
            for (content, text) in [(json!(null), ""), (json!("I"), "I")] {
                let withheld = Ok((text.to_owned(), Finish::ContentFilter));
                assert_eq!(ended(&json!(reason), &content), withheld, "{reason}");
            }
        }
    }

    #[test]
    fn what_was_cut_at_a_limit_is_so_in_any_words() {
        for reason in ["length", "MAX_TOKENS", "model_length", "incomplete"] {
            assert_eq!(ended(&json!(reason), &json!(null)), Ok((String::new(), Finish::Length)), "{reason}");
        }
    }

    #[test]
    fn what_was_broken_off_is_no_answer_whatever_it_says() {
        for (reason, failure) in [
            ("error", Failure::Broken { status: 200 }),
            ("insufficient_system_resource", Failure::Overloaded { retry_after: None }),
            ("abort", Failure::Cut),
        ] {
            let failed = Err(Failed { failure, usage: Some(USAGE) });
            assert_eq!(ended(&json!(reason), &json!("{\"answer\":")), failed, "{reason}");
        }
    }

    #[test]
    fn an_end_without_a_reason_or_with_one_of_their_own_is_an_end() {
        for reason in
            [json!(null), json!(""), json!(7), json!("stop"), json!("eos_token"), json!("tool_calls")]
        {
            assert_eq!(ended(&reason, &json!("4")), Ok(("4".to_owned(), Finish::Stop)), "{reason}");
            let nothing = Err(Failed { failure: Failure::NoAnswer, usage: Some(USAGE) });
            assert_eq!(ended(&reason, &json!(null)), nothing, "{reason}");
        }
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
    fn of_two_values_of_a_name_nobody_is_told_either() {
        let whole = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"a"}}]}"#;
        assert!(answered(whole).is_ok() && verified(whole).is_ok());
        for (once, twice) in [
            (r#"{"choices""#, r#"{"choices":[],"choices""#),
            (r#"{"index""#, r#"{"index":1,"index""#),
            (r#""content""#, r#""content":"b","content""#),
        ] {
            let body = whole.replace(once, twice);
            assert_eq!(answered(&body), Err(Failure::Malformed), "{body}");
            assert_eq!(verified(&body), Err(Failure::Malformed.into()), "{body}");
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
        fn no_answer_makes_it_fail(
            body in r#"\{("(id|created|usage|choices|error|x)":(null|7|"a"|\{\}|\[\]|\[(\{("(index|message|finish_reason)":(null|0|"stop"|\{("role":null)?\}),?){0,3}\},?){0,2}\]),?){0,4}\}"#
        ) {
            let _ = (answered(&body), verified(&body));
        }
    }
}
