//! Good and bad extractions of our own in twelve languages (`tests/data/anchors`).
//!
//! The rules were tuned on them, but for those of [`HELD_OUT`]: these were written before any rule was tried on them. The
//! first time, 6 of its 149 good ones were sent back, and 82 of its 92 bad ones stopped. Four of the six showed plain gaps,
//! which were closed: "minus" in words, a counter behind digits, and a word each for kilograms and about. Add no rule for
//! the others: a set that rules are tuned on tells nothing of other texts. Claims were added to it when each number had to
//! be asked for, and each part between commas to be said; questions were given the name of what they are about when that
//! became a rule.

use jiff::civil;
use serde_json::Value;

const TEXTS: [&str; 12] = [
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/ar.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/de.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/en.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/es.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/fr.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/it.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/ja.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/ko.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/nl.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/pt.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/ru.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/zh.jsonl")),
];

const HELD_OUT: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/held_out.jsonl"));

/// The day at which they are judged.
pub(in crate::verify) const AS_OF: civil::Date = civil::date(2026, 11, 26);

/// A text with claims: quote, claim, question, answer; those of bad ones behind what is wrong with them.
pub(in crate::verify) struct Case {
    pub(in crate::verify) text: String,
    pub(in crate::verify) good: Vec<Vec<String>>,
    pub(in crate::verify) bad: Vec<Vec<String>>,
}

fn cases_of(text: &str) -> impl Iterator<Item = Case> {
    let rows = |value: &Value| -> Vec<Vec<String>> { serde_json::from_value(value.clone()).unwrap() };
    text.lines().map(move |line| {
        let case: Value = serde_json::from_str(line).unwrap();
        let text = case["text"].as_str().unwrap().to_owned();
        Case { text, good: rows(&case["good"]), bad: rows(&case["bad"]) }
    })
}

/// The set that the rules were tuned on.
pub(in crate::verify) fn tuned_on() -> Vec<Case> {
    TEXTS.iter().flat_map(|text| cases_of(text)).collect()
}

/// The set held out.
pub(in crate::verify) fn held_out() -> Vec<Case> {
    cases_of(HELD_OUT).collect()
}
