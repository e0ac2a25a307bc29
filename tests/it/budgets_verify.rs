//! Budgets for verifications: calls beyond the budget are not made, and the remaining answers are judged as usual.

use mk::api::Service;
use mk::config::ServerConfig;
use mk::money::{NanoUsd, Price};
use mk::providers::ModelSettings;
use serde_json::{Value, json};

use crate::support::events::Events;
use crate::support::panel::{config, finds_eiffel};
use crate::support::provider::{FakeProvider, Reply, claim, claims};
use crate::support::server::{Setup, TestServer};

/// The maximum cost of an extraction (32,768 tokens) and of a panel answer (4,096 tokens) at $1 per million.
const EXTRACTION: u64 = 32_768_000;
const ANSWER: u64 = 4_096_000;

/// A server whose models cost this many dollars per million completion tokens; prompts are free.
async fn server(prices: &[(&str, u64)]) -> (TestServer, FakeProvider) {
    with_failures(&[], |config| {
        config.verify.general.standby = vec!["fake/four".into()];
        price(config, prices);
    })
    .await
}

/// A server with this configuration, whose provider fails for some models.
async fn with_failures(
    failing: &'static [&str],
    change: impl FnOnce(&mut ServerConfig),
) -> (TestServer, FakeProvider) {
    let provider = FakeProvider::start(|ask| match ask.task.as_str() {
        _ if failing.contains(&ask.model.as_str()) => Reply::status(500, &json!({})),
        "claims" => finds_eiffel(),
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).config(change).start().await;
    (server, provider)
}

fn price(config: &mut ServerConfig, prices: &[(&str, u64)]) {
    for (model, dollars) in prices {
        let price = Price::new(NanoUsd(0), NanoUsd(dollars * 1_000_000_000));
        let settings = ModelSettings { price: Some(price), ..ModelSettings::default() };
        config.providers[0].models.insert((*model).to_owned(), settings);
    }
}

/// Gives all models of the panel a price.
pub fn price_all(config: &mut ServerConfig) {
    price(config, &PRICED);
}

fn key_of(server: &TestServer, budget: u64) -> String {
    server.key_with(Service::Verify, |new| new.budget = Some(NanoUsd(budget))).0
}

async fn refused(server: &TestServer, key: &str) -> (u16, bool, Value) {
    answer(server.verify(key, &json!({"fact": "The Eiffel Tower is in Paris."}))).await
}

async fn as_document(server: &TestServer, key: &str) -> (u16, bool, Value) {
    answer(
        server
            .verify(key, &json!({"fact": "The Eiffel Tower is in Paris."}))
            .header("accept", "application/json"),
    )
    .await
}

/// Status, whether the response says that a retry is pointless, and body.
async fn answer(request: reqwest::RequestBuilder) -> (u16, bool, Value) {
    let response = request.send().await.unwrap();
    let is_hopeless = response.headers().get("x-should-retry").is_some_and(|value| value == "false");
    (response.status().as_u16(), is_hopeless, response.json().await.unwrap())
}

const PRICED: [(&str, u64); 5] = [("extractor", 1), ("one", 1), ("two", 1), ("three", 1), ("four", 1)];

#[tokio::test]
async fn a_budget_too_small_for_the_extraction_is_rejected_before_the_stream() {
    let (server, provider) = server(&PRICED).await;
    let (status, is_hopeless, body) = refused(&server, &key_of(&server, EXTRACTION - 1)).await;
    assert_eq!((status, is_hopeless), (402, true));
    assert_eq!((&body["error"], &body["code"]), (&json!("Payment Required"), &json!("budget_exceeded")));
    assert_eq!(
        body["message"],
        "Calling fake/extractor: this could cost up to $0.032768, but $0.032767999 is left of the monthly budget of \
         this API key ($0.032767999). Ask the operator to raise it; it resets on 2026-12-01 (UTC)"
    );
    assert_eq!(provider.requests().len(), 0);

    let key = key_of(&server, EXTRACTION);
    let events = Events::read(
        server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap(),
    )
    .await;
    assert_eq!(events.end("completed")["results"][0]["assessment"], "TRUE");
}

#[tokio::test]
async fn a_model_beyond_the_budget_fails_alone_and_is_not_replaced_by_a_standby() {
    let (server, provider) =
        server(&[("extractor", 1), ("one", 1), ("two", 1), ("three", 10), ("four", 1)]).await;
    let key = key_of(&server, EXTRACTION);
    let events = Events::read(
        server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap(),
    )
    .await;
    let result = &events.end("completed")["results"][0];
    assert_eq!(result["assessment"], "TRUE");
    assert_eq!(result["model_errors"], json!([{"model": "fake/three", "code": "budget_exceeded"}]));
    assert_eq!(provider.requests_for("three").len() + provider.requests_for("four").len(), 0);
}

#[tokio::test]
async fn a_budget_that_covers_only_the_extraction_fails_the_verification() {
    let (server, provider) =
        server(&[("extractor", 1), ("one", 10), ("two", 10), ("three", 10), ("four", 1)]).await;
    let key = key_of(&server, 10 * ANSWER - 1);
    let call = || server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."}));
    let events = Events::read(call().send().await.unwrap()).await;
    let error = events.end("error");
    assert_eq!((&error["error"], &error["code"]), (&json!("Payment Required"), &json!("budget_exceeded")));
    let response = call().header("accept", "application/json").send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["x-should-retry"]),
        (402, &"false".parse().unwrap())
    );
    assert_eq!(provider.requests().len(), 2, "only the extractions");
}

#[tokio::test]
async fn models_without_a_price_are_reported_before_the_stream() {
    for missing in ["extractor", "two"] {
        let priced: Vec<_> = PRICED.into_iter().filter(|(model, _)| *model != missing).collect();
        let (server, provider) = server(&priced).await;
        let (status, _, body) = refused(&server, &key_of(&server, u64::from(u32::MAX))).await;
        assert_eq!((status, &body["code"]), (403, &json!("price_unknown")));
        let message = body["message"].as_str().unwrap();
        assert!(
            message.contains(&format!("fake/{missing} ")) && message.contains("input_usd_per_mtok"),
            "{message}"
        );
        assert_eq!(provider.requests().len(), 0);
    }
}

#[tokio::test]
async fn an_auditor_without_a_price_is_reported_and_not_left_out() {
    let (server, provider) = with_failures(&[], |config| {
        config.verify.general.auditor = Some("fake/auditor".into());
        price(config, &PRICED);
    })
    .await;
    let (status, _, body) = refused(&server, &key_of(&server, u64::from(u32::MAX))).await;
    assert_eq!((status, &body["code"]), (403, &json!("price_unknown")), "{body}");
    assert!(body["message"].as_str().unwrap().contains("fake/auditor "), "{body}");
    assert_eq!(provider.requests().len(), 0);
}

/// The auditor is the extractor, in whose place one of the panel audits: of that one the price counts, also where only an
/// extraction is asked for.
#[tokio::test]
async fn the_price_of_the_model_that_really_audits_counts() {
    let (server, provider) = with_failures(&[], |config| {
        config.verify.general.auditor = Some("fake/extractor".into());
        price(config, &[("extractor", 1)]);
    })
    .await;
    let key = key_of(&server, u64::from(u32::MAX));
    let request = server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."}));
    let (client, request) = request.build_split();
    let mut request = request.unwrap();
    request.url_mut().set_path("/verify/v1/extract");
    let refused = client.execute(request).await.unwrap();
    assert_eq!(refused.status(), 403);
    let body: Value = refused.json().await.unwrap();
    assert!(body["message"].as_str().unwrap().contains("fake/one "), "{body}");
    assert_eq!(provider.requests().len(), 0);
}

#[tokio::test]
async fn concurrent_calls_wait_for_reservations_instead_of_failing() {
    let provider = FakeProvider::start(|ask| match ask.task.as_str() {
        "claims" => {
            let of = |(name, said): (char, &str)| {
                let mut found = claim(said, &format!("Where ({name})?"), "Paris", &["Rome", "Oslo"]);
                found["quote"] = "The Eiffel Tower is in Paris.".into();
                found
            };
            let said = ["The Eiffel Tower is in Paris.", "In Paris is the Eiffel Tower."];
            let more = ["Paris has the Eiffel Tower.", "There is the Eiffel Tower in Paris, too."];
            claims(&('a'..).zip([said, more].concat()).map(of).collect::<Vec<_>>())
        }
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).config(|config| price(config, &PRICED)).start().await;
    // Enough to reserve eight answers of the twelve, which turn out to cost next to nothing.
    let (status, _, result) = as_document(&server, &key_of(&server, EXTRACTION)).await;
    assert_eq!(status, 200);
    for result in result["results"].as_array().unwrap() {
        assert_eq!(
            (&result["assessment"], &result["model_errors"]),
            (&json!("TRUE"), &json!([])),
            "{result}"
        );
    }
    assert_eq!(provider.requests().len(), 1 + 12);
}

#[tokio::test]
async fn a_key_restricted_to_models_verifies_only_with_those_models() {
    let (server, _provider) = server(&[]).await;
    let of = |models: &[&str]| {
        server
            .key_with(Service::Verify, |new| new.models = models.iter().map(|&model| model.into()).collect())
            .0
    };
    let (status, _, body) = refused(&server, &of(&["fake/one", "fake/extractor"])).await;
    assert_eq!((status, &body["code"]), (403, &json!("model_not_allowed")));
    assert!(body["message"].as_str().unwrap().contains("fake/two"), "{body}");
    let response = server
        .verify(&of(&["fake/*"]), &json!({"fact": "The Eiffel Tower is in Paris."}))
        .send()
        .await
        .unwrap();
    Events::read(response).await.end("completed");
    // The third panel model is not called if two are requested.
    let some = of(&["fake/extractor", "fake/one", "fake/two", "fake/four"]);
    assert_eq!(refused(&server, &some).await.0, 403);
    let two = json!({"fact": "The Eiffel Tower is in Paris.", "totalModels": 2});
    let response = server.verify(&some, &two).send().await.unwrap();
    Events::read(response).await.end("completed");
}

#[tokio::test]
async fn a_standby_replaces_a_paused_model_but_none_beyond_the_budget() {
    let (server, provider) = with_failures(&["two"], |config| {
        config.providers[0].call_policy.breaker_failures = 1;
        config.verify.general.standby = vec!["fake/four".into()];
        price(config, &[("extractor", 1), ("one", 1), ("two", 1), ("three", 10), ("four", 1)]);
    })
    .await;
    let run = async |budget| {
        let key = key_of(&server, budget);
        let events = Events::read(
            server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap(),
        )
        .await;
        events.end("completed")["results"][0].clone()
    };
    let first = run(u64::from(u32::MAX)).await;
    assert_eq!(first["model_errors"], json!([{"model": "fake/two", "code": "provider_error"}]));
    let second = run(EXTRACTION).await;
    assert_eq!(
        second["model_errors"],
        json!([{"model": "fake/two", "code": "paused"}, {"model": "fake/three", "code": "budget_exceeded"}])
    );
    assert_eq!(second["assessment"], "TRUE");
    let asked = ["two", "three", "four"].map(|model| provider.requests_for(model).len());
    assert_eq!(
        asked,
        [1, 1, 2],
        "the paused and the expensive model once each, the standby for `two` both times"
    );
}

#[tokio::test]
async fn a_failed_extraction_is_reported_rather_than_an_unaffordable_fallback() {
    let (server, provider) = with_failures(&["extractor"], |config| {
        config.verify.general.extractor_fallbacks = vec!["fake/dear".into(), "fake/cheap".into()];
        price(config, &PRICED);
        price(config, &[("dear", 10), ("cheap", 1)]);
    })
    .await;
    let (status, _, result) = as_document(&server, &key_of(&server, EXTRACTION)).await;
    assert_eq!((status, &result["results"][0]["assessment"]), (200, &json!("TRUE")));
    assert_eq!((provider.requests_for("dear").len(), provider.requests_for("cheap").len()), (0, 1));

    let (server, _provider) = with_failures(&["extractor"], |config| {
        config.verify.general.extractor_fallbacks = vec!["fake/dear".into()];
        price(config, &PRICED);
        price(config, &[("dear", 10)]);
    })
    .await;
    let (status, is_hopeless, body) = as_document(&server, &key_of(&server, EXTRACTION)).await;
    assert_eq!((status, is_hopeless, &body["code"]), (502, false, &json!("provider_error")));
}
