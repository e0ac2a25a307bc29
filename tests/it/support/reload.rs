//! `mk serve` whose configuration file is written anew while it runs.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::mk::{Mk, operator};
use super::provider::{Ask, FakeProvider, Turn};
use super::scrape::Page;
use super::serve::{Serve, data_dir};
use super::server::client;

/// What the log says of a reload, whatever came of it.
const DONE: [&str; 3] =
    ["\"configuration reloaded\"", "the configuration is not reloaded", "\"nothing to reload: "];

/// A server in front of the provider `fake`.
pub struct Desk {
    pub provider: FakeProvider,
    pub server: Serve,
    pub call: Mk,
    pub key: String,
}

/// A request for a model.
pub fn hello(model: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": "Hello"}]})
}

impl Desk {
    /// Starts the server, with more lines for the provider's table and the end of its file.
    pub async fn start(
        of_provider: &str,
        rest: &str,
        script: impl Fn(&Ask) -> Turn + Send + Sync + 'static,
    ) -> Self {
        let provider = FakeProvider::start(script).await;
        Self::start_with(Mk::new(), provider, of_provider, rest).await
    }

    /// The same with a home of the caller's.
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

    /// Writes the file anew, with more lines at its top, in the provider's table and at its end.
    pub fn write(&self, top: &str, of_provider: &str, rest: &str) {
        self.write_raw(&text(&self.call, &self.provider.base_url, top, of_provider, rest));
    }

    /// Writes the file anew, all of it.
    pub fn write_raw(&self, text: &str) {
        // As careful programs do: nobody ever reads half of it.
        let beside = self.file().with_extension("new");
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(beside, self.file()).unwrap();
    }

    /// Asks for a reload and waits for it: what the log says of it.
    pub async fn reload(&self) -> Value {
        let is_done = |line: &str| DONE.iter().any(|words| line.contains(words));
        let before = self.server.logged().lines().filter(|line| is_done(line)).count();
        self.server.signal("HUP");
        let lines = self.server.until_logged(before + 1, is_done).await;
        serde_json::from_str(lines.last().unwrap()).unwrap()
    }

    /// Writes the file anew and has it read: what was changed, by names.
    pub async fn change(&self, top: &str, of_provider: &str, rest: &str) -> String {
        self.write(top, of_provider, rest);
        let said = self.reload().await;
        assert_eq!(said["message"], "configuration reloaded", "{said}");
        said["changed"].as_str().unwrap().to_owned()
    }

    /// A request for a completion, ready to be sent.
    pub fn post(&self, body: &Value) -> reqwest::RequestBuilder {
        client()
            .post(format!("{}/inference/v1/chat/completions", self.server.base))
            .bearer_auth(&self.key)
            .json(body)
    }

    /// Asks a model: the status, and the answer.
    pub async fn ask(&self, model: &str) -> (u16, Value) {
        let response = self.post(&hello(model)).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// Reads an address with the key, as JSON.
    pub async fn get(&self, path: &str) -> Value {
        let request = client().get(format!("{}{path}", self.server.base)).bearer_auth(&self.key);
        request.send().await.unwrap().json().await.unwrap()
    }

    /// The page of metrics.
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
