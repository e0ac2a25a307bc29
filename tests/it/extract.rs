//! `POST /verify/v1/extract`: what a verification would put to the panel, without asking it.

use mk::api::Service;
use mk::config::ServerConfig;
use mk::money::{NanoUsd, Price};
use mk::providers::ModelSettings;
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::support::events::Events;
use crate::support::eventually;
use crate::support::panel::{config, eiffel, finds_eiffel, with_panel};
use crate::support::provider::{FakeProvider, Reply, claims};
use crate::support::server::{Setup, TestServer, client, header, sandbox};

const FACT: &str = "The Eiffel Tower is in Paris. Is it not lovely?";

fn extract(server: &TestServer, key: &str, body: &Value) -> RequestBuilder {
    client().post(format!("{}/verify/v1/extract", server.base)).bearer_auth(key).json(body)
}

async fn document(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn it_lists_what_a_verification_would_ask_and_asks_no_panel() {
    let (server, provider) = with_panel(|_, ask| ask.choose("Paris")).await;
    let key = server.key(Service::Verify);
    let body = json!({
        "fact": FACT, "asOf": "2026-11-20", "minRequired": 3, "totalModels": 3, "explain": true, "receipt": true,
    });
    let response = extract(&server, &key, &body).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(header(&response, "content-type"), "application/json");
    assert_eq!(header(&response, "x-ratelimit-remaining"), "59");
    let extracted: Value = response.json().await.unwrap();
    let asked: Vec<String> = provider.requests().into_iter().map(|ask| ask.model).collect();
    assert!(!asked.is_empty() && asked.iter().all(|model| model == "extractor"), "{asked:?}");

    assert_eq!(extracted["original_fact"], FACT);
    let claim = &extracted["claims"][0];
    assert_eq!(claim["claim"], "The Eiffel Tower is in Paris.");
    assert_eq!(claim["quote"], "The Eiffel Tower is in Paris");
    assert_eq!(claim["span"], json!({"start": 0, "end": 28}));
    assert_eq!(claim["question"], "In which city is the Eiffel Tower?");
    assert_eq!((&claim["claimed_answer"], &claim["options"]["A"]), (&json!("A"), &json!("Paris")));
    assert_eq!(extracted["audited"], false);
    assert!(extracted.get("receipt").is_none(), "nothing was voted on: {extracted}");
    let usage = &extracted["tokenUsage"];
    assert_eq!(usage["extractionTokens"], usage["totalTokens"], "{usage}");
    assert_eq!(usage["verificationTokens"], 0);

    let verified = Events::read(server.verify(&key, &body).send().await.unwrap()).await;
    let listed = verified.one("claims_extracted");
    for field in ["id", "quote", "span", "question", "options"] {
        assert_eq!(claim[field], listed["details"][0][field], "{field}");
    }
    assert_eq!(extracted["skipped"], listed["skipped"]);
    let completed = verified.end("completed");
    for field in ["coverage", "complete", "audited", "domain", "asOf"] {
        assert_eq!(extracted[field], completed[field], "{field}");
    }
}

#[tokio::test]
async fn events_show_that_a_long_one_goes_on() {
    let server = Setup::new(sandbox()).start().await;
    let key = server.key(Service::Verify);
    let request = extract(&server, &key, &json!({"fact": "The capital of Australia is Sydney. Nice."}));
    let events = Events::read(request.header("accept", "text/event-stream").send().await.unwrap()).await;
    assert_eq!(events.names(), ["starting", "extracting_claims", "claims_extracted", "completed"]);
    let (listed, completed) = (events.one("claims_extracted"), events.end("completed"));
    assert_eq!(completed["claims"][0]["claim"], listed["claims"][0]);
    assert_eq!((&completed["audited"], &completed["mode"]), (&json!(true), &json!("sandbox")));
    assert_eq!(completed["requestId"], events.one("starting")["requestId"]);
}

#[tokio::test]
async fn what_an_extractor_gets_wrong_is_mended_as_in_a_verification() {
    let server = Setup::new(sandbox()).start().await;
    let key = server.key(Service::Verify);
    let of = |fact: &'static str| document(extract(&server, &key, &json!({"fact": fact})));
    let (_, mended) = of("The capital of Australia is Sydney. [sandbox:omit]").await;
    assert_eq!(mended["claims"][0]["options"]["A"], "Sydney", "{mended}");
    assert_eq!((&mended["complete"], &mended["audited"]), (&json!(true), &json!(true)));
    let (_, corrected) = of("The capital of Australia is Sydney. [sandbox:correct]").await;
    assert_eq!(corrected["skipped"][0]["reason"], "unfaithful", "{corrected}");
    let (_, omitted) = of("The capital of Australia is Sydney. [sandbox:omit=always]").await;
    assert_eq!(omitted["claims"], json!([]));
    assert_eq!(omitted["skipped"][0]["reason"], "not_extracted");
    assert_eq!(omitted["complete"], false);
}

#[tokio::test]
async fn the_gate_and_the_checks_are_those_of_a_verification() {
    let (server, provider) = with_panel(|_, ask| ask.choose("Paris")).await;
    let key = server.key(Service::Verify);
    let fact = json!({"fact": FACT});
    let other_service = server.key(Service::Inference);
    for (key, body, status, code) in [
        ("", &fact, 401, "missing_api_key"),
        (other_service.as_str(), &fact, 401, "wrong_service"),
        (&key, &json!({}), 400, "missing_parameter"),
        (&key, &json!({"fact": " "}), 400, "invalid_parameter"),
        (&key, &json!({"fact": "x", "minRequired": 9}), 400, "invalid_parameter"),
        (&key, &json!({"fact": "x", "panel": []}), 400, "unsupported_parameter"),
    ] {
        let (answered, error) = document(extract(&server, key, body)).await;
        assert_eq!((answered, error["code"].as_str().unwrap()), (status, code), "{body}: {error}");
    }
    let get = client().get(format!("{}/verify/v1/extract", server.base)).send().await.unwrap();
    assert_eq!((get.status().as_u16(), header(&get, "allow")), (405, "POST"));
    let (tight, _) = server.key_with(Service::Verify, |new| new.per_minute = Some(1));
    assert_eq!(document(extract(&server, &tight, &fact)).await.0, 200);
    let (status, error) = document(extract(&server, &tight, &fact)).await;
    assert_eq!((status, &error["code"]), (429, &json!("rate_limited_minute")));
    // Only the models that may take part must be allowed: `one` and `two` decide where others differ.
    let patterns = ["fake/extractor", "fake/one", "fake/two"].map(str::to_owned);
    let (limited, _) = server.key_with(Service::Verify, |new| new.models = patterns.to_vec());
    assert_eq!(document(extract(&server, &limited, &fact)).await.0, 200);
    let refused = server.verify(&limited, &fact).header("accept", "application/json");
    assert_eq!(document(refused).await.0, 403);
    assert!(provider.requests().iter().all(|ask| ask.model == "extractor"));
}

#[tokio::test]
async fn budgets_hold_and_every_call_is_booked() {
    let provider = FakeProvider::start(|_| finds_eiffel()).await;
    let price = |config: &mut ServerConfig| {
        let price = Some(Price::new(NanoUsd(0), NanoUsd(1_000_000_000)));
        let settings = ModelSettings { price, ..ModelSettings::default() };
        config.providers[0].models.insert("extractor".to_owned(), settings);
    };
    let server = Setup::new(config(&provider.base_url)).config(price).start().await;
    let body = json!({"fact": "The Eiffel Tower is in Paris."});
    let with_budget = |budget| server.key_with(Service::Verify, |new| new.budget = Some(NanoUsd(budget))).0;
    // The panel has no price: that is no obstacle to a key that has a budget.
    let (status, extracted) = document(extract(&server, &with_budget(1_000_000_000), &body)).await;
    assert_eq!(status, 200, "{extracted}");
    assert!(extracted["cost_usd"].as_f64().unwrap() > 0.0, "{extracted}");
    assert_eq!(extracted["tokenUsage"]["modelUsage"][0]["cost_usd"], extracted["cost_usd"]);
    server.app.flush().unwrap();
    let rows = server.app.store.attempts_of(extracted["requestId"].as_str().unwrap()).unwrap();
    assert_eq!(rows.len(), provider.requests().len());
    let booked: u64 = rows.iter().map(|row| row.prompt_tokens + row.completion_tokens).sum();
    assert_eq!(extracted["tokenUsage"]["totalTokens"], booked);
    let (status, error) = document(extract(&server, &with_budget(1), &body)).await;
    assert_eq!((status, &error["code"]), (402, &json!("budget_exceeded")));
}

#[tokio::test]
async fn disconnecting_stops_the_call() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let key = server.key(Service::Verify);
    let waiting = tokio::spawn(extract(&server, &key, &json!({"fact": FACT})).send());
    eventually("the extractor is called", || provider.in_flight() == 1).await;
    waiting.abort();
    eventually("the call is abandoned", || provider.in_flight() == 0 && provider.abandoned() == 1).await;
}

#[tokio::test]
async fn without_an_extraction_it_ends_with_an_error() {
    let provider = FakeProvider::start(|ask| match ask.block("SECTION") {
        text if text.contains("fail") => Reply::status(500, &json!({})),
        text if text.contains("hang") => Reply::Hang,
        _ => claims(&[eiffel()]),
    })
    .await;
    let short = |config: &mut ServerConfig| {
        config.verify.general.deadline = std::time::Duration::from_millis(300);
        config.verify.general.model_timeout = std::time::Duration::from_mins(1);
    };
    let server = Setup::new(config(&provider.base_url)).config(short).start().await;
    let key = server.key(Service::Verify);
    for (fact, status, code) in
        [("It may fail.", 502, "provider_error"), ("It may hang.", 504, "provider_timeout")]
    {
        let request = extract(&server, &key, &json!({"fact": fact}));
        let (answered, error) = document(request.try_clone().unwrap()).await;
        assert_eq!((answered, &error["code"]), (status, &json!(code)), "{error}");
        let events = Events::read(request.header("accept", "text/event-stream").send().await.unwrap()).await;
        assert_eq!(events.end("error")["code"], code);
    }
}
