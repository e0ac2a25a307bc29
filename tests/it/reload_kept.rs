//! What a reload keeps: responses in progress, concurrency permits, circuit breakers, counts.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::support::chat::{chunks, text_of};
use crate::support::eventually;
use crate::support::mk::{Mk, operator};
use crate::support::panel::panel_by;
use crate::support::provider::{ModelRequest, Reply, StreamStep, done, finish_chunk, role_chunk, text_chunk};
use crate::support::reload::{Gateway, hello};
use crate::support::serve::data_dir;
use crate::support::server::client;

fn hello_turn() -> Reply {
    Reply::Text("hello".to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_stream_continues_although_its_provider_was_removed() {
    let beats = vec![
        role_chunk(),
        text_chunk("one "),
        StreamStep::Pause(Duration::from_secs(3)),
        text_chunk("two"),
        finish_chunk("stop"),
        done(),
    ];
    let gateway = Gateway::start("", "", move |_| Reply::Stream(beats.clone())).await;
    let mut body = hello("fake/m");
    body["stream"] = json!(true);
    let mut stream = gateway.post(&body).send().await.unwrap().bytes_stream();
    let mut raw = String::new();
    while !raw.contains("one ") {
        raw.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
    }
    let other = "listen = \"127.0.0.1:0\"\ndata_dir = \"{data}\"\n[providers.sandbox]\nkind = \"sandbox\"\n";
    gateway.write_raw(&other.replace("{data}", &gateway.call.home().join("data").display().to_string()));
    let logged = gateway.reload().await;
    assert!(logged["changed"].to_string().contains("providers.fake (gone)"), "{logged}");
    assert_eq!(gateway.ask("fake/m").await.0, 404);
    while let Some(chunk) = stream.next().await {
        raw.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
    }
    assert_eq!(text_of(&chunks(&raw), 0), "one two");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_model_stays_paused_unless_its_provider_or_key_changes() {
    let gateway =
        Gateway::start("breaker_failures = 2\nbreaker_pause = \"5m\"", "", |ask| match ask.model.as_str() {
            "m" => Reply::status(500, &json!({})),
            _ => hello_turn(),
        })
        .await;
    for _ in 0..2 {
        assert_eq!(gateway.ask("fake/m").await.1["code"], "provider_error");
    }
    let paused = [(r#"mk_breaker_state{provider="fake",model="other"}"#, 2.0)];
    gateway.scrape().await.assert(&paused);
    for of_provider in
        ["breaker_failures = 2\nbreaker_pause = \"5m\"", "breaker_failures = 3", "idle_timeout = \"9s\""]
    {
        gateway.change("max_body_bytes = 2000", of_provider, "").await;
        assert_eq!(gateway.ask("fake/m").await.1["code"], "no_provider_available", "{of_provider}");
        gateway.scrape().await.assert(&paused);
    }
    assert_eq!(gateway.provider.requests().len(), 2);

    std::fs::write(gateway.call.home().join("fake.key"), "sk-another").unwrap();
    gateway.change("", "api_key_file = \"fake.key\"", "").await;
    assert_eq!(gateway.ask("fake/m").await.1["code"], "provider_error");
    assert_eq!(gateway.provider.requests().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_limits_its_rate_is_spared_by_verifications_unless_its_provider_or_key_changes() {
    let script = |model: &str, ask: &ModelRequest| match model {
        "one" => Reply::Raw(429, vec![("retry-after", "200".to_owned())], "{}".to_owned()),
        _ => ask.choose("Paris"),
    };
    let panel = "[verify]\nextractor = \"fake/extractor\"\nextractor_fallbacks = []\nauditor = \"none\"\n\
                 panel = [\"fake/one\", \"fake/two\", \"fake/three\"]\nstandby = []";
    let gateway = Gateway::start_with(Mk::new(), panel_by(script).await, "", panel).await;
    let data = data_dir(gateway.call.home());
    let made = operator(&data, &["keys", "create", "--service", "verify", "--json"]).run_beside().await;
    let key = made.json()["key"].as_str().unwrap().to_owned();
    let verify = async || {
        let request = client().post(format!("{}/verify/v1/stream", gateway.server.base));
        let request = request
            .bearer_auth(&key)
            .header("accept", "application/json")
            .json(&json!({"fact": "The Eiffel Tower is in Paris."}));
        let response: Value = request.send().await.unwrap().json().await.unwrap();
        assert_eq!(response["results"][0]["model_errors"][0]["code"], "rate_limited", "{response}");
        gateway.provider.requests().iter().filter(|request| request.model == "one").count()
    };
    assert_eq!(verify().await, 1);
    gateway.change("", "idle_timeout = \"9s\"", panel).await;
    assert_eq!(verify().await, 1);

    std::fs::write(gateway.call.home().join("fake.key"), "sk-another").unwrap();
    gateway.change("", "api_key_file = \"fake.key\"", panel).await;
    assert_eq!(verify().await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn open_calls_count_against_the_new_concurrency_limit() {
    let slow = |_: &ModelRequest| hello_turn().after(Duration::from_secs(2));
    let gateway = Gateway::start("max_concurrent = 1", "", slow).await;
    let ask = async || assert_eq!(gateway.ask("fake/m").await.0, 200);
    let meanwhile = async {
        eventually("a call is open", || gateway.provider.in_flight() == 1).await;
        gateway.change("", "max_concurrent = 1\nidle_timeout = \"9s\"", "").await;
        ask().await;
    };
    tokio::join!(ask(), meanwhile);
    assert_eq!(gateway.provider.most_in_flight(), 1);

    let changed = gateway.change("", "max_concurrent = 2\nidle_timeout = \"9s\"", "").await;
    assert_eq!(changed, "providers.fake.max_concurrent");
    tokio::join!(ask(), ask(), ask());
    assert_eq!(gateway.provider.most_in_flight(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_keep_their_counts_and_add_new_models() {
    let gateway = Gateway::start("", "", |_| hello_turn()).await;
    for model in ["fake/m", "fake/m", "fake/late"] {
        assert_eq!(gateway.ask(model).await.0, 200);
    }
    let attempts = |model: &str, provider: &str| {
        format!(r#"mk_attempts_total{{provider="{provider}",model="{model}",outcome="ok"}}"#)
    };
    let before = gateway.scrape().await;
    before.assert(&[(&attempts("m", "fake"), 2.0), (&attempts("late", "fake"), 1.0)]);
    // Adds a model that has been used before, and one that has not.
    let models = "[providers.fake.models.late]\nretries = 0\n[providers.second]\nkind = \"openai\"\nbase_url = \"{base_url}\"\n[providers.second.models.x]\nretries = 0";
    gateway.change("", "", models).await;
    for model in ["fake/late", "second/x", "fake/m"] {
        assert_eq!(gateway.ask(model).await.0, 200);
    }
    let after = gateway.scrape().await;
    after.assert_grown_from(&before);
    after.assert(&[
        (&attempts("m", "fake"), 3.0),
        (&attempts("late", "fake"), 2.0),
        (&attempts("x", "second"), 1.0),
    ]);
    gateway.change("", "", "").await;
    gateway.scrape().await.assert_grown_from(&after);
}
