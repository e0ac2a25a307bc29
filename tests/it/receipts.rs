//! Receipts over real sockets: who gets one, what it tells, and by which key it is signed.

use mk::api::Service;
use mk::verify::receipt::{self, Payload, PublicKey, Receipt};
use reqwest::header::{ACCEPT, ALLOW};
use serde_json::{Value, json};

use crate::support::events::Events;
use crate::support::panel::{config, finds_eiffel, idle_server, with_panel};
use crate::support::provider::{FakeProvider, Reply};
use crate::support::server::{Setup, TestServer, client};

const FACT: &str = "The Eiffel Tower is in Paris.";

async fn completed(server: &TestServer, body: &Value) -> Value {
    let key = server.key(Service::Verify);
    let events = Events::read(server.verify(&key, body).send().await.unwrap()).await;
    events.end("completed").clone()
}

/// The key that the server tells everybody.
async fn public_key(server: &TestServer) -> PublicKey {
    let address = format!("{}/verify/v1/receipt-key", server.base);
    let told: Value = client().get(address).send().await.unwrap().json().await.unwrap();
    assert_eq!(told["algorithm"], "Ed25519");
    let key = PublicKey::from_pem(told["public_key"].as_str().unwrap()).unwrap();
    assert_eq!(told["key_id"], key.id());
    key
}

async fn payload(server: &TestServer, completed: &Value) -> Payload {
    let opened: Receipt<'_> = receipt::open(completed["receipt"].as_str().unwrap()).unwrap();
    assert!(opened.is_signed_by(&public_key(server).await));
    opened.payload
}

#[tokio::test]
async fn a_receipt_is_in_the_result_of_whoever_asks_for_one_and_counts_as_it_was_counted() {
    let (server, _provider) =
        with_panel(|model, ask| match (model, ask.text().contains("Your last answer")) {
            ("two", false) => Reply::Text("Hm.".to_owned()),
            ("three", _) => ask.choose("Rome"),
            _ => ask.choose("Paris"),
        })
        .await;
    let result = completed(&server, &json!({"fact": FACT, "receipt": true, "asOf": "2026-11-20"})).await;
    let said = payload(&server, &result).await;
    assert_eq!(json!(said.request_id), result["requestId"]);
    assert_eq!(said.statement.chars, FACT.chars().count());
    let [record] = said.claims.as_slice() else { panic!("{said:?}") };
    assert_eq!(serde_json::to_value(&record.result).unwrap(), result["results"][0]);
    assert_eq!(said.recount(record, 2).as_ref(), Ok(&record.result));
    let votes = serde_json::to_value(&record.votes).unwrap();
    assert_eq!((&votes[0]["model"], &votes[0]["answered_by"]), (&json!("fake/one"), &json!("one")));
    let texts: Vec<&str> =
        votes[1]["answers"].as_array().unwrap().iter().map(|raw| raw["text"].as_str().unwrap()).collect();
    assert_eq!((texts.len(), texts[0]), (2, "Hm."));
    assert!(!serde_json::to_string(&said).unwrap().contains("receipt\":null"));
}

#[tokio::test]
async fn one_document_has_it_as_well_and_without_asking_there_is_none() {
    let (server, _provider) = with_panel(|_, ask| ask.choose("Paris")).await;
    let key = server.key(Service::Verify);
    let request = |body| server.verify(&key, &body).header(ACCEPT, "application/json").send();
    let with: Value = request(json!({"fact": FACT, "receipt": true})).await.unwrap().json().await.unwrap();
    payload(&server, &with).await;
    for receipt in [json!(false), Value::Null] {
        let body = json!({"fact": FACT, "receipt": receipt});
        let without: Value = request(body).await.unwrap().json().await.unwrap();
        assert_eq!(without.get("receipt"), None);
    }
    let refused = request(json!({"fact": FACT, "receipt": "yes"})).await.unwrap();
    assert_eq!(refused.status(), 400);
    let refused: Value = refused.json().await.unwrap();
    assert_eq!(refused["param"], "receipt");
    assert_eq!(refused["message"], "`receipt` must be true or false, not a string");
}

#[tokio::test]
async fn the_key_is_for_everybody_and_lasts() {
    let provider = FakeProvider::start(|ask| match ask.task.as_str() {
        "claims" => finds_eiffel(),
        _ => ask.choose("Paris"),
    })
    .await;
    let setup = Setup::new(config(&provider.base_url));
    let (dir, settings) = (setup.dir.clone(), setup.config.clone());
    let first = setup.start().await;
    let result = completed(&first, &json!({"fact": FACT, "receipt": true})).await;
    let key = public_key(&first).await;
    first.shutdown().await;
    // Another server on the same data, as after a restart.
    let again =
        Setup { dir, ..Setup::new(settings.clone()) }.config(|config| *config = settings).start().await;
    assert_eq!(public_key(&again).await, key);
    payload(&again, &result).await;
    let other = idle_server().await;
    assert_ne!(public_key(&other).await, key);
    let address = format!("{}/verify/v1/receipt-key", other.base);
    let refused = client().post(address).send().await.unwrap();
    assert_eq!(refused.status(), 405);
    assert_eq!(refused.headers()[ALLOW], "GET, HEAD");
}
