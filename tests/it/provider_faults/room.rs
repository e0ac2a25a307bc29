//! A server in front of one provider that speaks three formats, and what both sides saw of a request.
//!
//! A model is named after the fault that it has; `<fault>-helped` has the fallback `whole`, which answers at once.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mk::api::Service;
use mk::config::ServerConfig;
use mk::providers::{CallPolicyOverrides, ModelSettings};
use serde_json::{Value, json};

use crate::support::chat::{Desk, chunks, desk_with, text_of};
use crate::support::formats::Format;
use crate::support::provider::{Ask, Turn};
use crate::support::server::client;

/// The formats, and the names of their providers here.
pub const FORMATS: [(Format, &str); 3] =
    [(Format::Chat, "fake"), (Format::Anthropic, "claude"), (Format::Google, "gemini")];
/// What a model is given that is to be found silent; far more than an answer takes to come from this machine.
pub const SHORT: Duration = Duration::from_secs(1);

/// A request, as it came out for the caller and for the provider.
pub struct Seen {
    /// The request's.
    pub id: String,
    pub status: u16,
    /// From `x-mk-attempts`: calls until the answer began.
    pub attempts: Option<u32>,
    /// From `x-mk-model`.
    pub model: Option<String>,
    /// In seconds.
    pub retry_after: Option<u64>,
    /// The body.
    pub raw: String,
    /// The code of the error, be it the whole answer or the end of a stream; empty without one.
    pub code: String,
    /// All text of the answer.
    pub text: String,
    /// What the provider was asked, in its order.
    pub asks: Vec<Ask>,
    /// The ledger: model without its provider, outcome.
    pub booked: Vec<(String, String)>,
}

/// The desk, and who is asking.
pub struct Room {
    pub desk: Desk,
    requests: AtomicUsize,
}

impl Room {
    /// Every model is tried again twice, and none is ever paused. `play` is told the fault, and the how many-th call
    /// it is that one request makes to that model, from 0.
    pub async fn open(
        faults: &[&str],
        play: impl Fn(&str, usize, &Ask) -> Turn + Send + Sync + 'static,
    ) -> Self {
        Self::open_with(faults, |_| {}, play).await
    }

    /// The same with more configuration.
    pub async fn open_with(
        faults: &[&str],
        more: impl FnOnce(&mut ServerConfig),
        play: impl Fn(&str, usize, &Ask) -> Turn + Send + Sync + 'static,
    ) -> Self {
        let others = "[providers.claude]\nkind = \"anthropic\"\nbase_url = \"{base_url}\"\n\
                      [providers.gemini]\nkind = \"google\"\nbase_url = \"{base_url}\"\n";
        let change = |config: &mut ServerConfig| {
            for provider in &mut config.providers {
                (provider.retries, provider.breaker_failures) = (2, 0);
                for fault in faults {
                    let (alone, helped) = of_fault(&provider.name, fault);
                    provider.models.insert((*fault).to_owned(), alone);
                    provider.models.insert(format!("{fault}-helped"), helped);
                }
            }
            more(config);
        };
        let calls = Mutex::new(BTreeMap::<(String, String), usize>::new());
        let script = move |ask: &Ask| {
            let mut calls = calls.lock().unwrap();
            let calls = calls.entry((id_of(ask), ask.model.clone())).or_default();
            let turn = play(ask.model.trim_end_matches("-helped"), *calls, ask);
            *calls += 1;
            turn
        };
        let mut desk = desk_with("", others, |setup| setup.config(change), script).await;
        (desk.key, _) = desk.server.key_with(Service::Inference, |new| {
            (new.per_minute, new.per_day) = (Some(0), Some(0));
        });
        Self { desk, requests: AtomicUsize::new(0) }
    }

    /// Asks `<provider>/<model>`.
    pub async fn ask(&self, model: &str, stream: bool) -> Seen {
        let mut body = json!({"model": model, "messages": [], "stream": stream});
        if stream {
            body["stream_options"] = json!({"include_usage": true});
        }
        self.ask_for(body, &[]).await
    }

    /// Asks for a completion of a first message that names the request, and of these turns behind it.
    pub async fn ask_for(&self, mut body: Value, turns: &[(&str, &str)]) -> Seen {
        let id = format!("req-{}.", self.requests.fetch_add(1, Ordering::SeqCst));
        let first = [("user", id.as_str())];
        let messages = first.iter().chain(turns).map(|(role, text)| json!({"role": role, "content": text}));
        body["messages"] = messages.collect();
        let post = client().post(format!("{}/inference/v1/chat/completions", self.desk.server.base));
        let post = post.bearer_auth(&self.desk.key).header("x-request-id", &id).json(&body);
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
            booked: Vec::new(),
        };
        let raw = response.text().await.unwrap();
        let (code, text) = read(&raw);
        let asks = self.desk.provider.asks().into_iter().filter(|ask| id_of(ask) == id).collect();
        let booked = self.rows(&id).into_iter().map(|row| {
            let (_, model) = row.model.split_once('/').unwrap();
            (model.to_owned(), row.outcome.into())
        });
        Seen { booked: booked.collect(), asks, raw, code, text, ..seen }
    }

    /// What the ledger holds of a request.
    pub fn rows(&self, id: &str) -> Vec<mk::storage::AttemptRow> {
        self.desk.server.app.flush().unwrap();
        self.desk.server.app.store.attempts_of(id).unwrap()
    }
}

/// The settings of a fault's model without and with a fallback: only one that is to be found silent is given little
/// time.
fn of_fault(provider: &str, fault: &str) -> (ModelSettings, ModelSettings) {
    let little = |is_short: bool| is_short.then_some(SHORT);
    let call_policy = CallPolicyOverrides {
        first_byte_timeout: little(fault == "silence"),
        idle_timeout: little(fault == "stream-stall"),
        first_token_timeout: little(fault == "slow-first-token"),
        ..CallPolicyOverrides::default()
    };
    let alone = ModelSettings { call_policy, ..ModelSettings::default() };
    let helped = ModelSettings { fallbacks: vec![format!("{provider}/whole")], ..alone.clone() };
    (alone, helped)
}

/// The request that a call was made for: what its conversation begins with, in whatever form its format has that.
fn id_of(ask: &Ask) -> String {
    let from = ask.raw.find("req-").unwrap();
    let end = ask.raw[from..].find('.').unwrap();
    ask.raw[from..=from + end].to_owned()
}

/// The code of the error of an answer, if it is one or ends in one, and its text.
fn read(raw: &str) -> (String, String) {
    let told = |error: &Value| error.as_str().unwrap_or_default().to_owned();
    if !raw.starts_with("data: ") {
        let answer: Value = serde_json::from_str(raw).unwrap_or_else(|_| panic!("{raw}"));
        return (told(&answer["code"]), told(&answer["choices"][0]["message"]["content"]));
    }
    let list = chunks(raw);
    let error = list.iter().find_map(|chunk| chunk.get("error"));
    (error.map(|error| told(&error["code"])).unwrap_or_default(), text_of(&list, 0))
}
