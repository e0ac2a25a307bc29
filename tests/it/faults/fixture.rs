//! A server process with one key for each service, and the requests that are sent to it while something is wrong.

use std::path::{Path, PathBuf};

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::support::chat::hello;
use crate::support::database::copy;
use crate::support::mk::{Mk, operator};
use crate::support::panel::finds_eiffel;
use crate::support::provider::{FakeProvider, Reply};
use crate::support::serve::{self, Serve};
use crate::support::server::client;

/// A provider that serves the usual panel and the model `m`.
pub(super) async fn provider() -> FakeProvider {
    FakeProvider::start(|ask| match (ask.model.as_str(), ask.task.as_str()) {
        ("m", _) => Reply::Text("four".to_owned()),
        (_, "claims") => finds_eiffel(),
        _ => ask.choose("Paris"),
    })
    .await
}

/// Where the server has its data directory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// On the same file system as everything else.
    Plain,
    /// On a file system mounted in a namespace that only the server is in.
    Mounted,
}

/// A running server and its keys.
pub(super) struct Fixture {
    pub(super) server: Serve,
    /// Kept because its home directory holds the server's files.
    _call: Mk,
    pub(super) data: PathBuf,
    pub(super) verify: String,
    pub(super) chat: String,
    console: String,
    app: String,
}

impl Fixture {
    /// Starts a server in front of `provider`.
    pub(super) async fn start(provider: &FakeProvider) -> Self {
        Self::of(serve::call(&provider.base_url, ""), View::Plain).await
    }

    /// Starts a server with this command.
    pub(super) async fn of(call: Mk, view: View) -> Self {
        let server = Serve::start_beside(&call).await;
        let (own, process) = (serve::data_dir(call.home()), server.process().to_string());
        let data = match view {
            View::Plain => own.clone(),
            View::Mounted => {
                Path::new("/proc").join(&process).join("root").join(own.strip_prefix("/").unwrap())
            }
        };
        let enter = ["nsenter", "--user", "--mount", "--preserve-credentials", "--target", &process];
        let key = async |service| {
            let arguments =
                ["keys", "create", "--service", service, "--per-minute", "0", "--per-day", "0", "--json"];
            let command = operator(&own, &arguments);
            let command = if view == View::Mounted { command.through(&enter) } else { command };
            let made = command.run_beside().await;
            assert_eq!(made.code(), 0, "{made:?}");
            made.json()
        };
        let text = |made: &Value, name: &str| made[name].as_str().unwrap().to_owned();
        let (verify, chat, console) = (key("verify").await, key("inference").await, key("console").await);
        let app = text(&verify, "app_id");
        let (verify, chat, console) = (text(&verify, "key"), text(&chat, "key"), text(&console, "key"));
        Self { server, _call: call, data, verify, chat, console, app }
    }

    /// Sends a request to the console API.
    pub(super) async fn write(&self, method: Method, path: &str, body: &Value) -> Response {
        let url = format!("{}/v1/apps/{}/keys{path}", self.server.base, self.app);
        client().request(method, url).bearer_auth(&self.console).json(body).send().await.unwrap()
    }

    /// Creates a key through the console API.
    pub(super) async fn create(&self) -> Response {
        self.write(Method::POST, "", &json!({"service": "verify"})).await
    }

    /// Creates a key, and returns its id.
    pub(super) async fn created(&self) -> String {
        let made = self.create().await;
        assert_eq!(made.status(), 201);
        made.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned()
    }

    /// Requests a completion.
    pub(super) async fn chat(&self) -> reqwest::Result<Response> {
        let url = format!("{}/inference/v1/chat/completions", self.server.base);
        client().post(url).bearer_auth(&self.chat).json(&hello()).send().await
    }

    /// Requests a completion, and fails unless it is complete.
    pub(super) async fn chat_must_succeed(&self) {
        let response = self.chat().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert!(status == 200 && text.contains("four"), "{status} {text}");
    }

    /// Requests a verification, and fails unless it is complete.
    pub(super) async fn verify_must_succeed(&self) {
        let url = format!("{}/verify/v1/stream", self.server.base);
        let asked = client()
            .post(url)
            .bearer_auth(&self.verify)
            .json(&json!({"fact": "The Eiffel Tower is in Paris."}));
        let text = asked.send().await.unwrap().text().await.unwrap();
        assert!(text.contains("event: completed\n"), "{text}");
    }

    /// Shuts the server down; returns its log, line by line.
    pub(super) async fn end(self) -> Vec<Value> {
        self.server.signal("TERM");
        let server = self.server;
        let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
        assert_eq!(status.code(), Some(0), "{log}");
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Asserts that a response reports the unavailable store, in words meant for a caller.
pub(super) async fn assert_store_unavailable(response: Response) {
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key("retry-after"));
    let error: Value = response.json().await.unwrap();
    assert_eq!(
        (&error["error"], &error["code"]),
        (&json!("Service Unavailable"), &json!("store_unavailable"))
    );
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("try again") && !message.contains("mk.db"), "{message}");
}

/// How many attempts are in the ledger.
pub(super) fn recorded(data: &Path) -> i64 {
    let copy = copy(data);
    let ledger = rusqlite::Connection::open(copy.path().join("ledger.db")).unwrap();
    ledger.query_row("SELECT count(*) FROM attempts", [], |row| row.get(0)).unwrap()
}

/// The warnings and errors of a log.
pub(super) fn problems(log: &[Value]) -> Vec<&Value> {
    log.iter().filter(|line| line["level"] == "ERROR" || line["level"] == "WARN").collect()
}

/// Whether a warning or an error contains all of these words.
pub(super) fn reports(log: &[Value], words: &[&str]) -> bool {
    problems(log).iter().any(|line| {
        let text = line.to_string();
        words.iter().all(|word| text.contains(word))
    })
}
