//! One operation of a description, put together in the order in which people read it.

use serde_json::{Map, Value, json};

use super::{headers, responses};

/// What may be done at an address.
pub(super) struct Operation(Map<String, Value>);

impl Operation {
    /// `id` is what generated clients call it.
    pub(super) fn new(tag: &str, id: &str, summary: &str, description: &str) -> Self {
        let mut map = Map::new();
        map.insert("operationId".to_owned(), id.into());
        map.insert("tags".to_owned(), json!([tag]));
        map.insert("summary".to_owned(), summary.into());
        map.insert("description".to_owned(), description.into());
        map.insert("security".to_owned(), json!([]));
        map.insert("parameters".to_owned(), json!([]));
        map.insert("responses".to_owned(), json!({}));
        Self(map).takes(&["RequestId"])
    }

    /// Any of these lets a caller in; `""` stands for none.
    pub(super) fn secured(mut self, schemes: &[&str]) -> Self {
        let one = |name: &&str| if name.is_empty() { json!({}) } else { json!({*name: []}) };
        self.0.insert("security".to_owned(), schemes.iter().map(one).collect());
        self
    }

    /// Parameters, by their names among the components.
    pub(super) fn takes(mut self, names: &[&str]) -> Self {
        if let Some(Value::Array(list)) = self.0.get_mut("parameters") {
            list.extend(names.iter().map(|name| json!({"$ref": format!("#/components/parameters/{name}")})));
        }
        self
    }

    /// A body in JSON, with examples by name.
    pub(super) fn body(mut self, schema: &Value, examples: &[(&str, Value)]) -> Self {
        let content = json(schema, examples);
        self.0.insert("requestBody".to_owned(), json!({"required": true, "content": content}));
        self
    }

    /// A body in JSON that may be left out.
    pub(super) fn may_have_body(self, schema: &Value, examples: &[(&str, Value)]) -> Self {
        let mut operation = self.body(schema, examples);
        if let Some(body) = operation.0.get_mut("requestBody") {
            body["required"] = false.into();
        }
        operation
    }

    /// An answer of success: what is in it by media type, and which headers it has beside those of all answers.
    pub(super) fn answers(mut self, status: u16, description: &str, content: Value, own: &[&str]) -> Self {
        let mut response = json!({"description": description, "headers": headers::of(own)});
        if !content.is_null() {
            response["content"] = content;
        }
        self.respond(status, response);
        self
    }

    /// Statuses of failure.
    pub(super) fn fails(mut self, statuses: &[u16]) -> Self {
        for status in statuses {
            self.respond(*status, responses::reference(*status));
        }
        self
    }

    /// The operation as the description holds it.
    pub(super) fn done(self) -> Value {
        Value::Object(self.0)
    }

    fn respond(&mut self, status: u16, response: Value) {
        if let Some(Value::Object(responses)) = self.0.get_mut("responses") {
            responses.insert(status.to_string(), response);
        }
    }
}

/// Content in JSON, with examples by name.
pub(super) fn json(schema: &Value, examples: &[(&str, Value)]) -> Value {
    json!({"application/json": media(schema, examples)})
}

/// Content in JSON with one example.
pub(super) fn json_like(schema: &Value, example: &Value) -> Value {
    json!({"application/json": {"schema": schema, "example": example}})
}

/// A text of some type.
pub(super) fn text(kind: &str, description: &str, example: &str) -> Value {
    json!({kind: {"schema": {"type": "string", "description": description}, "example": example}})
}

/// A text that is JSON: the `data` of an event.
pub(super) fn in_json(schema: &Value) -> Value {
    json!({"type": "string", "contentMediaType": "application/json", "contentSchema": schema})
}

fn media(schema: &Value, examples: &[(&str, Value)]) -> Value {
    let examples: Map<String, Value> =
        examples.iter().map(|(name, value)| ((*name).to_owned(), json!({"value": value}))).collect();
    json!({"schema": schema, "examples": examples})
}

/// Several media types of one answer.
pub(super) fn either(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) => {
            one.extend(other);
            Value::Object(one)
        }
        (one, _) => one,
    }
}

/// The address's operations, by method.
pub(super) fn at<const N: usize>(path: &str, operations: [(&str, Operation); N]) -> (String, Value) {
    let operations: Map<String, Value> =
        operations.into_iter().map(|(method, operation)| (method.to_owned(), operation.done())).collect();
    (path.to_owned(), Value::Object(operations))
}
