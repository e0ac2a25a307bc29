//! A server in front of one provider that speaks three formats, and what both sides see of a request.
//!
//! Models are named after their fault; `<fault>-with-fallback` has the fallback `whole`, which answers at once.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mk::api::Service;
use mk::config::ServerConfig;
use mk::providers::{CallPolicyOverrides, ModelSettings};
use serde_json::{Value, json};

use crate::support::chat::{Gateway, chunks, gateway_with, text_of};
use crate::support::formats::Format;
use crate::support::provider::{ModelRequest, Reply};
use crate::support::server::client;

/// The formats, and the names of their providers.
pub const FORMATS: [(Format, &str); 3] =
    [(Format::Chat, "fake"), (Format::Anthropic, "claude"), (Format::Google, "gemini")];
/// The timeout of models that are silent; far more than a local response takes.
pub const SHORT: Duration = Duration::from_secs(1);

/// The outcome of a request for the caller and the provider.
pub struct Seen {
    /// The request's id.
    pub id: String,
    pub status: u16,
    /// From `x-mk-attempts`: calls until the response started.
    pub attempts: Option<u32>,
    /// From `x-mk-model`.
    pub model: Option<String>,
    /// In seconds.
    pub retry_after: Option<u64>,
    /// The body.
    pub raw: String,
    /// The code of the error, whether it is the whole response or the end of a stream; empty without one.
    pub code: String,
    /// The text of the response.
    pub text: String,
    /// The requests that the provider received, in order.
    pub asks: Vec<ModelRequest>,
    /// The ledger's rows: the model without its provider, and the outcome.
    pub recorded: Vec<(String, String)>,
}

/// The server, the provider and the key.
pub struct Fixture {
    pub gateway: Gateway,
    requests: AtomicUsize,
}

impl Fixture {
    /// Every model is retried twice, and none is ever paused. `play` gets the fault, and the number of the call among
    /// those of one request to that model, counted from 0.
    pub async fn open(
        faults: &[&str],
        play: impl Fn(&str, usize, &ModelRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::open_with(faults, |_| {}, play).await
    }

    /// The same with further changes to the configuration.
    pub async fn open_with(
        faults: &[&str],
        more: impl FnOnce(&mut ServerConfig),
        play: impl Fn(&str, usize, &ModelRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let others = "[providers.claude]\nkind = \"anthropic\"\nbase_url = \"{base_url}\"\n\
                      [providers.gemini]\nkind = \"google\"\nbase_url = \"{base_url}\"\n";
        let change = |config: &mut ServerConfig| {
            for provider in &mut config.providers {
                (provider.call_policy.retries, provider.call_policy.breaker_failures) = (2, 0);
                for fault in faults {
                    let (without_fallback, with_fallback) = of_fault(&provider.name, fault);
                    provider.models.insert((*fault).to_owned(), without_fallback);
                    provider.models.insert(format!("{fault}-with-fallback"), with_fallback);
                }
            }
            more(config);
        };
        let calls = Mutex::new(BTreeMap::<(String, String), usize>::new());
        let script = move |ask: &ModelRequest| {
            let mut calls = calls.lock().unwrap();
            let calls = calls.entry((id_of(ask), ask.model.clone())).or_default();
            let turn = play(ask.model.trim_end_matches("-with-fallback"), *calls, ask);
            *calls += 1;
            turn
        };
        let mut gateway = gateway_with("", others, |setup| setup.config(change), script).await;
        (gateway.key, _) = gateway.server.key_with(Service::Inference, |new| {
            (new.per_minute, new.per_day) = (Some(0), Some(0));
        });
        Self { gateway, requests: AtomicUsize::new(0) }
    }

    /// Requests a completion of `<provider>/<model>`.
    pub async fn ask(&self, model: &str, stream: bool) -> Seen {
        let mut body = json!({"model": model, "messages": [], "stream": stream});
        if stream {
            body["stream_options"] = json!({"include_usage": true});
        }
        self.ask_for(body, &[]).await
    }

    /// Requests a completion of a first message that contains the request's id, followed by `turns`.
    pub async fn ask_for(&self, mut body: Value, turns: &[(&str, &str)]) -> Seen {
        let id = format!("req-{}.", self.requests.fetch_add(1, Ordering::SeqCst));
        let first = [("user", id.as_str())];
        let messages = first.iter().chain(turns).map(|(role, text)| json!({"role": role, "content": text}));
        body["messages"] = messages.collect();
        let post = client().post(format!("{}/inference/v1/chat/completions", self.gateway.server.base));
        let post = post.bearer_auth(&self.gateway.key).header("x-request-id", &id).json(&body);
        let response = post.send().await.unwrap();
        let header =
            |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let number = |name: &str| header(name).and_then(|value| value.parse().ok());
        let seen = Seen {
            id: id.clone(),
            status: response.status().as_u16(),
            attempts: number("x-mk-attempts").map(|attempts| u32::try_from(attempts).unwrap()),
            model: header("x-mk-model"),
            retry_after: number("retry-after"),
            raw: String::new(),
            code: String::new(),
            text: String::new(),
            asks: Vec::new(),
            recorded: Vec::new(),
        };
        let raw = response.text().await.unwrap();
        let (code, text) = read(&raw);
        let asks = self.gateway.provider.requests().into_iter().filter(|ask| id_of(ask) == id).collect();
        let recorded = self.rows(&id).into_iter().map(|row| {
            let (_, model) = row.model.split_once('/').unwrap();
            (model.to_owned(), row.outcome.into())
        });
        Seen { recorded: recorded.collect(), asks, raw, code, text, ..seen }
    }

    /// The ledger's rows of a request.
    pub fn rows(&self, id: &str) -> Vec<mk::storage::AttemptRow> {
        self.gateway.server.app.flush().unwrap();
        self.gateway.server.app.store.attempts_of(id).unwrap()
    }
}

/// The settings of a fault's model without and with a fallback; only models that are silent get a short timeout.
fn of_fault(provider: &str, fault: &str) -> (ModelSettings, ModelSettings) {
    let timeout = |is_short: bool| is_short.then_some(SHORT);
    let call_policy = CallPolicyOverrides {
        first_byte_timeout: timeout(fault == "silence"),
        idle_timeout: timeout(fault == "stream-stall"),
        first_token_timeout: timeout(fault == "slow-first-token"),
        ..CallPolicyOverrides::default()
    };
    let without_fallback = ModelSettings { call_policy, ..ModelSettings::default() };
    let with_fallback =
        ModelSettings { fallbacks: vec![format!("{provider}/whole")], ..without_fallback.clone() };
    (without_fallback, with_fallback)
}

/// The id of the request that a call was made for; its first message contains it in every format.
fn id_of(ask: &ModelRequest) -> String {
    let from = ask.raw.find("req-").unwrap();
    let end = ask.raw[from..].find('.').unwrap();
    ask.raw[from..=from + end].to_owned()
}

/// The error code of a response, if it is an error or ends with one, and its text.
fn read(raw: &str) -> (String, String) {
    let string = |error: &Value| error.as_str().unwrap_or_default().to_owned();
    if !raw.starts_with("data: ") {
        let answer: Value = serde_json::from_str(raw).unwrap_or_else(|_| panic!("{raw}"));
        return (string(&answer["code"]), string(&answer["choices"][0]["message"]["content"]));
    }
    let list = chunks(raw);
    let error = list.iter().find_map(|chunk| chunk.get("error"));
    (error.map(|error| string(&error["code"])).unwrap_or_default(), text_of(&list, 0))
}
