//! The schemas of the wire types, derived from the types themselves: names, optional fields and descriptions are those
//! that serde and rustdoc see.
//!
//! Requests and responses are distinguished: a field that may be omitted from a request is often always present in a
//! response. What the derive leaves open follows the API's conventions: names ending in `_at` are RFC 3339 times, and a
//! field of a response is either always present or never null. A request that is read field by field, or that none of
//! our types describes, has a schema written by hand.

use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

/// The JSON pointer to the schemas of a description.
const SCHEMAS_PATH: &str = "/components/schemas";

/// Collects the schemas that a description refers to.
pub(super) struct Schemas {
    responses: SchemaGenerator,
    requests: SchemaGenerator,
    handwritten: Map<String, Value>,
}

impl Schemas {
    pub(super) fn new() -> Self {
        Self {
            responses: generator(Contract::Serialize),
            requests: generator(Contract::Deserialize),
            handwritten: Map::new(),
        }
    }

    /// Adds a type that responses contain, and returns a reference to it.
    pub(super) fn response<T: JsonSchema>(&mut self) -> Value {
        self.responses.subschema_for::<T>().to_value()
    }

    /// Adds a type that requests contain, and returns a reference to it.
    pub(super) fn request<T: JsonSchema>(&mut self) -> Value {
        self.requests.subschema_for::<T>().to_value()
    }

    /// Adds a schema written by hand, and returns a reference to it.
    pub(super) fn add(&mut self, name: &str, schema: Value) -> Value {
        self.handwritten.insert(name.to_owned(), schema);
        reference(name)
    }

    /// All schemas, by name. Handwritten ones override derived ones.
    pub(super) fn finish(mut self) -> Map<String, Value> {
        let mut all = self.requests.take_definitions(true);
        let mut responses = self.responses.take_definitions(true);
        responses.values_mut().for_each(describe_output);
        all.extend(responses);
        all.extend(self.handwritten);
        all.values_mut().for_each(normalise);
        all.sort_keys();
        all
    }
}

/// A reference to a schema.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#{SCHEMAS_PATH}/{name}")})
}

/// The derived schema of a request type, to be narrowed by hand.
pub(super) fn request_schema<T: JsonSchema>() -> Value {
    let mut schema = generator(Contract::Deserialize).into_root_schema_for::<T>();
    // The schemas that it refers to are in the components.
    for key in ["$defs", "$schema", "title", "components"] {
        schema.remove(key);
    }
    schema.to_value()
}

fn generator(contract: Contract) -> SchemaGenerator {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = SCHEMAS_PATH.into();
    settings.meta_schema = None;
    settings.contract = contract;
    settings.into_generator()
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
    use crate::api::console::{App, KeyLimits, KeyState, Page};

    #[test]
    fn responses_and_requests_differ_in_required_fields() {
        let mut schemas = Schemas::new();
        schemas.response::<KeyLimits>();
        assert_eq!(schemas.finish()["KeyLimits"]["required"], json!(["per_minute", "per_day"]));
        let request = request_schema::<KeyLimits>();
        assert_eq!((&request["required"], &request["additionalProperties"]), (&Value::Null, &json!(false)));
    }

    #[test]
    fn conventions_of_the_api_are_described() {
        let mut schemas = Schemas::new();
        assert_eq!(schemas.response::<Page<App>>(), reference("AppPage"));
        schemas.response::<KeyState>();
        let all = schemas.finish();
        assert_eq!(all["App"]["properties"]["created_at"]["format"], "date-time");
        assert_eq!(all["AppPage"]["properties"]["next_cursor"]["type"], json!(["string", "null"]));
        assert_eq!(all["KeyState"]["enum"], json!(["active", "expired", "revoked"]));
        assert!(all["KeyState"]["description"].as_str().unwrap().contains("\n- `expired`: Past its expiry."));
    }
}
