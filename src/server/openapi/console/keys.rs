//! Keys of apps, and what a key may ask about itself.

use serde_json::{Value, json};

use super::super::operation::{Operation, at, json_like};
use super::super::schemas::{Schemas, reference};
use super::example;
use super::{END, READ_ONE, WRITE, budget, name, operation};
use crate::api::console::{CreatedKey, Key, KeyState, OwnKey, Page, RevokedKey};
use crate::keys::{MAX_KEY_NAME_CHARS, MAX_LIST_ENTRIES, MAX_PATTERN_CHARS};
use crate::server::console::MAX_GRACE_SECONDS;

pub(super) fn paths(schemas: &mut Schemas) -> Vec<(String, Value)> {
    let (key, page) = (schemas.answer::<Key>(), schemas.answer::<Page<Key>>());
    let (created, own) = (schemas.answer::<CreatedKey>(), schemas.answer::<OwnKey>());
    schemas.answer::<KeyState>();
    let new = schemas.write("NewKey", new_key());
    let changes = schemas.write("KeyChanges", changes());
    let revoked = schemas.answer::<RevokedKey>();
    let rotation = schemas.write("Rotation", rotation());
    let list = operation(
        "Keys",
        "listKeys",
        "List an app's keys",
        "Oldest first, in every state unless one is asked for.",
    )
    .takes(&["AppId", "ServiceFilter", "StateFilter", "Limit", "KeyCursor"])
    .answers(200, "A page of keys.", json_like(&page, &example::page(&example::key())), &["Cache-Control"])
    .fails(&READ_ONE);
    let create = operation(
        "Keys",
        "createKey",
        "Make a key",
        "`key` in the answer is shown this once and exists nowhere else.",
    )
    .takes(&["AppId"])
    .body(&new, &[("plain", json!({"service": "verify"})), ("narrow", example::narrow_key())])
    .answers(
        201,
        "The key and its record.",
        json_like(&created, &example::created_key()),
        &["Location", "Cache-Control"],
    )
    .fails(&WRITE);
    let show = operation("Keys", "getKey", "Show a key", "Its record, without the key itself.")
        .takes(&["AppId", "KeyId"])
        .answers(200, "The key's record.", json_like(&key, &example::key()), &["Cache-Control"])
        .fails(&READ_ONE);
    let update = operation(
        "Keys",
        "updateKey",
        "Change a key",
        "Holds from the next request on. A key that has expired works again with a later `expires_at`, or none; a rotated \
         one gets no later end, and a revoked one stays as it is (409).",
    )
    .takes(&["AppId", "KeyId"])
    .body(&changes, &[("rename", json!({"name": "ci"})), ("limits", json!({"limits": {"per_minute": 120}}))])
    .answers(200, "The record as it is now.", json_like(&key, &example::key()), &["Cache-Control"])
    .fails(&WRITE);
    let revoke = operation(
        "Keys",
        "revokeKey",
        "Revoke a key",
        "At once and for ever: the next request with it gets a 401, and its running streams end. May be repeated.",
    )
    .takes(&["AppId", "KeyId"])
    .answers(200, "It is revoked.", json_like(&revoked, &example::revoked_key()), &["Cache-Control"])
    .fails(&END);
    let rotate = operation(
        "Keys",
        "rotateKey",
        "Replace a key",
        "Makes a key like this one and lets the old one live for `grace_seconds` more.",
    )
    .takes(&["AppId", "KeyId"])
    .may_have_body(&rotation, &[("now", json!({})), ("a_day", json!({"grace_seconds": 86_400}))])
    .answers(
        201,
        "The new key and its record.",
        json_like(&created, &example::created_key()),
        &["Location", "Cache-Control"],
    )
    .fails(&WRITE);
    let itself = Operation::new(
        "Keys",
        "getOwnKey",
        "Ask about one's own key",
        "Takes a key of any service, or a session for the key it was made from, and costs nothing against the key's \
         limits.",
    )
    .secured(&["verifyKey", "inferenceKey", "consoleKey", "consoleSession"])
    .answers(
        200,
        "What the key may know about itself.",
        json_like(&own, &example::own_key()),
        &["Cache-Control"],
    )
    .fails(&[401, 403, 429, 500, 503]);
    vec![
        at("/v1/apps/{app_id}/keys", [("get", list), ("post", create)]),
        at("/v1/apps/{app_id}/keys/{key_id}", [("get", show), ("patch", update), ("delete", revoke)]),
        at("/v1/apps/{app_id}/keys/{key_id}/rotate", [("post", rotate)]),
        at("/v1/key", [("get", itself)]),
    ]
}

fn changes() -> Value {
    let mut name = name(MAX_KEY_NAME_CHARS, "To remember it by; null for none.");
    name["type"] = json!(["string", "null"]);
    let limit = |description: &str| json!({"type": ["integer", "null"], "minimum": 0, "maximum": u32::MAX, "description": description});
    json!({
        "type": "object",
        "description": "What is to change of a key; the rest stays.",
        "additionalProperties": false,
        "properties": {
            "name": name,
            "expires_at": {
                "anyOf": [
                    {"type": "string", "format": "date-time"},
                    {"type": "string", "format": "date"},
                    {"type": "null"},
                ],
                "description": "From when on it is refused, in the future; null for never.",
            },
            "limits": {
                "type": ["object", "null"],
                "description": "Own limits. 0 is unlimited, null the server's limit.",
                "additionalProperties": false,
                "properties": {
                    "per_minute": limit("Requests in any 60 seconds."),
                    "per_day": limit("Requests in a UTC day."),
                },
            },
            "models": {
                "type": ["array", "null"],
                "maxItems": MAX_LIST_ENTRIES,
                "items": {"type": "string", "pattern": "^(\\*|[a-z0-9_-]+/(\\*|[^*\\s\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]+))$", "maxLength": MAX_PATTERN_CHARS},
                "description": "The models it may use: `provider/model`, `provider/*` or `*`; empty for all.",
            },
            "addresses": {
                "type": ["array", "null"],
                "maxItems": MAX_LIST_ENTRIES,
                "items": {"type": "string"},
                "description": "Networks (CIDR) or addresses it may be used from; empty for all.",
            },
            "budget_usd": budget("The key's"),
        },
    })
}

/// What may be changed later may be said at once; the service is for life.
fn new_key() -> Value {
    let mut schema = changes();
    schema["description"] =
        "A new key. One of the service `console` asks no models, and has neither `models` nor a budget."
            .into();
    schema["required"] = json!(["service"]);
    schema["properties"]["service"] = reference("Service");
    schema
}

fn rotation() -> Value {
    json!({
        "type": "object",
        "description": "How a key is replaced.",
        "additionalProperties": false,
        "properties": {
            "grace_seconds": {
                "type": ["integer", "null"],
                "minimum": 0,
                "maximum": MAX_GRACE_SECONDS,
                "description": "How long the old key lives on, though never past its own expiry; left out, not at all.",
            },
        },
    })
}
