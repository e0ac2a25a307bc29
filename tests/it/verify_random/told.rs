//! What a caller was told, in a form in which runs can be held against one another.

use std::collections::BTreeMap;

use mk::storage::AttemptRow;
use serde_json::{Value, json};

use crate::support::events::Events;

/// The outcome of a run.
pub struct Told {
    /// The result, or the error, without what is each run's own: ids, times, tags.
    pub plain: Value,
}

impl Told {
    /// Reads a stream that has ended. It must be in order, end once, and fold into its own result.
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
            fold(events, data);
            for result in data["results"].as_array().unwrap() {
                vote(result, min_required);
            }
        } else {
            assert!(!names.contains(&"claim_verified"), "{names:?}");
        }
        let id = events.one("starting")["requestId"].as_str().unwrap();
        assert_eq!(data["requestId"], id);
        Self { plain: plain(data, &tag) }
    }

    /// Reads a document, which may be an error.
    pub fn of_document(status: u16, body: &Value, tag: impl Fn(&str) -> Option<&str>) -> Self {
        assert_eq!(status == 200, body.get("results").is_some(), "{status}: {body}");
        Self { plain: plain(body, &tag) }
    }
}

/// What an attempt took.
pub fn tokens(row: &AttemptRow) -> u64 {
    row.prompt_tokens + row.completion_tokens
}

/// Holds that the events of a stream, put together, are its result.
fn fold(events: &Events, completed: &Value) {
    let extracted = events.one("claims_extracted");
    let mut results = vec![Value::Null; extracted["claims"].as_array().unwrap().len()];
    let mut begun = vec![false; results.len()];
    assert_eq!(extracted["count"], results.len());
    assert_eq!(events.one("verifying_claims")["totalClaims"], results.len());
    for (name, data) in &events.frames {
        let at = || usize::try_from(data["claimIndex"].as_u64().unwrap()).unwrap();
        match name.as_str() {
            "verifying_claim" => {
                assert!(!std::mem::replace(&mut begun[at()], true));
                assert_eq!(data["claim"], extracted["claims"][at()]);
            }
            "claim_verified" => {
                assert!(begun[at()] && results[at()].is_null());
                for field in ["assessment", "consensus_answer", "model_answers"] {
                    assert_eq!(data[field], data["result"][field]);
                }
                results[at()] = data["result"].clone();
            }
            "model_answered" => assert!(begun[at()] && results[at()].is_null()),
            _ => {}
        }
    }
    assert_eq!(json!(results), completed["results"]);
    assert_eq!(extracted["skipped"], completed["skipped"]);
}

/// Counts the listed votes of a claim anew.
fn vote(result: &Value, min_required: usize) {
    let options = result["original_options"].as_object().unwrap();
    let answers: Vec<&str> = result["model_answers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|given| given["answer"].as_str().unwrap())
        .collect();
    let mut votes = BTreeMap::<&str, usize>::new();
    for answer in answers.iter().filter(|answer| options[**answer] != "Cannot be determined") {
        *votes.entry(answer).or_default() += 1;
    }
    let most = votes.values().copied().max().unwrap_or_default();
    let tops: Vec<&str> = votes.iter().filter(|(_, count)| **count == most).map(|(key, _)| *key).collect();
    let decided: usize = votes.values().sum();
    let expected = match tops.as_slice() {
        _ if answers.len() < min_required => ("NO CONSENSUS", "", "insufficient_answers"),
        _ if decided < min_required => ("NO CONSENSUS", "", "abstained"),
        _ if most < min_required => ("NO CONSENSUS", "", "split"),
        [top] if result["claimed_answer"] == *top => ("TRUE", *top, "consensus"),
        [top] => ("FALSE", *top, "consensus"),
        _ => ("NO CONSENSUS", "", "tie"),
    };
    let told = ["assessment", "consensus_answer", "reason_code"].map(|field| result[field].as_str().unwrap());
    assert_eq!((told[0], told[1], told[2]), expected, "{result}");
}

/// A result or an error without what is each run's own. The answers of a claim are named by their options: the letters
/// are the same for all, but it is the options that are meant.
fn plain(told: &Value, tag: &impl Fn(&str) -> Option<&str>) -> Value {
    let mut told = told.clone();
    if let Some(fields) = told.as_object_mut() {
        // A frame names no provider; a document may.
        for own in ["requestId", "request_id", "timestamp", "provider"] {
            fields.shift_remove(own);
        }
        // In the order in which models were first asked, which is anybody's.
        if let Some(models) =
            fields.get_mut("tokenUsage").and_then(|usage| usage["modelUsage"].as_array_mut())
        {
            models.sort_by_key(|model| model["model"].to_string());
        }
    }
    let text = told.to_string();
    let own = tag(&text).map(str::to_owned);
    let text = own.map_or(text.clone(), |own| text.replace(&own, "run"));
    serde_json::from_str(&text).unwrap()
}
