//! The verify area: a verification, and an extraction, each as a stream or as one document, and the health page.
//!
//! The request is read field by field (`server/endpoints/verify.rs`); its ranges here come from the same constants.

use serde_json::{Value, json};

use super::operation::{Operation, either, json_string, json_with_example, path};
use super::schemas::{self, Schemas};
use super::{Bounds, example};
use crate::api::endpoint::Endpoint;
use crate::api::error::{ErrorBody, ErrorEvent};
use crate::api::verify::{self as wire, MAX_CONTEXT_CHARS, MIN_REQUIRED};

/// The area's paths.
pub(super) fn paths(schemas: &mut Schemas, bounds: Bounds) -> Vec<(String, Value)> {
    schemas.response::<ErrorBody>();
    schemas.request::<wire::Domain>();
    schemas.request::<wire::Format>();
    let request = schemas.add("VerifyRequest", request(bounds));
    let response = schemas.response::<wire::VerifyResponse>();
    let key = schemas.response::<wire::ReceiptKey>();
    let health = schemas.add("VerifyHealth", health());
    let verify = Operation::new(
        "Verify",
        "verify",
        "Verify a statement",
        "Extracts the verifiable claims of a statement, asks several models about each, and reports for each \
         whether they agree that it is true, agree that it is false, or do not agree. Agreement is evidence, not proof.\n\n\
         The answer is a stream of events or, with `Accept: application/json`, one document at the end. The frames of the stream come in this order: `starting`, `extracting_claims`, `claims_extracted`, `verifying_claims`, \
         for each claim `verifying_claim` before its `claim_verified` (claims run side by side), and at the end either \
         `completed` or `error`.\n\n\
         The body may exceed the usual size limit if the longest `fact` and `context`, escaped in JSON, need it.",
    )
    .secured(&["verifyKey"])
    .parameters(&["Progress", "Cache"])
    .body(&request, &[("plain", json!({"fact": "Canberra is the capital of Australia."})), ("strict", strict())])
    .response(200, "The verification.", either(json_with_example(&response, &example::verification()), stream(schemas)), &["Cache-Control"])
    .errors(&[400, 401, 402, 403, 408, 413, 414, 415, 429, 431, 500, 502, 503, 504]);
    let extracted = schemas.response::<wire::ExtractResponse>();
    let extract = Operation::new(
        "Verify",
        "extract",
        "Extract the claims of a statement",
        "Extracts the claims of a statement as a verification with the same body would: each with its question, \
         options and position in the statement, and the parts that would be skipped. The panel is not asked: `minRequired`, `totalModels`, `explain` and `receipt` are validated but have no effect.\n\n\
         The answer is one document. A long statement may take minutes; with `Accept: text/event-stream`, the answer is a stream that keeps the connection alive: `starting`, `extracting_claims`, `claims_extracted`, and at the end either \
         `completed` or `error`.",
    )
    .secured(&["verifyKey"])
    .body(&request, &[("plain", json!({"fact": "Canberra is the capital of Australia."}))])
    .response(200, "The claims.", either(json_with_example(&extracted, &example::extraction()), extract_stream(schemas)), &["Cache-Control"])
    .errors(&[400, 401, 402, 403, 408, 413, 414, 415, 429, 431, 500, 502, 503, 504]);
    let healthy = Operation::new(
        "Server",
        "verifyHealth",
        "Health of the verify service",
        "Needs no key. Not 200 while the server cannot look up keys or is shutting down.",
    )
    .response(200, "Healthy.", json_with_example(&health, &json!({"status": "ok"})), &[])
    .response(503, "Not ready.", json_with_example(&health, &json!({"status": "draining"})), &[])
    .errors(&[429, 500]);
    let receipt_key = Operation::new(
        "Verify",
        "receiptKey",
        "The receipt key",
        "The public key to check this server's receipts with. Needs no API key.",
    )
    .response(200, "The key.", json_with_example(&key, &example::receipt_key()), &[])
    .errors(&[429, 500, 503]);
    vec![
        path(Endpoint::Verify, [("post", verify)]),
        path(Endpoint::Extract, [("post", extract)]),
        path(Endpoint::ReceiptKey, [("get", receipt_key)]),
        path(Endpoint::VerifyHealth, [("get", healthy)]),
    ]
}

fn health() -> Value {
    json!({
        "type": "object",
        "description": "Whether the service is available.",
        "required": ["status"],
        "properties": {"status": {"type": "string", "enum": ["ok", "draining", "store_unavailable"]}},
    })
}

/// Something that can be seen (`unsafe_chars` says what cannot), and no NUL character.
const PLAIN_TEXT: &str = concat!(
    r"^[^\x00]*",
    r"[^\s\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]",
    r"[^\x00]*$"
);

/// The schema of the request type, with the ranges that its fields are checked against. Defaults are described in
/// words: client generators take a field with a default for a required one.
fn request(bounds: Bounds) -> Value {
    let mut schema = schemas::request_schema::<wire::VerifyRequest>();
    let max_required = (*MIN_REQUIRED.end()).min(bounds.panel).max(*MIN_REQUIRED.start());
    let dated = |format: &str| json!({"type": "string", "format": format});
    let ranges = json!({
        "fact": {"minLength": 1, "maxLength": bounds.fact_chars, "pattern": PLAIN_TEXT},
        "minRequired": {"format": null, "minimum": MIN_REQUIRED.start(), "maximum": max_required},
        "totalModels": {"format": null, "minimum": MIN_REQUIRED.start(), "maximum": bounds.panel},
        "asOf": {"type": null, "anyOf": [dated("date"), dated("date-time"), {"type": "null"}]},
        "context": {"minLength": 1, "maxLength": MAX_CONTEXT_CHARS, "pattern": PLAIN_TEXT},
    });
    for (name, limits) in ranges.as_object().into_iter().flatten() {
        let Some(property) = schema["properties"][name].as_object_mut() else { continue };
        for (keyword, value) in limits.as_object().into_iter().flatten() {
            match value {
                Value::Null => property.remove(keyword),
                value => property.insert(keyword.clone(), value.clone()),
            };
        }
    }
    if max_required > *MIN_REQUIRED.start() {
        schema["if"] =
            json!({"required": ["minRequired"], "properties": {"minRequired": {"const": max_required}}});
        schema["then"] = json!({"properties": {"totalModels": {"minimum": max_required}}});
    }
    schema
}

fn strict() -> Value {
    json!({
        "fact": "The speed limit in Spanish towns is 50 km/h.",
        "domain": "legal",
        "minRequired": 3,
        "totalModels": 3,
        "asOf": "2026-11-20",
        "explain": true,
    })
}

/// The event stream of a verification.
fn stream(schemas: &mut Schemas) -> Value {
    let events = [
        ("starting", schemas.response::<wire::Starting>()),
        ("extracting_claims", schemas.response::<wire::ExtractingClaims>()),
        ("claims_extracted", schemas.response::<wire::ClaimsExtracted>()),
        ("verifying_claims", schemas.response::<wire::VerifyingClaims>()),
        ("verifying_claim", schemas.response::<wire::VerifyingClaim>()),
        ("model_answered", schemas.response::<wire::ModelAnswered>()),
        ("claim_verified", schemas.response::<wire::ClaimVerified>()),
        ("completed", schemas.response::<wire::VerifyResponse>()),
        ("error", schemas.response::<ErrorEvent>()),
    ];
    event_stream(schemas, "VerifyEvent", "a verification", &events, &example::stream())
}

/// The event stream of an extraction.
fn extract_stream(schemas: &mut Schemas) -> Value {
    let events = [
        ("starting", schemas.response::<wire::Starting>()),
        ("extracting_claims", schemas.response::<wire::ExtractingClaims>()),
        ("claims_extracted", schemas.response::<wire::ClaimsExtracted>()),
        ("completed", schemas.response::<wire::ExtractResponse>()),
        ("error", schemas.response::<ErrorEvent>()),
    ];
    event_stream(schemas, "ExtractEvent", "an extraction", &events, &example::extraction_stream())
}

/// An event stream with the schema of each kind of frame.
fn event_stream(
    schemas: &mut Schemas,
    name: &str,
    of: &str,
    events: &[(&str, Value)],
    example: &str,
) -> Value {
    let one = |(name, data): &(&str, Value)| {
        json!({
            "type": "object",
            "required": ["event", "data"],
            "properties": {"event": {"type": "string", "const": name}, "data": json_string(data)},
        })
    };
    let event = json!({
        "description": format!("A frame of {of}: the lines `event: NAME` and `data: JSON`, and an empty line."),
        "oneOf": events.iter().map(one).collect::<Vec<_>>(),
    });
    json!({"text/event-stream": {"schema": schemas.add(name, event), "example": example}})
}
