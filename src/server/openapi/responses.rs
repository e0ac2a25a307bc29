//! What all operations answer alike: errors by their status, and the headers of every answer.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::schemas;
use crate::server::reply;

/// Headers that every answer has, whatever its status.
const ALWAYS: [&str; 6] = [
    "X-Request-Id",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "RateLimit-Policy",
    "RateLimit",
];

/// An error as callers see it: its code and its message.
type Example = (&'static str, &'static str);

/// Status, name among the components, when it comes, headers of its own, and examples.
const ERRORS: [(u16, &str, &str, &[&str], &[Example]); 15] = [
    (
        400,
        "BadRequest",
        "The request is not JSON, or a parameter is missing, wrong or unknown. `param` names it.",
        &[],
        &[
            ("invalid_json", "the request body is empty; send a JSON object"),
            ("missing_parameter", "`fact` is required"),
            ("invalid_parameter", "`minRequired` must be a whole number from 2 to 3, not 4"),
            ("unsupported_parameter", "unknown parameter `facts`; known are fact, domain"),
        ],
    ),
    (
        401,
        "Unauthorized",
        "No valid key, or one of another service.",
        &["WWW-Authenticate"],
        &[
            ("missing_api_key", "Invalid or missing API key"),
            ("invalid_api_key", "Invalid or missing API key"),
            ("wrong_service", "API key not authorized for this service"),
            ("api_key_revoked", "API key has been revoked"),
            ("api_key_expired", "API key has expired"),
        ],
    ),
    (
        402,
        "PaymentRequired",
        "The month's budget of the key or of its app does not cover what this could cost.",
        &["X-Should-Retry", "X-Mk-Attempts"],
        &[(
            "budget_exceeded",
            "the key's budget of $20.00 is used up; ask the operator to raise it; it begins anew on 2026-12-01 (UTC)",
        )],
    ),
    (
        403,
        "Forbidden",
        "The key is valid and may not do this: not from this address, not with this model, or not from this page.",
        &[],
        &[
            ("address_not_allowed", "this API key may not be used from this address"),
            ("model_not_allowed", "this API key may not use openai/gpt-5.4; it is for openai/gpt-5.4-mini"),
        ],
    ),
    (
        404,
        "NotFound",
        "There is no such thing, or no such address.",
        &[],
        &[
            ("not_found", "there is no such app"),
            (
                "model_not_found",
                "`model` names a provider that is not configured; configured providers: openai. GET /inference/v1/models lists their models",
            ),
            ("unknown_route", "no such address; the API lives under /verify/v1 and /inference/v1"),
        ],
    ),
    (
        405,
        "MethodNotAllowed",
        "The address exists and does not take this method.",
        &["Allow"],
        &[("method_not_allowed", "this address takes POST")],
    ),
    (
        408,
        "RequestTimeout",
        "The body did not arrive in time. The connection is closed.",
        &[],
        &[("request_timeout", "the request body did not arrive in time")],
    ),
    (
        409,
        "Conflict",
        "It cannot be done as things stand: a name is taken, the last app cannot go, a revoked key cannot be changed.",
        &[],
        &[("conflict", "there is an app of this name already")],
    ),
    (
        413,
        "PayloadTooLarge",
        "The body is larger than this server takes. The connection is closed.",
        &[],
        &[("body_too_large", "the request body is larger than 1048576 bytes")],
    ),
    (
        415,
        "UnsupportedMediaType",
        "The body is not announced as `application/json`, or is compressed.",
        &[],
        &[("unsupported_media_type", "send the body as JSON, with Content-Type: application/json")],
    ),
    (
        429,
        "TooManyRequests",
        "A limit is used up. `Retry-After` says when to come back.",
        &["Retry-After", "X-Should-Retry"],
        &[
            ("rate_limited_minute", "Too many requests per minute"),
            ("rate_limited_day", "Too many requests per day"),
        ],
    ),
    (
        500,
        "InternalServerError",
        "A fault of this server. Its log tells more under the `request_id`.",
        &[],
        &[("internal", "something went wrong inside the server; its log tells more under this request_id")],
    ),
    (
        502,
        "BadGateway",
        "The model's provider failed. `provider` names it.",
        &["X-Should-Retry", "X-Mk-Attempts"],
        &[
            (
                "provider_auth_failed",
                "the provider openai does not accept this server's key; its operator has to check it",
            ),
            (
                "provider_quota_exhausted",
                "this server's account at openai is used up; its operator has to see to it",
            ),
            ("provider_error", "the provider openai failed; try again in a moment"),
            (
                "provider_invalid_response",
                "the provider openai sent an answer that cannot be read; try again in a moment",
            ),
            ("provider_unreachable", "the provider openai cannot be reached; try again in a moment"),
        ],
    ),
    (
        503,
        "ServiceUnavailable",
        "Not now: the provider is at its limits, nobody is left to ask, or this server is not ready.",
        &["Retry-After", "X-Mk-Attempts"],
        &[
            (
                "provider_rate_limited",
                "the provider openai takes no more requests of this server now; try again later",
            ),
            ("provider_overloaded", "the provider openai has no capacity now; try again later"),
            (
                "no_provider_available",
                "a panel needs at least two models and this server has fewer; its operator can configure more",
            ),
            ("store_unavailable", "the key store cannot be reached; try again in a moment"),
            ("shutting_down", "the server is shutting down; try again in a moment"),
        ],
    ),
    (
        504,
        "GatewayTimeout",
        "The model's provider did not answer in time.",
        &["X-Mk-Attempts"],
        &[("provider_timeout", "the provider openai did not answer in time; try again in a moment")],
    ),
];

/// All errors, by name.
pub(super) fn errors() -> Value {
    let all: Map<String, Value> = ERRORS
        .iter()
        .map(|(status, name, description, own, examples)| {
            let examples: Map<String, Value> =
                examples.iter().map(|example| (example.0.to_owned(), value(*status, *example))).collect();
            let content = json!({"schema": schemas::reference("ErrorBody"), "examples": examples});
            let response = json!({
                "description": description,
                "headers": headers(own),
                "content": {"application/json": content},
            });
            ((*name).to_owned(), response)
        })
        .collect();
    Value::Object(all)
}

fn value(status: u16, (code, message): Example) -> Value {
    let title = StatusCode::from_u16(status).map(reply::title).unwrap_or_default();
    let mut body = json!({
        "error": title,
        "message": message,
        "code": code,
        "request_id": "req_019aa0e7c2f47b1c8d3e5f60718293a4",
    });
    // The parameter that the message names first.
    if let (400, Some(param)) = (status, message.split('`').nth(1)) {
        body["param"] = param.into();
    }
    if code.starts_with("provider_") {
        body["provider"] = "openai".into();
    }
    json!({"value": body})
}

/// A reference to the error of a status.
pub(super) fn reference(status: u16) -> Value {
    let name = ERRORS.iter().find(|error| error.0 == status).map_or("InternalServerError", |error| error.1);
    json!({"$ref": format!("#/components/responses/{name}")})
}

/// References to the headers of an answer: those of all, and its own.
pub(super) fn headers(own: &[&str]) -> Value {
    let all: Map<String, Value> = ALWAYS
        .iter()
        .chain(own)
        .map(|name| ((*name).to_owned(), json!({"$ref": format!("#/components/headers/{name}")})))
        .collect();
    Value::Object(all)
}

/// All headers, by name.
pub(super) fn described() -> Value {
    let whole = |description: &str, minimum: u32, example: u64| json!({"description": description, "schema": {"type": "integer", "minimum": minimum}, "example": example});
    let text = |description: &str, example: &str| json!({"description": description, "schema": {"type": "string"}, "example": example});
    let mut all = json!({
        "X-Request-Id": text("The request's identifier: the caller's own, if it sent a well-formed one.", "req_019aa0e7c2f47b1c8d3e5f60718293a4"),
        "X-RateLimit-Limit": whole("The limit of the window that has the fewest requests left. 2147483647 where nothing is limited.", 0, 60),
        "X-RateLimit-Remaining": whole("Requests left in that window.", 0, 59),
        "X-RateLimit-Reset": whole("Unix seconds: when a request of that window is free again.", 0, 1_795_202_820),
        "RateLimit-Policy": text("All windows that have a limit, in the form of the IETF draft; left out where nothing is limited.", "\"minute\";q=60;w=60, \"day\";q=1000;w=86400"),
        "RateLimit": text("What is left of them, and the seconds until more is, in the form of the IETF draft.", "\"minute\";r=59;t=60, \"day\";r=999;t=41000"),
        "Retry-After": whole("Seconds to wait before the next try; never earlier than the reset.", 1, 12),
        "WWW-Authenticate": text("Always `Bearer`.", "Bearer"),
        "Allow": text("The methods that the address takes.", "GET, HEAD"),
        "X-Should-Retry": text("`false` where trying again cannot help; chat-completion clients obey it.", "false"),
        "X-Mk-Attempts": whole("Calls of models that it took, retries and fallbacks included.", 0, 1),
        "X-Mk-Model": text("The model that answered, by its configured identifier.", "openai/gpt-5.4-mini"),
        "Cache-Control": text("Says that no cache keeps the answer.", "no-store"),
        "ETag": text("Changes with the content; to be sent back as `If-None-Match`.", "\"0f3c9a\""),
        "Set-Cookie": text("The session, `HttpOnly; SameSite=Strict; Path=/`, and `Secure` behind https.", "mk_session=…; HttpOnly; SameSite=Strict; Path=/"),
    });
    // The others come with every answer of the kind that has them.
    for name in [
        "X-Request-Id",
        "X-RateLimit-Limit",
        "X-RateLimit-Remaining",
        "X-RateLimit-Reset",
        "WWW-Authenticate",
        "Allow",
    ] {
        all[name]["required"] = true.into();
    }
    all
}
