//! Chat completions under test: a server in front of one fake provider, and streams read line by line.

use mk::api::Service;
use mk::config::{Env, ServerArgs, ServerConfig};
use mk::storage::AttemptRow;
use serde_json::{Value, json};

use super::mk::Mk;
use super::provider::{Ask, FakeProvider, Turn};
use super::server::{NOON, Setup, TestServer, client};

/// A server in front of the provider `fake`, whose model `m` costs a dollar and two for a million tokens.
pub struct Desk {
    pub server: TestServer,
    pub provider: FakeProvider,
    pub key: String,
}

/// The configuration, with more lines for the provider's table and the end of the file, where `{base_url}` stands for
/// the provider's address.
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

/// A server and a provider that answers by `script`.
pub async fn desk(script: impl Fn(&Ask) -> Turn + Send + Sync + 'static) -> Desk {
    desk_with("", "", |setup| setup, script).await
}

/// The same with more configuration.
pub async fn desk_with(
    of_provider: &str,
    rest: &str,
    change: impl FnOnce(Setup) -> Setup,
    script: impl Fn(&Ask) -> Turn + Send + Sync + 'static,
) -> Desk {
    let provider = FakeProvider::start(script).await;
    let server = change(Setup::new(config(&provider.base_url, of_provider, rest))).start().await;
    let key = server.key(Service::Inference);
    Desk { server, provider, key }
}

/// A request for `fake/m`.
pub fn hello() -> Value {
    json!({"model": "fake/m", "messages": [{"role": "user", "content": "Hello"}]})
}

/// `hello`, streamed.
pub fn hello_stream() -> Value {
    json!({"model": "fake/m", "messages": [{"role": "user", "content": "Hello"}], "stream": true})
}

impl Desk {
    /// A request, ready to be sent; its id is `req-1`.
    pub fn post(&self, body: impl Into<reqwest::Body>) -> reqwest::RequestBuilder {
        self.post_as(&self.key, body)
    }

    /// The same with another key.
    pub fn post_as(&self, key: &str, body: impl Into<reqwest::Body>) -> reqwest::RequestBuilder {
        client()
            .post(format!("{}/inference/v1/chat/completions", self.server.base))
            .bearer_auth(key)
            .header("content-type", "application/json")
            .header("x-request-id", "req-1")
            .body(body)
    }

    /// `mk chat` as its user calls it.
    pub fn mk_chat(&self, arguments: &[&str]) -> Mk {
        let mk = Mk::new().args(["chat"]).args(arguments.iter().copied());
        mk.env("MK_SERVER", &self.server.base).env("MK_INFERENCE_KEY", &self.key)
    }

    /// Sends a request.
    pub async fn ask(&self, body: &Value) -> reqwest::Response {
        self.post(body.to_string()).send().await.unwrap()
    }

    /// Sends a request and reads its answer as JSON, whatever its status.
    pub async fn json(&self, body: &Value) -> (u16, Value) {
        let response = self.ask(body).await;
        let status = response.status().as_u16();
        (status, response.json().await.unwrap())
    }

    /// Sends a request whose answer is a stream, and reads it to its end.
    pub async fn stream(&self, body: &Value) -> String {
        let response = self.ask(body).await;
        assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
        assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
        response.text().await.unwrap()
    }

    /// The rows that the ledger holds of `req-1`.
    pub fn rows(&self) -> Vec<AttemptRow> {
        self.server.app.flush().unwrap();
        self.server.app.store.attempts_of("req-1").unwrap()
    }

    /// Model, outcome and tokens of each row.
    pub fn booked(&self) -> Vec<(String, String, u64, u64)> {
        let of = |row: AttemptRow| {
            (row.model.to_string(), row.outcome.into(), row.prompt_tokens, row.completion_tokens)
        };
        self.rows().into_iter().map(of).collect()
    }
}

/// The chunks of a stream that must end with the end mark and hold nothing but `data: ` lines.
pub fn chunks(raw: &str) -> Vec<Value> {
    let mut lines: Vec<&str> = raw.split_terminator("\n\n").collect();
    assert_eq!(lines.pop(), Some("data: [DONE]"), "{raw}");
    lines
        .into_iter()
        .map(|line| {
            let data = line.strip_prefix("data: ").unwrap_or_else(|| panic!("{line:?}"));
            serde_json::from_str(data).unwrap()
        })
        .collect()
}

/// The text of all deltas of a choice.
pub fn text_of(chunks: &[Value], index: u64) -> String {
    let choices = chunks.iter().flat_map(|chunk| chunk["choices"].as_array().unwrap());
    let of_index = choices.filter(|choice| choice["index"] == index);
    of_index.filter_map(|choice| choice["delta"]["content"].as_str()).collect()
}
