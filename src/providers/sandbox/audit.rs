//! The audit task: what a second model would object to.
//!
//! A simulated auditor compares words. It finds the faults that trigger words make the extractor commit, and no others:
//! an answer that is not in the quote where another of its kind is would take a real model.

use serde_json::{Value, json};

use super::reading::triggers;

/// Objections to a list of claims as the prompt shows it, as a model would write them.
pub(super) fn answer(claims: &str) -> String {
    let mut objections: Vec<Value> = Vec::new();
    let (mut number, mut quote) = ("", "");
    for line in claims.lines() {
        if let Some((found, rest)) =
            line.split_once(". quote: ").filter(|(found, _)| found.parse::<u32>().is_ok())
        {
            (number, quote) = (found, rest);
        }
        let Some(claim) = line.strip_prefix("   claim: ") else { continue };
        let (_, said) = triggers::split(quote);
        if said.iter().any(triggers::Trigger::is_doubted) {
            let text = format!("The text says \"{}\", the claim says \"{claim}\".", triggers::split(quote).0);
            objections.push(json!({"id": number, "fault": "meaning", "options": [], "text": text}));
        }
    }
    json!({"claims": objections, "missing": []}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_trigger_has_doubted_is_objected_to() {
        let claims = "1. quote: Gold has the symbol Au.\n   claim: Gold has the symbol Au.\n\
                      2. quote: It is heavy [sandbox:doubt].\n   claim: Gold is heavy.";
        let answer: Value = serde_json::from_str(&answer(claims)).unwrap();
        assert_eq!(answer["claims"].as_array().unwrap().len(), 1);
        assert_eq!(
            (&answer["claims"][0]["id"], &answer["claims"][0]["fault"]),
            (&json!("2"), &json!("meaning"))
        );
    }
}
