//! Reads an auditor's answer: what a second model objects to in an extraction.
//!
//! It lists only what is at fault, so that an empty answer is a good one: hence an answer clears what it does not name
//! only if all of it can be read. Of one that lacks a list, or has an item that says nothing of what was shown, the
//! items that can be read still count; one without any is no answer.

use serde::Deserialize;
use serde_json::Value;

use super::fault::{Fault, Weight};
use crate::json::object;
use crate::verify::text;

/// The longest answer that is parsed, in bytes.
const MAX_BYTES: usize = 256 * 1024;
/// The longest remark that is kept, in characters: it goes back to the extractor.
const MAX_REMARK_CHARS: usize = 300;
/// The longest missing passage that is kept, in characters.
const MAX_QUOTE_CHARS: usize = 2_000;
/// The most objections that are read.
const MAX_ITEMS: usize = 500;

/// What an auditor objects to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::verify) struct Audit {
    pub(super) objections: Vec<Objection>,
    /// Passages that state something checkable and are in no claim and no skipped part.
    pub(super) missing: Vec<String>,
    /// What of the answer cannot be read, and where, in words of our own.
    pub(super) problem: Option<String>,
}

impl Audit {
    /// Whether all of it was read, so that what it does not name is not at fault.
    pub(super) const fn is_whole(&self) -> bool {
        self.problem.is_none()
    }

    /// This audit with what an earlier answer to the same request objects to.
    pub(super) fn joined(mut self, earlier: Self) -> Self {
        for objection in earlier.objections {
            let is_same = |one: &Objection| one.claim == objection.claim && one.kind == objection.kind;
            if !self.objections.iter().any(is_same) {
                self.objections.push(objection);
            }
        }
        self.missing.extend(earlier.missing);
        self
    }
}

/// An objection to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Objection {
    /// The claim's position in the list as it was shown, from 0.
    pub(super) claim: usize,
    pub(super) kind: Kind,
    /// For objections to options: their positions, from 0.
    pub(super) options: Vec<usize>,
    pub(super) remark: String,
}

impl Objection {
    /// What is at fault, for the extractor.
    pub(super) fn fault(&self) -> Fault {
        let weight = if self.kind.is_of_options() { Weight::Form } else { Weight::Soft };
        Fault::new(weight, self.kind.advice())
    }
}

/// What an objection is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The claim does not say what its quote says there.
    Meaning,
    /// A reference is resolved wrongly.
    Reference,
    /// The quote is not the passage that says it.
    Quote,
    /// Question and claimed answer say something else than the claim, or take for granted what nobody is asked.
    Answer,
    /// Options mean the same.
    Same,
    /// Options overlap.
    Overlap,
    /// The question gives its answer away.
    Leak,
}

impl Kind {
    fn read(name: &str) -> Option<Self> {
        Some(match name {
            "meaning" => Self::Meaning,
            "reference" => Self::Reference,
            "quote" => Self::Quote,
            "answer" => Self::Answer,
            "same" => Self::Same,
            "overlap" => Self::Overlap,
            "leak" => Self::Leak,
            _ => return None,
        })
    }

    /// Whether it is about what the panel is asked, and not about what the claim says.
    pub(super) const fn is_of_options(self) -> bool {
        matches!(self, Self::Same | Self::Overlap | Self::Leak)
    }

    /// What to change, for the extractor.
    const fn advice(self) -> &'static str {
        match self {
            Self::Meaning => {
                "the claim does not say what its quote says; say exactly that, no more and no less"
            }
            Self::Reference => "a name stands for the wrong thing; take it from the text",
            Self::Quote => "the quote is not the passage that says this; quote the passage that does",
            Self::Answer => {
                "question and claimed answer together do not say what the claim says; ask for that, and make another claim \
                 of what the question takes for granted"
            }
            Self::Same => "options mean the same; give rivals that differ",
            Self::Overlap => "options overlap; give rivals of which no two can be right together",
            Self::Leak => "the question gives its answer away; ask without it",
        }
    }
}

/// The fields of an answer. Values of any type, so that no error quotes one.
#[derive(Deserialize)]
struct RawAudit {
    #[serde(default)]
    claims: Value,
    #[serde(default)]
    missing: Value,
}

/// Reads what can be read of an auditor's answer about this many claims.
///
/// # Errors
/// If that is nothing: what is wrong with it, and where, in words of our own.
pub(in crate::verify) fn read(answer: &str, claims: usize) -> Result<Audit, String> {
    let raw: RawAudit = object::object(answer, MAX_BYTES)?;
    let mut audit = Audit::default();
    let mut problems = Vec::new();
    let list = |value: &Value, name: &str, problems: &mut Vec<String>| {
        let items = value.as_array().cloned();
        if items.is_none() {
            problems.push(format!("{name}: not a list"));
        }
        items.unwrap_or_default().into_iter().take(MAX_ITEMS).enumerate()
    };
    for (at, item) in list(&raw.claims, "claims", &mut problems) {
        let (objection, problem) = objection(&item, claims);
        audit.objections.extend(objection);
        problems.extend(problem.map(|problem| format!("claims[{at}]{problem}")));
    }
    for (at, item) in list(&raw.missing, "missing", &mut problems) {
        match item.as_str().or_else(|| item["quote"].as_str()) {
            Some(quote) => audit.missing.push(text::shortened(quote, MAX_QUOTE_CHARS)),
            None => problems.push(format!("missing[{at}].quote: not a string")),
        }
    }
    audit.problem = problems.into_iter().next();
    match &audit.problem {
        Some(problem) if audit.objections.is_empty() && audit.missing.is_empty() => Err(problem.clone()),
        _ => Ok(audit),
    }
}

/// The objection in an item of the list, and what is wrong with it, beginning with the name of the field.
fn objection(item: &Value, claims: usize) -> (Option<Objection>, Option<&'static str>) {
    let Some(number) = number(&item["id"]) else { return (None, Some(".id: not the number of a claim")) };
    if number == 0 || number > claims {
        return (None, Some(".id: there is no claim of this number"));
    }
    let fault = item["fault"].as_str().map(|name| name.trim().to_lowercase());
    let Some(kind) = fault.and_then(|name| Kind::read(&name)) else {
        return (None, Some(".fault: not one of those named"));
    };
    let options = match &item["options"] {
        Value::Null => Ok(Vec::new()),
        Value::Array(letters) => letters
            .iter()
            .map(|letter| letter.as_str().and_then(position))
            .collect::<Option<_>>()
            .ok_or(".options: not the letters of options"),
        _ => Err(".options: not a list"),
    };
    let remark = text::one_line(item["text"].as_str().unwrap_or_default());
    let remark = text::shortened(&remark, MAX_REMARK_CHARS);
    let problem = options.as_ref().err().copied();
    // Without its options, an objection is one to the claim as a whole.
    let options = options.unwrap_or_default();
    (Some(Objection { claim: number - 1, kind, options, remark }), problem)
}

/// The only number in an id, also where a word or a stop stands with it.
fn number(id: &Value) -> Option<usize> {
    match id {
        Value::Number(number) => usize::try_from(number.as_u64()?).ok(),
        Value::String(id) => {
            let mut numbers = id.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
            let number = numbers.next()?.parse().ok()?;
            numbers.next().is_none().then_some(number)
        }
        _ => None,
    }
}

/// The position of an option by its letter, in either case and with the bracket that it is shown with.
fn position(letter: &str) -> Option<usize> {
    match letter.trim().trim_end_matches([')', '.']).as_bytes() {
        [letter] if letter.is_ascii_alphabetic() => Some(usize::from(letter.to_ascii_uppercase() - b'A')),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn objections_are_read_in_any_way_of_writing_them() {
        let answer = json!({
            "claims": [
                {"id": "claim 2.", "fault": " Meaning", "text": "It says\nmore."},
                {"id": 1, "fault": "same", "options": ["A", "c)", "C"], "text": ""},
            ],
            "missing": [{"quote": "It rained."}, "It snowed."],
        });
        let audit = read(&answer.to_string(), 3).unwrap();
        let objection = |claim, kind, options: &[usize], remark: &str| Objection {
            claim,
            kind,
            options: options.to_vec(),
            remark: remark.to_owned(),
        };
        assert_eq!(
            audit.objections,
            [objection(1, Kind::Meaning, &[], "It says more."), objection(0, Kind::Same, &[0, 2, 2], "")]
        );
        assert_eq!(audit.missing, ["It rained.", "It snowed."]);
        assert_eq!(read(r#"{"claims": [], "missing": []}"#, 3), Ok(Audit::default()));
    }

    #[test]
    fn an_answer_of_which_nothing_can_be_read_is_none() {
        let claim = |claim: Value| json!({"claims": [claim], "missing": []});
        for (answer, problem) in [
            (json!({}), "claims"),
            (json!({"error": "overloaded"}), "claims"),
            (json!({"claims": []}), "missing"),
            (json!({"claims": "all fine", "missing": []}), "claims: not a list"),
            (json!({"claims": [], "missing": null}), "missing: not a list"),
            (json!({"claims": [], "missing": [7]}), "missing[0].quote: not a string"),
            (claim(json!("no")), "claims[0].id: not the number of a claim"),
            (claim(json!({"id": "1 and 2", "fault": "meaning"})), "claims[0].id: not the number of a claim"),
            (claim(json!({"id": "4", "fault": "meaning"})), "claims[0].id: there is no claim of this number"),
            (claim(json!({"id": "0", "fault": "meaning"})), "claims[0].id: there is no claim of this number"),
            (claim(json!({"id": "1", "fault": "ugly"})), "claims[0].fault: not one of those named"),
        ] {
            let found = read(&answer.to_string(), 3).unwrap_err();
            assert!(found.contains(problem), "{answer}: {found}");
        }
        assert!(read("All fine.", 3).is_err());
    }

    #[test]
    fn what_can_be_read_counts_though_the_answer_is_not_whole() {
        let found = json!({"id": "1", "fault": "meaning"});
        for other in [
            json!("no"),
            json!({"id": "1-2", "fault": "meaning"}),
            json!({"id": "9", "fault": "meaning"}),
            json!({"id": "2", "fault": "ugly"}),
            json!({"id": "1", "fault": "same", "options": ["first"]}),
            json!({"id": "1", "fault": "same", "options": "A"}),
        ] {
            let answer = json!({"claims": [found, other], "missing": []});
            let audit = read(&answer.to_string(), 3).unwrap();
            assert_eq!((audit.objections[0].claim, audit.objections[0].kind), (0, Kind::Meaning));
            assert!(audit.problem.unwrap().starts_with("claims[1]"), "{other}");
        }
        for missing in [json!(null), json!("It rained."), json!([null])] {
            let audit = read(&json!({"claims": [found], "missing": missing}).to_string(), 3).unwrap();
            assert!(audit.objections.len() == 1 && !audit.is_whole());
        }
        let audit = read(&json!({"claims": [found]}).to_string(), 3).unwrap();
        assert!(audit.objections.len() == 1 && !audit.is_whole());
        let audit = read(&json!({"missing": ["It rained."]}).to_string(), 3).unwrap();
        assert!(audit.missing == ["It rained."] && !audit.is_whole());
    }

    proptest! {
        #[test]
        fn no_answer_names_a_claim_that_was_not_shown(id in 0_u64..9, claims in 0_usize..4) {
            let objections = [json!({"id": id, "fault": "quote"}), json!({"id": id.to_string(), "fault": "leak"})];
            let answer = json!({"claims": objections, "missing": []});
            let audit = read(&answer.to_string(), claims).unwrap_or_default();
            prop_assert!(audit.objections.iter().all(|objection| objection.claim < claims));
        }
    }
}
