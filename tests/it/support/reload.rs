//! `mk serve` with a configuration file that changes while it runs.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::mk::{Mk, operator};
use super::provider::{FakeProvider, ModelRequest, Reply};
use super::scrape::Page;
use super::serve::{Serve, data_dir};
use super::server::client;

/// The log messages that end a reload, whatever its outcome.
const DONE: [&str; 3] = ["\"configuration reloaded", "configuration not reloaded", "\"nothing to reload: "];

/// A server process in front of the provider `fake`.
pub struct Gateway {
    pub provider: FakeProvider,
    pub server: Serve,
    pub call: Mk,
    pub key: String,
}

/// A request for this model.
pub fn hello(model: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": "Hello"}]})
}

impl Gateway {
    /// Starts the server. `of_provider` is added to the provider's table and `rest` to the end of the file.
    pub async fn start(
        of_provider: &str,
        rest: &str,
        script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let provider = FakeProvider::start(script).await;
        Self::start_with(Mk::new(), provider, of_provider, rest).await
    }

    /// As [`Self::start`], with a given home directory and provider.
    pub async fn start_with(mk: Mk, provider: FakeProvider, of_provider: &str, rest: &str) -> Self {
        let path = file(&mk);
        std::fs::write(&path, text(&mk, &provider.base_url, "", of_provider, rest)).unwrap();
        let data = data_dir(mk.home());
        let made =
            operator(&data, &["keys", "create", "--service", "inference", "--json"]).run_beside().await;
        let key = made.json()["key"].as_str().unwrap().to_owned();
        let call = mk.args(["serve"]).env("MK_CONFIG", path.to_str().unwrap());
        let server = Serve::start_beside(&call).await;
        Self { provider, server, call, key }
    }

    /// The configuration file.
    pub fn file(&self) -> PathBuf {
        file(&self.call)
    }

    /// Rewrites the file with these lines at the top, in the provider's table and at the end.
    pub fn write(&self, top: &str, of_provider: &str, rest: &str) {
        self.write_raw(&text(&self.call, &self.provider.base_url, top, of_provider, rest));
    }

    /// Replaces the whole file.
    pub fn write_raw(&self, text: &str) {
        // Renaming keeps the server from reading a half-written file.
        let beside = self.file().with_extension("new");
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(beside, self.file()).unwrap();
    }

    /// Triggers a reload and returns the log line that ends it.
    pub async fn reload(&self) -> Value {
        let is_done = |line: &str| DONE.iter().any(|words| line.contains(words));
        let before = self.server.logged().lines().filter(|line| is_done(line)).count();
        self.server.signal("HUP");
        let lines = self.server.until_logged(before + 1, is_done).await;
        serde_json::from_str(lines.last().unwrap()).unwrap()
    }

    /// Rewrites the file, reloads it, and returns the names of the changed settings.
    pub async fn change(&self, top: &str, of_provider: &str, rest: &str) -> String {
        self.write(top, of_provider, rest);
        let said = self.reload().await;
        assert_eq!(said["message"], "configuration reloaded", "{said}");
        said["changed"].as_str().unwrap().to_owned()
    }

    /// An unsent chat-completion request.
    pub fn post(&self, body: &Value) -> reqwest::RequestBuilder {
        client()
            .post(format!("{}/inference/v1/chat/completions", self.server.base))
            .bearer_auth(&self.key)
            .json(body)
    }

    /// Sends a request to a model; returns status and body.
    pub async fn ask(&self, model: &str) -> (u16, Value) {
        let response = self.post(&hello(model)).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// Sends a GET request with the key and returns the JSON body.
    pub async fn get(&self, path: &str) -> Value {
        let request = client().get(format!("{}{path}", self.server.base)).bearer_auth(&self.key);
        request.send().await.unwrap().json().await.unwrap()
    }

    /// Scrapes the metrics.
    pub async fn scrape(&self) -> Page {
        let response = client().get(format!("{}/metrics", self.server.base)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        Page::read(&response.text().await.unwrap())
    }
}

fn file(mk: &Mk) -> PathBuf {
    mk.home().join("server.toml")
}

fn text(mk: &Mk, base_url: &str, top: &str, of_provider: &str, rest: &str) -> String {
    let data = data_dir(mk.home());
    let (data, rest) = (data.display(), rest.replace("{base_url}", base_url));
    format!(
        "listen = \"127.0.0.1:0\"\ndata_dir = \"{data}\"\n{top}\n[providers.fake]\nkind = \"openai\"\n\
         base_url = \"{base_url}\"\nretries = 0\n{of_provider}\n{rest}\n"
    )
}
