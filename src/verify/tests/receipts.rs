//! Receipts: what they say, that each of their bytes counts, and that they are counted again as they were counted.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::support::{Call, Reply, Scenario};
use crate::api::verify::{Assessment, ReasonCode, VerifyResponse};
use crate::inference::{Failure, Finish};
use crate::secret::SecretBox;
use crate::verify::receipt::{self, OpenError, Payload, Receipt, SigningKey, Uncounted, seal};

/// A key that is the same each time.
pub(super) fn key(byte: u8) -> Arc<SigningKey> {
    Arc::new(SigningKey::from_seed(&SecretBox::new(Box::new([byte; 32]))).unwrap())
}

/// Whether a receipt is signed by its server and says what the response says, counted again.
pub(super) fn check(response: &VerifyResponse) {
    let text = response.receipt.as_deref().expect("a receipt");
    let receipt = receipt::open(text).unwrap();
    assert!(receipt.is_signed_by(key(1).public()) && !receipt.is_signed_by(key(2).public()));
    let payload = receipt.payload;
    assert_eq!(payload.claims.len(), response.results.len());
    for (record, result) in payload.claims.iter().zip(&response.results) {
        assert_eq!(&record.result, result);
        assert_eq!(payload.recount(record, payload.request.min_required).as_ref(), Ok(result), "{record:?}");
    }
    assert_eq!(seal(&payload, &key(1)).as_deref(), Some(text), "there is one way to write it");
}

async fn of(mut scenario: Scenario) -> (VerifyResponse, Payload) {
    scenario.job.receipt = Some(key(1));
    let response = scenario.complete().await;
    check(&response);
    let payload = receipt::open(response.receipt.as_deref().unwrap()).unwrap().payload;
    (response, payload)
}

fn json_of(payload: &Payload) -> Value {
    serde_json::to_value(payload).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_receipt_tells_who_was_asked_what_and_every_answer_as_it_came() {
    let mut scenario = Scenario::with_claims(1, |call| match (call.model, call.is_repair()) {
        ("a/1", _) => call.choose("yes 0"),
        ("b/1", false) => Reply::Text("Let me think \u{1b}[2J".to_owned()),
        ("b/1", true) => call.choose("no 0"),
        ("c/1", _) => Reply::Fail(Failure::Refused),
        _ => panic!("no standby is needed"),
    });
    scenario.job.context = Some("A context.".to_owned());
    scenario.job.fact.push_str(" Grüße!");
    let (response, payload) = of(scenario).await;
    let said = json_of(&payload);
    assert_eq!(said["schema"], "mk.receipt/1");
    assert_eq!(said["requestId"], "ver_1");
    assert_eq!(said["version"], env!("CARGO_PKG_VERSION"));
    let asked = json!({
        "domain": "general", "minRequired": 2, "totalModels": 3, "asOf": "2026-11-20T00:00:00.000Z",
        "explain": false, "format": "text",
    });
    assert_eq!(said["request"], asked);
    assert_eq!(said["statement"]["chars"], response.original_fact.chars().count());
    assert_eq!(said["statement"]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(said["context"]["chars"], 10);
    assert_eq!(said["extractor"], "x/1");
    let text = said.to_string();
    assert!(!text.contains("Grüße!") || text.contains("not_extracted"), "{text}");
    assert!(!text.contains("A context."));
    let output = &said["outputs"][0];
    assert_eq!((&output["task"], &output["model"]), (&json!("extraction"), &json!("x/1")));
    assert!(output["answer"]["text"].as_str().unwrap().starts_with("{\"claims\""));
    let votes = said["claims"][0]["votes"].as_array().unwrap();
    assert_eq!(votes.len(), 3);
    assert_eq!(votes[0]["model"], "a/1");
    assert_eq!(votes[0]["shown"].as_str().unwrap().len(), 6);
    assert_eq!(votes[1]["answers"][0]["text"], "Let me think \u{1b}[2J");
    assert_eq!(votes[1]["answers"].as_array().unwrap().len(), 2);
    assert_eq!(votes[2], json!({"model": "c/1", "answers": [], "error": "refused"}));
    for prompt in ["extraction", "faults", "audit", "panel", "repair"] {
        assert_eq!(said["prompts"][prompt].as_str().unwrap().len(), 64, "{prompt}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_verification_without_a_receipt_has_none() {
    let scenario = Scenario::with_claims(1, |call| call.choose("yes 0"));
    assert_eq!(scenario.complete().await.receipt, None);
}

#[tokio::test(start_paused = true)]
async fn prompts_are_told_apart_by_what_changes_them() {
    let prompts = async |change: fn(&mut Scenario)| {
        let mut scenario = Scenario::with_claims(1, |call: &Call<'_>| call.choose("yes 0"));
        change(&mut scenario);
        of(scenario).await.1.prompts
    };
    let usual = prompts(|_| {}).await;
    assert_eq!(prompts(|scenario| scenario.job.fact.push_str(" Really.")).await, usual);
    let explained = prompts(|scenario| scenario.job.explain = true).await;
    assert_eq!(explained.extraction, usual.extraction);
    assert_ne!(explained.panel, usual.panel);
    let answered = prompts(|scenario| scenario.job.context = Some("Else.".to_owned())).await;
    assert_ne!(answered.extraction, usual.extraction);
}

#[tokio::test(start_paused = true)]
async fn every_changed_bit_is_noticed() {
    let (response, _) = of(Scenario::with_claims(1, |call| call.choose("yes 0"))).await;
    let mut bytes = response.receipt.unwrap().into_bytes();
    bytes.push(b'\n');
    let server = key(1);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            let is_noticed = match std::str::from_utf8(&bytes).map(receipt::open) {
                Ok(Ok(receipt)) => !receipt.is_signed_by(server.public()),
                Ok(Err(_)) | Err(_) => true,
            };
            assert!(is_noticed, "bit {bit} of byte {at}");
            bytes[at] ^= 1 << bit;
        }
    }
    let text = String::from_utf8(bytes).unwrap();
    assert!(receipt::open(&text).unwrap().is_signed_by(server.public()));
    for (cut, other) in [(&text[1..], "begin"), (&text[..text.len() - 2], "end"), ("", "all")] {
        assert!(receipt::open(cut).is_err(), "without its {other}");
    }
    for more in ["\n", " ", "\r", ".", "A", "=", "\u{feff}"] {
        assert!(receipt::open(&format!("{text}{more}")).is_err(), "{more:?} after it");
        assert!(receipt::open(&format!("{more}{text}")).is_err(), "{more:?} before it");
    }
    assert_eq!(receipt::open(&text.replace('\n', "\r\n")).unwrap_err(), OpenError::Damaged);
}

/// A receipt that its server signed, of what somebody made of this payload.
fn forged(payload: &Payload, change: impl FnOnce(&mut Payload)) -> Payload {
    let mut forged = payload.clone();
    change(&mut forged);
    let text = seal(&forged, &key(1)).unwrap();
    let receipt: Receipt<'_> = receipt::open(&text).unwrap();
    receipt.payload
}

#[tokio::test(start_paused = true)]
async fn what_its_own_server_reports_wrongly_is_noticed_as_well() {
    let scenario = Scenario::with_claims(1, |call| match call.model {
        "c/1" => Reply::Text("garbage".to_owned()),
        "d/1" => Reply::Text("more garbage".to_owned()),
        _ => call.choose("yes 0"),
    });
    let (_, honest) = of(scenario).await;
    let recounted = |payload: &Payload| payload.recount(&payload.claims[0], 2);
    assert_eq!(recounted(&honest).unwrap().assessment, Assessment::True);

    let other = forged(&honest, |payload| payload.claims[0].result.assessment = Assessment::False);
    assert_ne!(recounted(&other).unwrap(), other.claims[0].result);
    let twice = forged(&honest, |payload| {
        let vote = payload.claims[0].votes[0].clone();
        payload.claims[0].votes.push(vote);
    });
    assert_eq!(recounted(&twice), Err(Uncounted::Twice("a/1".to_owned())));
    let dropped = forged(&honest, |payload| {
        payload.claims[0].votes[0].error = Some("malformed".to_owned());
    });
    assert_eq!(recounted(&dropped), Err(Uncounted::Readable("a/1".to_owned())));
    let made_up = forged(&honest, |payload| payload.claims[0].votes[2].error = None);
    assert_eq!(recounted(&made_up), Err(Uncounted::Unreadable("c/1".to_owned())));
    let missing = forged(&honest, |payload| payload.claims[0].votes[0].answers.clear());
    assert_eq!(recounted(&missing), Err(Uncounted::Missing("a/1".to_owned())));
    let shortened = forged(&honest, |payload| payload.claims[0].votes[0].answers[0].shortened = true);
    assert_eq!(recounted(&shortened), Err(Uncounted::Shortened("a/1".to_owned())));
    for shown in ["", "ABCDE", "AABCDE", "ABCDEG", "abcdef", "ABCDEFé"] {
        let shown = forged(&honest, |payload| payload.claims[0].votes[0].shown = shown.to_owned());
        assert_eq!(recounted(&shown), Err(Uncounted::Unreadable("a/1".to_owned())));
    }
    let asked = forged(&honest, |payload| {
        payload.claims[0].result.original_options.insert("F".to_owned(), json!("I do not know"));
    });
    assert_eq!(recounted(&asked), Err(Uncounted::Question));
    let crowded = forged(&honest, |payload| {
        let vote = &payload.claims[0].votes[0];
        let named = |n: usize| receipt::VoteRecord { model: format!("m/{n}"), ..vote.clone() };
        payload.claims[0].votes = (0..200).map(named).collect();
    });
    assert_eq!(recounted(&crowded), Err(Uncounted::TooMany));
}

#[tokio::test(start_paused = true)]
async fn another_rule_is_counted_from_the_same_votes() {
    let (_, payload) =
        of(Scenario::with_claims(1, |call| call.choose(if call.model == "a/1" { "no 0" } else { "yes 0" })))
            .await;
    let under = |min_required| payload.recount(&payload.claims[0], min_required).unwrap();
    assert_eq!(under(2).assessment, Assessment::True);
    assert_eq!(under(3).assessment, Assessment::NoConsensus);
    assert_eq!(under(3).reason_code, Some(ReasonCode::Split));
}

#[tokio::test(start_paused = true)]
async fn cut_off_answers_and_models_that_the_deadline_cut_off_count_as_they_counted() {
    let mut scenario = Scenario::with_claims(1, |call| match call.model {
        "a/1" if call.is_repair() => call.choose("yes 0"),
        "a/1" => Reply::TextWithFinish("A".to_owned(), Finish::Length),
        "b/1" => call.choose("yes 0"),
        _ => Reply::Hang,
    });
    scenario.settings.general.deadline = Duration::from_secs(20);
    let (response, payload) = of(scenario).await;
    assert_eq!(response.results[0].assessment, Assessment::True);
    let record = &payload.claims[0];
    assert!(record.votes[0].answers[0].cut_off && !record.votes[0].answers[1].cut_off);
    assert_eq!((record.outstanding, record.votes.len()), (1, 3));
    assert_eq!(payload.recount(record, 3).unwrap().reason_code, Some(ReasonCode::InsufficientAnswers));
}

#[tokio::test(start_paused = true)]
async fn an_endless_answer_is_said_to_be_shortened_and_changes_no_verdict() {
    let reasoning = format!("<think>{}</think>", "hm ".repeat(40_000));
    let mut scenario = Scenario::with_claims(1, move |call| match call.choose("yes 0") {
        Reply::Text(text) if call.model == "a/1" => Reply::Text(format!("{reasoning}{text}")),
        reply => reply,
    });
    scenario.job.receipt = Some(key(1));
    let response = scenario.complete().await;
    assert_eq!(response.results[0].model_answers.len(), 3);
    let payload = receipt::open(response.receipt.as_deref().unwrap()).unwrap().payload;
    let counted = payload.recount(&payload.claims[0], 2);
    assert_eq!(counted, Err(Uncounted::Shortened("a/1".to_owned())));
    assert!(payload.claims[0].votes[0].answers[0].text.len() <= 1024);
}

#[test]
fn foreign_texts_are_no_receipts() {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
    let with = |head: &str, payload: &str| {
        format!("{}.{}.{}", BASE64.encode(head), BASE64.encode(payload), BASE64.encode([0; 64]))
    };
    let head = r#"{"alg":"EdDSA","typ":"mk.receipt/1","kid":"0123456789abcdef"}"#;
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    for payload in ["", "{}", "[]", "null", &deep, &format!("{{\"schema\":{deep}}}")] {
        assert_eq!(receipt::open(&with(head, payload)).unwrap_err(), OpenError::Damaged);
    }
    for other in [
        r#"{"alg":"none","typ":"mk.receipt/1","kid":"0123456789abcdef"}"#,
        r#"{"alg":"EdDSA","typ":"mk.receipt/1","kid":"0123456789ABCDEF"}"#,
        r#"{"alg":"EdDSA","typ":"mk.receipt/1","kid":""}"#,
        r#"{ "alg":"EdDSA","typ":"mk.receipt/1","kid":"0123456789abcdef"}"#,
        r#"{"alg":"EdDSA","typ":"JWT"}"#,
        "",
    ] {
        assert_eq!(receipt::open(&with(other, "{}")).unwrap_err(), OpenError::NotAReceipt, "{other}");
    }
    for text in ["", ".", "..", "a.b.c", "\n", "ü.ü.ü", "{}", "....", "eyJ.e30.\u{1b}[2J"] {
        assert!(receipt::open(text).is_err(), "{text:?}");
    }
}
