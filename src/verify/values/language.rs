//! Which language a text is in, as far as its values and markers depend on it.

use crate::verify::words::Script;

use super::lexicon::{Meaning, Sense};
use crate::verify::words::Token;

/// The codes of the languages that the tables know, by their bit.
pub(super) const CODES: [&str; 12] = ["en", "de", "fr", "es", "it", "pt", "nl", "ru", "zh", "ja", "ko", "ar"];

/// A set of languages; a text of unknown language may be in any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Languages(pub(super) u16);

impl Languages {
    /// Every language.
    pub const ANY: Self = Self(u16::MAX);

    /// The language of that code.
    pub fn of_code(code: &str) -> Option<Self> {
        CODES.iter().position(|known| *known == code).map(|at| Self(1 << at))
    }

    /// Whether two sets have a language in common.
    pub const fn meet(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether a decimal comma is usual, so that a point groups digits.
    pub fn has_decimal_comma(self) -> bool {
        self != Self::ANY && self.0 & !Self::COMMA == 0
    }

    /// Whether a decimal point is usual, so that a comma groups digits.
    pub fn has_decimal_point(self) -> bool {
        self != Self::ANY && self.0 & !Self::POINT == 0
    }

    /// Whether numbers are written as one word of many: German, Italian, Dutch.
    pub(super) const fn have_compounds(self) -> bool {
        self.0 & 0b101_0010 != 0
    }

    /// German, French, Spanish, Italian, Portuguese, Dutch, Russian.
    const COMMA: u16 = 0b1111_1110;
    /// English, Chinese, Japanese, Korean.
    const POINT: u16 = 0b111_0000_0001;

    /// The language with the most small words in a text. With fewer than two more than any other, it may be any of both.
    pub(super) fn guess(tokens: &[Token], senses: &[Sense]) -> Self {
        let mut counts = [0_u32; CODES.len()];
        for sense in senses.iter().filter(|sense| matches!(sense.meaning, Meaning::Small)) {
            for (bit, count) in counts.iter_mut().enumerate() {
                *count += u32::from(sense.languages.0 >> bit & 1);
            }
        }
        let count = |wanted: fn(&Token) -> bool| tokens.iter().filter(|token| wanted(token)).count();
        let kana = count(|token| matches!(token.first, '\u{3041}'..='\u{30ff}'));
        let hangul = count(|token| matches!(token.first, '\u{ac00}'..='\u{d7a3}'));
        let han = count(|token| token.script == Script::Han);
        let letters = count(|token| token.script == Script::Letters);
        if kana + hangul + han > letters {
            let code = if hangul > kana + han {
                "ko"
            } else if kana * 8 > han {
                "ja"
            } else {
                "zh"
            };
            return Self::of_code(code).unwrap_or(Self::ANY);
        }
        let most = counts.iter().copied().max().unwrap_or(0);
        if most == 0 {
            return Self::ANY;
        }
        let close = counts.iter().enumerate().filter(|(_, count)| **count * 4 >= most * 3);
        Self(close.fold(0, |all, (bit, _)| all | 1 << bit))
    }
}

/// The languages of a field of a table, `en=one|two`, and its words; a field without a code is in all of them.
pub(super) fn field(field: &str) -> (Languages, &str) {
    let coded = field.split_once('=').and_then(|(code, words)| Some((Languages::of_code(code)?, words)));
    coded.unwrap_or((Languages::ANY, field))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::values::Reading;

    #[test]
    fn a_language_is_told_by_its_small_words() {
        for (text, code) in [
            ("The tower was completed in 1889 and is 330 metres tall.", "en"),
            ("Der Turm wurde im Jahr 1889 fertig und ist 330 Meter hoch.", "de"),
            ("La tour a été achevée en 1889 et mesure 330 mètres.", "fr"),
            ("La torre fue terminada en 1889 y mide 330 metros.", "es"),
            ("La torre è stata completata nel 1889 ed è alta 330 metri.", "it"),
            ("A torre foi concluída em 1889 e tem 330 metros de altura.", "pt"),
            ("De toren werd in 1889 voltooid en is 330 meter hoog.", "nl"),
            ("Башня была построена в 1889 году и имеет высоту 330 метров.", "ru"),
            ("埃菲尔铁塔于1889年完工，高330米。", "zh"),
            ("エッフェル塔は1889年に完成し、高さは330メートルです。", "ja"),
            ("에펠탑은 1889년에 완공되었다.", "ko"),
        ] {
            let guessed = Reading::new(text).languages();
            assert!(guessed.meet(Languages::of_code(code).unwrap()), "{text}");
            assert!(guessed.0.count_ones() <= 2, "{text}");
        }
        assert_eq!(Reading::new("1889").languages(), Languages::ANY);
    }
}
