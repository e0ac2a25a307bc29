//! The inference area: chat completions, embeddings, the models and the health page; and the doors of other protocols
//! (`doors`, `messages`).

mod chat;
mod doors;
mod embeddings;
mod messages;
mod responses;

use serde_json::{Value, json};

use super::example;
use super::operation::{Operation, either, json_string, json_with_example, path};
use super::schemas::Schemas;
use crate::api::endpoint::Endpoint;
use crate::api::models::{Model, ModelList};

/// The paths of the area and of the doors.
pub(super) fn paths(schemas: &mut Schemas) -> Vec<(String, Value)> {
    let mut all = area(schemas);
    all.extend(doors::paths(schemas));
    all.extend(messages::paths(schemas));
    all
}

fn area(schemas: &mut Schemas) -> Vec<(String, Value)> {
    let complete = complete(schemas, "createChatCompletion")
        .errors(&[400, 401, 402, 403, 404, 408, 413, 415, 422, 429, 500, 502, 503, 504]);
    let embed = embeddings::create(schemas, "createEmbeddings")
        .errors(&[400, 401, 402, 403, 404, 408, 413, 415, 429, 500, 502, 503, 504]);
    let list = list(schemas, "listModels").errors(&[401, 403, 429, 500, 503]);
    let one = one(schemas, "getModel").errors(&[401, 403, 404, 429, 500, 503]);
    let health = schemas.add("InferenceHealth", health());
    let status = |status: &str| json!({"status": status, "service": "inference", "version": env!("CARGO_PKG_VERSION")});
    let healthy = Operation::new(
        "Server",
        "inferenceHealth",
        "Health of the inference service",
        "Needs no key. Not 200 while the server cannot look up keys or is shutting down.",
    )
    .response(200, "Healthy.", json_with_example(&health, &status("ok")), &[])
    .response(503, "Not ready.", json_with_example(&health, &status("draining")), &[])
    .errors(&[429, 500]);
    vec![
        path(Endpoint::ChatCompletions, [("post", complete)]),
        path(Endpoint::Embeddings, [("post", embed)]),
        path(Endpoint::Models, [("get", list)]),
        path(Endpoint::Model, [("get", one)]),
        path(Endpoint::InferenceHealth, [("get", healthy)]),
    ]
}

/// The operation of a completion, without its errors.
fn complete(schemas: &mut Schemas, id: &str) -> Operation {
    let chat::Completion { request, response, chunk } = chat::add(schemas);
    Operation::new(
        "Inference",
        id,
        "Answer a conversation",
        "Asks a model, retries where that may help, and then asks its fallbacks. `model` in the answer names \
         the model that answered.\n\nWith `stream`, the answer is a stream of `data:` lines, each a chunk, and at the end `data: [DONE]`. \
         A failure before the first chunk is an error status; a later one is a last chunk with an `error` and \
         the `finish_reason` `error`.",
    )
    .secured(&["inferenceKey"])
    .parameters(&["KeepAnswer"])
    .body(&request, &[("plain", plain()), ("streamed", streamed())])
    .response(200, "The answer.", either(json_with_example(&response, &example::completion()), stream(schemas, &chunk)), &["X-Mk-Attempts", "X-Mk-Model", "X-Mk-Dropped", "X-Mk-Cache", "Age", "Cache-Control"])
}

/// The operation of the list of models, without its errors.
fn list(schemas: &mut Schemas, id: &str) -> Operation {
    let models = schemas.response::<ModelList>();
    Operation::new(
        "Inference",
        id,
        "List models",
        "The models that this key may use, with what is known about them.",
    )
    .secured(&["inferenceKey"])
    .response(
        200,
        "The models, sorted by identifier.",
        json_with_example(&models, &example::models()),
        &[],
    )
}

/// The operation of one model, without its errors.
fn one(schemas: &mut Schemas, id: &str) -> Operation {
    let model = schemas.response::<Model>();
    Operation::new(
        "Inference",
        id,
        "Show a model",
        "A model of the list. Slashes in its identifier may be percent-encoded.",
    )
    .secured(&["inferenceKey"])
    .parameters(&["Model"])
    .response(200, "The model.", json_with_example(&model, &example::models()["data"][0]), &[])
}

fn health() -> Value {
    json!({
        "type": "object",
        "description": "Whether the service is available.",
        "required": ["status", "service", "version"],
        "properties": {
            "status": {"type": "string", "enum": ["ok", "draining", "store_unavailable"]},
            "service": {"type": "string", "const": "inference"},
            "version": {"type": "string", "description": "The server's version."},
        },
    })
}

fn plain() -> Value {
    json!({
        "model": "openai/gpt-5.4-mini",
        "messages": [
            {"role": "system", "content": "Answer in one sentence."},
            {"role": "user", "content": "What is the capital of Australia?"},
        ],
        "temperature": 0,
        "max_tokens": 100,
    })
}

fn streamed() -> Value {
    json!({
        "model": "openai/gpt-5.4-mini",
        "messages": [{"role": "user", "content": "What is the capital of Australia?"}],
        "stream": true,
        "stream_options": {"include_usage": true},
    })
}

fn stream(schemas: &mut Schemas, chunk: &Value) -> Value {
    let event = json!({
        "type": "object",
        "description": "A frame of a streamed answer: a line `data: JSON` and an empty line; the last frame is \
         `data: [DONE]`.",
        "required": ["data"],
        "properties": {"data": {"anyOf": [{"type": "string", "const": "[DONE]"}, json_string(chunk)]}},
    });
    json!({"text/event-stream": {"schema": schemas.add("ChatCompletionEvent", event), "example": example::chunks()}})
}
