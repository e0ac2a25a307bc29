//! The keys of apps, and what a key may know about itself.

use serde_json::{Value, json};

use super::super::operation::{Operation, json_with_example, path};
use super::super::schemas::{Schemas, reference};
use super::{DELETE, READ_ONE, WRITE, amount, budget, example, name, operation};
use crate::api::console::{CreatedKey, Key, KeyState, OwnKey, Page, RevokedKey};
use crate::api::endpoint::Endpoint;
use crate::api::guard::Guard;
use crate::keys::{MAX_KEY_NAME_CHARS, MAX_LIST_ENTRIES, MAX_PATTERN_CHARS};
use crate::server::endpoints::console::MAX_GRACE_SECONDS;

pub(super) fn paths(schemas: &mut Schemas) -> Vec<(String, Value)> {
    let (key, page) = (schemas.response::<Key>(), schemas.response::<Page<Key>>());
    let (created, own) = (schemas.response::<CreatedKey>(), schemas.response::<OwnKey>());
    schemas.response::<KeyState>();
    let new = schemas.add("NewKey", new_key());
    let changes = schemas.add("KeyChanges", changes());
    let revoked = schemas.response::<RevokedKey>();
    let rotation = schemas.add("Rotation", rotation());
    let list = operation("Keys", "listKeys", "List an app's keys", "In all states unless `state` is given.")
        .parameters(&["AppId", "ServiceFilter", "StateFilter", "Order", "Limit", "KeyCursor"])
        .response(
            200,
            "A page of keys.",
            json_with_example(&page, &example::page(&example::key())),
            &["Cache-Control"],
        )
        .errors(&READ_ONE);
    let create = operation(
        "Keys",
        "createKey",
        "Create a key",
        "`key` in the answer is shown only once and stored nowhere.",
    )
    .parameters(&["AppId"])
    .body(&new, &[("plain", json!({"service": "verify"})), ("narrow", example::narrow_key())])
    .response(
        201,
        "The key and its record.",
        json_with_example(&created, &example::created_key()),
        &["Location", "Cache-Control"],
    )
    .errors(&WRITE);
    let show = operation("Keys", "getKey", "Show a key", "Its record, without the key itself.")
        .parameters(&["AppId", "KeyId"])
        .response(200, "The key's record.", json_with_example(&key, &example::key()), &["Cache-Control"])
        .errors(&READ_ONE);
    let update = operation(
        "Keys",
        "updateKey",
        "Change a key",
        "Applies from the next request. An expired key works again with a later `expires_at`, or none. The \
         expiry of a rotated key cannot be extended, and a revoked key cannot be changed (409).",
    )
    .parameters(&["AppId", "KeyId"])
    .body(&changes, &[("rename", json!({"name": "ci"})), ("limits", json!({"limits": {"per_minute": 120}}))])
    .response(200, "The record as it is now.", json_with_example(&key, &example::key()), &["Cache-Control"])
    .errors(&WRITE);
    let revoke = operation(
        "Keys",
        "revokeKey",
        "Revoke a key",
        "Immediate and permanent: the next request with it gets a 401, and its running streams end. May be repeated.",
    )
    .parameters(&["AppId", "KeyId"])
    .response(200, "It is revoked.", json_with_example(&revoked, &example::revoked_key()), &["Cache-Control"])
    .errors(&DELETE);
    let rotate = operation(
        "Keys",
        "rotateKey",
        "Replace a key",
        "Creates a key like this one; the old one keeps working for `grace_seconds`.",
    )
    .parameters(&["AppId", "KeyId"])
    .optional_body(&rotation, &[("now", json!({})), ("a_day", json!({"grace_seconds": 86_400}))])
    .response(
        201,
        "The new key and its record.",
        json_with_example(&created, &example::created_key()),
        &["Location", "Cache-Control"],
    )
    .errors(&WRITE);
    let itself = Operation::new(
        "Keys",
        "getOwnKey",
        "Show your own key",
        "With a key of any service, or a session (for the key it was created from). Does not count against the \
         key's limits.",
    )
    .secured(&["verifyKey", "inferenceKey", "consoleKey", "consoleSession"])
    .response(
        200,
        "The key's record, limits and usage.",
        json_with_example(&own, &example::own_key()),
        &["Cache-Control"],
    )
    .errors(&[401, 403, 429, 500, 503]);
    vec![
        path(Endpoint::Keys, [("get", list), ("post", create)]),
        path(Endpoint::Key, [("get", show), ("patch", update), ("delete", revoke)]),
        path(Endpoint::Rotation, [("post", rotate)]),
        path(Endpoint::OwnKey, [("get", itself)]),
    ]
}

fn changes() -> Value {
    let mut name = name(MAX_KEY_NAME_CHARS, "A name to recognise it by; null for none.");
    name["type"] = json!(["string", "null"]);
    json!({
        "type": "object",
        "description": "The changes to a key; other fields stay unchanged.",
        "additionalProperties": false,
        "properties": {
            "name": name,
            "expires_at": {
                "anyOf": [
                    {"type": "string", "format": "date-time"},
                    {"type": "string", "format": "date"},
                    {"type": "null"},
                ],
                "description": "When it expires, in the future; null for never.",
            },
            "limits": {
                "type": ["object", "null"],
                "description": "The key's own limits. 0 is unlimited; null is the server's limit.",
                "additionalProperties": false,
                "properties": {
                    "per_minute": limit("Requests in any 60 seconds."),
                    "per_day": limit("Requests in a UTC day."),
                },
            },
            "models": {
                "type": ["array", "null"],
                "maxItems": MAX_LIST_ENTRIES,
                "items": {"type": "string", "pattern": "^(\\*|[^*/\\s\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]+|[a-z0-9_-]+/(\\*|[^*\\s\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]+))$", "maxLength": MAX_PATTERN_CHARS},
                "description": "The models it may use: `provider/model`, `provider/*`, the name of a pool or `*`; empty for all.",
            },
            "addresses": {
                "type": ["array", "null"],
                "maxItems": MAX_LIST_ENTRIES,
                "items": {"type": "string"},
                "description": "Networks (CIDR) or addresses it may be used from; empty for all.",
            },
            "budget_usd": budget("The key's"),
            "cache": {
                "type": ["string", "null"],
                "pattern": "^[0-9]+[dhms]([0-9]+[dhms])*$",
                "description": "For how long its answers are kept, for requests that do not say: a time from 1s to 30d, \
                    such as `1h`; null for not at all. For keys of the service `inference`.",
            },
            "verify": {
                "type": ["string", "null"],
                "enum": Guard::ALL.map(|guard| Value::from(guard.as_str())).into_iter().chain([Value::Null]).collect::<Vec<_>>(),
                "description": "Has its answers verified: `flag` adds what was found, `block` gives none that the \
                    operator's `block_on` names. The strictest of this and the server's settings holds. For keys of the \
                    service `inference`.",
            },
            "end_users": end_users(),
        },
    })
}

fn limit(description: &str) -> Value {
    json!({"type": ["integer", "null"], "minimum": 0, "maximum": u32::MAX, "description": description})
}

fn end_users() -> Value {
    json!({
        "type": ["object", "null"],
        "description": "The key's own limits for each end user; null, and each field that is null, is the server's. For \
            keys of the service `inference`.",
        "additionalProperties": false,
        "properties": {
            "per_minute": limit("Requests in any 60 seconds; 0 is unlimited."),
            "per_day": limit("Requests in a UTC day; 0 is unlimited."),
            "budget_usd_per_day": amount("What their requests may cost on a UTC day, in US dollars."),
            "budget_usd_per_month": amount("What their requests may cost in a calendar month (UTC), in US dollars."),
        },
    })
}

/// The schema of a new key: what may be changed later may be set at once; the service never changes.
fn new_key() -> Value {
    let mut schema = changes();
    schema["description"] =
        "A new key. One of the service `console` asks no models, and has neither `models` nor a budget; only one of the \
         service `inference` has a `cache`, `verify` or `end_users`."
            .into();
    schema["required"] = json!(["service"]);
    schema["properties"]["service"] = reference("Service");
    schema
}

fn rotation() -> Value {
    json!({
        "type": "object",
        "description": "How to replace a key.",
        "additionalProperties": false,
        "properties": {
            "grace_seconds": {
                "type": ["integer", "null"],
                "minimum": 0,
                "maximum": MAX_GRACE_SECONDS,
                "description": "How long the old key keeps working, but never past its own expiry. Default: 0.",
            },
        },
    })
}
