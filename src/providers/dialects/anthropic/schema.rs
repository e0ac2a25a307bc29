//! JSON schemas in the subset that the Messages API accepts for structured outputs and strict tools.
//!
//! The API refuses a schema with anything beyond that subset (Anthropic's guide to structured outputs). As Anthropic's
//! own SDKs do, every object is closed, and what the subset cannot express goes into the description, for the model to
//! read. What must hold: nothing of a schema is lost, except what only names its dialect, and that an object with named
//! properties may have more.

use serde_json::{Map, Value, json};

use crate::providers::Failure;
use crate::providers::request::unsupported;

/// Deeper than any useful schema. Schemas come from callers, so the depth of the recursion must be bounded.
const MAX_DEPTH: usize = 64;

/// The formats of strings that the API knows.
const STRING_FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// What only says in which dialect a schema is written, and what it is called there.
const DIALECT_FIELDS: [&str; 3] = ["$schema", "$id", "$comment"];

/// The schema in the subset; `path` is its own in the caller's request.
///
/// # Errors
/// [`Failure::Unsupported`] if the subset has no schema for the same values.
pub(super) fn strict(schema: &Value, path: &str) -> Result<Value, Failure> {
    subset(schema, path, 0)
}

fn subset(schema: &Value, path: &str, depth: usize) -> Result<Value, Failure> {
    if depth > MAX_DEPTH {
        return Err(unsupported(
            path,
            format!("Anthropic does not accept schemas with more than {MAX_DEPTH} levels"),
        ));
    }
    let Some(fields) = schema.as_object() else { return Ok(schema.clone()) };
    let inner = |schema: &Value| subset(schema, path, depth + 1);
    let properties = fields.get("properties").and_then(Value::as_object);
    let names_properties = properties.is_some_and(|properties| !properties.is_empty());
    let (mut out, mut rest) = (Map::new(), Map::new());
    for (name, value) in fields {
        let sorted = match (name.as_str(), value) {
            (name, _) if DIALECT_FIELDS.contains(&name) => continue,
            ("$defs" | "definitions", Value::Object(schemas)) => Some((name.as_str(), each(schemas, inner)?)),
            // Of what stands beside a reference, only the description is certain to be read.
            ("description", _) => Some((name.as_str(), value.clone())),
            (_, _) if fields.contains_key("$ref") => None,
            ("type" | "enum" | "const" | "default" | "title", _) => Some((name.as_str(), value.clone())),
            ("anyOf" | "allOf", Value::Array(schemas)) => Some((name.as_str(), all(schemas, inner)?)),
            ("oneOf", Value::Array(schemas)) if !fields.contains_key("anyOf") => {
                Some(("anyOf", all(schemas, inner)?))
            }
            ("properties", Value::Object(schemas)) => Some(("properties", each(schemas, inner)?)),
            ("required", _) => Some(("required", value.clone())),
            ("items", Value::Object(_)) => Some(("items", inner(value)?)),
            ("minItems", _) if matches!(value.as_u64(), Some(0 | 1)) => Some(("minItems", value.clone())),
            ("format", Value::String(format)) if STRING_FORMATS.contains(&format.as_str()) => {
                Some(("format", value.clone()))
            }
            ("additionalProperties", Value::Bool(false)) => continue,
            ("additionalProperties", _) if names_properties && is_anything(value) => continue,
            ("additionalProperties", _) => return Err(refused_map(path)),
            _ => None,
        };
        match sorted {
            Some((name, value)) => out.insert(name.to_owned(), value),
            None => rest.insert(name.clone(), value.clone()),
        };
    }
    if let Some(reference) = rest.remove("$ref") {
        refer(reference, &mut out, !rest.is_empty());
    }
    widen_single(&mut out);
    close(&mut out);
    describe(&rest, &mut out);
    Ok(Value::Object(out))
}

/// Whether a schema allows everything.
fn is_anything(schema: &Value) -> bool {
    *schema == true || schema.as_object().is_some_and(Map::is_empty)
}

/// Refuses an object whose properties have any names. Closed, it would always be empty.
fn refused_map(path: &str) -> Failure {
    let message = "Anthropic accepts only objects whose properties are all named in `properties`, so \
        `additionalProperties` must be false";
    unsupported(path, message)
}

fn each(
    schemas: &Map<String, Value>,
    inner: impl Fn(&Value) -> Result<Value, Failure>,
) -> Result<Value, Failure> {
    let schemas = schemas.iter().map(|(name, schema)| Ok((name.clone(), inner(schema)?)));
    schemas.collect::<Result<Map<_, _>, _>>().map(Value::Object)
}

fn all(schemas: &[Value], inner: impl Fn(&Value) -> Result<Value, Failure>) -> Result<Value, Failure> {
    schemas.iter().map(inner).collect::<Result<Vec<_>, _>>().map(Value::Array)
}

/// A reference stands alone; with a description, it is the only one of several schemas.
fn refer(reference: Value, out: &mut Map<String, Value>, has_rest: bool) {
    if has_rest || out.contains_key("description") {
        out.insert("anyOf".to_owned(), json!([{"$ref": reference}]));
    } else {
        out.insert("$ref".to_owned(), reference);
    }
}

/// The API accepts no reference in `allOf`; one of one is the same as all of one.
fn widen_single(out: &mut Map<String, Value>) {
    let is_single = out.get("allOf").and_then(Value::as_array).is_some_and(|schemas| schemas.len() == 1);
    if is_single
        && !out.contains_key("anyOf")
        && let Some(schemas) = out.remove("allOf")
    {
        out.insert("anyOf".to_owned(), schemas);
    }
}

/// Closes an object: the API requires it, and the type as well.
fn close(out: &mut Map<String, Value>) {
    if out.contains_key("properties") && !out.contains_key("type") {
        out.insert("type".to_owned(), json!("object"));
    }
    let is_object = match out.get("type") {
        Some(Value::Array(types)) => types.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
        None => false,
    };
    if is_object {
        out.entry("properties").or_insert_with(|| json!({}));
        out.insert("additionalProperties".to_owned(), json!(false));
    }
}

/// Appends what the subset cannot express to the description.
fn describe(rest: &Map<String, Value>, out: &mut Map<String, Value>) {
    if rest.is_empty() {
        return;
    }
    let listed: Vec<String> = rest.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let listed = format!("{{{}}}", listed.join(", "));
    let text = match out.get("description").and_then(Value::as_str) {
        Some(description) => format!("{description}\n\n{listed}"),
        None => listed,
    };
    out.insert("description".to_owned(), json!(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subset_of(schema: &Value) -> Value {
        strict(schema, "schema").unwrap()
    }

    #[test]
    fn objects_are_closed_at_every_level() {
        let object = |further: &Value| {
            let mut object = json!({"type": "object", "properties": {"a": {"type": "string"}}});
            for (name, value) in further.as_object().unwrap() {
                object[name] = value.clone();
            }
            object
        };
        let (open, closed) = (object(&json!({})), object(&json!({"additionalProperties": false})));
        for holds in [
            |inner: &Value| json!({"type": "array", "items": inner, "minItems": 1}),
            |inner: &Value| json!({"$defs": {"x": inner}, "$ref": "#/$defs/x"}),
            |inner: &Value| json!({"definitions": {"x": inner}, "anyOf": [{"$ref": "#/definitions/x"}]}),
            |inner: &Value| json!({"anyOf": [inner, {"type": "null"}], "title": "T", "default": null}),
            |inner: &Value| json!({"allOf": [inner, inner]}),
        ] {
            assert_eq!(subset_of(&holds(&open)), holds(&closed));
            assert_eq!(subset_of(&holds(&closed)), holds(&closed));
        }
        for anything in [json!(true), json!({})] {
            assert_eq!(subset_of(&object(&json!({"additionalProperties": anything}))), closed);
        }
        assert_eq!(
            subset_of(&json!({"type": ["object", "null"]})),
            json!({"type": ["object", "null"], "properties": {}, "additionalProperties": false})
        );
        assert_eq!(subset_of(&json!({"properties": {}}))["additionalProperties"], false);
    }

    #[test]
    fn constraints_beyond_the_subset_are_described() {
        let schema =
            json!({"type": "integer", "description": "A die.", "minimum": 1, "maximum": 6, "enum": [1, 6]});
        let expected =
            json!({"type": "integer", "description": "A die.\n\n{minimum: 1, maximum: 6}", "enum": [1, 6]});
        assert_eq!(subset_of(&schema), expected);
        for (name, value) in [
            ("pattern", json!("^a$")),
            ("format", json!("regex")),
            ("minItems", json!(2)),
            ("uniqueItems", json!(true)),
            ("not", json!({"const": 1})),
        ] {
            let described = format!("{{{name}: {value}}}");
            let mut schema = json!({"type": "string"});
            schema[name] = value;
            assert_eq!(subset_of(&schema), json!({"type": "string", "description": described}));
        }
        for kept in [
            json!({"type": "string", "format": "date"}),
            json!({"type": "string", "const": "a"}),
            json!({"type": ["string", "null"]}),
            json!(true),
        ] {
            assert_eq!(subset_of(&kept), kept);
        }
        assert_eq!(subset_of(&json!({"$schema": "x", "type": "null"})), json!({"type": "null"}));
    }

    #[test]
    fn alternatives_and_references_take_the_form_that_is_accepted() {
        let (one, two) = (json!({"type": "string"}), json!({"type": "null"}));
        assert_eq!(subset_of(&json!({"oneOf": [one, two]})), json!({"anyOf": [one, two]}));
        let reference = json!({"$ref": "#/$defs/x"});
        assert_eq!(subset_of(&json!({"allOf": [reference]})), json!({"anyOf": [reference]}));
        assert_eq!(
            subset_of(&json!({"$ref": "#/$defs/x", "description": "An x.", "minLength": 1})),
            json!({"anyOf": [reference], "description": "An x.\n\n{minLength: 1}"})
        );
    }

    #[test]
    fn what_cannot_be_expressed_is_refused() {
        let map = |of: Value| json!({"type": "object", "additionalProperties": of});
        let mut half_a_map = map(json!({"type": "string"}));
        half_a_map["properties"] = json!({"a": {"type": "string"}});
        let mut deep = json!({"type": "string"});
        for _ in 0..=MAX_DEPTH {
            deep = json!({"type": "array", "items": deep});
        }
        for schema in [map(json!({"type": "string"})), map(json!(true)), map(json!({})), half_a_map, deep] {
            let refused = strict(&schema, "tools[0]");
            assert!(matches!(refused, Err(Failure::Unsupported { param, .. }) if param == "tools[0]"));
        }
    }
}
