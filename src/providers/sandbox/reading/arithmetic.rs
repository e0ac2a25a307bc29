//! Sums of two numbers, such as `2 + 2 = 4` and `two plus two is five`: parsed, evaluated and turned into questions.

use super::numbers;

/// Two numbers and what is done with them, without the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::providers::sandbox) struct Sum {
    left: f64,
    operator: Operator,
    right: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Plus,
    Minus,
    Times,
    Over,
}

/// The operators, each by the sign that a question shows, and by other ways of writing it.
const OPERATORS: [(Operator, &[&str]); 4] = [
    (Operator::Plus, &["+", "plus "]),
    (Operator::Minus, &["-", "minus ", "−", "–"]),
    (Operator::Times, &["×", "times ", "*", "x "]),
    (Operator::Over, &["÷", "/"]),
];
const EQUALS: [&str; 3] = ["=", "is ", "equals "];

impl Sum {
    /// Parses a sum and its claimed result.
    pub(in crate::providers::sandbox) fn parse_claim(sentence: &str) -> Option<(Self, f64)> {
        let (sum, rest) = Self::parse(sentence)?;
        let rest = EQUALS.iter().find_map(|sign| without(rest, sign))?;
        let (result, rest) = number(rest)?;
        rest.is_empty().then_some((sum, result))
    }

    /// Parses the sum in a question that [`Sum::question`] made.
    pub(in crate::providers::sandbox) fn parse_question(question: &str) -> Option<Self> {
        let (sum, rest) = Self::parse(question.trim().strip_prefix("What is ")?.strip_suffix('?')?)?;
        rest.is_empty().then_some(sum)
    }

    /// The sum that a text begins with, and the rest of the text.
    fn parse(text: &str) -> Option<(Self, &str)> {
        let (left, rest) = number(text.trim())?;
        let (operator, rest) = OPERATORS.iter().find_map(|(operator, signs)| {
            signs.iter().find_map(|sign| without(rest, sign)).map(|rest| (*operator, rest))
        })?;
        let (right, rest) = number(rest)?;
        Some((Self { left, operator, right }, rest))
    }

    /// The question that asks for the result.
    pub(in crate::providers::sandbox) fn question(&self) -> String {
        let written = OPERATORS.iter().find(|(operator, _)| *operator == self.operator);
        let sign = written.and_then(|(_, signs)| signs.first()).copied().unwrap_or_default();
        format!("What is {} {sign} {}?", numbers::show(self.left), numbers::show(self.right))
    }

    /// The result; `None` for a division by zero.
    pub(in crate::providers::sandbox) fn value(&self) -> Option<f64> {
        let value = match self.operator {
            Operator::Plus => self.left + self.right,
            Operator::Minus => self.left - self.right,
            Operator::Times => self.left * self.right,
            Operator::Over => self.left / self.right,
        };
        value.is_finite().then_some(value)
    }
}

/// What follows a sign at the beginning of a text.
fn without<'a>(text: &'a str, sign: &str) -> Option<&'a str> {
    let start = text.get(..sign.len())?;
    start.eq_ignore_ascii_case(sign).then(|| text[sign.len()..].trim_start())
}

/// The number that a text begins with, in digits or as one word, and the rest.
fn number(text: &str) -> Option<(f64, &str)> {
    let is_digit = |at: usize, c: char| {
        c.is_ascii_digit() || matches!(c, '.' | ',') || (at == 0 && matches!(c, '-' | '−'))
    };
    let digits = text.char_indices().find(|(at, c)| !is_digit(*at, *c)).map_or(text.len(), |(at, _)| at);
    let end = if digits > 0 { digits } else { text.find(' ').unwrap_or(text.len()) };
    let (number, rest) = text.split_at(end);
    Some((numbers::read(number)?, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sums_in_digits_and_words_are_parsed() {
        for (text, question, value, claimed) in [
            ("2 + 2 = 4", "What is 2 + 2?", 4.0, 4.0),
            ("Two plus two is five", "What is 2 + 2?", 4.0, 5.0),
            ("7 x 6 = 42", "What is 7 × 6?", 42.0, 42.0),
            ("3×4=14", "What is 3 × 4?", 12.0, 14.0),
            ("ten / four equals 2.5", "What is 10 ÷ 4?", 2.5, 2.5),
            ("5 - -3 equals 8", "What is 5 - -3?", 8.0, 8.0),
            ("Twenty-one minus one is twenty", "What is 21 - 1?", 20.0, 20.0),
            ("1,000 − 1 = 999", "What is 1000 - 1?", 999.0, 999.0),
        ] {
            let (sum, result) = Sum::parse_claim(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(sum.question(), question);
            assert!(numbers::same(sum.value().unwrap(), value), "{text}");
            assert!(numbers::same(result, claimed), "{text}");
            assert_eq!(Sum::parse_question(question), Some(sum), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_sums() {
        for text in [
            "",
            "4",
            "7x6",
            "2 + 2",
            "2 + = 4",
            "Paris is in France",
            "2 + 2 = 4 = 4",
            "= 4",
            "one is two",
            "2 + 2 + 2 = 6",
        ] {
            assert_eq!(Sum::parse_claim(text), None, "{text}");
        }
        let (by_zero, _) = Sum::parse_claim("1 / 0 = 5").unwrap();
        assert_eq!(by_zero.value(), None);
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[-0-9a-z+*/= .,−×]{0,60}") {
            let _ = Sum::parse_claim(&text).and_then(|(sum, _)| sum.value());
        }
    }
}
