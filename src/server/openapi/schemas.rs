//! The schemas of the wire's types, made from the types themselves: names, optional fields and descriptions are those
//! that serde and rustdoc see.
//!
//! Requests and answers are told apart: a field that may be left out of a request is often always there in an answer.
//! What the derive leaves open is settled by the wire's own conventions: names ending in `_at` are RFC 3339, and an
//! answer's field is either always there or never null. A request that is read field by field, or that no type of ours
//! describes, brings a schema that is written by hand.

use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

/// Where a description keeps its schemas.
const PLACE: &str = "/components/schemas";

/// The schemas that a description refers to.
pub(super) struct Schemas {
    answers: SchemaGenerator,
    requests: SchemaGenerator,
    written: Map<String, Value>,
}

impl Schemas {
    pub(super) fn new() -> Self {
        Self {
            answers: generator(Contract::Serialize),
            requests: generator(Contract::Deserialize),
            written: Map::new(),
        }
    }

    /// A type that answers hold.
    pub(super) fn answer<T: JsonSchema>(&mut self) -> Value {
        self.answers.subschema_for::<T>().to_value()
    }

    /// A type that requests hold.
    pub(super) fn request<T: JsonSchema>(&mut self) -> Value {
        self.requests.subschema_for::<T>().to_value()
    }

    /// A schema written by hand.
    pub(super) fn write(&mut self, name: &str, schema: Value) -> Value {
        self.written.insert(name.to_owned(), schema);
        reference(name)
    }

    /// All of them, by name. One that is written stands above one that a type gives.
    pub(super) fn finish(mut self) -> Map<String, Value> {
        let mut all = self.requests.take_definitions(true);
        let mut answers = self.answers.take_definitions(true);
        answers.values_mut().for_each(as_written);
        all.extend(answers);
        all.extend(self.written);
        all.values_mut().for_each(settle);
        all.sort_keys();
        all
    }
}

/// A reference to a schema.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#{PLACE}/{name}")})
}

/// A type's own schema of a request, to be narrowed by hand.
pub(super) fn of_request<T: JsonSchema>() -> Value {
    let mut schema = generator(Contract::Deserialize).into_root_schema_for::<T>();
    // What it refers to is among the others.
    for key in ["$defs", "$schema", "title", "components"] {
        schema.remove(key);
    }
    schema.to_value()
}

fn generator(contract: Contract) -> SchemaGenerator {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = PLACE.into();
    settings.meta_schema = None;
    settings.contract = contract;
    settings.into_generator()
}

/// Of an answer: what may be left out is left out rather than null, and nothing has a default.
fn as_written(schema: &mut Value) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (_, property) in properties.iter_mut() {
        // What stands for a field that is missing in what we read says nothing of what we write.
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

/// Puts a schema and what is inside in order.
fn settle(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(properties)) = map.get_mut("properties") {
                properties.iter_mut().for_each(|(name, property)| date(name, property));
            }
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = without_links(text);
            }
            // Rust's, and nobody else's.
            if map.get("format").is_some_and(|format| format == "uint") {
                map.remove("format");
            }
            list_values(map);
            map.values_mut().for_each(settle);
        }
        Value::Array(items) => items.iter_mut().for_each(settle),
        _ => {}
    }
}

fn date(name: &str, property: &mut Value) {
    let is_text = |kind: &Value| kind == "string" || kind[0] == "string";
    let Some(map) = property.as_object_mut() else { return };
    let is_time = name.ends_with("_at") || matches!(name, "at" | "timestamp");
    if is_time && map.get("type").is_some_and(is_text) {
        map.insert("format".to_owned(), "date-time".into());
    }
}

/// Makes a list of values out of one schema a value, which few readers understand.
fn list_values(map: &mut Map<String, Value>) {
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

/// Links of rustdoc lead nowhere from here.
fn without_links(text: &str) -> String {
    text.replace("[`", "`").replace("`]", "`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::console::{App, KeyLimits, KeyState, Page};

    #[test]
    fn answers_and_requests_differ_in_what_must_be_there() {
        let mut schemas = Schemas::new();
        schemas.answer::<KeyLimits>();
        assert_eq!(schemas.finish()["KeyLimits"]["required"], json!(["per_minute", "per_day"]));
        let request = of_request::<KeyLimits>();
        assert_eq!((&request["required"], &request["additionalProperties"]), (&Value::Null, &json!(false)));
    }

    #[test]
    fn what_the_wire_agrees_on_is_said() {
        let mut schemas = Schemas::new();
        assert_eq!(schemas.answer::<Page<App>>(), reference("AppPage"));
        schemas.answer::<KeyState>();
        let all = schemas.finish();
        assert_eq!(all["App"]["properties"]["created_at"]["format"], "date-time");
        assert_eq!(all["AppPage"]["properties"]["next_cursor"]["type"], json!(["string", "null"]));
        assert_eq!(all["KeyState"]["enum"], json!(["active", "expired", "revoked"]));
        assert!(all["KeyState"]["description"].as_str().unwrap().contains("\n- `expired`: Past its expiry."));
    }
}
