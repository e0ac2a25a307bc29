//! A builder for the operations of the description, with methods in the order in which people read an operation.

use serde_json::{Map, Value, json};

use super::schemas::Schemas;
use super::{headers, responses};
use crate::api::endpoint::{Door, Endpoint};

/// A method of a path.
pub(super) struct Operation(Map<String, Value>);

impl Operation {
    /// `id` becomes the method's name in generated clients.
    pub(super) fn new(tag: &str, id: &str, summary: &str, description: &str) -> Self {
        let mut map = Map::new();
        map.insert("operationId".to_owned(), id.into());
        map.insert("tags".to_owned(), json!([tag]));
        map.insert("summary".to_owned(), summary.into());
        map.insert("description".to_owned(), description.into());
        map.insert("security".to_owned(), json!([]));
        map.insert("parameters".to_owned(), json!([]));
        map.insert("responses".to_owned(), json!({}));
        Self(map).parameters(&["RequestId"])
    }

    /// Sets another tag.
    pub(super) fn tagged(mut self, tag: &str) -> Self {
        self.0.insert("tags".to_owned(), json!([tag]));
        self
    }

    /// Sets the alternative security schemes; `""` stands for none.
    pub(super) fn secured(mut self, schemes: &[&str]) -> Self {
        let one = |name: &&str| if name.is_empty() { json!({}) } else { json!({*name: []}) };
        self.0.insert("security".to_owned(), schemes.iter().map(one).collect());
        self
    }

    /// Adds parameters, by their names among the components.
    pub(super) fn parameters(mut self, names: &[&str]) -> Self {
        if let Some(Value::Array(list)) = self.0.get_mut("parameters") {
            list.extend(names.iter().map(|name| json!({"$ref": format!("#/components/parameters/{name}")})));
        }
        self
    }

    /// Sets a required JSON body, with examples by name.
    pub(super) fn body(mut self, schema: &Value, examples: &[(&str, Value)]) -> Self {
        let content = json(schema, examples);
        self.0.insert("requestBody".to_owned(), json!({"required": true, "content": content}));
        self
    }

    /// Sets an optional JSON body.
    pub(super) fn optional_body(self, schema: &Value, examples: &[(&str, Value)]) -> Self {
        let mut operation = self.body(schema, examples);
        if let Some(body) = operation.0.get_mut("requestBody") {
            body["required"] = false.into();
        }
        operation
    }

    /// Adds a response: its content by media type, and the headers it has besides the common ones.
    pub(super) fn response(mut self, status: u16, description: &str, content: Value, own: &[&str]) -> Self {
        let mut response = json!({"description": description, "headers": headers::references(own)});
        if !content.is_null() {
            response["content"] = content;
        }
        self.insert_response(status, response);
        self
    }

    /// Adds the shared error responses of these statuses.
    pub(super) fn errors(mut self, statuses: &[u16]) -> Self {
        for status in statuses {
            self.insert_response(*status, responses::reference(*status));
        }
        self
    }

    /// Adds the error responses of these statuses as a door has them.
    pub(super) fn errors_behind(mut self, door: Door, schemas: &mut Schemas, statuses: &[u16]) -> Self {
        for status in statuses {
            self.insert_response(*status, responses::behind(door, schemas, *status));
        }
        self
    }

    /// The operation as JSON.
    pub(super) fn build(self) -> Value {
        Value::Object(self.0)
    }

    fn insert_response(&mut self, status: u16, response: Value) {
        if let Some(Value::Object(responses)) = self.0.get_mut("responses") {
            responses.insert(status.to_string(), response);
        }
    }
}

/// JSON content, with examples by name.
pub(super) fn json(schema: &Value, examples: &[(&str, Value)]) -> Value {
    json!({"application/json": media(schema, examples)})
}

/// JSON content with one example.
pub(super) fn json_with_example(schema: &Value, example: &Value) -> Value {
    json!({"application/json": {"schema": schema, "example": example}})
}

/// Text content of some media type.
pub(super) fn text(kind: &str, description: &str, example: &str) -> Value {
    json!({kind: {"schema": {"type": "string", "description": description}, "example": example}})
}

/// The schema of a string that contains JSON, such as the `data` of an event.
pub(super) fn json_string(schema: &Value) -> Value {
    json!({"type": "string", "contentMediaType": "application/json", "contentSchema": schema})
}

fn media(schema: &Value, examples: &[(&str, Value)]) -> Value {
    let examples: Map<String, Value> =
        examples.iter().map(|(name, value)| ((*name).to_owned(), json!({"value": value}))).collect();
    json!({"schema": schema, "examples": examples})
}

/// Content with several media types.
pub(super) fn either(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) => {
            one.extend(other);
            Value::Object(one)
        }
        (one, _) => one,
    }
}

/// An endpoint's path with its operations by method.
pub(super) fn path<const N: usize>(
    endpoint: Endpoint,
    operations: [(&str, Operation); N],
) -> (String, Value) {
    let operations: Map<String, Value> =
        operations.into_iter().map(|(method, operation)| (method.to_owned(), operation.build())).collect();
    (endpoint.path().to_owned(), Value::Object(operations))
}
