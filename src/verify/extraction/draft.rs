//! Reads an extractor's answer item by item, so that one bad field does not cost a whole extraction.
//!
//! The answer must be one JSON object with a list of claims. Within it, what has only one meaning is read although it
//! is off the schema: a number or a boolean as an answer stands for its text, a rival that is `null` for none, a
//! skipped part without a known reason is ambiguous. A claim that cannot be read is kept apart if another can, so that
//! it can be sent back; if none can, the answer is malformed. Nothing here makes a claim sound: see [`super::review`].
//!
//! Problems are described in words of our own, with the position: they are sent back to the model, outside of any
//! fence, and must not quote what it wrote.

use serde::Deserialize;
use serde_json::{Deserializer, Map, Value};

use crate::api::verify::SkipReason;
use crate::json::object;

/// An extractor's answer as it was parsed, unchecked.
#[derive(Clone, Debug, Default)]
pub(in crate::verify) struct Draft {
    pub(super) claims: Vec<ClaimDraft>,
    pub(super) unreadable: Vec<Unreadable>,
    pub(super) skipped: Vec<SkippedDraft>,
}

/// A claim in a [`Draft`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClaimDraft {
    /// Its position in the answer's list.
    pub(super) at: usize,
    pub(super) quote: String,
    pub(super) claim: String,
    pub(super) question: String,
    pub(super) claimed_answer: String,
    pub(super) rivals: Vec<String>,
    /// The answer that the extractor believes right, if it said so.
    pub(super) best: Option<String>,
}

/// A claim in a [`Draft`] that lacks something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    /// Its position in the answer's list.
    pub(super) at: usize,
    pub(super) problem: &'static str,
    /// What it was about, as far as can be told.
    pub(super) quote: String,
}

/// A skipped part in a [`Draft`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SkippedDraft {
    pub(super) quote: String,
    pub(super) reason: SkipReason,
}

/// The fields of an answer. Values of any type, so that no error quotes one.
#[derive(Deserialize)]
struct RawExtraction {
    claims: Value,
    #[serde(default)]
    skipped: Value,
}

/// Reads a whole answer of at most `max_bytes`.
///
/// # Errors
/// What is wrong with it, and where.
pub(in crate::verify) fn read(answer: &str, max_bytes: usize) -> Result<Draft, String> {
    let raw: RawExtraction = object::object(answer, max_bytes)?;
    let Value::Array(items) = raw.claims else { return Err("claims: not a list".to_owned()) };
    let skipped = match raw.skipped {
        Value::Array(parts) => parts,
        Value::Null => Vec::new(),
        part => vec![part],
    };
    draft(items, skipped)
}

/// Reads the complete claims of an answer that was cut off. `None` if it was not cut off, or has no complete claim.
pub(in crate::verify) fn read_cut_off(answer: &str, max_bytes: usize) -> Option<Draft> {
    let items = complete_claims(&object::cut_off_object(answer, max_bytes)?)?;
    draft(items, Vec::new()).ok().filter(|draft| !draft.claims.is_empty())
}

fn draft(items: Vec<Value>, skipped: Vec<Value>) -> Result<Draft, String> {
    let mut draft = Draft::default();
    draft.skipped.extend(skipped.into_iter().filter_map(skipped_part));
    for (at, item) in items.into_iter().enumerate() {
        match claim(at, &item) {
            Ok(claim) => draft.claims.push(claim),
            Err(problem) => {
                let text = ["quote", "claim"].iter().find_map(|name| item[*name].as_str());
                let quote = item.as_str().or(text).unwrap_or_default().to_owned();
                draft.unreadable.push(Unreadable { at, problem, quote });
            }
        }
    }
    match draft.unreadable.first() {
        Some(first) if draft.claims.is_empty() => Err(format!("claims[{}]{}", first.at, first.problem)),
        _ => Ok(draft),
    }
}

/// The claim in an item of the list, or what is wrong with it, beginning with the name of the field.
fn claim(at: usize, item: &Value) -> Result<ClaimDraft, &'static str> {
    let Value::Object(fields) = item else { return Err(": not an object") };
    let string = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    Ok(ClaimDraft {
        at,
        quote: string("quote").ok_or(".quote: not a string")?,
        claim: string("claim").ok_or(".claim: not a string")?,
        question: string("question").ok_or(".question: not a string")?,
        claimed_answer: fields
            .get("claimed_answer")
            .and_then(scalar)
            .ok_or(".claimed_answer: not a string")?,
        rivals: rivals(fields).ok_or(".rivals: not a list of strings")?,
        best: fields.get("best").and_then(scalar).filter(|best| !best.trim().is_empty()),
    })
}

fn rivals(fields: &Map<String, Value>) -> Option<Vec<String>> {
    let rivals = fields.get("rivals")?.as_array()?;
    rivals.iter().filter(|rival| !rival.is_null()).map(scalar).collect()
}

/// The text of a string, a number or a boolean.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// A skipped part: an object, or just its text. `None` if it has no text.
fn skipped_part(part: Value) -> Option<SkippedDraft> {
    match part {
        Value::String(quote) => Some(SkippedDraft { quote, reason: SkipReason::Ambiguous }),
        Value::Object(mut fields) => {
            let quote = fields.get("quote").or_else(|| fields.get("text")).and_then(scalar)?;
            let reason = fields.remove("reason").and_then(|reason| serde_json::from_value(reason).ok());
            let reason = reason.unwrap_or(SkipReason::Ambiguous);
            // What an extractor has not read is found by ourselves, and asked for again.
            (!reason.is_unchecked()).then_some(SkippedDraft { quote, reason })
        }
        _ => None,
    }
}

/// The complete items of `claims` in an object that was cut off somewhere.
fn complete_claims(object: &str) -> Option<Vec<Value>> {
    let mut rest = object.trim_start().strip_prefix('{')?;
    loop {
        let (name, after) = first_value(rest)?;
        let after = after.trim_start().strip_prefix(':')?;
        if name == "claims" {
            return after.trim_start().strip_prefix('[').map(complete_items);
        }
        let (_, after) = first_value(after)?;
        rest = after.trim_start().strip_prefix(',')?;
    }
}

fn complete_items(mut list: &str) -> Vec<Value> {
    let mut items = Vec::new();
    while let Some((item, after)) = first_value(list) {
        items.push(item);
        let Some(next) = after.trim_start().strip_prefix(',') else { break };
        list = next;
    }
    items
}

/// The value at the beginning of a text, if it is complete, and what follows it.
fn first_value(text: &str) -> Option<(Value, &str)> {
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, text.get(values.byte_offset()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const MAX_BYTES: usize = 100_000;

    fn claim_json() -> Value {
        json!({"quote": "C", "claim": "C", "question": "Q?", "claimed_answer": "1", "rivals": ["2", "3"]})
    }

    fn with(field: &str, value: Value) -> Value {
        let mut claim = claim_json();
        claim[field] = value;
        claim
    }

    fn read_json(answer: &Value) -> Result<Draft, String> {
        read(&answer.to_string(), MAX_BYTES)
    }

    fn texts(draft: &Draft) -> Vec<(&str, SkipReason)> {
        draft.skipped.iter().map(|part| (part.quote.as_str(), part.reason)).collect()
    }

    #[test]
    fn skipped_parts_are_read_in_any_form() {
        for none in [json!({"claims": []}), json!({"claims": [], "skipped": null})] {
            assert_eq!(texts(&read_json(&none).unwrap()), []);
        }
        let skipped = json!([
            {"text": "a", "reason": "opinion"}, {"text": "b", "reason": "rhetoric"}, {"text": "c", "reason": null},
            {"quote": "d", "reason": "unfaithful"}, "e", {"reason": "opinion"}, 7, {"text": "f", "reason": ["opinion"]},
        ]);
        let draft = read_json(&json!({"claims": [], "skipped": skipped})).unwrap();
        let ambiguous = |text| (text, SkipReason::Ambiguous);
        let expected = [("a", SkipReason::Opinion)].into_iter().chain(["b", "c", "e", "f"].map(ambiguous));
        assert_eq!(texts(&draft), expected.collect::<Vec<_>>());
    }

    #[test]
    fn numbers_and_booleans_are_answers_and_null_is_no_rival() {
        let claims = [with("claimed_answer", json!(1889)), with("rivals", json!([1.5, null, true, "x"]))];
        let draft = read_json(&json!({"claims": claims})).unwrap();
        assert_eq!(draft.claims[0].claimed_answer, "1889");
        assert_eq!(draft.claims[1].rivals, ["1.5", "true", "x"]);
    }

    #[test]
    fn a_claim_that_cannot_be_read_is_kept_apart_if_another_can() {
        let bad = [
            with("question", Value::Null),
            with("claimed_answer", json!(["1"])),
            with("rivals", json!("2")),
            with("rivals", json!([{"text": "2"}])),
            json!("Bare."),
            json!(7),
        ];
        let claims: Vec<Value> = bad.iter().cloned().chain([claim_json()]).collect();
        let draft = read_json(&json!({"claims": claims})).unwrap();
        assert_eq!(draft.claims.len(), 1);
        let apart: Vec<(usize, &str)> =
            draft.unreadable.iter().map(|item| (item.at, item.quote.as_str())).collect();
        assert_eq!(apart, [(0, "C"), (1, "C"), (2, "C"), (3, "C"), (4, "Bare."), (5, "")]);
        assert_eq!(draft.claims[0].at, 6);
    }

    #[test]
    fn a_problem_names_field_and_position_and_quotes_nothing() {
        for (answer, problem) in [
            (json!({"claims": [with("question", json!(7))]}), "claims[0].question: not a string"),
            (json!({"claims": ["SECRET", 1]}), "claims[0]: not an object"),
            (json!({"claims": [with("rivals", json!("SECRET"))]}), "claims[0].rivals: not a list of strings"),
            (json!({"claims": "SECRET"}), "claims: not a list"),
            (json!({"facts": ["SECRET"]}), "missing field `claims` at line 1 column 20"),
        ] {
            assert_eq!(read_json(&answer).unwrap_err(), problem);
        }
        let problem = read("{\"claims\": [}", MAX_BYTES).unwrap_err();
        assert!(problem.ends_with("at line 1 column 13"), "{problem}");
    }

    #[test]
    fn the_complete_claims_of_a_cut_answer_can_be_read() {
        let whole = json!({"skipped": ["a"], "claims": [claim_json(), claim_json()]}).to_string();
        let claims_of = |answer: &str| read_cut_off(answer, MAX_BYTES).map(|draft| draft.claims.len());
        assert_eq!(claims_of(&whole), None, "it is not cut off");
        assert_eq!(claims_of(&whole[..whole.len() - 1]), Some(2));
        assert_eq!(claims_of(&whole[..whole.len() - 4]), Some(1));
        assert_eq!(claims_of(&format!("<think>hm</think>```json\n{}", &whole[..whole.len() - 4])), Some(1));
        assert_eq!(claims_of(&whole[..whole.len() / 2]), None);
        assert_eq!(claims_of("I found two claims: {"), None);
    }

    proptest! {
        #[test]
        fn whatever_is_cut_off_no_incomplete_claim_is_read(at in 0_usize..200) {
            let whole = json!({"claims": [claim_json(), claim_json()], "skipped": []}).to_string();
            let cut = &whole[..at.min(whole.len() - 1)];
            let claims = read_cut_off(cut, MAX_BYTES).map(|draft| draft.claims).unwrap_or_default();
            prop_assert!(claims.iter().all(|read| Ok(read) == claim(read.at, &claim_json()).as_ref()));
        }
    }
}
