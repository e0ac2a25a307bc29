//! The console API as a program with a console key uses it.

use mk::api::Service;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use super::panel::idle_server;
use super::server::{TestServer, client};

/// A client with a console key that has no rate limits.
#[derive(Clone)]
pub struct Console {
    pub base: String,
    pub key: String,
    pub key_id: String,
}

/// A server whose models are never called, and a client of its console API.
pub async fn server() -> (TestServer, Console) {
    let server = idle_server().await;
    let console = Console::of(&server);
    (server, console)
}

impl Console {
    /// Creates a console key called `ops`.
    pub fn of(server: &TestServer) -> Self {
        let (key, key_id) = server.key_with(Service::Console, |new| {
            new.name = Some("ops".to_owned());
            (new.per_minute, new.per_day) = (Some(0), Some(0));
        });
        Self { base: server.base.clone(), key, key_id }
    }

    /// An unsent request.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        client().request(method, format!("{}{path}", self.base)).bearer_auth(&self.key)
    }

    /// Sends a request and asserts that the response may not be cached.
    pub async fn ask(request: RequestBuilder) -> Response {
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["cache-control"], "no-store", "{response:?}");
        assert!(response.headers().contains_key("x-ratelimit-remaining"), "{response:?}");
        response
    }

    /// Sends a request and returns status and body.
    async fn read(request: RequestBuilder) -> (u16, Value) {
        let response = Self::ask(request).await;
        let status = response.status().as_u16();
        (status, response.json().await.unwrap())
    }

    /// Sends a GET request.
    pub async fn get(&self, path: &str) -> (u16, Value) {
        Self::read(self.request(Method::GET, path)).await
    }

    /// Sends a request with a JSON body.
    pub async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        Self::read(self.request(method, path).json(body)).await
    }

    /// Sends a POST request.
    pub async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send(Method::POST, path, body).await
    }

    /// Sends a PATCH request.
    pub async fn patch(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send(Method::PATCH, path, body).await
    }

    /// Sends a DELETE request.
    pub async fn delete(&self, path: &str) -> (u16, Value) {
        Self::read(self.request(Method::DELETE, path)).await
    }

    /// Creates an app and returns its id.
    pub async fn app(&self, name: &str) -> String {
        let (status, app) = self.post("/v1/apps", &json!({"name": name})).await;
        assert_eq!(status, 201, "{app}");
        text(&app["id"])
    }

    /// Creates a key for an app; returns the key and the path of its record.
    pub async fn key(&self, app: &str, body: &Value) -> (String, String) {
        let (status, key) = self.post(&format!("/v1/apps/{app}/keys"), body).await;
        assert_eq!(status, 201, "{key}");
        (text(&key["key"]), format!("/v1/apps/{app}/keys/{}", text(&key["id"])))
    }

    /// All records of a list, page by page. `path` ends in `?` or `&`.
    pub async fn walk(&self, path: &str, limit: usize) -> Vec<Value> {
        let mut records = Vec::new();
        let mut cursor = String::new();
        loop {
            let (status, mut page) = self.get(&format!("{path}limit={limit}{cursor}")).await;
            assert_eq!(status, 200, "{page}");
            let data = page["data"].as_array_mut().unwrap();
            assert!(data.len() <= limit, "{data:?}");
            let is_full = data.len() == limit;
            records.append(data);
            match &page["next_cursor"] {
                Value::Null => return records,
                next => cursor = format!("&cursor={}", text(next)),
            }
            assert!(is_full, "a short page is followed by another");
        }
    }

    /// The whole audit log, oldest first.
    pub async fn audit(&self) -> Vec<Value> {
        let mut entries = self.walk("/v1/audit?", 200).await;
        entries.reverse();
        entries
    }
}

/// The text of a JSON string.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}")).to_owned()
}

/// The ids of records.
pub fn ids(records: &[Value]) -> Vec<String> {
    records.iter().map(|record| text(&record["id"])).collect()
}
