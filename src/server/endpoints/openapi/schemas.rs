//! The schemas of the wire types, derived from the types themselves: names, optional fields and descriptions are those
//! that serde and rustdoc see.
//!
//! Requests and responses are distinguished: a field that may be omitted from a request is often always present in a
//! response. What the derive leaves open follows the API's conventions: names ending in `_at` are RFC 3339 times, and a
//! field of a response is either always present or never null. A request that is read field by field, or that none of
//! our types describes, has a schema written by hand, in `data/schemas.json`.

use schemars::Schema;
use schemars::generate::{Contract, SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use super::{Bounds, reference};
use crate::api::console::{
    App, AuditEntry, Billing, CreatedKey, DeletedApp, Dimension, ForgetUser, ForgottenUser, Key, KeyState,
    NewSession, OwnKey, Page, RevokedKey, SetUp, SetupRequest, Statement, TryOffer, UsageReport,
};
use crate::api::door_error::{AnthropicErrorBody, OpenAiErrorBody};
use crate::api::error::{ErrorBody, ErrorEvent};
use crate::api::error_code::ErrorCode;
use crate::api::guard::AnswerVerification;
use crate::api::models::ModelList;
use crate::api::verify::{
    ClaimVerified, ClaimsExtracted, Domain, ExtractResponse, ExtractingClaims, Format, MAX_CONTEXT_CHARS,
    MIN_REQUIRED, ModelAnswered, ReceiptKey, Starting, VerifyRequest, VerifyResponse, VerifyingClaim,
    VerifyingClaims,
};

/// Derives the schema of a type, and those of all types within.
type Derive = fn(&mut SchemaGenerator) -> Schema;

/// What requests contain; what is within these types comes with them.
const REQUESTS: [Derive; 5] = [
    SchemaGenerator::subschema_for::<Domain>,
    SchemaGenerator::subschema_for::<Format>,
    SchemaGenerator::subschema_for::<ForgetUser>,
    SchemaGenerator::subschema_for::<NewSession>,
    SchemaGenerator::subschema_for::<SetupRequest>,
];
/// What responses contain.
const RESPONSES: [Derive; 31] = [
    SchemaGenerator::subschema_for::<AnswerVerification>,
    SchemaGenerator::subschema_for::<AnthropicErrorBody>,
    SchemaGenerator::subschema_for::<Billing>,
    SchemaGenerator::subschema_for::<ClaimVerified>,
    SchemaGenerator::subschema_for::<ClaimsExtracted>,
    SchemaGenerator::subschema_for::<CreatedKey>,
    SchemaGenerator::subschema_for::<DeletedApp>,
    SchemaGenerator::subschema_for::<Dimension>,
    SchemaGenerator::subschema_for::<ErrorBody>,
    SchemaGenerator::subschema_for::<ErrorEvent>,
    SchemaGenerator::subschema_for::<ExtractResponse>,
    SchemaGenerator::subschema_for::<ExtractingClaims>,
    SchemaGenerator::subschema_for::<ForgottenUser>,
    SchemaGenerator::subschema_for::<KeyState>,
    SchemaGenerator::subschema_for::<ModelAnswered>,
    SchemaGenerator::subschema_for::<ModelList>,
    SchemaGenerator::subschema_for::<OpenAiErrorBody>,
    SchemaGenerator::subschema_for::<OwnKey>,
    SchemaGenerator::subschema_for::<Page<App>>,
    SchemaGenerator::subschema_for::<Page<AuditEntry>>,
    SchemaGenerator::subschema_for::<Page<Key>>,
    SchemaGenerator::subschema_for::<ReceiptKey>,
    SchemaGenerator::subschema_for::<RevokedKey>,
    SchemaGenerator::subschema_for::<SetUp>,
    SchemaGenerator::subschema_for::<Starting>,
    SchemaGenerator::subschema_for::<Statement>,
    SchemaGenerator::subschema_for::<TryOffer>,
    SchemaGenerator::subschema_for::<UsageReport>,
    SchemaGenerator::subschema_for::<VerifyResponse>,
    SchemaGenerator::subschema_for::<VerifyingClaim>,
    SchemaGenerator::subschema_for::<VerifyingClaims>,
];

/// All schemas, by name. Those written by hand override derived ones.
pub(super) fn all(bounds: Bounds, by_hand: Map<String, Value>) -> Map<String, Value> {
    let mut all = derived(Contract::Deserialize, &REQUESTS);
    let mut responses = derived(Contract::Serialize, &RESPONSES);
    responses.values_mut().for_each(describe_output);
    all.extend(responses);
    all.extend(by_hand);
    all.insert("VerifyRequest".to_owned(), verify_request(bounds));
    all.insert("ErrorCode".to_owned(), error_code());
    all.values_mut().for_each(expand_events);
    all.values_mut().for_each(normalise);
    for name in ["ErrorBody", "ErrorEvent", "ChatFault", "OpenAiError", "AnthropicError"] {
        all[name]["properties"]["code"] = json!({
            "anyOf": [reference("schemas", "ErrorCode"), {"type": "string"}],
            "description": "The error's kind, for programs: one of these, or a provider's own code (status 400).",
        });
    }
    all.sort_keys();
    all
}

fn derived(contract: Contract, types: &[Derive]) -> Map<String, Value> {
    let mut generator = generator(contract);
    for derive in types {
        derive(&mut generator);
    }
    generator.take_definitions(true)
}

fn generator(contract: Contract) -> SchemaGenerator {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    settings.contract = contract;
    settings.into_generator()
}

fn error_code() -> Value {
    let mut ours: Vec<&str> = ErrorCode::all().map(ErrorCode::as_str).collect();
    ours.sort_unstable();
    json!({"type": "string", "enum": ours, "description": "The codes of this server."})
}

/// Something that can be seen (`unsafe_chars` says what cannot), and no NUL character.
const PLAIN_TEXT: &str = concat!(
    r"^[^\x00]*",
    r"[^\s\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]",
    r"[^\x00]*$"
);

/// The derived schema of a verification, with the ranges that its fields are checked against
/// (`server/endpoints/verify.rs`). Defaults are described in words: client generators take a field with a default for a
/// required one.
fn verify_request(bounds: Bounds) -> Value {
    let mut schema = generator(Contract::Deserialize).into_root_schema_for::<VerifyRequest>().to_value();
    let max_required = (*MIN_REQUIRED.end()).min(bounds.panel).max(*MIN_REQUIRED.start());
    let dated = |format: &str| json!({"type": "string", "format": format});
    // Null removes what is derived. The schemas that it refers to are among the components.
    let by_hand = json!({
        "$defs": null,
        "$schema": null,
        "components": null,
        "title": null,
        "properties": {
            "fact": {"minLength": 1, "maxLength": bounds.fact_chars, "pattern": PLAIN_TEXT},
            "minRequired": {"format": null, "minimum": MIN_REQUIRED.start(), "maximum": max_required},
            "totalModels": {"format": null, "minimum": MIN_REQUIRED.start(), "maximum": bounds.panel},
            "asOf": {"type": null, "anyOf": [dated("date"), dated("date-time"), {"type": "null"}]},
            "context": {"minLength": 1, "maxLength": MAX_CONTEXT_CHARS, "pattern": PLAIN_TEXT},
        },
    });
    merge(&mut schema, by_hand);
    if max_required > *MIN_REQUIRED.start() {
        schema["if"] =
            json!({"required": ["minRequired"], "properties": {"minRequired": {"const": max_required}}});
        schema["then"] = json!({"properties": {"totalModels": {"minimum": max_required}}});
    }
    schema
}

/// Changes a value as a merge patch (RFC 7396) says.
fn merge(value: &mut Value, patch: Value) {
    match (value, patch) {
        (Value::Object(map), Value::Object(patch)) => {
            for (name, change) in patch {
                match change {
                    Value::Null => {
                        map.shift_remove(&name);
                    }
                    change => merge(map.entry(name).or_insert(Value::Null), change),
                }
            }
        }
        (value, patch) => *value = patch,
    }
}

/// Makes of a stream's events, in which each has the schema of its data by its name, the schema of a frame.
fn expand_events(schema: &mut Value) {
    let Some(Value::Object(events)) = schema.as_object_mut().and_then(|schema| schema.remove("events"))
    else {
        return;
    };
    let frame = |(name, data): (String, Value)| {
        let data = json!({"type": "string", "contentMediaType": "application/json", "contentSchema": data});
        json!({
            "type": "object",
            "required": ["event", "data"],
            "properties": {"event": {"type": "string", "const": name}, "data": data},
        })
    };
    schema["oneOf"] = events.into_iter().map(frame).collect();
}

/// Adapts the schema of a response: optional fields are omitted rather than null, and nothing has a default.
fn describe_output(schema: &mut Value) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (_, property) in properties.iter_mut() {
        // The default is for fields missing from what we read, and says nothing about what we write.
        if let Some(property) = property.as_object_mut() {
            property.remove("default");
        }
    }
    for (_, property) in properties.iter_mut().filter(|(name, _)| !required.iter().any(|is| is == *name)) {
        if let Some([kind, null]) = property["type"].as_array().map(Vec::as_slice)
            && null == "null"
        {
            property["type"] = kind.clone();
        }
    }
}

/// Applies the API's conventions to a schema and all schemas within.
fn normalise(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(properties)) = map.get_mut("properties") {
                properties.iter_mut().for_each(|(name, property)| mark_time(name, property));
            }
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = without_links(text);
            }
            // A format that only Rust knows.
            if map.get("format").is_some_and(|format| format == "uint") {
                map.remove("format");
            }
            merge_enum(map);
            map.values_mut().for_each(normalise);
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        _ => {}
    }
}

fn mark_time(name: &str, property: &mut Value) {
    let is_string = |kind: &Value| kind == "string" || kind[0] == "string";
    let Some(map) = property.as_object_mut() else { return };
    let is_time = name.ends_with("_at") || matches!(name, "at" | "timestamp");
    if is_time && map.get("type").is_some_and(is_string) {
        map.insert("format".to_owned(), "date-time".into());
    }
}

/// Turns a `oneOf` with a schema per value, which few readers understand, into an `enum`.
fn merge_enum(map: &mut Map<String, Value>) {
    let Some(variants) = map.get("oneOf").and_then(Value::as_array) else { return };
    let mut values = Vec::new();
    let mut lines =
        vec![map.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(), String::new()];
    for variant in variants {
        let Some(value) = variant["const"].as_str() else { return };
        let meaning = variant["description"].as_str().unwrap_or_default().replace('\n', " ");
        lines.push(format!("- `{value}`: {meaning}"));
        values.push(value.to_owned());
    }
    map.remove("oneOf");
    map.insert("description".to_owned(), lines.join("\n").into());
    map.insert("type".to_owned(), "string".into());
    map.insert("enum".to_owned(), values.into());
}

/// Removes rustdoc links, which lead nowhere from here.
fn without_links(text: &str) -> String {
    text.replace("[`", "`").replace("`]", "`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::console::KeyLimits;

    #[test]
    fn responses_and_requests_differ_in_required_fields() {
        let of =
            |contract| derived(contract, &[SchemaGenerator::subschema_for::<KeyLimits>])["KeyLimits"].take();
        assert_eq!(of(Contract::Serialize)["required"], json!(["per_minute", "per_day"]));
        let request = of(Contract::Deserialize);
        assert_eq!((&request["required"], &request["additionalProperties"]), (&Value::Null, &json!(false)));
    }

    #[test]
    fn conventions_of_the_api_are_described() {
        let all = super::super::describe(Bounds { fact_chars: 1, panel: 3 }).unwrap();
        let all = &all["components"]["schemas"];
        assert_eq!(all["App"]["properties"]["created_at"]["format"], "date-time");
        assert_eq!(all["AppPage"]["properties"]["next_cursor"]["type"], json!(["string", "null"]));
        assert_eq!(all["KeyState"]["enum"], json!(["active", "expired", "revoked"]));
        assert!(all["KeyState"]["description"].as_str().unwrap().contains("\n- `expired`: Past its expiry."));
    }
}
