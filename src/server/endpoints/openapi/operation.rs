//! The operations, from the short form in `data/operations.json` to that of `OpenAPI`: what all have in common is added,
//! and names become references.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{reference, responses};
use crate::api::endpoint::{Door, Endpoint};

/// A method of an endpoint.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Operation {
    endpoint: Endpoint,
    /// Where `/openai/v1` has the same operation.
    also_at: Option<Endpoint>,
    method: String,
    /// Its name in generated clients.
    id: String,
    tag: String,
    summary: String,
    description: String,
    /// The alternative security schemes; an empty name stands for none.
    #[serde(default)]
    security: Vec<String>,
    #[serde(default)]
    parameters: Vec<String>,
    body: Option<Body>,
    responses: Vec<Response>,
    /// The statuses of the shared error responses.
    errors: Vec<u16>,
}

/// A JSON body, with examples by name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    schema: String,
    examples: Map<String, Value>,
    #[serde(default)]
    is_optional: bool,
}

/// A response, with its content in each form that it has.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Response {
    status: u16,
    description: String,
    /// Schema (or its name) and example.
    json: Option<(Value, Value)>,
    /// The schema of a frame, and the frames of an example.
    stream: Option<(Value, Vec<Map<String, Value>>)>,
    text: Option<Text>,
    /// The headers that it has besides the common ones.
    #[serde(default)]
    headers: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    r#type: String,
    description: String,
    example: String,
}

/// All paths with their operations by method.
pub(super) fn paths(operations: &[Operation]) -> Map<String, Value> {
    let mut paths = Map::new();
    for operation in operations {
        for endpoint in [Some(operation.endpoint), operation.also_at].into_iter().flatten() {
            let path = paths.entry(endpoint.path()).or_insert_with(|| json!({}));
            path[&operation.method] = operation.at(endpoint);
        }
    }
    paths
}

impl Operation {
    /// The operation as it is at this endpoint.
    fn at(&self, endpoint: Endpoint) -> Value {
        let (id, tag) = if endpoint == self.endpoint {
            (self.id.clone(), self.tag.as_str())
        } else {
            (format!("{}AtOpenAi", self.id), "Doors")
        };
        let parameters = ["RequestId"].into_iter().chain(self.parameters.iter().map(String::as_str));
        let one_scheme = |name: &String| if name.is_empty() { json!({}) } else { json!({ name: [] }) };
        let mut operation = json!({
            "operationId": id,
            "tags": [tag],
            "summary": self.summary,
            "description": self.description,
            "security": self.security.iter().map(one_scheme).collect::<Vec<_>>(),
            "parameters": parameters.map(|name| reference("parameters", name)).collect::<Vec<_>>(),
        });
        if let Some(body) = &self.body {
            operation["requestBody"] = body.described();
        }
        let own = self.responses.iter().map(|response| (response.status, response.described()));
        let door = Door::of(endpoint.path());
        let errors = self.errors.iter().map(|status| (*status, responses::behind(door, *status)));
        let all: Map<String, Value> =
            own.chain(errors).map(|(status, response)| (status.to_string(), response)).collect();
        operation["responses"] = all.into();
        operation
    }
}

impl Body {
    fn described(&self) -> Value {
        let examples: Map<String, Value> =
            self.examples.iter().map(|(name, value)| (name.clone(), json!({ "value": value }))).collect();
        let media = json!({"schema": schema(&self.schema.as_str().into()), "examples": examples});
        json!({"required": !self.is_optional, "content": {"application/json": media}})
    }
}

impl Response {
    fn described(&self) -> Value {
        let mut content = Map::new();
        let mut add = |kind: &str, schema: Value, example: Value| {
            content.insert(kind.to_owned(), json!({"schema": schema, "example": example}));
        };
        if let Some((kind, example)) = &self.json {
            add("application/json", schema(kind), example.clone());
        }
        if let Some((frame, example)) = &self.stream {
            add("text/event-stream", schema(frame), frames(example).into());
        }
        if let Some(text) = &self.text {
            let schema = json!({"type": "string", "description": text.description});
            add(&text.r#type, schema, text.example.as_str().into());
        }
        let headers = responses::headers(self.headers.iter().map(String::as_str));
        let mut response = json!({"description": self.description, "headers": headers});
        if !content.is_empty() {
            response["content"] = content.into();
        }
        response
    }
}

/// A schema, or the reference to the one of this name.
fn schema(schema: &Value) -> Value {
    schema.as_str().map_or_else(|| schema.clone(), |name| reference("schemas", name))
}

/// A stream as it is sent: a line for each field of a frame, and an empty one behind it.
fn frames(frames: &[Map<String, Value>]) -> String {
    let line = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}: {text}\n"),
        json => format!("{name}: {json}\n"),
    };
    frames.iter().map(|frame| frame.iter().map(line).collect::<String>() + "\n").collect()
}
