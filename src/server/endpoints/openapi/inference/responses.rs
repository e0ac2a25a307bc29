//! Schemas of the Responses API, as far as this server translates it. The words for what is refused and left out are
//! here; `server/endpoints/responses` does it.

use serde_json::{Value, json};

use crate::server::endpoints::chat::{MAX_TOKENS, VERIFICATION};
use crate::server::endpoints::openapi::operation::{Operation, json_string, json_with_example};
use crate::server::endpoints::openapi::schemas::{Schemas, reference};

/// The operation of a response, without its errors.
pub(super) fn create(schemas: &mut Schemas) -> Operation {
    let request = schemas.add("ResponseRequest", request());
    let response = schemas.add("Response", response());
    let event = schemas.add("ResponseEvent", event(&response));
    let mut content = json_with_example(&response, &example());
    let frame = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":4,\
                 \"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"Canberra.\"}\n\n";
    content["text/event-stream"] = json!({"schema": event, "example": frame});
    let plain =
        json!({"model": "openai/gpt-5.4-mini", "input": "What is the capital of Australia?", "store": false});
    Operation::new(
        "Inference",
        "createResponse",
        "Answer a conversation, as the Responses API does",
        "Stateless: nothing is stored here, and each request brings its whole conversation. Any model can be asked. \
         Providers with this API get the request unchanged, and their answer is returned unchanged. With `stream`, the \
         answer is a stream of typed events, numbered from 0; the last is `response.completed`, `response.incomplete` or \
         `response.failed`.\n\nFor other providers, tools of type `custom` and tools in a `namespace` are offered to the \
         model as functions, and their calls are returned in their original form. Tools that run at a provider are left \
         out if there are other tools, else refused. `X-Mk-Dropped` names what was left out.",
    )
    .secured(&["inferenceKey"])
    .parameters(&["KeepAnswer"])
    .body(&request, &[("plain", plain)])
    .response(
        200,
        "The answer.",
        content,
        &["X-Mk-Attempts", "X-Mk-Model", "X-Mk-Dropped", "X-Mk-Cache", "Age", "Cache-Control"],
    )
}

fn request() -> Value {
    let items = json!({"type": "object"});
    json!({
        "type": "object",
        "description": "A request to answer. Fields that are not described here are passed on; null is the same \
         as omitting a field.",
        "required": ["model", "input"],
        "properties": {
            "model": {"type": "string", "minLength": 1, "description": "`<provider>/<model_name>`, as `GET /openai/v1/models` lists it."},
            "input": {
                "description": "A text, or items in order: messages, tool calls and their results. Reasoning is \
                 left out; references to stored items are refused.",
                "anyOf": [{"type": "string"}, {"type": "array", "minItems": 1, "items": items}],
            },
            "instructions": {"type": ["string", "null"], "description": "System prompt, placed before the input."},
            "max_output_tokens": {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_TOKENS, "description": "Maximum number of tokens in the answer, including reasoning."},
            "stream": {"type": ["boolean", "null"], "description": "Whether to stream the answer as events. \
             Default: false."},
            "store": {"enum": [false, null], "description": "Nothing is stored."},
            "background": {"enum": [false, null], "description": "The answer is waited for."},
            "previous_response_id": {"type": "null", "description": "Send the whole conversation instead."},
            "conversation": {"type": "null", "description": "Send the whole conversation instead."},
            "tools": {"type": ["array", "null"], "items": items, "description": "Tools that the model may call."},
            "tool_choice": {"type": ["string", "object", "null"], "description": "Whether the model must call \
             one of them, and which."},
            "parallel_tool_calls": {"type": ["boolean", "null"], "description": "Whether it may call several at once."},
            "text": {"type": ["object", "null"], "description": "Format of the answer (`format`), and `verbosity`."},
            "reasoning": {"type": ["object", "null"], "description": "Reasoning effort (`effort`)."},
        },
    })
}

fn response() -> Value {
    json!({
        "type": "object",
        "description": "An answer, with the parameters of its request.",
        "required": ["id", "object", "created_at", "status", "model", "output", "usage", "error", "incomplete_details"],
        "properties": {
            "id": {"type": "string"},
            "object": {"type": "string", "const": "response"},
            "created_at": {"type": "integer", "description": "In Unix seconds."},
            "status": {"type": "string", "enum": ["in_progress", "completed", "incomplete", "failed"]},
            "model": {"type": "string", "description": "The model that answered."},
            "output": {
                "type": "array",
                "description": "The model's reasoning (`reasoning`), text (`message`) and tool calls \
                 (`function_call`, `custom_tool_call`).",
                "items": {"type": "object", "required": ["id", "type", "status"]},
            },
            "usage": {
                "type": ["object", "null"],
                "required": ["input_tokens", "output_tokens", "total_tokens"],
                "properties": {
                    "input_tokens": {"type": "integer"},
                    "input_tokens_details": {"type": "object"},
                    "output_tokens": {"type": "integer"},
                    "output_tokens_details": {"type": "object"},
                    "total_tokens": {"type": "integer"},
                    "estimated": {"type": "boolean", "description": "Present if the provider did not report them."},
                },
            },
            "error": {
                "type": ["object", "null"],
                "description": "Why the answer is incomplete.",
                "required": ["code", "message"],
                "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
            },
            "incomplete_details": {"type": ["object", "null"], "description": "`reason`: `max_output_tokens` or `content_filter`."},
            (VERIFICATION): reference("AnswerVerification"),
        },
    })
}

/// The events of a streamed answer about a part of it.
const EVENTS: [&str; 17] = [
    "response.output_item.added",
    "response.output_item.done",
    "response.content_part.added",
    "response.content_part.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.output_text.annotation.added",
    "response.refusal.delta",
    "response.refusal.done",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_part.done",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.custom_tool_call_input.delta",
    "response.custom_tool_call_input.done",
];
/// Those that hold the whole response.
const WHOLE: [&str; 5] = [
    "response.created",
    "response.in_progress",
    "response.completed",
    "response.incomplete",
    "response.failed",
];

fn event(response: &Value) -> Value {
    let of = |name: &str, is_whole: bool| {
        let mut data = json!({
            "type": "object",
            "required": ["type", "sequence_number"],
            "properties": {"type": {"type": "string", "const": name}, "sequence_number": {"type": "integer"}},
        });
        if is_whole {
            data["properties"]["response"] = response.clone();
        }
        json!({
            "type": "object",
            "required": ["event", "data"],
            "properties": {"event": {"type": "string", "const": name}, "data": json_string(&data)},
        })
    };
    let all = WHOLE.map(|name| of(name, true)).into_iter().chain(EVENTS.map(|name| of(name, false)));
    json!({
        "description": "A frame of a streamed answer: the lines `event: NAME` and `data: JSON`, and an empty line.",
        "oneOf": all.collect::<Vec<_>>(),
    })
}

fn example() -> Value {
    let content = json!([{"type": "output_text", "text": "Canberra.", "annotations": [], "logprobs": []}]);
    json!({
        "id": "resp_019b0f5c9d7e7c3a8f0f6f1b2c3d4e5f",
        "object": "response",
        "created_at": 1_795_000_000,
        "status": "completed",
        "model": "openai/gpt-5.4-mini",
        "output": [{"id": "msg_019b0f5c9d7e7c3a8f0f6f1b2c3d4e60", "type": "message", "role": "assistant", "content": content, "status": "completed"}],
        "usage": {
            "input_tokens": 14,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 3,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 17,
        },
        "error": null,
        "incomplete_details": null,
    })
}
