//! The extraction task: turns a statement into claims with questions, as JSON.

use serde::Serialize;

use super::reading::sentences;
use super::reading::triggers::{self, Trigger};
use super::recognise::{self, ClaimQuestion};

/// Longer sentences are not searched for two claims in one.
const MAX_COMPOUND_BYTES: usize = 300;

/// The extraction of a section.
pub(super) struct Task<'a> {
    pub(super) section: &'a str,
    /// Whether faults came back.
    pub(super) is_mending: bool,
}

#[derive(Debug, Default, Serialize)]
struct Extraction {
    claims: Vec<Claim>,
    skipped: Vec<Skipped>,
}

#[derive(Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names of the answer's schema")]
struct Claim {
    quote: String,
    claim: String,
    question: String,
    claimed_answer: String,
    rivals: Vec<String>,
    best: String,
}

#[derive(Debug, Serialize)]
struct Skipped {
    quote: String,
    reason: &'static str,
}

/// The extraction from a section, as a model would write it.
pub(super) fn answer(task: &Task<'_>) -> String {
    let mut extraction = Extraction::default();
    // Trigger words before the first claim belong to it, later ones to the sentence that they are in or follow.
    let mut waiting: Vec<Trigger> = Vec::new();
    let parted =
        |sentence| triggers::leading(sentence).map_or(vec![sentence], |(words, rest)| vec![words, rest]);
    for sentence in sentences::split(task.section).into_iter().flat_map(parted) {
        let (clean, mut triggers) = triggers::split(sentence);
        if clean.chars().all(|c| !c.is_alphanumeric()) {
            match extraction.claims.last_mut() {
                Some(_) if triggers.iter().any(|trigger| trigger.omits(task.is_mending)) => {
                    extraction.claims.pop();
                }
                Some(claim) => {
                    // Auditors see the words in the quote.
                    if triggers.iter().any(Trigger::is_doubted) {
                        claim.quote.extend([" ", sentence]);
                    }
                    claim.append(&triggers);
                }
                None => waiting.append(&mut triggers),
            }
            continue;
        }
        if triggers.iter().any(|trigger| trigger.omits(task.is_mending)) {
            continue;
        }
        let before = extraction.claims.len();
        extraction.add_sentence(sentence, &sentences::plain(&clean));
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
    fn add_sentence(&mut self, quote: &str, sentence: &str) {
        let known = recognise::known(sentence).filter(|_| !sentence.ends_with('?'));
        if known.is_none()
            && let Some(reason) = sentences::not_a_claim(sentence)
        {
            self.skipped.push(Skipped { quote: quote.to_owned(), reason });
            return;
        }
        let mut rest = sentence;
        if known.is_none() {
            while let Some((left, question, right)) = first_of_two(rest) {
                self.add_claim(quote, left, question);
                rest = right;
            }
        }
        let question = known.or_else(|| recognise::known(rest)).unwrap_or_else(|| recognise::unknown(rest));
        self.add_claim(quote, rest, question);
    }

    fn add_claim(&mut self, quote: &str, sentence: &str, question: ClaimQuestion) {
        self.claims.push(Claim {
            quote: quote.to_owned(),
            claim: as_sentence(sentence),
            question: question.question,
            claimed_answer: question.claimed,
            rivals: question.rivals,
            best: question.best,
        });
    }
}

impl Claim {
    /// Follows trigger words, and appends those for the panel to the question, where its models see them.
    fn append(&mut self, triggers: &[Trigger]) {
        for trigger in triggers {
            if trigger.corrects() && !self.best.is_empty() {
                self.claim = self.claim.replace(&self.claimed_answer, &self.best);
                self.claimed_answer.clone_from(&self.best);
                self.rivals.retain(|rival| *rival != self.best);
            }
            if trigger.equals() {
                self.rivals.insert(0, format!("{}.", self.claimed_answer));
            }
            if !trigger.is_of_extraction() {
                self.question.extend([" ", &trigger.to_string()]);
            }
        }
    }
}

/// Splits "A and B" if the tables have both. Returns the first claim, its question and the rest.
fn first_of_two(sentence: &str) -> Option<(&str, ClaimQuestion, &str)> {
    if sentence.len() > MAX_COMPOUND_BYTES {
        return None;
    }
    [", and ", "; ", ", but ", ", while ", " and ", " but "].iter().find_map(|conjunction| {
        sentence.match_indices(conjunction).find_map(|(at, _)| {
            let (left, right) = (&sentence[..at], &sentence[at + conjunction.len()..]);
            let question = recognise::known(left)?;
            (recognise::known(right).is_some() || first_of_two(right).is_some())
                .then_some((left, question, right))
        })
    })
}

/// A claim as a complete sentence.
fn as_sentence(sentence: &str) -> String {
    let mut text = sentence.trim_end_matches([',', ';']).to_owned();
    if text.starts_with(|c: char| c.is_ascii_lowercase()) {
        text[..1].make_ascii_uppercase();
    }
    if !text.ends_with(['.', '!', '。', '！']) {
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
        serde_json::from_str(&answer(&Task { section: statement, is_mending: false })).unwrap()
    }

    fn claims(statement: &str) -> Vec<String> {
        let read = read(statement);
        let claims = read["claims"].as_array().unwrap().iter();
        claims.map(|claim| claim["claim"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_statement_becomes_claims_with_questions() {
        let statement = "The Eiffel Tower is in Paris. The Eiffel Tower was completed in 1925. Gold has the chemical symbol Au. \
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
                "quote": "The Eiffel Tower was completed in 1925.",
                "claim": "The Eiffel Tower was completed in 1925.",
                "question": "In which year was the Eiffel Tower completed?",
                "claimed_answer": "1925",
                "rivals": ["1889", "1921", "1923", "1927", "1929", "1936"],
                "best": "1889",
            })
        );
        assert_eq!(
            read["skipped"],
            json!([{"quote": "It is the most beautiful tower.", "reason": "opinion"}])
        );
    }

    #[test]
    fn two_claims_in_one_sentence_are_split() {
        assert_eq!(
            claims("The Eiffel Tower is in Paris, and 2 + 2 = 5, but the Titanic sank in 1912."),
            ["The Eiffel Tower is in Paris.", "2 + 2 = 5.", "The Titanic sank in 1912."]
        );
        assert_eq!(claims("The capital of France is Paris, but 2 + 2 = 5.").len(), 2);
        assert_eq!(claims("Jane Austen wrote Pride and Prejudice.").len(), 1);
        assert_eq!(claims("Pierre and Marie Curie were married.").len(), 1);
    }

    #[test]
    fn trigger_words_belong_to_the_sentence_before_them() {
        let read = read("The capital of Japan is Osaka. [sandbox:correct] The capital of France is Lyon.");
        let said =
            [0, 1].map(|at| (read["claims"][at]["quote"].clone(), read["claims"][at]["claim"].clone()));
        let osaka = "The capital of Japan is Osaka. [sandbox:correct]";
        assert_eq!(said[0], (json!(osaka), json!("The capital of Japan is Tokyo.")));
        let lyon = json!("The capital of France is Lyon.");
        assert_eq!(said[1], (lyon.clone(), lyon));
    }

    #[test]
    fn trigger_words_are_only_in_the_question() {
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
            json!({"claims": [], "skipped": [{"quote": "It was completed in 1889.", "reason": "ambiguous"}]})
        );
    }

    #[test]
    fn the_marks_of_markdown_are_in_the_quotes_and_not_in_the_claims() {
        let read = read(
            "---\ntitle: Towers\n---\n# The capital of France is Nice\n\n\
             > **The [Eiffel Tower](https://example.org/a_b)** is\n> in *Paris*.\n\n\
             1. `2 * 3 = 6`\n2. The capital of France is __Paris__.\n\n\
             ```sh\nThe Titanic sank in 1913.\n```\n\n| City | Country |\n|---|---|\n| Rome | Italy |\n",
        );
        let claims = read["claims"].as_array().unwrap().iter();
        let said: Vec<_> = claims.map(|claim| (&claim["quote"], &claim["claim"])).collect();
        assert_eq!(
            said,
            [
                (
                    &json!("**The [Eiffel Tower](https://example.org/a_b)** is\n> in *Paris*."),
                    &json!("The Eiffel Tower is in Paris.")
                ),
                (&json!("`2 * 3 = 6`"), &json!("2 * 3 = 6.")),
                (&json!("The capital of France is __Paris__."), &json!("The capital of France is Paris.")),
            ]
        );
        assert_eq!(read["skipped"], json!([{"quote": "| Rome | Italy |", "reason": "ambiguous"}]));
    }

    proptest! {
        #[test]
        fn any_text_gives_json_with_complete_claims(statement in "(\\PC|\n|[.] |is |It | and |[|]|```|---|# |[*][*]|> |\\[sandbox:fail\\]){0,40}") {
            let read = read(&statement);
            for claim in read["claims"].as_array().unwrap() {
                prop_assert!(!claim["question"].as_str().unwrap().is_empty());
                prop_assert!(matches!(claim["rivals"].as_array().unwrap().len(), 1 | 3..=6));
            }
        }
    }
}
