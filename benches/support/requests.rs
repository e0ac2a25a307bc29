//! The requests that are sent repeatedly, and what correct responses to them are.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::caller::Expected;
use crate::completions::{EVENTS, LAST_WORDS};

/// The path of chat completions.
pub(crate) const CHAT: &str = "/inference/v1/chat/completions";
/// An open page.
pub(crate) const HEALTH: &str = "/inference/v1/health";

/// A correct whole completion.
pub(crate) const WHOLE: Expected = Expected { status: 200, text: LAST_WORDS, events: 0 };
/// A correct stream.
pub(crate) const STREAM: Expected =
    Expected { status: 200, text: r#""finish_reason":"stop""#, events: EVENTS };
/// The refusal of an unknown key.
pub(crate) const UNAUTHORIZED: Expected = Expected { status: 401, text: "invalid_api_key", events: 0 };
/// A correct health page.
pub(crate) const HEALTHY: Expected = Expected { status: 200, text: r#""status":"ok""#, events: 0 };

/// What the requests begin with.
pub(crate) const SYSTEM: &str = "You are a helpful assistant that answers questions on geography, history and travel. Answer in \
    the language of the question. Be concise, name the sources that you rely on, say so when you are not sure, and \
    never invent a fact. Prefer metric units. When the user asks for a plan, give a numbered list with at most seven \
    items, each one sentence long.";
/// What they end with.
pub(crate) const QUESTION: &str = "What is the capital of France, how old is the city, on which river does it lie, and how many \
    people live there today, in the city itself and in the wider region? Please also say in one sentence why it became \
    the capital, and name one book about its history that a general reader would enjoy reading on the train.";

/// The body of a chat completion, of about a kilobyte.
pub(crate) fn completion(model: &str, is_stream: bool) -> String {
    longer_completion(model, is_stream, 1)
}

/// The same with the question `times` over.
pub(crate) fn longer_completion(model: &str, is_stream: bool, times: usize) -> String {
    let mut messages = vec![json!({"role": "system", "content": SYSTEM})];
    messages.extend(turns(&QUESTION.repeat(times)));
    let mut body = json!({
        "model": model,
        "messages": messages,
        "temperature": 0.2,
        "max_tokens": 256,
    });
    if is_stream {
        body["stream"] = true.into();
    }
    body.to_string()
}

/// The turns of a conversation that ends with this question.
pub(crate) fn turns(question: &str) -> [Value; 3] {
    [
        json!({"role": "user", "content": "Hello, I have a question on France."}),
        json!({"role": "assistant", "content": "Gladly; which one?"}),
        json!({"role": "user", "content": question}),
    ]
}

/// A POST request with a key and a JSON body.
pub(crate) fn post(host: SocketAddr, path: &str, key: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    (head + body).into_bytes()
}

/// A GET request for an open page.
pub(crate) fn get(host: SocketAddr, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n").into_bytes()
}
