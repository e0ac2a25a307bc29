//! `/openapi.json` as its readers use it: references are resolved, values are validated against their schemas.

use jsonschema::Validator;
use reqwest::Response;
use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};

use super::server::{TestServer, client};

/// A server's `OpenAPI` document.
pub struct Description(pub Value);

/// A response read to the end.
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    /// Reads a response to the end.
    pub async fn read(response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Self { status, headers, text: response.text().await.unwrap() }
    }
}

impl Description {
    /// Fetches the document from a server.
    pub async fn of(server: &TestServer) -> Self {
        let response = client().get(format!("{}/openapi.json", server.base)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        Self(response.json().await.unwrap())
    }

    /// The operations: path, method and description.
    pub fn operations(&self) -> Vec<(String, String, &Value)> {
        let item = |(path, item): (&String, &'_ Value)| (path.clone(), item.clone());
        let paths: Vec<(String, Value)> = self.0["paths"].as_object().unwrap().iter().map(item).collect();
        let methods = paths.iter().flat_map(|(path, item)| {
            item.as_object().unwrap().keys().map(|method| (path.clone(), method.clone())).collect::<Vec<_>>()
        });
        methods.map(|(path, method)| (path.clone(), method.clone(), &self.0["paths"][path][method])).collect()
    }

    /// Resolves a reference; any other value is returned unchanged.
    pub fn follow<'a>(&'a self, value: &'a Value) -> &'a Value {
        let Some(place) = value.get("$ref").and_then(Value::as_str) else { return value };
        let pointer =
            place.strip_prefix('#').unwrap_or_else(|| panic!("{place} points outside the document"));
        self.0.pointer(pointer).unwrap_or_else(|| panic!("{place} does not resolve"))
    }

    /// A validator for a schema of the document.
    pub fn validator(&self, schema: &Value) -> Validator {
        let whole = json!({"allOf": [schema], "components": self.0["components"]});
        jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .should_validate_formats(true)
            .build(&whole)
            .unwrap_or_else(|error| panic!("{schema} is not a schema: {error}"))
    }

    /// A validator for one of the named schemas.
    pub fn named(&self, name: &str) -> Validator {
        self.validator(&json!({"$ref": format!("#/components/schemas/{name}")}))
    }

    /// Asserts that a value matches its schema.
    pub fn check(&self, schema: &Value, value: &Value, of: &str) {
        let validator = self.validator(schema);
        let errors: Vec<String> =
            validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{of}: {errors:#?} in {value}");
    }

    /// Asserts that a body is what its media type promises: JSON, or frames whose data match their schemas.
    pub fn check_content(&self, kind: &str, media: &Value, text: &str, of: &str) {
        match kind {
            "application/json" => {
                let value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{of}: not JSON: {text}"));
                self.check(&media["schema"], &value, of);
            }
            "text/event-stream" => self.check_frames(&media["schema"], text, of),
            _ => self.check(&media["schema"], &text.into(), of),
        }
    }

    fn check_frames(&self, schema: &Value, text: &str, of: &str) {
        let mut seen = 0;
        for frame in text.split_terminator("\n\n").filter(|frame| !frame.starts_with(": ")) {
            let field =
                |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.into()));
            let event: Map<String, Value> = frame.lines().filter_map(field).collect();
            let event = Value::Object(event);
            self.check(schema, &event, of);
            let data = event["data"].as_str().unwrap();
            if data != "[DONE]" {
                let data = serde_json::from_str(data).unwrap();
                self.check(self.data_schema(schema, &event), &data, &format!("{of}, {event}"));
            }
            seen += 1;
        }
        assert!(seen > 0, "{of}: a stream without frames: {text:?}");
    }

    /// The schema of an event's data, which validators do not look into.
    fn data_schema<'a>(&'a self, schema: &'a Value, event: &Value) -> &'a Value {
        let schema = self.follow(schema);
        let all = schema["oneOf"].as_array().map_or(std::slice::from_ref(schema), Vec::as_slice);
        let one = all.iter().find(|one| one["properties"]["event"]["const"] == event["event"]).unwrap();
        let data = &one["properties"]["data"];
        let is_json = |one: &&Value| one.get("contentSchema").is_some();
        let data = data["anyOf"].as_array().and_then(|any| any.iter().find(is_json)).unwrap_or(data);
        &data["contentSchema"]
    }

    /// Asserts that a response is documented: its status, headers, media type and content.
    pub fn check_answer(&self, method: &str, path: &str, answer: &Answer) {
        let Answer { status, headers, text } = answer;
        let of = format!("{method} {path}: {status} {text:.200}");
        let described = &self.0["paths"][path][method.to_ascii_lowercase()]["responses"][status.to_string()];
        assert!(described.is_object(), "not documented: {of}");
        let described = self.follow(described);
        for (name, header) in described["headers"].as_object().unwrap() {
            let header = self.follow(header);
            let Some(value) = headers.get(name) else {
                assert_ne!(header["required"], true, "missing {name}: {of}");
                continue;
            };
            let value = value.to_str().unwrap();
            let whole = value.parse::<i64>().map_or_else(|_| value.into(), Value::from);
            self.check(&header["schema"], &whole, &format!("{name} of {of}"));
        }
        match described.get("content") {
            None => assert_eq!(text, "", "{of}"),
            Some(content) => {
                let kind = headers["content-type"].to_str().unwrap().split(';').next().unwrap().to_owned();
                let media = content.get(&kind).unwrap_or_else(|| panic!("not documented as {kind}: {of}"));
                self.check_content(&kind, media, text, &of);
            }
        }
    }
}
