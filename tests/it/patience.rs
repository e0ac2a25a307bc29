//! Retries, timeouts and breaker pauses, set for a provider and overridden for one of its models.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::support::chat::{chunks, gateway_with, hello, hello_stream, text_of};
use crate::support::provider::{Reply, stream};

#[tokio::test]
async fn the_settings_of_a_model_override_those_of_its_provider() {
    let of_provider = r#"
first_byte_timeout = "2s"
idle_timeout = "2s"
breaker_failures = 0
[providers.fake.models.patient]
first_byte_timeout = "30s"
retries = 1
[providers.fake.models.slow]
first_byte_timeout = "30s"
idle_timeout = "30s"
total_timeout = "2s"
breaker_failures = 1
"#;
    let retried = AtomicUsize::new(0);
    let gateway = gateway_with(
        of_provider,
        "",
        |setup| setup,
        move |ask| match ask.model.as_str() {
            "patient" if retried.fetch_add(1, Ordering::SeqCst) == 0 => Reply::status(500, &json!({})),
            "slow" => Reply::Hang,
            _ => Reply::Text("hello".to_owned()).after(Duration::from_secs(4)),
        },
    )
    .await;
    let ask = async |model: &str| {
        let response = gateway.ask(&json!({"model": model, "messages": hello()["messages"]})).await;
        let attempts = response.headers()["x-mk-attempts"].to_str().unwrap().to_owned();
        (response.status().as_u16(), attempts)
    };
    assert_eq!(ask("fake/other").await, (504, "1".to_owned()));
    assert_eq!(ask("fake/patient").await, (200, "2".to_owned()));
    assert_eq!(ask("fake/slow").await, (504, "1".to_owned()));
    assert_eq!(ask("fake/slow").await, (503, "0".to_owned()));
    assert_eq!(ask("fake/other").await, (504, "1".to_owned()));
}

#[tokio::test]
async fn a_model_can_override_the_first_token_timeout_before_a_fallback() {
    let of_provider =
        "first_token_timeout = \"2s\"\n[providers.fake.models.o]\nfirst_token_timeout = \"30s\"";
    let more = "[inference.fallbacks]\n\"fake/m\" = [\"fake/n\"]\n\"fake/o\" = [\"fake/n\"]\n";
    let gateway = gateway_with(
        of_provider,
        more,
        |setup| setup,
        |ask| match ask.model.as_str() {
            "m" | "o" => stream(&["slow"]).after(Duration::from_secs(4)),
            _ => stream(&["quick"]),
        },
    )
    .await;
    for (model, text) in [("fake/m", "quick"), ("fake/o", "slow")] {
        let mut body = hello_stream();
        body["model"] = json!(model);
        assert_eq!(text_of(&chunks(&gateway.stream(&body).await), 0), text);
    }
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_has_a_limit_of_its_own_before_a_fallback() {
    let of_provider = "first_token_timeout = \"1s\"\nwhole_answer_timeout = \"2s\"\n\
                       [providers.fake.models.o]\nwhole_answer_timeout = \"30s\"";
    let more = "[inference.fallbacks]\n\"fake/*\" = [\"fake/quick\"]\n\"fake/last\" = []\n";
    let gateway = gateway_with(
        of_provider,
        more,
        |setup| setup,
        |ask| match ask.model.as_str() {
            "m" => Reply::Hang,
            "o" | "last" => Reply::Text("slow".to_owned()).after(Duration::from_secs(4)),
            _ => Reply::Text("quick".to_owned()),
        },
    )
    .await;
    let answer = async |model: &str| {
        let body = json!({"model": model, "messages": hello()["messages"]});
        let (_, answer) = gateway.json(&body).await;
        answer["choices"][0]["message"]["content"].clone()
    };
    assert_eq!(answer("fake/m").await, "quick");
    // Its own limit is longer; the last has no fallback and therefore no such limit.
    assert_eq!(answer("fake/o").await, "slow");
    assert_eq!(answer("fake/last").await, "slow");
    let timed_out = gateway.rows().iter().filter(|row| &*row.outcome == "timeout").count();
    assert_eq!(timed_out, 1);
}
