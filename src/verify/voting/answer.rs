//! Reads a panel model's answer: the letter of an option, and a reason if one was requested.
//!
//! The answer is a JSON object as [`object`] finds it. Its `answer` names an option in exactly these ways, in either
//! case and perhaps emphasised, quoted, in parentheses or followed by a full stop or colon: by its letter (`B`, `b`,
//! `**B**`, `(B)`, `B.`), after the word "Option" (`Option B`), or before the option's own text (`B) 1889`). A text
//! without any brace that is nothing but this is an answer as well.
//!
//! What the model found by itself must not contradict its letter: if it means the same as another option, and not as
//! the chosen one, or names but one option and another one, the answer is malformed. Who chose "None of these" has seen
//! that no option is what it found, and is contradicted only by an option's own words: values that code takes for the
//! same may differ for the model, and a right answer must not be lost to that. Neither may prose around the object
//! contradict it: if the prose after it names the letter of another option, or the prose before it names others and not
//! the chosen one, the answer is malformed. "A" before a word in lower case is an article.

use serde::Deserialize;
use serde_json::Value;

use super::ballot::PanelAnswer;
use crate::json::object;
use crate::verify::claim::{NONE_OF_THESE, letter};
use crate::verify::options::{names, says_only};
use crate::verify::text;
use crate::verify::values::Choice;

/// The longest answer that is parsed, in bytes: a letter, and a reason many times as long as what is kept of it.
const MAX_ANSWER_BYTES: usize = 256 * 1024;
/// The longest answer in a model's own words in a result, in characters; longer ones are shortened.
const MAX_FOUND_CHARS: usize = 200;
/// The longest reason in a result, in characters; longer ones are shortened.
const MAX_REASON_CHARS: usize = 500;

const NO_LETTER: &str = "answer: not the letter of an option";

/// A model's answer as it was parsed, its fields unchecked. Values of any type, so that no error quotes one.
#[derive(Deserialize)]
struct RawAnswer {
    answer: Value,
    #[serde(default)]
    found: Value,
    #[serde(default)]
    reason: Value,
}

/// Reads a vote: an answer as [`read_answer`] parses it. What comes before a cut may have been about to be taken back,
/// so that an answer that was cut off counts only if its object is whole.
///
/// # Errors
/// As [`read_answer`].
pub(in crate::verify) fn read_vote(
    answer: &str,
    is_cut_off: bool,
    options: &[String],
    order: &[usize],
    explain: bool,
) -> Result<PanelAnswer, String> {
    if is_cut_off && !object::is_object(answer) {
        return Err("cut off".to_owned());
    }
    read_answer(answer, options, order, explain)
}

/// Parses a panel model's answer: the option in the claim's own order, where `options[order[0]]` was shown as `A`, and
/// the reason if the model was to `explain`.
///
/// # Errors
/// What is wrong with an answer that does not clearly name one of the options shown.
pub fn read_answer(
    answer: &str,
    options: &[String],
    order: &[usize],
    explain: bool,
) -> Result<PanelAnswer, String> {
    let shown = Shown { options, order };
    if let Some(bare) = object::without_object(answer) {
        let position = shown.chosen(bare).ok_or("it has no object")?;
        return shown.answer(position, None, None);
    }
    let found = object::in_prose::<RawAnswer>(answer, MAX_ANSWER_BYTES)?;
    let position = found.value.answer.as_str().and_then(|answer| shown.chosen(answer)).ok_or(NO_LETTER)?;
    let (before, after) = (shown.named(&found.before), shown.named(&found.after));
    let is_other = |&named: &usize| named != position;
    if after.iter().any(is_other) || (!before.is_empty() && before.iter().all(is_other)) {
        return Err("its words name another option than its object".to_owned());
    }
    let kept = |value: &Value, max_chars: usize| {
        let line = value.as_str().map(text::one_line).filter(|line| !line.is_empty());
        line.map(|line| text::shortened(&line, max_chars))
    };
    let own = kept(&found.value.found, MAX_FOUND_CHARS);
    if own.as_deref().is_some_and(|own| shown.contradicts(own, position)) {
        return Err("found says another option than answer".to_owned());
    }
    let reason = kept(&found.value.reason, MAX_REASON_CHARS).filter(|_| explain);
    shown.answer(position, own, reason)
}

/// The options as a model was shown them.
struct Shown<'a> {
    options: &'a [String],
    order: &'a [usize],
}

impl Shown<'_> {
    fn answer(
        &self,
        position: usize,
        found: Option<String>,
        reason: Option<String>,
    ) -> Result<PanelAnswer, String> {
        let option = self.order.get(position).copied().ok_or(NO_LETTER)?;
        Ok(PanelAnswer { option, found, reason })
    }

    /// Whether what a model found is another option than the one at this position.
    fn contradicts(&self, found: &str, position: usize) -> bool {
        let option = |at: usize| self.order.get(at).and_then(|option| self.options.get(*option));
        let options = || (0..self.order.len()).filter_map(|at| Some((at, option(at)?.as_str())));
        let others = || options().filter(|(at, _)| *at != position).map(|(_, option)| option);
        let Some(chosen) = option(position) else { return true };
        let found = Choice::new(found);
        if chosen == NONE_OF_THESE {
            let is_other =
                |other: &str| found.is_same_text(&Choice::new(other)) || says_only(found.text(), other);
            return others().any(is_other);
        }
        if found.is_same(&Choice::new(chosen)) {
            return false;
        }
        let options: Vec<(usize, Choice<'_>)> =
            options().map(|(at, option)| (at, Choice::new(option))).collect();
        let mut named = options.iter().filter(|(_, option)| names(&found, option)).map(|(at, _)| *at);
        options.iter().any(|(at, other)| *at != position && found.is_same(other))
            || named.next().is_some_and(|first| first != position && named.next().is_none())
    }

    /// The position of the option that an answer names.
    fn chosen(&self, answer: &str) -> Option<usize> {
        let bare = undecorated(answer);
        let bare = match bare.get(..6) {
            Some(word) if word.eq_ignore_ascii_case("option") && !starts_with_letter(&bare[6..]) => {
                undecorated(&bare[6..])
            }
            _ => bare,
        };
        let mut characters = bare.chars();
        let position = self.position(characters.next()?.to_ascii_uppercase())?;
        let rest = characters.as_str();
        if rest.is_empty() {
            return Some(position);
        }
        let text = rest.trim_start_matches(['*', '_']).strip_prefix([')', '.', ':'])?;
        let option = self.options.get(*self.order.get(position)?)?;
        let comparable = |text: &str| text::one_line(undecorated(text)).to_lowercase();
        (comparable(text) == comparable(option)).then_some(position)
    }

    fn position(&self, shown_as: char) -> Option<usize> {
        (0..self.order.len()).find(|&position| letter(position) == shown_as)
    }

    /// The positions of the options that prose names: by a capital that is a word.
    fn named(&self, prose: &str) -> Vec<usize> {
        let words = prose.split(|c: char| !c.is_alphanumeric() && !c.is_whitespace()).flat_map(|part| {
            let mut words = part.split_whitespace().peekable();
            std::iter::from_fn(move || words.next().map(|word| (word, words.peek().copied())))
        });
        let mut named = Vec::new();
        for (word, next) in words {
            let is_article = word == "A" && next.is_some_and(|next| next.starts_with(char::is_lowercase));
            let mut characters = word.chars();
            if let (Some(only), None, false) = (characters.next(), characters.next(), is_article) {
                named.extend(self.position(only));
            }
        }
        named
    }
}

/// A text without white space, emphasis, quotes, parentheses, full stops and colons around it.
fn undecorated(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || "*_`\"'().:".contains(c))
}

fn starts_with_letter(text: &str) -> bool {
    text.starts_with(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Shown as A to D: Paris (2), 1889 (0), A.D. 70 (1), Cannot be determined (3).
    const ORDER: [usize; 4] = [2, 0, 1, 3];

    fn read(answer: &str, explain: bool) -> Result<PanelAnswer, String> {
        let options = ["1889", "A.D. 70", "Paris", "Cannot be determined"].map(str::to_owned);
        read_answer(answer, &options, &ORDER, explain)
    }

    fn option(answer: &str) -> Option<usize> {
        read(answer, false).ok().map(|answer| answer.option)
    }

    #[test]
    fn a_letter_may_be_decorated_and_in_either_case() {
        for letter in [
            "B",
            " B ",
            "b",
            "B)",
            "(B)",
            "B.",
            "**B**",
            "`B`",
            "\"B\"",
            "Option B",
            "option: b",
            "**Option B**",
        ] {
            assert_eq!(option(&serde_json::json!({"answer": letter}).to_string()), Some(0), "{letter}");
            assert_eq!(option(letter), Some(0), "{letter}");
            assert_eq!(option(&format!("<think>A or D?</think>\n{letter}<|im_end|>")), Some(0), "{letter}");
        }
        assert_eq!(option(r#"{"answer":"A"}"#), Some(2));
        assert_eq!(option(r#"{"answer":"d"}"#), Some(3));
    }

    #[test]
    fn a_letter_may_be_followed_by_the_text_of_its_option_and_no_other() {
        for whole in ["B) 1889", "B: 1889", "b. 1889.", "**B)** 1889", "**B** ) 1889", "Option B: \"1889\""] {
            let expected = (!whole.contains(" )")).then_some(0);
            assert_eq!(option(&serde_json::json!({"answer": whole}).to_string()), expected, "{whole}");
        }
        assert_eq!(option(r#"{"answer":"C) a.d.  70"}"#), Some(1));
        for wrong in [
            "B) 1890",
            "A) 1889",
            "B 1889",
            "1889",
            "B or C",
            "B, C",
            "BC",
            "",
            "E",
            "*",
            "[\"B\"]",
            "Bee",
            "Options B",
        ] {
            assert_eq!(option(&serde_json::json!({"answer": wrong}).to_string()), None, "{wrong}");
            assert_eq!(option(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_a_letter_is_an_answer_without_an_object() {
        for wrong in ["I think B.", "The answer is B", "B because of C", "{B}", "<think>B", "A tower."] {
            assert_eq!(option(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn prose_around_the_object_must_not_contradict_it() {
        for clear in [
            "Sure: {\"answer\":\"B\"}",
            "A) is wrong and B) right.\n{\"answer\":\"B\"}",
            "A short reply: {\"answer\":\"B\"}\nA pleasure; B it is.",
        ] {
            assert_eq!(option(clear), Some(0), "{clear}");
        }
        for unclear in [
            "The answer is C. {\"answer\":\"B\"}",
            "{\"answer\":\"B\"} No, wait: C.",
            "{\"answer\":\"B\"} or {\"answer\":\"C\"}",
            "{\"answer\":\"B\",\"answer\":\"C\"}",
            "{\"answer\":\"B\"",
            "{\"answer\":[\"B\"]}",
            "{\"answer\":null}",
        ] {
            assert_eq!(option(unclear), None, "{unclear}");
        }
    }

    /// What is read of a letter beside what a model found, among options in this order.
    fn with_found(options: &[&str], letter: &str, found: &str) -> Result<PanelAnswer, String> {
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let order: Vec<usize> = (0..options.len()).collect();
        let answer = serde_json::json!({"found": found, "answer": letter}).to_string();
        read_answer(&answer, &options, &order, false)
    }

    #[test]
    fn what_a_model_found_must_not_be_another_option() {
        let cities = ["Paris", "Lyon", "South Korea", "330 m", "None of these", "Cannot be determined"];
        for (letter, found) in [
            ("A", "Lyon"),
            ("A", "It is Lyon."),
            ("A", "The capital of France is Lyon"),
            ("A", "Lyon, not Paris"),
            ("A", "It is 330 metres high"),
            ("A", "None of these"),
            ("B", "not Lyon but Paris"),
            ("E", "Lyon."),
            ("E", "It is Lyon."),
            ("E", "330 m"),
        ] {
            assert!(with_found(&cities, letter, found).is_err(), "{letter}: {found}");
        }
        for (letter, found) in [
            ("A", "Paris"),
            ("A", "Paris, which is larger than Lyon"),
            ("A", "not Lyon"),
            ("A", "the capital"),
            ("A", "Lyon Avenue"),
            ("A", ""),
            ("D", "It is 330 metres high, as Paris knows"),
            ("E", "Korea"),
            ("E", "after Paris fell"),
            ("E", "330 metres or so"),
            ("E", "0.33 km"),
        ] {
            assert!(with_found(&cities, letter, found).is_ok(), "{letter}: {found}");
        }
    }

    /// The rival that was dropped beside the claimed answer may be what the models find: their votes count.
    #[test]
    fn none_of_these_is_a_vote_whatever_was_found_beside_the_options() {
        for (claimed, found) in [
            ("before 1980", "after 1980"),
            ("5 °N", "5 °S"),
            ("Article 5", "Article 5a"),
            ("Section 230", "Section 230(c)"),
            ("5 mg", "5 Mg"),
            ("at least 79", "95"),
            ("16", "sixteen"),
            ("100 °C", "212 °F"),
        ] {
            let options = [claimed, "Qwertz", "None of these", "Cannot be determined"];
            assert!(with_found(&options, "C", found).is_ok(), "{claimed}: {found}");
        }
    }

    #[test]
    fn keeps_a_reason_only_when_requested_and_sanitizes_it() {
        let answer = format!(r#"{{"reason":"a\u001b[2J\n{}","answer":"A"}}"#, "x".repeat(600));
        assert_eq!(read(&answer, false).unwrap().reason, None);
        let reason = read(&answer, true).unwrap().reason.unwrap();
        assert!(reason.starts_with("a[2J x"), "{reason}");
        assert_eq!(reason.chars().count(), MAX_REASON_CHARS);
        for none in ["\" \"", "7", "null", "[\"because\"]", "{}"] {
            let answer = format!(r#"{{"answer":"A","reason":{none}}}"#);
            assert_eq!(
                read(&answer, true),
                Ok(PanelAnswer { option: 2, found: None, reason: None }),
                "{none}"
            );
        }
        assert_eq!(
            read("{\"answer\":\"A\",\"reason\":\"one\ntwo\"}", true).unwrap().reason.unwrap(),
            "one two"
        );
    }

    proptest! {
        #[test]
        fn whatever_a_model_writes_an_answer_is_an_option_that_was_shown(answer in "[ABbe1*.:)(\"{}answeroption \\n]{0,40}") {
            if let Ok(read) = read(&answer, true) {
                prop_assert!(ORDER.contains(&read.option));
            }
        }
    }
}
