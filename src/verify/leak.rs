//! Whether a question tells the panel which of its options is asserted: "Was the tower completed in 1889 or another
//! year?", with 1889 claimed.
//!
//! It does if it contains the claimed answer, word for word, and none of the rivals. Not counted, as they are usual in
//! good questions: an answer of less than three characters, and one that is part of a longer name ("In which country
//! is Guatemala City?").

/// The fewest characters of an answer that is looked for.
const MIN_CHARS: usize = 3;

/// Whether a `question` with several `rivals` gives the `claimed` answer away.
pub(super) fn names_claimed(question: &str, claimed: &str, rivals: &[String]) -> bool {
    let words: Vec<&str> = words(question).collect();
    claimed.chars().filter(|c| c.is_alphanumeric()).count() >= MIN_CHARS
        && contains_by_itself(&words, claimed)
        && !rivals.iter().any(|rival| contains(&words, rival))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// The positions at which the words of `phrase` stand among `words`, and how many they are.
fn positions<'a>(words: &'a [&str], phrase: &str) -> impl Iterator<Item = (usize, usize)> + 'a {
    let phrase: Vec<String> = self::words(phrase).map(str::to_lowercase).collect();
    let length = phrase.len();
    let is_phrase =
        move |window: &[&str]| window.iter().map(|word| word.to_lowercase()).eq(phrase.iter().cloned());
    let windows = words.windows(length.max(1)).enumerate().filter(move |(_, window)| is_phrase(window));
    windows.map(move |(at, _)| (at, length))
}

fn contains(words: &[&str], phrase: &str) -> bool {
    positions(words, phrase).next().is_some()
}

/// Whether `phrase` stands somewhere where it is not a part of a longer name. The first word of a question has a
/// capital in any case.
fn contains_by_itself(words: &[&str], phrase: &str) -> bool {
    let is_name = |at: usize| words.get(at).is_some_and(|word| word.starts_with(char::is_uppercase));
    positions(words, phrase).any(|(at, length)| {
        let before = at > 1 && is_name(at - 1);
        !(is_name(at) && (before || is_name(at + length)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert!(!leaks(question, claimed), "{question}");
        }
    }
}
