//! Checks what an extractor drafted before the panel gets it: texts are cleaned and capped, unsound claims skipped.
//!
//! What must hold for a claim that passes: text, question and claimed answer are not empty and within their caps; its
//! options are distinct (in their [`normal_form`], and ignoring case where it does not matter), with at least one rival,
//! and none reads like one of the two fixed options; its question does not state the claim, which would tell the panel
//! the claimed answer, and does not name that answer alone ([`leak`]); no earlier claim says the same. A rival that
//! breaks a rule is dropped by itself; a claim is skipped with a reason. A question with two answers may contain the
//! claim's words ("Do bees make honey?"): a proposition has to be asked about somehow, and either answer may be the
//! claimed one.

use std::collections::HashSet;

use super::claims::{Claim, Extraction};
use super::draft::{ClaimDraft, ExtractionDraft};
use super::{leak, normal_form, text};
use crate::api::verify::{SkipReason, Skipped};

/// The longest claim, question or skipped part, in characters.
const MAX_CLAIM_CHARS: usize = 2_000;
/// The longest option, in characters.
const MAX_OPTION_CHARS: usize = 500;
/// The most rivals: with the claimed answer and the two fixed options that makes eight, `A` to `H`.
const MAX_RIVALS: usize = 5;

/// The most letters of a symbol, where case matters: a chemical element, or a unit with its prefix.
const MAX_SYMBOL_LETTERS: usize = 2;
/// Words as short as a symbol that are not symbols, even in capitals.
const SHORT_WORDS: [&str; 3] = ["no", "am", "pm"];

/// Wordings of the two options that every question has.
const RESERVED: [&str; 7] = [
    "none of these",
    "none of the above",
    "none of these options",
    "none of the options",
    "cannot be determined",
    "can not be determined",
    "can't be determined",
];

/// Rivals that stand for "Cannot be determined" whatever the question: agreement on them would be no answer.
const ABSTENTIONS: [&str; 5] = ["not sure", "i don't know", "don't know", "n/a", "keine angabe"];

/// Rivals that are no answer of the same kind but stand for one of the fixed options, or for several, in the languages
/// of most statements. They may be an answer too ("None" to "How many?"), so they are only dropped beside another rival.
const EVASIVE: [&str; 61] = [
    "none",
    "neither",
    "neither of these",
    "none of them",
    "other",
    "another",
    "something else",
    "unknown",
    "not known",
    "not specified",
    "unspecified",
    "not stated",
    "all of the above",
    "all of these",
    "both of the above",
    // German
    "keine davon",
    "keiner davon",
    "keines davon",
    "nichts davon",
    "keine der genannten",
    "keines der genannten",
    "keine der oben genannten",
    "unbekannt",
    "nicht bekannt",
    "nicht angegeben",
    "andere",
    "anderes",
    "sonstige",
    "sonstiges",
    "alle genannten",
    "weder noch",
    // French
    "aucun",
    "aucune",
    "aucun de ceux-ci",
    "aucune de ces réponses",
    "autre",
    "inconnu",
    "non précisé",
    "toutes ces réponses",
    // Spanish
    "ninguno",
    "ninguna",
    "ninguna de las anteriores",
    "ninguno de los anteriores",
    "otro",
    "otra",
    "desconocido",
    "no especificado",
    "todas las anteriores",
    // Italian
    "nessuno",
    "nessuna delle precedenti",
    "nessuno di questi",
    "altro",
    "sconosciuto",
    "non specificato",
    // Portuguese
    "nenhuma das anteriores",
    "nenhum",
    "outro",
    "desconhecido",
    // Dutch
    "geen van deze",
    "anders",
    "onbekend",
];

/// Sorts a draft into claims for the panel and skipped parts with their reasons.
pub(super) fn check(draft: ExtractionDraft, max_claims: usize) -> Extraction {
    let mut extraction = Extraction::default();
    for part in draft.skipped {
        extraction.skip(&part.text, part.reason);
    }
    let mut seen = HashSet::new();
    let has_claims = !draft.claims.is_empty();
    for (at, claim) in draft.claims.into_iter().enumerate() {
        let text = text::one_line(&claim.claim);
        let shown = if text.is_empty() { text::one_line(&claim.question) } else { text };
        let Some(claim) = build_claim(&claim, extraction.claims.len()) else {
            extraction.skip(&shown, SkipReason::Ambiguous);
            continue;
        };
        let [claimed, rivals @ .., _, _] = claim.options() else { continue };
        if rivals.len() > 1 && leak::names_claimed(&claim.question, claimed, rivals) {
            extraction.leak.get_or_insert(at);
            extraction.skip(&shown, SkipReason::Ambiguous);
            continue;
        }
        let question_and_answer =
            format!("{}\n{}", normalized(&claim.question), normalized(&claim.options()[Claim::CLAIMED]));
        let new_text = seen.insert(normalized(&claim.text));
        let new_answer = seen.insert(question_and_answer);
        if !new_text || !new_answer {
            extraction.skip(&shown, SkipReason::Duplicate);
            continue;
        }
        if extraction.claims.len() >= max_claims {
            extraction.skip(&shown, SkipReason::OverLimit);
            continue;
        }
        extraction.claims.push(claim);
    }
    extraction.is_unsound = has_claims && max_claims > 0 && extraction.claims.is_empty();
    extraction
}

impl Extraction {
    fn skip(&mut self, part: &str, reason: SkipReason) {
        let part = text::shortened(&text::one_line(part), MAX_CLAIM_CHARS);
        if !part.is_empty() {
            self.skipped.push(Skipped { text: part, reason });
        }
    }
}

/// The cleaned claim; `None` if it cannot be asked about.
fn build_claim(draft: &ClaimDraft, position: usize) -> Option<Claim> {
    let claim = cleaned(&draft.claim, MAX_CLAIM_CHARS)?;
    let question = cleaned(&draft.question, MAX_CLAIM_CHARS)?;
    let claimed = cleaned(&draft.claimed_answer, MAX_OPTION_CHARS).filter(|claimed| !is_reserved(claimed))?;
    let mut distinct = HashSet::from([normalized_option(&claimed)]);
    let rivals: Vec<String> = draft
        .rivals
        .iter()
        .filter_map(|rival| cleaned(rival, MAX_OPTION_CHARS))
        .filter(|rival| !is_reserved(rival) && !is_one_of(&ABSTENTIONS, rival))
        .filter(|rival| distinct.insert(normalized_option(rival)))
        .collect();
    let mut rivals = without_evasive(rivals);
    rivals.truncate(MAX_RIVALS);
    let is_binary = rivals.len() == 1;
    if rivals.is_empty() || (!is_binary && contains_claim(&question, &claim)) {
        return None;
    }
    Some(Claim::new(position, claim, question, claimed, rivals))
}

/// The rivals that are answers of their own, if there is any; otherwise all of them.
fn without_evasive(rivals: Vec<String>) -> Vec<String> {
    let is_evasive = |rival: &String| is_one_of(&EVASIVE, rival);
    if rivals.iter().all(is_evasive) {
        return rivals;
    }
    rivals.into_iter().filter(|rival| !is_evasive(rival)).collect()
}

/// The text on one line; `None` if it is empty or too long.
fn cleaned(text: &str, max_chars: usize) -> Option<String> {
    let line = text::one_line(text);
    (!line.is_empty() && !text::is_longer(&line, max_chars)).then_some(line)
}

/// The form in which texts are compared: the [`normal_form`], without case.
fn normalized(text: &str) -> String {
    normal_form::of(text).to_lowercase()
}

/// Like [`normalized`], for an option: a symbol keeps its case, as `Co` and `CO`, or `mW` and `MW`, are not the same.
fn normalized_option(text: &str) -> String {
    let normalized = normalized(text);
    if is_symbol(text) && !is_short_word(&normalized) { normal_form::of(text) } else { normalized }
}

/// Whether the letters of a normalized text are one of the [`SHORT_WORDS`].
fn is_short_word(normalized: &str) -> bool {
    let letters: String = normalized.chars().filter(|c| c.is_alphabetic()).collect();
    SHORT_WORDS.contains(&letters.as_str())
}

/// Whether a text has a single word (apart from numbers), which is short and has a capital after its first letter.
fn is_symbol(text: &str) -> bool {
    let mut words = text.split_whitespace().filter(|word| word.contains(char::is_alphabetic));
    let (Some(word), None) = (words.next(), words.next()) else {
        return false;
    };
    let letters = || word.chars().filter(|c| c.is_alphabetic());
    letters().count() <= MAX_SYMBOL_LETTERS && letters().skip(1).any(char::is_uppercase)
}

fn is_reserved(option: &str) -> bool {
    is_one_of(&RESERVED, option)
}

/// Whether an option is one of these wordings, in whatever form.
fn is_one_of(wordings: &[&str], option: &str) -> bool {
    wordings.contains(&normalized(option).replace('’', "'").as_str())
}

/// Whether the question contains the claim word for word.
fn contains_claim(question: &str, claim: &str) -> bool {
    let claim = words(claim);
    claim.len() > 1 && words(question).contains(&claim)
}

/// The words of a text in lower case, without punctuation, each between spaces.
fn words(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(" ".to_owned(), |joined, word| joined + word + " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::draft::SkippedDraft;
    use proptest::prelude::*;

    fn claim(text: &str, question: &str, claimed: &str, rivals: &[&str]) -> ClaimDraft {
        ClaimDraft {
            claim: text.to_owned(),
            question: question.to_owned(),
            claimed_answer: claimed.to_owned(),
            rivals: rivals.iter().map(|&rival| rival.to_owned()).collect(),
        }
    }

    fn checked(claims: Vec<ClaimDraft>) -> Extraction {
        check(ExtractionDraft { claims, skipped: Vec::new() }, 30)
    }

    fn reasons(extraction: &Extraction) -> Vec<SkipReason> {
        extraction.skipped.iter().map(|part| part.reason).collect()
    }

    #[test]
    fn builds_options_with_the_claimed_first_and_the_fixed_two_last() {
        let extraction = checked(vec![claim("X is 1.", "What is X?", "1", &["2", "3"])]);
        let keyed = serde_json::to_string(&extraction.claims[0].keyed_options()).unwrap();
        assert_eq!(keyed, r#"{"A":"1","B":"2","C":"3","D":"None of these","E":"Cannot be determined"}"#);
        assert_eq!(extraction.claims[0].id, "claim_1");
        assert_eq!(extraction.claims[0].undetermined(), 4);
    }

    #[test]
    fn drops_unsound_rivals_by_themselves() {
        let long = "x".repeat(MAX_OPTION_CHARS + 1);
        let rivals =
            ["1889", " 1889 ", "EIFFEL", "", "none of the above.", "Can’t be determined", &long, "1900"];
        let extraction = checked(vec![claim("C", "When?", "Eiffel", &rivals)]);
        assert_eq!(extraction.claims[0].options()[..3], ["Eiffel", "1889", "1900"]);
        let many = ["1", "2", "3", "4", "5", "6", "7"];
        let extraction = checked(vec![claim("C", "Which?", "0", &many)]);
        assert_eq!(extraction.claims[0].options().len(), 8);
    }

    #[test]
    fn symbols_that_differ_by_case_are_different_answers() {
        let options = |claimed: &str, rivals: &[&str]| {
            let extraction = checked(vec![claim("C", "Which?", claimed, rivals)]);
            extraction.claims[0].options().split_last_chunk::<2>().unwrap().0.join("|")
        };
        assert_eq!(options("Co", &["CO", "CO2", "C2O"]), "Co|CO|CO2|C2O");
        assert_eq!(options("5 mW", &["5 MW", "5 MW.", "5  mW"]), "5 mW|5 MW");
        assert_eq!(options("New York", &["NEW YORK", "new york", "Rome"]), "New York|Rome");
        assert_eq!(options("Yes", &["YES", "NO", "No"]), "Yes|NO");
        assert_eq!(options("Rome", &["ROME", "Paris"]), "Rome|Paris");
        assert_eq!(options("10 am", &["10 AM", "10 PM", "10 pm"]), "10 am|10 PM");
    }

    #[test]
    fn options_in_another_form_are_the_same_and_evasive_ones_are_dropped_beside_a_real_one() {
        let options = |claimed: &str, rivals: &[&str]| {
            let extraction = checked(vec![claim("C", "Which?", claimed, rivals)]);
            extraction.claims[0].options().split_last_chunk::<2>().unwrap().0.join("|")
        };
        assert_eq!(options("8849 m", &["8,849 m", "８８４９ m", "8848 m", "8,848 m."]), "8849 m|8848 m");
        assert_eq!(options("Bogotá", &["Bogota\u{301}", "BOGOTÁ", "Lima"]), "Bogotá|Lima");
        assert_eq!(options("Berlin", &["Keine davon", "Bonn", "Unbekannt"]), "Berlin|Bonn");
        assert_eq!(options("Yes", &["No", "Unknown", "Not specified"]), "Yes|No");
        assert_eq!(options("1", &["None", "All of the above", "2"]), "1|2");
        assert_eq!(options("One", &["None"]), "One|None", "it is the only rival");
        assert_eq!(options("None", &["One", "Two"]), "None|One|Two");
        let rivals = ["None", "1", "2", "3", "4", "5", "6"];
        assert_eq!(options("0", &rivals), "0|1|2|3|4|5");
        // What has become a question with two answers may contain the claim's words.
        let yes_no = claim("Bees make honey.", "Is it so that bees make honey?", "Yes", &["No", "Unknown"]);
        assert_eq!(checked(vec![yes_no]).claims.len(), 1);
    }

    #[test]
    fn skips_claims_that_cannot_be_asked_about() {
        let unsound = vec![
            claim("No rivals", "Q?", "1", &[]),
            claim("Same rivals", "Q?", "Yes", &["yes", " YES."]),
            claim("No question", " ", "1", &["2"]),
            claim("No answer", "Q?", "\u{7}", &["2"]),
            claim("", "A question without claim?", "1", &["2"]),
            claim("Reserved", "Q?", "None of these", &["2"]),
            claim(
                "The Earth is flat.",
                "The Earth is FLAT: which shape has it?",
                "flat",
                &["round", "cubic"],
            ),
            claim(&"long ".repeat(500), "Q?", "1", &["2"]),
            claim("Nothing but ignorance", "Q?", "Yes", &["I don’t know", "Not sure.", "N/A"]),
        ];
        let extraction = checked(unsound);
        assert_eq!(extraction.claims, []);
        assert_eq!(reasons(&extraction), [SkipReason::Ambiguous; 9]);
        assert_eq!(extraction.skipped[4].text, "A question without claim?");
        assert_eq!(extraction.skipped[7].text.chars().count(), MAX_CLAIM_CHARS);
        assert!(extraction.is_unsound && !checked(Vec::new()).is_unsound);
        let nothing = Extraction { is_unsound: true, ..Extraction::default() };
        assert_eq!(checked(vec![claim("", "", "", &[])]), nothing);
    }

    #[test]
    fn a_yes_or_no_question_may_contain_the_claim() {
        let asked = claim("Bees make honey.", "Does the following hold: Bees make honey?", "Yes", &["No"]);
        assert_eq!(checked(vec![asked]).claims.len(), 1);
    }

    #[test]
    fn keeps_the_first_of_equal_claims() {
        let extraction = checked(vec![
            claim("Paris is big.", "How big?", "big", &["small"]),
            claim(" paris  is BIG", "Which size?", "big", &["small"]),
            claim("Paris has size.", "how big?", "Big", &["tiny"]),
            claim("Paris is old.", "How old?", "old", &["young"]),
        ]);
        assert_eq!(extraction.claims.len(), 2);
        assert_eq!(extraction.claims[1].id, "claim_2");
        assert_eq!(reasons(&extraction), [SkipReason::Duplicate; 2]);
    }

    #[test]
    fn reports_what_is_over_the_limit_and_what_the_extractor_skipped() {
        let claims = (0..5).map(|n| claim(&format!("C{n}"), &format!("Q{n}?"), "1", &["2"])).collect();
        let skipped = vec![SkippedDraft { text: "Nice!\n".to_owned(), reason: SkipReason::Opinion }];
        let extraction = check(ExtractionDraft { claims, skipped }, 3);
        assert_eq!(extraction.claims.len(), 3);
        assert_eq!(reasons(&extraction), [SkipReason::Opinion, SkipReason::OverLimit, SkipReason::OverLimit]);
        assert_eq!(extraction.skipped[0].text, "Nice!");
    }

    proptest! {
        #[test]
        fn whatever_a_model_drafts_the_claims_that_pass_are_sound(
            drafts in prop::collection::vec(
                ("[abAB .\u{7}]{0,6}", "[abAB ?]{0,6}", "[abAB\n ]{0,3}", prop::collection::vec("[abAB ]{0,3}", 0..8)),
                0..8,
            ),
            max_claims in 0_usize..5,
        ) {
            let count = drafts.len();
            let claims = drafts.into_iter().map(|(claim, question, claimed_answer, rivals)| {
                ClaimDraft { claim, question, claimed_answer, rivals }
            }).collect();
            let extraction = check(ExtractionDraft { claims, skipped: Vec::new() }, max_claims);
            prop_assert!(extraction.claims.len() <= max_claims);
            prop_assert!(extraction.claims.len() + extraction.skipped.len() <= count);
            for (position, claim) in extraction.claims.iter().enumerate() {
                prop_assert_eq!(&claim.id, &format!("claim_{}", position + 1));
                prop_assert!(!claim.text.is_empty() && !claim.question.is_empty());
                prop_assert!((4..=8).contains(&claim.options().len()));
                let options = claim.options().iter();
                let distinct: HashSet<String> = options.map(|option| normalized_option(option)).collect();
                prop_assert_eq!(distinct.len(), claim.options().len());
                prop_assert!(claim.options().len() == 4 || !contains_claim(&claim.question, &claim.text));
            }
        }
    }
}
