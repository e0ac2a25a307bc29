//! The error responses that all operations share, by status.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::headers;
use super::schemas::{self, Schemas};
use crate::server::reply;

/// An example of an error: its code and its message.
type Example = (&'static str, &'static str);

/// An error response: status, name among the components, description, own headers, and examples.
type ErrorResponse = (u16, &'static str, &'static str, &'static [&'static str], &'static [Example]);

/// All errors there are, and with them all codes.
const ERRORS: [ErrorResponse; 17] = [
    (
        400,
        "BadRequest",
        "The request is not JSON, or a parameter is missing, wrong or unknown. `param` names it. What a provider refuses \
         has the provider's own code, if it has one.",
        &[],
        &[
            ("invalid_json", "the request body is empty; send a JSON object"),
            ("missing_parameter", "`fact` is required"),
            ("invalid_parameter", "`minRequired` must be 2 or 3, not 4"),
            ("unsupported_parameter", "unknown parameter `facts`; allowed are fact, domain"),
            (
                "context_length_exceeded",
                "the messages, with the answer that is asked for, are too long for openai/gpt-5.4-mini; send less, ask \
                 for a shorter answer, or choose a model with more context",
            ),
            ("content_filter", "openai/gpt-5.4-mini declined to answer this; rephrase the messages"),
            ("provider_rejected", "the provider openai refused the request: too many tools"),
            ("malformed_request", "the request is not valid HTTP"),
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
            ("invalid_session", "the session has ended; log in again"),
            ("invalid_setup_token", "the setup link is not valid any more"),
        ],
    ),
    (
        402,
        "PaymentRequired",
        "The month's budget of the key or of its app does not cover what this could cost.",
        &["X-Should-Retry", "X-Mk-Attempts"],
        &[(
            "budget_exceeded",
            "the key's budget of $20.00 is used up; ask the operator to raise it; it resets on 2026-12-01 (UTC)",
        )],
    ),
    (
        403,
        "Forbidden",
        "The key is valid and may not do this: not from this address, not with this model, or not from this page.",
        &[],
        &[
            ("address_not_allowed", "this API key may not be used from this address"),
            ("origin_not_allowed", "this page may not use the session of another"),
            (
                "price_unknown",
                "this API key has a budget, and what local/llama costs is not known; the server's operator can set \
                 input_usd_per_mtok and output_usd_per_mtok for it",
            ),
            (
                "model_not_allowed",
                "this API key cannot use openai/gpt-5.4; it is limited to openai/gpt-5.4-mini",
            ),
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
            ("unknown_route", "no such endpoint; the API is under /verify/v1 and /inference/v1"),
        ],
    ),
    (
        405,
        "MethodNotAllowed",
        "The address exists and does not take this method.",
        &["Allow"],
        &[("method_not_allowed", "this endpoint accepts POST only")],
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
        414,
        "UriTooLong",
        "The address is longer than this server takes. The connection is closed.",
        &[],
        &[("uri_too_long", "the request's address is too long")],
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
        431,
        "HeadersTooLarge",
        "The headers are larger than this server takes. The connection is closed.",
        &[],
        &[("headers_too_large", "the request's headers are too large")],
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
                "this server's account at openai has no credit left; contact the operator of this server",
            ),
            ("provider_error", "the provider openai failed; try again in a moment"),
            ("provider_refused", "the models refused to answer this; rephrase the statement"),
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
            ("provider_rate_limited", "the provider openai is rate-limiting this server; try again later"),
            ("provider_overloaded", "the provider openai has no capacity now; try again later"),
            ("server_overloaded", "this server has too many large requests under way; try again in a moment"),
            (
                "no_provider_available",
                "a panel needs at least two models and this server has fewer; its operator can configure more",
            ),
            ("store_unavailable", "the server's database cannot be used now; try again in a moment"),
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

/// All codes of errors but those that providers make up.
pub(in crate::server) fn codes() -> impl Iterator<Item = &'static str> {
    ERRORS.iter().flat_map(|error| error.4).map(|example| example.0)
}

/// The schema of a code: one of ours, or a provider's own.
pub(super) fn code(schemas: &mut Schemas) -> Value {
    let mut ours: Vec<&str> = codes().collect();
    ours.sort_unstable();
    ours.dedup();
    let description = "The codes of this server.";
    let known = schemas.add("ErrorCode", json!({"type": "string", "enum": ours, "description": description}));
    json!({
        "anyOf": [known, {"type": "string"}],
        "description": "The error's kind for programs: one of these, or the code that a provider has for what it refuses (status 400).",
    })
}

/// All error responses, by name.
pub(super) fn errors() -> Value {
    let all: Map<String, Value> = ERRORS
        .iter()
        .map(|(status, name, description, own, examples)| {
            let examples: Map<String, Value> = examples
                .iter()
                .map(|example| (example.0.to_owned(), example_body(*status, *example)))
                .collect();
            let content = json!({"schema": schemas::reference("ErrorBody"), "examples": examples});
            let response = json!({
                "description": description,
                "headers": headers::references(own),
                "content": {"application/json": content},
            });
            ((*name).to_owned(), response)
        })
        .collect();
    Value::Object(all)
}

/// Every error response: its status, the `error` of its body, what it means, and its codes.
pub(crate) fn by_status() -> impl Iterator<Item = (u16, &'static str, &'static str, Vec<&'static str>)> {
    ERRORS.iter().map(|(status, _, description, _, examples)| {
        let title = StatusCode::from_u16(*status).map(reply::title).unwrap_or_default();
        (*status, title, *description, examples.iter().map(|example| example.0).collect())
    })
}

fn example_body(status: u16, (code, message): Example) -> Value {
    let title = StatusCode::from_u16(status).map(reply::title).unwrap_or_default();
    let mut body = json!({
        "error": title,
        "message": message,
        "code": code,
        "request_id": "req_019aa0e7c2f47b1c8d3e5f60718293a4",
    });
    // The first parameter that the message names.
    if let (400, Some(param)) = (status, message.split('`').nth(1)) {
        body["param"] = param.into();
    }
    if code.starts_with("provider_") {
        body["provider"] = "openai".into();
    }
    json!({"value": body})
}

/// A reference to the error response of a status.
pub(super) fn reference(status: u16) -> Value {
    let name = ERRORS.iter().find(|error| error.0 == status).map_or("InternalServerError", |error| error.1);
    json!({"$ref": format!("#/components/responses/{name}")})
}
