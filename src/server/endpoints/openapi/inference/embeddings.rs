//! The description of embeddings.

use serde_json::{Value, json};

use crate::server::endpoints::embeddings::{ENCODINGS, MAX_DIMENSIONS, MAX_INPUTS};
use crate::server::endpoints::openapi::operation::{Operation, json_with_example};
use crate::server::endpoints::openapi::schemas::Schemas;

/// The operation, without its errors.
pub(super) fn create(schemas: &mut Schemas, id: &str) -> Operation {
    let request = schemas.add("EmbeddingRequest", request());
    let response = schemas.add("EmbeddingList", response());
    Operation::new(
        "Inference",
        id,
        "Turn texts into vectors",
        "Asks a model for the vectors of texts, with the same retries, fallbacks, limits and accounting as a \
         completion. `model` in the answer names the model that answered: vectors of different models cannot be \
         compared.",
    )
    .secured(&["inferenceKey"])
    .parameters(&["KeepAnswer"])
    .body(&request, &[("texts", example())])
    .response(
        200,
        "The vectors, in the order of the texts.",
        json_with_example(&response, &answer()),
        &["X-Mk-Attempts", "X-Mk-Model", "X-Mk-Dropped", "X-Mk-Cache", "Age"],
    )
}

fn request() -> Value {
    let tokens = json!({"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0}});
    json!({
        "type": "object",
        "description": "Texts to turn into vectors. Fields that are not described here are passed on to \
         providers with this format; what another provider does not support is refused by name.",
        "required": ["model", "input"],
        "properties": {
            "model": {"type": "string", "minLength": 1, "description": "`<provider>/<model_name>`, or a name \
             that the operator configured."},
            "input": {
                "description": "A text, or a list of texts. Only providers with this format accept lists of tokens.",
                "anyOf": [
                    {"type": "string", "minLength": 1},
                    {"type": "array", "minItems": 1, "maxItems": MAX_INPUTS, "items": {"type": "string", "minLength": 1}},
                    tokens,
                    {"type": "array", "minItems": 1, "maxItems": MAX_INPUTS, "items": tokens},
                ],
            },
            "dimensions": {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_DIMENSIONS, "description": "Length of the vectors, if the model supports several."},
            "encoding_format": {"type": ["string", "null"], "enum": ENCODINGS.map(Value::from).into_iter().chain([Value::Null]).collect::<Vec<_>>(), "description": "Numbers (the default), or base64 of little-endian 32-bit numbers."},
            "user": {"type": ["string", "null"], "description": "Your own identifier of the user."},
        },
    })
}

fn response() -> Value {
    let count = |description: &str| json!({"type": "integer", "minimum": 0, "description": description});
    json!({
        "type": "object",
        "description": "Vectors. Fields that a provider adds are kept.",
        "required": ["object", "data", "model", "usage"],
        "properties": {
            "object": {"type": "string", "const": "list"},
            "data": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "required": ["embedding"],
                    "properties": {
                        "object": {"type": "string"},
                        "index": count("Of its text."),
                        "embedding": {
                            "description": "The vector, in the form that was asked for.",
                            "anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "string"}],
                        },
                    },
                },
            },
            "model": {"type": "string", "description": "The model that answered, by its full identifier."},
            "mode": {"type": "string", "const": "sandbox", "description": "Present if the vectors are simulated."},
            "usage": {
                "type": "object",
                "required": ["prompt_tokens", "total_tokens"],
                "properties": {
                    "prompt_tokens": count("Of all texts."),
                    "total_tokens": count("The same."),
                    "estimated": {"type": "boolean", "description": "Present if the provider did not report them."},
                },
            },
        },
    })
}

fn example() -> Value {
    json!({"model": "openai/text-embedding-3-small", "input": ["The capital of Australia", "Canberra"], "dimensions": 3})
}

fn answer() -> Value {
    let vector =
        |index: u32, vector: [f64; 3]| json!({"object": "embedding", "index": index, "embedding": vector});
    json!({
        "object": "list",
        "data": [vector(0, [0.6, 0.8, 0.0]), vector(1, [0.8, 0.6, 0.0])],
        "model": "openai/text-embedding-3-small",
        "usage": {"prompt_tokens": 6, "total_tokens": 6},
    })
}
