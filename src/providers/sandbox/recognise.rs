//! Turns a sentence into a question about it, as an extractor would.
//!
//! A sentence about a fact in the tables becomes a question with several possible answers. Any other declarative
//! sentence becomes a yes-or-no question, on which the panel abstains.

use super::knowledge::{Fact, Kind, facts};
use super::reading::arithmetic::Sum;
use super::reading::numbers;

/// The maximum length of an answer in a sentence.
const MAX_ANSWER_BYTES: usize = 60;

/// A question, the answer that a sentence gives to it, and rival answers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClaimQuestion {
    pub(super) question: String,
    pub(super) claimed: String,
    pub(super) rivals: Vec<String>,
    /// The right answer; empty where the tables have none.
    pub(super) best: String,
}

/// The question that a sentence answers, if it is about a fact in the tables.
pub(super) fn known(sentence: &str) -> Option<ClaimQuestion> {
    let plain = plain(sentence);
    if let Some((sum, claimed)) = Sum::parse_claim(&plain) {
        let right = sum.value()?;
        let (rivals, best) = (numbers::rivals(right, claimed, numbers::STEPS), numbers::show(right));
        return Some(ClaimQuestion {
            question: sum.question(),
            claimed: numbers::show(claimed),
            rivals,
            best,
        });
    }
    if let Some((fact, claimed)) = stated(&plain) {
        let best = if fact.same(&claimed, &fact.answer) { claimed.clone() } else { fact.answer.clone() };
        let rivals = fact.rivals(&claimed);
        return Some(ClaimQuestion { question: fact.question.clone(), claimed, rivals, best });
    }
    let affirmed = affirmed(&plain)?;
    let (fact, denied) = stated(&affirmed)?;
    let is_right = !fact.same(&denied, &fact.answer);
    Some(opposed(&plain, &affirmed, Some(is_right)))
}

/// The question that has two statements for its options.
pub(super) const WHICH: &str = "Which of these statements is right?";

/// A question with a statement and its opposite, of which the tables say which is right, if they know.
fn opposed(claimed: &str, opposite: &str, is_right: Option<bool>) -> ClaimQuestion {
    let sentence = |plain: &str| format!("{}{}.", plain[..1].to_uppercase(), &plain[1..]);
    let (claimed, opposite) = if claimed.is_char_boundary(1) && opposite.is_char_boundary(1) {
        (sentence(claimed), sentence(opposite))
    } else {
        (format!("{claimed}."), format!("{opposite}."))
    };
    let best = match is_right {
        Some(true) => claimed.clone(),
        Some(false) => opposite.clone(),
        None => String::new(),
    };
    ClaimQuestion { question: WHICH.to_owned(), claimed, rivals: vec![opposite], best }
}

/// A question for a sentence that is about no fact in the tables.
pub(super) fn unknown(sentence: &str) -> ClaimQuestion {
    let plain = plain(sentence);
    let opposite = affirmed(&plain).or_else(|| denied(&plain));
    let opposite = opposite.unwrap_or_else(|| format!("It is not so that {}", decapitalised(&plain)));
    opposed(&plain, &opposite, None)
}

/// Whether a statement is right by the answer that a model `believes`; `None` if it is about no fact in the tables, or
/// the model has no belief.
pub(super) fn is_right<'a>(
    statement: &str,
    believes: impl Fn(&'static Fact) -> Option<&'a str>,
) -> Option<bool> {
    let plain = plain(statement);
    if let Some((fact, said)) = stated(&plain) {
        return Some(fact.same(&said, believes(fact)?));
    }
    let (fact, denied) = stated(&affirmed(&plain)?)?;
    Some(!fact.same(&denied, believes(fact)?))
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

/// The sentence that denies this one, if it has a form of "to be".
fn denied(plain: &str) -> Option<String> {
    let verbs = [" is ", " are ", " was ", " were "].into_iter();
    let (at, verb) = verbs.filter_map(|verb| plain.find(verb).map(|at| (at, verb))).min()?;
    Some(format!("{}{verb}not {}", &plain[..at], &plain[at + verb.len()..]))
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
        // In the table's spelling, unless that says more than the sentence.
        Kind::Symbol | Kind::Name if fact.knows(answer) => {
            let spelled = fact.spelled(answer);
            let says_more = spelled.split(' ').count() > answer.split(' ').count();
            Some(if says_more { answer } else { spelled }.to_owned())
        }
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
            ("The Pacific is the largest ocean.", "Pacific"),
            ("Jane Austen wrote Pride and Prejudice.", "Jane Austen"),
            ("The Thirteenth Amendment abolished slavery.", "Thirteenth"),
            ("The capital of France is Marseille.", "Marseille"),
            ("Brown v. Board of Education was decided in 1954.", "1954"),
        ] {
            assert_eq!(claimed(sentence).1, answer, "{sentence}");
        }
    }

    #[test]
    fn a_denial_is_opposed_to_what_it_denies() {
        let found = known("The capital of Australia is not Sydney.").unwrap();
        let (claimed, rival) =
            ("The capital of Australia is not Sydney.", "The capital of Australia is Sydney.");
        assert_eq!(found.question, WHICH);
        assert_eq!((found.claimed.as_str(), found.rivals), (claimed, vec![rival.to_owned()]));
        assert_eq!(found.best, claimed);
        assert!(known("The Eiffel Tower wasn't completed in 1925.").is_some());
        let believes = |answer: &'static str| move |_: &'static Fact| Some(answer);
        assert_eq!(is_right(claimed, believes("Canberra")), Some(true));
        assert_eq!(is_right(rival, believes("Sydney")), Some(true));
        assert_eq!(is_right("Bees make honey.", believes("x")), None);
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
    fn unknown_sentences_are_opposed_to_their_denials() {
        for (sentence, opposite) in [
            ("It is not the most visited monument.", "It is the most visited monument."),
            ("There are 195 countries in the world.", "There are not 195 countries in the world."),
            ("Bees make honey.", "It is not so that Bees make honey."),
            ("Übung macht den Meister.", "It is not so that Übung macht den Meister."),
        ] {
            let found = unknown(sentence);
            assert_eq!((found.claimed.as_str(), found.rivals), (sentence, vec![opposite.to_owned()]));
        }
    }
}
