//! Reads an auditor's answer: what a second model objects to in an extraction.
//!
//! It lists only what is at fault, so that an empty answer is a good one: hence an answer counts only if all of it can be
//! read. One that lacks a list, or has an item that says nothing of what was shown, is no answer, and clears nothing.

use serde::Deserialize;
use serde_json::Value;

use super::fault::{Fault, Weight};
use crate::verify::{json, text};

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
    /// The claimed answer is not the one that the claim gives to its question.
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
                "the claimed answer is not the one that the claim gives to its question; give that one, or ask for what the \
                 claim says"
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
    claims: Value,
    missing: Value,
}

/// Reads an auditor's answer about this many claims.
///
/// # Errors
/// What is wrong with it, and where, in words of our own.
pub(in crate::verify) fn read(answer: &str, claims: usize) -> Result<Audit, String> {
    let raw: RawAudit = json::object(answer, MAX_BYTES)?;
    let listed = raw.claims.as_array().ok_or("claims: not a list")?;
    let objections = listed.iter().take(MAX_ITEMS).enumerate();
    let objections = objections
        .map(|(at, item)| objection(item, claims).map_err(|problem| format!("claims[{at}]{problem}")));
    let listed = raw.missing.as_array().ok_or("missing: not a list")?;
    let missing = listed.iter().take(MAX_ITEMS).enumerate();
    let missing = missing.map(|(at, item)| {
        let quote = item.as_str().or_else(|| item["quote"].as_str());
        let quote = quote.ok_or_else(|| format!("missing[{at}].quote: not a string"))?;
        Ok(text::shortened(quote, MAX_QUOTE_CHARS))
    });
    Ok(Audit {
        objections: objections.collect::<Result<_, _>>()?,
        missing: missing.collect::<Result<_, String>>()?,
    })
}

/// The objection in an item of the list, or what is wrong with it, beginning with the name of the field.
fn objection(item: &Value, claims: usize) -> Result<Objection, &'static str> {
    let number = number(&item["id"]).ok_or(".id: not the number of a claim")?;
    if number == 0 || number > claims {
        return Err(".id: there is no claim of this number");
    }
    let fault = item["fault"].as_str().map(|name| name.trim().to_lowercase());
    let kind = fault.and_then(|name| Kind::read(&name)).ok_or(".fault: not one of those named")?;
    let options = match &item["options"] {
        Value::Null => Vec::new(),
        Value::Array(letters) => letters
            .iter()
            .map(|letter| letter.as_str().and_then(position))
            .collect::<Option<_>>()
            .ok_or(".options: not the letters of options")?,
        _ => return Err(".options: not a list"),
    };
    let remark = text::one_line(item["text"].as_str().unwrap_or_default());
    Ok(Objection { claim: number - 1, kind, options, remark: text::shortened(&remark, MAX_REMARK_CHARS) })
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
    fn an_answer_of_which_a_part_cannot_be_read_is_none() {
        let claim = |claim: Value| json!({"claims": [claim], "missing": []});
        for (answer, problem) in [
            (json!({}), "claims"),
            (json!({"error": "overloaded"}), "claims"),
            (json!({"claims": []}), "missing"),
            (json!({"claims": "all fine", "missing": []}), "claims: not a list"),
            (json!({"claims": [], "missing": [7]}), "missing[0].quote: not a string"),
            (claim(json!("no")), "claims[0].id: not the number of a claim"),
            (claim(json!({"id": "1 and 2", "fault": "meaning"})), "claims[0].id: not the number of a claim"),
            (claim(json!({"id": "4", "fault": "meaning"})), "claims[0].id: there is no claim of this number"),
            (claim(json!({"id": "0", "fault": "meaning"})), "claims[0].id: there is no claim of this number"),
            (claim(json!({"id": "1", "fault": "ugly"})), "claims[0].fault: not one of those named"),
            (claim(json!({"id": "1", "fault": "same", "options": ["first"]})), "claims[0].options"),
            (claim(json!({"id": "1", "fault": "same", "options": "A"})), "claims[0].options: not a list"),
        ] {
            let found = read(&answer.to_string(), 3).unwrap_err();
            assert!(found.contains(problem), "{answer}: {found}");
        }
        assert!(read("All fine.", 3).is_err());
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
