//! The verification stream: its bytes, the order of its events, its JSON form.

use std::time::Duration;

use futures_util::StreamExt;
use mk::api::Service;
use serde_json::{Value, json};

use crate::support::events::Events;
use crate::support::panel::{agreeing_panel, config, finds_eiffel, panel_by};
use crate::support::provider::{FakeProvider, Reply, claim, claims};
use crate::support::server::Setup;

#[tokio::test]
async fn a_verification_sends_its_events_in_the_documented_order() {
    let (server, _provider) = agreeing_panel().await;
    let key = server.key(Service::Verify);
    let response =
        server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(response.headers()["cache-control"], "no-cache, no-transform");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let events = Events::read(response).await;

    assert_eq!(
        events.names(),
        [
            "starting",
            "extracting_claims",
            "claims_extracted",
            "verifying_claims",
            "verifying_claim",
            "claim_verified",
            "completed"
        ]
    );
    assert!(events.raw.starts_with("event: starting\ndata: {\"status\":\"starting\""));
    assert!(
        events.raw.contains("\n\nevent: extracting_claims\ndata: {\"status\":\"extracting_claims\"}\n\n")
    );
    assert_eq!(
        events.one("claims_extracted"),
        &json!({
            "claims": ["The Eiffel Tower is in Paris."], "count": 1, "skipped": [],
            "details": [{
                "id": "claim_1", "quote": "The Eiffel Tower is in Paris", "span": {"start": 0, "end": 28},
                "question": "In which city is the Eiffel Tower?",
                "options": {"A": "Paris", "B": "London", "C": "Rome", "D": "Berlin",
                            "E": "None of these", "F": "Cannot be determined"},
            }],
        })
    );
    assert_eq!(events.one("verifying_claims"), &json!({"totalClaims": 1}));
    assert_eq!(
        events.one("verifying_claim"),
        &json!({"claimIndex": 0, "claim": "The Eiffel Tower is in Paris."})
    );
    assert_eq!(
        events.one("claim_verified"),
        &json!({
            "claimIndex": 0, "assessment": "TRUE", "consensus_answer": "A",
            "model_answers": [
                {"model": "fake/one", "answer": "A"},
                {"model": "fake/two", "answer": "A"},
                {"model": "fake/three", "answer": "A"},
            ],
        })
    );
}

#[tokio::test]
async fn a_common_client_library_reads_the_stream() {
    use reqwest_eventsource::retry::Never;
    use reqwest_eventsource::{Error, Event, EventSource};
    let (server, _provider) = agreeing_panel().await;
    let request =
        server.verify(&server.key(Service::Verify), &json!({"fact": "The Eiffel Tower is in Paris."}));
    let mut source = EventSource::new(request).unwrap();
    // By default it sends a request again when its stream ends.
    source.set_retry_policy(Box::new(Never));
    let mut names = Vec::new();
    loop {
        match source.next().await.unwrap() {
            Ok(Event::Open) => {}
            Ok(Event::Message(message)) => {
                assert!(serde_json::from_str::<Value>(&message.data).is_ok(), "{message:?}");
                names.push(message.event);
            }
            Err(Error::StreamEnded) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(names.first().map(String::as_str), Some("starting"));
    assert_eq!(names.last().map(String::as_str), Some("completed"));
}

#[tokio::test]
async fn the_result_has_every_documented_field() {
    let (server, _provider) = agreeing_panel().await;
    let key = server.key(Service::Verify);
    let fact = "  The Eiffel Tower is in Paris.\n";
    let events = Events::read(server.verify(&key, &json!({"fact": fact})).send().await.unwrap()).await;
    let result = events.end("completed");

    assert_eq!(result["original_fact"], fact, "the statement is returned unchanged");
    assert_eq!(result["requestId"], events.one("starting")["requestId"]);
    assert!(result["requestId"].as_str().unwrap().starts_with("ver_"));
    assert_eq!(result["timestamp"], "2026-11-20T12:00:00.000Z");
    assert_eq!(result["minRequired"], 2);
    assert_eq!(result["skipped"], json!([]));
    assert_eq!((&result["complete"], &result["audited"]), (&json!(true), &json!(false)));
    assert_eq!(result["coverage"], json!({"sentences": 1, "checked": 1, "skipped": 0, "unchecked": 0}));
    assert_eq!((&result["domain"], &result["totalModels"]), (&json!("general"), &json!(3)));
    assert_eq!(result["asOf"], "2026-11-20T12:00:00.000Z");
    assert_eq!(result["cost_usd"], Value::Null, "the prices of these models are unknown");
    let claim = &result["results"][0];
    assert_eq!(claim["claim"], "The Eiffel Tower is in Paris.");
    assert_eq!(claim["assessment"], "TRUE");
    assert_eq!(claim["original_question"], "In which city is the Eiffel Tower?");
    assert_eq!(
        claim["original_options"],
        json!({"A": "Paris", "B": "London", "C": "Rome", "D": "Berlin",
               "E": "None of these", "F": "Cannot be determined"})
    );
    assert_eq!(claim["claimed_answer"], "A");
    assert_eq!(claim["consensus_answer"], "A");
    assert_eq!(claim["reason_code"], "consensus");
    assert_eq!(claim["model_errors"], json!([]));
    assert!(claim["id"].is_string());
    assert_eq!(claim["quote"], "The Eiffel Tower is in Paris");
    assert_eq!(claim["span"], json!({"start": 2, "end": 30}), "in code points, blanks before it included");

    let usage = &result["tokenUsage"];
    assert_eq!(usage["totalTokens"], 440, "four calls of 110 tokens");
    assert_eq!(usage["promptTokens"], 400);
    assert_eq!(usage["completionTokens"], 40);
    assert_eq!(usage["extractionTokens"], 110);
    assert_eq!(usage["verificationTokens"], 330);
    let by_model: u64 = usage["modelUsage"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["totalTokens"].as_u64().unwrap())
        .sum();
    assert_eq!(by_model, 440);
}

#[tokio::test]
async fn a_statement_without_claims_completes() {
    let provider = FakeProvider::start(|_| {
        Reply::json(&json!({"claims": [], "skipped": [{"quote": "Paris is lovely.", "reason": "opinion"}]}))
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let key = server.key(Service::Verify);
    let events =
        Events::read(server.verify(&key, &json!({"fact": "Paris is lovely."})).send().await.unwrap()).await;
    assert_eq!(
        events.names(),
        ["starting", "extracting_claims", "claims_extracted", "verifying_claims", "completed"]
    );
    assert_eq!(events.one("claims_extracted")["count"], 0);
    assert_eq!(events.one("verifying_claims")["totalClaims"], 0);
    assert_eq!(events.end("completed")["results"], json!([]));
    assert_eq!(
        events.end("completed")["skipped"],
        json!([{"text": "Paris is lovely.", "reason": "opinion", "span": {"start": 0, "end": 16}}])
    );
    assert_eq!(provider.requests().len(), 1, "the panel was not called");
}

#[tokio::test]
async fn claims_are_verified_concurrently_and_returned_in_order() {
    let house = |n: u32| format!("House number {n} in this street is painted blue.");
    let street = (0..4).map(house).collect::<Vec<_>>().join(" ");
    let provider = FakeProvider::start(move |ask| {
        if ask.task == "claims" {
            let claims: Vec<Value> = (0..4)
                .map(|n| {
                    let question = format!("Which colour has house number {n}?");
                    claim(&house(n), &question, "blue", &["red", "green"])
                })
                .collect();
            return self::claims(&claims);
        }
        // The first claim is answered last.
        let first = ask.block("QUESTION").contains("number 0");
        ask.choose("blue").after(Duration::from_millis(if first { 300 } else { 10 }))
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let key = server.key(Service::Verify);
    let events = Events::read(server.verify(&key, &json!({"fact": street})).send().await.unwrap()).await;

    let arrived: Vec<u64> = events
        .frames
        .iter()
        .filter(|(name, _)| name == "claim_verified")
        .map(|(_, data)| data["claimIndex"].as_u64().unwrap())
        .collect();
    assert_eq!(arrived.last(), Some(&0), "results arrive as they are ready: {arrived:?}");
    let claims: Vec<&str> = events.results().iter().map(|result| result["claim"].as_str().unwrap()).collect();
    assert_eq!(claims, (0..4).map(house).collect::<Vec<_>>());
    let started = |index: u64| {
        events.frames.iter().position(|(name, data)| name == "verifying_claim" && data["claimIndex"] == index)
    };
    let done = |index: u64| {
        events.frames.iter().position(|(name, data)| name == "claim_verified" && data["claimIndex"] == index)
    };
    assert!((0..4).all(|index| started(index) < done(index)));
    assert!(
        provider.most_in_flight() >= 12,
        "expected 12 concurrent calls, saw {}",
        provider.most_in_flight()
    );
}

#[tokio::test]
async fn starting_is_sent_before_any_provider_has_answered() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let key = server.key(Service::Verify);
    let response =
        server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap();
    let first = response.bytes_stream().next().await.unwrap().unwrap();
    assert!(first.starts_with(b"event: starting\n"));
}

#[tokio::test]
async fn progress_of_single_models_is_sent_only_on_request() {
    let (server, _provider) = agreeing_panel().await;
    let key = server.key(Service::Verify);
    let body = json!({"fact": "The Eiffel Tower is in Paris."});
    let asked = server.verify(&key, &body).header("x-mk-progress", "models").send().await.unwrap();
    let events = Events::read(asked).await;
    let answered: Vec<u64> = events
        .frames
        .iter()
        .filter(|(name, _)| name == "model_answered")
        .map(|(_, data)| data["answered"].as_u64().unwrap())
        .collect();
    assert_eq!(answered, [1, 2, 3]);
    let default = Events::read(server.verify(&key, &body).send().await.unwrap()).await;
    assert!(!default.names().contains(&"model_answered"));
}

#[tokio::test]
async fn accept_json_gives_the_result_as_one_document() {
    let (server, _provider) = agreeing_panel().await;
    let key = server.key(Service::Verify);
    let response = server
        .verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."}))
        .header("accept", "application/json")
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
    let result: Value = response.json().await.unwrap();
    assert_eq!(result["results"][0]["assessment"], "TRUE");
}

#[tokio::test]
async fn a_failure_in_json_form_has_its_own_status() {
    let provider = FakeProvider::start(|_| {
        Reply::status(401, &json!({"error": {"message": "Incorrect API key: sk-123"}}))
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let key = server.key(Service::Verify);
    let body = json!({"fact": "The Eiffel Tower is in Paris."});
    let response = server.verify(&key, &body).header("accept", "application/json").send().await.unwrap();
    assert_eq!(response.status(), 502, "a provider's 401 is not the caller's");
    assert_eq!(response.headers()["x-should-retry"], "false");
    let error: Value = response.json().await.unwrap();
    assert_eq!(error["code"], "provider_auth_failed");
    assert_eq!(error["provider"], "fake");
    assert!(!error.to_string().contains("sk-123"));

    let events = Events::read(server.verify(&key, &body).send().await.unwrap()).await;
    assert_eq!(events.names(), ["starting", "extracting_claims", "error"]);
    let error = events.end("error");
    assert_eq!(error["code"], "provider_auth_failed");
    assert_eq!(error["error"], "Bad Gateway");
    assert_eq!(error["requestId"], events.one("starting")["requestId"]);
}

#[tokio::test]
async fn an_idle_stream_is_kept_alive_with_comments() {
    let provider = FakeProvider::start(|ask| {
        if ask.task == "claims" {
            finds_eiffel().after(Duration::from_millis(400))
        } else {
            ask.choose("Paris")
        }
    })
    .await;
    let setup = Setup::new(config(&provider.base_url));
    let server = setup.options(|options| options.keep_alive = Duration::from_millis(50)).start().await;
    let key = server.key(Service::Verify);
    let events = Events::read(
        server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap(),
    )
    .await;
    assert!(events.raw.contains("\n\n: keep-alive\n\n"));
    events.end("completed");
}

#[tokio::test]
async fn the_providers_key_goes_to_the_provider_and_nowhere_else() {
    let secret = "sk-test-4f9c1e";
    let provider = panel_by(|_, ask| ask.choose("Paris")).await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.providers[0].api_key = Some(secret.into()))
        .start()
        .await;
    let key = server.key(Service::Verify);
    let events = Events::read(
        server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap(),
    )
    .await;
    events.end("completed");
    assert!(!events.raw.contains(secret));
    assert!(provider.requests().iter().all(|ask| ask.key.as_deref() == Some(secret)));
}
