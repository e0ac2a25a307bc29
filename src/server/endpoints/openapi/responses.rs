//! The error responses that all operations share, by status.

use serde_json::{Map, Value, json};

use super::reference;
use crate::api::endpoint::Door;
use crate::api::error_code::ErrorCode;
use crate::server::reply;

/// Headers that every response has, whatever its status.
const COMMON_HEADERS: [&str; 6] = [
    "X-Request-Id",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "RateLimit-Policy",
    "RateLimit",
];

/// An error response: status, name among the components, description, and own headers.
type ErrorResponse = (u16, &'static str, &'static str, &'static [&'static str]);

/// The responses by status; what codes there are says [`ErrorCode`].
const ERRORS: [ErrorResponse; 19] = [
    (
        400,
        "BadRequest",
        "The request is not JSON, or a parameter (named in `param`) is missing, invalid or unknown. If a \
         provider refused the request, `code` is the provider's, if it has one.",
        &[],
    ),
    (401, "Unauthorized", "The key is missing, invalid, or for another service.", &["WWW-Authenticate"]),
    (
        402,
        "PaymentRequired",
        "The budget of the key, of its app or of the end user does not cover what this could cost.",
        &["X-Should-Retry", "X-Mk-Attempts"],
    ),
    (
        403,
        "Forbidden",
        "The key is valid but may not do this: not from this address, with this model, or from this web page.",
        &[],
    ),
    (404, "NotFound", "There is no such object or path.", &[]),
    (405, "MethodNotAllowed", "The path does not support this method.", &["Allow"]),
    (408, "RequestTimeout", "The body did not arrive in time. The connection is closed.", &[]),
    (
        409,
        "Conflict",
        "The current state does not allow it: a name is taken, this is the last app, or the key is revoked.",
        &[],
    ),
    (413, "PayloadTooLarge", "The body is larger than this server accepts. The connection is closed.", &[]),
    (414, "UriTooLong", "The URI is longer than this server accepts. The connection is closed.", &[]),
    (
        415,
        "UnsupportedMediaType",
        "The `Content-Type` is not `application/json`, or the body is compressed.",
        &[],
    ),
    (
        422,
        "UnprocessableEntity",
        "The answer was verified and is withheld (`verify = \"block\"`); `mk_verification` has the verdicts.",
        &[],
    ),
    (426, "UpgradeRequired", "The request asks for a WebSocket; send it with POST instead.", &[]),
    (
        429,
        "TooManyRequests",
        "A rate limit is used up. `Retry-After` says when to retry.",
        &["Retry-After", "X-Should-Retry"],
    ),
    (
        431,
        "HeadersTooLarge",
        "The headers are larger than this server accepts. The connection is closed.",
        &[],
    ),
    (500, "InternalServerError", "An error in this server. Its log has details under the `request_id`.", &[]),
    (
        502,
        "BadGateway",
        "The model's provider failed. `provider` names it.",
        &["X-Should-Retry", "X-Mk-Attempts"],
    ),
    (
        503,
        "ServiceUnavailable",
        "Temporarily unavailable: the provider is at its limits, no model is left to ask, or this server is not ready.",
        &["Retry-After", "X-Mk-Attempts"],
    ),
    (504, "GatewayTimeout", "The model's provider did not answer in time.", &["X-Mk-Attempts"]),
];

/// The codes of a status.
fn codes(status: u16) -> impl Iterator<Item = ErrorCode> {
    ErrorCode::all().filter(move |code| code.status() == status)
}

/// The `error` of a status.
fn title(status: u16) -> &'static str {
    codes(status).next().map_or("Error", ErrorCode::title)
}

/// References to the headers of a response: the common ones, and its own.
pub(super) fn headers<'a>(own: impl IntoIterator<Item = &'a str>) -> Value {
    let all = COMMON_HEADERS.into_iter().chain(own);
    all.map(|name| (name.to_owned(), reference("headers", name))).collect::<Map<_, _>>().into()
}

/// All error responses, by name.
pub(super) fn errors() -> Map<String, Value> {
    let one = |(status, name, description, own): &ErrorResponse| {
        let examples: Map<String, Value> = codes(*status)
            .map(|code| (code.as_str().to_owned(), json!({"value": example_body(code)})))
            .collect();
        let media = json!({"schema": reference("schemas", "ErrorBody"), "examples": examples});
        ((*name).to_owned(), error(description, own, &media))
    };
    ERRORS.iter().map(one).collect()
}

fn error(description: &str, own: &[&str], media: &Value) -> Value {
    json!({
        "description": description,
        "headers": headers(own.iter().copied()),
        "content": {"application/json": media},
    })
}

/// Every error response: its status, the `error` of its body, what it means, and its codes.
pub(crate) fn by_status() -> impl Iterator<Item = (u16, &'static str, &'static str, Vec<&'static str>)> {
    ERRORS.iter().map(|(status, _, description, _)| {
        (*status, title(*status), *description, codes(*status).map(ErrorCode::as_str).collect())
    })
}

fn example_body(code: ErrorCode) -> Value {
    let mut body = json!({
        "error": code.title(),
        "message": code.message(),
        "code": code.as_str(),
        "request_id": "req_019aa0e7c2f47b1c8d3e5f60718293a4",
    });
    // The first parameter that the message names.
    if let (400, Some(param)) = (code.status(), code.message().split('`').nth(1)) {
        body["param"] = param.into();
    }
    if code.as_str().starts_with("provider_") {
        body["provider"] = "openai".into();
    }
    body
}

/// The error response of a status: the shared one, or what it is behind a door.
pub(super) fn behind(door: Door, status: u16) -> Value {
    let Some((_, name, description, own)) = ERRORS.iter().find(|error| error.0 == status) else {
        return Value::Null;
    };
    let schema = match door {
        Door::Documented => return reference("responses", name),
        Door::OpenAi => "OpenAiErrorBody",
        Door::Anthropic => "AnthropicErrorBody",
    };
    let example = |code: ErrorCode| {
        let body = serde_json::from_value(example_body(code)).ok()?;
        serde_json::from_slice::<Value>(&reply::error_body(door, code, None, body)).ok()
    };
    let example = codes(status).next().and_then(example);
    error(description, own, &json!({"schema": reference("schemas", schema), "example": example}))
}
