//! Chat completions: a server in front of one fake provider, and streams read line by line.

use mk::api::Service;
use mk::config::{Env, ServerArgs, ServerConfig};
use mk::storage::AttemptRow;
use serde_json::{Value, json};

use super::mk::Mk;
use super::provider::{FakeProvider, ModelRequest, Reply};
use super::server::{NOON, Setup, TestServer, client};

/// A server in front of the provider `fake`, whose model `m` costs $1 per million input tokens and $2 per million
/// output tokens.
pub struct Gateway {
    pub server: TestServer,
    pub provider: FakeProvider,
    pub key: String,
}

/// The server configuration. `of_provider` is added to the provider's table and `rest` to the end of the file, where
/// `{base_url}` stands for the provider's address.
pub fn config(base_url: &str, of_provider: &str, rest: &str) -> ServerConfig {
    let rest = rest.replace("{base_url}", base_url);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("server.toml");
    let text = format!(
        r#"
listen = "127.0.0.1:0"
data_dir = "/nowhere"
[providers.fake]
kind = "openai"
base_url = "{base_url}"
retries = 0
{of_provider}
[providers.fake.models.m]
input_usd_per_mtok = 1.0
output_usd_per_mtok = 2.0
[providers.sandbox]
kind = "sandbox"
[verify]
extractor = "fake/m"
panel = ["fake/m", "fake/n"]
{rest}
"#
    );
    std::fs::write(&file, text).unwrap();
    let arguments = ServerArgs { config: Some(file), ..ServerArgs::default() };
    mk::config::load_server(&arguments, &Env::bare([], NOON)).unwrap_or_else(|error| panic!("{error:?}"))
}

/// A server and a provider that replies according to `script`.
pub async fn gateway(script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static) -> Gateway {
    gateway_with("", "", |setup| setup, script).await
}

/// As [`gateway`], with more configuration.
pub async fn gateway_with(
    of_provider: &str,
    rest: &str,
    change: impl FnOnce(Setup) -> Setup,
    script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static,
) -> Gateway {
    let provider = FakeProvider::start(script).await;
    let server = change(Setup::new(config(&provider.base_url, of_provider, rest))).start().await;
    let key = server.key(Service::Inference);
    Gateway { server, provider, key }
}

/// A request for `fake/m`.
pub fn hello() -> Value {
    json!({"model": "fake/m", "messages": [{"role": "user", "content": "Hello"}]})
}

/// `hello`, streamed.
pub fn hello_stream() -> Value {
    json!({"model": "fake/m", "messages": [{"role": "user", "content": "Hello"}], "stream": true})
}

impl Gateway {
    /// An unsent request whose id is `req-1`.
    pub fn post(&self, body: impl Into<reqwest::Body>) -> reqwest::RequestBuilder {
        self.post_as(&self.key, body)
    }

    /// As [`Self::post`], with another key.
    pub fn post_as(&self, key: &str, body: impl Into<reqwest::Body>) -> reqwest::RequestBuilder {
        client()
            .post(format!("{}/inference/v1/chat/completions", self.server.base))
            .bearer_auth(key)
            .header("content-type", "application/json")
            .header("x-request-id", "req-1")
            .body(body)
    }

    /// An `mk chat` command against this server.
    pub fn mk_chat(&self, arguments: &[&str]) -> Mk {
        let mk = Mk::new().args(["chat"]).args(arguments.iter().copied());
        mk.env("MK_SERVER", &self.server.base).env("MK_INFERENCE_KEY", &self.key)
    }

    /// Sends a request.
    pub async fn ask(&self, body: &Value) -> reqwest::Response {
        self.post(body.to_string()).send().await.unwrap()
    }

    /// Sends a request and reads the response as JSON, whatever its status.
    pub async fn json(&self, body: &Value) -> (u16, Value) {
        let response = self.ask(body).await;
        let status = response.status().as_u16();
        (status, response.json().await.unwrap())
    }

    /// Sends a streaming request and reads the response to the end.
    pub async fn stream(&self, body: &Value) -> String {
        let response = self.ask(body).await;
        assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
        assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
        response.text().await.unwrap()
    }

    /// The ledger's rows for `req-1`.
    pub fn rows(&self) -> Vec<AttemptRow> {
        self.server.app.flush().unwrap();
        self.server.app.store.attempts_of("req-1").unwrap()
    }

    /// Model, outcome, prompt tokens and completion tokens of each row.
    pub fn booked(&self) -> Vec<(String, String, u64, u64)> {
        let of = |row: AttemptRow| {
            (row.model.to_string(), row.outcome.into(), row.prompt_tokens, row.completion_tokens)
        };
        self.rows().into_iter().map(of).collect()
    }
}

/// The chunks of a stream, which must consist of `data: ` lines and signs of life only, and end with `[DONE]`.
pub fn chunks(raw: &str) -> Vec<Value> {
    let mut lines: Vec<&str> = raw.split_terminator("\n\n").filter(|line| *line != ": keep-alive").collect();
    assert_eq!(lines.pop(), Some("data: [DONE]"), "{raw}");
    lines
        .into_iter()
        .map(|line| {
            let data = line.strip_prefix("data: ").unwrap_or_else(|| panic!("{line:?}"));
            serde_json::from_str(data).unwrap()
        })
        .collect()
}

/// The concatenated text of one choice's deltas.
pub fn text_of(chunks: &[Value], index: u64) -> String {
    let choices = chunks.iter().flat_map(|chunk| chunk["choices"].as_array().unwrap());
    let of_index = choices.filter(|choice| choice["index"] == index);
    of_index.filter_map(|choice| choice["delta"]["content"].as_str()).collect()
}
