//! Foreign text made harmless: what callers and models wrote, before it enters a prompt, an event or a result.
//!
//! Removed are control characters and the invisible ones that can reorder or smuggle text: bidirectional controls,
//! zero-width spaces and joiners of words (U+200B, U+2060, U+FEFF) and the tag block (U+E0000–E007F), in which
//! instructions can be hidden from people. Zero-width joiners between letters stay: some scripts and emoji need them.

use crate::bidi;

/// The text on one line: every run of white space becomes one space, none at the ends.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() {
            if !line.is_empty() && !line.ends_with(' ') {
                line.push(' ');
            }
        } else if !is_hidden(c) {
            line.push(c);
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// The text with its lines and tabs kept.
pub(super) fn block(text: &str) -> String {
    text.chars().filter(|&c| c == '\n' || c == '\t' || !is_hidden(c)).collect()
}

/// The first `max_chars` characters; an ellipsis takes the last place where something was cut off.
pub(super) fn shortened(text: &str, max_chars: usize) -> String {
    if !is_longer(text, max_chars) {
        return text.to_owned();
    }
    text.chars().take(max_chars.saturating_sub(1)).chain(std::iter::once('…')).collect()
}

/// Whether the text has more than `max_chars` characters.
pub(super) fn is_longer(text: &str, max_chars: usize) -> bool {
    text.chars().nth(max_chars).is_some()
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || bidi::is_control(c)
        || matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn folds_white_space_and_drops_what_cannot_be_seen() {
        assert_eq!(one_line("  a\r\n\tb \u{2028} c\u{7}\u{1b}[31m\u{202e}d\u{e0041} "), "a b c[31md");
        assert_eq!(block("a\r\nb\u{0}\tc\u{200b}"), "a\nb\tc");
    }

    #[test]
    fn shortens_by_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äö…");
        assert!(!is_longer("äöü", 3));
    }

    proptest! {
        #[test]
        fn one_line_is_stable_and_never_holds_a_control_character(text in any::<String>()) {
            let line = one_line(&text);
            prop_assert_eq!(&one_line(&line), &line);
            prop_assert!(!line.contains(char::is_control));
        }
    }
}
