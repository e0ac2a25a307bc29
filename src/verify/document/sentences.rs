//! The sentences of a paragraph.
//!
//! UAX 29 finds nearly all breaks and as many wrong ones: it knows no abbreviations. Its reference for Rust
//! (`unicode-segmentation`) also takes time in the square of a text's length where a stop is followed by many brackets
//! (two seconds for 16,000 of them), which a caller could send. So the rule here is small and linear: a stop with white
//! space behind it ends a sentence, unless a guard says that it does not: an abbreviation from `data/`, an initial, the
//! number of a list or a German date, a quotation that the sentence goes on behind. A small letter alone is no guard
//! ("npm was …", "iOS has …"): a break too many is asked for twice, one too few lets a sentence pass unread. A CJK stop
//! needs no white space.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use super::blocks::{item_number, separators, trimmed};
use super::text::Kind;
use crate::verify::words::find_char;

/// The longest word before a stop that is looked up, in bytes.
const MAX_WORD: usize = 32;
/// The most words of a fragment.
const FRAGMENT_WORDS: usize = 4;
/// The same of one with a number in it.
const NUMBERED_FRAGMENT_WORDS: usize = 2;
/// The most letters and digits of a fragment.
const FRAGMENT_LETTERS: usize = 48;
/// The longest reference in brackets and the longest tag, in characters.
const MAX_NOTE: usize = 24;
const MAX_TAG: usize = 64;
/// Spaces as HTML writes them.
const SPACES: [&str; 7] = ["&nbsp;", "&#160;", "&#xa0;", "&ensp;", "&emsp;", "&thinsp;", "&#32;"];

/// Words that begin a sentence, and hardly stand capitalised within one.
const STARTERS: [&str; 88] = [
    "The", "A", "An", "It", "He", "She", "They", "We", "You", "I", "In", "On", "At", "This", "That", "These",
    "Those", "There", "Its", "His", "Her", "Their", "But", "And", "As", "By", "For", "From", "If", "When",
    "While", "After", "Before", "However", "Some", "Many", "Most", "No", "Not", "Der", "Die", "Das", "Ein",
    "Eine", "Er", "Sie", "Es", "Im", "Am", "Dort", "Seit", "Nach", "Dieser", "Diese", "Dieses", "Le", "La",
    "Les", "Un", "Une", "Il", "Elle", "Ils", "Elles", "Ce", "Cette", "En", "El", "Los", "Las", "Una", "Su",
    "Lo", "Gli", "Nel", "Nella", "O", "Os", "As", "Em", "De", "Het", "Een", "Hij", "Он", "Она", "Это", "В",
];

/// How the names of months begin where they are written small, as behind the number of a day: 17. mai 1814.
const MONTHS: [&str; 16] = [
    "jan", "feb", "mar", "mär", "apr", "maj", "mai", "máj", "jun", "jul", "aug", "sep", "okt", "nov", "dec",
    "des",
];

/// German words before a number that makes no end of a sentence: am 3. Oktober, der 2. Weltkrieg.
const BEFORE_ORDINALS: [&str; 30] = [
    "am", "der", "die", "das", "dem", "den", "des", "im", "vom", "zum", "zur", "beim", "ab", "bis", "seit",
    "ein", "eine", "einen", "einem", "einer", "und", "dieser", "diesem", "sein", "seinen", "ihr", "ihren",
    "jeder", "jeden", "nach",
];

/// Whether a sentence may end with an abbreviation.
static ABBREVIATIONS: LazyLock<HashMap<&'static str, bool>> = LazyLock::new(|| {
    let lines = include_str!("data/abbreviations.tsv").lines().filter(|line| !line.starts_with('#'));
    let rows = lines.filter_map(|line| line.split_once('\t'));
    rows.flat_map(|(class, words)| words.split('|').map(move |word| (word, class == "seldom"))).collect()
});

/// The sentences of a part of a text, without white space around them.
pub(super) fn split(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let Some(part) = text.get(range.clone()) else { return Vec::new() };
    let mut sentences = Vec::new();
    let mut start = 0;
    let mut at = item_number(part);
    while let Some((stop, c)) = find_char(part, at, |byte| matches!(byte, b'.' | b'!' | b'?'), is_stop) {
        let (end, stops) = behind_stop(part, stop);
        at = end;
        if ends_sentence(part, start, stop, end, c, stops) {
            sentences.push(trimmed(text, range.start + start..range.start + end));
            start = end;
        }
    }
    sentences.push(trimmed(text, range.start + start..range.end));
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// What kind of sentence prose is, and whether it is the last of its block.
pub(super) fn kind(sentence: &str, is_last: bool) -> Kind {
    if is_last && sentence.ends_with([':', '：']) {
        return Kind::ColonLine;
    }
    let bare = sentence.trim_end_matches(is_closer);
    // Korean states with this ending, and often without a stop.
    let has_stop = bare.ends_with(is_stop)
        || bare.ends_with('다')
        // A note in brackets may stand behind the stop: "Gold is heavy. [1]".
        || sentence.match_indices(['[', '(']).any(|(at, _)| sentence[..at].trim_end().ends_with(is_stop));
    if has_stop {
        return Kind::Prose;
    }
    // "Figure 2" states nothing, "Everest measures 9100 metres" and "Height: 9100" do.
    let has_number = sentence.contains(char::is_numeric);
    let longest = if has_number { NUMBERED_FRAGMENT_WORDS } else { FRAGMENT_WORDS };
    let is_short = || sentence.chars().filter(|c| c.is_alphanumeric()).nth(FRAGMENT_LETTERS).is_none();
    let says = has_number && bare.contains(": ") || words(sentence) > longest || !is_short();
    if says { Kind::Prose } else { Kind::Fragment }
}

/// Whether a line that stands for itself is a full sentence: of more words than a fragment, and with a full stop.
pub(super) fn asserts(line: &str) -> bool {
    // Also without the line under a heading.
    let bare = line.trim_end_matches(|c: char| c.is_whitespace() || is_closer(c) || matches!(c, '-' | '='));
    bare.ends_with(['.', '。', '।', '۔', '።', '։']) && words(bare) > FRAGMENT_WORDS
}

/// How many words a sentence has, up to one more than a fragment. In scripts without spaces, two characters of Chinese or
/// Japanese count as a word, and four of Thai, Lao, Tibetan, Khmer, Burmese, Javanese or Korean.
fn words(sentence: &str) -> usize {
    let mut quarters = 0;
    for word in sentence.split(is_gap) {
        let mut unspaced = 0;
        for c in word.chars() {
            unspaced += match c {
                '\u{3041}'..='\u{a4cf}' | '\u{ff66}'..='\u{ff9f}' | '\u{20000}'..='\u{3ffff}' => 2,
                '\u{e00}'..='\u{109f}'
                | '\u{1780}'..='\u{17ff}'
                | '\u{a980}'..='\u{a9df}'
                | '\u{ac00}'..='\u{d7a3}' => 1,
                _ => 0,
            };
            if unspaced > 4 * FRAGMENT_WORDS {
                break;
            }
        }
        // A term has a hyphen or two; a chain of such marks is a sentence in disguise.
        let is_joint = |c: &char| matches!(c, '-' | '+' | '·' | '<');
        let hyphens = word.chars().filter(is_joint).take(FRAGMENT_WORDS + 1).count();
        let joints = if hyphens > 2 { hyphens } else { 0 } + separators(word).unwrap_or_default();
        let spaced = if word.contains(char::is_alphanumeric) { 4 * (joints + 1) } else { 0 };
        quarters += spaced.max(unspaced);
        if quarters > 4 * FRAGMENT_WORDS {
            break;
        }
    }
    quarters.div_ceil(4)
}

/// What stands between words, also unseen.
const fn is_gap(c: char) -> bool {
    c.is_whitespace() || matches!(c, '—' | '–' | '_' | '/' | '\u{1361}') || is_unseen(c)
}

/// Characters without a glyph.
const fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}')
}

const fn is_stop(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '\u{203c}'..='\u{203d}' | '\u{2047}'..='\u{2049}') || is_wide_stop(c)
}

/// Stops of scripts that need no white space behind them.
const fn is_wide_stop(c: char) -> bool {
    matches!(
        c,
        '。' | '！'
            | '？'
            | '｡'
            | '．'
            | '؟'
            | '۔'
            | '।'
            | '॥'
            | '።'
            | '။'
            | '։'
            | '។'
            | '།'
            | '༎'
            | '꧉'
            | '᠃'
    )
}

const fn is_closer(c: char) -> bool {
    matches!(
        c,
        '"' | '\''
            | ')'
            | ']'
            | '}'
            | '”'
            | '’'
            | '»'
            | '›'
            | '“'
            | '」'
            | '』'
            | '）'
            | '】'
            | '〉'
            | '》'
            | '*'
            | '_'
            | '~'
            | '`'
    )
}

/// Where the stops and closing marks at a position end, and how many stops they are.
fn behind_stop(part: &str, stop: usize) -> (usize, usize) {
    let rest = &part[stop..];
    let after_stops = rest.find(|c| !is_stop(c)).unwrap_or(rest.len());
    let closed = &rest[after_stops..];
    let after = closed.find(|c| !is_closer(c)).unwrap_or(closed.len());
    // A reference such as [3] belongs to the sentence before it.
    let mut end = stop + after_stops + after;
    // So does the end of what is marked.
    let closing = |rest: &str| tag(rest).filter(|_| rest.starts_with("</"));
    while let Some(length) = note(&part[end..]).or_else(|| closing(&part[end..])) {
        end += length;
    }
    (end, rest[..after_stops].chars().count())
}

/// The length of a reference behind a stop: in brackets or raised, such as `[1]`, `[^a]`, `[citation needed]`, ² or †.
fn note(rest: &str) -> Option<usize> {
    let first = rest.chars().next()?;
    if matches!(first, '²' | '³' | '¹' | '\u{2070}'..='\u{2079}' | '†' | '‡') {
        return Some(first.len_utf8());
    }
    let inner = rest.strip_prefix('[')?;
    let end = inner.char_indices().take(MAX_NOTE).find(|(_, c)| matches!(c, '[' | ']' | '\n'))?;
    let is_link = inner[end.0 + 1..].starts_with('(');
    (end.1 == ']' && end.0 > 0 && !is_link).then_some(end.0 + 2)
}

/// The length of what shows as a space, or not at all: tags, entities, characters without a glyph.
fn unseen(rest: &str) -> usize {
    let mut length = 0;
    loop {
        let rest = &rest[length..];
        let entity = SPACES.iter().find(|entity| rest.starts_with(**entity)).map(|entity| entity.len());
        let hidden = rest.chars().next().filter(|c| is_unseen(*c)).map(char::len_utf8);
        let Some(next) = entity.or(hidden).or_else(|| tag(rest)) else { return length };
        length += next;
    }
}

/// The length of a tag of HTML.
fn tag(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('<')?;
    let is_tag = inner.strip_prefix('/').unwrap_or(inner).starts_with(|c: char| c.is_ascii_alphabetic());
    let end = inner.char_indices().take(MAX_TAG).find(|(_, c)| matches!(c, '<' | '>'))?;
    (is_tag && end.1 == '>').then_some(end.0 + 2)
}

fn ends_sentence(part: &str, start: usize, stop: usize, end: usize, c: char, stops: usize) -> bool {
    let rest = &part[end..];
    let Some(next) = rest.chars().next() else { return true };
    if is_wide_stop(c) {
        // "行く。」と言った" goes on with the particle behind the quotation.
        let is_quoted = part[stop..end].ends_with(['」', '』', '）', ')', '"']);
        return !(is_quoted
            && rest.starts_with(['と', 'っ', 'は', 'が', 'を', 'の', 'に', 'も', 'で', '、', '，', ',']));
    }
    let unseen = unseen(rest);
    if unseen == 0 && !next.is_whitespace() && !part[stop..end].ends_with('>') {
        return false;
    }
    let rest = &rest[unseen..];
    let opening = |c: char| {
        c.is_whitespace()
            || is_closer(c)
            || matches!(c, '(' | '[' | '„' | '«' | '‹' | '‘' | '「' | '¿' | '¡' | '-' | '–' | '—' | '•')
    };
    let next = rest.trim_start_matches(opening);
    let Some(first) = next.chars().next() else { return true };
    if matches!(first, ',' | ';' | ':') {
        return false;
    }
    if first.is_lowercase() {
        // “Really?” he asked. Wait… what? On the 17. mai 1814.
        let is_quoted = part[stop..end].ends_with(['"', '”', '’', '»', '“', '\'']);
        let is_day = part[..stop].ends_with(|c: char| c.is_ascii_digit())
            && MONTHS.iter().any(|month| next.starts_with(month));
        if is_quoted || c == '…' || stops > 2 || is_day {
            return false;
        }
    }
    if c != '.' || stops > 1 {
        return true;
    }
    !is_guarded(part, start, stop, next)
}

/// Whether a stop is a part of what stands before it, and ends no sentence before these words.
fn is_guarded(part: &str, start: usize, stop: usize, next: &str) -> bool {
    let from = floor(part, stop.saturating_sub(MAX_WORD).max(start));
    let before = &part[from..stop];
    let is_outside = |c: char| {
        c.is_whitespace() || matches!(c, '(' | '[' | '"' | '“' | '„' | '«' | '/' | '—' | '–' | '*' | '_')
    };
    let word_at =
        before.rfind(is_outside).map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let word = &before[word_at..];
    let next_word = next.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let begins = || STARTERS.contains(&next_word);
    let is_first = from == start && before[..word_at].trim().is_empty();
    if word.bytes().all(|byte| byte.is_ascii_digit()) && !word.is_empty() {
        let previous = before[..word_at].split_whitespace().next_back().unwrap_or_default().to_lowercase();
        return is_first || word.len() <= 2 && BEFORE_ORDINALS.contains(&previous.as_str()) && !begins();
    }
    let letters = word.chars().count();
    // d. h., EE. UU., Ludwig XIV. regierte.
    let is_roman = || word.bytes().all(|byte| b"IVXLC".contains(&byte));
    if next.starts_with(char::is_lowercase)
        && (letters == 1 || letters == 2 && word.chars().all(char::is_uppercase) || is_roman())
    {
        return true;
    }
    if letters == 1 && word.chars().all(char::is_uppercase) {
        // An initial stands first or behind a name; other single letters end names (Vitamin C, World War I).
        let previous = before[..word_at].split_whitespace().next_back().unwrap_or_default();
        let after_name = previous.ends_with('.') || is_first || previous.is_empty();
        return !begins()
            && (after_name || !next_word.is_empty() && previous.starts_with(char::is_uppercase));
    }
    let small = word.to_lowercase();
    match ABBREVIATIONS.get(small.trim_start_matches('\'')) {
        Some(false) => !begins() || is_title(&small),
        Some(true) => !begins(),
        // U.S., J.R.R.: points between single letters.
        None => word.contains('.') && word.split('.').all(|piece| piece.chars().count() == 1) && !begins(),
    }
}

/// Titles stand before names, which may look like the beginning of a sentence.
fn is_title(word: &str) -> bool {
    matches!(
        word,
        "dr" | "prof"
            | "mr"
            | "mrs"
            | "ms"
            | "st"
            | "sr"
            | "sra"
            | "mme"
            | "hr"
            | "fr"
            | "e.g"
            | "i.e"
            | "z.b"
            | "d.h"
            | "vs"
            | "cf"
    )
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sentences as they should be, with a bar between them.
    const TEXTS: [&str; 38] = [
        "Dr. Smith met Mr. J. R. Jones on 5 May.|They talked.",
        "The U.S. Senate voted.|It took 3.5 hours.",
        "He works at Acme Inc. in Ohio.|She does not.",
        "It opens at 9 a.m. every day.|The shop closes at 5 p.m. The bar does not.",
        "See Fig. 3 and No. 5.|Both agree.",
        "“Really?” he asked.|“Yes!” she said.",
        "It ended in 1945.|Peace followed.",
        "The capital is Paris.|npm was written in 2010.|`iOS` came first.|(since 987).|v2 followed.",
        "Is it five?|npm says so!|iPhones do not.",
        "Grunnloven kom den 17. mai 1814 og gjelder.|Den er gammel.",
        "It was large (approx. five metres), cf. the map, i.e. tall.|npm is not.",
        "Wait… what?|Nothing.",
        "1. The tower is tall.|It is old.",
        "He sold apples, pears, etc. and left.|Then he came back.",
        "It costs $5.50 (approx. 4 euros).|That is cheap.",
        "Take vitamin C.|It helps.",
        "World War I.|The end.",
        "The sea rose.[3] Towns were lost.[12]|People moved.",
        "Am 3. Oktober 1990 wurde Deutschland vereinigt.|Das war ein Mittwoch.",
        "Der 2. Weltkrieg endete 1945.|Er begann 1939.",
        "Das gilt z. B. für Wien.|Dr. Huber lebt dort.",
        "Im 19. Jahrhundert wuchs die Stadt.|Ludwig XIV. regierte lange.",
        "Die Firma hat ca. 500 Mitarbeiter.|Sie sitzt in Köln.",
        "M. Dupont habite à Paris.|Il y travaille.",
        "Mme. Curie est née en 1867.|Elle a reçu deux prix.",
        "El Sr. García nació en EE. UU. en 1950.|Vive en Madrid.",
        "¿Cuántos son?|Son tres.|¡Bien!",
        "La sig.ra Rossi abita a Roma.|È nata nel 1960.",
        "O Sr. Silva mora em Lisboa.|Ele tem 40 anos.",
        "De heer J. de Vries woont in Utrecht.|Hij is arts.",
        "А. С. Пушкин родился в 1799 г. в Москве.|Он был поэтом.",
        "Это произошло в 20 в. до н.э. в Риме.|Так говорят.",
        "東京は日本の首都です。|人口は1400万人です。",
        "彼は「行く。」と言った。|そして出かけた。",
        "埃菲尔铁塔建于1889年。|它高330米！|真的吗？|是的。",
        "서울은 한국의 수도이다.|인구는 약 940만 명이다.",
        "القاهرة عاصمة مصر.|هل هذا صحيح؟|نعم.",
        "दिल्ली भारत की राजधानी है।|यह बड़ी है।",
    ];

    fn bars(text: &str) -> String {
        let sentences = split(text, 0..text.len());
        sentences.into_iter().map(|range| &text[range]).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn what_does_not_show_parts_sentences_as_well() {
        let notes = "[^1] |[citation needed] |† |² |[1]&nbsp;";
        for between in "<br>|</p><p>|&nbsp;|\u{200b}|\u{2800}| ".split('|').chain(notes.split('|')) {
            let text = format!("Paris is the capital of France.{between}The moon is larger than the earth.");
            assert_eq!(split(&text, 0..text.len()).len(), 2, "{between:?}");
        }
        for text in ["See a.b for 1.5 m.", "Read [this.](http://a.b) or that one", "It is x.<5 or so"] {
            assert_eq!(split(text, 0..text.len()).len(), 1, "{text}");
        }
        for text in [
            "Everest&nbsp;is&nbsp;9,100&nbsp;m&nbsp;tall",
            "Everest\u{3164}is\u{180e}9,100\u{2800}m tall",
            "Everest,is,9,100,m,tall",
            "བོད་ལྗོངས་ནི་གངས་རིའི་ལྗོངས་ཡིན་ནོ་ཞེས་པ",
        ] {
            assert_eq!(kind(text, true), Kind::Prose, "{text}");
        }
    }

    #[test]
    fn sentences_end_where_readers_end_them() {
        let (mut found, mut wrong, mut all) = (0, Vec::new(), 0);
        for expected in TEXTS {
            let text = expected.replace('|', if expected.contains('。') { "" } else { " " });
            let is = bars(&text);
            let ends = |marked: &str| -> Vec<usize> {
                let parts: Vec<usize> = marked.split('|').map(|part| part.replace(' ', "").len()).collect();
                parts
                    .iter()
                    .scan(0, |sum, part| {
                        *sum += part;
                        Some(*sum)
                    })
                    .collect()
            };
            let (expected_ends, is_ends) = (ends(expected), ends(&is));
            all += expected_ends.len() - 1;
            let hits = expected_ends.iter().filter(|end| is_ends.contains(end)).count();
            found += hits - 1;
            if is_ends != expected_ends {
                wrong.push(is);
            }
        }
        assert!(found * 36 >= all * 35 && wrong.len() <= 3, "{found} of {all} breaks; {wrong:#?}");
    }

    #[test]
    fn lines_that_state_nothing_are_told_apart() {
        for (line, kind_of) in [
            ("Contents:", Kind::ColonLine),
            ("Chapter three", Kind::Fragment),
            ("Gold is heavy. [1]", Kind::Prose),
            ("概要", Kind::Fragment),
            ("It rains.", Kind::Prose),
            ("Height of the tower: 330 m", Kind::Prose),
            ("東京は日本の首都である", Kind::Prose),
            ("กรุงเทพเป็นเมืองหลวงของประเทศไทย", Kind::Prose),
            ("บทนำ", Kind::Fragment),
            ("ﾄｳｷｮｳﾊﾆﾎﾝﾉｼｭﾄﾃﾞｱﾙ", Kind::Prose),
            ("서울은 일본의 수도이다", Kind::Prose),
            ("The\u{2060}Tower\u{2060}is\u{2060}in\u{2060}Berlin", Kind::Prose),
            ("The—Tower—is—in—Berlin", Kind::Prose),
            ("The-Tower-is-in-Berlin", Kind::Prose),
            ("Long-term cost-benefit notes", Kind::Fragment),
            ("Everest measures 9100 metres", Kind::Prose),
            ("Figure 2", Kind::Fragment),
            ("Founded: 1234", Kind::Prose),
        ] {
            assert_eq!(kind(line, true), kind_of, "{line}");
        }
    }

    proptest! {
        #[test]
        fn sentences_hold_all_that_is_visible(text in "([a-zA-Z0-9 .!?\"()\\[\\]']|。|」|\\PC){0,80}") {
            let sentences = split(&text, 0..text.len());
            let held: String = sentences.iter().map(|range| &text[range.clone()]).collect();
            let visible = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(visible(&held), visible(&text));
            prop_assert!(sentences.windows(2).all(|pair| pair[0].end <= pair[1].start));
        }
    }
}
