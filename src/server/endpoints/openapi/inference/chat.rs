//! Schemas of the chat-completion format, as far as this server knows it.
//!
//! Requests are passed on without being decoded, so none of our types describes them. What is checked
//! (`server/endpoints/chat/request.rs`, `message.rs`) is described by the same constants, the rest as the format
//! defines it.

use serde_json::{Value, json};

use crate::api::guard::AnswerVerification;
use crate::inference::MAX_CHOICES;
use crate::server::endpoints::chat::{MAX_TOKENS, ROLES, TEMPERATURE, VERIFICATION};
use crate::server::endpoints::openapi::schemas::{Schemas, reference};

/// References to the schemas of a completion.
pub(super) struct Completion {
    pub(super) request: Value,
    pub(super) response: Value,
    pub(super) chunk: Value,
}

/// Adds all schemas of the format.
pub(super) fn add(schemas: &mut Schemas) -> Completion {
    schemas.response::<AnswerVerification>();
    schemas.add("ChatContentPart", content_part());
    schemas.add("ChatRequestMessage", request_message());
    schemas.add("ChatUsage", usage());
    schemas.add("ChatFault", fault());
    Completion {
        request: schemas.add("ChatCompletionRequest", request()),
        response: schemas.add("ChatCompletion", response()),
        chunk: schemas.add("ChatCompletionChunk", chunk()),
    }
}

/// A schema of a list with such items. Without them, client generators leave out the whole operation.
fn list_of(items: &Value, mut list: Value) -> Value {
    list["items"] = items.clone();
    list
}

fn request() -> Value {
    let tokens = |description: &str| json!({"type": ["integer", "null"], "minimum": 1, "maximum": MAX_TOKENS, "description": description});
    let passed_on = |kind: Value, description: &str| json!({"type": kind, "description": format!("{description} Passed on to the provider.")});
    json!({
        "type": "object",
        "description": "A conversation to answer. Fields that are not described here are passed on unchanged to \
         providers with this format; what another provider does not support is refused by name. Also refused: a \
         name that differs only in case from a checked one (`Model`) and, for a key that is limited to models \
         or has a budget (its own or its app's), fields and tools that let some providers call further models \
         (`models`, `fallbacks` …). For a key with a budget, what costs more than the tokens of a text is \
         refused too (`web_search_options`, `modalities` with audio …). null is the same as omitting a field.",
        "required": ["model", "messages"],
        "properties": {
            "model": {"type": "string", "minLength": 1, "description": "`<provider>/<model_name>`, as `GET /inference/v1/models` lists it."},
            "messages": {
                "type": "array",
                "minItems": 1,
                "items": reference("ChatRequestMessage"),
                "description": "The conversation so far, including prior turns.",
            },
            "temperature": {
                "type": ["number", "null"],
                "minimum": TEMPERATURE.start(),
                "maximum": TEMPERATURE.end(),
                "description": "Sampling temperature. Default: the provider's, mostly 1.",
            },
            "max_tokens": tokens("Maximum number of tokens in the answer."),
            "max_completion_tokens": tokens("Maximum number of tokens in the answer, including reasoning."),
            "stream": {"type": ["boolean", "null"], "description": "Whether to stream the answer. Default: false."},
            "stream_options": {
                "type": ["object", "null"],
                "description": "Only with `stream`.",
                "properties": {
                    "include_usage": {"type": ["boolean", "null"], "description": "Whether a last chunk has the \
                     `usage`."},
                },
            },
            "n": {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_CHOICES, "description": "How many answers to return. Default: 1."},
            "top_p": passed_on(json!(["number", "null"]), "Nucleus sampling."),
            "stop": list_of(&json!({"type": "string"}), passed_on(json!(["string", "array", "null"]), "Texts at \
             which to stop the answer.")),
            "seed": passed_on(json!(["integer", "null"]), "Seed for repeatable answers."),
            "presence_penalty": passed_on(json!(["number", "null"]), "Discourages tokens that already occurred."),
            "frequency_penalty": passed_on(json!(["number", "null"]), "Discourages tokens that occurred often."),
            "logprobs": passed_on(json!(["boolean", "null"]), "Whether to return token probabilities."),
            "tools": list_of(&json!({"type": "object"}), passed_on(json!(["array", "null"]), "Functions that the model may call.")),
            "tool_choice": passed_on(json!(["string", "object", "null"]), "Whether the model must call one of them, and which."),
            "response_format": passed_on(json!(["object", "null"]), "Format of the answer: text, JSON, or JSON with a schema."),
            "reasoning_effort": passed_on(json!(["string", "null"]), "Reasoning effort."),
            "user": passed_on(json!(["string", "null"]), "Your own identifier of who asks; usage can be summed by it, and limits may hold for each."),
            "safety_identifier": passed_on(json!(["string", "null"]), "The same, where `user` is not given."),
            "metadata": passed_on(json!(["object", "null"]), "Notes of your own; usage can be summed by those that are texts."),
        },
    })
}

fn request_message() -> Value {
    let passed_on =
        |description: &str| json!({"description": format!("{description} Passed on to the provider.")});
    let tool_calls = passed_on("The tool calls of an assistant.");
    let with_content = json!({
        "type": "object",
        "description": "A message with content.",
        "required": ["role", "content"],
        "properties": {
            "role": {"type": "string", "enum": ROLES},
            "content": {
                "description": "A text, or its parts.",
                "anyOf": [
                    {"type": "string"},
                    {"type": "array", "minItems": 1, "items": reference("ChatContentPart")},
                ],
            },
            "name": passed_on("Distinguishes participants with the same role."),
            "tool_calls": tool_calls,
            "tool_call_id": passed_on("The id of the call that the tool answers."),
        },
    });
    let of_tool = json!({
        "type": "object",
        "description": "The result of a tool that returned nothing.",
        "required": ["role", "content"],
        "properties": {
            "role": {"type": "string", "const": "tool"},
            "content": {"type": "array", "maxItems": 0, "items": reference("ChatContentPart")},
            "tool_call_id": passed_on("The id of the call that the tool answers."),
        },
    });
    let without = json!({
        "type": "object",
        "description": "An assistant message without content: at least one of the other fields.",
        "required": ["role"],
        "properties": {
            "role": {"type": "string", "const": "assistant"},
            "content": {"type": ["array", "null"], "maxItems": 0, "items": reference("ChatContentPart")},
            "tool_calls": tool_calls,
            "function_call": passed_on("Its function call, in the older format."),
            "refusal": passed_on("Its refusal."),
            "audio": passed_on("Its audio."),
        },
        "not": {
            "properties": {
                "tool_calls": {"type": "null"},
                "function_call": {"type": "null"},
                "refusal": {"type": "null"},
                "audio": {"type": "null"},
            },
        },
    });
    json!({"description": "One message of a conversation.", "anyOf": [with_content, without, of_tool]})
}

fn content_part() -> Value {
    json!({
        "description": "A part of a message: text, or anything else that the model accepts, such as `image_url`.",
        "anyOf": [
            {
                "type": "object",
                "required": ["type", "text"],
                "properties": {"type": {"type": "string", "const": "text"}, "text": {"type": "string"}},
            },
            {
                "type": "object",
                "required": ["type"],
                "properties": {"type": {"type": "string", "not": {"const": "text"}}},
                "additionalProperties": true,
            },
        ],
    })
}

fn usage() -> Value {
    let tokens = |description: &str| json!({"type": "integer", "minimum": 0, "description": description});
    json!({
        "type": "object",
        "description": "Tokens used for an answer.",
        "required": ["prompt_tokens", "completion_tokens", "total_tokens"],
        "properties": {
            "prompt_tokens": tokens("Of the conversation."),
            "completion_tokens": tokens("Of the answer."),
            "total_tokens": tokens("Both."),
            "estimated": {"type": "boolean", "description": "Whether this server estimated the usage, because \
             the provider did not report it."},
        },
    })
}

fn fault() -> Value {
    json!({
        "type": "object",
        "description": "Why a stream ended early.",
        "required": ["message", "type", "code"],
        "properties": {
            "message": {"type": "string", "description": "What happened and what to do next."},
            "type": {"type": "string", "description": "The error's type, such as `Bad Gateway`."},
            "code": {"type": "string", "description": "The error's kind for programs."},
            "param": {"type": "string", "description": "The parameter that the provider refused."},
            "failed_generation": {"type": "string", "description": "Output of the model that its provider could \
             not use."},
        },
    })
}

fn response() -> Value {
    let message = json!({
        "type": "object",
        "required": ["role", "content"],
        "properties": {
            "role": {"type": "string", "const": "assistant"},
            "content": {"type": ["string", "null"], "description": "The text; null where the model only calls tools."},
            "refusal": {"type": ["string", "null"], "description": "The refusal of the model."},
            "tool_calls": {"type": ["array", "null"], "items": {"type": "object"}, "description": "The tool \
             calls of the model."},
            "reasoning_content": reasoning(),
            "annotations": annotations(),
            "images": images(),
        },
    });
    let choice = json!({
        "type": "object",
        "required": ["index", "message", "finish_reason"],
        "properties": {
            "index": {"type": "integer", "minimum": 0},
            "message": message,
            "finish_reason": {"type": "string", "enum": ["stop", "length", "content_filter", "tool_calls", "function_call"]},
            "provider_finish_reason": provider_finish_reason(),
        },
    });
    let mut schema = json!({
        "type": "object",
        "description": "A complete answer. Fields that a provider adds are kept.",
        "required": ["id", "object", "created", "model", "choices", "usage"],
        "properties": common_properties("chat.completion"),
    });
    schema["properties"]["choices"] = json!({"type": "array", "items": choice});
    schema["properties"]["usage"] = reference("ChatUsage");
    schema["properties"][VERIFICATION] = reference("AnswerVerification");
    schema
}

fn chunk() -> Value {
    let delta = json!({
        "type": "object",
        "description": "The new part.",
        "properties": {
            "role": {"type": "string", "const": "assistant", "description": "In the first chunk."},
            "content": {"type": ["string", "null"]},
            "refusal": {"type": ["string", "null"]},
            "tool_calls": {"type": ["array", "null"], "items": {"type": "object"}},
            "reasoning_content": reasoning(),
            "annotations": annotations(),
            "images": images(),
        },
    });
    let choice = json!({
        "type": "object",
        "required": ["index", "delta", "finish_reason"],
        "properties": {
            "index": {"type": "integer", "minimum": 0},
            "delta": delta,
            "finish_reason": {
                "type": ["string", "null"],
                "enum": ["stop", "length", "content_filter", "tool_calls", "function_call", "error", null],
                "description": "null while the answer continues.",
            },
            "provider_finish_reason": provider_finish_reason(),
        },
    });
    let mut schema = json!({
        "type": "object",
        "description": "A chunk of a streamed answer; all have the same `id`, `created` and `model`.",
        "required": ["id", "object", "created", "model", "choices"],
        "properties": common_properties("chat.completion.chunk"),
    });
    schema["properties"]["choices"] = json!({"type": "array", "items": choice, "description": "None in a chunk that only tells the `usage` or what was found about the answer."});
    schema["properties"]["usage"] = json!({"anyOf": [reference("ChatUsage"), {"type": "null"}]});
    schema["properties"]["error"] = reference("ChatFault");
    schema["properties"][VERIFICATION] = reference("AnswerVerification");
    schema
}

fn reasoning() -> Value {
    json!({"type": ["string", "null"], "description": "The model's reasoning, if its provider shows it."})
}

fn annotations() -> Value {
    json!({
        "type": ["array", "null"],
        "items": {"type": "object"},
        "description": "Sources of the text: `url_citation` with `url`, `title`, `start_index` and `end_index` \
         (characters of the text), or another type that the provider has.",
    })
}

fn images() -> Value {
    json!({
        "type": ["array", "null"],
        "items": {"type": "object"},
        "description": "Images of the answer: `{\"type\": \"image_url\", \"image_url\": {\"url\": \"data:…\"}}`.",
    })
}

fn provider_finish_reason() -> Value {
    json!({"type": "string", "description": "The provider's finish reason, if it is not one of those in \
        `finish_reason`, which is then `stop`."})
}

fn common_properties(object: &str) -> Value {
    json!({
        "id": {"type": "string"},
        "object": {"type": "string", "const": object},
        "created": {"type": "integer", "description": "Unix seconds."},
        "model": {"type": "string", "description": "The model that answers."},
        "system_fingerprint": {"type": ["string", "null"], "description": "`sandbox` for simulated answers."},
    })
}
