//! Whether a question tells the panel which of its options is asserted: "Was the tower completed in 1889 or another
//! year?", with 1889 claimed.
//!
//! It does if it contains the claimed answer, word for word, and none of the rivals. Not counted, as they are usual in
//! good questions: an answer of less than three characters, and one that is part of a longer name ("In which country
//! is Guatemala City?").

use memchr::memmem::Finder;

/// The fewest characters of an answer that is looked for.
const MIN_CHARS: usize = 3;

/// Whether a `question` with several `rivals` gives the `claimed` answer away.
pub(super) fn names_claimed(question: &str, claimed: &str, rivals: &[String]) -> bool {
    if claimed.chars().filter(|c| c.is_alphanumeric()).count() < MIN_CHARS {
        return false;
    }
    let question = Question::read(question);
    question.contains_by_itself(claimed) && !rivals.iter().any(|rival| question.contains(rival))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// A question's words. Models write both, questions and answers, so a search takes time in the sum of their lengths (for
/// each place that it finds), and not in their product.
struct Question<'a> {
    words: Vec<&'a str>,
    /// The words in lower case, with a space before and after each.
    text: String,
    /// The position in `text` of the space before each word.
    begins: Vec<usize>,
}

impl<'a> Question<'a> {
    fn read(question: &'a str) -> Self {
        let words: Vec<&str> = words(question).collect();
        let mut begins = Vec::with_capacity(words.len());
        let mut text = " ".to_owned();
        for word in &words {
            begins.push(text.len() - 1);
            text.push_str(&word.to_lowercase());
            text.push(' ');
        }
        Self { words, text, begins }
    }

    /// The positions of the words of `phrase` among those of the question, and how many they are.
    fn positions(&self, phrase: &str) -> impl Iterator<Item = (usize, usize)> {
        let Question { text, begins, .. } = Question::read(phrase);
        let (needle, length) = (Finder::new(&text).into_owned(), begins.len());
        let mut from = 0;
        std::iter::from_fn(move || {
            let found = from + needle.find(&self.text.as_bytes()[from..])?;
            from = found + 1;
            Some((self.begins.partition_point(|begin| *begin < found), length))
        })
        .filter(|(_, length)| *length > 0)
    }

    fn contains(&self, phrase: &str) -> bool {
        self.positions(phrase).next().is_some()
    }

    /// Whether `phrase` stands somewhere where it is not a part of a longer name. The first word of a question has a
    /// capital in any case.
    fn contains_by_itself(&self, phrase: &str) -> bool {
        let is_name = |at: usize| self.words.get(at).is_some_and(|word| word.starts_with(char::is_uppercase));
        self.positions(phrase).any(|(at, length)| {
            let before = at > 1 && is_name(at - 1);
            !(is_name(at) && (before || is_name(at + length)))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The positions of a phrase's words among those of a question, found word by word.
    fn compared(question: &str, phrase: &str) -> Vec<(usize, usize)> {
        let lower = |text: &str| words(text).map(str::to_lowercase).collect::<Vec<_>>();
        let (question, phrase) = (lower(question), lower(phrase));
        let windows = question.windows(phrase.len().max(1)).enumerate();
        windows.filter(|(_, window)| *window == phrase).map(|(at, _)| (at, phrase.len())).collect()
    }

    fn leaks(question: &str, claimed: &str) -> bool {
        names_claimed(question, claimed, &["1890", "Lima", "gold"].map(str::to_owned))
    }

    #[test]
    fn a_question_with_the_claimed_answer_alone_gives_it_away() {
        assert!(leaks("Was the tower completed in 1889 or another year?", "1889"));
        assert!(leaks("Is it New York, or which city is it?", "new york"));
        assert!(leaks("Bogotá or where?", "Bogotá."));
        assert!(leaks("Is Paris the capital of France?", "Paris"));
        assert!(leaks("Is it made of copper?", "copper"));
    }

    #[test]
    fn each_place_of_the_answer_counts() {
        assert!(leaks("Which is it: New York York, or york?", "york"));
        assert!(leaks("Is it that that that is the word?", "that that"));
        assert!(!leaks("Is it that that which is the word?", "that that that"));
    }

    #[test]
    fn other_questions_do_not() {
        for (question, claimed) in [
            ("In which year was the tower completed?", "1889"),
            ("Was the tower completed in 1889 or 1890?", "1889"),
            ("In which country is Guatemala City?", "Guatemala"),
            ("In which state is New York City?", "New York"),
            ("Which is the tallest of the 14 peaks?", "14"),
            ("How many of the 18899 rivets are left?", "1889"),
            ("What is copperas?", "copper"),
            ("What is it?", "---"),
            ("", "1889"),
        ] {
            assert!(!leaks(question, claimed), "{question}");
        }
    }
    proptest! {
        #[test]
        fn the_places_are_those_that_a_comparison_of_words_finds(
            question in "(a|A|ab|İ|ς|Σ|1|東|[ ?'-]){0,24}",
            phrase in "(a|A|ab|i|σ|1|東|[ ?'-]){0,6}",
        ) {
            let found: Vec<_> = Question::read(&question).positions(&phrase).collect();
            prop_assert_eq!(found, compared(&question, &phrase));
        }
    }
}
