//! Parses a complete response with a success status, which may still be a failure, and makes the few edits that the
//! documented shape requires.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::usage::ReportedUsage;
use super::{MAX_LISTED_CHOICES, error_body, extra_fields, finish_reason, parts};
use crate::json::fields::{self, Fields};
use crate::json::reader::{Json, Reader};
use crate::money::{Tokens, Usage};
use crate::providers::catalog::estimate;
use crate::providers::completion::PROVIDER_FINISH_REASON;
use crate::providers::dialects::status;
use crate::providers::stream::chunk_writer::usage_json;
use crate::providers::{
    CompletionRequest, CompletionResponse, FailedCall, Failure, ProviderResponse, ResponseMeta,
};

/// A parsed response; its values are raw JSON.
pub(super) struct ParsedResponse<'a> {
    fields: Fields<'a>,
    /// The raw value of `choices`.
    raw_choices: Json<'a>,
    /// At least one.
    choices: Vec<Choice<'a>>,
    reported: Option<ReportedUsage<'a>>,
}

/// The parsed fields of a choice.
struct Choice<'a> {
    index: Option<Json<'a>>,
    /// `None` also if it is not an object.
    message: Option<Message<'a>>,
    finish_reason: Option<Json<'a>>,
    error: Option<Json<'a>>,
}

/// The parsed fields of a message.
#[derive(Clone, Copy, Default)]
struct Message<'a> {
    role: Option<Json<'a>>,
    content: Option<Json<'a>>,
    tool_calls: Option<Json<'a>>,
}

impl<'a> ParsedResponse<'a> {
    /// Parses what a provider has sent.
    ///
    /// # Errors
    /// With the failure that status and body describe.
    pub(super) fn parse(response: &'a ProviderResponse) -> Result<Self, FailedCall> {
        status::parse(response, Self::read, error_body::failure)
    }

    fn read(response: &'a ProviderResponse) -> Result<Self, FailedCall> {
        // Checked once here, as otherwise each raw value would be checked again.
        let text = std::str::from_utf8(&response.body).map_err(|_| Failure::Malformed)?;
        let (mut choices, mut reported) = (None, None);
        let fields = Fields::parse_with(text, |name, reader| match name {
            "choices" => reader
                .try_read(|reader| reader.list(MAX_LISTED_CHOICES, Choice::read))
                .map(|read| choices = read),
            "usage" => reader.try_read(ReportedUsage::read).map(|read| reported = read),
            _ => reader.skip_value(),
        });
        let fields = fields.map_err(|_| Failure::Malformed)?;
        let failed = |failure| FailedCall {
            failure,
            usage: reported.map(|reported: ReportedUsage<'_>| reported.usage),
        };
        if fields.non_null("error").is_some() {
            return Err(failed(error_in_success(response, None)));
        }
        let raw_choices = fields.non_null("choices").ok_or_else(|| failed(Failure::Malformed))?;
        let choices = choices.filter(|choices| !choices.is_empty());
        let choices: Vec<Choice<'_>> = choices.ok_or_else(|| failed(Failure::Malformed))?;
        // Routers that have already sent a status of 200 report an upstream failure in the body.
        if let Some(error) = choices.iter().find_map(|choice| choice.error) {
            return Err(failed(error_in_success(response, Some(error))));
        }
        Ok(Self { fields, raw_choices, choices, reported })
    }

    /// The complete response, with what the documented shape requires.
    ///
    /// # Errors
    /// If a choice has no message, or was interrupted.
    pub(super) fn completion(
        &self,
        request: &CompletionRequest<'_>,
        meta: &ResponseMeta,
    ) -> Result<CompletionResponse, FailedCall> {
        let failed = |failure| self.failed(failure);
        let mut is_regular = true;
        for choice in &self.choices {
            let message = choice.message.ok_or_else(|| failed(Failure::Malformed))?;
            if choice.index.is_some_and(|index| index.read::<u32>().is_none()) {
                return Err(failed(Failure::Malformed));
            }
            let reason = choice.reason();
            let known = finish_reason::read(reason).map_err(failed)?;
            is_regular &= known == Some(reason) && choice.index.is_some();
            is_regular &= message.role.is_some_and(|role| role.get() == "\"assistant\"");
            is_regular &= match message.content {
                Some(content) => content.is_string(),
                None => message.tool_calls.is_some(),
            };
        }
        let estimated = || Tokens::new(request.prompt_tokens, written_tokens(self.raw_choices));
        let usage = self.usage().map_or_else(|| Usage::estimated(estimated()), Usage::reported);
        let repaired = if is_regular { None } else { Some(repaired(self.raw_choices).map_err(failed)?) };
        let choices = repaired.as_deref().unwrap_or(self.raw_choices.get());
        let usage_text = match &self.reported {
            Some(reported) => reported.to_json(),
            None => Cow::Owned(usage_json(usage.tokens, true).to_string()),
        };
        let body = render(&self.fields, choices, meta, &usage_text);
        Ok(CompletionResponse { body, usage, is_native: false })
    }

    fn usage(&self) -> Option<Tokens> {
        self.reported.map(|reported| reported.usage)
    }

    fn failed(&self, failure: Failure) -> FailedCall {
        FailedCall { failure, usage: self.usage() }
    }
}

impl<'a> Choice<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let mut message = None;
        let names = ["index", "message", "finish_reason", "error"];
        let [index, _, finish_reason, error] = reader.fields_with(names, |name, reader| match name {
            "message" => reader.try_read(Message::read).map(|read| message = read),
            _ => reader.skip_value(),
        })?;
        Some(Self { index, message, finish_reason, error })
    }

    /// The finish reason, which may be empty.
    fn reason(&self) -> &'a str {
        self.finish_reason.map_or("", Json::get).trim_matches('"')
    }
}

impl<'a> Message<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let [role, content, tool_calls] = reader.fields(["role", "content", "tool_calls"])?;
        Some(Self { role, content, tool_calls })
    }
}

/// The estimated number of tokens in the messages of these choices, by what the model wrote of them; by their length,
/// if they cannot be parsed.
fn written_tokens(choices: Json<'_>) -> u64 {
    let written = |choices: Vec<Value>| {
        choices.iter().map(|choice| estimate::written_characters(&choice["message"])).sum()
    };
    estimate::length_tokens(choices.read().map_or(choices.get().len() as u64, written))
}

fn render(answer: &Fields<'_>, choices: &str, meta: &ResponseMeta, usage: &str) -> Bytes {
    let fields_length = answer.iter().map(|(name, value)| name.len() + value.get().len() + 4).sum::<usize>();
    let mut body = Vec::with_capacity(fields_length.max(choices.len()) + 256);
    body.push(b'{');
    match answer.get("id").map(Json::get) {
        Some(id) if id.len() > 2 && id.starts_with('"') => fields::write_field(&mut body, "id", id),
        _ => fields::write_string_field(&mut body, "id", &crate::id::new("chatcmpl")),
    }
    fields::write_field(&mut body, "object", "\"chat.completion\"");
    let created = meta.created(answer.read("created"));
    fields::write_field(&mut body, "created", itoa::Buffer::new().format(created));
    let reported = answer.non_null("model").and_then(Json::string);
    fields::write_string_field(&mut body, "model", meta.model(reported.as_deref()));
    fields::write_field(&mut body, "choices", choices);
    extra_fields(answer).for_each(|(name, value)| fields::write_field_escaped(&mut body, name, value));
    fields::write_field(&mut body, "usage", usage);
    body.push(b'}');
    Bytes::from(body)
}

/// The choices with what the documented shape requires and this provider has left out.
fn repaired(choices: Json<'_>) -> Result<String, Failure> {
    let mut list: Vec<Map<String, Value>> = choices.read().ok_or(Failure::Malformed)?;
    for (position, choice) in list.iter_mut().enumerate() {
        if choice.get("index").and_then(Value::as_u64).is_none() {
            choice.insert("index".to_owned(), json!(position));
        }
        let message = choice.get_mut("message").and_then(Value::as_object_mut).ok_or(Failure::Malformed)?;
        message.insert("role".to_owned(), json!("assistant"));
        parts::flatten(message);
        let is_given = |name| message.get(name).is_some_and(|value| !value.is_null());
        let has_calls = is_given("tool_calls") || is_given("function_call");
        // Without tool calls, some send null beside a refusal, and Azure sends nothing if its filter removed
        // everything.
        match message.get("content") {
            Some(Value::String(_)) => {}
            Some(Value::Null) if has_calls => {}
            None | Some(Value::Null) => drop(message.insert("content".to_owned(), json!(""))),
            Some(_) => return Err(Failure::Malformed),
        }
        let reason = choice.get("finish_reason").and_then(Value::as_str).unwrap_or_default();
        // Interruptions were detected before; a complete answer without a reason has stopped.
        let known = finish_reason::read(reason).ok().flatten().unwrap_or("stop").to_owned();
        if let Some(word) = finish_reason::unheard_of(reason) {
            choice.insert(PROVIDER_FINISH_REASON.to_owned(), json!(word));
        }
        choice.insert("finish_reason".to_owned(), json!(known));
    }
    Ok(json!(list).to_string())
}

/// The failure inside a successful response: of the entire response, or of one choice.
fn error_in_success(response: &ProviderResponse, of_choice: Option<Json<'_>>) -> Failure {
    let source = match of_choice {
        Some(error) => error.read().map(|error: Value| json!({"error": error})),
        None => serde_json::from_slice(&response.body).ok(),
    };
    error_body::failure_in_success(&source.unwrap_or(Value::Null), response)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use proptest::prelude::*;

    use super::*;
    use crate::clock::Clock;
    use crate::providers::{Answer, Finish};

    const USAGE: Tokens = Tokens::new(20, 5);

    fn response(body: &str) -> ProviderResponse {
        let (headers, clock) = (HeaderMap::new(), Clock::system());
        ProviderResponse { status: 200, headers, body: body.to_owned().into(), clock }
    }

    /// The response to a caller.
    fn completed(body: &str) -> Result<Value, Failure> {
        let request = CompletionRequest {
            fields: Fields::default(),
            stream: false,
            include_usage: false,
            choices: 1,
            prompt_tokens: 8,
            native: None,
        };
        let response = response(body);
        let meta = ResponseMeta { model: "a/b".into(), created: 7 };
        let completed =
            ParsedResponse::parse(&response).and_then(|parsed| parsed.completion(&request, &meta));
        Ok(serde_json::from_slice(&completed.map_err(|failed| failed.failure)?.body).unwrap())
    }

    /// The answer for a verification.
    fn verified(body: &str) -> Result<Answer, FailedCall> {
        let meta = ResponseMeta::default();
        let request = CompletionRequest::default();
        Answer::of(&ParsedResponse::parse(&response(body))?.completion(&request, &meta)?)
    }

    #[test]
    fn usage_that_is_not_reported_is_estimated_by_what_the_model_wrote() {
        let function = json!({"name": "f", "arguments": "x".repeat(39)});
        let call = json!({"id": "call_123456789", "type": "function", "function": function});
        let part = json!({"type": "text", "text": "xxxx"});
        for message in [
            json!({"content": "ä".repeat(40)}),
            json!({"content": "\n".repeat(40)}),
            json!({"content": vec![part; 10]}),
            json!({"content": null, "tool_calls": [call]}),
            json!({"content": "", "reasoning_content": "x".repeat(40)}),
        ] {
            let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
            let usage = completed(&json!({"choices": [choice]}).to_string()).unwrap()["usage"].clone();
            let estimated = (&usage["completion_tokens"], &usage["estimated"]);
            assert_eq!(estimated, (&json!(10), &json!(true)), "{message}");
        }
    }

    /// The answer for a verification, of a response with this content and finish reason.
    fn ended(reason: &Value, content: &Value) -> Result<(String, Finish), FailedCall> {
        let choice = json!({"index": 0, "message": {"content": content}, "finish_reason": reason});
        let usage = json!({"prompt_tokens": 20, "completion_tokens": 5});
        verified(&json!({"choices": [choice], "usage": usage}).to_string())
            .map(|answer| (answer.text, answer.finish))
    }

    #[test]
    fn withheld_answers_are_recognised_by_many_finish_reasons() {
        for reason in ["content_filter", "SAFETY", "sensitive", "refusal", "PROHIBITED_CONTENT"] {
            for (content, text) in [(json!(null), ""), (json!("I"), "I")] {
                let withheld = Ok((text.to_owned(), Finish::ContentFilter));
                assert_eq!(ended(&json!(reason), &content), withheld, "{reason}");
            }
        }
    }

    #[test]
    fn truncated_answers_are_recognised_by_many_finish_reasons() {
        for reason in ["length", "MAX_TOKENS", "model_length", "incomplete"] {
            assert_eq!(ended(&json!(reason), &json!(null)), Ok((String::new(), Finish::Length)), "{reason}");
        }
    }

    #[test]
    fn an_interrupted_answer_is_a_failure_whatever_its_content() {
        for (reason, failure) in [
            ("error", Failure::Broken { status: 200, retry_after: None }),
            ("insufficient_system_resource", Failure::Overloaded { retry_after: None }),
            ("abort", Failure::Cut),
        ] {
            let failed = Err(FailedCall { failure, usage: Some(USAGE) });
            assert_eq!(ended(&json!(reason), &json!("{\"answer\":")), failed, "{reason}");
        }
    }

    #[test]
    fn an_absent_or_unknown_finish_reason_is_an_ordinary_end() {
        for reason in
            [json!(null), json!(""), json!(7), json!("stop"), json!("eos_token"), json!("tool_calls")]
        {
            assert_eq!(ended(&reason, &json!("4")), Ok(("4".to_owned(), Finish::Stop)), "{reason}");
            let nothing = Err(FailedCall { failure: Failure::NoAnswer, usage: Some(USAGE) });
            assert_eq!(ended(&reason, &json!(null)), nothing, "{reason}");
        }
    }

    #[test]
    fn invalid_responses_are_failures() {
        for body in ["", "[]", "{}", r#"{"choices":null}"#, r#"{"choices":[]}"#, r#"{"choices":[{}]}"#] {
            assert_eq!(completed(body), Err(Failure::Malformed), "{body}");
        }
        let ended = |reason: &str| {
            completed(&format!(r#"{{"choices":[{{"message":{{}},"finish_reason":"{reason}"}}]}}"#))
        };
        assert_eq!(ended("insufficient_system_resource"), Err(Failure::Overloaded { retry_after: None }));
        assert_eq!(ended("abort"), Err(Failure::Cut));
        assert_eq!(ended("model_length").unwrap()["choices"][0]["finish_reason"], "length");
        let deep =
            format!(r#"{{"choices":[{{"message":{{"content":{}{}}}}}]}}"#, "[".repeat(500), "]".repeat(500));
        assert_eq!(completed(&deep), Err(Failure::Malformed));
        for body in [
            r#"{"choices":[[null,{},"stop",null]]}"#,
            r#"{"choices":[{"message":[null,null]}]}"#,
            r#"{"choices":[[0,{"role":"assistant","content":"x"},"stop",null]]}"#,
            r#"{"choices":[{"index":0,"message":["assistant","x",null],"finish_reason":"stop"}]}"#,
        ] {
            assert_eq!(completed(body), Err(Failure::Malformed), "{body}");
        }
    }

    #[test]
    fn duplicate_fields_are_refused() {
        let whole = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"a"}}]}"#;
        assert!(completed(whole).is_ok() && verified(whole).is_ok());
        for (once, twice) in [
            (r#"{"choices""#, r#"{"choices":[],"choices""#),
            (r#"{"index""#, r#"{"index":1,"index""#),
            (r#""content""#, r#""content":"b","content""#),
        ] {
            let body = whole.replace(once, twice);
            assert_eq!(completed(&body), Err(Failure::Malformed), "{body}");
            assert_eq!(verified(&body), Err(Failure::Malformed.into()), "{body}");
        }
    }

    #[test]
    fn responses_with_too_many_choices_are_refused() {
        let of = |count| {
            let choice = r#"{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}"#;
            completed(&format!(r#"{{"choices":[{}]}}"#, vec![choice; count].join(",")))
        };
        assert!(of(MAX_LISTED_CHOICES).is_ok());
        assert_eq!(of(MAX_LISTED_CHOICES + 1), Err(Failure::Malformed));
    }

    #[test]
    fn a_message_has_the_documented_shape() {
        let message = |message: &str| {
            let body = format!(r#"{{"choices":[{{"index":0,"message":{message},"finish_reason":"stop"}}]}}"#);
            completed(&body).map(|answer| answer["choices"][0]["message"].clone())
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
        assert_eq!(completed(body).unwrap()["usage"], usage);
    }

    proptest! {
        #[test]
        fn no_response_makes_it_panic(
            body in r#"\{("(id|created|usage|choices|error|x)":(null|7|"a"|\{\}|\[\]|\[(\{("(index|message|finish_reason)":(null|0|"stop"|\{("role":null)?\}),?){0,3}\},?){0,2}\]),?){0,4}\}"#
        ) {
            let _ = (completed(&body), verified(&body));
        }
    }
}
