//! Reads an extractor's answer item by item, so that one bad field does not cost a whole extraction.
//!
//! The answer must be one JSON object with a list of claims. Within it, what has only one meaning is read although it
//! is off the schema: a number or a boolean as an answer stands for its text, a rival that is `null` for none, a
//! skipped part without a known reason is ambiguous. A claim that cannot be read becomes a skipped part if another can;
//! if none can, the answer is malformed. Nothing here makes a claim sound: see [`super::lint`].
//!
//! Problems are described in words of our own, with the position: they are sent back to the model, outside of any
//! fence, and must not quote what it wrote.

use serde::Deserialize;
use serde_json::{Deserializer, Map, Value};

use super::json;
use crate::api::verify::SkipReason;

/// Stands for what an answer that was cut off no longer lists.
const REST: &str = "(the rest of the statement)";

/// An extractor's answer as it was parsed, unchecked.
#[derive(Debug, Default)]
pub(super) struct ExtractionDraft {
    pub(super) claims: Vec<ClaimDraft>,
    pub(super) skipped: Vec<SkippedDraft>,
}

/// A claim in an [`ExtractionDraft`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClaimDraft {
    pub(super) claim: String,
    pub(super) question: String,
    pub(super) claimed_answer: String,
    pub(super) rivals: Vec<String>,
}

/// A skipped part in an [`ExtractionDraft`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SkippedDraft {
    pub(super) text: String,
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
pub(super) fn read(answer: &str, max_bytes: usize) -> Result<ExtractionDraft, String> {
    let raw: RawExtraction = json::object(answer, max_bytes)?;
    let Value::Array(items) = raw.claims else { return Err("claims: not a list".to_owned()) };
    let skipped = match raw.skipped {
        Value::Array(parts) => parts,
        Value::Null => Vec::new(),
        part => vec![part],
    };
    draft(items, skipped)
}

/// Reads the complete claims of an answer that was cut off; the rest is skipped. `None` if the answer was not cut off,
/// or has no complete claim.
pub(super) fn read_cut_off(answer: &str, max_bytes: usize) -> Option<ExtractionDraft> {
    let items = complete_claims(&json::cut_off_object(answer, max_bytes)?)?;
    let mut draft = draft(items, Vec::new()).ok().filter(|draft| !draft.claims.is_empty())?;
    draft.skipped.push(SkippedDraft { text: REST.to_owned(), reason: SkipReason::OverLimit });
    Some(draft)
}

fn draft(items: Vec<Value>, skipped: Vec<Value>) -> Result<ExtractionDraft, String> {
    let mut draft = ExtractionDraft::default();
    let mut first_problem = None;
    draft.skipped.extend(skipped.into_iter().filter_map(skipped_part));
    for (at, item) in items.into_iter().enumerate() {
        match claim(&item) {
            Ok(claim) => draft.claims.push(claim),
            Err(problem) => {
                first_problem.get_or_insert_with(|| format!("claims[{at}]{problem}"));
                let text = item.as_str().or_else(|| item["claim"].as_str()).unwrap_or_default().to_owned();
                draft.skipped.push(SkippedDraft { text, reason: SkipReason::Ambiguous });
            }
        }
    }
    match first_problem {
        Some(problem) if draft.claims.is_empty() => Err(problem),
        _ => Ok(draft),
    }
}

/// The claim in an item of the list, or what is wrong with it, beginning with the name of the field.
fn claim(item: &Value) -> Result<ClaimDraft, &'static str> {
    let Value::Object(fields) = item else { return Err(": not an object") };
    let string = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    Ok(ClaimDraft {
        claim: string("claim").ok_or(".claim: not a string")?,
        question: string("question").ok_or(".question: not a string")?,
        claimed_answer: fields
            .get("claimed_answer")
            .and_then(scalar)
            .ok_or(".claimed_answer: not a string")?,
        rivals: rivals(fields).ok_or(".rivals: not a list of strings")?,
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
        Value::String(text) => Some(SkippedDraft { text, reason: SkipReason::Ambiguous }),
        Value::Object(mut fields) => {
            let text = fields.get("text").and_then(scalar)?;
            let reason = fields.remove("reason").and_then(|reason| serde_json::from_value(reason).ok());
            Some(SkippedDraft { text, reason: reason.unwrap_or(SkipReason::Ambiguous) })
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
        json!({"claim": "C", "question": "Q?", "claimed_answer": "1", "rivals": ["2", "3"]})
    }

    fn with(field: &str, value: Value) -> Value {
        let mut claim = claim_json();
        claim[field] = value;
        claim
    }

    fn read_json(answer: &Value) -> Result<ExtractionDraft, String> {
        read(&answer.to_string(), MAX_BYTES)
    }

    fn texts(draft: &ExtractionDraft) -> Vec<(&str, SkipReason)> {
        draft.skipped.iter().map(|part| (part.text.as_str(), part.reason)).collect()
    }

    #[test]
    fn skipped_parts_are_read_in_any_form() {
        for none in [json!({"claims": []}), json!({"claims": [], "skipped": null})] {
            assert_eq!(texts(&read_json(&none).unwrap()), []);
        }
        let skipped = json!([
            {"text": "a", "reason": "opinion"}, {"text": "b", "reason": "rhetoric"}, {"text": "c", "reason": null},
            {"text": "d"}, "e", {"reason": "opinion"}, 7, {"text": "f", "reason": ["opinion"]},
        ]);
        let draft = read_json(&json!({"claims": [], "skipped": skipped})).unwrap();
        let ambiguous = |text| (text, SkipReason::Ambiguous);
        let expected =
            [("a", SkipReason::Opinion)].into_iter().chain(["b", "c", "d", "e", "f"].map(ambiguous));
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
    fn a_claim_that_cannot_be_read_is_skipped_if_another_can() {
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
        let skipped: Vec<&str> = draft.skipped.iter().map(|part| part.text.as_str()).collect();
        assert_eq!(skipped, ["C", "C", "C", "C", "Bare.", ""]);
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
        let draft = read_cut_off(&whole[..whole.len() - 2], MAX_BYTES).unwrap();
        assert_eq!(texts(&draft), [(REST, SkipReason::OverLimit)]);
    }

    proptest! {
        #[test]
        fn whatever_is_cut_off_no_incomplete_claim_is_read(at in 0_usize..200) {
            let whole = json!({"claims": [claim_json(), claim_json()], "skipped": []}).to_string();
            let cut = &whole[..at.min(whole.len() - 1)];
            let claims = read_cut_off(cut, MAX_BYTES).map(|draft| draft.claims).unwrap_or_default();
            prop_assert!(claims.iter().all(|read| Ok(read) == claim(&claim_json()).as_ref()));
        }
    }
}
