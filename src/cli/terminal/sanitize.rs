//! Makes foreign text harmless before a terminal sees it.
//!
//! Claims, options, model names and messages come from models, servers and files. A terminal obeys control characters
//! in them (C0, DEL, C1) and reorders lines by bidirectional controls, so that such text could forge output. In human
//! and plain output, all foreign text passes through [`line()`], or [`lines()`] where it may have several lines; in
//! JSON, through [`json()`].

use std::borrow::Cow;

use crate::unsafe_chars::is_hazard;

/// `text` on one line: line ends and tabs become spaces, other control characters and bidirectional controls become the
/// replacement character U+FFFD.
pub fn line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hazard) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => safe.push(' '),
            hazard if is_hazard(hazard) => safe.push(char::REPLACEMENT_CHARACTER),
            plain => safe.push(plain),
        }
    }
    Cow::Owned(safe)
}

/// `text` with its lines: line ends and tabs stay, carriage returns are removed, and the rest is as in [`line()`]. Each
/// character is treated on its own, so that a text in pieces comes out the same as the whole.
pub fn lines(text: &str) -> Cow<'_, str> {
    let stays = |c: char| matches!(c, '\n' | '\t') || !is_hazard(c);
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let tamed = |c: char| match c {
        '\r' => None,
        '\u{2028}' | '\u{2029}' => Some('\n'),
        plain if stays(plain) => Some(plain),
        _ => Some(char::REPLACEMENT_CHARACTER),
    };
    Cow::Owned(text.chars().filter_map(tamed).collect())
}

/// JSON with the same characters written as escapes, which mean the same to any parser. Encoders leave DEL, C1 and
/// bidirectional controls as they are; line ends only occur between values.
pub fn json(text: &str) -> Cow<'_, str> {
    let must_escape = |c: char| c != '\n' && is_hazard(c);
    if !text.chars().any(must_escape) {
        return Cow::Borrowed(text);
    }
    let escaped = |c: char| if must_escape(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    Cow::Owned(text.chars().map(escaped).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_text_is_left_alone() {
        let text = "Zürich, 東京 – 😀";
        assert!(matches!(line(text), Cow::Borrowed(same) if same == text));
    }

    #[test]
    fn escape_sequences_lose_their_escape() {
        assert_eq!(line("a\u{1b}[2Jb\u{7f}c\u{9b}31m"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}31m");
    }

    #[test]
    fn json_escapes_what_encoders_leave() {
        assert_eq!(json("{\n\"a\": \"\u{9b}2J\u{7f}\u{202e}\"}"), "{\n\"a\": \"\\u009b2J\\u007f\\u202e\"}");
    }

    #[test]
    fn text_cannot_leave_its_line() {
        assert_eq!(line("one\r\ntwo\nthree\tfour\rfive\u{2028}six"), "one two three four five six");
    }

    #[test]
    fn text_cannot_be_reordered() {
        assert_eq!(line("\u{202e}eurt\u{2066}x\u{200f}"), "\u{fffd}eurt\u{fffd}x\u{fffd}");
    }

    #[test]
    fn text_of_several_lines_keeps_its_lines_and_nothing_else() {
        assert_eq!(lines("a\r\nb\tc\u{2028}d\u{1b}[2Je\u{202e}"), "a\nb\tc\nd\u{fffd}[2Je\u{fffd}");
        assert!(matches!(lines("Zürich\n\t東京"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn a_text_in_pieces_comes_out_like_the_whole(text in any::<String>(), at in any::<prop::sample::Index>()) {
            let cut = text.char_indices().map(|(at, _)| at).nth(at.index(text.chars().count().max(1))).unwrap_or(0);
            let (one, two) = text.split_at(cut);
            prop_assert_eq!(format!("{}{}", lines(one), lines(two)), lines(&text));
        }

        #[test]
        fn json_means_the_same_and_holds_nothing_hazardous(text in any::<String>()) {
            let encoded = serde_json::to_string(&text).unwrap();
            let safe = json(&encoded);
            prop_assert!(!safe.chars().any(is_hazard));
            prop_assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
        }

        #[test]
        fn nothing_hazardous_is_left(text in any::<String>()) {
            prop_assert!(!line(&text).chars().any(is_hazard));
        }
    }
}
