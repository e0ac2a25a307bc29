//! Spans as OTLP takes them: an `ExportTraceServiceRequest` in the protocol's JSON mapping, in which identifiers are
//! hexadecimal and 64-bit numbers are strings.

use serde_json::{Value as Json, json};

use super::settings::Settings;
use super::span::{Ended, Kind, Value};

/// The status code of a span that failed.
const ERROR: u8 = 2;
/// The flags of a span that say that it is known where its parent is, and that that is another server.
const PARENT_IS_KNOWN: u32 = 0x100;
const PARENT_IS_REMOTE: u32 = 0x200;

/// The body of a call that delivers these spans.
pub(super) fn request(spans: &[Ended], settings: &Settings) -> Vec<u8> {
    let own = settings.resource.iter().map(|(key, value)| attribute(key, &json!({"stringValue": value})));
    let version = attribute("service.version", &json!({"stringValue": env!("CARGO_PKG_VERSION")}));
    let resource: Vec<Json> = own.chain([version]).collect();
    let spans: Vec<Json> = spans.iter().map(span).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": {"name": "mk", "version": env!("CARGO_PKG_VERSION")}, "spans": spans}],
    }]})
    .to_string()
    .into_bytes()
}

fn span(span: &Ended) -> Json {
    let attributes: Vec<Json> =
        span.attributes.iter().map(|(key, one)| attribute(key, &value(one))).collect();
    let is_remote = span.kind == Kind::Server && span.parent.is_some();
    let place = PARENT_IS_KNOWN | if is_remote { PARENT_IS_REMOTE } else { 0 };
    let mut object = json!({
        "traceId": format!("{:032x}", span.context.trace),
        "spanId": format!("{:016x}", span.context.span),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": span.start.to_string(),
        "endTimeUnixNano": span.end.to_string(),
        "attributes": attributes,
        "status": if span.is_error { json!({"code": ERROR}) } else { json!({}) },
        "flags": place | u32::from(span.context.is_sampled),
    });
    if let Some(parent) = span.parent {
        object["parentSpanId"] = format!("{parent:016x}").into();
    }
    object
}

fn attribute(key: &str, value: &Json) -> Json {
    json!({"key": key, "value": value})
}

fn value(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!({"stringValue": text}),
        Value::Shared(text) => json!({"stringValue": &**text}),
        Value::Texts(texts) => {
            let values: Vec<Json> = texts.iter().map(|text| json!({"stringValue": text})).collect();
            json!({"arrayValue": {"values": values}})
        }
        Value::Count(number) => json!({"intValue": number.to_string()}),
        Value::Amount(number) => json!({"doubleValue": number}),
        Value::Flag(flag) => json!({"boolValue": flag}),
    }
}
