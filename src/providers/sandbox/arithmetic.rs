//! Sums such as `2 + 2 = 4` and `two plus two is five`: parsed, evaluated and turned into questions.

use super::numbers;

/// The maximum number of operands in a sum.
const MAX_OPERANDS: usize = 10;

/// A sum without its result.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sum {
    first: f64,
    rest: Vec<(Operator, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Plus,
    Minus,
    Times,
    Over,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    Operator(Operator),
    Equals,
}

impl Sum {
    /// Parses a sum and its claimed result.
    pub(super) fn parse_claim(sentence: &str) -> Option<(Self, f64)> {
        let mut tokens = tokens(sentence)?;
        let result = tokens.pop()?;
        let equals = tokens.pop()?;
        let (Token::Number(result), Token::Equals) = (result, equals) else {
            return None;
        };
        Some((Self::from_tokens(&tokens)?, result))
    }

    /// Parses the sum in a question that [`Sum::question`] made.
    pub(super) fn parse_question(question: &str) -> Option<Self> {
        let sum = question.trim().strip_prefix("What is ")?.strip_suffix('?')?;
        Self::from_tokens(&tokens(sum)?)
    }

    fn from_tokens(tokens: &[Token]) -> Option<Self> {
        let (Token::Number(first), rest) = tokens.split_first()? else {
            return None;
        };
        let (pairs, left_over) = rest.as_chunks::<2>();
        if pairs.is_empty() || pairs.len() >= MAX_OPERANDS || !left_over.is_empty() {
            return None;
        }
        let rest = pairs.iter().map(|pair| match pair {
            [Token::Operator(operator), Token::Number(number)] => Some((*operator, *number)),
            _ => None,
        });
        Some(Self { first: *first, rest: rest.collect::<Option<_>>()? })
    }

    /// The question that asks for the result.
    pub(super) fn question(&self) -> String {
        let mut text = numbers::show(self.first);
        for (operator, number) in &self.rest {
            let sign = match operator {
                Operator::Plus => "+",
                Operator::Minus => "-",
                Operator::Times => "×",
                Operator::Over => "÷",
            };
            text.extend([" ", sign, " ", &numbers::show(*number)]);
        }
        format!("What is {text}?")
    }

    /// The result, with × and ÷ before + and −; `None` for a division by zero.
    pub(super) fn value(&self) -> Option<f64> {
        let mut total = 0.0;
        let mut term = self.first;
        for (operator, number) in &self.rest {
            match operator {
                Operator::Times => term *= number,
                Operator::Over => term /= number,
                Operator::Plus | Operator::Minus => {
                    total += term;
                    term = if *operator == Operator::Plus { *number } else { -number };
                }
            }
        }
        let value = total + term;
        value.is_finite().then_some(value)
    }
}

/// Splits a sentence into numbers, operators and equality signs; `None` if it contains anything else.
fn tokens(sentence: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = sentence.trim();
    while !rest.is_empty() {
        if tokens.len() > 2 * MAX_OPERANDS {
            return None;
        }
        let after_number = matches!(tokens.last(), Some(Token::Number(_)));
        let (token, length) = if after_number { sign(rest) } else { number(rest) }?;
        tokens.push(token);
        rest = rest.get(length..)?.trim_start();
    }
    Some(tokens)
}

/// The operators and equality signs.
const SIGNS: [(&str, Token); 14] = [
    ("plus ", Token::Operator(Operator::Plus)),
    ("minus ", Token::Operator(Operator::Minus)),
    ("times ", Token::Operator(Operator::Times)),
    ("equals ", Token::Equals),
    ("is ", Token::Equals),
    ("x ", Token::Operator(Operator::Times)),
    ("+", Token::Operator(Operator::Plus)),
    ("-", Token::Operator(Operator::Minus)),
    ("−", Token::Operator(Operator::Minus)),
    ("×", Token::Operator(Operator::Times)),
    ("*", Token::Operator(Operator::Times)),
    ("÷", Token::Operator(Operator::Over)),
    ("/", Token::Operator(Operator::Over)),
    ("=", Token::Equals),
];

fn sign(text: &str) -> Option<(Token, usize)> {
    let begins = |sign: &str| text.get(..sign.len()).is_some_and(|start| start.eq_ignore_ascii_case(sign));
    let (sign, token) = SIGNS.iter().find(|(sign, _)| begins(sign))?;
    Some((token.clone(), sign.len()))
}

/// The longest number that the text begins with.
fn number(text: &str) -> Option<(Token, usize)> {
    let digits = text
        .char_indices()
        .take_while(|(at, c)| {
            c.is_ascii_digit() || matches!(c, '.' | ',') || (*at == 0 && matches!(c, '-' | '−'))
        })
        .map(|(at, c)| at + c.len_utf8())
        .last();
    if let Some(length) = digits {
        return Some((Token::Number(numbers::read(text.get(..length)?)?), length));
    }
    let length = text.find(' ').unwrap_or(text.len());
    Some((Token::Number(numbers::read(text.get(..length)?)?), length))
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
            ("7x6", "", 0.0, 0.0),
            ("7 x 6 = 42", "What is 7 × 6?", 42.0, 42.0),
            ("2+3×4=14", "What is 2 + 3 × 4?", 14.0, 14.0),
            ("ten / four equals 2.5", "What is 10 ÷ 4?", 2.5, 2.5),
            ("5 - -3 equals 8", "What is 5 - -3?", 8.0, 8.0),
            ("twenty-one minus one is twenty", "What is 21 - 1?", 20.0, 20.0),
            ("1,000 − 1 = 999", "What is 1000 - 1?", 999.0, 999.0),
        ] {
            let read = Sum::parse_claim(text);
            if question.is_empty() {
                assert_eq!(read, None, "{text}");
                continue;
            }
            let (sum, result) = read.unwrap_or_else(|| panic!("{text}"));
            assert_eq!(sum.question(), question);
            assert!(numbers::same(sum.value().unwrap(), value), "{text}");
            assert!(numbers::same(result, claimed), "{text}");
            assert_eq!(Sum::parse_question(question), Some(sum), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_sums() {
        for text in ["", "4", "2 + 2", "2 + = 4", "Paris is in France", "2 + 2 = 4 = 4", "= 4", "one is two"]
        {
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
