//! What the log holds: the ids by which a request is found again, and nothing that is secret.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use mk::api::Service;
use mk::server::Options;
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use crate::support::chat::{desk_with, hello};
use crate::support::events::Events;
use crate::support::panel::{config, eiffel};
use crate::support::provider::{FakeProvider, Turn, claims};
use crate::support::server::Setup;

/// Keeps what is logged on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn capture(&self, level: &str) -> tracing::subscriber::DefaultGuard {
        // While there is one subscriber alone, whether a line is of interest is settled for good by the thread that
        // comes upon it first, and other tests' threads have none. With a second one, all are asked.
        static ANOTHER: OnceLock<tracing::Dispatch> = OnceLock::new();
        ANOTHER.get_or_init(|| tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default()));
        let subscriber = tracing_subscriber::fmt()
            .json()
            .with_env_filter(tracing_subscriber::EnvFilter::new(format!("mk={level}")))
            .with_writer(self.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }
}

#[tokio::test]
async fn requests_are_found_by_their_id_and_nothing_secret_is_logged() {
    let log = Log::default();
    let guard = log.capture("trace");
    let secret = "sk-test-4f9c1e";
    let provider = FakeProvider::start(|ask| match (ask.task.as_str(), ask.model.as_str()) {
        ("claims", _) => claims(&[eiffel()]),
        (_, "two") => Turn::status(401, &json!({"error": {"message": "Incorrect API key: sk-test-4f9c1e"}})),
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.providers[0].api_key = Some(secret.into()))
        .options(on_this_thread)
        .start()
        .await;
    let key = server.key(Service::Verify);
    let body = json!({"fact": "Private matters of zebra-4711.", "context": "More of okapi-4712."});
    let request = server.verify(&key, &body).header("x-request-id", "find-me.1");
    let events = Events::read(request.send().await.unwrap()).await;
    let id = events.end("completed")["requestId"].clone();
    let typo = format!("{}x", &key[..key.len() - 1]);
    server.verify(&typo, &body).send().await.unwrap();
    let unknown = mk::keys::mint(Service::Verify).unwrap().key;
    let unknown = mk::secret::ExposeSecret::expose_secret(&unknown);
    server.verify(unknown, &body).send().await.unwrap();
    server.shutdown().await;
    drop(guard);

    let lines = log.lines();
    let logged = lines.iter().find(|line| line["fields"]["request_id"] == "find-me.1").expect("not logged");
    assert_eq!(logged["fields"]["status"], 200);
    assert_eq!(logged["fields"]["path"], "/verify/v1/stream");
    let begun = lines.iter().find(|line| line["fields"]["verification"] == id).expect("not logged");
    assert_eq!(begun["span"]["id"], "find-me.1", "one id leads to the other");

    let text = log.text();
    for word in [&key, &typo, unknown, &key[key.len() - 20..], secret, "zebra-4711", "okapi-4712", "Eiffel"] {
        assert!(!text.contains(word), "{word} is logged");
    }
}

/// Only this thread's records are captured.
fn on_this_thread(options: &mut Options) {
    options.workers = 0;
}

#[tokio::test]
async fn failures_fallbacks_and_breakers_are_told_with_the_request_s_id() {
    let log = Log::default();
    let guard = log.capture("info");
    let count = std::sync::atomic::AtomicUsize::new(0);
    let of_provider = "breaker_failures = 2\nbreaker_pause = \"50ms\"";
    let more = "[inference.fallbacks]\n\"fake/m\" = [\"fake/n\"]\n";
    let desk = desk_with(
        of_provider,
        more,
        |setup| setup.config(|config| config.providers[0].retries = 1),
        move |ask| match ask.model.as_str() {
            "m" if count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 2 => {
                Turn::status(500, &json!({}))
            }
            _ => Turn::Text("hello".to_owned()),
        },
    )
    .await;
    assert_eq!(desk.ask(&hello()).await.headers()["x-mk-model"], "fake/n");
    crate::support::eventually("the pause ends", || {
        desk.server.app.gateway.breakers()[0].state == mk::inference::BreakerState::HalfOpen
    })
    .await;
    assert_eq!(desk.ask(&hello()).await.headers()["x-mk-model"], "fake/m");
    drop(guard);

    let lines = log.lines();
    let told = |message: &str| -> Vec<&Value> {
        let lines = lines.iter().filter(|line| line["fields"]["message"] == message);
        lines.inspect(|line| assert_eq!(line["span"]["id"], "req-1", "{line}")).collect()
    };
    let failed = told("a chat completion failed");
    assert_eq!(failed.len(), 2);
    assert!(failed[0]["fields"]["retry_in"].as_str().unwrap().starts_with("Some("), "{}", failed[0]);
    assert_eq!(failed[1]["fields"]["retry_in"], "None");
    let fallback = told("asking a fallback");
    assert_eq!(fallback.len(), 1);
    assert_eq!(
        (&fallback[0]["fields"]["model"], &fallback[0]["fields"]["next"]),
        (&json!("fake/m"), &json!("fake/n"))
    );
    let opens = told("a circuit breaker opens");
    assert_eq!((opens.len(), &opens[0]["level"]), (1, &json!("WARN")));
    let expected = json!({"message": "a circuit breaker opens", "provider": "fake", "model": "m", "failures": 2,
                          "pause": "50ms", "outcome": "provider_error"});
    assert_eq!(opens[0]["fields"], expected);
    let closes = told("a circuit breaker closes");
    assert_eq!(
        (closes.len(), &closes[0]["level"], &closes[0]["fields"]["model"]),
        (1, &json!("INFO"), &json!("m"))
    );
}

#[tokio::test]
async fn foreign_text_cannot_forge_a_line_of_the_log() {
    let log = Log::default();
    let guard = log.capture("debug");
    let provider = FakeProvider::start(|_| {
        Turn::status(400, &json!({"error": {"message": "no\n{\"level\":\"INFO\"}\u{1b}[2J", "code": "a\nb"}}))
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).options(on_this_thread).start().await;
    let key = server.key(Service::Verify);
    Events::read(server.verify(&key, &json!({"fact": "x"})).send().await.unwrap()).await.end("error");
    let path = format!("/{}", "long".repeat(10_000));
    crate::support::server::client().get(format!("{}{path}", server.base)).send().await.unwrap();
    drop(guard);
    assert!(log.text().contains("a model call failed"));
    // Each line is one record of ours.
    assert!(log.lines().iter().all(|line| line["target"].as_str().unwrap().starts_with("mk::")));
    assert!(log.text().lines().all(|line| line.len() < 2_000));
}
