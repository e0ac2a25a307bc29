//! The Messages API behind `/anthropic`, as far as this server knows it. Its requests are translated field by field;
//! what each field means is that API's to say.

use serde_json::{Value, json};

use crate::api::door_error::AnthropicErrorBody;
use crate::api::endpoint::{Door, Endpoint};
use crate::server::endpoints::chat::{MAX_TOKENS, VERIFICATION};
use crate::server::endpoints::openapi::operation::{Operation, either, json_string, json_with_example, path};
use crate::server::endpoints::openapi::schemas::{Schemas, reference};

const TAG: &str = "Doors";

/// The paths of the Messages API.
pub(super) fn paths(schemas: &mut Schemas) -> Vec<(String, Value)> {
    let door = Door::Anthropic;
    let request = schemas.add("MessageRequest", request());
    let message = schemas.add("Message", message());
    let events = events(schemas);
    let create = Operation::new(
        TAG,
        "createMessage",
        "Answer a conversation, in the format of the Messages API",
        "The key is also accepted as `x-api-key`. Models of any provider can answer. Those with this API get the request \
         unchanged, and their answer is returned unchanged; for others, the request is translated. Parameters that such a \
         model does not support and that only tune the answer are left out and named in `X-Mk-Dropped`; those that would \
         change it are refused by name. With `stream`, the answer is a stream of that API's events; one that breaks off \
         ends with `error`.",
    )
    .secured(&["inferenceKey", "messagesKey"])
    .parameters(&["KeepAnswer"])
    .body(&request, &[("plain", example_request())])
    .response(
        200,
        "The answer.",
        either(json_with_example(&message, &example_message()), events),
        &["X-Mk-Attempts", "X-Mk-Model", "X-Mk-Dropped", "X-Mk-Cache", "Age", "Cache-Control"],
    )
    .errors_behind(door, schemas, &[400, 401, 402, 403, 404, 408, 413, 415, 422, 429, 500, 502, 503, 504]);
    let count = schemas.add("MessageLength", length());
    let mut question = example_request();
    question.as_object_mut().map(|question| question.remove("max_tokens"));
    let count_request = schemas.add("MessageLengthRequest", length_request());
    let count = Operation::new(
        TAG,
        "countMessageTokens",
        "Count the tokens of a request",
        "Anthropic counts the tokens for its own models; for others they are estimated, as `estimated` says.",
    )
    .secured(&["inferenceKey", "messagesKey"])
    .body(&count_request, &[("plain", question)])
    .response(
        200,
        "The length.",
        json_with_example(&count, &json!({"input_tokens": 27, "estimated": true})),
        &[],
    )
    .errors_behind(door, schemas, &[400, 401, 403, 404, 408, 413, 415, 429, 500, 503]);
    let model = schemas.add("MessagesModel", model());
    let models = schemas.add("MessagesModelList", models());
    let example = json!({"type": "model", "id": "openai/gpt-5.4-mini", "display_name": "openai/gpt-5.4-mini", "created_at": "1970-01-01T00:00:00Z"});
    let page = json!({"data": [example], "has_more": false, "first_id": "openai/gpt-5.4-mini", "last_id": "openai/gpt-5.4-mini"});
    let list = Operation::new(
        TAG,
        "listMessagesModels",
        "List models, in the format of the Messages API",
        "The models that this key may use, page by page.",
    )
    .secured(&["inferenceKey", "messagesKey"])
    .parameters(&["ModelLimit", "AfterModel", "BeforeModel"])
    .response(200, "A page of models, sorted by identifier.", json_with_example(&models, &page), &[])
    .errors_behind(door, schemas, &[400, 401, 403, 429, 500, 503]);
    let one = Operation::new(
        TAG,
        "getMessagesModel",
        "Show a model, in the format of the Messages API",
        "A model of the list. Slashes in its identifier may be percent-encoded.",
    )
    .secured(&["inferenceKey", "messagesKey"])
    .parameters(&["Model"])
    .response(200, "The model.", json_with_example(&model, &example), &[])
    .errors_behind(door, schemas, &[401, 403, 404, 429, 500, 503]);
    vec![
        path(Endpoint::Messages, [("post", create)]),
        path(Endpoint::CountTokens, [("post", count)]),
        path(Endpoint::AnthropicModels, [("get", list)]),
        path(Endpoint::AnthropicModel, [("get", one)]),
    ]
}

fn fields() -> Value {
    let any = |description: &str| json!({"description": description});
    json!({
        "model": {"type": "string", "description": "`<provider>/<model_name>`, as in the list of models."},
        "messages": {"type": "array", "minItems": 1, "items": {"type": "object"}, "description": "The conversation so far."},
        "max_tokens": {"type": "integer", "minimum": 1, "maximum": MAX_TOKENS, "description": "Maximum number of tokens in the answer; at most what the model can write."},
        "stream": {"type": ["boolean", "null"], "description": "Whether to stream the answer as events."},
        "system": any("The system prompt: a string, or blocks of text."),
        "tools": {"type": ["array", "null"], "items": {"type": "object"}, "description": "Tools that the model \
         may call. Types that only Anthropic's models support are left out if there are other tools, else refused."},
        "tool_choice": any("Whether the model must call one of them, and which."),
        "thinking": any("Whether the model reasons; a token budget becomes an effort."),
        "output_config": any("The effort, and a schema of the answer."),
        "stop_sequences": {"type": ["array", "null"], "items": {"type": "string"}, "description": "Texts at \
         which to stop the answer."},
        "temperature": any("Sampling temperature."),
        "top_p": any("Nucleus sampling."),
        "top_k": any("Number of tokens to sample from."),
        "metadata": {"type": ["object", "null"], "description": "`user_id` identifies the user."},
    })
}

fn request() -> Value {
    json!({
        "type": "object",
        "description": "A request of the Messages API.",
        "required": ["model", "messages", "max_tokens"],
        "properties": fields(),
    })
}

fn length_request() -> Value {
    json!({
        "type": "object",
        "description": "A request of the Messages API whose tokens are to be counted.",
        "required": ["model", "messages"],
        "properties": fields(),
    })
}

fn length() -> Value {
    json!({
        "type": "object",
        "description": "The length of a request.",
        "required": ["input_tokens"],
        "properties": {
            "input_tokens": {"type": "integer", "minimum": 0, "description": "In tokens."},
            "estimated": {"type": "boolean", "description": "Whether it is an estimate."},
        },
    })
}

fn message() -> Value {
    let tokens = |description: &str| json!({"type": "integer", "minimum": 0, "description": description});
    json!({
        "type": "object",
        "description": "An answer in the format of the Messages API.",
        "required": ["id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"],
        "properties": {
            "id": {"type": "string", "description": "Its identifier."},
            "type": {"type": "string", "const": "message"},
            "role": {"type": "string", "const": "assistant"},
            "model": {"type": "string", "description": "The model that answered."},
            "content": {
                "type": "array",
                "description": "Reasoning (if requested), texts and tool calls.",
                "items": {
                    "type": "object",
                    "required": ["type"],
                    "properties": {"type": {"type": "string", "enum": ["thinking", "text", "tool_use"]}},
                },
            },
            "stop_reason": {"type": "string", "enum": ["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"]},
            "stop_sequence": {"type": ["string", "null"], "description": "The stop sequence, if known."},
            "usage": {
                "type": "object",
                "description": "Tokens used.",
                "required": ["input_tokens", "output_tokens"],
                "properties": {
                    "input_tokens": tokens("Prompt tokens, without cached ones."),
                    "cache_read_input_tokens": tokens("Prompt tokens read from the provider's cache."),
                    "cache_creation_input_tokens": tokens("Prompt tokens written to the provider's cache."),
                    "output_tokens": tokens("Of the answer."),
                    "estimated": {"type": "boolean", "description": "Whether this server estimated the usage, \
                     because the provider did not report it."},
                },
            },
            (VERIFICATION): reference("AnswerVerification"),
        },
    })
}

fn events(schemas: &mut Schemas) -> Value {
    let error = schemas.response::<AnthropicErrorBody>();
    let event = |name: &str, data: Value| {
        json!({
            "type": "object",
            "required": ["event", "data"],
            "properties": {"event": {"type": "string", "const": name}, "data": json_string(&data)},
        })
    };
    let known = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
    ];
    let typed = |name: &str| {
        let of = json!({"type": "string", "const": name});
        let found = reference("AnswerVerification");
        let properties = json!({"type": of, (VERIFICATION): found});
        event(name, json!({"type": "object", "required": ["type"], "properties": properties}))
    };
    let mut all: Vec<Value> = known.into_iter().map(typed).collect();
    all.push(event("error", error));
    let schema = json!({"description": "An event of a streamed answer; the last one is `message_stop`, which has what was found if the answer was verified, or `error`.", "oneOf": all});
    let example = concat!(
        "event: content_block_delta\n",
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Canberra.\"}}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    );
    json!({"text/event-stream": {"schema": schemas.add("MessageEvent", schema), "example": example}})
}

fn model() -> Value {
    json!({
        "type": "object",
        "description": "A model, in the format of the Messages API.",
        "required": ["type", "id", "display_name", "created_at"],
        "properties": {
            "type": {"type": "string", "const": "model"},
            "id": {"type": "string", "description": "`<provider>/<model_name>`."},
            "display_name": {"type": "string", "description": "The same."},
            "created_at": {"type": "string", "description": "Creation date; unknown, so always in 1970."},
            "max_input_tokens": {"type": "integer", "description": "Maximum number of tokens in a prompt."},
            "max_tokens": {"type": "integer", "description": "Maximum number of tokens in an answer."},
        },
    })
}

fn models() -> Value {
    let id = |description: &str| json!({"type": ["string", "null"], "description": description});
    json!({
        "type": "object",
        "description": "A page of models.",
        "required": ["data", "has_more", "first_id", "last_id"],
        "properties": {
            "data": {"type": "array", "items": reference("MessagesModel"), "description": "The models."},
            "has_more": {"type": "boolean", "description": "Whether there are more in this direction."},
            "first_id": id("The first of the page."),
            "last_id": id("The last of the page."),
        },
    })
}

fn example_request() -> Value {
    json!({
        "model": "openai/gpt-5.4-mini",
        "max_tokens": 100,
        "system": "Answer in one sentence.",
        "messages": [{"role": "user", "content": "What is the capital of Australia?"}],
    })
}

fn example_message() -> Value {
    json!({
        "id": "msg_019aa0e7c2f47b1c8d3e5f60718293a4",
        "type": "message",
        "role": "assistant",
        "model": "openai/gpt-5.4-mini",
        "content": [{"type": "text", "text": "The capital of Australia is Canberra."}],
        "stop_reason": "end_turn",
        "stop_sequence": null,
        "usage": {"input_tokens": 27, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 8},
    })
}
