//! Turns a sentence into a question about it, as an extractor would.
//!
//! A sentence about a fact in the tables becomes a question with several possible answers. Any other declarative
//! sentence becomes a yes-or-no question, on which the panel abstains.

use super::arithmetic::Sum;
use super::facts::Kind;
use super::knowledge::{Fact, facts};
use super::numbers;

/// The maximum length of an answer in a sentence.
const MAX_ANSWER_BYTES: usize = 60;

/// A question, the answer that a sentence gives to it, and rival answers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClaimQuestion {
    pub(super) question: String,
    pub(super) claimed: String,
    pub(super) rivals: Vec<String>,
}

/// The question that a sentence answers, if it is about a fact in the tables.
pub(super) fn known(sentence: &str) -> Option<ClaimQuestion> {
    let plain = plain(sentence);
    if let Some((sum, claimed)) = Sum::parse_claim(&plain) {
        let rivals = numbers::rivals(sum.value()?, claimed, numbers::STEPS);
        return Some(ClaimQuestion { question: sum.question(), claimed: numbers::show(claimed), rivals });
    }
    if let Some((fact, claimed)) = stated(&plain) {
        let rivals = fact.rivals(&claimed);
        return Some(ClaimQuestion { question: fact.question.clone(), claimed, rivals });
    }
    let (fact, denied) = stated(&affirmed(&plain)?)?;
    let question = format!("{}{IS_IT}{denied}?", fact.question);
    Some(ClaimQuestion { question, claimed: "No".to_owned(), rivals: vec!["Yes".to_owned()] })
}

/// Separates a fact's question from an answer to be confirmed.
pub(super) const IS_IT: &str = " Is it ";

/// A question for a sentence that is about no fact in the tables.
pub(super) fn unknown(sentence: &str) -> ClaimQuestion {
    let plain = plain(sentence);
    let (question, claimed) = match affirmed(&plain) {
        Some(affirmed) => (inverted(&affirmed), "No"),
        None => (inverted(&plain), "Yes"),
    };
    let rival = if claimed == "Yes" { "No" } else { "Yes" };
    ClaimQuestion { question, claimed: claimed.to_owned(), rivals: vec![rival.to_owned()] }
}

/// The sentence with single spaces and without final punctuation.
fn plain(sentence: &str) -> String {
    sentence
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .trim_end_matches(['.', '!', ';', ','])
        .to_owned()
}

/// The sentence that this one negates.
fn affirmed(plain: &str) -> Option<String> {
    const DENIALS: [(&str, &str); 7] = [
        (" isn't ", " is "),
        (" wasn't ", " was "),
        (" aren't ", " are "),
        (" weren't ", " were "),
        (" is not ", " is "),
        (" was not ", " was "),
        (" are not ", " are "),
    ];
    let (denial, affirmation) = DENIALS.iter().find(|(denial, _)| plain.contains(denial))?;
    Some(plain.replacen(denial, affirmation, 1))
}

/// Turns "X is Y" into "Is X Y?"; other sentences are asked about as a whole.
fn inverted(plain: &str) -> String {
    let verb = [" is ", " are ", " was ", " were "]
        .into_iter()
        .filter_map(|verb| plain.find(verb).map(|at| (at, verb)))
        .min()
        .filter(|(at, _)| plain[..*at].split(' ').count() <= 8);
    let Some((at, verb)) = verb else {
        return format!("Does the following hold: {plain}?");
    };
    let (subject, rest) = (&plain[..at], &plain[at + verb.len()..]);
    let verb = verb.trim();
    format!("{}{} {} {rest}?", verb[..1].to_uppercase(), &verb[1..], decapitalised(subject))
}

fn decapitalised(subject: &str) -> String {
    const LOWERED: [&str; 11] =
        ["The", "A", "An", "This", "These", "There", "All", "Some", "Most", "Many", "Every"];
    let (first, _) = subject.split_once(' ').unwrap_or((subject, ""));
    if !LOWERED.contains(&first) {
        return subject.to_owned();
    }
    format!("{}{}", first.to_lowercase(), &subject[first.len()..])
}

/// The fact that a sentence is about, and the answer that it gives.
fn stated(plain: &str) -> Option<(&'static Fact, String)> {
    let sentence = without_article(plain);
    facts().iter().find_map(|fact| {
        let answers = fact.forms.iter().filter_map(|(before, after)| between(sentence, before, after));
        answers.into_iter().find_map(|answer| Some((fact, normalized_answer(fact, answer)?)))
    })
}

fn without_article(text: &str) -> &str {
    match text.get(..4) {
        Some(article) if article.eq_ignore_ascii_case("the ") => &text[4..],
        _ => text,
    }
}

/// The part of a sentence between its beginning `before` and its end `after`, which are compared case-insensitively.
fn between<'a>(sentence: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let end = sentence.len().checked_sub(after.len())?;
    let fits =
        |part: Option<&str>, expected: &str| part.is_some_and(|part| part.eq_ignore_ascii_case(expected));
    if end > before.len() + MAX_ANSWER_BYTES
        || !fits(sentence.get(..before.len()), before)
        || !fits(sentence.get(end..), after)
    {
        return None;
    }
    sentence.get(before.len()..end).map(str::trim).filter(|answer| !answer.is_empty())
}

/// The answer in its usual spelling, if it is of the kind that the question asks for.
fn normalized_answer(fact: &Fact, answer: &str) -> Option<String> {
    match fact.kind {
        Kind::Year => {
            let year = answer.strip_prefix("the year ").unwrap_or(answer);
            let is_year = (3..=4).contains(&year.len()) && year.bytes().all(|b| b.is_ascii_digit());
            is_year.then(|| year.to_owned())
        }
        Kind::Number => numbers::read(answer).map(numbers::show),
        Kind::Symbol | Kind::Name if fact.knows(answer) => Some(fact.spelled(answer).to_owned()),
        Kind::Symbol => is_symbol(answer).then(|| answer.to_owned()),
        Kind::Name => {
            let name = without_article(answer);
            is_name(name).then(|| name.to_owned())
        }
    }
}

fn is_symbol(text: &str) -> bool {
    text.len() <= 3
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.bytes().all(|b| b.is_ascii_alphabetic())
}

/// Whether a text looks like a proper name rather than the rest of a longer sentence.
fn is_name(text: &str) -> bool {
    const CONNECTORS: [&str; 10] = ["de", "da", "di", "do", "du", "la", "of", "the", "van", "von"];
    let words: Vec<&str> = text.split(' ').collect();
    let is_part = |word: &&str| {
        let clean = word.trim_end_matches('.');
        let has_initial = clean.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit());
        (has_initial && clean.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '\'' | '.')))
            || CONNECTORS.contains(word)
    };
    words.len() <= 5 && words.iter().all(is_part) && text.starts_with(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(sentence: &str) -> (String, String) {
        let found = known(sentence).unwrap_or_else(|| panic!("{sentence}"));
        (found.question, found.claimed)
    }

    #[test]
    fn different_wordings_are_the_same_claim() {
        let expected = ("What is the capital of Australia?".to_owned(), "Sydney".to_owned());
        for sentence in [
            "The capital of Australia is Sydney.",
            "the capital city of australia is sydney",
            "Sydney is the capital of  Australia!",
            "Australia's capital is Sydney.",
        ] {
            assert_eq!(claimed(sentence), expected, "{sentence}");
        }
        let wall = ("In which year did the Berlin Wall fall?".to_owned(), "1991".to_owned());
        assert_eq!(claimed("In 1991, the Berlin Wall fell."), wall);
        assert_eq!(claimed("The Berlin Wall came down in the year 1991."), wall);
    }

    #[test]
    fn answers_have_a_uniform_spelling() {
        for (sentence, answer) in [
            ("The solar system has eight planets.", "8"),
            ("The Nile is the longest river in the world.", "Nile"),
            ("Water boils at 100 °C at sea level.", "100"),
            ("gold has the symbol au", "Au"),
            ("The capital of the US is Washington, D.C.", "Washington, D.C."),
            ("The Pacific is the largest ocean.", "Pacific Ocean"),
            ("Jane Austen wrote Pride and Prejudice.", "Jane Austen"),
            ("The Thirteenth Amendment abolished slavery.", "Thirteenth"),
            ("The capital of France is Marseille.", "Marseille"),
            ("Brown v. Board of Education was decided in 1954.", "1954"),
        ] {
            assert_eq!(claimed(sentence).1, answer, "{sentence}");
        }
    }

    #[test]
    fn a_denial_becomes_a_yes_or_no_question() {
        let found = known("The capital of Australia is not Sydney.").unwrap();
        assert_eq!(found.question, "What is the capital of Australia? Is it Sydney?");
        assert_eq!((found.claimed.as_str(), found.rivals), ("No", vec!["Yes".to_owned()]));
        assert!(known("The Eiffel Tower wasn't completed in 1925.").is_some());
    }

    #[test]
    fn sentences_that_say_more_than_the_tables_are_not_recognised() {
        for sentence in [
            "Some say that the capital of Australia is Sydney.",
            "The capital of France is in Europe.",
            "The capital of Australia is Sydney according to Bob.",
            "The Eiffel Tower was completed in record time.",
            "Mercury is the planet that I like.",
        ] {
            assert_eq!(known(sentence), None, "{sentence}");
        }
    }

    #[test]
    fn unknown_sentences_are_asked_about_neutrally() {
        let found = unknown("The Eiffel Tower is not the most visited monument in the world.");
        assert_eq!(found.question, "Is the Eiffel Tower the most visited monument in the world?");
        assert_eq!(found.claimed, "No");
        let there = unknown("There are 195 countries in the world.");
        assert_eq!(there.question, "Are there 195 countries in the world?");
        assert_eq!(unknown("Bees make honey.").question, "Does the following hold: Bees make honey?");
    }
}
