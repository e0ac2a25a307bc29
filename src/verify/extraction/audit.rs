//! Reads an auditor's answer: what a second model objects to in an extraction.
//!
//! It lists only what is at fault, so that an empty answer is a good one. What cannot be read of it is left out item by
//! item: an auditor never makes a verification fail, and never accepts or adds anything by itself.

use serde::Deserialize;
use serde_json::Value;

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

/// What an objection is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The claim does not say what its quote says there.
    Meaning,
    /// A reference is resolved wrongly.
    Reference,
    /// The quote is not the passage that says it.
    Quote,
    /// The claimed answer is not the one that the claim gives.
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

    /// What to change, for the extractor.
    pub(super) const fn advice(self) -> &'static str {
        match self {
            Self::Meaning => {
                "the claim does not say what its quote says; say exactly that, no more and no less"
            }
            Self::Reference => "a name stands for the wrong thing; take it from the text",
            Self::Quote => "the quote is not the passage that says this; quote the passage that does",
            Self::Answer => "the claimed answer is not the one that the claim gives; give that one",
            Self::Same => "options mean the same; give rivals that differ",
            Self::Overlap => "options overlap; give rivals of which no two can be right together",
            Self::Leak => "the question gives its answer away; ask without it",
        }
    }
}

#[derive(Deserialize)]
struct RawAudit {
    #[serde(default)]
    claims: Value,
    #[serde(default)]
    missing: Value,
}

/// Reads an auditor's answer about this many claims.
///
/// # Errors
/// What is wrong with an answer that is no object.
pub(in crate::verify) fn read(answer: &str, claims: usize) -> Result<Audit, String> {
    let raw: RawAudit = json::object(answer, MAX_BYTES)?;
    let list = |value: Value| match value {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    let objections = list(raw.claims).into_iter().take(MAX_ITEMS);
    let objections = objections.filter_map(|item| objection(&item)).filter(|item| item.claim < claims);
    let missing = list(raw.missing).into_iter().take(MAX_ITEMS);
    let quotes =
        missing.filter_map(|item| item.as_str().or_else(|| item["quote"].as_str()).map(str::to_owned));
    Ok(Audit {
        objections: objections.collect(),
        missing: quotes.filter(|quote| !text::is_longer(quote, MAX_QUOTE_CHARS)).collect(),
    })
}

fn objection(item: &Value) -> Option<Objection> {
    let number = match &item["id"] {
        Value::Number(number) => usize::try_from(number.as_u64()?).ok()?,
        Value::String(id) => id.trim().parse().ok()?,
        _ => return None,
    };
    let kind = Kind::read(item["fault"].as_str()?)?;
    let letters = item["options"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let position = |letter: &str| match letter.trim().as_bytes() {
        [letter @ b'A'..=b'Z'] => Some(usize::from(letter - b'A')),
        _ => None,
    };
    let remark = text::one_line(item["text"].as_str().unwrap_or_default());
    Some(Objection {
        claim: number.checked_sub(1)?,
        kind,
        options: letters.filter_map(position).collect(),
        remark: text::shortened(&remark, MAX_REMARK_CHARS),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn objections_are_read_item_by_item() {
        let answer = json!({
            "claims": [
                {"id": "2", "fault": "meaning", "text": "It says\nmore."},
                {"id": 1, "fault": "same", "options": ["A", "c", "C"], "text": ""},
                {"id": "4", "fault": "meaning", "text": "There are only three."},
                {"id": "0", "fault": "meaning"},
                {"id": "1", "fault": "ugly"},
                "no",
            ],
            "missing": [{"quote": "It rained."}, "It snowed.", 7],
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
            [objection(1, Kind::Meaning, &[], "It says more."), objection(0, Kind::Same, &[0, 2], "")]
        );
        assert_eq!(audit.missing, ["It rained.", "It snowed."]);
        assert_eq!(read("{}", 3), Ok(Audit::default()));
        assert!(read("All fine.", 3).is_err());
    }

    proptest! {
        #[test]
        fn no_answer_names_a_claim_that_was_not_shown(id in 0_u64..9, claims in 0_usize..4) {
            let answer = json!({"claims": [{"id": id, "fault": "quote"}, {"id": id.to_string(), "fault": "leak"}]});
            let audit = read(&answer.to_string(), claims).unwrap();
            prop_assert!(audit.objections.iter().all(|objection| objection.claim < claims));
        }
    }
}
