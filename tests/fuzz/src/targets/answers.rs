//! Providers' whole responses and errors, in every dialect: what is accepted as an answer is one, and messages of
//! failures are harmless.

use crate::input::{is_harmless, is_object, one_of};
use bytes::Bytes;
use http::HeaderMap;
use http::header::{HeaderValue, RETRY_AFTER};
use mk::clock::{Clock, Time};
use mk::json::fields::Fields;
use mk::providers::{
    Chat, CompletionRequest, Dialect, Effort, FailedCall, Failure, Kind, Model, Prompt, Protocol,
    ProviderResponse, Question, ResponseMeta, dialect,
};
use serde_json::Value;

const STATUSES: [u16; 12] = [200, 204, 301, 400, 401, 402, 403, 404, 413, 429, 500, 529];

fn check(failed: &FailedCall) {
    if let Failure::Rejected { code, message, param, generation } = &failed.failure {
        assert!(is_harmless(message) && message.chars().count() <= 300, "{message:?}");
        assert!(is_harmless(code.as_deref().unwrap_or_default()), "{code:?}");
        assert!(param.as_ref().is_none_or(|param| param.is_ascii() && is_harmless(param)), "{param:?}");
        let longest = 16_384;
        assert!(generation.as_ref().is_none_or(|text| text.chars().count() <= longest), "{generation:?}");
    }
}

fn read(dialect: &dyn Dialect, response: &ProviderResponse) {
    let question = Prompt::from(Chat {
        messages: Vec::new(),
        temperature: None,
        max_tokens: None,
        schema: None,
        effort: Effort::Lowest,
    });
    let model = Model::known("nobody", Kind::OpenAi, "m");
    let plain = question.decode(dialect, &model, response);
    let asked = CompletionRequest {
        fields: Fields::default(),
        stream: false,
        include_usage: false,
        choices: 1,
        prompt_tokens: 7,
        native: None,
    };
    let meta = ResponseMeta { model: "a/b".into(), created: 7 };
    let chat = dialect.response(response, &asked, &meta);
    let is_success = (200..300).contains(&response.status);
    for protocol in [Protocol::Messages, Protocol::Responses] {
        let Some(passage) = dialect.passage(protocol, &model) else { continue };
        match passage.response(response, &asked, &meta) {
            Ok(answer) => assert!(is_success && answer.is_native && is_object(&answer.body), "no answer"),
            Err(failed) => check(&failed),
        }
    }
    match (&plain, &chat) {
        (Err(plain), Err(chat)) if !is_success => assert_eq!(plain, chat, "a failure is one to all callers"),
        _ => assert!(is_success || (plain.is_err() && chat.is_err()), "a failure was taken for an answer"),
    }
    if let Ok(answer) = &plain {
        assert!(answer.text.len() <= response.body.len(), "more than there was");
    }
    [plain.err(), chat.as_ref().err().cloned()].iter().flatten().for_each(check);
    let Ok(completed) = chat else { return };
    assert!(is_object(&completed.body), "no object");
    // What a provider adds is passed on unchanged, even if it is nested deeper than serde_json reads.
    let Ok(body) = serde_json::from_slice::<Value>(&completed.body) else { return };
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(body["model"], "a/b");
    assert!(body["id"].is_string() && body["created"].is_i64());
    assert_eq!(body["usage"]["prompt_tokens"], completed.usage.tokens.prompt);
    // Tokens that only the total includes are counted as well, while the provider's own numbers are passed on.
    assert!(body["usage"]["completion_tokens"].as_u64() <= Some(completed.usage.tokens.completion));
    let choices = body["choices"].as_array().expect("choices");
    assert!(!choices.is_empty(), "an answer without a choice");
    for choice in choices {
        assert!(choice["index"].is_u64() && choice["message"]["role"].is_string(), "{choice}");
        assert!(choice["finish_reason"].is_string(), "{choice}");
    }
}

pub(super) fn run(bytes: &[u8]) {
    let mut headers = HeaderMap::new();
    let first_line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if let Ok(value) = HeaderValue::from_bytes(first_line) {
        headers.insert(RETRY_AFTER, value);
    }
    for status in [200, *one_of(bytes, 0, &STATUSES)] {
        let response = ProviderResponse {
            status,
            headers: headers.clone(),
            body: Bytes::copy_from_slice(bytes),
            clock: Clock::manual(Time::from_unix_ms(1_795_176_000_000)),
        };
        for kind in Kind::OF_APIS {
            read(&*dialect(kind).expect("these are spoken over HTTP"), &response);
        }
    }
}
