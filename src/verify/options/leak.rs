//! Whether a question tells the panel which of its options is claimed: "Was the tower completed in 1889 or another
//! year?", with 1889 claimed.
//!
//! It does if it holds the claimed answer and none of the rivals: word for word in scripts with spaces, anywhere in others,
//! and as the same number or date in another form. Not counted, as they are usual in good questions: a part of a longer
//! name ("In which country is Guatemala City?"), a word of one or two small letters, and one ideograph that may be a part
//! of any word. A short answer counts if it is a number or is written in capitals ("Is its symbol Au or another?").

use std::sync::LazyLock;

use memchr::memmem;

use crate::verify::normal_form;
use crate::verify::values::{Choice, Marker, Meaning, Reading, Value};
use crate::verify::words::{Folded, Script, Token, Tokens};

/// The fewest letters of a word that is looked for in any case.
const MIN_LETTERS: usize = 3;

/// Whether a `question` with several `rivals` gives the `claimed` answer away.
pub fn names_claimed(question: &str, claimed: &str, rivals: &[&str]) -> bool {
    let question = Question::new(question);
    question.holds(claimed, true) && !rivals.iter().any(|rival| question.holds(rival, false))
}

/// Whether a text in a model's own words names an option: by itself, and not only to deny it.
pub fn names(text: &Choice<'_>, option: &Choice<'_>) -> bool {
    text.holds_values_of(option).unwrap_or_else(|| Question::new(text.text()).asserts(option.text()))
}

/// Whether a text says nothing but an option without a value: "It is Lyon."
pub fn says_only(text: &str, option: &str) -> bool {
    const FILLERS: [&str; 34] = [
        "it", "is", "was", "the", "a", "an", "are", "were", "they", "he", "she", "es", "ist", "war", "sind",
        "waren", "er", "sie", "der", "die", "das", "le", "la", "les", "c", "est", "était", "fue", "era",
        "el", "è", "é", "foi", "это",
    ];
    let question = Question::new(text);
    let words = |text: &str, reading: &Reading| {
        let text = Line::new(text, reading.tokens()).text;
        let is_own = |word: &&str| !FILLERS.contains(word);
        text.split_whitespace().filter(is_own).map(str::to_owned).collect::<Vec<_>>()
    };
    let folded = Folded::new(option);
    let reading = Reading::of_folded(folded.text(), None);
    let own = words(folded.text(), &reading);
    reading.values().is_empty() && !own.is_empty() && own == words(question.folded.text(), &question.reading)
}

/// Whether a question only asks whether something is so, from which the panel could guess what is claimed (CONTRACT
/// 4.12).
pub fn asks_whether_true(question: &str) -> bool {
    let question = normal_form::small(question);
    let bare = from_word(&question);
    let questions = &*TRUTH_QUESTIONS;
    let goes_on = |rest: &str| rest.starts_with(char::is_alphanumeric);
    questions.beginnings.iter().any(|words| bare.strip_prefix(words).is_some_and(|rest| !goes_on(rest)))
        || !question.is_ascii() && questions.spaceless.iter().any(|part| question.contains(part))
}

/// How questions begin that ask whether something is true, and what they hold in scripts without spaces.
struct TruthQuestions {
    beginnings: Vec<&'static str>,
    spaceless: Vec<&'static str>,
}

static TRUTH_QUESTIONS: LazyLock<TruthQuestions> = LazyLock::new(|| {
    let lines = include_str!("data/truth_questions.tsv").lines().filter(|line| !line.starts_with('#'));
    let is_spaceless = |words: &&str| words.chars().any(|c| c >= '\u{3000}');
    let (spaceless, beginnings) =
        lines.flat_map(|line| line.split('|')).map(from_word).partition(is_spaceless);
    TruthQuestions { beginnings, spaceless }
});

/// A text from its first letter or digit.
fn from_word(text: &str) -> &str {
    text.trim_start_matches(|c: char| !c.is_alphanumeric())
}

/// A question's words. Models write both, questions and answers, so a search takes time in the sum of their lengths (for
/// each place that it finds), and not in their product.
struct Question {
    folded: Folded,
    reading: Reading,
    line: Line,
}

/// A text's words in small letters, a space before and after each; characters of scripts without spaces are words.
struct Line {
    text: String,
    /// Where in `text` the space before each word stands, and which token the word is.
    begins: Vec<(usize, usize)>,
}

impl Line {
    fn new(folded: &str, tokens: &Tokens) -> Self {
        let mut line = Self { text: " ".to_owned(), begins: Vec::new() };
        for (at, token) in tokens.all().iter().enumerate() {
            // A mark between letters holds a word together: C++, U.S., 8,849.
            if token.script == Script::Mark && !matches!(token.first, '+' | '#' | '%' | '°' | '$' | '€') {
                continue;
            }
            line.begins.push((line.text.len() - 1, at));
            line.text.extend(folded[token.range()].chars().flat_map(char::to_lowercase));
            line.text.push(' ');
        }
        line
    }
}

impl Question {
    fn new(question: &str) -> Self {
        let folded = Folded::new(question);
        let reading = Reading::of_folded(folded.text(), None);
        let line = Line::new(folded.text(), reading.tokens());
        Self { folded, reading, line }
    }

    /// Whether the question holds an answer, by itself if so asked: not as a part of a longer name.
    fn holds(&self, answer: &str, by_itself: bool) -> bool {
        let folded = Folded::new(answer);
        let reading = Reading::within(folded.text(), self.reading.languages());
        let tokens = reading.tokens().all();
        let letters = letters(&reading);
        let has_digits = tokens.iter().any(|token| token.script == Script::Digits);
        let is_wide = tokens.iter().all(|token| token.script != Script::Letters);
        let is_symbol = tokens.iter().any(|token| token.capitals > 0)
            && tokens.iter().filter(|token| token.is_word()).count() == 1;
        let is_wanted = letters >= MIN_LETTERS || has_digits || is_symbol || is_wide && letters > 1;
        if letters == 0 && !has_digits {
            return false;
        }
        let line = Line::new(folded.text(), reading.tokens());
        let is_found = is_wanted
            && self.places(&line).any(|at| {
                !by_itself
                    || self.stands_alone(at, line.begins.len(), is_symbol && letters < MIN_LETTERS, &folded)
            });
        is_found || self.has_value(&reading, folded.text())
    }

    /// Whether an option without values stands here by itself, and is not denied: "not Paris".
    fn asserts(&self, option: &str) -> bool {
        let folded = Folded::new(option);
        let reading = Reading::within(folded.text(), self.reading.languages());
        let line = Line::new(folded.text(), reading.tokens());
        let is_letters = reading.tokens().all().iter().any(Token::is_word);
        // Right before it, or before its article.
        let is_denied = |at: usize| {
            self.reading.senses().iter().any(|sense| {
                let end = sense.at as usize + usize::from(sense.length);
                sense.meaning == Meaning::Marker(Marker::Not) && (end == at || end + 1 == at)
            })
        };
        is_letters
            && self.places(&line).any(|at| {
                self.stands_alone(at, line.begins.len(), letters(&reading) < MIN_LETTERS, &folded)
                    && !is_denied(at)
            })
    }

    /// The tokens at which the words of another line begin, also within another such place.
    fn places(&self, words: &Line) -> impl Iterator<Item = usize> {
        let finder = memmem::Finder::new(words.text.as_bytes()).into_owned();
        let is_empty = words.begins.is_empty();
        let mut from = 0;
        std::iter::from_fn(move || {
            let found = from + finder.find(&self.line.text.as_bytes()[from..]).filter(|_| !is_empty)?;
            from = found + 1;
            let word = self.line.begins.partition_point(|(begin, _)| *begin < found);
            Some(self.line.begins.get(word).map(|(_, token)| *token))
        })
        .flatten()
    }

    /// Whether the words from a token on are not a part of a longer name. The first word of a question has a capital in any
    /// case. A symbol has to be written alike.
    fn stands_alone(&self, at: usize, words: usize, is_symbol: bool, answer: &Folded) -> bool {
        let tokens = self.reading.tokens().all();
        let is_name = |at: usize| tokens.get(at).is_some_and(Token::is_capital);
        let end = at + words;
        if is_symbol
            && tokens.get(at).is_none_or(|token| !answer.text().contains(&self.folded.text()[token.range()]))
        {
            return false;
        }
        let before = at > 1 && is_name(at - 1);
        let is_digit_run =
            |at: usize| tokens.get(at).is_some_and(|token| !token.spaced && token.script == Script::Digits);
        !(is_name(at) && (before || is_name(end))) && !is_digit_run(end)
    }

    /// Whether the question holds the same value as an answer that is nothing else: 1889, in words, with separators.
    fn has_value(&self, answer: &Reading, text: &str) -> bool {
        let [found] = answer.values() else { return false };
        let is_all = text.trim().len() <= found.range.len() + 12;
        let meets = |value: &Value| found.readings.contains(value);
        is_all
            && self.reading.values().iter().any(|asked| {
                asked.readings.iter().any(meets) && asked.unit == found.unit && asked.hedge == found.hedge
            })
    }
}

/// How many letters a text has.
fn letters(reading: &Reading) -> usize {
    let words = reading.tokens().all().iter().filter(|token| token.is_word());
    words.map(|token| token.chars as usize).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn leaks(question: &str, claimed: &str) -> bool {
        names_claimed(question, claimed, &["1890", "Lima", "gold", "大阪", "Ag"])
    }

    #[test]
    fn a_question_with_the_claimed_answer_alone_gives_it_away() {
        for (question, claimed) in [
            ("Was the tower completed in 1889 or another year?", "1889"),
            ("Is it New York, or which city is it?", "new york"),
            ("Bogotá or where?", "Bogotá."),
            ("Is Paris the capital of France?", "Paris"),
            ("Is it made of copper?", "copper"),
            ("Which is it: New York York, or york?", "york"),
            ("Is it that that that is the word?", "that that"),
            // Short answers.
            ("Does the square have 4 sides or another number?", "4"),
            ("Is its symbol Au or another?", "Au"),
            ("Is it C++ or another language?", "C++"),
            // Other forms of the same value.
            ("Is it 8,849 m high, or how high is it?", "8849 m"),
            ("Were there sixteen of them?", "16"),
            // Scripts without spaces, and others.
            ("日本の首都は東京ですか、それとも別の都市ですか？", "東京"),
            ("埃菲尔铁塔是1889年建成的还是其他年份？", "1889年"),
            ("中国的首都是北京吗？", "北京"),
            ("수도는 서울입니까?", "서울"),
            ("Столица России — Москва или другой город?", "Москва"),
            ("Le symbole est-il Au ou un autre ?", "Au"),
        ] {
            assert!(leaks(question, claimed), "{question}");
        }
    }

    #[test]
    fn other_questions_do_not() {
        for (question, claimed) in [
            ("In which year was the tower completed?", "1889"),
            ("Was the tower completed in 1889 or 1890?", "1889"),
            ("In which country is Guatemala City?", "Guatemala"),
            ("In which state is New York City?", "New York"),
            ("Which is the tallest of the 14 peaks?", "14 August"),
            ("How many of the 18899 rivets are left?", "1889"),
            ("What is copperas?", "copper"),
            ("What is it?", "---"),
            ("What is it?", "it's"),
            ("Is it that that which is the word?", "that that that"),
            ("東京と大阪のどちらが大きいですか？", "東京"),
            ("日本の首都はどこですか？", "東京"),
            ("", "1889"),
        ] {
            assert!(!leaks(question, claimed), "{question}");
        }
    }

    #[test]
    fn questions_that_ask_only_whether_something_is_true_are_known() {
        for question in [
            "Is it true that penguins can fly?",
            "True or false: penguins can fly?",
            "Stimmt es, dass Pinguine fliegen?",
            "Est-il vrai que les manchots volent ?",
            "¿Es cierto que los pingüinos vuelan?",
            "È vero che i pinguini volano?",
            "Правда ли, что пингвины летают?",
            "企鹅会飞是真的吗？",
            "ペンギンが飛べるというのは本当ですか？",
        ] {
            assert!(asks_whether_true(question), "{question}");
        }
        for question in
            ["Can penguins fly?", "Which statement about penguins is right?", "Is it trueish?", "What is it?"]
        {
            assert!(!asks_whether_true(question), "{question}");
        }
    }

    proptest! {
        #[test]
        fn no_question_makes_it_panic(question in "(a|A|ab|İ|ς|Σ|1|東|京|[ ?'+-]){0,24}", answer in "(a|A|ab|i|σ|1|東|[ ?'+-]){0,6}") {
            let _ = leaks(&question, &answer);
            let _ = asks_whether_true(&question);
        }
    }
}
