//! Several keys of one provider: one that is refused or limited is set aside while others work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mk::api::Service;
use mk::config::{Env, ServerArgs, ServerConfig};
use serde_json::json;

use crate::support::chat::{Gateway, chunks, hello, hello_stream, text_of};
use crate::support::provider::{FakeProvider, ModelRequest, Reply, stream};
use crate::support::server::{NOON, Setup};

/// The configuration of the provider `fake`, with these keys.
fn config(base_url: &str, keys: &str) -> ServerConfig {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("server.toml");
    std::fs::write(dir.path().join("keys"), "sk-of-team-one\n\n  sk-of-team-two  \nsk-three\n").unwrap();
    std::fs::write(dir.path().join("empty"), "\n").unwrap();
    let text = format!(
        "data_dir = \"/d\"\n[verify]\npanel = []\n[providers.fake]\nkind = \"openai\"\nretries = 0\nbase_url = \"{base_url}\"\n{keys}\n"
    );
    std::fs::write(&file, text).unwrap();
    let args = ServerArgs { config: Some(file), ..ServerArgs::default() };
    let variables = [("ONE", "sk-of-team-one"), ("TWO", "sk-of-team-two"), ("SAME", "sk-of-team-one")];
    mk::config::load_server(&args, &Env::bare(variables, NOON)).unwrap_or_else(|error| panic!("{error}"))
}

async fn gateway(script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static) -> Gateway {
    let provider = FakeProvider::start(script).await;
    let config = config(&provider.base_url, "api_keys_env = [\"ONE\", \"TWO\"]");
    let server = Setup::new(config).start().await;
    let key = server.key(Service::Inference);
    Gateway { server, provider, key }
}

fn keys(gateway: &Gateway) -> Vec<String> {
    gateway.provider.requests().into_iter().map(|ask| ask.key.unwrap_or_default()).collect()
}

fn answer(ask: &ModelRequest) -> Reply {
    if ask.stream { stream(&["hello"]) } else { Reply::Text("hello".to_owned()) }
}

fn failing(status: u16, code: &str) -> Reply {
    let body = json!({"error": {"message": "no", "code": code}});
    Reply::Raw(status, vec![("retry-after", "30".to_owned())], body.to_string())
}

#[tokio::test]
async fn another_key_is_used_while_one_is_refused_limited_or_used_up() {
    for (status, code) in [
        (401, "invalid_api_key"),
        (403, "no"),
        (429, "rate_limit_exceeded"),
        (429, "insufficient_quota"),
        (402, "no"),
    ] {
        let gateway = gateway(move |ask| match ask.key.as_deref() {
            Some("sk-of-team-one") => failing(status, code),
            _ => answer(ask),
        })
        .await;
        let response = gateway.ask(&hello()).await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["x-mk-attempts"]),
            (200, &"1".parse().unwrap())
        );
        let text = gateway.stream(&hello_stream()).await;
        assert_eq!(text_of(&chunks(&text), 0), "hello");
        // The first key was tried once; what it was refused for is remembered, for this model.
        assert_eq!(keys(&gateway), ["sk-of-team-one", "sk-of-team-two", "sk-of-team-two"], "{status} {code}");
        let mut other = hello();
        other["model"] = json!("fake/n");
        assert_eq!(gateway.json(&other).await.0, 200);
        assert_eq!(keys(&gateway)[3..], ["sk-of-team-one", "sk-of-team-two"], "{status} {code}");
    }
}

#[tokio::test]
async fn the_first_key_is_used_as_long_as_it_works_and_other_faults_are_not_the_keys() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let gateway = gateway(move |ask| match count.fetch_add(1, Ordering::SeqCst) {
        1 => Reply::status(500, &json!({})),
        2 => Reply::status(400, &json!({"error": {"message": "bad"}})),
        _ => answer(ask),
    })
    .await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(gateway.json(&hello()).await.0);
    }
    assert_eq!(statuses, [200, 502, 400, 200]);
    assert_eq!(keys(&gateway), ["sk-of-team-one"; 4]);
}

#[tokio::test]
async fn without_a_key_that_works_the_caller_gets_the_failure_and_no_key() {
    let gateway = gateway(|ask| {
        let key = ask.key.as_deref().unwrap_or_default();
        Reply::status(400, &json!({"error": {"message": format!("bad request with {key}")}}))
    })
    .await;
    let (status, error) = gateway.json(&hello()).await;
    assert_eq!(status, 400);
    assert!(!error.to_string().contains("sk-"), "{error}");

    let gateway = self::gateway(|_| failing(401, "invalid_api_key")).await;
    let (status, error) = gateway.json(&hello()).await;
    assert_eq!((status, &error["code"]), (502, &json!("provider_auth_failed")));
    assert_eq!(keys(&gateway), ["sk-of-team-one", "sk-of-team-two"]);
    assert_eq!(gateway.booked(), [("fake/m".to_owned(), "auth_failed".to_owned(), 0, 0)]);
}

#[test]
fn keys_come_from_variables_or_the_lines_of_a_file() {
    let url = "http://127.0.0.1:1/v1";
    let shown = |keys: &str| {
        let listing = mk::config::server_listing(&config(url, keys));
        listing.into_iter().find(|entry| entry.key == "providers.fake.api_key").unwrap().value
    };
    assert_eq!(shown("api_keys_file = \"keys\""), "3 set");
    assert_eq!(shown("api_keys_env = [\"TWO\", \"ONE\"]"), "2 set");
    assert_eq!(shown("api_keys_env = [\"ONE\"]"), "set");
    let [one, two] =
        ["[\"ONE\"]", "[\"ONE\", \"TWO\"]"].map(|list| config(url, &format!("api_keys_env = {list}")));
    assert_eq!(mk::config::changes(&one, &two), ["providers.fake.api_key"]);
    let debug = format!("{two:?}");
    assert!(!debug.contains("sk-of-team-one") && !debug.contains("sk-of-team-two"), "{debug}");
    for (keys, expected) in [
        ("api_keys_env = [\"ONE\"]\napi_key_env = \"ONE\"", "are both set"),
        ("api_keys_env = []", "names 0 keys"),
        ("api_keys_env = [\"ONE\", \"SAME\"]", "the same key twice"),
        ("api_keys_env = [\"ONE\", \"sk-secret\"]", "not the key itself"),
        ("api_keys_env = [\"NOBODY\"]", "NOBODY, which is not set"),
        ("api_keys_file = \"empty\"", "it is empty"),
        ("api_keys_file = \"none\"", "no such file"),
    ] {
        let error = std::panic::catch_unwind(|| config(url, keys)).unwrap_err();
        let error = error.downcast_ref::<String>().unwrap();
        assert!(error.contains(expected) && !error.contains("sk-"), "{keys}: {error}");
    }
}
