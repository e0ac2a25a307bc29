//! What a caller got from a verification, in a form in which runs can be compared.

use std::collections::BTreeMap;

use mk::storage::AttemptRow;
use serde_json::{Value, json};

use crate::support::events::Events;

/// The outcome of a run.
pub struct Outcome {
    /// The result or the error, without what differs between runs: ids, times, tags.
    pub plain: Value,
}

impl Outcome {
    /// Reads a stream. Its events must be in order, end once, and add up to its result.
    pub fn of_stream(events: &Events, min_required: usize, tag: impl Fn(&str) -> Option<&str>) -> Self {
        let names = events.names();
        let is_end = |name: &&&str| matches!(**name, "completed" | "error");
        assert_eq!(names.iter().filter(is_end).count(), 1, "{names:?}");
        let (end, data) = events.frames.last().unwrap();
        assert!(matches!(end.as_str(), "completed" | "error"), "{names:?}");
        let order = ["starting", "extracting_claims", "claims_extracted", "verifying_claims"];
        let head = names.iter().zip(order).take_while(|(name, _)| **name != "error");
        assert!(head.clone().all(|(name, expected)| *name == expected), "{names:?}");
        if end == "completed" {
            check_events(events, data);
            for result in data["results"].as_array().unwrap() {
                check_vote(result, min_required);
            }
        } else {
            assert!(!names.contains(&"claim_verified"), "{names:?}");
        }
        let id = events.one("starting")["requestId"].as_str().unwrap();
        assert_eq!(data["requestId"], id);
        Self { plain: plain(data, &tag) }
    }

    /// Reads a JSON response, which may be an error.
    pub fn of_document(status: u16, body: &Value, tag: impl Fn(&str) -> Option<&str>) -> Self {
        assert_eq!(status == 200, body.get("results").is_some(), "{status}: {body}");
        Self { plain: plain(body, &tag) }
    }
}

/// All tokens of an attempt.
pub fn tokens(row: &AttemptRow) -> u64 {
    row.prompt_tokens + row.completion_tokens
}

/// Asserts that the events of a stream add up to its result.
fn check_events(events: &Events, completed: &Value) {
    let extracted = events.one("claims_extracted");
    let mut results = vec![Value::Null; extracted["claims"].as_array().unwrap().len()];
    let mut started = vec![false; results.len()];
    assert_eq!(extracted["count"], results.len());
    assert_eq!(events.one("verifying_claims")["totalClaims"], results.len());
    for (name, data) in &events.frames {
        let at = || usize::try_from(data["claimIndex"].as_u64().unwrap()).unwrap();
        match name.as_str() {
            "verifying_claim" => {
                assert!(!std::mem::replace(&mut started[at()], true));
                assert_eq!(data["claim"], extracted["claims"][at()]);
            }
            "claim_verified" => {
                assert!(started[at()] && results[at()].is_null());
                for field in ["assessment", "consensus_answer", "model_answers"] {
                    assert_eq!(data[field], data["result"][field]);
                }
                results[at()] = data["result"].clone();
            }
            "model_answered" => assert!(started[at()] && results[at()].is_null()),
            _ => {}
        }
    }
    assert_eq!(json!(results), completed["results"]);
    assert_eq!(extracted["skipped"], completed["skipped"]);
}

/// Counts the votes of a claim again and checks its assessment.
fn check_vote(result: &Value, min_required: usize) {
    let options = result["original_options"].as_object().unwrap();
    let answers: Vec<&str> = result["model_answers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| answer["answer"].as_str().unwrap())
        .collect();
    let mut votes = BTreeMap::<&str, usize>::new();
    for answer in answers.iter().filter(|answer| options[**answer] != "Cannot be determined") {
        *votes.entry(answer).or_default() += 1;
    }
    let most = votes.values().copied().max().unwrap_or_default();
    let tops: Vec<&str> = votes.iter().filter(|(_, count)| **count == most).map(|(key, _)| *key).collect();
    let decided: usize = votes.values().sum();
    let claimed = result["claimed_answer"].as_str().unwrap();
    let expected = match tops.as_slice() {
        _ if answers.len() < min_required => ("NO CONSENSUS", "", "insufficient_answers"),
        _ if decided == 0 => ("NO CONSENSUS", "", "unconfirmed"),
        _ if decided < min_required => ("NO CONSENSUS", "", "abstained"),
        _ if (most < min_required || tops.len() > 1) && !votes.contains_key(claimed) => {
            ("NO CONSENSUS", "", "rejected")
        }
        _ if most < min_required => ("NO CONSENSUS", "", "split"),
        [top] if result["claimed_answer"] == *top => ("TRUE", *top, "consensus"),
        [top] => ("FALSE", *top, "consensus"),
        _ => ("NO CONSENSUS", "", "tie"),
    };
    let outcome =
        ["assessment", "consensus_answer", "reason_code"].map(|field| result[field].as_str().unwrap());
    assert_eq!((outcome[0], outcome[1], outcome[2]), expected, "{result}");
}

/// A result or an error without what differs between runs.
fn plain(body: &Value, tag: &impl Fn(&str) -> Option<&str>) -> Value {
    let mut body = body.clone();
    if let Some(fields) = body.as_object_mut() {
        // An error event does not name the provider; a JSON error may.
        for differing in ["requestId", "request_id", "timestamp", "provider"] {
            fields.shift_remove(differing);
        }
        // Models are listed in the order of their first calls, which is random.
        if let Some(models) =
            fields.get_mut("tokenUsage").and_then(|usage| usage["modelUsage"].as_array_mut())
        {
            models.sort_by_key(|model| model["model"].to_string());
        }
    }
    let text = body.to_string();
    let own = tag(&text).map(str::to_owned);
    let text = own.map_or(text.clone(), |own| text.replace(&own, "run"));
    serde_json::from_str(&text).unwrap()
}
