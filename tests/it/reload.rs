//! SIGHUP: the server reloads its configuration while it runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::mk::Mk;
use crate::support::provider::{FakeProvider, Reply};
use crate::support::reload::{Gateway, hello};
use crate::support::serve::Serve;
use crate::support::server::client;

/// Limits so high that no test reaches them.
const MANY: &str = "[limits]\nper_minute = 100000\nper_day = 100000\n";

fn hello_turn() -> Reply {
    Reply::Text("hello".to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn providers_can_be_added_and_removed() {
    let gateway = Gateway::start("", "", |_| hello_turn()).await;
    assert_eq!(gateway.ask("second/x").await.0, 404);
    let second = "[providers.second]\nkind = \"openai\"\nbase_url = \"{base_url}\"\n[providers.second.models.x]\nretries = 1";
    let changed = gateway.change("", "", second).await;
    assert_eq!(
        changed, "verify.extractor, verify.panel, providers.second (new)",
        "the panel is chosen again"
    );
    assert_eq!(gateway.ask("second/x").await.0, 200);
    let listed = gateway.get("/inference/v1/models").await;
    let has = |id: &str| listed["data"].as_array().unwrap().iter().any(|model| model["id"] == id);
    assert!(has("second/x"), "{listed}");

    assert!(gateway.change("", "", "").await.contains("providers.second (gone)"));
    assert_eq!(gateway.ask("second/x").await.0, 404);
    assert_eq!(gateway.ask("fake/m").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_change_but_counts_are_kept() {
    let gateway = Gateway::start("", "[limits]\nper_minute = 5", |_| hello_turn()).await;
    let remaining = async || {
        let response = gateway.post(&hello("fake/m")).send().await.unwrap();
        let left = response.headers()["x-ratelimit-remaining"].to_str().unwrap().to_owned();
        (response.status().as_u16(), left)
    };
    assert_eq!(remaining().await, (200, "4".to_owned()));
    assert_eq!(remaining().await, (200, "3".to_owned()));
    assert_eq!(gateway.change("", "", "[limits]\nper_minute = 50").await, "limits.per_minute");
    assert_eq!(remaining().await, (200, "47".to_owned()));
    gateway.change("", "", "[limits]\nper_minute = 2").await;
    assert_eq!(remaining().await.0, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn body_limits_and_the_openapi_document_follow_the_new_configuration() {
    let gateway = Gateway::start("", "", |_| hello_turn()).await;
    let longest = async || {
        let description = gateway.get("/openapi.json").await.to_string();
        description.contains("\"maxLength\":1234")
    };
    assert!(!longest().await);
    let changed =
        gateway.change("inference_max_body_bytes = 400", "", "[verify]\nmax_fact_chars = 1234").await;
    assert_eq!(changed, "inference_max_body_bytes, verify.max_fact_chars");
    assert!(longest().await);
    let mut body = hello("fake/m");
    body["user"] = json!("x".repeat(400));
    assert_eq!(gateway.post(&body).send().await.unwrap().status(), 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_file_changes_nothing_and_is_logged_with_the_error_of_a_start() {
    let gateway = Gateway::start("", "[limits]\nper_minute = 77", |_| hello_turn()).await;
    let secret = "sk-in-the-wrong-place";
    for (name, top, of_provider) in [
        ("a syntax error", "= 3", ""),
        ("an unknown key", "max_body_byte = 3", ""),
        ("a key in the file", "", &*format!("api_key = \"{secret}\"")),
        ("a wrong value", "", &*format!("first_byte_timeout = \"{secret}\"")),
        ("a certificate that is not there", "tls_cert = \"a\"\ntls_key = \"b\"", ""),
    ] {
        gateway.write(top, of_provider, "[limits]\nper_minute = 5");
        let logged = gateway.reload().await;
        assert_eq!(logged["level"], "ERROR", "{name}: {logged}");
        let started = gateway.call.run_beside().await;
        assert_eq!(started.code(), 2, "{name}: {started:?}");
        let at_start = started.stderr.lines().next().unwrap().strip_prefix("error: ").unwrap();
        let message = logged["message"].as_str().unwrap();
        let expected = "configuration not reloaded; the old one stays in force: ";
        assert_eq!(message.strip_prefix(expected), Some(at_start), "{name}");

        let response = gateway.post(&hello("fake/m")).send().await.unwrap();
        assert_eq!(response.status(), 200, "{name}");
        assert_eq!(response.headers()["x-ratelimit-limit"], "77", "{name}");
    }
    assert!(!gateway.server.logged().contains(secret), "{}", gateway.server.logged());
    assert_eq!(gateway.change("", "", "[limits]\nper_minute = 78").await, "limits.per_minute");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_file_is_an_error_and_changes_nothing() {
    let gateway = Gateway::start("", MANY, |_| hello_turn()).await;
    let file = gateway.file();
    let away = file.with_extension("away");
    std::fs::rename(&file, &away).unwrap();
    let reported = gateway.reload().await;
    assert_eq!(reported["level"], "ERROR", "{reported}");
    let message = reported["message"].as_str().unwrap();
    assert!(message.contains(file.to_str().unwrap()) && message.contains("no longer exists"), "{reported}");
    assert!(reported["hints"].as_str().unwrap().contains("restore it"), "{reported}");
    assert_eq!(gateway.ask("fake/m").await.0, 200);

    std::fs::rename(&away, &file).unwrap();
    let reloaded = gateway.reload().await;
    assert_eq!(reloaded["message"], "configuration reloaded", "{reloaded}");
    assert_eq!(gateway.ask("fake/m").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn key_files_are_read_again_and_never_logged() {
    let mk = Mk::new();
    let key_file = mk.home().join("fake.key");
    std::fs::write(&key_file, "sk-the-first\n").unwrap();
    let provider = FakeProvider::start(|_| hello_turn()).await;
    let gateway = Gateway::start_with(mk, provider, "api_key_file = \"fake.key\"", MANY).await;
    assert_eq!(gateway.ask("fake/m").await.0, 200);
    std::fs::write(&key_file, "sk-the-second\n").unwrap();
    let logged = gateway.reload().await;
    assert_eq!(logged["changed"], "providers.fake.api_key", "{logged}");
    assert_eq!(gateway.ask("fake/m").await.0, 200);
    let keys: Vec<Option<String>> = gateway.provider.requests().into_iter().map(|ask| ask.key).collect();
    assert_eq!(keys, [Some("sk-the-first".to_owned()), Some("sk-the-second".to_owned())]);

    std::fs::write(&key_file, "").unwrap();
    assert_eq!(gateway.reload().await["level"], "ERROR");
    assert_eq!(gateway.ask("fake/m").await.0, 200);
    assert!(!gateway.server.logged().contains("sk-the"), "{}", gateway.server.logged());
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_need_a_restart_are_named_and_the_rest_is_applied() {
    let gateway = Gateway::start("", "[limits]\nper_minute = 5", |_| hello_turn()).await;
    let text = std::fs::read_to_string(gateway.file()).unwrap();
    let elsewhere = gateway.call.home().join("elsewhere").display().to_string();
    let data = gateway.call.home().join("data").display().to_string();
    let moved = text.replace("127.0.0.1:0\"", "127.0.0.1:1\"").replace(&data, &elsewhere);
    gateway.write_raw(&moved.replace("per_minute = 5", "per_minute = 6"));
    for changed in [json!("limits.per_minute"), Value::Null] {
        let logged = gateway.reload().await;
        assert_eq!(
            (&logged["level"], &logged["message"], &logged["changed"], &logged["needs_restart"]),
            (
                &json!("WARN"),
                &json!("configuration reloaded, except for what needs a restart"),
                &changed,
                &json!("listen, data_dir")
            )
        );
    }
    let log = gateway.server.logged();
    assert_eq!(log.lines().filter(|line| line.contains("restart")).count(), 2, "a line for each: {log}");
    let response = gateway.post(&hello("fake/m")).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["x-ratelimit-limit"]),
        (200, &"6".parse().unwrap())
    );
    assert!(!std::path::Path::new(&elsewhere).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_signals_lead_to_the_last_configuration_and_delay_no_requests() {
    let gateway = Gateway::start("", MANY, |_| hello_turn()).await;
    let is_over = AtomicBool::new(false);
    let callers = async {
        let mut answered = 0;
        while !is_over.load(Ordering::Relaxed) {
            assert_eq!(gateway.ask("fake/m").await.0, 200);
            answered += 1;
        }
        answered
    };
    let storm = async {
        for number in 1..=100 {
            let limit = format!("[limits]\nper_day = 0\nper_minute = {}", 100_000 + number);
            gateway.write("", &format!("max_concurrent = {number}"), &limit);
            gateway.server.signal("HUP");
        }
        let limit = async || {
            let response = gateway.post(&hello("fake/m")).send().await.unwrap();
            response.headers()["x-ratelimit-limit"].to_str().unwrap().to_owned()
        };
        let end = Instant::now() + Duration::from_mins(1);
        // The last reload may still be running.
        while limit().await != "100100" {
            assert!(Instant::now() < end, "{}", gateway.server.logged());
        }
        is_over.store(true, Ordering::Relaxed);
    };
    let (answered, ()) = tokio::join!(callers, storm);
    assert!(answered > 0);
    let log = gateway.server.logged();
    assert!(!log.contains("\"level\":\"ERROR\"") && !log.contains("panicked"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_configuration_file_there_is_nothing_to_reload() {
    let mk = Mk::new().args(["serve", "--sandbox", "--listen", "127.0.0.1:0"]);
    let server = Serve::start_beside(&mk).await;
    for times in [1, 2] {
        server.signal("HUP");
        server
            .until_logged(times, |line| {
                line.contains("\"nothing to reload: there is no configuration file\"")
            })
            .await;
    }
    let health = format!("{}/verify/v1/health", server.base);
    assert_eq!(client().get(health).send().await.unwrap().status(), 200);
}
