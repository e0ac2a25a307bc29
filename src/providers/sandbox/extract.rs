//! The extraction task: from a statement to claims with questions, as JSON.

use serde::Serialize;

use super::recognise::{self, Asked};
use super::sentences;
use super::triggers::{self, Trigger};

/// Beyond this, a sentence is not looked through for two claims in one.
const MAX_COMPOUND_BYTES: usize = 300;

#[derive(Debug, Default, Serialize)]
struct Extraction {
    claims: Vec<Claim>,
    skipped: Vec<Skipped>,
}

#[derive(Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names of the answer's schema")]
struct Claim {
    claim: String,
    question: String,
    claimed_answer: String,
    rivals: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Skipped {
    text: String,
    reason: &'static str,
}

/// The extraction of a statement, as a model would write it.
pub(super) fn answer(statement: &str) -> String {
    let mut extraction = Extraction::default();
    let mut subject: Option<String> = None;
    // Words before the first claim belong to it, later ones to the sentence they stand in or behind.
    let mut waiting: Vec<Trigger> = Vec::new();
    for sentence in sentences::split(statement) {
        let (clean, mut triggers) = triggers::split(sentence);
        if clean.chars().all(|c| !c.is_alphanumeric()) {
            match extraction.claims.last_mut() {
                Some(claim) => claim.append(&triggers),
                None => waiting.append(&mut triggers),
            }
            continue;
        }
        let before = extraction.claims.len();
        extraction.sentence(&clean, &mut subject);
        for claim in extraction.claims.iter_mut().skip(before) {
            claim.append(&waiting);
            claim.append(&triggers);
        }
        if extraction.claims.len() > before {
            waiting.clear();
        } else {
            waiting.append(&mut triggers);
        }
    }
    serde_json::to_string(&extraction).unwrap_or_default()
}

impl Extraction {
    fn sentence(&mut self, sentence: &str, subject: &mut Option<String>) {
        let resolved = sentences::resolved(sentence, subject.as_deref());
        let whole = resolved.as_deref().unwrap_or(sentence);
        if let Some(asked) = recognise::known(whole).filter(|_| !sentence.ends_with('?')) {
            return self.claim(whole, asked, subject);
        }
        if let Some(reason) = sentences::not_a_claim(sentence) {
            self.skipped.push(Skipped { text: sentence.to_owned(), reason });
            return;
        }
        let Some(resolved) = resolved else {
            self.skipped.push(Skipped { text: sentence.to_owned(), reason: "ambiguous" });
            return;
        };
        let mut rest = resolved;
        while let Some((left, asked, right)) = first_of_two(&rest) {
            self.claim(&left, asked, subject);
            rest = right;
        }
        let asked = recognise::known(&rest).unwrap_or_else(|| recognise::unknown(&rest));
        self.claim(&rest, asked, subject);
    }

    fn claim(&mut self, sentence: &str, asked: Asked, subject: &mut Option<String>) {
        if let Some(spoken_of) = sentences::subject(sentence) {
            *subject = Some(spoken_of.to_owned());
        }
        self.claims.push(Claim {
            claim: ended(sentence),
            question: asked.question,
            claimed_answer: asked.claimed,
            rivals: asked.rivals,
        });
    }
}

impl Claim {
    /// Puts trigger words where the panel's models see them.
    fn append(&mut self, triggers: &[Trigger]) {
        for trigger in triggers {
            self.question.extend([" ", &trigger.to_string()]);
        }
    }
}

/// Splits "A and B" where the tables know A, and B alone or with A's subject: the first claim, what it asks, and
/// the rest.
fn first_of_two(sentence: &str) -> Option<(String, Asked, String)> {
    if sentence.len() > MAX_COMPOUND_BYTES {
        return None;
    }
    for joint in [", and ", "; ", ", but ", ", while ", " and ", " but "] {
        for (at, _) in sentence.match_indices(joint) {
            let (left, right) = (&sentence[..at], &sentence[at + joint.len()..]);
            let Some(asked) = recognise::known(left) else {
                continue;
            };
            let subject = sentences::subject(left);
            let with_subject = subject.map(|subject| format!("{subject} {right}"));
            let known = [sentences::resolved(right, subject), with_subject]
                .into_iter()
                .flatten()
                .find(|right| recognise::known(right).is_some() || first_of_two(right).is_some());
            if let Some(right) = known {
                return Some((left.to_owned(), asked, right));
            }
        }
    }
    None
}

/// A claim as a whole sentence.
fn ended(sentence: &str) -> String {
    let mut text = sentence.trim_end_matches([',', ';']).to_owned();
    if text.starts_with(|c: char| c.is_ascii_lowercase()) {
        text[..1].make_ascii_uppercase();
    }
    if !text.ends_with(['.', '!']) {
        text.push('.');
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn read(statement: &str) -> Value {
        serde_json::from_str(&answer(statement)).unwrap()
    }

    fn claims(statement: &str) -> Vec<String> {
        let read = read(statement);
        let claims = read["claims"].as_array().unwrap().iter();
        claims.map(|claim| claim["claim"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_first_statement() {
        let statement = "The Eiffel Tower is in Paris. It was completed in 1925. Gold has the chemical symbol Au. \
                         The capital of Australia is Sydney. 2 + 2 = 4. It is the most beautiful tower.";
        assert_eq!(
            claims(statement),
            [
                "The Eiffel Tower is in Paris.",
                "The Eiffel Tower was completed in 1925.",
                "Gold has the chemical symbol Au.",
                "The capital of Australia is Sydney.",
                "2 + 2 = 4."
            ]
        );
        let read = read(statement);
        assert_eq!(
            read["claims"][1],
            json!({
                "claim": "The Eiffel Tower was completed in 1925.",
                "question": "In which year was the Eiffel Tower completed?",
                "claimed_answer": "1925",
                "rivals": ["1887", "1889", "1890"],
            })
        );
        assert_eq!(
            read["skipped"],
            json!([{"text": "It is the most beautiful tower.", "reason": "opinion"}])
        );
    }

    #[test]
    fn two_claims_in_one_sentence() {
        assert_eq!(
            claims("The Eiffel Tower is in Paris and was completed in 1889, and it was opened in 1890."),
            [
                "The Eiffel Tower is in Paris.",
                "The Eiffel Tower was completed in 1889.",
                "The Eiffel Tower was opened in 1890."
            ]
        );
        assert_eq!(claims("The capital of France is Paris, but 2 + 2 = 5.").len(), 2);
        assert_eq!(claims("Jane Austen wrote Pride and Prejudice.").len(), 1);
        assert_eq!(claims("Pierre and Marie Curie were married.").len(), 1);
    }

    #[test]
    fn trigger_words_reach_the_question_alone() {
        for statement in [
            "The capital of France is Paris [sandbox:fail=beta].",
            "The capital of France is Paris. [sandbox:fail=beta]",
            "[sandbox:fail=beta] The capital of France is Paris.",
        ] {
            let read = read(statement);
            assert_eq!(read["claims"][0]["claim"], "The capital of France is Paris.", "{statement}");
            assert_eq!(
                read["claims"][0]["question"], "What is the capital of France? [sandbox:fail=beta]",
                "{statement}"
            );
        }
    }

    #[test]
    fn what_cannot_stand_alone_is_ambiguous() {
        let read = read("It was completed in 1889.");
        assert_eq!(
            read,
            json!({"claims": [], "skipped": [{"text": "It was completed in 1889.", "reason": "ambiguous"}]})
        );
    }

    proptest! {
        #[test]
        fn any_text_gives_json_with_complete_claims(statement in "(\\PC|\n|[.] |is |It | and |\\[sandbox:fail\\]){0,40}") {
            let read = read(&statement);
            for claim in read["claims"].as_array().unwrap() {
                prop_assert!(!claim["question"].as_str().unwrap().is_empty());
                prop_assert!(matches!(claim["rivals"].as_array().unwrap().len(), 1 | 3));
            }
        }
    }
}
