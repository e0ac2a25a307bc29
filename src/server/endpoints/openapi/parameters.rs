//! Parameters of the path, the query and the headers, by name. None of the query may be empty.

use serde_json::{Value, json};

use super::schemas::reference;
use crate::server::endpoints::console::{DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE};

/// All parameters.
pub(super) fn all() -> Value {
    let header = |name: &str, description: &str, example: &str| {
        parameter("header", name, description, &json!({"type": "string"}), &example.into())
    };
    let query = |name: &str, description: &str, schema: Value, example: Value| {
        parameter("query", name, description, &schema, &example)
    };
    let day = || json!({"type": "string", "format": "date"});
    let text = || json!({"type": "string", "minLength": 1});
    json!({
        "RequestId": header(
            "X-Request-Id",
            "Your own identifier for this request: 1 to 128 characters of `A-Z a-z 0-9 . _ -`, not containing \
             an API key. It is returned with the answer and written to the server's log. An invalid one is \
             replaced by a new identifier.",
            "import-17",
        ),
        "Progress": header(
            crate::api::verify::PROGRESS_HEADER,
            "`models` adds `model_answered` frames, and each claim's full result in `claim_verified`. Other \
             values are ignored.",
            "models",
        ),
        "Cache": parameter(
            "header",
            crate::api::verify::CACHE_HEADER,
            "`fresh` bypasses the server's verdict cache. Other values are refused.",
            &json!({"type": "string", "enum": ["fresh"]}),
            &"fresh".into(),
        ),
        "KeepAnswer": parameter(
            "header",
            crate::api::verify::CACHE_HEADER,
            "How long to cache the answer, and the maximum age of a cached answer to the same request of the same app: a \
             time from 1s to 30d, such as `1h`. `off` disables caching, whatever the key's `cache` says. Streams are neither \
             cached nor answered from the cache.",
            &json!({"type": "string", "pattern": "^(off|[0-9]+[dhms]([0-9]+[dhms])*)$"}),
            &"1h".into(),
        ),
        "IfNoneMatch": header("If-None-Match", "The `ETag` of your copy.", "\"0f3c9a\""),
        "AppId": in_path("app_id", "The app's id.", "app"),
        "KeyId": in_path("key_id", "The key's id.", "key"),
        "Model": {
            "name": "model",
            "in": "path",
            "required": true,
            "description": "The model's identifier, `<provider>/<model_name>`.",
            "schema": {"type": "string", "minLength": 1},
            "example": "openai/gpt-5.4-mini",
        },
        "ModelLimit": query(
            "limit",
            "Maximum number of models per page.",
            json!({"type": "integer", "minimum": 1, "maximum": 1000, "default": 20}),
            1000.into(),
        ),
        "AfterModel": query("after_id", "`last_id` of the previous page.", json!({"type": "string"}), "openai/gpt-5.4-mini".into()),
        "BeforeModel": query("before_id", "`first_id` of the next page.", json!({"type": "string"}), "openai/gpt-5.4-mini".into()),
        "Limit": query(
            "limit",
            "Maximum number of records per page.",
            json!({"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE, "default": DEFAULT_PAGE_SIZE}),
            20.into(),
        ),
        "AppCursor": cursor("app"),
        "KeyCursor": cursor("key"),
        "EntryCursor": cursor("aud"),
        "ServiceFilter": query("service", "Only records for this service.", reference("Service"), "verify".into()),
        "AskingFilter": query(
            "service",
            "Only usage of this service.",
            json!({"type": "string", "enum": ["verify", "inference"]}),
            "verify".into(),
        ),
        "StateFilter": query("state", "Only keys in this state.", reference("KeyState"), "active".into()),
        "From": query("from", "The first UTC day. Default: 29 days before the last.", day(), "2026-11-01".into()),
        "To": query("to", "The last UTC day, inclusive. Default: today.", day(), "2026-11-20".into()),
        "By": by(),
        "AppFilter": query("app", "Only the app with this id.", text(), "app_019aa0e7c2f47b1c8d3e5f60718293a4".into()),
        "KeyFilter": query("key", "Only the key with this id.", text(), "key_019aa0e7c2f47b1c8d3e5f60718293a5".into()),
        "ModelFilter": query("model", "Only this model.", text(), "openai/gpt-5.4-mini".into()),
        "Month": query(
            "month",
            "The UTC month. Default: the current one.",
            json!({"type": "string", "pattern": "^[0-9]{4}-(0[1-9]|1[0-2])$"}),
            "2026-11".into(),
        ),
        "ObjectFilter": query("object", "Only changes to the object with this id.", text(), "key_019aa0e7c2f47b1c8d3e5f60718293a5".into()),
        "AppAndKeysFilter": query("app", "Only changes to the app with this id and to its keys.", text(), "app_019aa0e7c2f47b1c8d3e5f60718293a4".into()),
        "ActorFilter": query("actor", "Only changes made with the console key with this id.", id_schema("key"), "key_019aa0e7c2f47b1c8d3e5f60718293a6".into()),
        "ObjectNameFilter": query("object_name", "Only changes to objects whose name at that time contained this text, in any letter case.", text(), "ci".into()),
        "ActorNameFilter": query("actor_name", "Only changes by an actor whose name contains this text, in any letter case: a console key, or a user on the command line.", text(), "laptop".into()),
        "Order": query("order", "Sort order.", json!({"type": "string", "enum": ["oldest", "newest"], "default": "oldest"}), "newest".into()),
        "ActionFilter": query("action", "Only this action.", text(), "key.revoked".into()),
    })
}

fn parameter(location: &str, name: &str, description: &str, schema: &Value, example: &Value) -> Value {
    json!({"name": name, "in": location, "description": description, "schema": schema, "example": example})
}

/// The cursor of a list. It is opaque to callers, but described as an id to exclude what cannot be one.
fn cursor(prefix: &str) -> Value {
    json!({
        "name": "cursor",
        "in": "query",
        "description": "`next_cursor` of the previous page.",
        "schema": id_schema(prefix),
        "example": format!("{prefix}_019aa0e7c2f47b1c8d3e5f60718293a4"),
    })
}

fn id_schema(prefix: &str) -> Value {
    json!({"type": "string", "pattern": format!("^{prefix}_[0-9a-fA-F]{{32}}$")})
}

fn in_path(name: &str, description: &str, prefix: &str) -> Value {
    let schema = json!({"type": "string", "pattern": format!("^{prefix}_[0-9a-f]{{32}}$")});
    let example = format!("{prefix}_019aa0e7c2f47b1c8d3e5f60718293a4");
    json!({"name": name, "in": "path", "required": true, "description": description, "schema": schema, "example": example})
}

fn by() -> Value {
    json!({
        "name": "by",
        "in": "query",
        "description": "What to sum by, in this order, separated by commas; by `user` or by `tag`, not by both.",
        "style": "form",
        "explode": false,
        "schema": {
            "type": "array",
            "items": reference("Dimension"),
            "minItems": 1,
            "uniqueItems": true,
            "default": ["day"],
        },
        "example": ["day", "model"],
    })
}
